"""A run's manifest: all that made the run, and what it is meant to hold."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import quote

import orjson
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    PositiveInt,
    ValidationError,
)

from harness import exact_json
from harness.errors import JournalError
from harness.journal.files import replace_file
from harness.spec import MAX_LENGTH, MAX_SAMPLES, Cell, CellKey, Condition, Settings, TaskSpec
from providers.secrets import masked_fields

MANIFEST = "manifest.json"
_FROM_OTHERS = ("server", "answered_by", "commands")
"""Fields that others filled: no key that a server says back is kept."""


@dataclass(slots=True)
class Manifest:
    """All that made a run; never a key."""

    model: str
    task: str
    task_version: int
    task_digest: str
    spec: dict[str, Any]
    settings: dict[str, Any]
    file: str = ""
    """The task's file, where it is the user's own."""
    server: dict[str, Any] = field(default_factory=dict)
    """What the provider says of the model behind it."""
    answered_by: list[str] = field(default_factory=list)
    """The model's names as its replies give them."""
    software: dict[str, str] = field(default_factory=dict)
    cells: list[Cell] = field(default_factory=list)
    """The plan: see `plan_cells`."""
    completed: list[Cell] = field(default_factory=list)
    """The largest cells that have a record for every sample, as far as was known when a command
    began; they stay in the plan."""
    fingerprint: str | None = None
    """Of the whole dataset, once every cell's is known."""
    commands: list[str] = field(default_factory=list)
    created: str = ""
    updated: str = ""

    def task_spec(self) -> TaskSpec:
        """The spec the run was made with."""
        return TaskSpec.model_validate(self.spec)

    def plan_cells(self, asked: Sequence[Cell]) -> None:
        """Adds what a command asks for to the plan.

        A command that asks for a part of the plan takes back the rest, but for what is complete.
        Answers to what is taken back stay in the journal, for a command that asks for them again.
        """
        before = {cell.key: cell for cell in self.cells}
        is_part = all(
            cell.key in before and cell.samples <= before[cell.key].samples for cell in asked
        )
        planned = {cell.key: cell for cell in (self.completed if is_part else self.cells)}
        for cell in asked:
            known = planned.get(cell.key)
            if known is None or known.samples < cell.samples:
                was = before.get(cell.key)
                planned[cell.key] = was if was and was.samples == cell.samples else cell
        self.cells = list(planned.values())
        self.fingerprint = _dataset_fingerprint(self.cells)

    def complete(self, cells: Iterable[Cell]) -> None:
        """Keeps `cells`, which have a record for every sample, in the plan from now on."""
        completed = {cell.key: cell for cell in self.completed}
        for cell in cells:
            known = completed.get(cell.key)
            if known is None or known.samples < cell.samples:
                completed[cell.key] = cell
        self.completed = list(completed.values())

    def fingerprint_cells(
        self, sums: Mapping[CellKey, int], samples: Mapping[CellKey, int]
    ) -> None:
        """Notes the fingerprints of planned cells: of those that have as many `samples`."""
        self.cells = [
            replace(cell, fingerprint=sums[cell.key])
            if samples.get(cell.key) == cell.samples
            else cell
            for cell in self.cells
        ]
        self.fingerprint = _dataset_fingerprint(self.cells)


def _dataset_fingerprint(cells: list[Cell]) -> str | None:
    if any(cell.fingerprint is None for cell in cells):
        return None
    said = sorted(
        f"{(cell.condition.label, cell.length)}|{cell.samples}|{cell.fingerprint:064x}"
        for cell in cells
    )
    return hashlib.sha256("\n".join(said).encode()).hexdigest()[:32]


def run_folder(out: Path, model: str, spec: TaskSpec, task: str, settings: Settings) -> Path:
    """Where a run lives: one folder for each model, task version and settings.

    Raises:
        JournalError: the task's name leads out of the folder of the runs.
    """
    made_by = orjson.dumps([spec.digest(), asdict(settings)])
    short = hashlib.sha256(made_by).hexdigest()[:8]
    parts = [quote(part, safe=" @+,=()[]~") or "%2F" for part in model.split("/")]
    parts = [part.replace(".", "%2E") if set(part) == {"."} else part for part in parts]
    runs = out / "runs"
    folder = runs / Path(*parts) / f"{task}@{spec.version}-{short}"
    if not Path(os.path.normpath(folder)).is_relative_to(os.path.normpath(runs)):
        raise JournalError(f"the run of task {task!r} would lie outside {runs}; rename its file")
    return folder


def _is_moment(text: str) -> str:
    if text:
        datetime.fromisoformat(text)
    return text


class _InFile(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _CellInFile(_InFile):
    condition: dict[str, str]
    length: Annotated[int, Field(ge=1, le=MAX_LENGTH)]
    samples: Annotated[int, Field(ge=0, le=MAX_SAMPLES)]
    sum: Annotated[str, Field(pattern=r"^[0-9a-f]{1,64}$")] | None

    def cell(self) -> Cell:
        fingerprint = None if self.sum is None else int(self.sum, 16)
        return Cell(Condition(self.condition), self.length, self.samples, fingerprint)


class _SettingsInFile(_InFile):
    seed: Annotated[int, Field(gt=-(2**63), lt=2**63)]
    temperature: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    max_tokens: PositiveInt | None
    api: Literal["chat", "completions"]
    system: str | None


class _ManifestInFile(_InFile):
    """What `manifest.json` holds."""

    model: Annotated[str, Field(min_length=1)]
    task: Annotated[str, Field(min_length=1)]
    task_version: PositiveInt
    task_digest: str
    spec: dict[str, JsonValue]
    settings: _SettingsInFile
    file: str = ""
    server: dict[str, JsonValue] = {}
    answered_by: list[str] = []
    software: dict[str, str] = {}
    cells: list[_CellInFile]
    completed: list[_CellInFile] = []
    fingerprint: str | None = None
    commands: list[str] = []
    created: Annotated[str, AfterValidator(_is_moment)] = ""
    updated: Annotated[str, AfterValidator(_is_moment)] = ""


def read_manifest(folder: Path) -> Manifest:
    """The manifest of the run in `folder`.

    Raises:
        JournalError: there is no run, or its manifest cannot be read; says which field is wrong.
    """
    path = folder / MANIFEST
    try:
        text = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        raise JournalError(f"no run in {folder}: it has no {MANIFEST}") from None
    except OSError as error:
        raise JournalError(f"{path} cannot be read: {error.strerror}") from error
    try:
        return _checked(_ManifestInFile.model_validate(exact_json.loads(text)))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        said = f"{where or 'top level'}: {first['msg'].lower()}"
    except ValueError as error:
        said = " ".join(str(error).split())
    raise JournalError(f"{path} cannot be read ({said}); move it away to start over")


def _checked(read: _ManifestInFile) -> Manifest:
    """`read` with what its fields must be to each other; raises `ValueError`."""
    try:
        axes = TaskSpec.model_validate(read.spec).axes
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(("spec", *map(str, first["loc"])))
        raise ValueError(f"{where}: {first['msg'].lower()}") from None
    cells, completed = ([one.cell() for one in given] for given in (read.cells, read.completed))
    for cell in (*cells, *completed):
        if list(cell.condition) != list(axes) or any(
            value not in axes[axis].values for axis, value in cell.condition.items()
        ):
            raise ValueError(f"cells: unknown condition {cell.condition.label!r}")
    if len({cell.key for cell in cells}) < len(cells):
        raise ValueError("cells: a cell is there twice")
    fields = {name: getattr(read, name) for name in _ManifestInFile.model_fields}
    return Manifest(
        **fields | {"settings": dict(read.settings), "cells": cells, "completed": completed}
    )


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Replaces the manifest in one step, so that a reader never sees half of one."""
    manifest.updated = datetime.now(UTC).isoformat(timespec="seconds")
    said = asdict(manifest)
    for name, cells in (("cells", manifest.cells), ("completed", manifest.completed)):
        said[name] = [
            {
                "condition": dict(cell.condition),
                "length": cell.length,
                "samples": cell.samples,
                "sum": None if cell.fingerprint is None else f"{cell.fingerprint:064x}",
            }
            for cell in cells
        ]
    content = exact_json.dumps(masked_fields(said, _FROM_OTHERS), indent=True)
    replace_file(folder / MANIFEST, content + b"\n", durable=True)
