"""How many samples an adaptive run is expected to ask when nothing is known about its model yet."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from eyechart.harness.analysis.adaptive.adaptive import Aim, next_step
from eyechart.harness.analysis.length.curve import Curve
from eyechart.harness.plan.selection import MOST_SAMPLES
from eyechart.harness.spec import Line

_SLOPE = 4.0
"""Slope of the accuracy in logits over the logarithm of the length: it falls from 95 to 50 % within
an octave. A steeper fall asks less, a slower one more."""


def middle(lines: Sequence[Line]) -> int:
    """The length in the middle of `lines`, by its logarithm."""
    return round(math.sqrt(max(1, lines[0].low) * lines[-1].high))


def foreseen(lines: Sequence[Line], aim: Aim) -> Sequence[Mapping[Line, int]]:
    """The samples that each wave adds to the lines of a condition if its model is right to `middle`
    of the lines. The answers are simulated, always with the same random numbers.
    """
    aim = replace(aim, most_samples=min(aim.most_samples, MOST_SAMPLES))
    required = aim.threshold
    crossing = middle(lines) * (required / (1 - required)) ** (1 / _SLOPE)
    rng = np.random.default_rng(0)
    size = aim.most_samples, len(lines)
    lengths = np.array([[line.length_of(at, 0) for line in lines] for at in range(size[0])], float)
    right = rng.random(size) < 1 / (1 + (np.maximum(lengths, 1) / crossing) ** _SLOPE)
    counts = dict.fromkeys(lines, 0)
    waves: list[Mapping[Line, int]] = []
    curve = None
    while more := next_step(curve, counts, _with_large_waves(aim, sum(counts.values()))).more:
        waves.append(more)
        for line, samples in more.items():
            counts[line] += samples
        kept = [place for place, line in enumerate(lines) if counts[line]]
        asked = np.arange(size[0])[:, None] < np.array([counts[lines[place]] for place in kept])
        curve = Curve(
            tuple(lines[place] for place in kept),
            np.where(asked, right[:, kept], 0.0),
            asked.astype(float),
            np.where(asked, lengths[:, kept], np.nan),
        )
    return waves


def _with_large_waves(aim: Aim, asked: int) -> Aim:
    """A quarter of what was asked or more in each wave, so that few of them are fitted."""
    return replace(aim, wave=max(aim.wave, asked // 4))
