"""Proves a task: its extraction and scoring must judge known replies correctly."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from eyechart.harness.plan.oracles import right_replies
from eyechart.harness.plan.plan import item_of, plan
from eyechart.harness.plan.repeated_items import wrong_items
from eyechart.harness.score.judge import OwnScorer, judge
from eyechart.harness.score.outcomes import Outcome
from eyechart.harness.score.verdict import Verdict
from eyechart.harness.spec import FEWEST_DIFFERENT, Sample, Settings
from eyechart.harness.task.catalogue import Task

_REFUSAL = "I'm sorry, but I can't help with that."
_CUT_OFF = "Let me count one by one: the first is 1, the second is 2, the third"


@dataclass(frozen=True, slots=True)
class ProofFailure:
    """A known reply that got a wrong verdict."""

    sample_id: str
    oracle: str
    reply: str
    wanted: str
    got: str

    def __str__(self) -> str:
        return (
            f"{self.sample_id}: the {self.oracle} reply {self.reply[-80:]!r} should be "
            f"{self.wanted}, is {self.got}"
        )


def failure_lines(task: Task) -> Iterator[str]:
    """The `failures` in lines, and what helps where the options of a choice are not all read."""
    found = [*map(str, failures(task))]
    yield from found
    if found and task.spec.answer.options:
        yield (
            f"{task.name}: not all of these options can be read in replies, as signs alone; write "
            "words in their place"
        )


def failures(task: Task) -> Iterator[ProofFailure]:
    """The failures on the first sample of each default condition and line.

    A task's own scorer decides itself which answers are right. It only must not fail, and must not
    accept silence, a refusal or a cut-off reply.
    """
    for sample in plan(task, samples=1):
        yield from _failures(task, sample)


def repetitions(task: Task) -> Iterator[str]:
    """The mistakes if a cell repeats the same prompts, which makes its interval too narrow, or if
    ready items contradict one another.

    Looks at the longest rows of the first default condition, or at all ready items.
    """
    if task.spec.items is not None:
        yield from wrong_items(task)
        return
    usual = plan(task)
    condition, line = usual.conditions[0], usual.lines[-1]
    size = usual.cell_size(condition, line)
    different = len({usual.sample(condition, line, index).prompt for index in range(size)})
    if different < FEWEST_DIFFERENT * size:
        yield (
            f"{task.name}: the {size} samples of length {line} are only {different} different "
            "prompts; draw something that tells them apart, or ask for fewer samples"
        )


def _failures(task: Task, sample: Sample) -> Iterator[ProofFailure]:
    answer, target = task.spec.answer, sample.target
    own = _scorer(task, sample)

    def given(reply: str, finish_reason: str = "stop") -> Verdict:
        return judge(
            text=reply,
            finish_reason=finish_reason,
            refusal=None,
            failure=None,
            target=target,
            answer=answer,
            accept=sample.accept,
            scorer=own,
        )

    for name, reply in right_replies(sample, answer):
        verdict = given(reply)  # also for the mistakes that a scorer makes
        if verdict.outcome is not Outcome.CORRECT and own is None:
            yield ProofFailure(sample.id, name, reply, "correct", _described(verdict))
    near = () if own is not None else answer.kind.wrong(target, answer, sample.accept)
    for name, wrong, error in near:
        reply = f"{answer.first_phrase} {wrong}"
        verdict = given(reply)
        if verdict.outcome is not Outcome.INCORRECT or not _is_error(verdict.absolute_error, error):
            wanted = "incorrect" if error is None else f"incorrect with error {error:g}"
            yield ProofFailure(sample.id, name, reply, wanted, _described(verdict))
    for name, reply, finish_reason, outcome in (
        ("silent", "", "stop", Outcome.UNPARSED),
        ("refusing", _REFUSAL, "stop", Outcome.REFUSED),
        ("cut-off", _CUT_OFF, "length", Outcome.TRUNCATED),
    ):
        verdict = given(reply, finish_reason)
        if verdict.outcome is not outcome:
            yield ProofFailure(sample.id, name, reply, outcome, _described(verdict))


def _scorer(task: Task, sample: Sample) -> OwnScorer | None:
    scorer = task.scorer
    if scorer is None:
        return None
    drawn = item_of(task, sample.condition, sample.length, sample.index, Settings().seed)
    item = replace(drawn, target=sample.target)
    return lambda reply: scorer(reply, item)


def _is_error(got: float | None, wanted: float | None) -> bool:
    if got is None or wanted is None:
        return got is wanted
    return got == wanted if isinstance(wanted, int) else math.isclose(got, wanted, rel_tol=1e-6)


def _described(verdict: Verdict) -> str:
    error = "" if verdict.absolute_error is None else f" with error {verdict.absolute_error:g}"
    why = f" ({verdict.why})" if verdict.why else ""
    return f"{verdict.outcome}{error}{why}"
