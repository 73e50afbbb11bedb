"""Checks of the numbers that a call from Python has; the command line has parsers for its own."""

from __future__ import annotations

import math
from collections.abc import Iterable
from numbers import Integral, Real
from typing import overload

from harness.errors import UsageError


@overload
def whole(name: str, given: int, least: int | None = None, most: int | None = None) -> int: ...
@overload
def whole(
    name: str, given: int | None, least: int | None = None, most: int | None = None
) -> int | None: ...
def whole(
    name: str, given: int | None, least: int | None = None, most: int | None = None
) -> int | None:
    """The argument as an `int`; raises `UsageError` where it is no whole number in these bounds."""
    if given is None:
        return None
    is_whole = isinstance(given, Integral) and not isinstance(given, bool)
    if not is_whole or (least is not None and given < least) or (most is not None and given > most):
        span = "" if least is None else f" from {least} on"
        span = span if most is None else f" from {least} to {most:,}"
        raise UsageError(f"{name} must be a whole number{span}, not {given!r}")
    return int(given)


@overload
def number(name: str, given: float) -> float: ...
@overload
def number(name: str, given: float | None) -> float | None: ...
def number(name: str, given: float | None) -> float | None:
    """The argument as a `float`; raises `UsageError` where it is no finite number."""
    if given is None:
        return None
    if not isinstance(given, Real) or isinstance(given, bool) or not math.isfinite(given):
        raise UsageError(f"{name} must be a number, not {given!r}")
    return float(given)


def whole_numbers(name: str, given: Iterable[int] | None) -> list[int] | None:
    """The argument as a list of `int`; raises `UsageError` if it is empty or has other values."""
    if given is None:
        return None
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise UsageError(f"{name} must be a list of whole numbers, not {given!r}")
    if numbers := [whole(name, one) for one in given]:
        return numbers
    raise UsageError(f"{name} is empty; leave it out for those of the task")
