"""Which samples an adaptive run asks next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import numpy as np
import pytest

from eyechart.harness.analysis.adaptive.adaptive import (
    END_SAMPLES,
    FIRST_LINES,
    FIRST_SAMPLES,
    STOPPING,
    UNCLEAR_LEVEL,
    UNCLEAR_SAMPLES,
    Aim,
    Step,
    choose,
    neighbours,
    next_step,
)
from eyechart.harness.analysis.length.curve import Floats
from eyechart.harness.analysis.length.effective_length import has_single_threshold
from eyechart.harness.analysis.length.fit import Fit, fit
from eyechart.harness.analysis.length.one_threshold import LEVEL, LEVEL_OF_CHOSEN
from eyechart.harness.settings.checks import FINEST
from eyechart.harness.settings.judging import THRESHOLD
from eyechart.harness.spec import Cell, Condition, Line, Spread, lines_of
from tests.simulated import LENGTHS, LINES, logistic, simulated

if TYPE_CHECKING:
    from eyechart.harness.analysis.samples.judged_run import JudgedRun


def asked(
    accuracy: Callable[[Floats], Floats], aim: Aim, seed: int = 0, lines: Sequence[Line] = LINES
) -> tuple[dict[Line, int], Step, list[dict[Line, int]]]:
    """All samples of a run that goes on until its end, its last step, and its waves."""
    planned = dict.fromkeys(lines, 0)
    waves: list[dict[Line, int]] = []
    while True:
        samples = simulated(accuracy, planned, seed, lines) if any(planned.values()) else None
        step = next_step(samples, planned, aim)
        if not step.more:
            return planned, step, waves
        waves.append(dict(step.more))
        for line, count in step.more.items():
            planned[line] += count


def fitted(accuracy: Callable[[Floats], Floats], planned: dict[Line, int], seed: int = 0) -> Fit:
    """The fit of what was asked."""
    return fit(simulated(accuracy, planned, seed, list(planned)), THRESHOLD)


def test_it_begins_with_the_shortest_lines() -> None:
    """Two samples on each of three."""
    step = next_step(None, dict.fromkeys(LINES, 0), Aim(0.5))
    assert step.more == dict.fromkeys(LINES[:FIRST_LINES], FIRST_SAMPLES)
    assert not step.why


def test_a_wave_looks_where_the_crossing_may_lie() -> None:
    """On all sides of the estimate, and nowhere outside its interval but for checks."""
    planned = {line: 60 if line.high < 40 else 6 if line.low < 200 else 0 for line in LINES}
    samples = simulated(logistic(80), planned)
    low, high = fit(samples, THRESHOLD).between_quantiles(STOPPING)
    more = next_step(samples, planned, Aim(0.4, wave=16)).more
    near = {line for line in LINES if line.high >= low.length and line.low <= high.length}
    assert sum(more.values()) == 16
    assert more.keys() >= {min(near), max(near)}
    # four of them check line 33; of the others half are spread evenly from 28 to 82
    assert {line.length: count for line, count in more.items()} == {33: 8, 50: 5, 75: 3}


def test_a_line_that_nobody_could_score_is_in_doubt() -> None:
    """Five samples that got no reply say nothing of a line below the interval."""
    planned = dict.fromkeys(LINES, 40)
    scored = {line: count for line, count in planned.items() if line != LINES[2]}
    step = next_step(simulated(logistic(80, 8), scored), planned, Aim(2.0))
    assert step.more == {LINES[2]: 8}


@pytest.mark.parametrize("most", [0, 30, 77, 78, 81])
def test_a_limit_below_the_plan_takes_nothing_back(most: int) -> None:
    """The plan grows up to the limit of requests, and never becomes smaller."""
    planned = dict.fromkeys(LINES, 6)
    condition = Condition({})
    cells = [Cell(condition, line, count) for line, count in planned.items()]
    judged = SimpleNamespace(curve=simulated(logistic(80), planned))
    run = SimpleNamespace(manifest=SimpleNamespace(cells=cells), conditions={condition: judged})
    choice = choose(cast("JudgedRun", run), [condition], LINES, Aim(0.4), most_requests=most)
    assert sum(choice.counts.values()) == max(78, most)
    assert all(choice.counts[cell.key] >= cell.samples for cell in cells)


@pytest.mark.parametrize("crossing", [12, 60, 250])
def test_it_ends_when_the_interval_is_narrow_enough(crossing: float) -> None:
    """With fewer samples than a full run, and most of them near the crossing."""
    curve = logistic(crossing, slope=4)
    planned, step, _ = asked(curve, Aim(0.8))
    result = fitted(curve, planned)
    truth = crossing * (1 / 0.85 - 1) ** (1 / 4)
    low, high = result.interval()
    width = np.log2(high.length / low.length)
    assert step.is_known
    assert step.why == (
        f"its effective length is known to {width:.2f} octaves ({low.length:.0f} to "
        f"{high.length:.0f})"
    )
    assert step.octaves == pytest.approx(width)
    assert result.octaves() <= 0.81
    assert low.length <= truth <= high.length
    near = [line for line in planned if truth / 3 < line.length < truth * 3]
    assert sum(planned[line] for line in near) > 0.5 * sum(planned.values())


def test_it_asks_less_than_a_full_run_of_equal_width() -> None:
    """Over four crossings; the width is that of a full run with 40 samples on each line."""
    aim, requests = Aim(0.7), []
    for seed, crossing in enumerate(np.geomspace(15, 250, 4)):
        planned, _, _ = asked(logistic(float(crossing), slope=4), aim, seed)
        requests.append(sum(planned.values()))
    assert np.mean(requests) < 0.5 * 40 * len(LINES)


def test_by_default_it_is_as_precise_as_a_full_run() -> None:
    """With fewer samples, over six crossings; their mean intervals are about as wide."""
    shares, widths, full = [], [], []
    for seed, crossing in enumerate(np.geomspace(15, 250, 6)):
        curve = logistic(float(crossing), slope=4)
        planned, _, _ = asked(curve, Aim(full_samples=20), seed)
        shares.append(sum(planned.values()) / (20 * len(LINES)))
        widths.append(fitted(curve, planned, seed).octaves())
        full.append(fitted(curve, dict.fromkeys(LINES, 20), seed).octaves())
    assert np.mean(shares) < 0.7
    assert max(shares) <= 1
    assert 0.7 < np.mean(widths) / np.mean(full) < 1.1


@pytest.mark.parametrize("lengths", [(5, 10, 20, 40, 80, 160), (10, 20, 40, 80, 160, 320)], ids=str)
@pytest.mark.parametrize("crossing", [30, 60, 150])
def test_between_exact_lengths_it_ends_no_wider_than_a_full_run(
    lengths: Sequence[int], crossing: float
) -> None:
    """The interval becomes narrower length by length, and there are requests left."""
    lines = lines_of(lengths, "none")
    curve = logistic(crossing, slope=24)
    planned, _, _ = asked(curve, Aim(full_samples=20), lines=lines)
    assert sum(planned.values()) < 0.6 * 20 * len(lines)
    full = fitted(curve, dict.fromkeys(lines, 20)).interval()
    assert fitted(curve, planned).interval() == full


def test_as_many_samples_of_a_line_as_a_full_run_has_are_enough() -> None:
    """Where no line may have more, as with `--samples`."""
    aim = Aim(full_samples=6, most_samples=6)
    _, step, _ = asked(logistic(60, slope=1), aim)
    assert step.is_known
    assert step.why.endswith(" 6 samples, as in a full run")
    _, step, _ = asked(logistic(60, slope=1), Aim(0.4, most_samples=6))
    assert not step.is_known


def test_no_long_line_is_asked_where_short_ones_fail() -> None:
    """Long rows cost most."""
    planned, _, _ = asked(logistic(12, slope=4), Aim(0.8))
    assert not any(count for line, count in planned.items() if line.length > 75)


@pytest.mark.parametrize("longest", [1, 2, 3, 4, 5, 6, 8])
def test_short_lengths_are_known_to_the_length(longest: int) -> None:
    """A run ends when few whole lengths are left, even if they are wider than the precision."""
    lines = lines_of([1, 2, 3, 5, 7, 10, 15, 22, 33], "bands")

    def up_to_longest(lengths: Floats) -> Floats:
        return np.where(lengths <= longest, 1.0, 0.0)

    planned, step, _ = asked(up_to_longest, Aim(0.75), lines=lines)
    low, high = fitted(up_to_longest, planned).interval()
    assert step.is_known
    assert sum(planned.values()) < 80
    assert low.length <= longest <= high.length <= low.length + 4


@pytest.mark.parametrize("spread", ["bands", "none"])
@pytest.mark.parametrize(
    "longest", [*range(5, 41, 4), 40, 48, 60, 75, 100, 150, 200, 250, 300, 500]
)
def test_the_finest_precision_is_reached_at_each_length(longest: int, spread: Spread) -> None:
    """With few samples; the interval may be wider by the distance of the neighbouring lengths, and
    by the rounding of its ends.
    """
    lines = lines_of([line.length for line in LINES], spread)
    perfect = longest if spread == "bands" else max(n for n in LENGTHS if n <= longest)

    def up_to_longest(lengths: Floats) -> Floats:
        return np.where(lengths <= longest, 1.0, 0.0)

    planned, step, _ = asked(up_to_longest, Aim(FINEST), lines=lines)
    result = fitted(up_to_longest, planned)
    low, high = result.interval()
    assert step.is_known
    assert sum(planned.values()) < 200
    assert low.length <= perfect <= high.length
    shorter, longer = neighbours(perfect, lines)
    assert result.octaves() <= FINEST + np.log2(longer / shorter)


def test_a_model_that_never_fails() -> None:
    """The run asks all lines, with fewer than ten samples of each on average."""
    planned, step, _ = asked(lambda lengths: np.full_like(lengths, 1.0), Aim(0.75))
    low, high = fitted(np.ones_like, planned).interval()
    assert (step.is_known, high.sign) == (True, ">")
    assert 500 / 2**0.75 < low.length < 500
    assert step.why == f"its effective length is {low} to > 500; no longer length was asked"
    assert all(planned.values())
    assert planned[LINES[-1]] >= END_SAMPLES
    assert sum(planned.values()) < 10 * len(LINES)


def test_a_claim_about_the_last_line_has_samples_of_it() -> None:
    """Two exact lengths: the interval ends beyond the second where its own answers say so."""
    lines, aim = lines_of([10, 20], "none"), Aim(0.75)
    planned, step, _ = asked(np.ones_like, aim, lines=lines)
    result = fitted(np.ones_like, planned)
    assert result.octaves(STOPPING) <= 0.75
    assert planned[lines[1]] >= END_SAMPLES
    assert step.found == "it still reaches 85 % at 20"
    assert result.interval()[0].sign == ">"
    few = next_step(simulated(np.ones_like, 2, all_lines=lines), dict.fromkeys(lines, 2), aim)
    assert (bool(few.more), few.is_known) == (True, False)


def test_a_gap_counts_where_the_crossing_lies() -> None:
    """Between exact lengths; a wide gap elsewhere allows no wide interval."""
    lines = lines_of([10, 12, 14, 17, 20, 24, 28, 100, 400], "none")
    for crossing, gap in ((18, 17 / 14), (60, 100 / 28)):
        _, step, _ = asked(logistic(crossing, slope=8), Aim(0.6), lines=lines)
        assert step.is_known
        assert 0 < step.octaves <= 0.6 + np.log2(gap)


def test_neighbouring_lengths() -> None:
    """Whole lengths of bands, and exact lengths."""
    bands = [Line(5, 5, 7), Line(10, 8, 14), Line(20, 15, 20)]
    around = {
        length: neighbours(length, bands) for length in (-np.inf, 5, 7.5, 14.5, 19.9, 20, np.inf)
    }
    assert around == {
        -np.inf: (5, 5),
        5: (5, 6),
        7.5: (7, 8),
        14.5: (14, 15),
        19.9: (19, 20),
        20: (20, 20),
        np.inf: (20, 20),
    }
    exact = [Line.exact(length) for length in (10, 11, 40)]
    around = {length: neighbours(length, exact) for length in (9, 10, 10.5, 11, 20, 40)}
    assert around == {
        9: (10, 10),
        10: (10, 11),
        10.5: (10, 11),
        11: (11, 40),
        20: (11, 40),
        40: (40, 40),
    }
    assert neighbours(5.5, [Line(5, 4, 6), Line(6, 5, 7)]) == (5, 6)


def test_a_model_that_always_fails() -> None:
    """Only the shortest lines are asked."""
    planned, step, _ = asked(np.zeros_like, Aim(0.75))
    assert step.why == "it does not reach 85 % at 5"
    assert sum(planned.values()) < 40


def test_a_dip_at_short_lines_is_found() -> None:
    """A quarter of each wave goes to the shorter line that is least certain."""

    def dip(lengths: Floats) -> Floats:
        return np.where((lengths > 8) & (lengths < 13), 0.3, logistic(150, 6)(lengths))

    _, step, _ = asked(dip, Aim(0.5))
    assert (step.why, step.is_known) == ("its accuracy has no single threshold", True)


def test_an_unclear_dip_is_asked_on() -> None:
    """The interval is narrow. The p-value of the test for a single threshold is too large to say
    that there is none, and too small to be sure that there is one.
    """

    def dip(lengths: Floats) -> Floats:
        return np.where((lengths > 16) & (lengths < 27), 0.82, logistic(150, 6)(lengths))

    planned = dict.fromkeys(LINES, 28)
    result = fitted(dip, planned)
    assert result.octaves(STOPPING) <= 2
    assert result.one_threshold(LEVEL_OF_CHOSEN)
    assert not result.one_threshold(UNCLEAR_LEVEL)
    samples = simulated(dip, planned)
    step = next_step(samples, planned, Aim(2.0))
    assert {line.length: count for line, count in step.more.items()} == {15: 8}
    step = next_step(samples, planned, Aim(2.0, most_samples=28))
    assert (step.more, step.is_known) == ({}, True)


def test_lines_that_fit_the_curve_do_not_make_a_dip_clearer() -> None:
    """The four lines around the dip have all the samples that they get while it is unclear. No
    other line is asked instead, above all not the long ones.
    """

    def dip(lengths: Floats) -> Floats:
        return np.where((lengths > 16) & (lengths < 27), 0.83, logistic(150, 6)(lengths))

    planned = {
        line: UNCLEAR_SAMPLES if line.length in {15, 22, 33, 50} else UNCLEAR_SAMPLES - 2
        for line in LINES
    }
    assert not fitted(dip, planned).one_threshold(UNCLEAR_LEVEL)
    step = next_step(simulated(dip, planned), planned, Aim(2.0))
    assert (step.more, step.is_known) == ({}, True)


def test_a_rise_beyond_the_crossing_does_not_use_up_the_shorter_lines() -> None:
    """Asking them does not make it clearer whether there is a single threshold, so they have half
    more than `UNCLEAR_SAMPLES` at most.
    """

    def comb(lengths: Floats) -> Floats:
        return np.where(lengths < 60, 1.0, np.where((lengths > 110) & (lengths < 150), 0.9, 0.1))

    for seed in range(2):
        planned, step, _ = asked(comb, Aim(0.75), seed)
        below = [planned[line] for line in LINES if line.high < 30]
        assert step.is_known
        assert max(below) <= 1.5 * UNCLEAR_SAMPLES


def test_more_precision_grows_the_same_samples() -> None:
    """The first waves of a coarse and of a precise run are the same, until the interval of the
    coarse run is narrow enough. After that the coarse run asks only lines below its interval.
    """
    curve = logistic(60, slope=3)
    planned, _, coarse = asked(curve, Aim(1.0))
    _, _, precise = asked(curve, Aim(0.8))
    differ = (place for place, wave in enumerate(coarse) if wave != precise[place])
    same = next(differ, len(coarse))
    assert same > len(coarse) / 2
    assert len(precise) > len(coarse)
    below, _ = fitted(curve, planned).between_quantiles(STOPPING)
    for line in set().union(*coarse[same:]):
        assert line.high < below.length


def test_a_line_has_no_more_samples_than_allowed() -> None:
    """The run ends where the lines near the crossing are full."""
    planned, step, _ = asked(logistic(60, slope=1), Aim(0.4, most_samples=6))
    assert max(planned.values()) == 6
    assert not step.is_known
    assert step.octaves > 0.2
    assert step.why.startswith("its effective length is ")
    assert step.why.endswith("; every line near the crossing has 6 samples")
    _, step, _ = asked(logistic(60, slope=1), Aim(0.4, most_samples=1))
    assert step.why.endswith("has 1 sample")


@pytest.mark.parametrize(("longest", "items"), [(12, 5), (40, 2), (40, 5), (100, 1)])
def test_few_items_of_each_length_are_enough(longest: int, items: int) -> None:
    """All of a line are asked where more would be wanted, and its neighbours as well."""
    lines = lines_of(range(5, 105), "none")
    aim = Aim(1.0, items=dict.fromkeys(lines, items))
    planned, step, _ = asked(
        lambda lengths: np.where(lengths <= longest, 1.0, 0.0), aim, lines=lines
    )
    assert step.is_known, step.why
    assert max(planned.values()) == items
    assert step.octaves <= 1
    low, high = fitted(lambda lengths: np.where(lengths <= longest, 1.0, 0.0), planned).interval()
    assert low.length <= longest <= high.length
    if longest < 60:
        assert not planned[lines[-1]]


def test_lines_that_have_no_more_items_are_named_as_such() -> None:
    """Also where other lines have many, and `--samples` limits those."""
    lines = lines_of([5, 8, 12, 18, 27, 41, 61, 91, 136], "none")
    aim = Aim(0.4, most_samples=10, items={line: 20 if line.low < 20 else 2 for line in lines})
    _, step, _ = asked(lambda lengths: np.where(lengths <= 50, 1.0, 0.0), aim, lines=lines)
    assert step.full == "every item of the lines near the crossing was asked"
    assert step.needs_items
    _, step, _ = asked(lambda lengths: np.where(lengths <= 10, 1.0, 0.0), aim, lines=lines)
    assert (step.full, step.needs_items) == ("every line near the crossing has 10 samples", False)


def test_where_lines_near_the_crossing_are_full_longer_ones_are_opened() -> None:
    """Rather than nothing."""
    lines = lines_of(range(5, 105, 3), "none")
    planned, step, _ = asked(
        lambda lengths: np.where(lengths <= 50, 1.0, 0.0), Aim(0.75, most_samples=1), lines=lines
    )
    assert step.full == "every line near the crossing has 1 sample"
    assert sum(planned[line] for line in lines if line.low > 50) > 2


@pytest.mark.parametrize("longest", [1, 5, 1000])
def test_an_open_end_needs_its_samples(longest: int) -> None:
    """An interval that ends beyond the first or the last line is not known from few replies on
    that line, where `--samples` allows no more.
    """

    def up_to_longest(lengths: Floats) -> Floats:
        return np.where(lengths <= longest, 1.0, 0.0)

    planned, step, _ = asked(up_to_longest, Aim(1.0, most_samples=END_SAMPLES - 1))
    low, high = fitted(up_to_longest, planned).interval()
    if {low.sign, high.sign} != {"="}:
        assert not step.is_known
        assert step.why.endswith(f"; the lines in doubt have {END_SAMPLES - 1} samples")
    _, step, _ = asked(up_to_longest, Aim(1.0, most_samples=END_SAMPLES))
    assert step.is_known


def test_lengths_that_are_close_together_are_asked_until_something_is_known() -> None:
    """Though all lines together are narrower than the precision."""
    for spread in ("none", "bands"):
        lines = lines_of([36, 38, 40, 42, 44], spread)
        planned, step, _ = asked(
            lambda lengths: np.where(lengths <= 40, 1.0, 0.0), Aim(0.75), lines=lines
        )
        low, high = fitted(lambda lengths: np.where(lengths <= 40, 1.0, 0.0), planned).interval()
        assert step.is_known
        assert {low.sign, high.sign} & {"="}
        assert sum(planned.values()) < 60


@pytest.mark.parametrize(
    ("lengths", "spread", "longest", "why"),
    [
        ([5, 10, 20], "none", 15, "no length between 10 and 20 is asked"),
        ([5, 10, 20], "bands", 7, "more samples make it hardly narrower"),
        ([100, 200], "none", 150, "no length between 100 and 200 is asked"),
        ([50, 55, 61], "bands", 55, ""),
    ],
)
def test_why_an_interval_is_wider_is_said(
    lengths: list[int], spread: Spread, longest: int, why: str
) -> None:
    """For example that the lengths asked are too far apart."""
    _, step, _ = asked(
        lambda asked_of: np.where(asked_of <= longest, 1.0, 0.0),
        Aim(0.4),
        lines=lines_of(lengths, spread),
    )
    assert step.is_known
    assert step.why.partition("; ")[2] == why
    assert (step.octaves > 0.4) == bool(why)


@pytest.mark.parametrize(
    ("at_short", "cut", "why"),
    [
        (1.0, 5.5, "its effective length is known to 0.49 octaves (5 to 7)"),
        (0.7, 7.5, "its effective length is < 5 to 6; no shorter length was asked"),
        (0.7, 5.5, "it does not reach 85 % at 5"),
        (1.0, 1e9, "its effective length is 359 to > 500; no longer length was asked"),
    ],
)
def test_an_end_beyond_the_lines_is_said(at_short: float, cut: float, why: str) -> None:
    """At the short and at the long end."""
    _, step, _ = asked(lambda lengths: np.where(lengths < cut, at_short, 0.05), Aim(1.0))
    assert (step.is_known, step.why) == (True, why)


def test_nothing_scored_ends_the_condition() -> None:
    """Without an answer nothing can be chosen."""
    step = next_step(None, dict.fromkeys(LINES, 0) | {LINES[0]: 2}, Aim(0.5))
    assert (step.more, step.is_known) == ({}, False)
    assert step.why == "nothing is known of its effective length; nothing could be scored"


def test_chosen_numbers_of_samples_need_a_stricter_test() -> None:
    """The same rise is called one at the level of a full run, and not at that of chosen numbers."""
    counts = {line: 20 if place % 3 else 8 for place, line in enumerate(LINES)}
    samples = simulated(lambda lengths: np.full_like(lengths, 0.88), counts, 84)
    found = fit(samples, THRESHOLD)
    assert has_single_threshold(samples, found, THRESHOLD)
    assert not has_single_threshold(samples, found, THRESHOLD, LEVEL)
