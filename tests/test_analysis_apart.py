"""Whether answers order the rows: pairs, shares, patterns, the resolution and the length."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eyechart
from eyechart.harness.analysis.length.curve import Floats
from eyechart.harness.analysis.length.interval import reach_text
from eyechart.harness.analysis.order.order import BROKEN, CONSTANT, HEAPED, REVERSED, Order, order
from eyechart.harness.analysis.order.pairs import Replies
from eyechart.harness.errors import UsageError
from eyechart.harness.score.outcomes import Outcome
from eyechart.harness.spec import Line, lines_of
from eyechart.providers.base import Request
from tests.benchmarks.simulation.apart import (
    absurd,
    guess,
    guess_by_row,
    heaped,
    of_some,
    weber,
)
from tests.conftest import Lab, right
from tests.simulated import LINES, Observer, counted, some_of

FEW = tuple(lines_of((5, 6, 10, 12, 20, 24), "none"))
FIXED = tuple(lines_of((10, 20, 30, 40, 60, 90), "none"))


def right_ones(targets: Floats, _: np.random.Generator) -> Floats:
    return targets


MIDDLE = LINES[7:10]
"""A line with its neighbours: rows of more distant lines are not compared with its own."""


def found(observer: Observer, n: int = 20, seed: int = 0, lines: Sequence[Line] = LINES) -> Order:
    result = order(counted(observer, n, seed, lines=lines))
    assert result is not None
    return result


def dense(lengths: Floats, rng: np.random.Generator) -> Floats:
    """Counts from half of the length to nine tenths."""
    return np.rint(lengths * rng.uniform(0.5, 0.9, lengths.shape))


class TestPairs:
    def test_they_are_all_pairs_of_different_rows_that_differ_by_a_fifth(self) -> None:
        """As by looking at each two replies."""
        samples = counted(weber(0.2), 6)
        assert samples.numbers is not None
        replies = Replies.of(samples)
        assert replies is not None
        pairs = replies.pairs()
        targets, answers = samples.numbers.targets, samples.numbers.answers
        expected = []
        for first in range(len(targets)):
            for second in range(len(targets)):
                ratio = targets[second] / targets[first]
                if 1.12 <= ratio <= 1.29 and samples.indexes[first] != samples.indexes[second]:
                    difference = answers[second] - answers[first]
                    expected.append(
                        (
                            round(math.sqrt(targets[first] * targets[second]), 6),
                            0.5 + np.sign(difference) / 2,
                        )
                    )
        assert len(expected) > 100
        assert sorted(zip(pairs.places.round(6), pairs.right, strict=True)) == sorted(expected)

    def test_rows_of_other_data_are_different_though_their_index_is_the_same(self) -> None:
        own = Replies.of(counted(right_ones, 6, own_rows=True))
        same = Replies.of(counted(right_ones, 6))
        assert own is not None
        assert same is not None
        assert len(own.pairs()) > len(same.pairs())

    def test_a_longer_row_of_fixed_length_tells_nothing(self) -> None:
        """Who knows only the length of a row orders none of one line, and pairs of two lines are
        left out.
        """
        samples = counted(right_ones, 40, lines=FIXED, targets=dense)
        assert samples.numbers is not None
        by_length = replace(samples.numbers, answers=samples.lengths * 0.7)
        result = order(replace(samples, numbers=by_length))
        assert result is not None
        assert {line.share for line in result.lines.values() if line.pairs} == {0.5}
        assert result.apart.length_ci[0].sign == "<"

    def test_rows_of_ones_at_exact_lengths_are_compared_between_lines(self) -> None:
        """There is no other pair, since all rows of a line are alike."""
        lines = tuple(lines_of((10, 12, 14, 17, 20), "none"))
        result = order(counted(right_ones, 5, lines=lines))
        assert result is not None
        assert result.apart.length is not None
        assert result.apart.length.sign == ">"

    def test_the_work_is_bounded(self) -> None:
        """3,000 rows a line are compared as 100 are; lines of exact lengths share 4,000 replies."""
        many, exact = (
            Replies.of(counted(right_ones, n, lines=lines))
            for n, lines in ((3000, LINES), (20, tuple(Line.exact(one) for one in range(1, 501))))
        )
        assert many is not None
        assert exact is not None
        assert len(many.rows) == 100 * len(LINES)
        assert len(exact.rows) == 4000


class TestLength:
    def test_who_is_right_tells_all_rows_apart(self) -> None:
        result = found(right_ones)
        assert str(result.apart.length).startswith("> ")
        assert [line.share for line in result.lines.values()] == [1.0] * len(LINES)

    def test_it_is_where_three_quarters_of_the_pairs_are_ordered(self) -> None:
        """At about 100, see the simulation."""
        results = [found(weber(0.2, 1.0), seed=seed).apart for seed in range(5)]
        for one in results:
            low, high = one.length_ci
            assert low.length <= 100 <= high.length < 300
            assert low.sign == high.sign == "="

    @pytest.mark.parametrize("observer", [guess, guess_by_row, absurd, of_some(100)])
    def test_who_knows_nothing_of_the_row_has_no_lower_end(self, observer: Observer) -> None:
        for seed in range(5):
            apart = found(observer, seed=seed).apart
            assert apart.length_ci[0].sign == "<"
            assert apart.length is None or apart.length.sign == "<"

    def test_an_offset_is_no_lost_order(self) -> None:
        """Answers a tenth of the right ones."""
        apart = found(lambda targets, _: targets / 10).apart
        assert apart.length is not None
        assert apart.length.sign == ">"

    def test_one_line_leaves_it_open(self) -> None:
        result = order(counted(right_ones, 20, lines=LINES[6:7]))
        assert result is not None
        assert result.apart.length is None
        (line,) = result.lines.values()
        assert line.share == 1.0

    def test_one_row_in_all_pairs_says_no_more_than_one_reply(self) -> None:
        """Nine rows of 5 symbols and one of 6, whose answer alone decides all nine pairs."""
        every = counted(lambda targets, _: np.where(targets == 6, 1, targets), 10, lines=FEW)
        result = order(some_of(every, (every.lengths != 6) | (every.indexes == 0)))
        assert result is not None
        (wild,) = (line for line in result.lines.values() if line.pairs == 9)
        assert wild.share == 0
        assert wild.share_ci[1] > 0.75
        assert {line.pattern for line in result.lines.values()} == {""}

    def test_rows_that_are_alike_weigh_as_few(self) -> None:
        """A guess by row is right or wrong at all lines alike, so intervals are wider."""

        def noisy(own: float) -> Observer:
            def observer(targets: Floats, rng: np.random.Generator) -> Floats:
                row = own * rng.standard_normal((len(targets), 1))
                each = math.sqrt(1 - own**2) * rng.standard_normal(targets.shape)
                return np.asarray(targets * np.exp(0.15 * (row + each)))

            return observer

        wide = [
            np.mean(
                [
                    np.log2(high.length / low.length)
                    for seed in range(8)
                    for low, high in [found(noisy(own), seed=seed).apart.length_ci]
                ]
            )
            for own in (0.0, 0.99)
        ]
        assert wide[1] > wide[0]

    @pytest.mark.parametrize(("outcome", "is_limited"), [("REFUSED", True), ("UNPARSED", False)])
    def test_replies_that_are_refused_leave_a_lower_bound(
        self, outcome: str, is_limited: bool
    ) -> None:
        """All beyond 50 are refused. Babble beyond 50 is a failure of sight, as for exactness."""
        samples = counted(
            lambda targets, rng: np.where(targets > 50, np.nan, weber(0.03)(targets, rng)),
            20,
            unread=Outcome[outcome],
        )
        result = order(samples)
        assert result is not None
        assert result.apart.is_limited == is_limited
        assert result.apart.length is not None
        assert result.apart.length.sign == (">" if is_limited else "=")
        assert 35 < result.apart.length.length < 60
        said = reach_text(result.apart.length, result.apart.length_ci)
        assert said.startswith("to at least " if is_limited else "to ")
        assert "longest" not in said

    def test_what_is_no_count_has_no_order(self) -> None:
        assert order(counted(right_ones, 20, targets=lambda lengths, _: lengths * np.nan)) is None


class TestLine:
    def test_ties_and_missing_answers_are_half_right(self) -> None:
        """All refused, or always the same: chance, and no certainty."""
        for observer in (of_some(100), lambda targets, _: targets * np.nan):
            line = found(observer).lines[8]
            assert line.share == 0.5
            assert line.share_ci[0] < 0.4
            assert line.share_ci[1] > 0.6
            assert line.p > 0.5

    def test_few_rows_have_no_share(self) -> None:
        assert math.isnan(found(right_ones, 3).lines[8].share)

    def test_p_is_small_for_order_alone(self) -> None:
        assert found(weber(0.05)).lines[8].p == 1 / 2000
        ps = [found(guess, seed=seed, lines=MIDDLE).lines[1].p for seed in range(20)]
        assert sum(p <= 0.05 for p in ps) <= 4
        assert found(lambda targets, _: -targets).lines[8].p == 1.0

    def test_draws_of_a_row_are_permuted_together(self) -> None:
        """Twenty draws of four rows say no more than four rows: 24 orders."""
        samples = counted(right_ones, 4, lines=LINES[6:8])
        assert samples.numbers is not None
        again = np.repeat(np.arange(len(samples.lengths)), 20)
        several = replace(
            samples,
            **{
                name: getattr(samples, name)[again]
                for name in ("places", "indexes", "lengths", "outcomes", "readings")
            },
            numbers=replace(
                samples.numbers,
                targets=samples.numbers.targets[again],
                answers=samples.numbers.answers[again],
            ),
        )
        result = order(several)
        assert result is not None
        assert all(line.p > 0.02 for line in result.lines.values())


class TestResolution:
    @pytest.mark.parametrize("spread", [0.05, 0.1])
    def test_it_is_the_ratio_of_rows_that_are_told_apart(self, spread: float) -> None:
        """For a spread of 10 % at a ratio of 1.10."""
        held = 0
        for seed in range(20):
            one = found(weber(spread), 40, seed, MIDDLE).lines[1].resolution
            assert one is not None
            assert one.low is not None
            assert one.high is not None
            held += one.low <= 1 + spread <= one.high
        assert held >= 16

    def test_it_is_not_below_that_of_rows_that_differ_by_one(self) -> None:
        """Around 15 items."""
        line = found(right_ones, 40).lines[3].resolution
        assert line is not None
        assert line.ratio is not None
        assert line.ratio >= LINES[3].high / (LINES[3].high - 1)

    def test_guesses_have_no_upper_end(self) -> None:
        for seed in range(5):
            line = found(guess, seed=seed, lines=MIDDLE).lines[1].resolution
            assert line is not None
            assert line.high is None

    def test_few_rows_have_none(self) -> None:
        assert found(right_ones, 15).lines[8].resolution is None


class TestPatterns:
    def patterns(self, observer: Observer, seed: int = 0) -> set[str]:
        """The patterns of the lines beyond 60."""
        return {
            line.pattern for place, line in found(observer, seed=seed).lines.items() if place > 6
        }

    def test_an_order_that_is_reversed(self) -> None:
        """Beyond 40 a longer row has a smaller answer."""

        def turning(targets: Floats, _: np.random.Generator) -> Floats:
            return np.where(targets <= 40, targets, np.rint(40 - 8 * np.log2(targets / 40)))

        result = found(turning)
        assert self.patterns(turning) == {REVERSED}
        assert {result.lines[place].pattern for place in range(5)} == {""}
        assert all(result.lines[place].share_ci[1] < 0.5 for place in range(7, len(LINES)))

    def test_an_order_that_breaks_and_comes_back(self) -> None:
        """Beyond 60 answers are a fifth too small, so 72 is said to be less than 60. The apart
        length ends there, although all longer rows are in order.
        """

        def biased(targets: Floats, _: np.random.Generator) -> Floats:
            return np.where(targets <= 60, targets, np.rint(0.8 * targets))

        lines = lines_of([20, 30, 40, 50, 60, 70, 80, 100, 120, 150], "bands")
        for rows in (10, 20):
            result = order(counted(biased, rows, lines=lines))
            assert result is not None
            named = {place for place, line in result.lines.items() if line.pattern == BROKEN}
            assert named == {4}
            low, high = result.apart.length_ci
            assert 40 < low.length < 54 < high.length < 66
            assert [result.lines[place].share for place in (2, 7, 9)] == [1, 1, 1]

    def test_answers_on_tens(self) -> None:
        """Order is kept."""
        assert self.patterns(heaped(0.05, 0)) == {HEAPED}
        assert found(heaped(0.05, 0)).lines[10].share > 0.9

    def test_targets_on_tens_are_not_heaped(self) -> None:
        samples = counted(right_ones, 20, targets=lambda lengths, _: np.rint(lengths / 10) * 10)
        result = order(samples)
        assert result is not None
        assert {line.pattern for line in result.lines.values()} == {""}

    def test_one_answer(self) -> None:
        assert self.patterns(of_some(100)) == {CONSTANT}

    def test_one_answer_of_few_is_not_named(self) -> None:
        """Eight answers can be one number by chance, and all 13 lines of the run are tested."""
        result = found(of_some(101), 8)
        assert {line.pattern for line in result.lines.values()} == {""}

    def test_a_run_of_many_conditions_needs_more_and_finds_what_is_sure(self) -> None:
        """With 100 conditions the level of a line is below what 1,999 permutations can show."""

        def back(targets: Floats, _: np.random.Generator) -> Floats:
            return 1000 - targets

        def nearly_back(targets: Floats, rng: np.random.Generator) -> Floats:
            return 1000 - targets + rng.normal(0, 0.6 * targets.std(axis=0), targets.shape)

        named = {}
        for conditions in (1, 100):
            for observer in (back, nearly_back):
                result = order(counted(observer, 20), conditions)
                assert result is not None
                patterns = [result.lines[place].pattern for place in range(6, len(LINES))]
                named[observer, conditions] = patterns.count(REVERSED)
        assert named[back, 1] == named[back, 100] == len(LINES) - 6
        assert named[nearly_back, 100] < named[nearly_back, 1]

    @pytest.mark.parametrize("observer", [right_ones, weber(0.3), guess, guess_by_row, absurd])
    def test_others_have_none(self, observer: Observer) -> None:
        assert {one for seed in range(5) for one in self.patterns(observer, seed)} == {""}


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def turns_back(request: Request) -> str:
    """Right to 40 ones, and one less for each more."""
    name, _, number = right(request).rpartition(" ")
    count = int(number)
    return f"{name} {count if count <= 40 else 80 - count // 2}"


class TestFiles:
    @pytest.fixture
    def run(self, lab: Lab) -> eyechart.Run:
        return eyechart.run(
            "counting/ones",
            lab.fake(turns_back),
            out=lab.out,
            lengths=[10, 20, 40, 80],
            samples=20,
            axes={"separator": "none"},
        )

    def test_the_tables_have_both_lengths_and_the_order(self, run: eyechart.Run) -> None:
        (row,) = rows(run.folder / "effective_length.csv")
        (near,), (of_order,) = run.near_length.values(), run.order.values()
        assert near is not None
        assert near.length is not None
        assert of_order is not None
        assert of_order.apart.length is not None
        assert float(row["near_length"]) == near.length.length
        assert float(row["apart_length"]) == of_order.apart.length.length
        assert float(row["apart_length_ci_low"]) == of_order.apart.length_ci[0].length
        assert row["near_length_bound"] == row["apart_length_bound"] == ""
        lines = rows(run.folder / "diagnosis.csv")
        assert [line["pattern"] for line in lines] == ["", "", "", "reversed"]
        assert float(lines[0]["ordered"]) == 1.0
        assert float(lines[3]["ordered_ci_high"]) < 0.5
        assert float(lines[1]["ordered_p"]) == 0.0005
        assert lines[3]["resolution"] == ""

    def test_the_pattern_of_a_line_is_a_finding(self, run: eyechart.Run) -> None:
        (one,) = [one for one in run.findings if one.kind == "pattern of answers"]
        assert one.level == "warning"
        assert str(one) == (
            "Answers are in reverse order (the larger the count, the smaller the answer) at 57 to "
            "80 symbols."
        )
        assert one.facts["patterns"] == {REVERSED: {"": ["57 to 80"]}}

    def test_several_conditions_and_lines_that_follow_one_another(self, lab: Lab) -> None:
        def counts_to_15(request: Request) -> Any:
            number = int(right(request).rpartition(" ")[2])
            return f"Final answer: {number if number < 15 else 101}"

        run = eyechart.run(
            "counting/ones",
            lab.fake(counts_to_15),
            out=lab.out,
            lengths=[5, 10, 20, 40, 80],
            samples=20,
            axes={"separator": ["none", "comma"]},
        )
        (one,) = [one for one in run.findings if one.kind == "pattern of answers"]
        assert one.sentence == "Answers are nearly always one number at 15 to 80 symbols."

    def test_right_answers_have_no_pattern(self, lab: Lab) -> None:
        """Nor does the length of the prompt tell the order of rows of fixed length."""
        run = eyechart.run(
            "counting/density", lab.fake(right), out=lab.out, lengths=[20, 40], samples=20
        )
        orders = [one for one in run.order.values() if one is not None]
        assert [one.apart.by_length for one in orders] == [False] * len(run.order)
        said = " ".join(map(str, run.findings))
        assert "Answers are" not in said
        assert "by count or length of prompt" not in said

    def test_order_that_the_length_of_the_prompt_tells_is_said(self, run: eyechart.Run) -> None:
        """As in rows of ones."""
        cue = "distinguishes rows that differ by a fifth (by count or length of prompt), to "
        assert cue in str(run.findings[0])

    def test_the_share_of_near_answers_is_an_argument(self, run: eyechart.Run) -> None:
        of_half = eyechart.load_run(run.folder, near=0.5)
        (usual,), (wide,) = run.near_length.values(), of_half.near_length.values()
        assert usual is not None
        assert wide is not None
        assert wide.length is not None
        assert usual.length != wide.length
        with pytest.raises(UsageError, match=r"near must be a number from 0 to 0.99"):
            eyechart.load_run(run.folder, near=5)
        assert set(run.conditions["near"]) == {0.05}
        assert set(of_half.conditions["near"]) == {0.5}
        assert of_half.conditions["near_length"][0] == wide.length.length
        assert "within 50 % beyond" in of_half.findings[0].sentence
        assert "within 5 %" not in of_half.findings[0].sentence

    def test_copies_have_neither(self, lab: Lab) -> None:
        run = eyechart.run(
            "copying/first_last",
            lab.fake(right),
            out=lab.out,
            lengths=[5, 10],
            samples=4,
        )
        assert all(row["near_length"] == "" for row in rows(run.folder / "effective_length.csv"))
        assert all(row["ordered_p"] == "" for row in rows(run.folder / "diagnosis.csv"))
        assert set(run.order.values()) == {None}
        assert set(run.near_length.values()) == {None}
