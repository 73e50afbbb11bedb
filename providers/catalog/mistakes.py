"""Messages about mistakes in a user's table: the place, and what is allowed there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import yaml
from pydantic import BaseModel, TypeAdapter, ValidationError

from eyechart.providers.close_match import did_you_mean

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

_KEY = "[key]"
"""What pydantic appends to the place of a name that is wrong itself."""
_DEMANDS = {
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "float_parsing": "a number",
    "float_type": "a number",
    "int_parsing": "a whole number",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "string_type": "a text; put it in quotes if it looks like a number",
    "tuple_type": "a list, as [seed]",
}
"""Pydantic's types of mistakes -> what the value must be."""


def mistake_of(error: ValidationError, entry: type[BaseModel], root: yaml.Node | None) -> str:
    """`3: entry 'gpt-4o': field 'window' must be …`: the first mistake in a table of entries, with
    its line, and how many others there are.
    """
    # a misspelt field is also a missing one
    details = sorted(
        error.errors(include_url=False), key=lambda detail: detail["type"] == "missing"
    )
    others = f" (and {len(details) - 1} more)" if len(details) > 1 else ""
    return f"{_line(root, details[0]['loc'])}: {_said(details[0], entry)}{others}"


def syntax_mistake(error: yaml.MarkedYAMLError) -> str:
    """`:3:5: not YAML: …`, for a text that is not YAML."""
    mark = error.problem_mark or error.context_mark
    place = f":{mark.line + 1}:{mark.column + 1}" if mark else ""
    return (
        f"{place}: not YAML: {error.problem or error.context}; is a quote or bracket missing, or a "
        "text with ': ' not quoted?"
    )


def _line(node: yaml.Node | None, place: Sequence[str | int]) -> int:
    """The line of the key at a place, or of the nearest one around it."""
    line = 1
    for part in place:
        pairs = node.value if isinstance(node, yaml.MappingNode) else []
        found = next((pair for pair in pairs if pair[0].value == str(part)), None)
        if found is None:
            break
        line, node = found[0].start_mark.line + 1, found[1]
    return line


def _said(detail: ErrorDetails, entry: type[BaseModel]) -> str:
    kind = detail["type"]
    name, *path = [str(part) for part in detail["loc"]] or [""]
    if not name:
        return "the file must be names with their fields, as 'name: {field: value}'"
    if kind == "value_error":
        where = f"entry {name!r}: " + (f"field {'.'.join(path)!r}: " if path else "")
        return f"{where}{detail['ctx']['error']}"  # without the value, which may be a key
    if not path:
        return f"entry {name!r} must have fields: {', '.join(entry.model_fields)}"
    if path == [_KEY]:
        return f"entry {name!r} must have a text as its name; put it in quotes"
    where = f"entry {name!r}: field {'.'.join(path)!r}"
    if kind == "extra_forbidden":
        known = _fields(entry, path[:-1])
        return f"{where} is unknown; {did_you_mean(path[-1], known)}"
    if kind == "missing":
        return f"{where} is missing"
    if path[-1] == _KEY:
        where = f"entry {name!r}: name {path[-2]!r} in field {'.'.join(path[:-2])!r}"
    return f"{where} must be {_demand(detail)}"


def _demand(detail: ErrorDetails) -> str:
    """What the value must be."""
    kind, context = detail["type"], detail.get("ctx") or {}
    if "gt" in context:
        return f"a number above {context['gt']:g}"
    if "ge" in context:
        return f"a number from {context['ge']:g} on"
    if "le" in context:
        return f"a number of at most {context['le']:g}"
    if kind.startswith("date"):
        return "a date, as 2026-01-31"
    if kind.startswith(("model", "dict", "mapping")):
        return "fields with values, as {field: value}"
    return _DEMANDS.get(kind) or detail["msg"]


def _fields(entry: type[BaseModel], path: Sequence[str]) -> list[str]:
    schema: Any = TypeAdapter(entry).json_schema()
    parts = schema.get("$defs", {})
    for name in path:
        known = schema.get("properties", {}).get(name) or schema.get("additionalProperties", {})
        choices = [known, *known.get("anyOf", ())]
        link = next((one["$ref"] for one in choices if "$ref" in one), "")
        schema = parts.get(link.rpartition("/")[2], known)
    return list(schema.get("properties", {}))
