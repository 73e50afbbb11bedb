"""The mistakes in a YAML file of a task or a study, each with its place and a remedy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from pydantic import ValidationError

from eyechart.harness.errors import UsageError
from eyechart.harness.spec.task_file import NAME_FORM
from eyechart.harness.task.source import Position, Problem, YamlFile
from eyechart.providers.close_match import did_you_mean

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

_Error = TypeVar("_Error", bound=UsageError)
FieldsAt: TypeAlias = Callable[[Sequence[str | int]], list[str]]


def read_text(path: Path, kind: type[UsageError]) -> str:
    """The text of a file; raises `kind` if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        before = path.read_bytes()[: error.start]
        place = Position(before.count(b"\n") + 1, len(before) - before.rfind(b"\n"))
        problem = Problem(place, "not UTF-8; save the file as UTF-8")
        raise file_error(path, [problem], kind) from None
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        problem = Problem(Position(1, 1), f"cannot be read: {reason}")
        raise file_error(path, [problem], kind) from None


def file_error(path: Path, problems: Sequence[Problem], kind: type[_Error]) -> _Error:
    """An error that lists all mistakes by their place in the file."""
    by_place = sorted(dict.fromkeys(problems), key=lambda one: (one.file or "", one.position))
    return kind(
        *(
            f"{one.file or path}:{one.position.line}:{one.position.column}: {one.message}"
            for one in by_place
        )
    )


def problems_of(file: YamlFile, error: ValidationError, fields_at: FieldsAt) -> list[Problem]:
    """One problem for each place; pydantic gives one for each member of a union. `fields_at` gives
    the names of the keys that are allowed in the mapping at a path.
    """
    problems: dict[tuple[str | int, ...], Problem] = {}
    for detail in error.errors(include_url=False):
        path = detail["loc"]
        if detail["type"] == "too_short" and len(detail["input"]) >= _least(detail):
            continue  # pydantic does not count the items that are wrong, which have errors too
        place = tuple(file.real_path(path))
        if detail["type"] == "extra_forbidden":
            remedy = did_you_mean(str(path[-1]), fields_at(path[:-1]))
            position = file.position(path, of_key=True)
            problems[path] = Problem(position, f"unknown key {path[-1]!r}; {remedy}")
        elif detail["type"] == "missing":
            inside = f" in {'.'.join(map(str, place))!r}" if place else ""
            problems[path] = Problem(file.position(place), f"missing key {path[-1]!r}{inside}")
        elif path[-1:] == ("[key]",):
            position = file.position(path, of_key=True)
            problems[path] = Problem(position, f"name {detail['input']!r} {_name_demand(detail)}")
        else:
            name = next((str(part) for part in reversed(place) if isinstance(part, str)), "")
            demand = "must be text, a number, true/false or a separator mapping"
            if "text" not in path[len(place) :]:
                demand = _demand(detail)
            is_whole = detail["type"] in ("setting", "too_short") or demand.endswith("empty")
            is_whole |= detail["type"] == "value_error" and isinstance(detail["input"], dict)
            shown = "" if is_whole else f", not {_show(detail['input'])}"
            problems[place] = Problem(file.position(place), f"{name}: {demand}{shown}")
    return list(problems.values())


def _name_demand(detail: ErrorDetails) -> str:
    if detail["type"] == "string_too_long":
        return f"must have at most {detail.get('ctx', {}).get('max_length')} characters"
    return f"must be {NAME_FORM}"


_DEMANDS = {
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "string_type": "must be text (quote it if it looks like a number)",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
    "dict_type": "must be a mapping",
    "model_type": "must be a mapping",
    "finite_number": "must be a finite number",
}


_BOUNDS = {
    "greater_than": "must be greater than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le:,}",
}


def _least(detail: ErrorDetails) -> int:
    """The fewest items of a list that is too short."""
    least: int = (detail.get("ctx") or {}).get("min_length", 1)
    return least


def _demand(detail: ErrorDetails) -> str:
    """What pydantic requires, in the terms of a task file."""
    kind, context = detail["type"], detail.get("ctx") or {}
    name = detail["loc"][-1]
    function = "must be 'file.py:function'"
    patterns = {
        "generator": function,
        "scorer": function,
        "items": "must be a .jsonl file",
        "name": "must be lower case letters, digits, - and _, and begin with a letter or digit",
        "unit": "must be one word or several, of lower case letters: symbols, tokens, words, …",
    }
    if kind in _DEMANDS:
        return _DEMANDS[kind]
    if kind == "too_short":
        least = _least(detail)
        return f"needs at least {least} {name}" if least > 1 else "must not be empty"
    if kind in _BOUNDS:
        return _BOUNDS[kind].format(**context)
    if kind == "string_too_short" and detail["input"]:
        return f"must have at least {context.get('min_length')} characters"
    if kind == "literal_error":
        return f"must be one of {str(context.get('expected')).replace(' or ', ', ')}"
    if kind == "string_pattern_mismatch":
        if not str(detail["input"]).strip():
            return "must not be empty"
        return patterns.get(str(name), f"must match {context.get('pattern')}")
    if kind == "string_too_short":
        return "must not be empty"
    if kind == "value_error":
        return str(context.get("error"))
    return detail["msg"].removeprefix("Input ").replace("should", "must")


def _show(given: object) -> str:
    """A value as it is written in a task file, shortened."""
    if given is None:
        return "null"
    shown = repr(given).lower() if isinstance(given, bool) else repr(given)
    return shown if len(shown) <= 60 else f"{shown[:57]}…"  # noqa: PLR2004  # a line's worth
