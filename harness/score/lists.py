"""Reads a list of items and compares it with another.

Commas separate the items, so an item has none, unless the task names another separator. Those of
Chinese and Japanese do so as well, unless the target has them. The line
after the answer phrase is the list; a line that ends with a comma goes on in the next. Where a
bullet or a number begins that line, each such line is an item. Brackets and braces around the list,
quotes and markup in pairs around an item, one full stop at the end, `and` or `or` after the last
separator, and a polite ending (`犬です`) are left out, unless the target has them. `and` may stand
in place of the last separator, if the target has the items on both sides. Items are compared as
texts: case counts, amounts of white space do not. If all items of the target are numbers, they are
compared as numbers.

A list is found as a text is, see `extraction`. Of a sentence that says what a list is, the list is
what follows `is` or `are`.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from .alternatives import changed_characters, changed_items
from .answer_type import AnswerType
from .choices import NEGATION
from .extraction import FIRST, SENTENCE_END, Extraction, from_start, text_alone
from .integers import MOST_DIGITS, FoundAnswer, decimal
from .markup import SOLID, readings, undress
from .normal_form import tidy
from .unspaced import POLITE_END
from .verdict import Verdict, compare_parts, ended, right_or_wrong

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence
    from random import Random

    from .answer_type import AnswerForm, Phrases, Targets, Wrong
    from .verdict import Target

_BULLET = re.compile(r"\s*+(?:[-+*\u2022\u00b7\u2023\u25e6]\s++|\(?\d{1,4}[.)]\s++)")
_LAST = re.compile(r"\A\s*+(?:and|or)\s++(?=\S)", re.IGNORECASE)
_DIGITS = re.compile(r"([-+]?)(\d++)(?:\.(\d++))?")
_PLAIN = re.compile(r"[^\W_](?:[\w ]*+(?<=[^\W_]))?")
_COMMA = ","
"""Between the items of a list, unless a task names another."""
_COMMAS = (",", "\uff0c", "\u3001")
_WIDE_COMMA = re.compile(r"\s*+[\uff0c\u3001]\s*+")


def _place_of(text: str, bare: str, start: int, end: int) -> tuple[int, int, bool]:
    """Where the list is in `text` from `start`, and whether a line follows it; `bare` is `text`
    without markup. Start and end are equal if there is none.
    """
    solid = SOLID.search(bare, start, end) or SOLID.search(text, start, end)
    if not solid:
        return start, start, False
    first = max(start, bare.rfind("\n", start, solid.start()) + 1)
    bulleted = bool(_BULLET.match(text, first, end))
    at = first
    while True:
        newline = bare.find("\n", at, end)
        if newline < 0:
            return first, end, False
        line = text[at:newline].rstrip().rstrip("*`")
        more = SOLID.search(bare, newline, end)
        if more is None:
            return first, newline, True
        following = bare.rfind("\n", newline, more.start()) + 1
        goes_on = _BULLET.match(text, following, end) if bulleted else line.endswith(_COMMAS)
        if not goes_on:
            return first, newline, True
        at = following


def _items_of(text: str, start: int, end: int, form: AnswerForm) -> list[str]:
    """The items of a reply as they are written, between bullets or the separator."""
    if _BULLET.match(text, start, end):
        lines = text[start:end].splitlines()
        items = [line[bullet.end() if (bullet := _BULLET.match(line)) else 0 :] for line in lines]
    else:
        items = _parts(text[start:end], form)
    items = [tidy(item.rstrip().rstrip("".join(_COMMAS))) for item in items]
    return items[:-1] if len(items) > 1 and not items[-1] else items


def _without_and(items: list[str]) -> list[str]:
    return [*items[:-1], _LAST.sub("", items[-1], count=1)] if len(items) > 1 else items


def _plain(item: str, known: Collection[str] = ()) -> str:
    """An item without quotes and markup around it, or as one of `known` has it."""
    if not item or item in known or _PLAIN.fullmatch(item):
        return item
    words = [words for words, *_ in readings(item, undress(item, 0, len(item)))]
    return next((one for one in words if one in known), words[-1] if words else item)


def _separator(form: AnswerForm) -> str:
    return form.item_separator or _COMMA


def _parts(text: str, form: AnswerForm) -> list[str]:
    separator = _separator(form)
    return text.split(separator if separator.strip() else None)


def _joint(form: AnswerForm) -> str:
    """What stands between the items of an answer."""
    return f"{_separator(form).strip()} "


def _items(text: str, form: AnswerForm) -> list[str]:
    """The items of a target, as they are written."""
    return list(map(tidy, _parts(text, form)))


def _as_numbers(*both: list[str]) -> list[list[str]]:
    """Lists of items, in which equal numbers are equal texts, if all items of the last are numbers;
    else as they are.
    """
    values = [[_number(item) for item in items] for items in both]
    if None in values[-1]:
        return list(both)
    return [
        [item if value is None else str(value) for item, value in zip(items, found, strict=True)]
        for items, found in zip(both, values, strict=True)
    ]


def _number(item: str) -> str | None:
    """The number that an item is, in one way of writing; `None` if it is none."""
    item = item.replace("\u2212", "-")
    if not (parts := _DIGITS.fullmatch(item)):
        found = decimal(item, own_line=False)
        if isinstance(found, str) or item[found.start : found.end] != item:
            return None
        parts = _DIGITS.fullmatch(repr(found.value))
    if not parts or len(item) > MOST_DIGITS:
        return None
    sign, whole, fraction = parts.groups("")
    number = f"{int(whole)}.{fraction}".rstrip("0").rstrip(".")
    return f"-{number}" if sign == "-" and number != "0" else number


def _shared(left: list[str], right: list[str]) -> int:
    """The number of items in both lists, whatever their order."""
    return (Counter(left) & Counter(right)).total()


_STATED = re.compile(
    r"\s*+(?:the|its|their|it|they)\b(?>[^\n,]*\b(?:is|are)\b)"
    r"\s*+:?\s*+(?P<list>[^\s:][^\n]*+)\s*+\Z",
    re.IGNORECASE,
)
"""A sentence that states a list, such as "The value of key AB is 12.". An item may hold `is`."""


def _list_answer(text: str, bare: str, phrases: Phrases, form: AnswerForm) -> Extraction:
    """The list after the phrase, or in a reply without one."""
    for _, phrase_end in reversed(phrases):
        start, end, whole = _place_of(text, bare, phrase_end, len(bare))
        if start < end:
            start += len(text[start:end]) - len(text[start:end].lstrip())
            if (stated := _STATED.match(text, start, end)) and "\n" not in bare[start:end]:
                start, end = stated.span("list")
            found = _list_of(text, (start, end), text[:phrase_end], form)
            if found.value:
                return replace(found, by_phrase=True, whole=whole)
    if phrases:
        return Extraction(None, why="nothing after the answer phrase")
    start, end = text_alone(text)
    if stated := _STATED.match(text, start, end):
        is_more = SENTENCE_END.search(bare.rstrip(), start, end)
        is_denied = NEGATION.search(bare, start, stated.start("list"))
        start, end = (end, end) if is_more or is_denied else stated.span("list")
    elif bare[start:end].rstrip().endswith(":"):
        start = end
    if start == end:
        return Extraction(None, why="no answer phrase, and more than the list")
    return _list_of(text, (start, end), "", form)


def _list_of(text: str, place: tuple[int, int], opened: str, form: AnswerForm) -> Extraction:
    """The list at a place of `text`, and what it is with the markup around it and its items."""
    layers = undress(text, *place, opened)
    if not layers:
        return Extraction(None, why="nothing after the answer phrase")
    as_written = [_items_of(text, *layer, form) for layer in layers]
    dressed = tuple(
        FoundAnswer(_joint(form).join(items), *layer)
        for items, layer in zip(as_written, layers, strict=True)
    )
    items = map(_plain, _without_and(as_written[-1]))
    return Extraction(_joint(form).join(items), *layers[-1], dressed=dressed)


class List(AnswerType):
    """See the module's docstring."""

    name = "list"
    meaning = "items between commas"
    target = "list of texts"
    right = "has the same items"
    fields = ("ordered", "item_separator")
    free = True
    signs = True
    in_prompt = True

    def value(self, given: Target | Sequence[str], form: AnswerForm) -> Target:
        if isinstance(given, int | float | str):
            return given
        return _joint(form).join(given)

    def problem(self, target: object, form: AnswerForm, name: str = "target") -> str | None:
        separator = _separator(form)
        mark = "a comma" if separator == _COMMA else f"the separator {separator!r}"
        items = _items(target, form) if isinstance(target, str) else target
        if not isinstance(items, list | tuple) or not all(isinstance(item, str) for item in items):
            return self.unfit(target, f"a list of texts, or one text with {mark} between", name)
        for item in items:
            if not item.strip():
                return f"an item of the {name} is empty text, which no reply can show"
            if "\n" in item or (separator if separator.strip() else " ") in item:
                return f"the item {item!r} has {mark} or a line break, which separates items"
        return None if items else f"the {name} is an empty list, which no reply can show"

    def extract(
        self, form: AnswerForm, text: str, bare: str, phrases: Phrases, *, first_line: bool
    ) -> Extraction:
        places = from_start(phrases) if form.read == FIRST else phrases
        return _list_answer(text, bare, places, form)

    def compare(self, read: Extraction, reply: str, targets: Targets, form: AnswerForm) -> Verdict:
        target = _items(str(targets[0]), form)
        said = [FoundAnswer(str(read.value), read.start, read.end), *reversed(read.dressed)]
        if _separator(form) == _COMMA and _WIDE_COMMA.search(str(read.value)):
            said += [
                one._replace(value=_WIDE_COMMA.sub(_joint(form), str(one.value))) for one in said
            ]
        verdicts = [_verdict_on_items(one, target, form) for one in said]
        return max(verdicts, key=lambda verdict: verdict.similarity or 0)

    def right_forms(self, target: Target, form: AnswerForm) -> Iterator[tuple[str, str]]:
        items = _items(str(target), form)
        if not any('"' in item for item in items):
            quoted = _joint(form).join(f'"{item}"' for item in items)
            yield "brackets and quotes", f"[{quoted}]"
        yield "bullets", "".join(f"\n- {item}" for item in items)
        if form.ordered is False:
            yield "other order", _joint(form).join(reversed(items))

    def wrong(self, target: Target, form: AnswerForm, accept: Sequence[str]) -> Wrong:
        items = _items(str(target), form)
        if len(items) > 1:
            yield "one item short", _joint(form).join(items[:-1]), None
        yield "one item long", _joint(form).join([*items, items[-1]]), None
        turned = items[::-1]
        if form.ordered is not False and turned != items:
            yield "other order", _joint(form).join(turned), None

    def wrong_options(
        self, target: Target, rng: Random, form: AnswerForm, *_given: object
    ) -> Iterable[str]:
        items = _items(str(target), form)
        if len(set(items)) == 1:
            return changed_characters(str(target), rng)
        return (_joint(form).join(changed) for changed in changed_items(items, rng))

    def meant(self, option: str, form: AnswerForm) -> Target:
        return _joint(form).join(_items(option, form))


def _as_known(items: list[str], known: set[str]) -> list[str]:
    """Items without what is around them and the last of them, unless `known` has it."""
    if _plain(items[-1], known) not in known:
        items = _without_and(items)
        last = POLITE_END.sub("", items[-1])
        parts = [_plain(part, known) for part in last.rsplit(" and ", 1)]
        if known.issuperset(parts):
            items = [*items[:-1], *parts]
    return [_plain(item, known) for item in items]


def _verdict_on_items(said: FoundAnswer, target: Sequence[str], form: AnswerForm) -> Verdict:
    text = str(said.value)
    known = set(target)
    written = _as_known(text.split(_joint(form)), known)
    items, right = _as_numbers(written, list(target))
    if form.ordered is not False:
        return compare_parts(text, items, right, said.start, said.end)
    both, longer = _shared(items, right), max(len(items), len(right))
    return Verdict(
        right_or_wrong(right=both == longer),
        text,
        said.start,
        said.end,
        similarity=both / longer,
        ended=ended(items, right),
    )
