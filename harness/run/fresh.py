"""The setting `fresh`: old runs move to `replaced/`, and back if the new run got no answer."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from eyechart.harness.errors import JournalError
from eyechart.harness.journal.record import Warn, read_records
from eyechart.harness.journal.writer import set_aside
from eyechart.harness.run.batch.pending import PENDING_FILE
from eyechart.harness.run.run_request import RunRequest


class OldRuns:
    """The old runs in the folders to which a command with `fresh` writes new ones."""

    def __init__(self, requests: Sequence[RunRequest], *, say: Warn, warn: Warn) -> None:
        self._requests = requests
        self._say = say
        self._warn = warn
        self.moved: list[tuple[RunRequest, Path]] = []
        """The runs that were moved, and their folders under `replaced/`."""

    @property
    def any(self) -> bool:
        return any(request.folder.exists() for request in self._requests)

    def move_away(self) -> None:
        """Moves the old runs to `replaced/`; raises `JournalError` if another command writes to one
        of them, or it cannot be moved.
        """
        for request in self._requests:
            if not request.folder.exists():
                continue
            if (request.folder / PENDING_FILE).exists():
                self._warn(
                    f"a batch of {request.folder} is still under way, and its answers are paid for"
                )
            replaced = set_aside(request.out, request.folder)
            self.moved.append((request, replaced))
            self._say(f"the old run is now {replaced}")
            log = replaced / request.server_log.name
            if log.exists():  # the command's own server already writes to it
                with suppress(OSError):
                    request.folder.mkdir(parents=True, exist_ok=True)
                    request.server_log.hardlink_to(log)

    def restore(self) -> set[Path]:
        """Moves back the old runs whose new run has no answer and no batch; returns the folders."""
        restored = set()
        for request, replaced in list(self.moved):
            if _has_answers(request.folder):
                continue
            try:
                if request.folder.exists():
                    set_aside(request.out, request.folder)
                replaced.rename(request.folder)
            except (JournalError, OSError) as error:
                self._warn(f"the old run stays in {replaced}: {error}")
                continue
            self._say(f"no sample was answered, so the old run is back: {request.folder}")
            self.moved.remove((request, replaced))
            restored.add(request.folder)
        return restored


def _has_answers(folder: Path) -> bool:
    """Whether a run has an answer or a batch, which were paid for."""
    records = read_records(folder)
    return (folder / PENDING_FILE).exists() or not all(record.is_error for record in records)
