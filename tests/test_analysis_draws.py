"""Several draws of a row: pass@k, the majority, the split of the variance, and intervals."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest

from eyechart.harness.analysis.comparison.paired_curves import (
    compare_pairs,
    compare_unpaired,
    mcnemar,
    paired,
    sign_flips,
)
from eyechart.harness.analysis.length.curve import curve
from eyechart.harness.analysis.length.fit import fit
from eyechart.harness.analysis.length.interval import wilson
from eyechart.harness.analysis.samples.draws import (
    ScoredRows,
    accuracy_interval,
    drawn,
    draws_columns,
    majority_of,
    pass_at,
    rows_of,
    split_of,
)
from eyechart.harness.errors import UsageError
from eyechart.harness.score.outcomes import Outcome


def samples(*rows: str, cell: int = 0) -> pd.DataFrame:
    """A row for each draw: `c` is correct, digits are wrong answers, `u` has none, `e` is an error
    and `.` was not asked.
    """
    kinds = {"c": Outcome.CORRECT, "u": Outcome.UNPARSED, "e": Outcome.ERROR}
    found = [
        (cell, index, draw, kinds.get(letter, Outcome.INCORRECT).place, letter)
        for index, row in enumerate(rows)
        for draw, letter in enumerate(row, start=1)
        if letter != "."
    ]
    table = pd.DataFrame(found, columns=["cell", "index", "draw", "outcome", "letter"])
    said = table["letter"].map(
        lambda letter: ord(letter) if letter.isdigit() else 7 * (letter == "c")
    )
    return table.assign(said=said, text=table["letter"].map(ord))


def rows(right: list[float], replies: float) -> ScoredRows:
    """Rows of one cell."""
    return ScoredRows(np.zeros(len(right), np.int64), np.full(len(right), replies), np.array(right))


class TestPassAt:
    """The probability that one of k replies is right."""

    def test_it_is_the_share_of_all_choices(self) -> None:
        """Of all ways to choose k of n replies, those with a right one."""
        for n, c, k in itertools.product(range(1, 7), range(7), range(1, 7)):
            if c > n or k > n:
                continue
            chosen = list(itertools.combinations(range(n), k))
            share = sum(any(place < c for place in one) for one in chosen) / len(chosen)
            found = pass_at(k, np.array([float(c)]), np.array([float(n)]))[0]
            assert found == pytest.approx(share)

    def test_a_row_with_fewer_replies_says_nothing(self) -> None:
        """Its value is unknown; a k below 1 is none."""
        assert math.isnan(pass_at(3, np.array([1.0]), np.array([2.0]))[0])
        with pytest.raises(UsageError, match="at least 1, not 0"):
            pass_at(0, np.array([1.0]), np.array([2.0]))

    def test_it_is_without_bias(self) -> None:
        """The mean over many rows is 1 - (1 - p)^k, whatever the number of replies."""
        rng = np.random.default_rng(0)
        right = rng.binomial(5, 0.3, 200_000).astype(float)
        found = pass_at(3, right, np.full(len(right), 5.0)).mean()
        assert found == pytest.approx(1 - 0.7**3, abs=0.003)


class TestMajority:
    """The vote of a row's replies."""

    @pytest.mark.parametrize(
        ("row", "right", "ties"),
        [
            ("cc1", 1, 0),
            ("c11", 0, 0),
            ("c1", 1 / 2, 1),
            ("c12", 1 / 3, 1),
            ("12", 0, 0),
            ("cuu", 1, 0),
            ("uu", 0, 0),
            ("cee", 1, 0),
        ],
    )
    def test_of_one_row(self, row: str, right: float, ties: int) -> None:
        """A tie counts as a coin would decide; what has no answer has no vote."""
        found = majority_of(samples(row))
        assert found is not None
        assert found.right == pytest.approx(right)
        assert found.ties == ties

    def test_of_nothing(self) -> None:
        """Where all failed there is no vote."""
        assert majority_of(samples("ee")) is None


class TestSplit:
    """The variance between rows and between draws."""

    def test_rows_alone(self) -> None:
        """Where all draws of a row are alike."""
        found = split_of(rows([0, 0, 3, 3], 3))
        assert found is not None
        assert found.row == pytest.approx(1 / 3)
        assert found.draw == 0

    def test_it_is_without_bias(self) -> None:
        """Also where few rows are asked twice; the parts add up to the variance of a reply."""
        rng = np.random.default_rng(1)
        found = []
        for _ in range(4000):
            accuracies = rng.choice([0.2, 0.9], 6)
            found.append(split_of(rows(rng.binomial(2, accuracies).tolist(), 2)))
        row = np.mean([one.row for one in found if one is not None])
        draw = np.mean([one.draw for one in found if one is not None])
        assert row == pytest.approx(0.35**2, abs=0.006)
        assert draw == pytest.approx((0.2 * 0.8 + 0.9 * 0.1) / 2, abs=0.004)

    def test_one_row_has_none(self) -> None:
        """Nor rows with one reply."""
        assert split_of(rows([1], 3)) is None
        assert split_of(rows([1, 0, 1], 1)) is None


class TestInterval:
    """Rows are the unit."""

    def test_one_reply_a_row_is_wilsons(self) -> None:
        """As without draws."""
        assert accuracy_interval(rows([1, 1, 0, 1], 1)) == wilson(3, 4)
        assert accuracy_interval(rows([], 1)) is None

    def test_draws_that_are_alike_say_no_more(self) -> None:
        """Ten of them are as one."""
        assert accuracy_interval(rows([10, 10, 0, 10], 10)) == pytest.approx(wilson(3, 4))

    def test_draws_that_differ_say_more_but_never_more_than_all_replies(self) -> None:
        """The interval is between those of rows and of replies."""
        found = accuracy_interval(rows([2.0] * 20, 4))
        of_rows, of_replies = wilson(10, 20), wilson(40, 80)
        assert found is not None
        assert of_rows is not None
        assert of_replies is not None
        assert of_rows[0] < found[0] <= of_replies[0] + 1e-9

    def test_a_curve_with_draws_knows_more(self) -> None:
        """The fit of means of independent draws is narrower than that of as many single replies,
        and that of draws that are alike is not.
        """
        rng = np.random.default_rng(2)
        lengths, indexes = (one.ravel() for one in np.meshgrid(range(10, 90, 2), range(6)))
        share = 1 / (1 + (lengths / 40) ** 3.0)
        first = rng.random(len(lengths)) < share
        single = fit(curve(lengths, indexes, first), 0.5)
        alike = fit(curve(np.tile(lengths, 8), np.tile(indexes, 8), np.tile(first, 8)), 0.5)
        other = rng.random(8 * len(lengths)) < np.tile(share, 8)
        free = fit(curve(np.tile(lengths, 8), np.tile(indexes, 8), other), 0.5)
        assert alike.interval() == single.interval()
        assert free.octaves() < 0.8 * single.octaves()
        assert free.dispersion < 0.5 * alike.dispersion


class TestCompare:
    """Rows with several draws, in pairs and apart."""

    def test_without_draws_the_test_of_signs_is_mcnemars(self) -> None:
        """As near as 9,999 draws of the signs are."""
        differences = np.array([1.0] * 12 + [-1.0] * 3 + [0.0] * 20)
        assert sign_flips(differences) == pytest.approx(mcnemar(12, 3), abs=0.01)
        assert sign_flips(np.zeros(5)) == 1.0

    def test_accuracies_are_means_over_draws(self) -> None:
        """Of each row, and then over rows."""
        lengths, indexes = [5] * 8, [0, 0, 1, 1, 2, 2, 3, 3]
        first = curve(lengths, indexes, [True, True, True, False, True, True, False, True])
        second = curve(lengths[:4], range(4), [False, True, False, False])
        pair = paired(first, second)
        assert pair is not None
        (line,) = compare_pairs(pair).lengths
        assert (line.n, line.first, line.second) == (4, 0.75, 0.25)
        assert (line.only_first, line.only_second) == (3, 1)
        assert line.difference_ci[0] < 0.5 < line.difference_ci[1]
        (apart,) = compare_unpaired(first, second).lengths
        assert (apart.n, apart.first, apart.second) == (4, 0.75, 0.25)


class TestTable:
    """The columns of `table.csv`, and the sentences."""

    def test_of_two_cells(self) -> None:
        """One is asked three times; a failed draw leaves its row out of pass@3 alone."""
        both = pd.concat([samples("cc1", "cce", "111"), samples("c", "1", cell=1)])
        table = pd.DataFrame(draws_columns(both, [3, 1]))
        assert table["draws"].tolist() == [3, 1]
        assert table["pass_at_draws"].tolist()[0] == 0.5
        assert table["pass_at_draws_rows"].tolist()[0] == 2
        assert table["majority"].tolist()[0] == pytest.approx(2 / 3, abs=1e-6)
        assert table.iloc[1, 1:].isna().all()

    def test_what_is_said(self) -> None:
        """Texts, verdicts, accuracy, majority, pass@k and the split."""
        found = drawn(samples("cc1", "ccc", "111", "c12"))
        assert found is not None
        assert (found.prompts, found.same_text, found.same_verdict) == (4, 2, 2)
        assert found.accuracy == 0.5
        assert found.pass_at == {2: pytest.approx((1 + 1 + 0 + 2 / 3) / 4), 3: 0.75}
        assert found.majority == pytest.approx((1 + 1 + 0 + 1 / 3) / 4)
        assert found.ties == 1
        assert str(found) == (
            "Of 4 prompts, each asked 3 times, 2 got the same text each time and 2 the same "
            "verdict. A reply is right in 50 %, the majority of a prompt's replies in 58 % (1 "
            "tie); pass@2 67 %, pass@3 75 %. At equal lengths 44 % of the variance lies between "
            "prompts and 56 % between the draws of a prompt."
        )

    def test_unequal_draws_are_said(self) -> None:
        """How often rows were asked, which got several replies, and of how many each pass@k is."""
        found = drawn(samples("cccc", "11", "11", "1", "1", "1"))
        assert found is not None
        assert (found.prompts, found.several, found.fewest, found.draws) == (6, 3, 1, 4)
        assert (found.pass_at, found.pass_at_rows) == (
            {2: pytest.approx(1 / 3), 4: 1.0},
            {2: 3, 4: 1},
        )
        assert str(found).startswith(
            "Of 6 prompts, each asked 1 to 4 times, 3 got several replies: of these 3 got the same "
            "text each time and 3 the same verdict. A reply is right in 36 %, the majority of a "
            "prompt's replies in 17 %; pass@2 33 % (of the 3 prompts with 2 replies or more), "
            "pass@4 100 % (of the 1 prompt with 4 replies or more)."
        )

    def test_a_failed_draw_was_asked(self) -> None:
        """Its row is no part of pass@k for all draws, and this is said."""
        found = drawn(samples("cce", "c11", "111"))
        assert found is not None
        assert (found.fewest, found.draws, found.pass_at_rows) == (3, 3, {2: 3, 3: 2})
        assert "each asked 3 times, 2 got" in str(found)
        assert "pass@3 50 % (of the 2 prompts with 3 replies or more)" in str(found)

    def test_nothing_is_said_of_single_replies(self) -> None:
        """Nor where no row has two."""
        assert drawn(samples("c", "1")) is None
        assert drawn(samples("ce", "1.")) is None

    def test_rows_are_those_with_a_scored_reply(self) -> None:
        """An error is no reply."""
        found = rows_of(samples("cce", "eee", "11c"))
        assert (found.replies.tolist(), found.right.tolist()) == ([2, 3], [2, 1])
