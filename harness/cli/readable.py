"""The runs in several folders, where one that cannot be read takes none of the others with it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from eyechart.harness.cli.terminal import warn
from eyechart.harness.errors import JournalError

S = TypeVar("S")
T = TypeVar("T")


def each_readable(folders: Iterable[S], read: Callable[[S], T], unread: list[str]) -> Iterator[T]:
    """What `read` gives for each folder. What cannot be read is left out: its problem is added to
    `unread`, and at the end all problems there are said.

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
