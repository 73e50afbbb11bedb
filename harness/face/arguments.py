"""Checks of the arguments of a call from Python; the command line has parsers for its own."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from inspect import signature
from numbers import Integral, Real
from pathlib import Path
from typing import Any, overload

from eyechart.harness.bounds import BOUNDS, shown
from eyechart.harness.errors import EyechartError, UsageError
from eyechart.harness.plan.selection import check_text
from eyechart.providers.base import ProviderError

_OPTIONS = {
    "axis": "axes",
    "intervene": "intervention",
    "model-arg": "model_args",
    "vllm-arg": "server_args",
}
"""Option of the command line -> the argument in Python, if its name is another one."""
_EXAMPLE = "{'separator': 'comma'}"


def in_python(text: str, call: Callable[..., object]) -> str:
    """A message in which the arguments of `call` replace options of the command line. A switch is
    shown with its value, as it is written in Python.
    """
    known = signature(call).parameters

    def argument(option: re.Match[str]) -> str:
        name = _OPTIONS.get(option[1], option[1].replace("-", "_"))
        if name not in known:
            return option[0]
        return f"{name}=True" if isinstance(known[name].default, bool) else name

    return re.sub(r"--([a-z]+(?:-[a-z]+)*)", argument, text)


@contextmanager
def naming_arguments(call: Callable[..., object]) -> Iterator[None]:
    """Makes errors name the arguments of `call` instead of options of the command line."""
    try:
        yield
    except EyechartError as error:
        error.lines = [in_python(line, call) for line in error.lines]
        error.args = ("\n".join(error.lines),)
        raise
    except ProviderError as error:
        error.args = (in_python(str(error), call),)
        raise


@overload
def whole(name: str, given: int) -> int: ...
@overload
def whole(name: str, given: int | None) -> int | None: ...
def whole(name: str, given: int | None) -> int | None:
    """The argument as an `int`; raises `UsageError` if no run can have it."""
    if given is None:
        return None
    if problem := BOUNDS[name].problem(given):
        raise UsageError(f"{name} {problem}")
    return int(given)


@overload
def number(name: str, given: float) -> float: ...
@overload
def number(name: str, given: float | None) -> float | None: ...
def number(name: str, given: float | None) -> float | None:
    """The argument as a `float`; raises `UsageError` if no run can have it."""
    if given is None:
        return None
    if problem := BOUNDS[name].problem(given):
        raise UsageError(f"{name} {problem}")
    return float(given)


def share(name: str, given: float) -> float:
    """The argument as a `float`; raises `UsageError` if it is no number."""
    if isinstance(given, Real) and not isinstance(given, bool):
        with suppress(OverflowError):
            return float(given)
    raise UsageError(f"{name} must be a number, not {shown(given)}")


def whole_numbers(name: str, given: Iterable[int] | None) -> list[int] | None:
    """The argument as a list of `int`; raises `UsageError` if it is empty or has other values."""
    if given is None:
        return None
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise UsageError(f"{name} must be a list of whole numbers, not {shown(given)}")
    if numbers := [whole(name, _present(name, one)) for one in given]:
        return numbers
    raise UsageError(f"{name} is empty; leave it out for those of the task")


def _present(name: str, given: Any) -> Any:
    if given is None:
        raise UsageError(f"{name} has None among its values; leave it out")
    return given


def switch(name: str, given: object) -> bool:
    """The argument as a `bool`; raises `UsageError` if it is none."""
    if not isinstance(given, bool):
        raise UsageError(f"{name} must be True or False, not {shown(given)}")
    return given


@overload
def text(name: str, given: str) -> str: ...
@overload
def text(name: str, given: str | None) -> str | None: ...
def text(name: str, given: str | None) -> str | None:
    """The argument; raises `UsageError` if it is no text or cannot be encoded in UTF-8."""
    if given is not None:
        if not isinstance(given, str):
            raise UsageError(f"{name} must be a text, not {shown(given)}")
        check_text(name, given)
    return given


def required(name: str, given: str) -> str:
    """The argument; raises `UsageError` if it is no text or is empty."""
    if not isinstance(given, str) or not given.strip():
        raise UsageError(f"{name} must be a text that is not empty, not {shown(given)}")
    return text(name, given)


def texts(name: str, given: str | Sequence[str]) -> list[str]:
    """The argument, one text or several, as a list; raises `UsageError` for others."""
    if isinstance(given, str):
        given = [given]
    if isinstance(given, bytes | Mapping) or not isinstance(given, Iterable):
        raise UsageError(f"{name} must be a text or a list of texts, not {shown(given)}")
    return [required(name, one) for one in given]


def path(name: str, given: str | Path) -> Path:
    """The argument as a path; raises `UsageError` for a value that names no file or folder."""
    if not isinstance(given, str | os.PathLike) or not str(given):
        raise UsageError(f"{name} must be a path, not {shown(given)}; '.' is this folder")
    if "\0" in str(given):
        raise UsageError(f"{name} {shown(str(given))} has a NUL character, which no path has")
    try:
        os.fsencode(given)
    except UnicodeEncodeError:
        raise UsageError(f"{name} {shown(str(given))} is not UTF-8; write it in UTF-8") from None
    return Path(given)


def values_of(name: str, given: Mapping[str, str | Sequence[str]] | None) -> dict[str, list[str]]:
    """Axis -> its values; raises `UsageError` for a value that is no mapping to names of values."""
    values = {axis: texts(f"{name}[{axis!r}]", one) for axis, one in _by_axis(name, given)}
    if empty := [axis for axis, wanted in values.items() if not wanted]:
        raise UsageError(f"{name} has no value of {empty[0]!r}; 'all' is every value")
    return values


def texts_by_axis(name: str, given: Mapping[str, str] | None) -> dict[str, str]:
    """Axis -> its value; raises `UsageError` for a value that is no mapping to names of values."""
    return {axis: required(f"{name}[{axis!r}]", one) for axis, one in _by_axis(name, given)}


def _by_axis(name: str, given: Mapping[str, Any] | None) -> Iterator[tuple[str, Any]]:
    if given is not None and not isinstance(given, Mapping):
        raise UsageError(f"{name} must map axes to values, as {_EXAMPLE}, not {shown(given)}")
    for axis, value in (given or {}).items():
        yield required(f"an axis of {name}", axis), value


def lengths_of(given: Any) -> list[int]:
    """The lengths of the chosen samples; raises `UsageError` for a value that is no length."""
    if isinstance(given, Integral):
        given = [given]
    if isinstance(given, Sequence) and not given:
        return []
    return whole_numbers("lengths", given) or []
