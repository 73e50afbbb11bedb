r"""Extracts the answer from a reply, if the reply gives it unambiguously.

Thinking blocks are removed first. Then the last occurrence of the answer phrase decides; an earlier
one does so only if no number (or symbol) follows the later ones. The answer is read from the rest
of the phrase's line, or from the first line with text below it. Without the phrase it is read from
the last line. If nothing follows the phrase, a last line that is nothing but an answer counts.

`integers` defines what an integer and a number are, `choices` what a choice is, `lists` what a list
is. A list is found as a text is.

A symbol is the line's only token; else its only quoted token; else its only single letter or digit
other than the words a, A and I. Quotes, markup and a full stop around it are ignored.

A text is all that follows the phrase, without the markup and quotes around it and without one full
stop at its end. Without the phrase it is the last line if that is entirely quoted, boxed or fenced,
or a reply of one paragraph.

Markup is replaced by as many spaces, so that positions in the reply do not change. All of this
takes time linear in the length of the reply: no pattern here backtracks.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING

from . import lists
from .choices import choice
from .integers import (
    BULLETS,
    MOST_FOUND,
    NOTHING,
    SMALL,
    WORDS,
    Found,
    decimal,
    in_a_row,
    integer,
    is_denied,
)
from .markup import (
    BRACKETS,
    QUOTES,
    SOLID,
    THIN,
    peel,
    phrase_pattern,
    without_markup,
    without_thoughts,
)

if TYPE_CHECKING:
    from .answer import AnswerForm


@dataclass(frozen=True, slots=True)
class Extracted:
    """The answer in a reply, and where it stands."""

    value: int | float | str | None
    """`None`: unparsed."""
    start: int = 0
    end: int = 0
    """The answer is `reply[start:end]`; 0, 0 if there is none."""
    by_phrase: bool = False
    """Whether it follows the answer phrase."""
    whole: bool = False
    """Whether the text after it shows that it is complete, even if the reply was cut off. Of a
    `text` or `list` answer: whether its first line is."""
    why: str = ""
    """Reason if it is unparsed."""


_TOKEN_ALONE = re.compile(r"[^\s\"'`,;()\[\]]{0,31}[^\s\"'`,;()\[\].!?:=]|\S")
_ANSWER_IS = re.compile(r"\banswer(?:\s++is\b|:):?", re.IGNORECASE)
_QUOTED = re.compile(r"(?<!\w)([\"'\u00ab])([^\s\"'\u00ab\u00bb]{1,32})[\"'\u00bb](?!\w)")
_LETTER = re.compile(r"(?<![\w'.-])()([^\W_])(?![\w'-]|\.\w)")


def _symbol(line: str, marked: str) -> Found | str:
    """The symbol on a line, or why there is none; `marked` has quotes for backticks and braces."""
    leads = [0, *(lead.end() for lead in _ANSWER_IS.finditer(line))][-2:]
    bullets = BULLETS.match(line)
    for lead in (bullets.end() if bullets else 0, *leads):
        start, end = peel(line, lead, len(line), QUOTES | BRACKETS)
        if _TOKEN_ALONE.fullmatch(line, start, end):
            token = line[start:end]
            digit = token.lower() in SMALL[:10]
            return Found(str(WORDS[token.lower()]) if digit else token, start, end)
    symbols: list[Found] = []
    for pattern, excluded in ((_QUOTED, ()), (_LETTER, ("a", "A", "I"))):
        symbols = symbols or [
            Found(match[2], *match.span(2))
            for match in islice(pattern.finditer(marked), MOST_FOUND + 1)
            if match[2] not in excluded
        ]
    problems = (
        (not symbols, NOTHING["symbol"]),
        (len({symbol.value for symbol in symbols}) > 1, "two different symbols"),
        (len(symbols) > MOST_FOUND or in_a_row(line, symbols), "a row of symbols"),
        (any(is_denied(line, symbol.start) for symbol in symbols), "not the symbol that it is"),
        (line.rstrip().endswith("?"), "a question"),
    )
    return next((why for holds, why in problems if holds), "") or symbols[0]


_VOID = " \n:=-\u2013\u2014.>|\u2026_" + THIN
_INK = re.compile(rf"[^\s{re.escape(_VOID)}]")
_MARK = re.compile("[`{}]")
_CLOSING = frozenset('*`$}"\u201d)]!;<|\u3002')


def _read_line(form: AnswerForm, text: str, bare: str, start: int, end: int) -> Found | str:
    line = bare[start:end]
    own_line = start == 0 or bare[start - 1] == "\n"
    answer: Found | str
    match form.type:
        case "integer":
            answer = integer(line, own_line=own_line)
        case "number":
            answer = decimal(line, own_line=own_line)
        case _:
            answer = _symbol(line, _marked(text[start:end], line))
    return answer if isinstance(answer, str) else _moved(answer, start)


def _marked(text: str, line: str) -> str:
    """`line` with a quote where `text`, which is as long, has a backtick or a brace."""
    if not _MARK.search(text):
        return line
    pairs = zip(text, line, strict=True)
    return "".join('"' if mark in "`{}" else sign for mark, sign in pairs)


def _moved(answer: Found, start: int) -> Found:
    return answer._replace(start=answer.start + start, end=answer.end + start)


def _read(
    form: AnswerForm, text: str, bare: str, start: int, end: int, *, by_phrase: bool
) -> Found | str:
    """The short answer between `start` and `end`, or why there is none."""
    if form.type != "choice":
        return _read_line(form, text, bare, start, end)
    answer = choice(bare[start:end], form, own_line=not by_phrase)
    return answer if isinstance(answer, str) else _moved(answer, start)


def _line_around(bare: str, place: int, start: int, end: int) -> tuple[int, int]:
    newline = bare.find("\n", place, end)
    return max(start, bare.rfind("\n", start, place) + 1), end if newline < 0 else newline


def _is_whole(text: str, bare: str, end: int) -> bool:
    after, behind = text[end : end + 1], text[end + 1 : end + 2]
    stopped = after == "." and (behind.isspace() or behind in _CLOSING)
    return "\n" in bare[end:] or after in _CLOSING or stopped


def _short_answer(
    form: AnswerForm, text: str, bare: str, phrases: list[tuple[int, int]]
) -> Extracted:
    kind, end = form.type, len(bare)
    why = f"{NOTHING[kind]} on the last line"
    for phrase_start, phrase_end in reversed(phrases):
        if ink := _INK.search(bare, phrase_end, end):
            place = _line_around(bare, ink.start(), phrase_end, end)
            answer = _read(form, text, bare, *place, by_phrase=True)
            if not isinstance(answer, str):
                return Extracted(*answer, by_phrase=True, whole=_is_whole(text, bare, answer.end))
            why = f"{answer} after the answer phrase"
            if answer != NOTHING[kind]:
                return Extracted(None, why=why)
        end = phrase_start
    last = len(bare.rstrip(_VOID)) - 1
    start, end = _line_around(bare, max(0, last), 0, len(bare))
    answer = _read(form, text, bare, start, end, by_phrase=False)
    if isinstance(answer, str):
        return Extracted(None, why=why if phrases else f"{answer} on the last line")
    if phrases and peel(bare, start, end, QUOTES) != (answer.start, answer.end):
        return Extracted(None, why=why)
    return Extracted(*answer, whole=_is_whole(text, bare, answer.end))


def tidy(text: str) -> str:
    """A target text as `extract` would return it, for a fair comparison."""
    return _tidied(text, without_markup(text), 0, len(text))[0]


def _tidied(text: str, bare: str, start: int, end: int) -> tuple[str, int, int]:
    start, end = peel(bare, start, end, QUOTES)
    words = text[start:end].split()
    return " ".join(word.strip("*`") or word for word in words), start, end


def tidy_items(text: str) -> list[str]:
    """The items of a target list as `extract` would return them."""
    return lists.items_of(text, without_markup(text), 0, len(text))


def _text_answer(
    text: str, bare: str, phrases: list[tuple[int, int]], *, first_line: bool
) -> Extracted:
    end = len(bare)
    for phrase_start, phrase_end in reversed(phrases):
        if solid := SOLID.search(bare, phrase_end, end):
            newline = bare.find("\n", solid.start(), end)
            until = newline if first_line and newline >= 0 else end
            answer = _tidied(text, bare, phrase_end, until)
            return Extracted(*answer, by_phrase=True, whole=newline >= 0)
        end = phrase_start
    if phrases:
        return Extracted(None, why="nothing after the answer phrase")
    start, end = _text_alone(text, bare)
    if start == end:
        return Extracted(None, why="no answer phrase, and more than the text")
    return Extracted(*_tidied(text, bare, start, end))


def _list_answer(text: str, bare: str, phrases: list[tuple[int, int]]) -> Extracted:
    for _, phrase_end in reversed(phrases):
        start, end, whole = lists.place_of(text, bare, phrase_end, len(bare))
        if start < end:
            start += len(text[start:end]) - len(text[start:end].lstrip())
            items = lists.items_of(text, bare, start, end)
            return Extracted(lists.SEPARATOR.join(items), start, end, by_phrase=True, whole=whole)
    if phrases:
        return Extracted(None, why="nothing after the answer phrase")
    start, end = _text_alone(text, bare)
    if start == end:
        return Extracted(None, why="no answer phrase, and more than the list")
    return Extracted(lists.SEPARATOR.join(lists.items_of(text, bare, start, end)), start, end)


def _text_alone(text: str, bare: str) -> tuple[int, int]:
    """Start and end of a text without an answer phrase; equal if the text is ambiguous."""
    solid = text.rstrip()
    if solid.endswith("```") and (opening := solid.rfind("```", 0, -3)) >= 0:
        line_end = solid.find("\n", opening, len(solid) - 3)
        return (line_end if line_end >= 0 else opening), len(solid)
    start, end = _line_around(bare, len(bare.rstrip()) - 1, 0, len(bare))
    inner_start, inner_end = peel(bare, start, end, QUOTES)
    outer = text[start:end].strip()
    wrapped = outer[0] in "\"'\u201c\u2018*`$\\_" and inner_start > start + text[start:end].find(
        outer
    )
    if wrapped and inner_end < start + len(text[start:end].rstrip()):
        inner = text[inner_start:inner_end]
        if not any(mark in inner for mark in "*`$"):
            return start, end
    lines = solid.lstrip().split("\n")
    if all(line.strip() for line in lines) and (
        len(lines) == 1 or not lines[0].rstrip().endswith(":")
    ):
        return 0, len(bare)
    return 0, 0


@lru_cache(maxsize=64)
def _plain_pattern(kind: str, phrase: str) -> re.Pattern[str] | None:
    if kind not in ("integer", "symbol") or not re.fullmatch(r"[A-Za-z]+(?: [A-Za-z]+)*:", phrase):
        return None
    answer = r"0|[1-9][0-9]{0,17}" if kind == "integer" else r"[A-Za-z0-9]"
    return re.compile(rf"{phrase} ({answer})\.?(\n?)")


def _extract_plain(reply: str, answer: AnswerForm) -> Extracted | None:
    """The result of `_extract_any`, if the last line is only the phrase and a short answer."""
    pattern = _plain_pattern(answer.type, answer.phrase)
    begin = reply.rfind(answer.phrase) if pattern else -1
    if not pattern or begin < 0 or (begin and reply[begin - 1] != "\n"):
        return None
    match = pattern.fullmatch(reply, begin)
    if not match or without_thoughts(reply) != reply:
        return None
    start, end = match.span(1)
    value = int(match[1]) if answer.type == "integer" else match[1]
    return Extracted(value, start, end, by_phrase=True, whole=bool(match[2]))


def extract(reply: str, answer: AnswerForm, *, first_line: bool = False) -> Extracted:
    """The answer in `reply`, by the rules in the module's docstring. Never raises.

    With `first_line` a text is only the first line with text after the phrase: for cut-off replies.
    """
    return _extract_plain(reply, answer) or _extract_any(reply, answer, first_line=first_line)


def _extract_any(reply: str, answer: AnswerForm, *, first_line: bool) -> Extracted:
    """`extract` without the fast path for plain replies."""
    text = without_thoughts(reply)
    bare = without_markup(text)
    if not bare.strip():
        only_thoughts = reply.strip() and not text.strip()
        return Extracted(
            None, why="nothing but thinking" if only_thoughts else "the reply is empty"
        )
    pattern, for_bare = phrase_pattern(answer.phrase)
    phrases = [match.span() for match in pattern.finditer(bare if for_bare else text)]
    if answer.type == "text":
        return _text_answer(text, bare, phrases, first_line=first_line)
    if answer.type == "list":
        return _list_answer(text, bare, phrases)
    return _short_answer(answer, text, bare, phrases)
