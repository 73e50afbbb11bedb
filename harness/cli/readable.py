"""Reads the runs that a verb names; one that cannot be read does not stop the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TypeVar

from eyechart.harness.analysis.samples.judged_run import JudgedRun, read_run
from eyechart.harness.cli.terminal import warn
from eyechart.harness.errors import JournalError
from eyechart.harness.settings.judging import JudgeSettings

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


def readable_runs(
    folders: Iterable[Path], judging: JudgeSettings, unread: list[str]
) -> Iterator[JudgedRun]:
    """The judged runs, see `each_readable`."""
    return each_readable(folders, lambda folder: read_run(folder, warn, judging), unread)
