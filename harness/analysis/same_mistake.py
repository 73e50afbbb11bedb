"""Whether the wrong answers of a run are one mistake: the same error, or the same answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from eyechart.harness.analysis.judged_run import JudgedRun
from eyechart.harness.score.outcomes import Outcome

_FEWEST, _SHARE = 20, 0.8
"""So many wrong answers are looked at, and the share of them that must be alike."""


def same_mistake_notes(runs: Sequence[tuple[str, JudgedRun]]) -> list[str]:
    """A sentence for each of the named runs whose wrong answers are nearly all alike. Such a model
    may see the rows and fail otherwise: it counts something else too, or answers by a rule.
    """
    return [f"{name}: {said}" for name, run in runs for said in _said(run)]


def _said(run: JudgedRun) -> Iterator[str]:
    if run.options or run.spec.answer.kind.stored is not int:
        return
    samples = run.samples
    wrong = samples["outcome"].to_numpy() == Outcome.INCORRECT.place
    errors = samples["signed_error"].to_numpy()[wrong]
    given = samples["answer"].to_numpy()[wrong]
    if len(errors) < _FEWEST:
        return
    error, times = _commonest(errors)
    if times >= _SHARE * len(errors):
        size = f"{abs(error):,.0f} too {'large' if error > 0 else 'small'}"
        yield f"{times:,} of its {len(errors):,} wrong answers are {size}."
    answer, times = _commonest(given)
    targets = len(np.unique(samples["target"].to_numpy()[wrong]))
    if times >= _SHARE * len(given) and targets > 1:
        yield f"{times:,} of its {len(given):,} wrong answers are {run.answers[int(answer)]:,}."


def _commonest(values: npt.NDArray[np.generic]) -> tuple[float, int]:
    """The commonest value, and how often it is there."""
    found, counts = np.unique(values, return_counts=True)
    place = int(counts.argmax())
    return float(found[place]), int(counts[place])
