"""Checks of arguments and options that are no settings of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import wraps
from inspect import signature
from numbers import Real
from typing import Any, ParamSpec, TypeVar

from eyechart.harness.analysis.curve import threshold_problem
from eyechart.harness.errors import UsageError
from eyechart.harness.settings.checks import Check, Lengths, full_text, shown
from eyechart.harness.settings.run_settings import SETTINGS
from eyechart.providers.close_match import did_you_mean
from eyechart.providers.naming import named

_BY_OPTION = {one.option.replace("-", "_"): one.name for one in SETTINGS.values()}
"""Option of the command line, as Python can spell it -> the argument."""
Given = ParamSpec("Given")
Result = TypeVar("Result")


def argument(name: str, given: object, check: Check) -> Any:
    """The argument as `check` returns it; raises `UsageError` if `check` refuses it."""
    try:
        return check(given)
    except ValueError as error:
        raise UsageError(f"{name} {error}", setting=name, value=given) from None


def knows_its_arguments(function: Callable[Given, Result]) -> Callable[Given, Result]:
    """The same function; where it is called with an unknown argument, the error says which one was
    probably meant: the one of the option with that name, or one that is spelled like it.
    """
    known = signature(function).parameters

    @wraps(function)
    def checked(*values: Given.args, **named: Given.kwargs) -> Result:
        for name in (name for name in named if name not in known):
            meant = _BY_OPTION.get(name, name)
            hint = did_you_mean(meant, known, f"help(eyechart.{function.__name__}) lists them")
            raise TypeError(f"{function.__name__}() has no argument {name!r}; {hint}")
        return function(*values, **named)

    return checked


def share(given: Any) -> float:
    if isinstance(given, Real) and not isinstance(given, bool):
        with suppress(OverflowError):
            return float(given)
    raise ValueError(f"must be a number, not {shown(given)}")


def texts_by_axis(given: Any) -> dict[str, str]:
    if not isinstance(given, Mapping):
        raise ValueError(f"must map axes to values, not {shown(given)}")  # noqa: TRY004
    return {argument("an axis", axis, full_text): full_text(one) for axis, one in given.items()}


def lengths_of(given: Any) -> tuple[int, ...]:
    """Checks the lengths of samples that are chosen; none is every length."""
    return () if given in ([], (), None) else Lengths()(given)


def read_margin(margin: float) -> float:
    """The difference of areas up to which two sides are equivalent; raises `UsageError` where no
    area can lie in it.
    """
    found: float = argument("margin", margin, share)
    if not 0 < found < 1:
        raise UsageError(f"margin must be a share of accuracy, above 0 and below 1, not {margin:g}")
    return found


def read_threshold(threshold: float) -> float:
    """The accuracy from which a length counts as seen.

    Raises:
        UsageError: no length can be estimated at `threshold`.
    """
    wanted: float = argument("threshold", threshold, share)
    if problem := threshold_problem(wanted):
        raise UsageError(f"{named('threshold')} {problem}")
    return wanted
