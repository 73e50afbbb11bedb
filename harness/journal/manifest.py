"""A run's manifest: the task, the model and the settings that define the run, and its plan."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeAlias
from urllib.parse import quote

import orjson
from filelock import FileLock
from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    PositiveInt,
    TypeAdapter,
    ValidationError,
)

from eyechart.harness.errors import JournalError, UsageError
from eyechart.harness.journal import record
from eyechart.harness.journal.files import open_regular, replace_file, writing
from eyechart.harness.journal.recorded import RecordedFiles
from eyechart.harness.settings.run_settings import SETTINGS, RunSettings
from eyechart.harness.spec import (
    IN_FILE,
    VARIANT,
    Cell,
    CellKey,
    Condition,
    Settings,
    TaskSpec,
    exact_json,
)
from eyechart.harness.spec.file_mistakes import first_mistake
from eyechart.harness.spec.token_counts import PATTERN
from eyechart.providers.base import sampling_of
from eyechart.providers.naming import named, turned_on
from eyechart.providers.secrets import masked_fields

MANIFEST, _LOCK = record.MANIFEST, "manifest.lock"
_MASKED = ("server", "accepted", "answered_by", "sent", "refused", "commands", "recorded")
"""Fields with text from outside, such as a server's, in which keys are masked."""
_MOST_PROBLEM = 200
"""Characters of a message about a manifest, which may quote a value from it."""


_MOST_NAME = 4096
"""Characters of a name that folders are named after; no path is longer."""
_Name: TypeAlias = Annotated[str, Field(min_length=1, max_length=_MOST_NAME)]


def _is_moment(text: str) -> str:
    try:
        datetime.fromisoformat(text or "2026-01-31")
    except ValueError:
        raise ValueError("must be a time, as 2026-01-31T12:00:00+00:00") from None
    return text


_Moment: TypeAlias = Annotated[str, AfterValidator(_is_moment)]


def _is_given(values: dict[str, Any]) -> dict[str, Any]:
    for name in values:
        if name not in SETTINGS or not SETTINGS[name].is_kept:
            raise ValueError(f"{name!r} is no setting that a manifest keeps")
    try:
        return RunSettings.read(**values).kept
    except UsageError as error:
        raise ValueError(error.lines[0]) from None


@dataclass(slots=True)
class Manifest:
    """What defines a run, and its plan; never contains a key. `manifest.json` has its fields."""

    __pydantic_config__: ClassVar[ConfigDict] = IN_FILE

    model: _Name
    """The model's name, and its variant where there is one."""
    task: _Name
    task_version: PositiveInt
    task_digest: str
    spec: dict[str, Any]
    settings: Annotated[Settings, PlainSerializer(Settings.given)]
    given: Annotated[dict[str, Any], AfterValidator(_is_given)] = field(default_factory=dict)
    """How the latest command asked, besides `settings`: see `RunSettings.kept`."""
    variant: str = ""
    """How the model was served or asked: the last part of `model`."""
    served_as: str = ""
    """`provider/model` as it was asked, if `model` is another name, of the user or of files."""
    run: Annotated[str, Field(pattern=r"^([0-9a-f]{8})?$")] = ""
    """Mark of the run, a hash of its model, task and settings, which its records have too: see
    `run_mark`. "" of a run without."""
    file: str = ""
    """Path of the task file, if it is the user's own."""
    kept: Annotated[str, Field(pattern=r"^([0-9a-f]{16}-[^/\\\x00]+)?$")] = ""
    """Name of the kept file that the items came from, see `journal.kept`."""
    recorded: RecordedFiles | None = None
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
    counted: dict[str, Annotated[str, Field(pattern=PATTERN)]] = field(default_factory=dict)
    """Label of a condition -> tokens of some of its prompts, see `spec.token_counts`. Empty where
    the model's tokenizer is not at hand.
    """
    cells: list[Cell] = field(default_factory=list)
    """What the latest command asked, and what is answered: see `plan_cells`. By it `bench score`
    says what a stopped run lacks, in whatever folder; the replies alone do not tell."""
    adaptive: list[Condition] = field(default_factory=list)
    """Conditions whose `cells` are a wave of an adaptive run, which is asked to its end first. In a
    judged run: those with a sample that was chosen by answers, see `Record.chosen`.
    """
    commands: list[str] = field(default_factory=list)
    created: _Moment = ""
    updated: _Moment = ""

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
        """Plans what a command asks, beside what is `recorded`, see `AnswerIndex.recorded`. `waves`
        are the conditions under which `asked` is a wave of an adaptive run.
        """
        self.cells = list(most_of([*recorded, *asked]).values())
        others = set(self.adaptive) - {cell.condition for cell in asked}
        conditions = dict.fromkeys(cell.condition for cell in self.cells)
        self.adaptive = [one for one in conditions if one in others or one in waves]


_MANIFEST_FILE = TypeAdapter(Manifest)


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


def run_mark(model: str, task: str, task_digest: str, settings: Settings) -> str:
    """The mark that tells the records of a run from those of others, see `Manifest.run`. The seed
    of recorded replies, which have no `api`, is found after the first of them are there.
    """
    given = settings.given() if settings.api else replace(settings, seed=0).given()
    identity = orjson.dumps([model, task, task_digest, given], option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(identity).hexdigest()[:8]


def folder_of(out: Path, manifest: Manifest) -> Path:
    """The folder under `out` of the run."""
    recorded = manifest.recorded is not None
    settings = Settings() if recorded else manifest.settings
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


def manifest_of(fields: Any) -> Manifest:
    """The manifest of the fields of its file; raises `ValueError` if they are none or contradict
    each other.
    """
    try:
        manifest = _MANIFEST_FILE.validate_json(exact_json.dumps(fields))
    except ValidationError as error:
        raise ValueError(first_mistake(error, fields)) from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    for name in Settings().given():
        if name not in fields["settings"]:
            raise ValueError(f"settings: missing key {name!r}")
    if (manifest.recorded is None) == (manifest.settings.api is None):
        raise ValueError("settings.api: must be null if the run is recorded, and else be given")
    _check_plan(manifest)
    _check_identity(manifest)
    return manifest


def _check_identity(manifest: Manifest) -> None:
    """Raises `ValueError` if the run cannot have been made with what the manifest says."""
    spec = manifest.task_spec()
    if manifest.task_version != spec.version:
        raise ValueError("task_version: is not the version in 'spec'")
    if manifest.task_digest != spec.digest_as_written():
        raise ValueError("spec: is not what the run was made with, by its 'task_digest'")
    identity = manifest.model, manifest.task, manifest.task_digest, manifest.settings
    if manifest.run not in ("", run_mark(*identity)):
        raise ValueError("model, task, task_digest and settings are not those of the key 'run'")


def _check_plan(manifest: Manifest) -> None:
    """Raises `ValueError` if the cells are not those of the task."""
    try:
        spec = manifest.task_spec()
    except ValidationError as error:
        raise ValueError(first_mistake(error, manifest.spec, "spec")) from None
    cells = manifest.cells
    for place, cell in enumerate(cells):
        if not cell.line.low <= cell.length <= cell.line.high:
            raise ValueError(f"cells.{place}.line: 'length' is not between 'low' and 'high'")
    for condition in (*(one.condition for one in cells), *manifest.adaptive):
        if not spec.has_condition(condition):
            raise ValueError(f"cells: unknown condition {condition.label!r}")
    if len({cell.key for cell in cells}) < len(cells):
        raise ValueError("cells: a cell is there twice")


def fields_of(manifest: Manifest) -> Mapping[str, Any]:
    """The fields of the manifest's file."""
    return masked_fields(_MANIFEST_FILE.dump_python(manifest), _MASKED)


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
    content = exact_json.dumps(fields_of(manifest), indent=True)
    replace_file(folder / MANIFEST, content + b"\n", durable=True)
