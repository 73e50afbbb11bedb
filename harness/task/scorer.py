"""The scorer of a task that judges replies itself: `scorer: file.py:function`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TypeAlias, get_args

from eyechart.harness.answer import ScoredAs, Target
from eyechart.harness.errors import TaskError
from eyechart.harness.task.functions import ItemError, describe, load_function

Scorer: TypeAlias = Callable[[str, Target], tuple[ScoredAs, str]]
"""Reply and target -> outcome and reason."""
_OUTCOMES = get_args(ScoredAs)
_ARGUMENTS = 2
_loaded: set[tuple[Path, str]] = set()


@cache
def load_scorer(task_file: Path, reference: str) -> Scorer:
    """Loads the scorer that `reference`, `file.py:function` relative to `task_file`, names.

    The scorer raises `TaskError` where the function raises or returns what is no outcome.

    Raises:
        ItemError: the file or function is missing, its import fails, or its parameters do not fit.
    """
    path, function = load_function(task_file, reference, "scorer")
    _loaded.add((task_file, reference))
    try:
        inspect.signature(function).bind("", "")
    except TypeError:
        raise ItemError(f"{reference} must take (reply, target) and nothing else") from None

    def score(reply: str, target: Target) -> tuple[ScoredAs, str]:
        try:
            returned = function(reply, target)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # code of the task's author, which may raise anything
            raise TaskError(
                f"the scorer {reference} raised {describe(error, path)} for the target {target!r}"
            ) from error
        return _checked(returned, reference)

    return score


def is_loaded(task_file: Path, reference: str) -> bool:
    """Whether this process has loaded that scorer, because the user named its task."""
    return (task_file, reference) in _loaded


def _checked(returned: object, reference: str) -> tuple[ScoredAs, str]:
    pair = returned if isinstance(returned, tuple) else (returned, "")
    if len(pair) == _ARGUMENTS and isinstance(pair[1], str):
        for outcome in _OUTCOMES:
            if pair[0] == outcome:
                return outcome, " ".join(pair[1].split())
    raise TaskError(
        f"the scorer {reference} returned {returned!r}; return 'correct', 'incorrect' or "
        "'unparsed', or a pair of one of them and a reason"
    )
