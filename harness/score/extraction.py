r"""Extracts the answer from a reply, if the reply gives it unambiguously.

Thinking blocks are removed first. Then the last occurrence of the answer phrase decides; an earlier
one does so only if no number (or symbol) follows the later ones. The answer is read from the rest
of the phrase's line, or from the first line with text below it. Without the phrase it is read from
the last line. If nothing follows the phrase, a last line that is nothing but an answer counts.

With `read: first` the reply follows the phrase, with which its prompt ends. An answer that opens
the reply is read from its first sentence; else the first phrase in the reply decides, if an answer
follows it; else the first sentence of a reply of one line.

`integers` defines what an integer and a number are, `choices` what a choice is, `codes` what a code
is, `lists` what a list is.

A symbol is the line's only token; else its only quoted token; else its only single letter or digit
other than the words a, A and I. Quotes, markup and a full stop around it are ignored.

A text is all that follows the phrase, without pairs of markup, quotes and brackets around it and
without one full stop at its end; what of them the target has belongs to it. Without the phrase it
is the last line if that is entirely quoted, boxed or fenced, or a reply of one paragraph.

The reply is read in NFC, see `normal_form`; the place of an answer is the one in the reply itself.
Markup is replaced by as many spaces, so that positions do not change. All of this
takes time linear in the length of the reply: no pattern here backtracks.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from .choices import ANSWER_IS, NEGATION
from .integers import BULLETS, LIST_ITEM, MOST_FOUND, SMALL, WORDS, FoundAnswer, in_a_row, is_denied
from .markup import (
    BRACKETS,
    IN_WORD,
    QUOTES,
    SOLID,
    THIN,
    is_unspaced_sentence,
    peel,
    readings,
    undress,
)
from .unspaced import said_places, said_symbol

if TYPE_CHECKING:
    from collections.abc import Callable


Read: TypeAlias = "Callable[[AnswerLine], FoundAnswer | str]"
"""A line -> the answer on it, or why there is none."""


@dataclass(frozen=True, slots=True)
class Extraction:
    """The answer in a reply, and its place."""

    value: int | float | str | None
    """The answer; `None` if it is unparsed."""
    start: int = 0
    end: int = 0
    """The answer is `reply[start:end]`; 0, 0 if there is none."""
    by_phrase: bool = False
    """Whether it follows the answer phrase, in the reply or at the end of the prompt."""
    whole: bool = False
    """Whether the text after the answer shows that it is complete, even if the reply was cut off.
    For a `text` or `list` answer: whether its first line is complete."""
    why: str = ""
    """The reason, if the answer is unparsed."""
    dressed: tuple[FoundAnswer, ...] = ()
    """The answer with quotes and markup around it, which may belong to it; the outermost first."""


FIRST = "first"
"""`read` of an answer that stands first in the reply."""
NO_SYMBOL = "no symbol"
TOKEN = re.compile(r"[^\s\"'`,;:()\[\].!?]+")
_TOKEN_ALONE = re.compile(r"[^\s\"'`,;()\[\]]*[^\s\"'`,;()\[\].!?:=]|\S")
_QUOTED = re.compile(
    rf"(?<!{IN_WORD})([\"'\u00ab])([^\s\"'\u00ab\u00bb]++)[\"'\u00bb](?!{IN_WORD})"
)
_LETTER = re.compile(
    rf"(?<!{IN_WORD})(?<!['.-])()((?!_){IN_WORD}|(?<!\w)\w(?!\w))(?!{IN_WORD}|['-]|\.\w)"
)


_VOID = " \n:=-\u2013\u2014.>|\u2026_" + THIN
_INK = re.compile(rf"[^\s{re.escape(_VOID)}]")
_CLOSING = frozenset('*`$}"\u201d)]!;<|\u3002')


class AnswerLine(NamedTuple):
    """A line, or the rest of it after the answer phrase."""

    bare: str
    """Without markup."""
    text: str
    """As it is in the reply; as long."""
    own_line: bool
    """Whether it is a whole line."""
    by_phrase: bool
    """Whether it follows the answer phrase."""


def symbol(answer: AnswerLine) -> FoundAnswer | str:
    """The symbol on a line, or why there is none."""
    line, with_quotes = answer.bare, marked(answer.text, answer.bare)
    leads = [0, *(lead.end() for lead in ANSWER_IS.finditer(line))][-2:]
    bullets = BULLETS.match(line)
    first = bullets.end() if bullets else 0
    if not line.isascii():
        said = said_symbol(line, *peel(line, first, len(line), QUOTES | BRACKETS))
        if said is not None:
            return said
    for lead in () if is_unspaced_sentence(line) else (first, *leads):
        start, end = peel(line, lead, len(line), QUOTES | BRACKETS)
        if _TOKEN_ALONE.fullmatch(line, start, end):
            token = line[start:end]
            digit = token.lower() in SMALL[:10]
            return FoundAnswer(str(WORDS[token.lower()]) if digit else token, start, end)
    symbols: list[FoundAnswer] = []
    for pattern, excluded in ((_QUOTED, ()), (_LETTER, ("a", "A", "I"))):
        symbols = symbols or [
            FoundAnswer(match[2], *match.span(2))
            for match in islice(pattern.finditer(with_quotes), MOST_FOUND + 1)
            if match[2] not in excluded
        ]
    problems = (
        (not symbols, NO_SYMBOL),
        (len({symbol.value for symbol in symbols}) > 1, "two different symbols"),
        (len(symbols) > MOST_FOUND or in_a_row(line, symbols), "a row of symbols"),
        (any(is_denied(line, *symbol[1:]) for symbol in symbols), "not the symbol that it is"),
        (line.rstrip().endswith("?"), "a question"),
    )
    return next((why for holds, why in problems if holds), "") or symbols[0]


def marked(text: str, line: str) -> str:
    """`line` with a quote where `text`, which is as long, has a backtick or a brace."""
    if "`" not in text and "{" not in text and "}" not in text:
        return line
    pairs = zip(text, line, strict=True)
    return "".join('"' if mark in "`{}" else sign for mark, sign in pairs)


def _moved(answer: FoundAnswer, start: int) -> FoundAnswer:
    return answer._replace(start=answer.start + start, end=answer.end + start)


def _read(
    read: Read, text: str, bare: str, start: int, end: int, *, by_phrase: bool
) -> FoundAnswer | str:
    """The short answer between `start` and `end`, or why there is none."""
    own_line = start == 0 or bare[start - 1] == "\n"
    answer = read(AnswerLine(bare[start:end], text[start:end], own_line, by_phrase))
    return answer if isinstance(answer, str) else _moved(answer, start)


def _line_around(bare: str, place: int, start: int, end: int) -> tuple[int, int]:
    newline = bare.find("\n", place, end)
    return max(start, bare.rfind("\n", start, place) + 1), end if newline < 0 else newline


def _is_whole(text: str, bare: str, end: int) -> bool:
    after, behind = text[end : end + 1], text[end + 1 : end + 2]
    stopped = after == "." and (behind.isspace() or behind in _CLOSING)
    return "\n" in bare[end:] or after in _CLOSING or stopped


def short_answer(
    read: Read, nothing: str, text: str, bare: str, phrases: list[tuple[int, int]]
) -> Extraction:
    """The answer that `read` finds on the line after the last phrase, or on the last line. It
    returns why there is none: `nothing` where the line has nothing like an answer.
    """
    end = len(bare)
    why = f"{nothing} on the last line"
    for phrase_start, phrase_end in reversed(phrases):
        if ink := _INK.search(bare, phrase_end, end):
            place = _line_around(bare, ink.start(), phrase_end, end)
            answer = _read(read, text, bare, *place, by_phrase=True)
            if not isinstance(answer, str):
                return Extraction(*answer, by_phrase=True, whole=_is_whole(text, bare, answer.end))
            why = f"{answer} after the answer phrase"
            if answer != nothing:
                return Extraction(None, why=why)
        end = phrase_start
    last = len(bare.rstrip(_VOID)) - 1
    start, end = _line_around(bare, max(0, last), 0, len(bare))
    answer = _read(read, text, bare, start, end, by_phrase=False)
    if isinstance(answer, str):
        return Extraction(None, why=why if phrases else f"{answer} on the last line")
    if phrases and peel(bare, start, end, QUOTES) != (answer.start, answer.end):
        return Extraction(None, why=why)
    return Extraction(*answer, whole=_is_whole(text, bare, answer.end))


SENTENCE_END = re.compile(
    r"[.!?][\"')\]]*+\s++(?!\d|(?:wait|no|not|or|sorry|actually|correction)\b)", re.IGNORECASE
)
_LIST = re.compile(r"\W*+[Aa1][.):]\s[^\n]*+\s++\W*[Bb2][.):]\s")
_LEAD = re.compile(r"\W*+(?:(?:the\s++)?(?:final\s++)?answer(?:\s++is)?\W*+)?", re.IGNORECASE)
_IN_A_TEXT = "only a sentence of more lines"


def first_answer(
    read: Read, nothing: str, text: str, bare: str, phrases: list[tuple[int, int]]
) -> Extraction:
    """The answer in a reply that follows the phrase; `read` and `nothing` as in `short_answer`."""
    begins = (0, *(end for _, end in phrases))
    ends = (*(start for start, _ in phrases), len(bare))
    inside, why = None, nothing
    for begin, end in zip(begins, ends, strict=True):
        ink = _INK.search(bare, begin, end)
        if not ink:
            continue
        answer = _opening(read, text, bare, (begin, ink.start(), end), nothing=nothing)
        if not isinstance(answer, str):
            opens = begin or _LEAD.fullmatch(bare, 0, answer.start)
            inside = answer if opens or "\n" not in bare[answer.end :].rstrip() else None
            if opens:
                break
            why = _IN_A_TEXT
        elif begin and answer != nothing:
            inside, why = None, answer
            break
        else:
            why = answer
    if inside is None:
        return Extraction(None, why=f"{why} at the beginning")
    return Extraction(*inside, by_phrase=True, whole=_is_whole(text, bare, inside.end))


def _opening(
    read: Read, text: str, bare: str, place: tuple[int, int, int], *, nothing: str
) -> FoundAnswer | str:
    """The answer in the first sentence of a line, or else on all of it; `place` is where the text
    begins, where its first line has ink, and where it ends.
    """
    begin, ink, end = place
    start, end = _line_around(bare, ink, begin, end)
    if _LIST.match(bare, start):
        return "a list"
    own_line = "\n" in bare[begin:start]
    is_listed = own_line and LIST_ITEM.match(bare, start)
    sentence = None if is_listed else SENTENCE_END.search(bare, start, end)
    answer: FoundAnswer | str = nothing
    for until in (sentence.end() if sentence else end, end):
        answer = read(AnswerLine(bare[start:until], text[start:until], own_line, by_phrase=True))
        if answer != nothing:
            break
    return answer if isinstance(answer, str) else _moved(answer, start)


def from_start(phrases: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The phrases of a reply that follows the phrase: the reply's start, and its first phrase."""
    return [(0, 0), *phrases[:1]]


def _found(text: str, layers: list[tuple[int, int]]) -> list[FoundAnswer]:
    return [FoundAnswer(*one) for one in readings(text, layers)]


def _all_of(text: str, layers: list[tuple[int, int]]) -> Extraction:
    """The text within all its `layers`, of which some may belong to it."""
    *dressed, answer = _found(text, layers)
    return Extraction(*answer, dressed=tuple(dressed))


def sign_alone(text: str, phrases: list[tuple[int, int]]) -> Extraction | None:
    """The one sign on the line after the last phrase, or in the whole reply; such as `*`, which is
    markup elsewhere.
    """
    begin, end = phrases[-1][1] if phrases else 0, len(text)
    if phrases and (solid := SOLID.search(text, begin)):
        end = _line_around(text, solid.start(), begin, end)[1]
    layers = undress(text, begin, end, text[:begin])
    if not layers or layers[-1][1] - layers[-1][0] != 1:
        return None
    start, end = layers[-1]
    whole = _is_whole(text, text, end)
    return Extraction(text[start:end], start, end, by_phrase=bool(phrases), whole=whole)


def text_answer(
    text: str, bare: str, phrases: list[tuple[int, int]], *, first_line: bool
) -> Extraction:
    """The text after the phrase; with `first_line` only its first line."""
    end = len(text)
    for phrase_start, phrase_end in reversed(phrases):
        opened = text[:phrase_end]
        if layers := undress(text, phrase_end, end, opened):
            solid = SOLID.search(bare, layers[-1][0], end)
            newline = bare.find("\n", solid.start() if solid else layers[-1][0], end)
            if first_line and newline >= 0:
                layers = undress(text, phrase_end, newline, opened) or layers
            found = _with_said(text, _all_of(text, layers), by_phrase=True)
            return replace(found, by_phrase=True, whole=newline >= 0)
        end = phrase_start
    if phrases:
        return Extraction(None, why="nothing after the answer phrase")
    start, end = text_alone(text)
    if start == end:
        return Extraction(None, why="no answer phrase, and more than the text")
    if not (layers := undress(text, start, end)):
        return Extraction(None, why="an empty block")
    found = _all_of(text, layers)
    for pattern in (_SAID, _LABELLED):
        stated = pattern.match(text, start, end)
        if stated and not NEGATION.search(text, start, stated.start(1)):
            said = _found(text, undress(text, *stated.span(1)))
            found = replace(found, dressed=(*found.dressed, *said))
    return _with_said(text, found, by_phrase=False)


def _with_said(text: str, found: Extraction, *, by_phrase: bool) -> Extraction:
    """`found`, and what it says if it is a sentence without spaces."""
    if text.isascii():
        return found
    places = said_places(text, found.start, found.end, by_phrase=by_phrase)
    said = [one for place in places for one in _found(text, undress(text, *place))]
    return replace(found, dressed=(*found.dressed, *said)) if said else found


_SAID = re.compile(
    r"\s*+(?:the|its|it|this)\b(?>[^\n]*\b(?:is|are|was|were)\b)\s*+:?\s*+([^\s:][^\n]*+)\s*+\Z",
    re.IGNORECASE,
)
"""A sentence that states a text, such as "The first topic was tea". With a negation before the text
it states none, nor does a label such as `Wrong:`."""


_LABELLED = re.compile(r"\W*+[^\W\d][^\n:\uff1a]{0,30}[:\uff1a]\**+\s++(\S[^\n]*+)\s*+\Z")
"""A line that begins with a label, such as the answer phrase in another language."""


def text_alone(text: str) -> tuple[int, int]:
    """Start and end of a text without an answer phrase; equal if the text is ambiguous."""
    solid = text.rstrip()
    if solid.endswith("```") and (opening := solid.rfind("```", 0, -3)) >= 0:
        line_end = solid.find("\n", opening, len(solid) - 3)
        return (line_end if line_end >= 0 else opening + 3), len(solid) - 3
    start, end = _line_around(text, len(solid) - 1, 0, len(text))
    if not text[start].isalnum():
        layers = undress(text, start, end)
        (outer, outer_end), (inner, inner_end) = layers[0], layers[-1]
        is_wrapped = text[outer] in "\"'\u201c\u2018*`$\\_" and inner > outer
        if is_wrapped and inner_end < outer_end and not re.search(r"[*`$]", text[inner:inner_end]):
            return start, end
    lines = solid.lstrip().split("\n")
    if all(line.strip() for line in lines) and (
        len(lines) == 1 or not lines[0].rstrip().endswith(":")
    ):
        return 0, len(text)
    return 0, 0
