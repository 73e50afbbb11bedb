"""The options of a sample that is read by likelihood, and the words before them."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TypedDict

from eyechart.harness.errors import PlanError
from eyechart.harness.plan.plan import item_of
from eyechart.harness.spec import Condition, Item, Sample
from eyechart.harness.spec.answer import LETTERS, Answer, Target
from eyechart.harness.task.catalogue import Task

_WORD = re.compile(r"[^\s,;:.!?()\"']+")
_DRAWN = 200
"""Items whose targets are the options of a task that has a list of them."""


_NAMED = 3
"""Options that a message names."""


class _Beside(TypedDict):
    others: tuple[str, ...]
    rng: random.Random


@dataclass(frozen=True)
class ForcedChoice:
    """The options of a task's samples, which follow from the task and a sample's id."""

    task: Task
    seed: int
    _listed: dict[Condition, tuple[str, ...]] = field(default_factory=dict)

    def options(self, sample: Sample) -> tuple[str, ...]:
        """The right answer first, and then wrong ones; see `AnswerType.options`; raises `PlanError`
        if there is no wrong answer.
        """
        kind = self.task.spec.answer.kind
        found = kind.options(*self._given(sample), **self._beside(sample))
        if len(found) < 2:  # noqa: PLR2004  a choice
            if left_out := kind.left_out(found, *self._given(sample), **self._beside(sample)):
                raise PlanError(
                    f"{sample.id}: a choice needs a wrong answer, and beside {found[0]!r} none can "
                    f"be asked: {self._reason(left_out)}; {self._remedy}"
                )
            raise PlanError(f"{sample.id}: no wrong answer is known, and a choice needs one")
        return found

    def shortfall(self, sample: Sample) -> str:
        """How many of the task's own options are asked, and why not all; "" if all are, or if the
        task has no list of them. Raises `PlanError` as `options` does.
        """
        listed, kind = self.task.spec.answer.options or (), self.task.spec.answer.kind
        found = self.options(sample)
        known = len(listed) - len(set(sample.accept) - {sample.target})
        if len(found) >= known:
            return ""
        left_out = kind.left_out(found, *self._given(sample), **self._beside(sample))
        reason = f"{self._reason(left_out)}; {self._remedy}" if left_out else "more are never asked"
        return f"{len(found)} of its {known} options (chance {1 / len(found):.0%}): {reason}"

    @property
    def _remedy(self) -> str:
        if 0 < len(self.task.spec.answer.options or ()) <= len(LETTERS):
            return "write 'letters: true' under 'answer'"
        return "give answers of which none is the beginning of another"

    @staticmethod
    def _reason(left_out: Sequence[str]) -> str:
        named = ", ".join(map(repr, left_out[:_NAMED]))
        more = f" and {len(left_out) - _NAMED:,} more" if len(left_out) > _NAMED else ""
        verb = "is" if len(left_out) == 1 else "are"
        return (
            f"{named}{more} {verb} left out, since a text is never more probable than its own "
            "beginning"
        )

    def _given(self, sample: Sample) -> tuple[Target, Answer, tuple[str, ...]]:
        return sample.target, self.task.spec.answer, sample.accept

    def _beside(self, sample: Sample) -> _Beside:
        is_listed = self.task.spec.answer.kind.listed
        return {
            "others": self._others(sample.condition) if is_listed else _rivals(sample),
            "rng": random.Random(f"options|{sample.id}"),
        }

    def opening(self, sample: Sample) -> str:
        """The answer phrase, unless the prompt ends with it."""
        phrase = self.task.spec.answer.first_phrase.strip()
        return "" if sample.prompt.rstrip().endswith(phrase) else phrase

    def _others(self, condition: Condition) -> tuple[str, ...]:
        """The targets of the first samples at the shortest lengths, and the symbols of their rows
        where the target is one of them; sorted. So all lengths have the same options. A control,
        where that is one symbol, has the options of the first condition that differs from it in
        one axis and has more: its margins compare with those there.
        """
        found = self._own(condition)
        others = (
            self._own(condition.with_value(axis, value))
            for axis, about in self.task.spec.axes.items()
            for value in about.values
            if value != condition[axis]
        )
        return next((one for one in (found, *others) if len(one) > 1), found)

    def _own(self, condition: Condition) -> tuple[str, ...]:
        """See `_others`; of this condition alone."""
        if condition not in self._listed:
            found: set[str] = set()
            answer = self.task.spec.answer
            for item in islice(self._items(condition), _DRAWN):
                target = str(answer.kind.value(item.target, answer))
                found |= {target, *item.accept}
                found |= set(item.symbols) if target in item.symbols else set()
            self._listed[condition] = tuple(sorted(found))
        return self._listed[condition]

    def _items(self, condition: Condition) -> Iterator[Item]:
        for length in sorted(self.task.lengths):
            available = self.task.items_at(length)
            for index in range(_DRAWN if available is None else available):
                yield item_of(self.task, condition, length, index, self.seed)


def _rivals(sample: Sample) -> tuple[str, ...]:
    """The other words of the question that look like the target, sorted; none where the target is
    no word of it, or has no digit: words of letters may belong to the question. Words of worked
    examples are none, so that all numbers of examples have the same options.
    """
    right = {str(sample.target), *sample.accept}
    words, look = set(_WORD.findall(sample.question)), _look(str(sample.target))
    if "0" not in look or str(sample.target) not in words:
        return ()
    return tuple(sorted(word for word in words - right if _look(word) == look))


def _look(word: str) -> str:
    """The kinds of a word's characters: `7a-B` and `4x-Q` look alike."""
    return "".join(
        "0" if one.isdigit() else "a" if one.islower() else "A" if one.isupper() else one
        for one in word
    )
