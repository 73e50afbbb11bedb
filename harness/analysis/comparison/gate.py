"""What became of the second side of a comparison, for a command that says so by its exit code:
`bench gate`, whose first side is saved, and `bench compare --fail-if`.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import NormalDist

from eyechart.harness.analysis.comparison.comparison import Comparison
from eyechart.harness.analysis.comparison.length_difference import mean_difference
from eyechart.harness.analysis.comparison.paired_curves import paired
from eyechart.harness.analysis.length.curve import SIGNIFICANT
from eyechart.harness.analysis.samples.judged_run import JudgedRun
from eyechart.harness.errors import COMPLETE
from eyechart.harness.settings.judging import FAILING, NOT_COMPARABLE, NOT_WHOLE, Margin

BASELINE = "the baseline"
"""The name of a saved side in sentences."""
_MOST_WITHOUT = 0.05
"""Share of the first side's samples that may lack a partner."""
MANY_ALARMS = 0.1
"""A baseline is unlucky if beside it more than this share of the runs of an unchanged model, with
one reply a row, are called worse."""


def unlucky(draws: int) -> float:
    """How likely a baseline with so many replies a row is unlucky, at most, see `MANY_ALARMS`.

    The difference of the areas is normal. The luck of the baseline's replies is in all comparisons
    with it, and has 1 / `draws` of the variance of a run's: so it is 0.068 with one reply, and
    0.034 with four. The test is a little more careful with an unequal number of replies:
    `tests/benchmarks/simulation/baselines.py` finds 0.066 and 0.021.
    """
    normal = NormalDist()
    limit = normal.inv_cdf(1 - SIGNIFICANT / 2) * math.sqrt(1 + 1 / draws)
    return 1 - normal.cdf((limit + normal.inv_cdf(MANY_ALARMS)) * math.sqrt(draws))


def luck(run: JudgedRun) -> float | None:
    """How likely the run is an unlucky baseline, see `unlucky`; `None` where all replies to a row
    have the same verdict, so that there is no luck. With one reply a row nobody knows that.
    """
    if (drawn := run.drawn) is None:
        return unlucky(1)
    return unlucky(drawn.fewest) if drawn.same_verdict < drawn.several else None


@dataclass(frozen=True)
class GateResult:
    """A comparison, judged as a gate does."""

    comparison: Comparison
    margin: Margin
    without: int
    """Scored samples of the first run without a scored partner in the second."""
    samples: int
    """Scored samples of the first run."""
    is_decided: bool = False
    """Whether the runs were asked until the comparison was decided, and no further."""

    @cached_property
    def by_sight(self) -> Comparison | None:
        """The comparison of the conditions that sight alone limits; `None` without any."""
        kept = tuple(one for one in self.comparison.conditions if not one.length.is_limited)
        if len(kept) == len(self.comparison.conditions):
            return self.comparison
        if not kept:
            return None
        length = mean_difference([one.length for one in kept])
        return replace(self.comparison, conditions=kept, length=length)

    @cached_property
    def verdict(self) -> str:
        """What became of the second side. One that has a part of the first side's samples, or whose
        length something else than sight limits, may be worse, and is nothing else. Beside a side
        whose answers are nearly all wrong nothing can be worse.
        """
        by_sight = self.by_sight
        found = "undecided" if by_sight is None else by_sight.change(self.margin)
        if found == "worse":
            return found
        if self.without > _MOST_WITHOUT * self.samples and not self.is_decided:
            return NOT_WHOLE
        is_comparable = by_sight is self.comparison and not by_sight.is_at_floor(self.margin)
        return found if is_comparable else NOT_COMPARABLE

    def fails(self, fail_if: str) -> bool:
        """Whether a command with this `--fail-if` fails."""
        return self.verdict in FAILING[fail_if]


def gated(comparison: Comparison, margin: Margin, *, is_decided: bool = False) -> GateResult:
    """Counts what the second run lacks of the first, except where a side chose its own samples, or
    the rows are others.
    """
    samples = without = 0
    first, second = comparison.runs[0], comparison.runs[-1]
    for condition, mine in first.conditions.items():
        other = second.conditions.get(condition)
        if mine.curve is None or mine.adaptive or (other and other.adaptive):
            continue
        pair = paired(mine.curve, other.curve) if other and other.curve else None
        scored = int(mine.curve.scored.sum())
        samples += scored
        without += scored - (int(pair[0].scored.sum()) if pair else 0)
    if not comparison.is_paired:
        samples = without = 0
    return GateResult(comparison, margin, without, samples, is_decided)


def exit_code(several: Collection[GateResult], fail_if: str) -> int:
    """The least exit code of the verdicts that fail: `WORSE` comes before `UNDECIDED`."""
    codes = [FAILING[fail_if][one.verdict] for one in several if one.fails(fail_if)]
    return min(codes, default=COMPLETE)
