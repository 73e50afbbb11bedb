"""Whether the wrong answers of a run are one mistake: the same error, or the same answer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from eyechart.harness.analysis.judged_run import JudgedRun
from eyechart.harness.score.outcomes import Outcome
from eyechart.harness.spec import varied_label

_FEWEST, _SHARE = 20, 0.8
"""So many wrong answers are looked at, and the share that must be alike."""
_FEWEST_ANSWERS = 3
"""Distinct wrong answers at least: with two possible ones each error has the same size."""


def same_mistake_notes(runs: Sequence[tuple[str, JudgedRun]]) -> list[str]:
    """A sentence for each of the named runs that answers nearly always the same number, or whose
    wrong answers nearly all have the same error. Such a model may see the rows and fail otherwise:
    it counts something else too, or answers by a rule.
    """
    return [f"{name}: {said}" for name, run in runs if (said := _said(run))]


def _said(run: JudgedRun) -> str:
    if run.options or run.spec.answer.kind.stored is not int:
        return ""
    outcomes, answers, targets, errors = (
        run.samples[name].to_numpy() for name in ("outcome", "answer", "target", "signed_error")
    )
    known = answers >= 0  # a task's own scorer reads none
    wrong = known & (outcomes == Outcome.INCORRECT.place)
    read = wrong | (known & (outcomes == Outcome.CORRECT.place))
    if wrong.sum() < _FEWEST or len(np.unique(targets[read])) == 1:
        return ""
    answer, times = _commonest(answers[read])
    if times >= _SHARE * read.sum():
        return f"{times:,} of its {read.sum():,} answers are {run.answers[int(answer)]:,}."
    error, times = _commonest(errors[wrong])
    if times < _SHARE * wrong.sum() or len(np.unique(answers[wrong])) < _FEWEST_ANSWERS:
        return ""
    size = f"{abs(error):,.0f} too {'large' if error > 0 else 'small'}"
    cells = run.samples["cell"].to_numpy()[wrong]
    conditions = list(run.conditions)
    failing = {run.manifest.cells[cell].condition for cell in np.unique(cells)}
    where = ""
    if len(conditions) > 1 and len(failing) == 1:
        where = f" with {varied_label(failing.pop(), conditions)}"
    return f"{times:,} of its {wrong.sum():,} wrong answers{where} are {size}."


def _commonest(values: npt.NDArray[np.generic]) -> tuple[float, int]:
    """The commonest value, and how often it is there."""
    found, counts = np.unique(values, return_counts=True)
    place = int(counts.argmax())
    return float(found[place]), int(counts[place])
