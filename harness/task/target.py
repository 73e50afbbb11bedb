"""Checks an item's target, its other answers and its metadata."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping

from eyechart.harness.spec import Item
from eyechart.harness.spec.answer import TYPES, Answer

_METADATA_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_WITH_ACCEPT = [kind.name for kind in TYPES.values() if kind.accepts]


def answer_problem(item: Item, answer: Answer) -> str | None:
    """What is wrong with the answers or the metadata of `item`; `None` if nothing is."""
    return (
        answer.kind.problem(item.target, answer)
        or _accept_problem(item.accept, answer)
        or _metadata_problem(item.metadata)
    )


def _accept_problem(accept: object, answer: Answer) -> str | None:
    if not isinstance(accept, list | tuple):
        return f"accept is a list of texts, not {accept!r}"
    if accept and not answer.kind.accepts:
        return f"accept goes with {', '.join(_WITH_ACCEPT)}, not with 'answer: {answer.type}'"
    problems = (answer.kind.problem(text, answer, "accepted answer") for text in accept)
    return next(filter(None, problems), None)


def _metadata_problem(metadata: object) -> str | None:
    if not isinstance(metadata, Mapping):
        return f"metadata is a mapping of names to texts or numbers, not {metadata!r}"
    return next(_metadata_problems(metadata), None)


def _metadata_problems(metadata: Mapping[object, object]) -> Iterator[str]:
    for name, value in metadata.items():
        if not isinstance(name, str) or not _METADATA_NAME.fullmatch(name):
            yield f"metadata name {name!r} must be lower case letters, digits and _, at most 40"
        elif not isinstance(value, str | int | float) or isinstance(value, bool):
            yield f"metadata {name!r} must be a text or a number, not {value!r}"
        elif isinstance(value, float) and not math.isfinite(value):
            yield f"metadata {name!r} is not a finite number"
