"""The simulations behind statistical claims: their truths, their answers, and their tables."""

from __future__ import annotations

import csv
import math
import re
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from scipy.special import logit

from eyechart.harness.analysis.adaptive.adaptive import Aim
from eyechart.harness.analysis.adaptive.next_ranked import RANKS
from eyechart.harness.analysis.comparison.paired_curves import label_test
from eyechart.harness.analysis.findings.level import level
from eyechart.harness.analysis.length.curve import SIGNIFICANT, Curve, areas_under
from eyechart.harness.analysis.length.effective_length import effective_length
from eyechart.harness.analysis.length.fit import fit
from eyechart.harness.analysis.length.interval import Bound
from eyechart.harness.settings.judging import THRESHOLD
from eyechart.harness.spec import Line
from tests.benchmarks.every_length import Truth, exact_lengths, truth_of
from tests.benchmarks.simulation import (
    adaptive,
    asked_pairs,
    baselines,
    coverage,
    dips,
    early_line,
    equivalence,
    ranges,
    ranked,
    right_further,
    unequal,
    unpaired,
)
from tests.benchmarks.simulation.__main__ import PAGE
from tests.benchmarks.simulation.audited import PERIODIC
from tests.benchmarks.simulation.draws import (
    LINES,
    Setting,
    answers,
    draw,
    holds,
    holds_what_it_says,
    line_accuracies,
    normal_field,
    sample_lengths,
    simulate,
    simulate_pair,
    true_tested_length,
)
from tests.benchmarks.simulation.shapes import SHAPES, UNEVEN
from tests.benchmarks.simulation.shapes import Truth as Simulated
from tests.benchmarks.simulation.table import SETTING, Column, Row, folded, lines, markdown, renew

FALLING = [name for name, shape in SHAPES.items() if shape.moves and name not in UNEVEN]
COMBS = [name for name in UNEVEN if name.startswith("comb")]


class TestShapes:
    @pytest.mark.parametrize("name", FALLING)
    def test_a_falling_shape_crosses_the_threshold_at_its_truth(self, name: str) -> None:
        truth = SHAPES[name].draw(3)
        before, behind = math.floor(truth.crossing), math.ceil(truth.crossing)
        assert (np.diff(truth.accuracies[1:]) <= 0).all()
        assert truth.accuracies[before] >= THRESHOLD > truth.accuracies[behind]

    @pytest.mark.parametrize("name", COMBS)
    def test_a_comb_crosses_the_threshold_in_the_mean_of_its_noise(self, name: str) -> None:
        rng = np.random.default_rng(0)
        drawn = [SHAPES[name].accuracies(100.0, rng)[100] for _ in range(4000)]
        assert np.mean(drawn) == pytest.approx(THRESHOLD, abs=0.01)
        assert np.std(drawn) > 0.05

    def test_a_factor_moves_the_crossing_and_keeps_the_noise(self) -> None:
        first, second = (SHAPES["comb 2"].draw(5, factor) for factor in (1.0, 2.0))
        assert second.crossing == pytest.approx(first.crossing / 2)
        changes = np.diff(logit([one.accuracies[50:60] for one in (first, second)]), axis=0)
        assert changes == pytest.approx(-3 * math.log(2))

    def test_a_dip_is_below_the_threshold_before_its_longer_lengths_reach_it(self) -> None:
        accuracies = SHAPES["dip"].draw(0).accuracies
        assert (accuracies[[16, 25]] > THRESHOLD).all()
        assert (accuracies[17:25] < THRESHOLD).all()

    def test_flat_shapes_have_their_truth_outside_of_the_range(self) -> None:
        assert [SHAPES[f"flat {level}"].draw(0).crossing for level in ("0.90", "0.80")] == [
            math.inf,
            0,
        ]


class TestAnswers:
    def test_answers_have_the_true_accuracy_and_rows_their_correlation(self) -> None:
        rng, truth = np.random.default_rng(1), SHAPES["flat 0.80"].draw(0)
        lengths = sample_lengths(3000, 0)
        drawn = [
            answers(truth, lengths, normal_field(rng, 3000, together)) for together in (0.0, 0.6)
        ]
        assert [one.mean() for one in drawn] == pytest.approx([0.8, 0.8], abs=0.015)
        apart, together = (np.corrcoef(one[:, 0], one[:, 5])[0, 1] for one in drawn)
        assert abs(apart) < 0.06
        assert 0.3 < together < 0.45  # the correlation of 0.6 is that of the normal variables

    def test_sides_go_together_sample_by_sample(self) -> None:
        setting = Setting("flat 0.80", 0.0, 400)
        correlations = []
        for sides in (0.0, 0.5):
            first, second = simulate_pair(setting, 0, sides=sides)
            correlations.append(np.corrcoef(first.correct.ravel(), second.correct.ravel()))
        assert abs(correlations[0][0, 1]) < 0.06
        assert correlations[1][0, 1] > 0.2

    def test_samples_have_lengths_in_the_bands_of_their_lines(self) -> None:
        _, curve = simulate(Setting("slope 2", 0.6, 20), 7)
        for place, line in enumerate(LINES):
            assert line.low <= curve.true_lengths[:, place].min()
            assert curve.true_lengths[:, place].max() <= line.high

    def test_the_true_tested_length_is_the_last_line_before_one_below_the_threshold(self) -> None:
        assert true_tested_length(SHAPES["dip"].draw(0)) == 15
        assert true_tested_length(SHAPES["flat 0.90"].draw(0)) == math.inf
        assert true_tested_length(SHAPES["flat 0.80"].draw(0)) == 0


EXACT, BELOW, ABOVE = Bound("=", 20), Bound("<", 5), Bound(">", 500)


@pytest.mark.parametrize(
    ("interval", "truth", "expected"),
    [
        ((EXACT, Bound("=", 30)), 20, True),
        ((EXACT, Bound("=", 30)), 30.5, False),
        ((EXACT, Bound("=", 30)), 19.9, False),
        ((BELOW, EXACT), 0, True),
        ((EXACT, ABOVE), math.inf, True),
        ((EXACT, Bound("=", 500)), math.inf, False),
        ((BELOW, BELOW), 0, True),
        ((BELOW, BELOW), 8, False),
        ((ABOVE, ABOVE), 300, False),
        ((ABOVE, ABOVE), math.inf, True),
        ((Bound("=", 5), EXACT), 0, False),
    ],
)
def test_what_an_interval_holds(
    interval: tuple[Bound, Bound], truth: float, expected: bool
) -> None:
    assert holds(interval, truth) is expected


def test_a_run_without_a_single_threshold_says_the_tested_length() -> None:
    """The interval of a run on a dip holds the tested length, and not the crossing."""
    dip, steep = (simulate(Setting(shape, 0.0, 100), 0) for shape in ("dip", "slope 4"))
    for (truth, curve), one_threshold in ((dip, False), (steep, True)):
        found = effective_length(curve)
        assert found.one_threshold is one_threshold
        assert holds_what_it_says(found, truth)
        assert holds(found.length_ci, truth.crossing) is one_threshold


class TestMeasures:
    def test_a_row_of_coverage_is_the_same_each_time(self) -> None:
        setting = Setting("step", 0.6, 20)
        first, second = (coverage.measure(setting, 4) for _ in range(2))
        assert first == second
        assert first["runs"] == 4

    @pytest.mark.parametrize(
        ("shape", "changed", "missed"),
        [
            ("slope 2", {}, []),
            ("slope 2", {"held": 0.9}, ["coverage"]),
            ("slope 2", {"held": 0.9, "no_one_threshold": 0.9}, ["coverage", "one threshold"]),
            ("dip", {"held": 0.1, "no_one_threshold": 0.9}, []),
            ("dip", {"held": 0.1, "no_one_threshold": 0.7}, ["coverage"]),
            ("slope 2", {"ratio": 2.1, "tested_held": 0.9}, ["width", "tested length"]),
            ("flat 0.90", {"ratio": None, "low": 0.2}, ["low"]),
            ("slope 2", {"low": 0.2}, []),
        ],
    )
    def test_what_a_row_misses(
        self, shape: str, changed: dict[str, float | None], missed: list[str]
    ) -> None:
        good: dict[str, float | None] = {
            "held": 0.95,
            "no_one_threshold": 0.01,
            "ratio": 1.5,
            "low": 0.01,
            "tested_held": 0.97,
        }
        row = {**good, **changed}
        assert list(coverage._missed(Setting(shape, 0.0, 20), row)) == missed

    def test_a_side_whose_crossing_is_four_times_longer_is_seen_to_see_further(self) -> None:
        case = right_further.Case(Setting("slope 4", 0.0, 40), 0.0)
        assert [right_further._said(case, run, 4.0) for run in range(3)] == 3 * [(1, True)]
        assert [right_further._said(case, run, 0.25) for run in range(3)] == 3 * [(-1, True)]

    @pytest.mark.parametrize("name", sorted({*unequal.KINDS} - {*PERIODIC, "rows fail"}))
    def test_shapes_with_other_curves_cross_at_the_same_length(self, name: str) -> None:
        truth = unequal.KINDS[name].draw(5)
        before, behind = math.floor(truth.crossing), math.ceil(truth.crossing)
        assert truth.accuracies[before] >= THRESHOLD > truth.accuracies[behind]

    def test_rows_that_always_fail_are_part_of_the_crossing(self) -> None:
        truth = unequal.KINDS["rows fail"].draw(5)
        at = (1 - unequal.FAILING) * truth.accuracies
        assert at[math.floor(truth.crossing)] >= THRESHOLD > at[math.ceil(truth.crossing)]
        case = unequal.Case("rows fail", "window", 0.0, 400)
        first, second = unequal.draw_pair(case, 0)
        assert (first.correct.sum(axis=1) == 0).mean() == pytest.approx(0.12, abs=0.05)
        assert second.correct[:, 0].all()

    def test_asking_on_stays_within_the_price(self) -> None:
        case = unequal.Case("slope 4", "slope 4", 0.0, asked_pairs.SAMPLES)
        result = asked_pairs.compared(case, 1, 1.5)
        assert 0 <= result.requests <= asked_pairs.FULL
        more = sum(line.n for line, _ in result.after.lines)
        assert more == asked_pairs.FULL + result.requests // 2

    def test_ten_models_are_asked_within_the_price(self) -> None:
        curves = ranked.draw_models(Setting("step", 0.0, ranked.SAMPLES), 0)
        before = ranked.Look(curves, [[ranked.SAMPLES] * len(LINES)] * ranked.MODELS).found(0)
        found = ranked.asked(curves, RANKS)
        assert 0 < found.requests <= ranked.MORE
        assert found.width < before.width
        assert not found.false

    def test_a_lower_side_has_an_area_less_by_exactly_the_margin(self) -> None:
        truth = SHAPES["guess 20 %"].draw(2)
        nominal = np.array([line.length for line in LINES], float)
        both = np.array([line_accuracies(one) for one in (truth, equivalence.lower(truth, 0.05))])
        first, second = areas_under(nominal, both)
        assert first - second == pytest.approx(0.05)

    def test_releases_are_worse_where_the_test_of_labels_says_so(self) -> None:
        """All but those within the noise of its exchanges."""
        rows = baselines.differences(("slope 4", 0.6, 4, 20), 5)[:40]
        found = baselines.are_worse(rows)
        one = np.ones((rows.shape[1], 1))
        for differences, is_worse in zip(rows, found, strict=True):
            sides = (1000 * differences[:, None], 0 * one)
            first, second = (Curve((Line.exact(1),), side, one, one) for side in sides)
            p, _ = label_test([(first, second)])
            if abs(p - SIGNIFICANT) > 0.02:
                assert is_worse == (p < SIGNIFICANT and differences.sum() > 0)
        assert rows.mean() == pytest.approx(0, abs=0.05)

    def test_a_side_that_is_much_lower_is_worse(self) -> None:
        setting = Setting("flat 0.95", 0.0, 100)
        truth = setting.family.draw(0)
        changes = [
            equivalence.compare(*simulate_pair(setting, 0, second)).change(0.05)
            for second in (truth, Simulated(truth.accuracies * 0.7, 0.0))
        ]
        assert changes == ["equivalent", "worse"]

    def test_what_an_adaptive_run_says_at_a_plateau(self) -> None:
        """Its interval may end within the plateau, and a sentence has the plateau. A full run has
        it in its interval.
        """
        said = {True: 0, False: 0}
        for run in range(12):
            truth, correct, lengths = draw(Setting("plateau 86 %, 1 octave", 0.0, 400), run)
            curve_of = partial(adaptive.asked, correct, lengths)
            (counts,) = adaptive.counts_at_the_end(curve_of, [Aim(full_samples=20)])
            found = effective_length(curve_of(counts))
            if not holds_what_it_says(found, truth):
                is_told = adaptive.holds_or_told(found, truth)
                said[is_told] += 1
                finding = level({"": found}, THRESHOLD, "symbols")
                assert ("alone allow an effective length" in str(finding)) == is_told
            full = effective_length(curve_of(np.full(len(LINES), 20)))
            assert level({"": full}, THRESHOLD, "symbols") is None
        assert said[True] > said[False]

    def test_a_steep_fall_is_not_called_near_the_threshold(self) -> None:
        """The replies alone allow more lengths, with an accuracy of 97 % before it."""
        fits = []
        for run in range(6):
            _, correct, lengths = draw(Setting("step", 0.0, 400), run)
            curve_of = partial(adaptive.asked, correct, lengths)
            (counts,) = adaptive.counts_at_the_end(curve_of, [Aim(full_samples=20)])
            fits.append(fit(curve_of(counts), THRESHOLD))
        assert all(one.is_chosen for one in fits)
        assert sum(one.level_between() is not None for one in fits) <= 1

    def test_an_adaptive_run_ends_when_its_interval_is_as_narrow_as_asked(self) -> None:
        setting = Setting("slope 4", 0.0, adaptive.MOST_SAMPLES)
        truth, full = simulate(setting, 0)
        lengths = full.true_lengths.astype(np.int64)

        def asked(counts: adaptive._Counts) -> Curve:
            return adaptive.asked(full.correct, lengths, counts)

        loose, strict = adaptive.counts_at_the_end(asked, [Aim(1.5), Aim(0.7)])
        assert (loose <= strict).all()
        assert loose.sum() < strict.sum()
        for counts, precision in ((loose, 1.5), (strict, 0.7)):
            fitted = fit(asked(counts), THRESHOLD)
            assert fitted.octaves() <= precision
            assert holds(fitted.interval(), truth.crossing)

    def test_the_samples_asked_are_the_first_of_each_line(self) -> None:
        _, full = simulate(Setting("slope 2", 0.0, 10), 0)
        counts = np.array([2, 5] + [0] * (len(LINES) - 2))
        curve = adaptive.asked(full.correct, full.true_lengths.astype(np.int64), counts)
        assert curve.lines == LINES[:2]
        assert curve.n.tolist() == [2, 5]
        assert (curve.correct[:2, 0] == full.correct[:2, 0]).all()
        assert np.isnan(curve.true_lengths[2:, 0]).all()


class TestTables:
    COLUMNS = (*SETTING, Column("held", "held", ".2f"), Column("missed", "missed"))
    ROWS: tuple[Row, ...] = (
        {"shape": "step", "rows": 0.0, "samples": 20, "held": 0.951, "missed": ""},
        {"shape": "step", "rows": 0.0, "samples": 40, "held": None, "missed": "width"},
    )

    def test_rows_of_one_setting_are_folded(self) -> None:
        assert list(lines(self.COLUMNS, self.ROWS))[2:] == [
            "| step | 0.0 | 20 | 0.95 |  |",
            "| step | 0.0 | 40 | – | width |",
        ]
        assert list(folded(self.COLUMNS, self.ROWS)) == [
            ["shape", "rows go together", "held", "missed"],
            ["step", "0.0", "0.95 / –", "– / width"],
        ]

    def test_a_table_of_the_page_is_its_file(self) -> None:
        """All of them, the laboratory's too."""
        tables = re.findall(r"<!-- (\w+) -->\n(.*?)<!-- end -->", PAGE.read_text(), re.DOTALL)
        assert len(tables) > 20
        for name, text in tables:
            with PAGE.with_name(f"{name}.csv").open(newline="") as file:
                cells = [*csv.reader(file)]
            assert [*markdown(cells)] == [line for line in text.split("\n") if line[:1] == "|"]

    def test_only_the_block_of_its_name_is_renewed(self, tmp_path: Path) -> None:
        page = tmp_path / "page.md"
        page.write_text("a\n<!-- one -->\nold\n<!-- end -->\n<!-- two -->\nb\n<!-- end -->\n")
        renew(page, "two", "new\n")
        assert page.read_text() == (
            "a\n<!-- one -->\nold\n<!-- end -->\n<!-- two -->\nnew\n<!-- end -->\n"
        )
        with pytest.raises(SystemExit, match="no place between '<!-- three -->'"):
            renew(page, "three", "new\n")


def _exact(right: np.ndarray, lengths: np.ndarray) -> Curve:
    lines = tuple(Line.exact(int(length)) for length in lengths[0])
    return Curve(lines, right.astype(float), np.ones(right.shape), lengths.astype(float))


class TestEveryLength:
    def test_the_truth_of_a_step_is_its_last_length(self) -> None:
        lengths = np.broadcast_to(np.arange(5, 60), (40, 55))
        rng = np.random.default_rng(0)
        right = rng.random((40, 55)) < np.where(lengths[0] <= 30, 0.97, 0.3)
        truth = truth_of(_exact(right, lengths))
        assert truth.one_threshold
        assert (truth.low, truth.length, truth.high) == (30, 30, 30)
        assert truth.agrees((Bound("=", 20), Bound("=", 30)))
        assert not truth.agrees((Bound("=", 31), Bound("=", 40)))

    def test_a_curve_that_rises_again_has_no_single_threshold(self) -> None:
        lengths = np.broadcast_to(np.arange(5, 60), (40, 55))
        rng = np.random.default_rng(0)
        right = rng.random((40, 55)) < np.where((lengths[0] > 15) & (lengths[0] < 24), 0.5, 0.97)
        assert not truth_of(_exact(right, lengths)).one_threshold

    def test_a_truth_outside_of_the_range_agrees_with_a_bound(self) -> None:
        truth = Truth(math.inf, math.inf, math.inf, one_threshold=True)
        assert truth.agrees((EXACT, ABOVE))
        assert not truth.agrees((EXACT, Bound("=", 500)))

    def test_lengths_are_all_to_a_hundred_and_every_kth_beyond(self) -> None:
        assert exact_lengths([98, 500], 200) == [98, 99, 100, 300, 500]
        assert exact_lengths([10, 12, 40], 5) == list(range(10, 41))


@pytest.mark.parametrize("asked", ranges.ASKED)
def test_crossings_near_the_ends_are_drawn_there(asked: str) -> None:
    case = ranges.Case(Setting("step", 0.0, 20), asked)
    shortest, longest = case.ends
    for zone in ranges.ZONES:
        truth, curve = case.draw(3, zone)
        low, high = case.crossings(zone)
        assert low <= truth.crossing <= high
        assert (low < shortest, high > longest) == (zone == "below", zone == "above")
        assert curve.lines == tuple(case.lines)
        assert truth.accuracies[math.ceil(low) - 1] == 0.97
    row = ranges.measure(case, 2)
    assert {float(row[zone] or 0) for zone in ("below", "above")} == {1.0}


def test_flat_accuracies_are_beyond_one_end() -> None:
    rows = list(ranges.rows(["flat 0.90", "flat 0.80", "dip"], 2, map))
    scattered = len(ranges.SCATTERED)
    lines = len(ranges.ASKED) - scattered
    assert len(rows) == 2 * (lines * len(coverage.SAMPLES) + scattered)
    assert {row["shape"] for row in rows if "above" in row} == {"flat 0.90"}
    assert {row["shape"] for row in rows if "below" in row} == {"flat 0.80"}


@pytest.mark.parametrize("name", list(dips.DIPS))
def test_an_uneven_shape_is_below_the_threshold_only_in_its_dip_until_it_falls(name: str) -> None:
    dip = dips.DIPS[name]
    truth = dip.shape.draw(0)
    below = np.flatnonzero(truth.accuracies < THRESHOLD)
    inside = below[below <= dip.last]
    assert (inside[0], inside[-1]) == (dip.first, dip.last)
    assert below[len(inside)] > 2 * dip.last
    assert truth.crossing == dip.first


def test_a_row_of_dips_says_how_often_they_are_found_and_of_others_only_how_often_falsely() -> None:
    deep, fall = (dips.measure(Setting(name, 0.0, 60), 4) for name in ("bad start", "Weibull 3"))
    assert (deep["said"], deep["told"], deep["held"], deep["missed"]) == (1, 1, 1, "")
    assert (fall["said"], fall["told"], fall["held"], fall["missed"]) == (0, None, None, "")


@pytest.mark.parametrize("name", ["Gompertz 1.2", "power"])
def test_a_falling_shape_of_that_table_crosses_the_threshold_at_its_truth(name: str) -> None:
    truth = dips.FALLING[name].draw(3)
    assert (np.diff(truth.accuracies[1:]) <= 0).all()
    reached = np.flatnonzero(truth.accuracies >= THRESHOLD - 1e-12)[-1]
    assert reached == math.floor(truth.crossing)


def test_an_early_line_is_compared_with_the_same_answers_without_it() -> None:
    setting = Setting("slope 4", 0.0, early_line.SAMPLES)
    row = early_line.measure(setting, 12)
    _, samples = early_line.draw(setting, 0)
    assert samples.n.tolist() == [1, *(5 * [16])]
    assert early_line.without_reply(samples).n.tolist() == [0, *(5 * [16])]
    assert float(row["moved_95"] or 0) > 0
    assert float(row["by_reply"] or 0) < float(row["moved_95"] or 0)


def test_unpaired_sides_have_lines_and_answers_of_their_own() -> None:
    setting = Setting("step", 0.0, unpaired.SAMPLES)
    truth = setting.family.draw(1)
    first, second = unpaired.draw(setting, 0, (truth, truth))
    assert (first.lines, second.lines) == unpaired.SIDES
    assert {line.length for line in first.lines} & {line.length for line in second.lines} == {
        *(32, 64, 128),
    }
    row = unpaired.measure(setting, 10)
    assert float(row["false"] or 0) <= 0.1
    assert {"power_1.25", "power_1.5", "power_2.0"} <= set(row)
