"""Parsers for numbers on the command line."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress

import typer

from eyechart.harness.settings.checks import Bound, number_of, shown


def whole(least: int, most: int | None = None) -> Callable[[str | int], int]:
    """The parser of an option whose value is a whole number within these bounds."""
    bound = Bound(least, most)

    def parse(given: str | int) -> int:
        try:
            return int(bound(number_of(given)))
        except ValueError as error:
            raise typer.BadParameter(f"it {error}") from None

    return parse


def wholes(least: int) -> Callable[[str | int], tuple[int, ...]]:
    """The parser of an option whose value is one whole number or several, with commas between."""
    one = whole(least)

    def parse(given: str | int) -> tuple[int, ...]:
        return tuple(dict.fromkeys(one(part.strip()) for part in str(given).split(",")))

    return parse


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
