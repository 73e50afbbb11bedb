"""The falling curve that fits the answers of one condition, with their dispersion."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from eyechart.harness.analysis.length.bins import BINS_AN_OCTAVE, Bins
from eyechart.harness.analysis.length.curve import TAILS, Curve, Floats
from eyechart.harness.analysis.length.dispersion import (
    between_lengths,
    between_rows,
    mean_of_draws,
    nearness,
    row_correlation,
    row_residuals,
)
from eyechart.harness.analysis.length.equal_samples import kept_for_equal_samples
from eyechart.harness.analysis.length.falling_curve import (
    FallingCurve,
    accuracy_interval,
    falling_curve,
    share_below,
)
from eyechart.harness.analysis.length.interval import Bound, Span
from eyechart.harness.analysis.length.one_threshold import (
    LEVEL,
    RowCorrelation,
    are_chosen,
    one_threshold_p,
    pairs_of_rows,
)
from eyechart.harness.analysis.length.profile import KEPT, KEPT_OF_CHOSEN, places_kept
from eyechart.harness.spec import Line

Tails: TypeAlias = tuple[float, float]
_Rounding: TypeAlias = Callable[[float], int]
MARGIN = 0.5 / BINS_AN_OCTAVE
"""Octaves that are added to both ends of an interval: half of a usual bin."""
WIDE = 1.0
"""Octaves: a wider interval says that the answers do not fall steeply, see `Fit.interval`."""
ALONE = 0.35
"""Octaves by which the likelihood alone may allow more than the quantiles of the crossing, before
it is said, see `Fit.level_between`."""
NEAR = 0.08
"""The same lengths are not said where the share of right answers between them differs more from the
threshold."""
OUTSIDE = 0.01
"""The margin can move an end of an interval out of the tested range, and a gap the lower end to the
shortest length. The end is a bound (`<` or `>`) only if the crossing lies outside the range with at
least this probability.
"""


@dataclass(frozen=True, eq=False)
class Fit:
    """The posterior of the length where the accuracy falls below the threshold."""

    bins: Bins
    required: float
    """The accuracy to reach, 0 to 1."""
    correct: Floats
    """Correct answers in each bin: shape (B,)."""
    answered: Floats
    """Scored answers in each bin: shape (B,)."""
    curve: FallingCurve
    """The posterior of the curve: one set of answers, R = 1."""
    row_sums: Floats
    """How much better the model was on each row than expected: shape (N,)."""
    together: RowCorrelation
    """How answers to one row go together."""
    dispersion: float
    """Factor by which the answers vary more than independent ones; below 1 only where a row's
    answer is the mean of several draws."""
    chance: float = 0.0
    """Mean accuracy of guesses, where it is known."""
    gaps: Sequence[tuple[float, float]] = ()
    """Neighbouring lengths between which no length was answered, ascending."""
    is_chosen: bool = False
    """See `are_chosen`."""

    @property
    def below(self) -> Floats:
        """Probability that the accuracy is below `required`, bin by bin: shape (B,)."""
        below: Floats = self.curve.below[0]
        return below

    @property
    def accuracy(self) -> Floats:
        """Mean accuracy, bin by bin: shape (B,)."""
        accuracy: Floats = self.curve.accuracy[0]
        return accuracy

    def accuracy_at(self, length: float, tails: Tails = TAILS) -> tuple[float, float, float]:
        """The accuracy at a length within the range asked: the mean, and the interval between two
        quantiles. Between two bins it is that of their mixture, see `reaches`.
        """
        bins, weights = self._around(length)
        levels = weights @ self.curve.levels[0, bins]
        mean, guessed = (float(weights @ one[bins]) for one in (self.accuracy, self.curve.guessed))
        low, high = accuracy_interval(levels, self.curve.accuracies, tails)
        return mean, guessed + (1 - guessed) * low, guessed + (1 - guessed) * high

    def reaches_at(self, length: float, accuracy: float) -> float:
        """Probability that the accuracy at a length within the range asked is at least `accuracy`,
        which need not be `required`: 0 to 1.
        """
        bins, weights = self._around(length)
        curve, guessed = self.curve, self.curve.guessed
        below = [
            share_below(
                curve.levels[0, one], curve.accuracies, seen_share(accuracy, float(guessed[one]))
            )
            for one in bins
        ]
        return max(0.0, 1 - float(weights @ below))

    def _around(self, length: float) -> tuple[list[int], Floats]:
        """The two bins around a length, and their weights."""
        place = float(self.bins.read_at(length))
        share = place % 1
        return [int(place), math.ceil(place)], np.array([1 - share, share])

    @property
    def lapse(self) -> float:
        """Share of wrong answers at the shortest length."""
        return float(1 - self.accuracy[0])

    def one_threshold(self, level: float = LEVEL) -> bool:
        """Whether the accuracy falls below `required` once at most, by a test of this level."""
        return self._one_threshold_p >= level

    @cached_property
    def _one_threshold_p(self) -> float:
        """See `one_threshold_p`."""
        return one_threshold_p(
            self.correct,
            self.answered,
            self.accuracy,
            self.required,
            self.bins.centres,
            together=self.together,
        )

    def reaches(self, lengths: Floats) -> Floats:
        """Probability that the accuracy at each length is at least `required`; lengths outside the
        range count as its nearer end.

        Between two bins it changes evenly, as in `place`. So a length that was not asked as such
        has one half or more up to the estimate, and less behind it.
        """
        places = self.bins.read_at(lengths)
        found: Floats = 1 - np.interp(places, np.arange(len(self.below)), self.below)
        return found

    def place(self, probability: float) -> float:
        """The bin, with a fraction, below which the crossing lies with this probability; -infinity
        is below the tested range, infinity above it.
        """
        return float(self.places(np.array([probability]))[0])

    def places(self, probabilities: Floats) -> Floats:
        """The `place` of each probability: shape (P,)."""
        after = np.searchsorted(self.below, probabilities)
        found = np.where(after == 0, -math.inf, math.inf)
        within = (after > 0) & (after < len(self.below))
        after = after[within]
        before, behind = self.below[after - 1], self.below[after]
        found[within] = after - 1 + (probabilities[within] - before) / (behind - before)
        return found

    @property
    def median(self) -> Bound:
        """The estimate: the longest whole length below the median of the crossing."""
        return self._bound(self._octave(self.place(0.5)), math.floor)

    def interval(self, tails: Tails = TAILS) -> Span:
        """The interval between two quantiles of the crossing; where these are more than `WIDE`
        apart, with all places that the likelihood alone allows, see `places_kept`.

        Of few or level answers the prior decides how the accuracy falls: on a plateau near the
        threshold the quantiles alone held in 73 to 90 % of runs. Steep falls do not need it.

        `MARGIN` is added to both sides. An end in a gap is moved instead to the asked length
        below it, or above it for the upper end: only the prior decides where it lies within the
        gap. If that is the shortest length, it is a bound as an end that the margin moves: few
        replies there say little of what is below. But an interval is never open at both ends by
        this.
        """
        return self._span(self._ends(*self._places(tails)))

    def between_quantiles(self, tails: Tails = TAILS) -> Span:
        """The same between the two quantiles, however wide."""
        return self._span(self._ends(self.place(tails[0]), self.place(tails[1])))

    def octaves(self, tails: Tails = TAILS) -> float:
        """Width of the interval within the tested range, in octaves."""
        return self._width(*self._places(tails))

    def octaves_between(self, tails: Tails = TAILS) -> float:
        """The same of `between_quantiles`."""
        return self._width(self.place(tails[0]), self.place(tails[1]))

    def _width(self, low: float, high: float) -> float:
        last = float(self.bins.centres[-1])
        shorter, longer = (min(max(end, 0), last) for end in self._ends(low, high))
        return longer - shorter

    def _span(self, ends: tuple[float, float]) -> Span:
        return self._bound(ends[0], math.floor), self._bound(ends[1], math.ceil)

    def _places(self, tails: Tails) -> tuple[float, float]:
        """The places of both ends, before the margin."""
        low, high = self.place(tails[0]), self.place(tails[1])
        if self.octaves_between(tails) <= WIDE:
            return low, high
        lowest, highest = self._places_kept
        return min(low, lowest), max(high, highest)

    def level_between(self) -> Span | None:
        """The lengths between which the likelihood alone sees no fall, in a run whose answers chose
        its samples; `None` where the interval says as much, or where the share of right answers
        between them is not near the threshold.

        Such a run ends when by chance one end of a plateau looks much better, and its interval is
        that of this end.
        """
        if not self.is_chosen:
            return None
        low, high = self.place(TAILS[0]), self.place(TAILS[1])
        lowest, highest = self._places_kept
        if self._width(min(low, lowest), max(high, highest)) <= self.octaves_between() + ALONE:
            return None
        lowest, highest = self._kept(KEPT_OF_CHOSEN)
        places = np.arange(self.bins.count)
        between = (places > lowest) & (places < highest)
        right, answered = self.correct[between].sum(), self.answered[between].sum()
        if abs(right - self.required * answered) > NEAR * answered:
            return None
        return self._span(self._ends(min(low, lowest), max(high, highest)))

    @cached_property
    def _places_kept(self) -> tuple[float, float]:
        """The places for `KEPT`."""
        return self._kept(KEPT)

    def _kept(self, most: float) -> tuple[float, float]:
        """See `places_kept`."""
        return places_kept(
            self.correct / self.dispersion, self.answered / self.dispersion, self.required, most
        )

    def _ends(self, lowest: float, highest: float) -> tuple[float, float]:
        """Octaves of both ends of an interval, from their places; infinite for an end that is a
        bound.
        """
        low, high = self._octave(lowest), self._octave(highest)
        last = float(self.bins.centres[-1])
        if gap := self._gap(highest):
            high = gap[1]
        elif (high := high + MARGIN) > last and 1 - self.below[-1] >= OUTSIDE:
            high = math.inf
        gap = self._gap(lowest)
        low = gap[0] if gap else low - MARGIN
        may_be_open = low < 0 or (low == 0 and high < math.inf)
        if may_be_open and self.below[0] >= OUTSIDE:
            low = -math.inf
        return low, high

    def _octave(self, place: float) -> float:
        """Octaves of a place beyond the shortest length; infinite outside the tested range."""
        return self.bins.octave(place) if math.isfinite(place) else place

    def _gap(self, place: float) -> tuple[float, float] | None:
        """Octaves of the two lengths around a place, if no length between them was asked."""
        if not self.gaps or not math.isfinite(place):
            return None
        gaps = np.array(self.gaps, float)
        before, behind = self.bins.places(gaps).T
        around = np.flatnonzero((before <= place) & (place <= behind) & (behind - before > 1))
        if not len(around):
            return None
        shorter, longer = np.log2(gaps[around[0]] / self.bins.shortest)
        return float(shorter), float(longer)

    def up_to(self, longest: float) -> Fit:
        """This fit without the lengths above `longest`, at which there must be no answers.

        The numbers at the remaining lengths do not change, since they do not depend on lengths
        without answers.
        """
        exact = tuple(length for length in self.bins.exact if length <= longest)
        bins = replace(self.bins, longest=longest, exact=exact)
        kept = slice(bins.count)
        return replace(
            self,
            bins=bins,
            correct=self.correct[kept],
            answered=self.answered[kept],
            curve=self.curve.up_to(bins.count),
            together=self.together.up_to(bins.count),
        )

    def expected(self, lines: Sequence[Line], samples: int, clear: float = 0.5) -> Fit:
        """The fit after this many samples of each of `lines`, if their answers are as this fit
        expects: the median accuracy in each bin, and its dispersion. With a `clear` above 0.5 they
        are as clear as this quantile allows: that of the accuracy where the median reaches what is
        required, and the opposite one elsewhere. Lines beyond its range do not count.
        """
        below = np.cumsum(self.curve.levels[0], axis=1)

        def quantile(share: float) -> Floats:
            reached = (below >= below[:, -1:] * share).argmax(axis=1)
            guessed = self.curve.guessed
            found: Floats = guessed + (1 - guessed) * self.curve.accuracies[reached]
            return found

        reaches = quantile(0.5) >= self.required
        accuracy = np.where(reaches, quantile(clear), quantile(1 - clear))
        answered = np.zeros(self.bins.count)
        for line in lines:
            if line.high <= self.bins.longest:
                lengths = np.arange(line.low, line.high + 1)
                np.add.at(answered, self.bins.places(lengths), samples / len(lengths))
        weights = answered / self.dispersion
        curve = falling_curve(
            (accuracy * weights)[None],
            weights[None],
            seen_share(self.required, self.chance),
            self.bins.centres,
            self.curve.guessed,
        )
        return replace(
            self,
            correct=accuracy * answered,
            answered=answered,
            curve=curve,
            gaps=_gaps(lines),
        )

    def _bound(self, octave: float, whole: _Rounding) -> Bound:
        if octave == -math.inf:
            return Bound("<", self.bins.shortest)
        if octave == math.inf:
            return Bound(">", self.bins.longest)
        length = float(whole(round(self.bins.length_at(octave), 6)))
        return Bound("=", min(max(length, self.bins.shortest), self.bins.longest))


@kept_for_equal_samples
def fit(samples: Curve, threshold: float, *, longest: float = 0.0) -> Fit:
    """Fits a falling curve to the answers of `samples`, over the lengths asked and to `longest`.

    A first fit counts each answer as independent; the dispersion around it weakens the likelihood
    of the second. In a forced choice the accuracy of guesses is fixed,
    and no line counts as below it.
    """
    samples = samples.not_below_chance()
    scored = samples.scored > 0
    lengths = samples.true_lengths[scored]
    bins = Bins.of(samples.lines, longest)
    places = np.zeros(scored.shape, np.int64)
    places[scored] = bins.places(lengths)
    correct, answered = (
        _counts(places[scored], values[scored], bins.count)
        for values in (samples.correct, samples.scored)
    )
    chances = None if samples.guessed is None else _chances(samples, places, bins.count)
    chance = 0.0 if chances is None else samples.mean_chance

    def fitted(dispersion: float = 1.0) -> FallingCurve:
        counts = correct[None] / dispersion, answered[None] / dispersion
        return falling_curve(*counts, seen_share(threshold, chance), bins.centres, chances)

    accuracy = fitted().accuracy[0]
    weights = nearness(accuracy, threshold)
    residuals, row_sums = row_residuals(samples, places, accuracy, weights)
    # of many exact lengths, most may be always right or always wrong
    in_common = not all(line.is_exact for line in samples.lines)
    of_draws = mean_of_draws(samples, places, accuracy, weights)
    dispersion = (
        of_draws
        * between_rows(residuals, samples.scored, in_common=in_common, own_rows=samples.own_rows)
        * between_lengths(correct, answered, accuracy, weights, bins.centres, of_draws=of_draws)
    )
    second = fitted(dispersion)
    return Fit(
        bins=bins,
        required=threshold,
        correct=correct,
        answered=answered,
        curve=second,
        row_sums=row_sums,
        together=RowCorrelation(
            row_correlation(samples), pairs_of_rows(places, samples.scored, bins.count)
        ),
        dispersion=dispersion,
        chance=chance,
        gaps=_gaps([line for line, n in zip(samples.lines, samples.n, strict=True) if n]),
        is_chosen=are_chosen(samples.n[samples.n > 0]),
    )


def seen_share(accuracy: float, chance: float) -> float:
    """The share of samples that a model sees, if its accuracy is this one and its guesses are right
    with the probability `chance`; at most 0 where it only guesses.
    """
    return (accuracy - chance) / (1 - chance)


def _chances(samples: Curve, places: npt.NDArray[np.int64], bins: int) -> Floats:
    """Accuracy of guesses in each bin; the mean of all where nothing was answered."""
    scored = samples.scored > 0
    each = np.broadcast_to(samples.chance, scored.shape)[scored]
    sums, counts = _counts(places[scored], each, bins), _counts(places[scored], each * 0 + 1, bins)
    found: Floats = np.where(counts > 0, sums / np.maximum(counts, 1), samples.mean_chance)
    return found


def _gaps(lines: Sequence[Line]) -> list[tuple[int, int]]:
    """Pairs of neighbouring lengths between which no line lies. Lines ascend and may overlap."""
    highest = np.maximum.accumulate([line.high for line in lines]).tolist()
    lows = [line.low for line in lines[1:]]
    return [(high, low) for high, low in zip(highest, lows, strict=False) if low > high + 1]


def _counts(places: npt.NDArray[np.int64], values: Floats, bins: int) -> Floats:
    counts: Floats = np.bincount(places, weights=values, minlength=bins).astype(float)
    return counts
