"""Checks of the arguments of a call from Python that are no settings of a run."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from numbers import Real
from typing import Any

from eyechart.harness.errors import UsageError
from eyechart.harness.settings.checks import Check, Lengths, full_text, shown


def argument(name: str, given: object, check: Check) -> Any:
    """The argument as the check returns it; raises `UsageError` where it cannot be."""
    try:
        return check(given)
    except ValueError as error:
        raise UsageError(f"{name} {error}", setting=name, value=given) from None


def share(given: Any) -> float:
    """Checks a number."""
    if isinstance(given, Real) and not isinstance(given, bool):
        with suppress(OverflowError):
            return float(given)
    raise ValueError(f"must be a number, not {shown(given)}")


def texts_by_axis(given: Any) -> dict[str, str]:
    """Checks a mapping of axes to one value each."""
    if not isinstance(given, Mapping):
        raise ValueError(f"must map axes to values, not {shown(given)}")  # noqa: TRY004
    return {argument("an axis", axis, full_text): full_text(one) for axis, one in given.items()}


def lengths_of(given: Any) -> tuple[int, ...]:
    """Checks the lengths of samples that are chosen; none is every length."""
    return () if given in ([], (), None) else Lengths()(given)
