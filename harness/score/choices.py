"""Reads which of some options a line chooses, if it chooses exactly one.

- A line that is nothing but an option is that option, whatever its case, spaces, quotes, brackets
  and full stop. Where letters stand for the options, the line may also be the letter (`B`, `(b)`),
  or the letter with its option (`B) green`, `B. green`, `B: green`).
- After the answer phrase the option may stand in a sentence: then exactly one option may be named,
  as whole words. An option inside a longer one (`sure` in `not sure`) does not count as named. A
  single letter counts where it is a capital; `A` and `I`, which are also words, only before `)`,
  `.`, `:` or the end of the line. A letter beside the text of another option is no answer.
- `not red`, a question, and two options are no answer.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from .integers import BULLETS, MOST_FOUND, Found, is_denied
from .markup import BRACKETS, QUOTES, peel, without_markup

NO_OPTION = "no option"
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_ANSWER_IS = re.compile(r"\banswer(?:\s++is\b|:):?", re.IGNORECASE)
_WORD_ENDS = r"(?=[)\].:]|[\s\"']*$)"


class _Choices(NamedTuple):
    names: dict[str, str]
    """Folded text or letter -> option."""
    named: re.Pattern[str] | None
    """Finds texts of more than one character."""
    letters: re.Pattern[str] | None
    """Finds letters, those of options that are one letter included."""
    lettered: re.Pattern[str] | None
    """A letter with its option, alone on a line."""


def folded(text: str) -> str:
    """`text` without its case and its amounts of white space, as options are compared."""
    return " ".join(text.casefold().split())


def _plain(option: str) -> str:
    """The option as it stands in a reply without markup."""
    return " ".join(without_markup(option).split()) or option


def _words(option: str) -> str:
    parts = r"\s++".join(map(re.escape, _plain(option).split()))
    before = r"(?<!\w)" if re.match(r"\w", _plain(option)) else ""
    after = r"(?!\w)" if re.search(r"\w\Z", _plain(option)) else ""
    return f"{before}{parts}{after}"


@lru_cache(maxsize=64)
def _choices(options: tuple[str, ...], *, letters: bool) -> _Choices:
    of_letter = dict(zip(LETTERS, options, strict=False)) if letters else {}
    names = {folded(_plain(option)): option for option in options}
    names |= {letter.casefold(): option for letter, option in of_letter.items()}
    long = sorted((text for text in options if len(_plain(text)) > 1), key=len, reverse=True)
    short = sorted({*of_letter, *(text for text in options if len(_plain(text)) == 1)})
    single = [
        re.escape(sign) + (_WORD_ENDS if sign in ("A", "I", "a", "i") else "") for sign in short
    ]
    return _Choices(
        names,
        re.compile("|".join(map(_words, long)), re.IGNORECASE) if long else None,
        re.compile(rf"(?<![\w'-])(?:{'|'.join(single)})(?![\w'-])") if single else None,
        re.compile(rf"([{''.join(of_letter)}])\s*+[).:\]-]\s*+(.++)", re.IGNORECASE | re.DOTALL)
        if of_letter
        else None,
    )


def _alone(line: str, choices: _Choices) -> Found | str | None:
    """The option if the line is nothing else; `None` if it is more."""
    leads = [lead.end() for lead in _ANSWER_IS.finditer(line)][-1:]
    bullets = BULLETS.match(line)
    for lead in (0, bullets.end() if bullets else 0, *leads):
        start, end = peel(line, lead, len(line), QUOTES | BRACKETS)
        option = choices.names.get(folded(line[start:end]))
        if option is None:
            option = choices.names.get(folded(line[start:end].rstrip(").]")))
        if option is not None:
            return Found(option, start, end)
        pair = choices.lettered.fullmatch(line, start, end) if choices.lettered else None
        if pair and (named := choices.names.get(folded(pair[2]))):
            same = named == choices.names[pair[1].casefold()]
            return Found(named, start, end) if same else "a letter and the text of another option"
    return None


def choice(line: str, options: tuple[str, ...], *, letters: bool, own_line: bool) -> Found | str:
    """The option on a line, or why there is none; see the module's docstring.

    `own_line` is true for a line that does not follow the answer phrase: there the option must
    stand alone.
    """
    choices = _choices(options, letters=letters)
    if (alone := _alone(line, choices)) is not None:
        return alone
    if own_line:
        return NO_OPTION
    found: list[Found] = []
    rest = line
    for pattern in (choices.named, choices.letters):
        if pattern is None:
            continue
        found += [
            Found(choices.names[folded(match[0])], *match.span())
            for match in islice(pattern.finditer(rest), MOST_FOUND + 1)
        ]
        rest = pattern.sub(lambda match: "\x1f" * len(match[0]), rest)
    problems = (
        (not found, NO_OPTION),
        (len({option.value for option in found}) > 1, "two different options"),
        (any(is_denied(line, option.start) for option in found), "not the option that it is"),
        (line.rstrip().endswith("?"), "a question"),
    )
    return next((why for holds, why in problems if holds), "") or found[0]
