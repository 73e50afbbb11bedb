"""What the program knows about a type of answers: the base of the classes in `answers`."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, ClassVar, Protocol, TypeAlias

from .choices import has_words
from .extraction import FIRST, Extraction, first_answer, short_answer
from .normal_form import nfc
from .outcomes import Outcome
from .verdict import Verdict, right_or_wrong

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from random import Random

    from .extraction import AnswerLine
    from .integers import FoundAnswer
    from .verdict import Target

Phrases: TypeAlias = list[tuple[int, int]]
"""Start and end of each answer phrase in a reply."""
Targets: TypeAlias = "Sequence[Target]"
"""The target, and other right answers."""
Wrong: TypeAlias = "Iterator[tuple[str, str, float | None]]"
"""Answers that miss by little: name, answer and the absolute error that it should have."""

MOST_OPTIONS = 11
"""Options of a forced choice where a right answer has wrong ones without number."""
_MOST_LISTED = 26
"""Options where a task has a list of them."""
_MOST_TRIED = 1000
"""Options that are looked at to say which ones are left out."""


class AnswerForm(Protocol):
    """The type of an answer and the phrases before it, as a task file gives them."""

    @property
    def type(self) -> str: ...
    @property
    def phrase(self) -> tuple[str, ...]: ...
    @property
    def phrase_required(self) -> bool | None: ...
    @property
    def tolerance(self) -> float | None: ...
    @property
    def relative_tolerance(self) -> float | None: ...
    @property
    def options(self) -> tuple[str, ...] | None: ...
    @property
    def letters(self) -> bool | None: ...
    @property
    def ordered(self) -> bool | None: ...
    @property
    def item_separator(self) -> str | None: ...
    @property
    def case(self) -> bool | None: ...
    @property
    def read(self) -> str | None: ...

    def __hash__(self) -> int:
        """Needed to cache the verdicts on short replies."""


@dataclass(frozen=True, slots=True)
class PlainAnswerForm:
    """An `AnswerForm` without a task file."""

    type: str
    phrase: tuple[str, ...]
    phrase_required: bool | None = None
    tolerance: float | None = None
    relative_tolerance: float | None = None
    options: tuple[str, ...] | None = None
    letters: bool | None = None
    ordered: bool | None = None
    item_separator: str | None = None
    case: bool | None = None
    read: str | None = None


def _goes_on(one: str, other: str) -> bool:
    """Whether one of two texts is the beginning of the other, or the same."""
    return one.startswith(other) or other.startswith(one)


class AnswerType:
    """What the program knows about a type of answers. Without other methods: one line of text."""

    name: ClassVar[str]
    meaning: ClassVar[str]
    """What the answer is, for the schema of task files."""
    target: ClassVar[str]
    """What the target is, for the documentation."""
    right: ClassVar[str]
    """When an answer is right, for the documentation: `it …`."""
    stored: ClassVar[type] = str
    """The type of targets and answers; `int` and `float` have a numerical error."""
    nothing: ClassVar[str] = ""
    """Why a line has no such answer."""
    plain: ClassVar[str] = ""
    """Pattern of an answer alone after the phrase, which is read without further rules."""
    fields: ClassVar[tuple[str, ...]] = ()
    """Fields of `answer` in a task file that go with this type and not with all."""
    needed: ClassVar[tuple[str, ...]] = ()
    """Those of them that a task file must have."""
    accepts: ClassVar[bool] = False
    """Whether an item may have other right answers, `accept`."""
    free: ClassVar[bool] = False
    """Whether an answer can be any words, so that a refusal could be one."""

    signs: ClassVar[bool] = False
    """Whether an answer can be signs that are markup around other answers, such as `>`."""
    listed: ClassVar[bool] = False
    """Whether the wrong answers are those of a list: the task's, or the targets of its samples."""
    in_prompt: ClassVar[bool] = False
    """Whether a right answer that is a word of the prompt stands among others that look like it, if
    there are any. Beside words that it has not seen, a model would know the right one by that."""

    def value(self, given: Target | Sequence[str], form: AnswerForm) -> Target:
        """The target of a sample, from an item: a list's items joined by its separator."""
        return given if isinstance(given, int | float | str) else ", ".join(given)

    def fits(self, target: object) -> bool:
        """Whether a target of a journal has the type of the answer."""
        return isinstance(target, self.stored)

    def problem(self, target: object, form: AnswerForm, name: str = "target") -> str | None:
        """What is wrong with the target of an item, which is called `name`; `None` if nothing."""
        if not isinstance(target, str):
            return self.unfit(target, "a text", name)
        if not target.strip():
            return f"the {name} is empty text, which no reply can show"
        options = form.options
        if options and nfc(target) not in map(nfc, options):
            close = difflib.get_close_matches(target, options, n=1)
            known = ", ".join(map(repr, options))
            remedy = f"did you mean {close[0]!r}?" if close else f"they are {known}"
            return f"the {name} {target!r} is none of the options; {remedy}"
        return None

    def unfit(self, target: object, wanted: str, name: str = "target") -> str:
        return f"the {name} {target!r} does not fit 'answer: {self.name}'; give {wanted}"

    def extract(
        self, form: AnswerForm, text: str, bare: str, phrases: Phrases, *, first_line: bool
    ) -> Extraction:
        """The answer in `text`, which is `bare` without markup; `first_line` of a cut-off reply."""
        find = first_answer if form.read == FIRST else short_answer
        return find(lambda line: self.read(line, form), self.nothing, text, bare, phrases)

    def read(self, line: AnswerLine, form: AnswerForm) -> FoundAnswer | str:
        """The answer on a line, or why there is none."""
        raise NotImplementedError

    def compare(self, read: Extraction, reply: str, targets: Targets, form: AnswerForm) -> Verdict:
        """The verdict on an answer that was read; errors are measured from the first target."""
        if read.value == targets[0]:
            return Verdict(Outcome.CORRECT, read.value, read.start, read.end)
        right = {self.compared(one, form) for one in targets}
        said = {self.compared(one, form) for one in (read.value, reply[read.start : read.end])}
        return Verdict(right_or_wrong(right=bool(right & said)), read.value, read.start, read.end)

    def compared(self, value: object, form: AnswerForm) -> str:
        """A text as it is compared: texts are the same answer if this is the same."""
        text = nfc(str(value))
        return text if form.case is not False else nfc(text.casefold())

    def is_named(self, text: str, targets: Targets, form: AnswerForm) -> bool:
        """Whether an unread reply names a right answer, and next to nothing else of its kind."""
        return any(has_words(text, str(target)) for target in targets)

    def right_forms(self, target: Target, form: AnswerForm) -> Iterator[tuple[str, str]]:
        """Further ways to write the right answer, each with its name."""
        if form.case is False:
            yield "other case", str(target).swapcase()

    def wrong(self, target: Target, form: AnswerForm, accept: Sequence[str]) -> Wrong:
        """Wrong answers, to try a task with."""
        right = {self.compared(one, form) for one in (target, *accept)}
        if " " not in str(target):
            yield "other symbol", next(one for one in "7890123456" if one not in right), None
            return
        words = str(target).split()
        for name, parts in (("one word short", words[:-1]), ("one word long", [*words, words[-1]])):
            if self.compared(" ".join(parts), form) not in right:
                yield name, " ".join(parts), None

    def options(
        self,
        target: Target,
        form: AnswerForm,
        accept: Sequence[str],
        *,
        others: Sequence[str] = (),
        rng: Random,
    ) -> tuple[str, ...]:
        """The texts of a forced choice: the right answer first, and then wrong ones.

        No two of them are the same answer. None is the beginning of another: a text is never less
        probable than one that goes on after it, so the longer one could not win. `others` are the
        targets of other samples, or for `in_prompt` the words of the prompt that look like the
        target, which are then all there are; `rng` draws where there are more than are asked.
        Without a wrong answer the right one stands alone.
        """
        kept = [self.written(target, form)]
        values = [target, *accept]
        most = _MOST_LISTED if self.listed else MOST_OPTIONS
        for text in self._candidates(target, form, accept, others, rng):
            if len(kept) == most:
                break
            if not any(_goes_on(one, text) for one in kept) and self._is_wrong(text, values, form):
                kept.append(text)
                values.append(self.meant(text, form))
        return tuple(kept)

    def left_out(
        self,
        asked: Sequence[str],
        target: Target,
        form: AnswerForm,
        accept: Sequence[str],
        *,
        others: Sequence[str] = (),
        rng: Random,
    ) -> list[str]:
        """The wrong options that are not `asked`, since one of two goes on after the other; the
        rest as in `options`.
        """
        tried = islice(self._candidates(target, form, accept, others, rng), _MOST_TRIED)
        rivals = (text for text in tried if any(_goes_on(one, text) for one in asked))
        right = [target, *accept]
        return [one for one in rivals if one not in asked and self._is_wrong(one, right, form)]

    def _candidates(
        self,
        target: Target,
        form: AnswerForm,
        accept: Sequence[str],
        others: Sequence[str],
        rng: Random,
    ) -> Iterable[str]:
        candidates = self.wrong_options(target, rng, form, accept, others)
        return rng.sample(others, len(others)) if others and self.in_prompt else candidates

    def _is_wrong(self, text: str, values: Targets, form: AnswerForm) -> bool:
        """Whether an option is none of these answers."""
        read = Extraction(self.meant(text, form), 0, len(text))
        verdicts = (self.compare(read, text, (value,), form) for value in values)
        return all(verdict.outcome is not Outcome.CORRECT for verdict in verdicts)

    def wrong_options(
        self,
        target: Target,
        rng: Random,
        form: AnswerForm,
        accept: Sequence[str],
        others: Sequence[str],
    ) -> Iterable[str]:
        """Candidates for the wrong options of a forced choice, the most wanted first."""
        known = [one for one in others if one not in {str(target), *accept}]
        if not known:
            return [text for _, text, _ in self.wrong(target, form, accept)]
        return known if len(known) < _MOST_LISTED else rng.sample(known, _MOST_LISTED)

    def written(self, target: Target, form: AnswerForm) -> str:
        """The right answer as an option."""
        return str(target)

    def meant(self, option: str, form: AnswerForm) -> Target:
        """The answer that an option stands for."""
        value: Target = self.stored(option)
        return value
