"""`--fresh`: the old runs of a command make way for new ones once somebody answers, and come back
where the new ones got no answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from harness.cli.terminal import say, warn
from harness.errors import JournalError
from harness.journal.record import read_records
from harness.journal.writer import set_aside
from harness.run.batch.pending import STATE
from harness.run.open_run import Wanted


class OldRuns:
    """Those that are in the place of what a command wants."""

    def __init__(self, wanted: Sequence[Wanted], log: str) -> None:
        """`log` is the file to which a server of the command's own writes already."""
        self._wanted = wanted
        self._log = log
        self.moved: list[tuple[Wanted, Path]] = []
        """And where they are now."""

    @property
    def any(self) -> bool:
        """Whether there are some."""
        return any(one.folder.exists() for one in self._wanted)

    def make_way(self) -> None:
        """Moves them to `replaced/`.

        Raises:
            JournalError: one is being written, or cannot be moved.
        """
        for one in self._wanted:
            if not one.folder.exists():
                continue
            if (one.folder / STATE).exists():
                warn(f"a batch of {one.folder} goes on, and its answers are paid for")
            place = set_aside(one.out, one.folder)
            self.moved.append((one, place))
            say(f"the old run is now {place}")
            if (place / self._log).exists():
                with suppress(OSError):
                    one.folder.mkdir(parents=True, exist_ok=True)
                    (one.folder / self._log).hardlink_to(place / self._log)

    def come_back(self) -> set[Path]:
        """Puts those back whose new run has no answer and no batch; says so, and returns their
        folders.
        """
        back = set()
        for one, place in list(self.moved):
            if _has_begun(one.folder):
                continue
            try:
                if one.folder.exists():
                    set_aside(one.out, one.folder)
                place.rename(one.folder)
            except (JournalError, OSError) as error:
                warn(f"the old run stays in {place}: {error}")
                continue
            say(f"no sample was answered, so the old run is back: {one.folder}")
            self.moved.remove((one, place))
            back.add(one.folder)
        return back


def _has_begun(folder: Path) -> bool:
    """Whether a run has what is paid for."""
    records = read_records(folder)
    return (folder / STATE).exists() or not all(record.is_error for record in records)
