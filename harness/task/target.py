"""Checks an item's target, its other answers and its metadata."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping

from eyechart.harness.answer import Answer
from eyechart.harness.spec import MAX_DIGITS, Item, is_too_long
from eyechart.providers.close_match import did_you_mean

_METADATA_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_WITH_ACCEPT = ("symbol", "text", "choice")


def answer_problem(item: Item, answer: Answer) -> str | None:
    """What is wrong with the answers or the metadata of `item`; `None` if nothing is."""
    return (
        _target_problem(item.target, answer)
        or _accept_problem(item.accept, answer)
        or _metadata_problem(item.metadata)
    )


def _target_problem(target: object, answer: Answer) -> str | None:
    match answer.type:
        case "integer":
            return _integer_problem(target)
        case "number":
            return _number_problem(target)
        case "list":
            return _list_problem(target)
        case _:
            return _text_problem("target", target, answer)


def _unfit(target: object, answer: str, wanted: str) -> str:
    return f"the target {target!r} does not fit 'answer: {answer}'; give {wanted}"


def _integer_problem(target: object) -> str | None:
    if not isinstance(target, int) or isinstance(target, bool):
        return _unfit(target, "integer", "a whole number")
    if is_too_long(target):
        return f"the target has more than {MAX_DIGITS:,} digits; 'answer: text' takes longer ones"
    return None


def _number_problem(target: object) -> str | None:
    if not isinstance(target, int | float) or isinstance(target, bool):
        return _unfit(target, "number", "a number")
    try:
        finite = math.isfinite(target)
    except OverflowError:
        finite = False
    return None if finite else "the target is not a finite number of at most 308 digits"


def _list_problem(target: object) -> str | None:
    items = target
    if isinstance(target, str):
        items = target.split(",")
    if not isinstance(items, list | tuple) or not all(isinstance(item, str) for item in items):
        return _unfit(target, "list", "a list of texts, or one text with commas")
    for item in items:
        if not item.strip():
            return "an item of the target is empty text, which no reply can show"
        if "," in item or "\n" in item:
            return f"the item {item!r} has a comma or a line break, which separates items"
    return None if items else "the target is an empty list, which no reply can show"


def _text_problem(name: str, text: object, answer: Answer) -> str | None:
    if not isinstance(text, str):
        return _unfit(text, answer.type, "a text").replace("target", name, 1)
    if not text.strip():
        return f"the {name} is empty text, which no reply can show"
    if answer.type == "choice" and text not in (answer.options or ()):
        remedy = did_you_mean(text, answer.options or (), f"they are {_joined(answer)}")
        return f"the {name} {text!r} is none of the options; {remedy}"
    return None


def _joined(answer: Answer) -> str:
    return ", ".join(map(repr, answer.options or ()))


def _accept_problem(accept: object, answer: Answer) -> str | None:
    if not isinstance(accept, list | tuple):
        return f"accept is a list of texts, not {accept!r}"
    if accept and answer.type not in _WITH_ACCEPT:
        return f"accept goes with {', '.join(_WITH_ACCEPT)}, not with 'answer: {answer.type}'"
    problems = (_text_problem("accepted answer", text, answer) for text in accept)
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
