"""What is wrong in a file that pydantic has read: which key, and what its value must be."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from eyechart.harness.spec.task_file import NAME_FORM
from eyechart.providers.close_match import did_you_mean

if TYPE_CHECKING:
    from pydantic import ValidationError
    from pydantic_core import ErrorDetails

UNKNOWN_KEY = ("extra_forbidden", "unexpected_keyword_argument")
"""Pydantic's types of a key that a mapping cannot have: of a model, of a dataclass."""
_DEMANDS = {
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "dataclass_type": "must be a mapping",
    "dict_type": "must be a mapping",
    "finite_number": "must be a finite number",
    "float_parsing": "must be a number",
    "float_type": "must be a number",
    "int_from_float": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_type": "must be a whole number",
    "list_type": "must be a list",
    "model_type": "must be a mapping",
    "string_type": "must be text (quote it if it looks like a number)",
    "tuple_type": "must be a list",
}
_BOUNDS = {
    "greater_than": "must be greater than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le:,}",
    "string_too_long": "must have at most {max_length} characters",
}
_FUNCTION = "must be 'file.py:function'"
_FORMS = {
    "generator": _FUNCTION,
    "scorer": _FUNCTION,
    "items": "must be a .jsonl file",
    "name": "must be lower case letters, digits, - and _, and begin with a letter or digit",
    "unit": "must be one word or several, of lower case letters: symbols, tokens, words, …",
}
"""The patterns of fields that users write, in words."""


def first_mistake(error: ValidationError, data: object, *around: str) -> str:
    """The first mistake in `data`, with its place: `settings.seed: must be …`. `around` are the
    keys of a file under which `data` stands.
    """
    # a misspelt key is also a missing one
    detail = min(error.errors(include_url=False), key=lambda one: one["type"] == "missing")
    place = [*around, *_place(detail["loc"], data)]
    if detail["type"] in UNKNOWN_KEY:
        place.pop()
    return f"{'.'.join(map(str, place)) or 'the file'}: {mistake_of(detail, place)}"


def mistake_of(
    detail: ErrorDetails, place: Sequence[str | int], known: Sequence[str] | None = None
) -> str:
    """One mistake, without its place: `missing key 'title'`, `must be text, not 5`. `place` has the
    parts of pydantic's path that are in the file: it adds others, such as members of a union.
    `known` are the keys of the mapping that has an unknown one.
    """
    kind, path, given = detail["type"], detail["loc"], detail["input"]
    if kind in UNKNOWN_KEY:
        remedy = "" if known is None else f"; {did_you_mean(str(path[-1]), known)}"
        return f"unknown key {path[-1]!r}{remedy}"
    if kind == "missing":
        return f"missing key {path[-1]!r}"
    if path[-1:] == ("[key]",):
        form = _demand(detail) if kind in _BOUNDS else f"must be {NAME_FORM}"
        return f"name {given!r} {form}"
    demand = "must be text, a number, true/false or a separator mapping"
    if "text" not in path[len(place) :]:
        demand = _demand(detail)
    is_whole = kind in ("setting", "too_short") or demand.endswith("empty")
    is_whole |= kind == "value_error" and isinstance(given, dict)
    return demand if is_whole else f"{demand}, not {_show(given)}"


def least_items(detail: ErrorDetails) -> int:
    """The fewest items of a list that is too short."""
    least: int = (detail.get("ctx") or {}).get("min_length", 1)
    return least


def _place(path: Sequence[Any], data: Any) -> Iterator[str | int]:
    for part in path:
        keys: Any = range(len(data)) if isinstance(data, list) else data
        if isinstance(data, list | dict) and part in keys:
            data = data[part]
            yield part


def _demand(detail: ErrorDetails) -> str:
    """What pydantic requires, in the terms of a task file."""
    kind, context, name = detail["type"], detail.get("ctx") or {}, (detail["loc"] or ("",))[-1]
    if kind in _DEMANDS:
        return _DEMANDS[kind]
    if kind == "too_short":
        least = least_items(detail)
        return f"needs at least {least} {name}" if least > 1 else "must not be empty"
    if kind in _BOUNDS:
        return _BOUNDS[kind].format(**context)
    if kind == "string_too_short" and detail["input"]:
        return f"must have at least {context.get('min_length')} characters"
    if kind == "literal_error":
        values = str(context.get("expected")).replace(" or ", ", ").replace("False", "false")
        return f"must be {'one of ' if ', ' in values else ''}{values}"
    if kind == "string_pattern_mismatch":
        if not str(detail["input"]).strip():
            return "must not be empty"
        return _FORMS.get(str(name), "must have the form in which a run writes it")
    if kind == "string_too_short":
        return "must not be empty"
    if kind == "value_error":
        return str(context.get("error"))
    return re.sub(r"^\w+ should", "must", detail["msg"])


def _show(given: object) -> str:
    """A value as it is written in a task file, shortened."""
    if given is None:
        return "null"
    shown = repr(given).lower() if isinstance(given, bool) else repr(given)
    return shown if len(shown) <= 60 else f"{shown[:57]}…"  # noqa: PLR2004  # a line's worth
