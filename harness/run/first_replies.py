"""The first replies of a run decide whether the rest is asked and paid for."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Self, TypeAlias

from eyechart.harness.journal.record import Record
from eyechart.harness.run.run_request import RunRequest
from eyechart.providers.base import StopRunError
from eyechart.providers.naming import turned_on
from eyechart.providers.secrets import redact

_EACH, _ALL = 3, 6
"""Samples of each condition, and of all conditions together, at least."""


def first_count(conditions: int) -> int:
    """How many samples of each condition's shortest line are asked first."""
    return max(_EACH, math.ceil(_ALL / max(1, conditions)))


@dataclass(frozen=True, slots=True)
class FirstVerdict:
    """What the first replies of a run show."""

    stop: tuple[str, ...] = ()
    """Why the rest is not asked, in lines: the cause, some replies, and the remedy. Empty if the
    run goes on."""
    asks_again: bool = False
    """Whether the same command asks these samples again, since they have no reply."""
    warning: str = ""
    """What the user should know although the run goes on."""


FirstCheck: TypeAlias = Callable[[RunRequest, Sequence[Record]], FirstVerdict]
"""Judges the first replies of a run."""


class FirstStops:
    """The runs of a command that their first replies stopped, while others go on."""

    def __init__(self) -> None:
        self._stopped: list[tuple[str, FirstRepliesError]] = []

    @contextmanager
    def of(self, name: str) -> Iterator[None]:
        """Keeps such an error of the run of the task `name`."""
        try:
            yield
        except FirstRepliesError as error:
            error.lines = (f"{name}: {error.lines[0]}", *error.lines[1:])
            self._stopped.append((name, error))

    @property
    def names(self) -> Collection[str]:
        """The tasks of these runs."""
        return [name for name, _ in self._stopped]

    @property
    def without_reply(self) -> bool:
        """Whether the first samples of such a run got no reply at all."""
        return any(error.asks_again for _, error in self._stopped)

    def end(self) -> None:
        """Raises such an error; of several, one whose first line names all tasks."""
        errors = [error for _, error in self._stopped]
        if len(errors) == 1:
            raise errors[0]
        if errors:
            first = f"the first replies stopped {len(errors)} tasks: {', '.join(self.names)}"
            raise FirstRepliesError(
                [first, *(line for error in errors for line in error.lines)],
                asks_again=all(error.asks_again for error in errors),
            )


class FirstRepliesError(StopRunError):
    """None of the first replies can be used, so the rest of the run was not asked."""

    @classmethod
    def again(cls, why: str) -> Self:
        """The error of a command that is given again after an earlier one was stopped."""
        line = (
            f"an earlier command stopped the run: {why}; {turned_on('keep_going')} asks the rest, "
            f"{turned_on('fresh')} starts over"
        )
        return cls([line])

    def __init__(self, lines: Sequence[str], *, asks_again: bool = False) -> None:
        """`lines` are the cause, some replies, and the remedy; `asks_again`: see `FirstVerdict`."""
        super().__init__("; ".join(lines))
        self.lines = tuple(map(redact, lines))
        self.asks_again = asks_again
