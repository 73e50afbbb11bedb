"""Lists the runs under a folder, with how many samples each has."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from eyechart.harness.errors import JournalError
from eyechart.harness.journal.answers import answered
from eyechart.harness.journal.manifest import find_runs, read_manifest
from eyechart.harness.journal.record import Warn
from eyechart.harness.spec import line_start


@dataclass(frozen=True)
class ListedRun:
    model: str
    task: str
    task_version: int
    settings: dict[str, Any]
    recorded: bool
    """Whether the replies were recorded elsewhere."""
    answered: int
    """Planned samples with an answer, and planned samples that are known not to fit the window."""
    planned: int
    updated: str
    """When its manifest was last changed, in UTC."""
    folder: Path

    def row(self) -> dict[str, Any]:
        """The fields, with the folder as text."""
        return asdict(self) | {"folder": str(self.folder)}


def list_runs(out: Path, warn: Warn) -> Iterator[ListedRun]:
    """The runs under `out`, by folder; `warn` is called for each that cannot be read."""
    for folder in find_runs(out):
        try:
            yield _listed(folder, warn)
        except JournalError as error:
            warn(error.lines[0])


def _listed(folder: Path, warn: Warn) -> ListedRun:
    manifest = read_manifest(folder)
    start = line_start(manifest.settings.seed, manifest.task)
    index = answered(folder, warn, (cell.line for cell in manifest.cells), start)
    return ListedRun(
        model=manifest.model,
        task=manifest.task,
        task_version=manifest.task_version,
        settings=manifest.settings.given(),
        recorded=manifest.recorded is not None,
        answered=sum(map(index.done_in, manifest.cells)),
        planned=sum(cell.samples * cell.draws for cell in manifest.cells),
        updated=manifest.updated,
        folder=folder,
    )
