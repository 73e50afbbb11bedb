"""Reads the code on a line, such as `04021`, `AB-12`, a UUID or a hash, if it has exactly one.

- A line that is one token is that code, whatever it is. Quotes, brackets, markup and a full stop
  around it are left out.
- In a sentence it is the only token with a digit, one in quotes first; else the only quoted token;
  else the only token of at least three capitals. A token before a colon (`SHA256: 3a7b…`), ordinals
  (`2nd`) and single digits are no codes. A comma between digits is part of a token, so `4,021` is
  not `021`.
- Two different codes, a negation before one (`not AB-12`), and a question are no answer.
"""

from __future__ import annotations

import re
from itertools import islice

from .choices import is_negated
from .integers import BULLETS, MOST_FOUND, FoundAnswer
from .markup import BRACKETS, IN_WORD, QUOTES, UNSPACED, is_unspaced_sentence, peel

NO_CODE = "no code"
_LEAD = re.compile(r"\b(?:answer|code|key|id|number|hash|uuid)(?:\s++is\b|:):?", re.IGNORECASE)
_TOKEN = re.compile(
    rf"(?<![^\s\"'`(\[<|,;=:{UNSPACED}])(?:{IN_WORD}|[@/])"
    rf"(?:[^\s\"'`;()\[\]<>|,{UNSPACED}]|,(?=\d))*+"
)
_QUOTED = re.compile(
    rf"(?<!{IN_WORD})([\"'`\u00ab])([^\s\"'`\u00ab\u00bb]++)[\"'`\u00bb](?!{IN_WORD})"
)
_ALONE = re.compile(r"\S+")
_ORDINAL = re.compile(r"\d+(?:st|nd|rd|th)", re.IGNORECASE)
_CAPITALS = re.compile(r"[A-Z]{3,}")
_STOPS = ".!?:"


def code(line: str, marked: str) -> FoundAnswer | str:
    """The code on a line, or why there is none; `marked` has quotes for backticks and braces."""
    bullets = BULLETS.match(line)
    leads = [lead.end() for lead in _LEAD.finditer(line)][-1:]
    for lead in () if is_unspaced_sentence(line) else (bullets.end() if bullets else 0, *leads):
        start, end = peel(line, lead, len(line), QUOTES | BRACKETS)
        if _ALONE.fullmatch(line, start, end) and line[end - 1] not in ",;:?":
            return FoundAnswer(line[start:end], start, end)
    found = _found(line, marked)
    problems = (
        (not found, NO_CODE),
        (len(found) > MOST_FOUND or len({one.value for one in found}) > 1, "two different codes"),
        (any(is_negated(line, *one[1:]) for one in found), "not the code that it is"),
        (line.rstrip().endswith("?"), "a question"),
    )
    return next((why for holds, why in problems if holds), "") or found[0]


def _found(line: str, marked: str) -> list[FoundAnswer]:
    """All that could be a code in a sentence, of the first kind that it has."""
    quoted = [
        FoundAnswer(match[2], *match.span(2))
        for match in islice(_QUOTED.finditer(marked), MOST_FOUND + 1)
    ]
    tokens = [
        FoundAnswer(text, match.start(), match.start() + len(text))
        for match in islice(_TOKEN.finditer(line), MOST_FOUND + 1)
        if (text := match[0].rstrip(_STOPS)) and not line.startswith(":", match.start() + len(text))
    ]
    with_digit = [token for token in tokens if _has_digit(str(token.value))]
    capitals = [token for token in tokens if _CAPITALS.fullmatch(str(token.value))]
    both = [token for token in quoted if _has_digit(str(token.value))]
    is_one = len({token.value for token in with_digit}) == 1
    return both or (with_digit if is_one else []) or quoted or with_digit or capitals


def _has_digit(token: str) -> bool:
    """Whether a token may be a code because of its digits."""
    return len(token) > 1 and any(map(str.isdecimal, token)) and not _ORDINAL.fullmatch(token)
