"""Reads which of some options a line or a whole reply chooses, if it chooses exactly one.

- A line that is nothing but an option is that option, whatever its case, spaces, quotes, brackets
  and full stop. Where letters stand for the options, the line may also be the letter (`B`, `(b)`),
  or the letter with its option (`B) green`, `B. green`, `B: green`).
- After the answer phrase the option may stand in a sentence: then exactly one option may be named,
  as whole words. An option inside a longer one (`sure` in `not sure`) does not count as named. A
  single letter counts where it is a capital; `A` and `I`, which are also words, only before `)`,
  `.`, `:` or the end of the line, or after `option`. A letter beside the text of another option is
  no answer.
- `not red`, `anything but red`, `red is wrong`, a question, and two options are no answer. Nor is
  an option within a longer number: `7 km` in `3.7 km` or `-7 km`.
- A reply without the phrase, whose last line is more than an option, may name exactly one option in
  all its sentences. There a sentence with a negation or a doubt (`John is not in the kitchen`, `I
  cannot tell if he is in the kitchen`) is no answer. A single letter counts only after a word such
  as `option` or `答案`. An option that is a common word (`no`, `may`) counts only where it opens
  the reply and a punctuation mark follows it: `No, he is not.`
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from .integers import BULLETS, DENIED_AFTER, MOST_FOUND, FoundAnswer, is_denied
from .markup import BRACKETS, QUOTES, UNSPACED, edges, peel, split, without_markup
from .normal_form import nfc

NO_OPTION = "no option"
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
ANSWER_IS = re.compile(r"\banswer(?:\s++is\b|:):?", re.IGNORECASE)
_WORD_ENDS = r"(?=[)\].:]|[\s\"']*$)"
_COMMON = frozenset(
    split(
        "a all an and any are as at be both can do down few first for go have he i if in is it "
        "last left less many march may me more most much my no none not of off on one or other out "
        "over right same so some the this to true false two up us was we will with yes you"
    )
)
"""Common words. One of them in a sentence does not name the option that is the same word."""
_DOUBT = re.compile(
    r"\b(?:cannot|can't|couldn't|know|knows|unknown|unclear|unsure|uncertain|undetermined|whether"
    r"|determine|if|unless)\b|\bnot\s+(?:sure|clear|certain|possible|enough|mentioned|stated|given)\b",
    re.IGNORECASE,
)
NEGATION = re.compile(
    r"\b(?:no(?!\.?\s*\d)|not|never|none|neither|nor|without|except|unlike|wrong|incorrect|false|unlikely"
    r"|impossible|hardly|anything\s+but|far\s+from|(?:rather|other)\s+than|instead\s+of"
    r"|eliminat\w+|exclud\w+|rul(?:ed?|ing)\s+out)\b|n't\b"
    r"|\b(?:left|out\s+of)\s+(?:the\s+)?(?:\x1f|\Z)"
    r"|不(?:是|在|[选選])|[并並绝絕]非|[没沒]有|排除|错误|錯誤|間違",
    re.IGNORECASE,
)
"""A word that denies what stands in its clause; `no. 3` is none."""
_SENTENCE = re.compile(r"(?:[^.!?\n]|[.!?](?=\S))++[.!?]*+")
_LIST_ITEM = re.compile(r"\W*+(?:[A-Za-z]|\d{1,3})[.)]\s")
_CLAUSE_END = re.compile(r"[.,:;!?(]")
_CLAUSE = 60
_CUE = re.compile(
    r"(?:\b(?:option|choice|answer|letter)(?:\s+is)?|答案[是为為选選]?|[选選](?:[项項择擇]是?)?"
    r"|(?:答え|正解)は|(?:정답|답)은)[\s\"'(\[:]*\Z",
    re.IGNORECASE,
)
_CUE_WINDOW = 20
_OPENING = re.compile(
    r"\W*+(?:(?:(?:the\s++)?(?:answer|response)(?:\s++is)?|答案[是为為选選]?|答えは|정답은)\W*+)?",
    re.IGNORECASE,
)
_SET_APART = re.compile(r"[ \"')\]]*+(?:[.,:;!\n\u2013\u2014]|\Z)")
_APART = (rf"(?<![^\W{UNSPACED}])(?<!['-])(?<!\d[.,])", rf"(?![^\W{UNSPACED}]|['-]|[.,]\d)")
"""What is around a single character that stands for itself."""
_NAMED = "\x1f"
"""Stands for each character of an option that was found."""


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
    """`text` in NFC, without its case and its amounts of white space, as options are compared."""
    return " ".join(nfc(nfc(text).casefold()).split())


def has_words(text: str, words: str) -> bool:
    """Whether `text` has these words, neither within longer ones nor with their case."""
    wanted = folded(words)
    before, after = edges(wanted)
    return re.search(f"{before}{re.escape(wanted)}{after}", folded(text)) is not None


def _plain(option: str) -> str:
    """The option as it stands in a reply that is in NFC and without markup."""
    written = nfc(option)
    return " ".join(without_markup(written).split()) or written


def _words(option: str) -> str:
    parts = r"\s++".join(map(re.escape, _plain(option).split()))
    before, after = edges(_plain(option))
    return f"{before}{parts}{after}"


@lru_cache(maxsize=64)
def _choices(options: tuple[str, ...], *, letters: bool) -> _Choices:
    of_letter = dict(zip(LETTERS, options, strict=False)) if letters else {}
    names = {folded(_plain(option)): option for option in options}
    names |= {letter.casefold(): option for letter, option in of_letter.items()}
    long = sorted((text for text in options if len(_plain(text)) > 1), key=len, reverse=True)
    short = sorted({*of_letter, *(one for one in map(_plain, options) if len(one) == 1)})
    single = [
        rf"{sign}{_WORD_ENDS}|(?<=ption ){sign}"
        if sign in ("A", "I", "a", "i")
        else re.escape(sign)
        for sign in short
    ]
    return _Choices(
        names,
        re.compile("|".join(map(_words, long)), re.IGNORECASE) if long else None,
        re.compile(f"{_APART[0]}(?:{'|'.join(single)}){_APART[1]}") if single else None,
        re.compile(rf"([{''.join(of_letter)}])\s*+[).:\]-]\s*+(.++)", re.IGNORECASE | re.DOTALL)
        if of_letter
        else None,
    )


def _alone(line: str, choices: _Choices) -> FoundAnswer | str | None:
    """The option if the line is nothing else; `None` if it is more."""
    leads = [lead.end() for lead in ANSWER_IS.finditer(line)][-1:]
    bullets = BULLETS.match(line)
    for lead in (0, bullets.end() if bullets else 0, *leads):
        start, end = peel(line, lead, len(line), QUOTES | BRACKETS)
        option = choices.names.get(folded(line[start:end]))
        if option is None:
            option = choices.names.get(folded(line[start:end].rstrip(").]")))
        if option is not None:
            return FoundAnswer(option, start, end)
        pair = choices.lettered.fullmatch(line, start, end) if choices.lettered else None
        if pair and (named := choices.names.get(folded(pair[2]))):
            same = named == choices.names.get(folded(pair[1]))
            return (
                FoundAnswer(named, start, end)
                if same
                else "a letter and the text of another option"
            )
    return None


def choice(
    line: str, options: tuple[str, ...], *, letters: bool, own_line: bool
) -> FoundAnswer | str:
    """The option on a line, or why there is none; see the module's docstring.

    `own_line` is true for a line that does not follow the answer phrase: there the option must
    stand alone.
    """
    choices = _choices(options, letters=letters)
    if (alone := _alone(line, choices)) is not None:
        return alone
    if own_line:
        return NO_OPTION
    found, rest = _all_named(line, choices)
    problems = (
        (not found, NO_OPTION),
        (len({option.value for option in found}) > 1, "two different options"),
        (any(is_negated(rest, *option[1:]) for option in found), "not the option that it is"),
        (line.rstrip().endswith("?"), "a question"),
    )
    return next((why for holds, why in problems if holds), "") or found[0]


def is_negated(rest: str, start: int, end: int) -> bool:
    """Whether the clause before an answer, or what follows it, has a negation; `rest` is the line
    without options.
    """
    clause = _CLAUSE_END.split(rest[max(0, start - _CLAUSE) : start])[-1]
    return is_denied(rest, start, end) or bool(NEGATION.search(clause))


def _all_named(text: str, choices: _Choices) -> tuple[list[FoundAnswer], str]:
    """The named options, at most `MOST_FOUND` + 1, and the text without them, as long."""
    found: list[FoundAnswer] = []
    rest = text
    for pattern in (choices.named, choices.letters):
        if pattern is None:
            continue
        found += [
            FoundAnswer(choices.names[name], *match.span())
            for match in islice(pattern.finditer(rest), MOST_FOUND + 1)
            if (name := folded(match[0])) in choices.names  # of i and the dotless i it is not
        ]
        rest = pattern.sub(lambda match: _NAMED * len(match[0]), rest)
    return found, rest


def only_choice(reply: str, options: tuple[str, ...], *, letters: bool) -> FoundAnswer | str:
    """The one option that a reply without the phrase names, or why none; see the module."""
    choices = _choices(options, letters=letters)
    found, rest = _all_named(reply, choices)
    if not found:
        return NO_OPTION
    if len(found) > MOST_FOUND or len({option.value for option in found}) > 1:
        return "two different options"
    first = found[0]
    opens = _OPENING.fullmatch(reply, 0, first.start) and _SET_APART.match(reply, first.end)
    is_common = folded(reply[first.start : first.end]) in _COMMON
    clear = [option for option in found if _is_clear(reply, option)]
    sentences = [part[0] for part in _SENTENCE.finditer(rest) if _NAMED in part[0]]
    problems = (
        (is_common and not opens, "only a common word, which may name no option"),
        (not clear and not opens, "only a letter in a sentence"),
        (any(_LIST_ITEM.match(line) and _NAMED in line for line in rest.split("\n")), "a list"),
        (any(_DOUBT.search(part) for part in sentences), "a doubt"),
        (not is_common and any(NEGATION.search(part) for part in sentences), "a negation"),
        (any(DENIED_AFTER.match(rest, option.end) for option in found), "a negation"),
        (any(part.endswith("?") for part in sentences), "a question"),
    )
    return next((why for holds, why in problems if holds), "") or (clear or found)[0]


def _is_clear(reply: str, option: FoundAnswer) -> bool:
    """Whether a single character in a sentence cannot be anything but an option."""
    before = reply[max(0, option.start - _CUE_WINDOW) : option.start]
    return option.end - option.start > 1 or bool(_CUE.search(before))
