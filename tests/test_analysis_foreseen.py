"""What an adaptive run is expected to ask, before anything is known of its model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from eyechart.harness.analysis.adaptive.adaptive import Aim
from eyechart.harness.analysis.adaptive.forecast import foreseen, middle
from eyechart.harness.plan.selection import MOST_SAMPLES
from eyechart.harness.spec import Line
from tests.simulated import LINES


def asked(lines: Sequence[Line], aim: Aim) -> Counter[Line]:
    """The samples of all waves."""
    return sum((Counter(wave) for wave in foreseen(lines, aim)), Counter[Line]())


def test_most_samples_lie_around_the_middle() -> None:
    """The same each time, and no more than a full run has."""
    counts = asked(LINES, Aim())
    assert counts == asked(LINES, Aim())
    assert 100 < sum(counts.values()) <= 20 * len(LINES)
    assert middle(LINES) == 50
    near = [line for line in LINES if 20 < line.length < 120]
    assert sum(counts[line] for line in near) > sum(counts.values()) / 2
    finer = asked(LINES, Aim(0.6))
    assert sum(finer.values()) > sum(counts.values())


def test_items_and_samples_limit_a_line() -> None:
    """A run with a million samples of a line would not be simulated whole."""
    few = asked(LINES, Aim(0.4, most_samples=6, items={LINES[6]: 2}))
    assert (few[LINES[6]], max(few.values())) == (2, 6)
    assert max(asked(LINES[3:8], Aim(0.4, most_samples=10**6)).values()) == MOST_SAMPLES


def test_one_line_is_enough() -> None:
    """Also one of empty rows."""
    assert foreseen([Line.exact(5)], Aim())
    assert middle([Line.exact(0), Line.exact(100)]) == 10
