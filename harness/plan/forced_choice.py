"""The options of a sample that is read by likelihood, and the words before them."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

from eyechart.harness.errors import PlanError
from eyechart.harness.plan.plan import item_of
from eyechart.harness.spec import Condition, Item, Sample
from eyechart.harness.task.catalogue import Task

_WORD = re.compile(r"[^\s,;:.!?()\"']+")
_DRAWN = 200
"""Items whose targets are the options of a task that has a list of them."""


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
        answer = self.task.spec.answer
        found = answer.kind.options(
            sample.target,
            answer,
            sample.accept,
            others=self._others(sample.condition) if answer.kind.listed else _rivals(sample),
            rng=random.Random(f"options|{sample.id}"),
        )
        if len(found) < 2:  # noqa: PLR2004  a choice
            raise PlanError(f"{sample.id}: no wrong answer is known, and a choice needs one")
        return found

    def opening(self, sample: Sample) -> str:
        """The answer phrase, unless the prompt ends with it."""
        phrase = self.task.spec.answer.phrase.strip()
        return "" if sample.prompt.rstrip().endswith(phrase) else phrase

    def _others(self, condition: Condition) -> tuple[str, ...]:
        """The targets of the first samples at the shortest lengths, and the symbols of their rows
        where the target is one of them; sorted. So all lengths have the same options.
        """
        if condition not in self._listed:
            found: set[str] = set()
            for item in islice(self._items(condition), _DRAWN):
                target = str(self.task.spec.answer.kind.value(item.target))
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
