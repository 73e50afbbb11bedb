"""Which samples an adaptive run asks next."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import numpy as np
import pytest

from harness.analysis.adaptive import FIRST_LINES, FIRST_SAMPLES, Aim, choose, next_samples
from harness.analysis.curve import Floats, Threshold
from harness.analysis.fit import Fit, fit
from harness.spec import Cell, Condition, Line
from tests.simulated import LINES, logistic, simulated

if TYPE_CHECKING:
    from harness.analysis.judged_run import JudgedRun


def asked(
    accuracy: Callable[[Floats], Floats], aim: Aim, seed: int = 0
) -> tuple[dict[Line, int], str, list[dict[Line, int]]]:
    """All samples of a run that goes on until its end, why it ended, and its waves."""
    planned = dict.fromkeys(LINES, 0)
    waves: list[dict[Line, int]] = []
    while True:
        samples = simulated(accuracy, planned, seed) if any(planned.values()) else None
        more, why = next_samples(samples, planned, aim)
        if not more:
            return planned, why, waves
        waves.append(more)
        for line, count in more.items():
            planned[line] += count


def fitted(accuracy: Callable[[Floats], Floats], planned: dict[Line, int], seed: int = 0) -> Fit:
    """The fit of what was asked."""
    return fit(simulated(accuracy, planned, seed), Threshold())


def test_it_begins_with_the_shortest_lines() -> None:
    """Two samples on each of three."""
    more, why = next_samples(None, dict.fromkeys(LINES, 0), Aim(0.5))
    assert more == dict.fromkeys(LINES[:FIRST_LINES], FIRST_SAMPLES)
    assert not why


def test_a_wave_looks_where_the_crossing_may_lie() -> None:
    """On all sides of the estimate, and nowhere outside its interval but for checks."""
    planned = {line: 60 if line.high < 40 else 6 if line.low < 200 else 0 for line in LINES}
    samples = simulated(logistic(80), planned)
    low, high = fit(samples, Threshold()).interval((0.02, 0.98))
    more, why = next_samples(samples, planned, Aim(0.1, wave=16))
    near = {line for line in LINES if line.high >= low.length and line.low <= high.length}
    assert not why
    assert sum(more.values()) == 16
    assert sum(count for line, count in more.items() if line in near) >= 12
    assert more.keys() >= {min(near), max(near)}
    assert LINES[0] not in more


def test_a_line_that_nobody_could_score_is_in_doubt() -> None:
    """Five samples that got no reply say nothing of a line below the interval."""
    planned = dict.fromkeys(LINES, 40)
    scored = {line: count for line, count in planned.items() if line != LINES[2]}
    more, why = next_samples(simulated(logistic(80, 8), scored), planned, Aim(2.0))
    assert not why
    assert more == {LINES[2]: 8}


@pytest.mark.parametrize("most", [0, 30, 77, 78, 81])
def test_a_limit_below_the_plan_takes_nothing_back(most: int) -> None:
    """The plan grows up to the limit of requests, and never becomes smaller."""
    planned = dict.fromkeys(LINES, 6)
    condition = Condition({})
    cells = [Cell(condition, line, count) for line, count in planned.items()]
    judged = SimpleNamespace(curve=simulated(logistic(80), planned))
    run = SimpleNamespace(manifest=SimpleNamespace(cells=cells), conditions={condition: judged})
    choice = choose(cast("JudgedRun", run), [condition], LINES, Aim(0.3), most_requests=most)
    assert sum(choice.counts.values()) == max(78, most)
    assert choice.done == {condition: f"the limit of {most} requests is reached"}


@pytest.mark.parametrize("crossing", [12, 60, 250])
def test_it_ends_when_the_interval_is_narrow_enough(crossing: float) -> None:
    """With fewer samples than a full run, and most of them near the crossing."""
    curve = logistic(crossing, slope=4)
    planned, why, _ = asked(curve, Aim(0.8))
    result = fitted(curve, planned)
    truth = crossing * (1 / 0.85 - 1) ** (1 / 4)
    low, high = result.interval()
    assert why == "its effective length is known to 0.8 octaves"
    assert result.octaves() <= 0.81
    assert low.length <= truth <= high.length
    near = [line for line in planned if truth / 3 < line.length < truth * 3]
    assert sum(planned[line] for line in near) > 0.5 * sum(planned.values())


def test_it_asks_less_than_a_full_run_of_equal_width() -> None:
    """Over twelve crossings; the width is that of a full run with 40 samples on each line."""
    aim, requests = Aim(0.7), []
    for seed, crossing in enumerate(np.geomspace(15, 250, 12)):
        planned, _, _ = asked(logistic(float(crossing), slope=4), aim, seed)
        requests.append(sum(planned.values()))
    assert np.mean(requests) < 0.5 * 40 * len(LINES)


def test_no_long_line_is_asked_where_short_ones_fail() -> None:
    """Long rows cost most."""
    planned, _, _ = asked(logistic(12, slope=4), Aim(0.8))
    assert not any(count for line, count in planned.items() if line.length > 75)


def test_a_model_that_never_fails() -> None:
    """The run ends at the longest line, with few samples."""
    planned, why, _ = asked(lambda lengths: np.full_like(lengths, 1.0), Aim(0.75))
    assert why == "it still reaches 85 % at 500"
    assert all(planned.values())
    assert sum(planned.values()) < 100


def test_a_model_that_always_fails() -> None:
    """Only the shortest lines are asked."""
    planned, why, _ = asked(np.zeros_like, Aim(0.75))
    assert why == "it does not reach 85 % at 5"
    assert sum(planned.values()) < 40


def test_a_dip_at_short_lines_is_found() -> None:
    """A quarter of each wave goes to the shorter line that is least certain."""

    def dip(lengths: Floats) -> Floats:
        return np.where((lengths > 8) & (lengths < 13), 0.3, logistic(150, 6)(lengths))

    _, why, _ = asked(dip, Aim(0.5))
    assert why == "its accuracy has no single threshold"


def test_more_precision_grows_the_same_samples() -> None:
    """The waves of a coarse run are the first waves of a precise one."""
    _, _, coarse = asked(logistic(60), Aim(1.5))
    _, _, precise = asked(logistic(60), Aim(0.6))
    assert precise[: len(coarse)] == coarse
    assert len(precise) > len(coarse)


def test_a_line_has_no_more_samples_than_allowed() -> None:
    """The run ends where the lines near the crossing are full."""
    planned, why, _ = asked(logistic(60, slope=1), Aim(0.2, most_samples=6))
    assert max(planned.values()) == 6
    assert "has 6 samples" in why


def test_nothing_scored_ends_the_condition() -> None:
    """Without an answer nothing can be chosen."""
    more, why = next_samples(None, dict.fromkeys(LINES, 0) | {LINES[0]: 2}, Aim(0.5))
    assert (more, why) == ({}, "nothing could be scored")
