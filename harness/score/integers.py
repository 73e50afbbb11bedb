r"""Reads the integer or the decimal number on a line, if the line has exactly one.

Integers, in digits of any script or in words from zero to a hundred:

- The only number on the line is the answer, also as an estimate ("about 7"). Two different numbers
  are no answer, nor is a row ("1 1 1"). Not counted as further numbers, unless they correct the
  first ("12 (or 13)"): a remark in brackets after it ("12 (10 + 2)"), the total after "out of",
  and the next sentence if the number comes directly after the phrase ("12. Bob has 7", "12  Bob has
  7"). In an equation the right side counts.
- 1,234  1_234  1'234 and 1 234 with a no-break or thin space are 1234; with a plain space they are
  two numbers. 7.0 and "12." are whole. -7 and +7 have signs.
- Not numbers: 7th, 1s, x7, GPT-4. Numbers that make a line unreadable: 7.5, 1.234, 7/10,
  1e3, 50%, 3-4, 1,2,3, 007, a sum without a result, "two hundred", more than 4,000 digits, a
  bound ("at least 7", "7 or more"), a part ("half of 7"), a denial ("not 7", "7 is wrong"), a
  label ("step 7", "Sentence 2: she sings"), "7?", "- 7", and "7. text" on a line of its own, which
  may be an item of a list. "One" is the answer only where it cannot be a pronoun ("The answer is
  one", "There is only one letter"), and no second number in "this one", "an easy one", "one by
  one" and the like. Nor is "line 12" in "in line 12 is <7>".
- Beside Chinese, Japanese, Korean and Thai letters no space is needed around digits. A place in a
  row, a bound, a denial and a part of a longer number are no answer there as well.

Decimal numbers by the same rules, but:

- A point is always the decimal point: 7.5, 1.234 and 1,234.5. A comma separates thousands and
  nothing else: 7,5 and 1.234,5 cannot be read, because a comma has two meanings.
- 1.5e3, 2E-3, 1.5 x 10^3 and 1.5 \times 10^{-3} are read; 10^3 alone, 50% and 1/2 are not.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from .markup import IN_WORD, NUMERALS, THIN, UNSPACED, peel, split

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class FoundAnswer(NamedTuple):
    """An answer on a line, which is `line[start:end]`."""

    value: int | float | str
    start: int
    end: int


NO_NUMBER = "no number"
SMALL = split(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen"
)
_TENS = split("twenty thirty forty fifty sixty seventy eighty ninety")
WORDS = {word: value for value, word in enumerate(SMALL)} | {
    word: 20 + 10 * place for place, word in enumerate(_TENS)
}
_PARTS = frozenset(
    split(
        "first second third fourth fifth sixth seventh eighth ninth tenth half halves thirds "
        "quarter quarters fourths fifths sixths sevenths eighths ninths tenths hundredth point"
    )
)
_NAMED = re.compile(
    rf"(?<!{IN_WORD})(?<!\.)-?\d+(?:,\d{{3}})*(?:\.\d+)?(?!{IN_WORD}|\.\d)|[^\W\d_{UNSPACED}]+"
)
"""A number in digits, or a word, which may be one."""
_NUMBER_WORDS = _PARTS.union(WORDS) | frozenset(
    split("hundred hundreds thousand thousands million millions billion dozen dozens")
)
MOST_DIGITS = 4_000
"""Most decimal digits of an integer; Python converts up to 4,300 of them from and to text."""
_MOST_BITS = MOST_DIGITS * 3
MOST_FOUND = 100
_UNREADABLE = "more than a plain number"
_WORD_OR_NUMBER = (
    rf"[{UNSPACED}]++|{IN_WORD}++(?:(?<=\d)(?:[.,']|{THIN}{{1,3}})(?=\d){IN_WORD}++)*+"
)
_PLAIN = r"\w++(?:(?<=\d)[.,'](?=\d)\w++)*+"
_WHOLE = re.compile(rf"(\d{{1,3}}([,_']|{THIN}{{1,3}})\d{{3}}(?:\2\d{{3}})*+|\d++)(?:\.0{{1,2}})?")
_NAME = re.compile(r"\d+(?:st|nd|rd|th|s)", re.IGNORECASE)
_NUMERAL_SIGNS = frozenset(NUMERALS)
_RANK = "\u7b2c"
"""Before a number, this makes it a place in a row."""
_ENDING = re.compile(rf"([つ個个回番本行枚日人]目|번째|號|号)|[{NUMERALS}억만천백]|点|點|分之|.?多")
"""After a number, this makes it a place in a row (group 1), a part of another one, or a bound."""
_LEAST = re.compile(
    r"(?:[至最]少|[最至]多|不到|不足|超[过過]|[大小多少低高][于於]|不是|[没沒]有|非|分之"
    r"|[负負]|マイナス|마이너스|최[소대]|적어도)(?:有|是)?\Z"
)
"""`at least`, `not`, `minus` and the like in Chinese, Japanese and Korean."""
_SPOILS_NEXT = re.compile(r"(?:[+/\u00f7\u00d7^<≤≥≦≧⩽⩾≪≫≲≳√\u2260\u00b1#%\u2026]|(?<![-=])>)\Z")
_SPOILS_LAST = re.compile(
    r"\?|\s*+(?:[/\u00f7\u00d7^%％‰\u00b0<>\u2264\u2265\u00b1+\u2026]|\.\.\.)"
)


def _spoilt(before: str, after: str, previous: str, following: str) -> str | None:
    """Why the signs around a number make it unreadable: "" if they do not, `None` if the number is
    part of a word.

    `before` and `after` are the text up to the words `previous` and `following`.
    """
    if after == "'" and following.lower() == "s":
        return None
    for gap, word in ((before, previous), (after, following)):
        if gap == "-" and word:
            return _UNREADABLE if _is_number(word) else None
    if before.endswith("<") and after.startswith(">"):
        before, after = before[:-1], after[1:]
        if before.rstrip() == ">" and previous and not _is_number(previous):
            before = " "
    if not (previous.isascii() and following.isascii()):
        beside = "" if before.strip() else previous, "" if after else following
        if (spoilt := _spoilt_beside(*beside)) != "":
            return spoilt
    left = before.rstrip()
    dash = left.endswith(("-", "\u2013")) and (
        not previous or _is_number(previous) or not before[-1].isspace()
    )
    sides = _SPOILS_NEXT.search(left[-2:]) or before.endswith(".") or _SPOILS_LAST.match(after)
    clock = after == ":" and _is_number(following)
    return _UNREADABLE if dash or sides or clock else ""


def _spoilt_beside(previous: str, following: str) -> str | None:
    """`_spoilt` by words of scripts without spaces, directly before and after a number."""
    ending = _ENDING.match(following)
    if previous.endswith(_RANK) or (ending and ending[1]):
        return None
    is_part = previous[-1:] in _NUMERAL_SIGNS and previous
    return _UNREADABLE if ending or is_part or _LEAST.search(previous) else ""


def _is_number(word: str) -> bool:
    return word[:1].isdecimal() or word.lower() in WORDS


def _from_digits(token: str) -> int | str:
    whole = _WHOLE.fullmatch(token)
    if not whole:
        return _UNREADABLE
    figures = re.sub(r"\D", "", whole[1])
    if len(figures) > MOST_DIGITS:
        return f"a number of more than {MOST_DIGITS:,} digits"
    value = int(figures)
    return value if len(str(value)) == len(figures) else "a number with leading zeros"


_DECIMAL = re.compile(
    rf"((?:\d{{1,3}}([,_']|{THIN}{{1,3}})\d{{3}}(?:\2\d{{3}})*+|\d++)(?:\.\d++)?)"
    r"(?:[eE]([-+]?\d++))?"
)
_TIMES_TEN = re.compile(
    r"(?<=\d)\s*+(?:[x\u00d7\u00b7]++\s*+|(?<=\s))10\s*+\^\s*+([-+]?)\s*+(\d++)(?![\w.])"
)
_MOST_EXPONENT_DIGITS = 4


def _decimal_from_digits(token: str) -> float | str:
    parts = _DECIMAL.fullmatch(token)
    if not parts:
        return _UNREADABLE
    figures = re.sub(rf"[,_'{THIN}]", "", parts[1])
    exponent = parts[3] or "0"
    if len(figures) > MOST_DIGITS or len(exponent.lstrip("+-0")) > _MOST_EXPONENT_DIGITS:
        return f"a number of more than {MOST_DIGITS:,} digits"
    if len(figures) > 1 and figures[0] == "0" and figures[1].isdecimal():
        return "a number with leading zeros"
    value = float(f"{figures}e{exponent}")
    return value if value < float("inf") else "a number too large to compare"


def _with_exponent(power: re.Match[str]) -> str:
    """`× 10^-3` as `e-00003`, of the same length."""
    sign, digits = power.groups()
    return f"e{sign}{digits.zfill(len(power[0]) - 1 - len(sign))}"


class _Kind(NamedTuple):
    """What a token of digits may be."""

    token: re.Pattern[str]
    plain: re.Pattern[str]
    """The same for a line in ASCII, faster."""
    read: Callable[[str], int | float | str]


_EXPONENT = r"(?:(?<=\d[eE])[-+](?=\d)\w++)?+"
_INTEGER = _Kind(re.compile(_WORD_OR_NUMBER), re.compile(_PLAIN), _from_digits)
_NUMBER = _Kind(
    re.compile(_WORD_OR_NUMBER + _EXPONENT), re.compile(_PLAIN + _EXPONENT), _decimal_from_digits
)


def _from_words(words: list[str], previous: str) -> int | str:
    match words:
        case ["one", "hundred"]:
            return 100
        case ["hundred"] if previous.lower() in ("", "a"):
            return 100
        case [word] if word in WORDS:
            return WORDS[word]
        case [tens, unit] if tens in _TENS and unit in SMALL[1:10]:
            return WORDS[tens] + WORDS[unit]
    if _PARTS.issuperset(words):
        return f"a part or place: '{' '.join(words)}'"
    return "a number in words beyond a hundred"


def _numbers(line: str, kind: _Kind) -> list[FoundAnswer]:
    """All numbers on the line, also unreadable ones, which have the reason in place of the value;
    stops after `MOST_FOUND` + 1.
    """
    tokens = list((kind.plain if line.isascii() else kind.token).finditer(line))
    texts = [*(token[0] for token in tokens), ""]
    starts = [*(token.start() for token in tokens), len(line)]
    ends = [*(token.end() for token in tokens), 0]
    numbers: list[FoundAnswer] = []
    following = 0
    while following < len(tokens) and len(numbers) <= MOST_FOUND:
        first, following = following, following + 1
        words = [texts[first].lower()]
        in_words = words[0] in _NUMBER_WORDS
        while in_words and texts[following].lower() in _NUMBER_WORDS:
            gap = line[ends[following - 1] : starts[following]]
            if gap != "-" and not gap.isspace():
                break
            words.append(texts[following].lower())
            following += 1
        if not (in_words or words[0][0].isdecimal()) or (len(words) == 1 and words[0] in _PARTS):
            continue
        previous = texts[first - 1]
        before = line[ends[first - 1] : starts[first]]
        sign = "" if in_words or (before == "-" and previous) else before[-1:]
        if sign not in ("-", "+") or (sign == "+" and previous and len(before) == 1):
            sign = ""
        start, end = starts[first] - len(sign), ends[following - 1]
        before = before.removesuffix(sign)
        spoilt = _spoilt(before, line[end : starts[following]], previous, texts[following])
        if spoilt is None or _NAME.fullmatch(words[0]):
            continue
        value = _from_words(words, previous) if in_words else kind.read(words[0])
        if sign == "-" and not isinstance(value, str):
            value = -value
        numbers.append(FoundAnswer(spoilt or value, start, end))
    return numbers


_REMARK = re.compile(r"(?<!\w)(\w++)(\s*+\(([^()]*+)\))")
_DOUBT = re.compile(
    r"\b(?:or|maybe|perhaps|possibly|might|could|wait|actually|correction|sorry|mean|rather|instead"
    r"|alternatively|no|not|if|unless|with|without|includ\w*|exclud\w*|recount\w*)\b",
    re.IGNORECASE,
)
BULLETS = re.compile(r"(?:\s|[-+=\u2022\u00b7\u2023\u25e6|]++>?\s|[-=]>|\u2192)*+")
_ARROW = re.compile(r"\s*+(?:[-=]>|\u2192)?")
LIST_ITEM = re.compile(r"\(?\d{1,3}[.)]\s+\S")
_NEXT_SENTENCE = re.compile(r"[\"')\]\s]*+[.!]\s++(?=[^\W\d])")
_WIDE_GAP = re.compile(r"\s{2,}+(?=[A-Z][a-z])")
_OUT_OF = re.compile(
    r"(?:\s++[^\W\d]++)??\s++(?:out\s++)?of\s++(?:(?:the|all|a|total|of)\s++)*+", re.IGNORECASE
)
_FIRST_NUMBER = re.compile(rf"\d|\b(?:{'|'.join(WORDS)})\b", re.IGNORECASE)
_INEQUALITY = re.compile(r"[<>!~\u2248=]=|.?=>")
_TWO_RESULTS = re.compile(r";|,(?!\d{3})|(?<!\d),|\b(?:and|or)\b", re.IGNORECASE)
_BESIDE_ONE = re.compile(
    r"\b(?:th(?:is|at|ese|ose|e)|each|every|any|no|which|another|either|neither|some|one\s+by)\s+\Z"
    r"|\b(?:the|this|that|my|your)\s+(?:last|first|second|third|next|previous|other|same|only|right"
    r"|correct|wrong|new|old|big|long|short|hard|tricky|simple|easy)\s+\Z"
    r"|\ban?\s+(?:(?:very|really|pretty|quite|rather|fairly|super)\s+)?"
    r"(?!(?:single|lone|total|count|sum)\b)[^\W\d]+\s+\Z"
    r"|(?:\A|[.!?]\s)[\W_]*(?:great|good|nice|fun|easy|hard|tough|tricky|interesting|cool|classic)"
    r"\s+\Z",
    re.IGNORECASE,
)
_AFTER_ONE = re.compile(
    r"\s+(?:by\s+one|at\s+a\s+time|after\s+(?:the\s+other|another)|another|of\s+(?:the|these|those|them)"
    r"|thing|moment|sec|more\s+time|(?:more|less|fewer)\s+than\s+(?:you|we|I|most|expected|usual)"
    r"|should|must|can|could|would|might|may|needs?|has\s+to)\b",
    re.IGNORECASE,
)
_HERE = re.compile(r"\bhere(?:\s+is|'s)\s+\Z", re.IGNORECASE)
_WAY = re.compile(
    r"\s+(?:\w+\s+)?(?:way|method|approach|idea|trick|attempt|solution|possibility)\b",
    re.IGNORECASE,
)
_THERE_IS = re.compile(
    r"(?:\A|[.!?]\s)[\W_]*(?:(?:so|thus|hence|therefore|in\s+total|in\s+all),?\s+)?"
    r"(?:there\s+is|there's|i\s+(?:see|find|found|count(?:ed)?)"
    r"|(?:it|(?:the|this)\s+(?:row|line|list|text|word|string|sequence))\s+(?:has|contains))\s+"
    r"(?:(?:only|just|exactly|precisely)\s+)?\Z",
    re.IGNORECASE,
)
_COUNTED = re.compile(
    r"(?!\s+(?:more|other|way|thing|problem|issue|catch|difference|exception|question|answer|option"
    r"|choice|possib\w+|solution|reason|point|moment|case|last|final|big|small)\b)"
    r"(?:\s+[\"'`]?(?!(?:that|which|who|to|i|you|we|left|missing|per|each|and|or|but|than"
    r"|in|of|on|at|by|for|from|with|without|before|after|between|beside)\b)\w+[\"'`]?){1,2}"
    r"(?:\s+in\s+(?:it|(?:the|this|your)\s+\w+))?[\s.!*]*\Z",
    re.IGNORECASE,
)
"""After `There is one`: what is counted, and nothing more."""
_IN_LINE = re.compile(r"\b(?:in|of|at|on|for)\s+(?:the\s+)?line\s+<?\Z", re.IGNORECASE)
_ZERO_IN = re.compile(r"\s+in\s+on\b", re.IGNORECASE)
_LINKS = frozenset(("and", "or", "plus", "minus", "times", "x", "to", "then"))
_NOT_EXACTLY = re.compile(
    r"(?:\b(?:not|never|except|max(?:imum)?\.?|min(?:imum)?\.?|half\s+of|twice|than|least|most|over|under|below|above|minus|negative|plus|step|group|line|case"
    r"|part|sentence|row|example|question|problem|paragraph|section|no\."
    r"|(?<!adds )(?<!sums )(?<!add )(?<!sum )up\s+to)|n't|&(?:[lg][te]|ne);|[¼-¾⅐-⅞])"
    r"(?:\s+(?:be|exactly|just|the))?[\s\"'(\[+-]*\Z",
    re.IGNORECASE,
)
DENIED_AFTER = re.compile(
    r"[\"'`)\]]*+(?:"
    r"(?:\s++[^\W\d]++)??\s++(?:or\s+(?:more|less|fewer|higher|lower|above|over|below|under)"
    r"|at\s+(?:least|most|minimum|maximum)"
    r"|(?:is|are|was|were)(?:n't|\s+(?:not|never|wrong|incorrect|false|too))"
    r"|too\s+(?:many|few|high|low|much)|squared|cubed)\b"
    r"|\s*+[¼-¾⅐-⅞]"
    rf"|\s*+[{UNSPACED}]{{0,2}}?\s*+(?:以[上下内內]|未満|이상|이하|미만|초과)"
    r"|\s*+[个個개]?\s*+(?:で[はも](?:な|ありませ)|じゃ(?:な|ありませ)|は(?:間違|誤|違)"
    r"|[이가은는]?\s*+(?:아니|아닙|틀[렸리린])|不[对對是正]|是?(?:不[对對]|错|錯)))",
    re.IGNORECASE,
)
"""What denies or bounds an answer that stands before it."""
_INTRODUCES = re.compile(r"(?:[:=]|\b(?:is|are|was|equals))[\s\"'(\[]*\Z", re.IGNORECASE)
_WINDOW = 28
_WORD = re.compile(r"\w")


def _without_remark(remark: re.Match[str]) -> str:
    inside = remark[3]
    keeps = not _is_number(remark[1]) or len(inside.split()) == 1 or _DOUBT.search(inside)
    return remark[0] if keeps else remark[1] + " " * len(remark[2])


def in_a_row(line: str, found: Sequence[FoundAnswer]) -> bool:
    """Whether the numbers or symbols `found` are a list, rather than one answer given twice."""
    between = (line[left.end : right.start] for left, right in pairwise(found))
    return any(
        "(" not in gap and _LINKS.issuperset(re.findall(r"\w+", gap.lower())) for gap in between
    )


def is_denied(line: str, start: int, end: int) -> bool:
    """Whether the words around `line[start:end]` make it a bound, a label or a negation."""
    before = _NOT_EXACTLY.search(line, max(0, start - _WINDOW), start)
    return bool(before or DENIED_AFTER.match(line, end))


def _is_pronoun(line: str, number: FoundAnswer) -> bool:
    if line[number.start : number.end].lower() != "one":
        return False
    before = max(0, number.start - 2 * _WINDOW), number.start
    if _THERE_IS.search(line, *before) and _COUNTED.match(line, number.end):
        return False
    introduced = _INTRODUCES.search(line, max(0, number.start - _WINDOW), number.start)
    leads = introduced or not _WORD.search(line, 0, number.start)
    return not leads or bool(_WORD.search(line, number.end))


def _is_idiom(line: str, number: FoundAnswer) -> bool:
    """Whether a number counts nothing: `this one`, `an easy one`, `in line 12 is <7>`."""
    word, end = line[number.start : number.end].lower(), number.end
    before = max(0, number.start - _WINDOW), number.start
    if word == "zero":
        return bool(_ZERO_IN.match(line, end))
    if word != "one":
        is_line = line.find(" is <", end) >= 0 and _IN_LINE.search(line, *before)
        return bool(is_line)
    is_way = _HERE.search(line, *before) and _WAY.match(line, end)
    return bool(is_way or _BESIDE_ONE.search(line, *before) or _AFTER_ONE.match(line, end))


def _compete(line: str, kind: _Kind, *, own_line: bool) -> list[FoundAnswer] | str:
    """The numbers that could be the line's answer, or why there is none."""
    line = _REMARK.sub(_without_remark, line)
    numbers = _numbers(line, kind)
    if numbers and not own_line and not _WORD.search(line, 0, numbers[0].start):
        stop = _NEXT_SENTENCE.match(line, numbers[0].end) or _without_stop(line, numbers)
        in_words = len(numbers) > 1 and stop and numbers[1].start == stop.end()
        if stop and not in_words and not _DOUBT.search(line, stop.end()):
            return numbers[:1]
    if (equals := line.rfind("=")) >= 0:
        if _INEQUALITY.match(line, max(0, equals - 1)):
            return "an inequality"
        left = _FIRST_NUMBER.search(line, 0, equals)
        if left and _TWO_RESULTS.search(line, left.start(), equals):
            return "two results"
        numbers = _numbers(" " * (equals + 1) + line[equals + 1 :], kind)
    if len(numbers) > MOST_FOUND:
        return "a row of numbers"
    return [
        number
        for previous, number in zip([None, *numbers], numbers, strict=False)
        if not previous or not _OUT_OF.fullmatch(line, previous.end, number.start)
    ]


def _without_stop(line: str, numbers: list[FoundAnswer]) -> re.Match[str] | None:
    """The space before the next sentence, where no full stop ends the first: `6  Bob has 6 …`."""
    until = numbers[1].start if len(numbers) > 1 else len(line)
    gap = _WIDE_GAP.match(line, numbers[0].end)
    return gap if gap and not _TWO_RESULTS.search(line, gap.end(), until) else None


def integer(line: str, *, own_line: bool) -> FoundAnswer | str:
    """The integer on a line, or why there is none; see the module's docstring.

    `own_line` is false for the rest of a line after the answer phrase.
    """
    return _only_number(line, _INTEGER, own_line=own_line)


def decimal(line: str, *, own_line: bool) -> FoundAnswer | str:
    """The decimal number on a line, or why there is none; see `integer`."""
    found = _only_number(_TIMES_TEN.sub(_with_exponent, line), _NUMBER, own_line=own_line)
    return found if isinstance(found, str) else found._replace(value=float(found.value))


def _only_number(line: str, kind: _Kind, *, own_line: bool) -> FoundAnswer | str:
    lead = (BULLETS if own_line else _ARROW).match(line)
    skipped = lead.end() if lead else 0
    if own_line and LIST_ITEM.match(line, skipped):
        return "an item of a list"
    start, end = peel(line, skipped, len(line), {"<": ">"})
    line = " " * start + line[start:end]
    numbers = _compete(line, kind, own_line=own_line)
    if isinstance(numbers, str):
        return numbers
    if len(numbers) > 1:
        numbers = [one for one in numbers if not _is_idiom(line, one)] or numbers
    problems = (
        (not numbers, NO_NUMBER),
        *((True, number.value) for number in numbers if isinstance(number.value, str)),
        (len({number.value for number in numbers}) > 1, "two different numbers"),
        (in_a_row(line, numbers), "a row of numbers"),
        (any(is_denied(line, *number[1:]) for number in numbers), "a bound or a label"),
        (bool(numbers) and all(_is_pronoun(line, number) for number in numbers), "only a 'one'"),
        (line.rstrip().endswith("?"), "a question"),
    )
    return next((str(why) for holds, why in problems if holds), "") or numbers[0]


def is_too_long(number: int) -> bool:
    """Whether `number` has more than `MOST_DIGITS` digits."""
    return number.bit_length() > _MOST_BITS and abs(number) >= 10**MOST_DIGITS


def numbers_in(text: str) -> set[float]:
    """All numbers that a text names, in digits or in words."""
    found = (match[0] for match in _NAMED.finditer(text))
    values = {
        float(one.replace(",", "")) if one[-1].isdigit() else WORDS.get(one.casefold())
        for one in found
    }
    return {value for value in values if value is not None}
