"""To which length answers are within a few per cent: the effective length of near answers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from eyechart.harness.analysis.length.effective_length import EffectiveLength
from eyechart.harness.analysis.length.interval import Bound
from eyechart.harness.analysis.length.limits import ScoredSamples, scored_length
from eyechart.harness.score.outcomes import Outcome
from eyechart.harness.score.readings import Recount
from eyechart.harness.settings.judging import NEAR

_NEARLY = 1e-9


def near_length(
    samples: ScoredSamples, exact: EffectiveLength, threshold: float, near: float = NEAR
) -> EffectiveLength | None:
    """The length up to which answers are near, by the curve that the `exact` length has; `None`
    where answers are neither counts, see `ScoredSamples.counts`, nor copies.

    An exact answer is near. So no length, and no end of an interval, is below that of `exact`,
    which two fits of the same replies alone do not promise.
    """
    if not samples.counts and samples.copies is None:
        return None
    found = scored_length(judged_near(samples, near), threshold)
    low, high = (
        max(pair, key=_order) for pair in zip(found.length_ci, exact.length_ci, strict=True)
    )
    length = found.length
    if length is not None and exact.length is not None:
        length = max(length, exact.length, key=_order)
    return replace(found, length=length, length_ci=(low, high))


def judged_near(samples: ScoredSamples, near: float) -> ScoredSamples:
    """The samples, judged by whether the answer is at most `near` of its target away from it; of
    a copy this share of its row may be missing behind its right beginning, or too much.
    """
    if samples.copies is not None:
        is_close = samples.copies.off <= near + _NEARLY
    else:
        assert samples.numbers is not None
        targets, answers = samples.numbers.targets, samples.numbers.answers
        is_close = np.abs(answers - targets) <= near * targets + _NEARLY
    is_near = samples.right | is_close
    return replace(
        samples,
        outcomes=np.where(is_near, Outcome.CORRECT.place, samples.outcomes),
        readings=np.where(is_near, Recount.AS_JUDGED, samples.readings),
    )


def _order(bound: Bound) -> tuple[float, int]:
    return bound.order
