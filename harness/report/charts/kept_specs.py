"""Specs of charts, which are made once for equal arguments: Altair takes milliseconds for each."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from copy import deepcopy
from functools import lru_cache, wraps
from typing import ParamSpec

from eyechart.harness.report.charts.looks import Spec

_MOST_KEPT = 64
"""Specs of each kind of chart that are kept."""
_Given = ParamSpec("_Given")


def kept(chart: Callable[_Given, Spec]) -> Callable[_Given, Spec]:
    """`chart`, whose specs are kept; each caller has a copy of its own. Sections of a page with the
    same lengths and conditions have equal specs. Its arguments are hashable, or sequences of such.
    """
    once = lru_cache(maxsize=_MOST_KEPT)(chart)

    @wraps(chart)
    def made(*args: _Given.args, **more: _Given.kwargs) -> Spec:
        named = {name: _hashable(value) for name, value in more.items()}
        return deepcopy(once(*map(_hashable, args), **named))

    return made


def _hashable(value: object) -> Hashable:
    return tuple(value) if isinstance(value, list) else value
