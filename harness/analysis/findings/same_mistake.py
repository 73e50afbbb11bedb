"""Whether the wrong answers of a run are one mistake: the same error, or the same answer."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from eyechart.harness.analysis.findings.finding import Finding, Kind
from eyechart.harness.analysis.samples.judged_run import JudgedRun
from eyechart.harness.score.outcomes import Outcome
from eyechart.harness.spec import varied_label

_FEWEST, _SHARE = 20, 0.8
"""So many wrong answers are looked at, and the share that must be alike."""
_FEWEST_ANSWERS = 3
"""Distinct wrong answers at least: with two possible ones each error has the same size."""


def same_mistake(run: JudgedRun) -> Finding | None:
    """That a model answers nearly always the same number, or that its wrong answers nearly all have
    the same error. It may see the rows and fail otherwise: it counts something else too, or answers
    by a rule.
    """
    if run.options or run.spec.answer.kind.stored is not int:
        return None
    outcomes, answers, targets, errors = (
        run.samples[name].to_numpy() for name in ("outcome", "answer", "target", "signed_error")
    )
    known = answers >= 0  # a task's own scorer reads none
    wrong = known & (outcomes == Outcome.INCORRECT.place)
    read = wrong | (known & (outcomes == Outcome.CORRECT.place))
    if wrong.sum() < _FEWEST or len(np.unique(targets[read])) == 1:
        return None
    answer, times = _commonest(answers[read])
    if times >= _SHARE * read.sum():
        value = run.answers[int(answer)]
        return SAME_ANSWER(times=times, answers=int(read.sum()), answer=value)
    error, times = _commonest(errors[wrong])
    if times < _SHARE * wrong.sum() or len(np.unique(answers[wrong])) < _FEWEST_ANSWERS:
        return None
    cells = run.samples["cell"].to_numpy()[wrong]
    conditions = list(run.conditions)
    failing = {run.manifest.cells[cell].condition for cell in np.unique(cells)}
    is_one = len(conditions) > 1 and len(failing) == 1
    condition = varied_label(failing.pop(), conditions) if is_one else ""
    return SAME_ERROR(times=times, wrong=int(wrong.sum()), error=error, condition=condition)


def _same_answer(*, times: int, answers: int, answer: int) -> str:
    return f"{times:,} of its {answers:,} answers are {answer:,}."


def _same_error(*, times: int, wrong: int, error: float, condition: str) -> str:
    size = f"{abs(error):,.0f} too {'large' if error > 0 else 'small'}"
    where = f" with {condition}" if condition else ""
    return f"{times:,} of its {wrong:,} wrong answers{where} are {size}."


SAME_ANSWER = Kind(
    "same answer",
    "warning",
    "nearly all answers are one number, so the model may answer by a rule",
    _same_answer,
)
SAME_ERROR = Kind(
    "same error",
    "warning",
    "nearly all wrong answers miss by the same number, so the model may count something else too",
    _same_error,
)


def _commonest(values: npt.NDArray[np.generic]) -> tuple[float, int]:
    """The commonest value, and how often it is there."""
    found, counts = np.unique(values, return_counts=True)
    place = int(counts.argmax())
    return float(found[place]), int(counts[place])
