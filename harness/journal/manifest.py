"""A run's manifest: the task, the model and the settings that define the run, and its plan."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import orjson
from filelock import FileLock
from pydantic import ValidationError

from eyechart.harness.errors import JournalError
from eyechart.harness.journal import record
from eyechart.harness.journal.files import open_regular, replace_file, writing
from eyechart.harness.journal.manifest_fields import ManifestFields
from eyechart.harness.journal.recorded import Recorded
from eyechart.harness.spec import VARIANT, Cell, CellKey, Condition, Settings, TaskSpec, exact_json
from eyechart.providers.base import sampling_of
from eyechart.providers.naming import named, turned_on
from eyechart.providers.secrets import masked_fields

MANIFEST, _LOCK = record.MANIFEST, "manifest.lock"
_MASKED = ("server", "accepted", "answered_by", "sent", "refused", "commands", "recorded")
"""Fields with text from outside, such as a server's, in which keys are masked."""
_MOST_PROBLEM = 200
"""Characters of a message about a manifest, which may quote a value from it."""


@dataclass(slots=True)
class Manifest:
    """What defines a run, and its plan; never contains a key."""

    model: str
    """The model's name, and its variant where there is one."""
    task: str
    task_version: int
    task_digest: str
    spec: dict[str, Any]
    settings: dict[str, Any]
    given: dict[str, Any] = field(default_factory=dict)
    """How the latest command asked, besides `settings`: see `RunSettings.kept`."""
    variant: str = ""
    """How the model was served or asked: the last part of `model`."""
    served_as: str = ""
    """`provider/model` as it was asked, if `model` is another name, of the user or of files."""
    run: str = ""
    """Mark of the run, a hash of its model, task and settings, which its records have too: see
    `run_mark`. "" of a run without."""
    file: str = ""
    """Path of the task file, if it is the user's own."""
    kept: str = ""
    """Name of the kept file that the items came from, see `journal.kept`."""
    recorded: Recorded | None = None
    """Where recorded replies come from; `None` for a run that was asked."""
    server: dict[str, Any] = field(default_factory=dict)
    """Facts that the provider gives about the model and its server, with all its addresses."""
    accepted: list[str] = field(default_factory=list)
    """Addresses that the user accepted although they did not say which model they have."""
    answered_by: list[str] = field(default_factory=list)
    """The names of the model in its replies."""
    sent: dict[str, Any] = field(default_factory=dict)
    """The parameters of the latest kind of request, as they were sent: the body without model,
    prompt and limit of tokens. Empty where the provider does not say."""
    refused: list[str] = field(default_factory=list)
    """Parameters that replies were asked without, because the server does not take them."""
    software: dict[str, str] = field(default_factory=dict)
    counted: dict[str, str] = field(default_factory=dict)
    """Label of a condition -> tokens of some of its prompts, see `spec.counted`. Empty where the
    model's tokenizer is not at hand."""
    cells: list[Cell] = field(default_factory=list)
    """What the latest command asked, and what is answered: see `plan_cells`. By it `bench score`
    says what a stopped run lacks, in whatever folder; the replies alone do not tell."""
    adaptive: list[Condition] = field(default_factory=list)
    """Conditions whose `cells` are a wave of an adaptive run, which is asked to its end first. In a
    judged run: those with a sample that was chosen by answers, see `Record.chosen`.
    """
    commands: list[str] = field(default_factory=list)
    created: str = ""
    updated: str = ""

    @property
    def model_name(self) -> str:
        """The model's name without its variant."""
        return self.model.removesuffix(f"{VARIANT}{self.variant}") if self.variant else self.model

    @property
    def asked_as(self) -> str:
        """The model as the setting `model` names it: `provider/model`."""
        return self.served_as or self.model_name

    @property
    def refused_sampling(self) -> list[str]:
        """The parameters among `refused` by which replies are drawn."""
        return sampling_of(self.refused)

    def task_spec(self) -> TaskSpec:
        """The task's spec at the time of the run."""
        return TaskSpec.model_validate(self.spec)

    def plan_cells(
        self, asked: Sequence[Cell], recorded: Sequence[Cell], waves: Collection[Condition]
    ) -> None:
        """Plans what a command asks, beside what is `recorded`, see `Answered.recorded`. `waves`
        are the conditions under which `asked` is a wave of an adaptive run.
        """
        self.cells = list(most_of([*recorded, *asked]).values())
        others = set(self.adaptive) - {cell.condition for cell in asked}
        conditions = dict.fromkeys(cell.condition for cell in self.cells)
        self.adaptive = [one for one in conditions if one in others or one in waves]


def together(one: Cell, other: Cell) -> Cell:
    """The cell with the most samples and the most draws of two plans."""
    larger = max(one, other, key=lambda cell: cell.samples)
    return replace(larger, draws=max(one.draws, other.draws))


def most_of(cells: Iterable[Cell]) -> dict[CellKey, Cell]:
    """The cells by key, of each the one with its most samples and draws."""
    found: dict[CellKey, Cell] = {}
    for cell in cells:
        found[cell.key] = together(found.get(cell.key, cell), cell)
    return found


def run_folder(out: Path, model: str, spec: TaskSpec, task: str, settings: Settings) -> Path:
    """The folder of a run: `<out>/runs/<model>/<task>@<version>-<hash of spec and settings>`;
    raises `JournalError` if the folder would be outside `<out>/runs`.
    """
    return _run_folder(out, model, (task, spec.version, spec.digest()), settings)


def run_mark(model: str, task_digest: str, settings: Mapping[str, Any]) -> str:
    """The mark that tells the records of a run from those of others, see `Manifest.run`."""
    identity = orjson.dumps([model, task_digest, settings], option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(identity).hexdigest()[:8]


def folder_of(out: Path, manifest: Manifest) -> Path:
    """The folder under `out` of the run."""
    recorded = manifest.recorded is not None
    settings = Settings() if recorded else Settings(**manifest.settings)
    task = manifest.task, manifest.task_version, manifest.task_digest
    return _run_folder(out, manifest.model, task, settings)


def _run_folder(
    out: Path, model: str, task_parts: tuple[str, int, str], settings: Settings
) -> Path:
    """`task_parts` are the name, the version and the digest of the task."""
    task, version, digest = task_parts
    identity = orjson.dumps([digest, settings.given()])
    short = hashlib.sha256(identity).hexdigest()[:8]
    runs = out / "runs"
    folder = runs / _model_path(model) / f"{task}@{version}-{short}"
    if not Path(os.path.normpath(folder)).is_relative_to(os.path.normpath(runs)):
        raise JournalError(f"the run of task {task!r} would lie outside {runs}; rename its file")
    return folder


def _model_path(model: str) -> Path:
    """The folder of a model, below that of all runs."""
    parts = [quote(part, safe=" @+,=()[]~") or "%2F" for part in model.split("/")]
    return Path(*(part.replace(".", "%2E") if set(part) == {"."} else part for part in parts))


def find_runs(out: Path, model: str = "") -> list[Path]:
    """The folders of all runs under `out`, or of one model's, sorted.

    They have a manifest, valid or not, or only replies, or cannot be opened; `read_manifest` says
    what is wrong.
    """
    top = out / "runs" / _model_path(model) if model else out / "runs"
    found: list[Path] = []

    def note(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError | NotADirectoryError):
            found.append(Path(error.filename))

    for folder, inner, files in os.walk(top, onerror=note):
        path = Path(folder)
        if MANIFEST in files or MANIFEST in inner or record.journal_size(path):
            found.append(path)
    return sorted(found)


def read_manifest(folder: Path, *, to_continue: bool = False) -> Manifest:
    """Reads the manifest of the run in `folder`; `to_continue` is for a command that asks more
    samples.

    Raises:
        JournalError: there is no run, or its manifest is invalid; the error names the first field.
    """
    path = folder / MANIFEST
    try:
        with open_regular(path) as file:
            text = file.read()
    except (FileNotFoundError, NotADirectoryError):
        if record.journal_size(folder):
            raise JournalError(
                f"{folder} has replies but no {MANIFEST}; restore the file, or move the folder away"
            ) from None
        why = f"it has no {MANIFEST}" if folder.is_dir() else "there is no such folder"
        why = "it is a file" if folder.is_file() else why
        raise JournalError(f"no run in {folder}: {why}; 'bench runs' lists the runs") from None
    except OSError as error:
        raise _unreadable(path, error.strerror or "", to_continue=to_continue) from error
    try:
        return manifest_of(exact_json.loads(text))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        is_object = first["type"] == "model_type"  # pydantic names the class
        what = "no JSON object" if is_object else first["msg"].lower()
        problem = f"{where}: {what}" if where else f"it is {what}"
    except ValueError as error:
        problem = " ".join(str(error).split())
    raise _unreadable(path, problem, to_continue=to_continue)


def check_names(folder: Path, manifest: Manifest, model: str, task: str) -> None:
    """Raises `JournalError` if the run in `folder` is of a model or a task whose name differs from
    this one in case alone.
    """
    for one, other in zip((manifest.model, manifest.task), (model, task), strict=True):
        if one != other and one.casefold() == other.casefold():
            raise JournalError(
                f"{folder} holds a run of {one}, which this file system does not tell apart from "
                f"{other}; use another name or {named('out')}"
            )


def _unreadable(path: Path, problem: str, *, to_continue: bool) -> JournalError:
    short = problem if len(problem) <= _MOST_PROBLEM else f"{problem[:_MOST_PROBLEM]} …"
    instead = f"start over with {turned_on('fresh')}" if to_continue else "move the folder away"
    return JournalError(f"{path} cannot be read ({short}); restore the file, or {instead}")


def manifest_of(fields: object) -> Manifest:
    """The manifest of the fields of its file; raises `ValueError` if they are none or contradict
    each other.
    """
    read = ManifestFields.model_validate(fields)
    try:
        spec = TaskSpec.model_validate(read.spec)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(("spec", *map(str, first["loc"])))
        raise ValueError(f"{where}: {first['msg'].lower()}") from None
    cells = [cell.cell() for cell in read.cells]
    adaptive = [Condition(values) for values in read.adaptive]
    for condition in (*(one.condition for one in cells), *adaptive):
        if not spec.has_condition(condition):
            raise ValueError(f"cells: unknown condition {condition.label!r}")
    if len({cell.key for cell in cells}) < len(cells):
        raise ValueError("cells: a cell is there twice")
    found = {name: getattr(read, name) for name in ManifestFields.model_fields}
    recorded = None if read.recorded is None else read.recorded.recorded()
    if recorded is None and read.settings.api is None:
        raise ValueError("settings: the api of an asked run is missing")
    typed: dict[str, Any] = {"cells": cells, "recorded": recorded}
    typed["settings"] = read.settings.model_dump(exclude_unset=True)
    return Manifest(**found | typed | {"adaptive": adaptive})


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Replaces the manifest in `folder` atomically, with its time of update set to now, and with
    what other writers of the run have noted there meanwhile.

    Raises:
        JournalError: it cannot be written.
    """
    with writing(folder / MANIFEST), FileLock(folder / _LOCK):
        with suppress(JournalError):
            _join(manifest, read_manifest(folder))
        _write(folder, manifest)


def _join(manifest: Manifest, other: Manifest) -> None:
    """Adds the facts of another writer's manifest."""
    for name in ("accepted", "answered_by", "refused", "commands"):
        both = dict.fromkeys([*getattr(other, name), *getattr(manifest, name)])
        setattr(manifest, name, list(both))
    manifest.counted = other.counted | manifest.counted


def _write(folder: Path, manifest: Manifest) -> None:
    manifest.updated = datetime.now(UTC).isoformat(timespec="seconds")
    fields = asdict(manifest)
    fields["adaptive"] = list(map(dict, manifest.adaptive))
    fields["cells"] = [
        {
            "condition": dict(cell.condition),
            "length": cell.line.length,
            "low": cell.line.low,
            "high": cell.line.high,
            "samples": cell.samples,
            "draws": cell.draws,
        }
        for cell in manifest.cells
    ]
    content = exact_json.dumps(masked_fields(fields, _MASKED), indent=True)
    replace_file(folder / MANIFEST, content + b"\n", durable=True)
