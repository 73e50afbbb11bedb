"""The scorer of a task that judges replies itself: `scorer: file.py:function`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeAlias

from eyechart.harness.errors import TaskError
from eyechart.harness.score.outcomes import JUDGED, Outcome
from eyechart.harness.spec import Item
from eyechart.harness.task.functions import ItemError, load_function
from eyechart.providers.plugins.contract import described

ScorerResult: TypeAlias = str | tuple[str, str]
"""What a task's own scorer returns: `correct`, `incorrect` or `unparsed`, or a pair of that and the
reason."""
Scorer: TypeAlias = Callable[[str, Item], tuple[Outcome, str]]
"""Reply and item -> outcome and reason."""
_ARGUMENTS = 2
_loaded: set[tuple[Path, str]] = set()


@cache
def load_scorer(task_file: Path, reference: str) -> Scorer:
    """Loads the scorer in `reference`, which is `file.py:function` relative to `task_file`.

    The scorer raises `TaskError` if the function raises an error or returns no valid outcome.

    Raises:
        ItemError: the file or function is missing, its import fails, or its parameters do not fit.
    """
    path, function = load_function(task_file, reference, "scorer")
    _loaded.add((task_file, reference))
    try:
        inspect.signature(function).bind(reply="", item="")
    except TypeError:
        raise ItemError(f"{reference} must take (reply, item) and nothing else") from None

    return _OwnScorer(task_file, reference, path, function)


@dataclass(frozen=True)
class _OwnScorer:
    """The function of a task's author, whose results are checked. A pickle of it has no code: it is
    loaded again from its file.
    """

    task_file: Path
    reference: str
    path: Path
    function: Callable[..., object]

    def __call__(self, reply: str, item: Item) -> tuple[Outcome, str]:
        try:
            returned = self.function(reply=reply, item=item)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # code of the task's author, which may raise anything
            raise TaskError(
                f"the scorer {self.reference} raised {described(error, self.path)} for the target "
                f"{item.target!r}"
            ) from error
        return _checked(returned, self.reference)

    def __reduce__(self) -> tuple[Callable[..., Scorer], tuple[Path, str]]:
        return load_scorer, (self.task_file, self.reference)


def is_loaded(task_file: Path, reference: str) -> bool:
    """Whether this process has already loaded this scorer, because the user named its task."""
    return (task_file, reference) in _loaded


def _checked(returned: object, reference: str) -> tuple[Outcome, str]:
    pair = returned if isinstance(returned, tuple) else (returned, "")
    if len(pair) == _ARGUMENTS and isinstance(pair[1], str):
        outcome = next((name for name in JUDGED if name == pair[0]), None)
        if outcome is not None:
            return Outcome.named(outcome), " ".join(pair[1].split())
    *names, last = map(repr, JUDGED)
    raise TaskError(
        f"the scorer {reference} returned {returned!r}; return {', '.join(names)} or {last}, or a "
        "pair of one of them and a reason"
    )
