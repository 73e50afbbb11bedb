"""The types of answers: one class each, from which every list of them follows.

A type is added by a subclass of `AnswerType`. The class says what a target may be, how a reply is
read and compared, which right and wrong answers try a task, and what the documentation says.
"""

from __future__ import annotations

import math
import re
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from .alternatives import (
    changed_characters,
    changed_texts,
    decimals_nearby,
    numbers_nearby,
)
from .answer_type import AnswerType
from .choices import LETTERS, NO_OPTION, choice, folded, has_words, only_choice
from .codes import NO_CODE, code
from .extraction import (
    FIRST,
    NO_SYMBOL,
    TOKEN,
    Extraction,
    from_start,
    marked,
    sign_alone,
    symbol,
    text_answer,
)
from .integers import MOST_DIGITS, NO_NUMBER, FoundAnswer, decimal, integer, is_too_long, numbers_in
from .lists import List
from .markup import QUOTES, phrase_places, without_markup, without_thoughts
from .normal_form import composed, nfc, tidy
from .outcomes import Outcome
from .verdict import Verdict, compare_parts, most_similar, right_or_wrong

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from random import Random

    from .answer_type import AnswerForm, Phrases, Targets, Wrong
    from .extraction import AnswerLine
    from .verdict import Target

_MOST_NAMED = 3
"""Among more numbers than this in a reply, the right one may stand by chance."""
_ROUNDING = 1e-9
"""Share of a number by which floats may differ that stand for the same decimal number."""


class Integer(AnswerType):
    """See `integers`."""

    name = "integer"
    meaning = "a whole number"
    target = "whole number"
    right = "is the same number"
    stored = int
    nothing = NO_NUMBER
    plain = r"0|[1-9][0-9]{0,17}"

    def problem(self, target: object, form: AnswerForm, name: str = "target") -> str | None:
        if not isinstance(target, int) or isinstance(target, bool):
            return self.unfit(target, "a whole number", name)
        if is_too_long(target):
            return (
                f"the {name} has more than {MOST_DIGITS:,} digits; 'answer: text' takes longer ones"
            )
        return None

    def read(self, line: AnswerLine, form: AnswerForm) -> FoundAnswer | str:
        return integer(line.bare, own_line=line.own_line)

    def is_named(self, text: str, targets: Targets, form: AnswerForm) -> bool:
        return _is_number_named(text, targets)

    def compare(self, read: Extraction, reply: str, targets: Targets, form: AnswerForm) -> Verdict:
        error = int(read.value or 0) - int(targets[0])
        outcome = right_or_wrong(right=not error)
        return Verdict(outcome, read.value, read.start, read.end, signed_error=error)

    def wrong(self, target: Target, form: AnswerForm, accept: Sequence[str]) -> Wrong:
        yield "one too many", str(int(target) + 1), 1
        yield "one too few", str(int(target) - 1), 1

    def wrong_options(self, target: Target, *_given: object) -> Iterable[str]:
        return map(str, numbers_nearby(int(target)))


class Number(AnswerType):
    """See `integers`."""

    name = "number"
    meaning = "a number with a decimal point, within a tolerance"
    target = "number"
    right = "differs by no more than the tolerance"
    stored = float
    nothing = NO_NUMBER
    fields = ("tolerance", "relative_tolerance")

    def value(self, given: Target | Sequence[str], form: AnswerForm) -> Target:
        return float(given) if isinstance(given, int) else super().value(given, form)

    def fits(self, target: object) -> bool:
        return isinstance(target, float | int)

    def problem(self, target: object, form: AnswerForm, name: str = "target") -> str | None:
        if not isinstance(target, int | float) or isinstance(target, bool):
            return self.unfit(target, "a number", name)
        try:
            finite = math.isfinite(target)
        except OverflowError:
            finite = False
        return None if finite else f"the {name} is not a finite number of at most 308 digits"

    def read(self, line: AnswerLine, form: AnswerForm) -> FoundAnswer | str:
        return decimal(line.bare, own_line=line.own_line)

    def is_named(self, text: str, targets: Targets, form: AnswerForm) -> bool:
        return _is_number_named(text, targets)

    def compare(self, read: Extraction, reply: str, targets: Targets, form: AnswerForm) -> Verdict:
        value, target = float(read.value or 0), float(targets[0])
        error = value - target
        most = _allowed(target, form) + _ROUNDING * max(abs(value), abs(target))
        outcome = right_or_wrong(right=abs(error) <= most)
        return Verdict(outcome, read.value, read.start, read.end, signed_error=error)

    def right_forms(self, target: Target, form: AnswerForm) -> Iterator[tuple[str, str]]:
        number = float(target)
        yield "scientific", f"{number:.16e}"
        yield "highest within the tolerance", repr(number + _allowed(number, form))
        yield "lowest within the tolerance", repr(number - _allowed(number, form))

    def wrong(self, target: Target, form: AnswerForm, accept: Sequence[str]) -> Wrong:
        number = float(target)
        missed = 2 * _allowed(number, form) or abs(number) / 1000 or 0.001
        for name, answer in (("too high", number + missed), ("too low", number - missed)):
            yield name, repr(answer), abs(answer - number)

    def wrong_options(
        self, target: Target, rng: Random, form: AnswerForm, *_given: object
    ) -> Iterable[str]:
        return decimals_nearby(self.written(target, form), 2 * _allowed(float(target), form))

    def written(self, target: Target, form: AnswerForm) -> str:
        return repr(float(target)).removesuffix(".0")


def _is_number_named(text: str, targets: Targets) -> bool:
    named = numbers_in(text)
    return len(named) <= _MOST_NAMED and not named.isdisjoint(targets)


def _allowed(target: float, form: AnswerForm) -> float:
    return max(form.tolerance or 0.0, (form.relative_tolerance or 0.0) * abs(target))


class Symbol(AnswerType):
    """See `extraction`."""

    name = "symbol"
    meaning = "one token without spaces, found also inside a sentence"
    target = "text without spaces"
    right = "is the same token"
    listed = True
    nothing = NO_SYMBOL
    plain = r"[A-Za-z0-9]"
    accepts = True
    signs = True
    fields = ("case",)

    def extract(
        self, form: AnswerForm, text: str, bare: str, phrases: Phrases, *, first_line: bool
    ) -> Extraction:
        read = super().extract(form, text, bare, phrases, first_line=first_line)
        places = from_start(phrases)[:1] if form.read == FIRST else phrases
        return read if read.value is not None else sign_alone(text, places) or read

    def read(self, line: AnswerLine, form: AnswerForm) -> FoundAnswer | str:
        return symbol(line)

    def is_named(self, text: str, targets: Targets, form: AnswerForm) -> bool:
        right = {self.compared(target, form) for target in targets}
        lengths = set(map(len, right))
        found = set(TOKEN.findall(text)) - {"a", "A", "I"}
        tokens = {self.compared(token, form) for token in found}
        alike = {token for token in tokens if len(token) in lengths}
        return bool(alike & right) and len(alike) == 1


class Code(AnswerType):
    """See `codes`."""

    name = "code"
    meaning = "an identifier, a UUID or a hash, found also inside a sentence"
    target = "text without spaces"
    right = "is the same, character by character"
    nothing = NO_CODE
    fields = ("case",)
    accepts = True
    in_prompt = True

    def problem(self, target: object, form: AnswerForm, name: str = "target") -> str | None:
        if isinstance(target, str) and len(target.split()) > 1:
            return f"the {name} {target!r} has a space; 'answer: text' takes several words"
        return super().problem(target, form, name)

    def read(self, line: AnswerLine, form: AnswerForm) -> FoundAnswer | str:
        return code(line.bare, marked(line.text, line.bare))

    def wrong(self, target: Target, form: AnswerForm, accept: Sequence[str]) -> Wrong:
        text = str(target)
        right = {self.compared(one, form) for one in (text, *accept)}
        others = {
            "one character long": f"{text}{text[-1]}",
            "without its leading zeros": text.lstrip("0") or "0",
            "other case": text.swapcase(),
        }
        for name, other in others.items():
            if self.compared(other, form) not in right:
                yield name, other, None

    def wrong_options(self, target: Target, rng: Random, *_given: object) -> Iterable[str]:
        return changed_characters(str(target), rng)


class Text(AnswerType):
    """See `extraction`."""

    name = "text"
    meaning = "everything after the answer phrase, word for word"
    target = "text"
    right = "is the same words in the same order"
    accepts = True
    free = True
    signs = True
    fields = ("case",)
    in_prompt = True

    def extract(
        self, form: AnswerForm, text: str, bare: str, phrases: Phrases, *, first_line: bool
    ) -> Extraction:
        if form.read == FIRST:
            return text_answer(text, bare, from_start(phrases), first_line=True)
        return text_answer(text, bare, phrases, first_line=first_line)

    def compare(self, read: Extraction, reply: str, targets: Targets, form: AnswerForm) -> Verdict:
        said = (*read.dressed, FoundAnswer(str(read.value), read.start, read.end))
        if read.value == targets[0]:
            return Verdict(Outcome.CORRECT, *said[-1], similarity=1.0)
        for target in targets:
            right = {self.compared(one, form) for one in _without_frame(tidy(str(target)))}
            for one in said:
                if self.compared(one.value, form) in right:
                    return Verdict(Outcome.CORRECT, *one, similarity=1.0)
        words = self.compared(tidy(str(targets[0])), form).split()
        wrong = {self.compared(one.value, form): one for one in said}
        best, similarity = Verdict(Outcome.INCORRECT), -1.0
        for text, one in reversed(wrong.items()):
            parts = text.split()
            if most_similar(parts, words) > similarity:
                verdict = compare_parts(str(one.value), parts, words, one.start, one.end)
                if (verdict.similarity or 0) > similarity:
                    best, similarity = verdict, verdict.similarity or 0
        return best

    def wrong_options(self, target: Target, rng: Random, *_given: object) -> Iterable[str]:
        return changed_texts(str(target), rng)

    def meant(self, option: str, form: AnswerForm) -> Target:
        return tidy(option)


def _without_frame(target: str) -> Iterator[str]:
    """A target, also without a full stop at its end and the quotes around it."""
    yield target
    if len(target) > 1 and target.endswith(".") and not target.endswith(".."):
        target = target[:-1]
        yield target
    inner, quote = target[1:-1], QUOTES.get(target[0])
    if inner.strip() and quote and target.endswith(quote) and quote not in inner:
        yield inner.strip()


class Choice(AnswerType):
    """See `choices`."""

    name = "choice"
    meaning = "one of `options`"
    target = "one of `options`"
    right = "is the same option"
    nothing = NO_OPTION
    fields = ("options", "letters")
    needed = ("options",)
    accepts = True
    listed = True

    def extract(
        self, form: AnswerForm, text: str, bare: str, phrases: Phrases, *, first_line: bool
    ) -> Extraction:
        read = super().extract(form, text, bare, phrases, first_line=first_line)
        if read.value is not None or phrases:
            return read
        found = only_choice(bare, form.options or (), letters=bool(form.letters))
        if isinstance(found, str):
            return Extraction(None, why=f"{found}, and no answer phrase")
        return Extraction(*found)

    def read(self, line: AnswerLine, form: AnswerForm) -> FoundAnswer | str:
        letters, options = bool(form.letters), form.options or ()
        return choice(line.bare, options, letters=letters, own_line=not line.by_phrase)

    def compared(self, value: object, form: AnswerForm) -> str:
        return folded(str(value))

    def is_named(self, text: str, targets: Targets, form: AnswerForm) -> bool:
        named = [self.compared(one, form) for one in form.options or () if has_words(text, one)]
        return len(named) == 1 and named[0] in {self.compared(one, form) for one in targets}

    def right_forms(self, target: Target, form: AnswerForm) -> Iterator[tuple[str, str]]:
        yield "in capitals", str(target).upper()
        if form.letters:
            letter = self.written(target, form)
            yield "letter", letter
            yield "letter in brackets", f"({letter})"
            yield "letter and text", f"{letter}) {target}"

    def wrong(self, target: Target, form: AnswerForm, accept: Sequence[str]) -> Wrong:
        right = {self.compared(one, form) for one in (target, *accept)}
        for letter, option in zip(LETTERS, form.options or (), strict=False):
            if self.compared(option, form) not in right:
                yield f"option {option!r}", option, None
                if form.letters:
                    yield f"letter {letter}", letter, None

    def wrong_options(
        self, target: Target, rng: Random, form: AnswerForm, *_given: object
    ) -> Iterable[str]:
        return (self.written(option, form) for option in form.options or ())

    def written(self, target: Target, form: AnswerForm) -> str:
        known = [self.compared(option, form) for option in form.options or ()]
        place = known.index(self.compared(target, form))
        return LETTERS[place] if form.letters else (form.options or ())[place]

    def meant(self, option: str, form: AnswerForm) -> Target:
        known = dict(zip(LETTERS, form.options or (), strict=False))
        return known[option] if form.letters else option


TYPES: Mapping[str, AnswerType] = {
    kind.name: kind() for kind in sorted(AnswerType.__subclasses__(), key=lambda kind: kind is List)
}
"""Name -> type, in the order of the documentation: `list`, which is imported, comes last."""


@lru_cache(maxsize=64)
def _plain_pattern(kind: str, phrase: str) -> re.Pattern[str] | None:
    plain = TYPES[kind].plain
    if not plain or not re.fullmatch(r"[A-Za-z]+(?: [A-Za-z]+)*:", phrase):
        return None
    return re.compile(rf"{phrase} ({plain})\.?(\n?)")


def _extract_plain(reply: str, answer: AnswerForm) -> Extraction | None:
    """The result of `extract_any`, if the last line is only the phrase and a short answer."""
    phrase = answer.phrase[0]
    is_usual = answer.read != FIRST and len(answer.phrase) == 1
    pattern = _plain_pattern(answer.type, phrase) if is_usual else None
    begin = reply.rfind(phrase) if pattern else -1
    if not pattern or begin < 0 or (begin and reply[begin - 1] != "\n"):
        return None
    match = pattern.fullmatch(reply, begin)
    if not match or without_thoughts(reply) != reply:
        return None
    start, end = match.span(1)
    value = TYPES[answer.type].stored(match[1])
    return Extraction(value, start, end, by_phrase=True, whole=bool(match[2]))


def extract(reply: str, answer: AnswerForm, *, first_line: bool = False) -> Extraction:
    """The answer in `reply`, by the rules in the docstring of `extraction`. Never raises.

    With `first_line` a text is only the first line with text after the phrase: for cut-off replies.
    """
    return _extract_plain(reply, answer) or extract_any(reply, answer, first_line=first_line)


def extract_any(reply: str, answer: AnswerForm, *, first_line: bool) -> Extraction:
    """`extract` without the fast path for plain replies."""
    normal = composed(reply)
    found = _extract_composed(normal.text, answer, first_line=first_line)
    if normal.origin is None:
        return found
    origin = normal.origin
    return replace(
        found,
        start=origin[found.start],
        end=origin[found.end],
        dressed=tuple(
            FoundAnswer(words, origin[start], origin[end]) for words, start, end in found.dressed
        ),
    )


def phrases_in(text: str, bare: str, answer: AnswerForm) -> Phrases:
    """Where the answer phrases are in `text`, which is `bare` without markup."""
    places: Phrases = []
    for phrase in answer.phrase:
        places += phrase_places(nfc(phrase), text, bare)
    return sorted(places) if len(answer.phrase) > 1 else places


def _extract_composed(reply: str, answer: AnswerForm, *, first_line: bool) -> Extraction:
    text = without_thoughts(reply)
    bare = without_markup(text)
    if not (text if TYPES[answer.type].signs else bare).strip():
        only_thoughts = reply.strip() and not text.strip()
        why = "nothing but thinking" if only_thoughts else "the reply is empty"
        return Extraction(None, why=why)
    phrases = phrases_in(text, bare, answer)
    return TYPES[answer.type].extract(answer, text, bare, phrases, first_line=first_line)
