"""Checks of arguments that are no settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any, ParamSpec, TypeVar, get_args, get_type_hints

from eyechart.harness.errors import UsageError
from eyechart.harness.settings.checks import Check, Lengths, full_text, shown
from eyechart.harness.settings.judging import JUDGING
from eyechart.harness.settings.spelling import ALL
from eyechart.providers.close_match import did_you_mean

_BY_OPTION = {one.option.replace("-", "_"): one.name for one in ALL.values()}
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
    mine = _with_judging(function)
    known = mine.parameters

    @wraps(function)
    def checked(*values: Given.args, **named: Given.kwargs) -> Result:
        for name in (name for name in named if name not in known):
            meant = _BY_OPTION.get(name, name)
            hint = did_you_mean(meant, known, f"help(eyechart.{function.__name__}) lists them")
            raise TypeError(f"{function.__name__}() has no argument {name!r}; {hint}")
        return function(*values, **named)

    checked.__signature__ = mine  # type: ignore[attr-defined]
    return checked


def _with_judging(function: Callable[..., Any]) -> Signature:
    """What a function takes, for its help: a `TypedDict` of settings of judging in full, each with
    its default.
    """
    mine = signature(function)
    *others, last = mine.parameters.values()
    if last.kind is not Parameter.VAR_KEYWORD:
        return mine
    (types,) = get_args(get_type_hints(function)[last.name])
    judging = [
        last.replace(
            name=name,
            kind=Parameter.KEYWORD_ONLY,
            default=JUDGING[name].default,
            annotation=one.__forward_arg__,
        )
        for name, one in types.__annotations__.items()
    ]
    return mine.replace(parameters=[*others, *judging])


def texts_by_axis(given: Any) -> dict[str, str]:
    if not isinstance(given, Mapping):
        raise ValueError(f"must map axes to values, not {shown(given)}")  # noqa: TRY004
    return {argument("an axis", axis, full_text): full_text(one) for axis, one in given.items()}


def lengths_of(given: Any) -> tuple[int, ...]:
    """Checks the lengths of samples that are chosen; none is every length."""
    return () if given in ([], (), None) else Lengths()(given)
