"""Reads the runs that a verb names; one that cannot be read does not stop the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from eyechart.harness.cli.terminal import warn
from eyechart.harness.errors import JournalError

if TYPE_CHECKING:
    from eyechart.harness.analysis.judged_run import JudgedRun

S = TypeVar("S")
T = TypeVar("T")


def each_readable(folders: Iterable[S], read: Callable[[S], T], unread: list[str]) -> Iterator[T]:
    """What `read` gives for each folder.

    Problems of folders that cannot be read are added to `unread`, and at the end all of them are
    printed.

    Raises:
        JournalError: nothing can be read; it has a line for each problem.
    """
    is_any = False
    for folder in folders:
        try:
            one = read(folder)
        except JournalError as error:
            unread += error.lines
            continue
        is_any = True
        yield one
    if unread and not is_any:
        raise JournalError(*dict.fromkeys(unread))
    for problem in dict.fromkeys(unread):
        warn(f"left out: {problem}")


@dataclass(frozen=True, slots=True)
class Reading:
    """How a verb reads and judges runs, by its options."""

    threshold: float
    tasks: str
    """The user's own task files, as `--task` names them."""
    run_kept_code: bool

    def run(self, folder: Path) -> JudgedRun:
        """The judged run in `folder`; raises `JournalError` if it cannot be read."""
        from eyechart.harness.analysis.judged_run import read_run

        return read_run(folder, warn, tasks=self.tasks, run_kept_code=self.run_kept_code)

    def runs(self, folders: Iterable[Path], unread: list[str]) -> Iterator[JudgedRun]:
        """See `each_readable`."""
        return each_readable(folders, self.run, unread)
