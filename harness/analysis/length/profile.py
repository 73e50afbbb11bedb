"""Where a falling accuracy may cross the threshold, by its likelihood alone: no prior, no shape.

The likelihood ratio of a value of a monotone function's inverse (Banerjee and Wellner 2001, Annals
of Statistics 29): answers are fitted by the most likely accuracy that never rises, once freely and
once with the crossing held at a place. Where an accuracy stays near the threshold over many
lengths, this range has both ends of that plateau, and a prior would decide which of them is named.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import numpy as np

from eyechart.harness.analysis.length.curve import Floats

KEPT, KEPT_OF_CHOSEN = 3.841458820694124, 5.023886187314888
"""Twice the difference of log likelihoods up to which a place is kept: the 95 and the 97.5 %
quantile of the chi-square distribution with one degree of freedom. The second one is for answers
that chose how many samples a length has: such a run ends when by chance one end of a plateau looks
much better."""
_LEAST = 1e-12
"""Accuracies are at least this far from 0 and 1, so that their logarithms are finite."""


def places_kept(
    correct: Floats, answered: Floats, threshold: float, kept: float = KEPT
) -> tuple[float, float]:
    """The lowest and the highest place of the crossing that the answers allow. A place half-way
    between two bins means that the shorter one reaches the threshold and the longer one need not;
    -infinity is below the first bin, infinity above the last one.

    Both arrays have shape (B,), and bins without answers do not count. At least one has some.
    """
    asked = np.flatnonzero(answered > 0)
    pairs = list(zip(correct[asked].tolist(), answered[asked].tolist(), strict=True))
    reaches = _best_likelihoods(pairs, lambda accuracy: max(accuracy, threshold))
    # read from the longest length on, an accuracy that never rises is an error that never does
    errors = [(n - right, n) for right, n in reversed(pairs)]
    fails = _best_likelihoods(errors, lambda error: max(error, 1 - threshold))[::-1]
    free = _best_likelihoods(pairs, lambda accuracy: accuracy)[-1]
    lost = 2 * (free - np.array(reaches) - np.array(fails))
    places = np.flatnonzero(lost <= max(kept, float(lost.min())))
    first, last = int(places[0]), int(places[-1])
    return (
        float(asked[first - 1]) + 0.5 if first else -math.inf,
        float(asked[last]) - 0.5 if last < len(asked) else math.inf,
    )


def _best_likelihoods(
    pairs: Iterable[tuple[float, float]], limited: Callable[[float], float]
) -> list[float]:
    """The largest log likelihood of the first 0, 1, … B pairs of successes and trials, with a share
    that never rises, each `limited`: B + 1 values. Neighbours that would rise are pooled (Ayer and
    others 1955, Annals of Mathematical Statistics 26).
    """
    best = [0.0]
    blocks: list[tuple[float, float, float]] = []  # successes, trials, likelihood up to its end
    for pair in pairs:
        right, n = pair
        while blocks and blocks[-1][0] * n <= right * blocks[-1][1]:
            before, trials, _ = blocks.pop()
            right, n = right + before, n + trials
        share = min(max(limited(right / n), _LEAST), 1 - _LEAST)
        likelihood = right * math.log(share) + (n - right) * math.log1p(-share)
        blocks.append((right, n, likelihood + (blocks[-1][2] if blocks else 0.0)))
        best.append(blocks[-1][2])
    return best
