"""The accuracy of guesses is fixed in the curve of a forced choice."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from eyechart.harness.analysis.comparison.paired_curves import paired
from eyechart.harness.analysis.length.curve import Curve, check_chance
from eyechart.harness.analysis.length.curve import curve as curve_of
from eyechart.harness.analysis.length.effective_length import effective_length, grouped
from eyechart.harness.analysis.length.falling_curve import falling_curve
from eyechart.harness.analysis.length.fit import fit, seen_share
from eyechart.harness.errors import UsageError
from eyechart.harness.settings.judging import THRESHOLD
from eyechart.harness.spec import Line
from tests.benchmarks.simulation import chance
from tests.benchmarks.simulation.draws import Setting


class TestChance:
    LINES = tuple(Line.exact(length) for length in (4, 8, 16, 32, 64))

    def samples(self, share: float, chance: float, rows: int = 200) -> Curve:
        """All right at the first two lengths, a share of them beyond."""
        right = np.ones((rows, 5))
        right[round(share * rows) :, 2:] = 0
        lengths = np.broadcast_to([line.length for line in self.LINES], right.shape)
        guessed = np.full(5, chance) if chance else None
        return Curve(self.LINES, right, np.ones_like(right), lengths.astype(float), guessed)

    def test_no_accuracy_is_below_chance(self) -> None:
        """Where a model only guesses, or is unlucky, the curve ends at chance."""
        known, ignored = (fit(self.samples(0.3, chance), THRESHOLD) for chance in (0.5, 0.0))
        assert known.accuracy[-1] == pytest.approx(0.5, abs=0.01)
        assert ignored.accuracy[-1] < 0.4
        assert (known.accuracy > 0.5).all()

    def test_a_line_below_chance_counts_as_guesses(self) -> None:
        """A model that always prefers the wrong one of two options sees no line. Its answers fit no
        curve that ends at chance, and the interval had 5 to 80 symbols.
        """
        never = replace(self.samples(0.0, 0.5, 20), correct=np.zeros((20, 5)))
        assert never.below_chance.all()
        found = effective_length(never)
        assert (str(found.length), *map(str, found.length_ci)) == ("< 4", "< 4", "< 4")
        assert (never.not_below_chance().correct == 0.5).all()

    def test_guesses_stay_as_they_are(self) -> None:
        """Bad luck is no preference: of 2,000 lines of guesses less than 1 % count as below."""
        rng = np.random.default_rng(0)
        curves = [
            replace(self.samples(0.0, 0.5, 20), correct=(rng.random((20, 5)) < 0.5).astype(float))
            for _ in range(400)
        ]
        assert 0 <= np.mean([curve.below_chance for curve in curves]) < 0.01
        assert curves[0].not_below_chance() is curves[0]
        assert not replace(curves[0], guessed=None).below_chance.any()

    def test_the_threshold_is_an_accuracy(self) -> None:
        """85 % with two options are 70 % of the samples seen, with eleven 83.5 %."""
        assert seen_share(0.85, 0.5) == pytest.approx(0.7)
        assert seen_share(0.85, 1 / 11) == pytest.approx(0.835)
        for share, reached in ((0.95, True), (0.6, False)):
            found = effective_length(self.samples(share, 0.5))
            assert (found.length is not None and found.length.sign == ">") is reached

    def test_without_chance_nothing_changes(self) -> None:
        """A guess rate of 0 gives the numbers of replies."""
        counts = np.array([[20.0, 18.0, 9.0, 1.0]]), np.array([[20.0, 20.0, 20.0, 20.0]])
        plain, zero = (falling_curve(*counts, 0.85, None, one) for one in (None, np.zeros(4)))
        assert (plain.below == zero.below).all()
        assert (plain.accuracy == zero.accuracy).all()

    def test_a_line_has_the_mean_of_its_samples(self) -> None:
        """Also where lines are chosen, taken together or paired."""
        chances = np.array([0.5, 0.25, 0.1, 0.1])
        made = curve_of([4, 4, 8, 8], [0, 1, 0, 1], [True, True, False, True], chances=chances)
        assert made.chance.tolist() == pytest.approx([0.375, 0.1])
        assert made.mean_chance == pytest.approx(0.2375)
        assert made.at([1]).chance.tolist() == pytest.approx([0.1])
        assert grouped(made).chance.tolist() == pytest.approx([0.2375])
        pair = paired(made, replace(made, guessed=None))
        assert pair is not None
        assert [list(one.chance) for one in pair] == [pytest.approx([0.375, 0.1]), [0.0, 0.0]]
        assert made.digest != replace(made, guessed=None).digest
        assert curve_of([4], [0], [True], chances=np.zeros(1)).guessed is None

    def test_guesses_reach_a_threshold_below_chance(self) -> None:
        """Such a threshold is refused."""
        half = self.samples(0.5, 0.5)
        with pytest.raises(UsageError, match=r"is not above chance: .* right in 50 %"):
            check_chance(half, 0.5)
        check_chance(half, 0.6)
        check_chance(replace(half, guessed=None), 0.5)

    def test_the_simulation_knows_its_crossing(self) -> None:
        """Where guesses help, a model reaches the threshold at greater lengths."""
        lengths = [
            chance.Case(Setting("slope 2", 0.0, 20), options).draw(0)[0] for options in (2, 11)
        ]
        assert lengths[0] > lengths[1] > 0
        assert chance.crossing(np.full(501, 0.8)) == 0
        assert chance.crossing(np.full(501, 0.9)) == np.inf
        row = chance.measure(chance.Case(Setting("step", 0.0, 20), 2), 3)
        assert (row["known_held"], row["missed"]) == (1.0, "")
