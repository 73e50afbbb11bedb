"""Numbers of the command line, and what is said of what is none."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress

import typer


def whole(least: int | None = None, most: int | None = None) -> Callable[[str | int], int]:
    """The parser of an option whose value is a whole number within these bounds."""

    def parse(given: str | int) -> int:
        value: int | None = None
        with suppress(ValueError):
            value = int(given)
        if (
            value is None
            or (least is not None and value < least)
            or (most is not None and value > most)
        ):
            raise typer.BadParameter(
                f"it must be a whole number{_range(least, most)}, not {given!r}"
            )
        return value

    return parse


def number(least: float | None = None) -> Callable[[str | float], float]:
    """The parser of an option whose value is a finite number that is not below `least`."""

    def parse(given: str | float) -> float:
        value = math.nan
        with suppress(ValueError):
            value = float(given)
        if not math.isfinite(value) or (least is not None and value < least):
            raise typer.BadParameter(f"it must be a number{_range(least)}, not {given!r}")
        return value

    return parse


def _range(least: float | None, most: float | None = None) -> str:
    """` from 1 on`, ` from 1 to 10,000`; empty where there is no bound."""
    if least is None:
        return ""
    return f" from {least:,} on" if most is None else f" from {least:,} to {most:,}"
