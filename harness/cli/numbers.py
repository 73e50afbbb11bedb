"""Parsers for numbers on the command line."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

import typer

from eyechart.harness.bounds import BOUNDS, Bound, shown


def whole(least: int, most: int | None = None) -> Callable[[str | int], int]:
    """A parser for whole numbers within these bounds."""
    return _parser(int, Bound(least, most))


def whole_of(option: str) -> Callable[[str | int], int]:
    """A parser for whole numbers that a run can have."""
    return _parser(int, BOUNDS[option])


def number_of(option: str) -> Callable[[str | float], float]:
    """A parser for numbers that a run can have."""
    return _parser(float, BOUNDS[option])


def number() -> Callable[[str | float], float]:
    """A parser for finite numbers."""

    def parse(given: str | float) -> float:
        value = math.nan
        with suppress(ValueError):
            value = float(given)
        if not math.isfinite(value):
            raise typer.BadParameter(f"it must be a number, not {shown(given)}")
        return value

    return parse


_Number = TypeVar("_Number", int, float)


def _parser(kind: Callable[[Any], _Number], bound: Bound) -> Callable[[Any], _Number]:
    def parse(given: Any) -> _Number:
        with suppress(ValueError):
            value = kind(given)
            if bound.allows(value):
                return value
        raise typer.BadParameter(f"it {bound.demand}, not {shown(given)}")

    return parse
