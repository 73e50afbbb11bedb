"""The mistakes in a YAML file of a task or a study, each with its place and a remedy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias, TypeVar

from pydantic import ValidationError

from eyechart.harness.errors import UsageError
from eyechart.harness.spec.file_mistakes import UNKNOWN_KEY, least_items, mistake_of
from eyechart.harness.task.source import Position, Problem, YamlFile

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
        path, kind = detail["loc"], detail["type"]
        if kind == "too_short" and len(detail["input"]) >= least_items(detail):
            continue  # pydantic does not count the items that are wrong, which have errors too
        place = tuple(file.real_path(path))
        is_key = kind in UNKNOWN_KEY or path[-1:] == ("[key]",)
        message = mistake_of(detail, place, fields_at(path[:-1]))
        if kind == "missing":
            message += f" in {'.'.join(map(str, place))!r}" if place else ""
        elif not is_key:
            name = next((str(part) for part in reversed(place) if isinstance(part, str)), "")
            message = f"{name}: {message}"
        position = file.position(path, of_key=is_key)
        problems[path if is_key or kind == "missing" else place] = Problem(position, message)
    return list(problems.values())
