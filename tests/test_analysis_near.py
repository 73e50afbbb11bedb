"""To which length answers are share a few per cent."""

from __future__ import annotations

import numpy as np
import pytest

from eyechart.harness.analysis.length.curve import Floats
from eyechart.harness.analysis.length.effective_length import EffectiveLength
from eyechart.harness.analysis.length.limits import ScoredSamples, scored_length
from eyechart.harness.analysis.order.near import judged_near, near_length
from eyechart.harness.score.outcomes import Outcome
from eyechart.harness.settings.judging import THRESHOLD
from tests.simulated import Observer, counted


def lengths(samples: ScoredSamples, share: float = 0.05) -> tuple[EffectiveLength, EffectiveLength]:
    """The exact and the near length."""
    exact = scored_length(samples, THRESHOLD)
    found = near_length(samples, exact, THRESHOLD, share)
    assert found is not None
    return exact, found


def off(share: float, beyond: float) -> Observer:
    """This share too many beyond a length."""
    return lambda targets, _: np.where(targets > beyond, np.rint(targets * (1 + share)), targets)


class TestVerdict:
    @pytest.mark.parametrize(
        ("target", "answer", "is_near"),
        [
            (100, 105, True),
            (100, 95, True),
            (100, 106, False),
            (100, 94, False),
            (19, 20, False),  # a twentieth of 19 is less than 1
            (20, 21, True),
            (0, 0, True),
            (0, 1, False),
            (100, np.nan, False),
            (100, np.inf, False),
        ],
    )
    def test_it_is_at_most_five_per_cent_off(
        self, target: float, answer: float, is_near: bool
    ) -> None:
        """A missing answer is not near."""
        samples = counted(
            lambda targets, _: np.full_like(targets, answer),
            1,
            targets=lambda lengths, _: np.full_like(lengths, target),
        )
        found = judged_near(samples, 0.05)
        assert (found.outcomes == Outcome.CORRECT.place).all() == is_near


class TestLength:
    def test_answers_a_little_off_are_near_and_not_exact(self) -> None:
        """Off by 4 % beyond 40, and by 10 % beyond 150."""

        def observer(targets: Floats, rng: np.random.Generator) -> Floats:
            return np.where(targets > 150, off(0.1, 0)(targets, rng), off(0.04, 40)(targets, rng))

        exact, found = lengths(counted(observer, 20))
        assert exact.length is not None
        assert found.length is not None
        assert exact.length_ci[0].length <= 40 <= exact.length_ci[1].length < 60
        assert found.length_ci[0].length <= 150 <= found.length_ci[1].length < 200

    @pytest.mark.parametrize(("share", "sign"), [(0.05, "="), (0.1, ">"), (0.0, "=")])
    def test_the_share_is_the_users(self, share: float, sign: str) -> None:
        """Off by 8 % beyond 40; share 0 is exact."""
        exact, found = lengths(counted(off(0.08, 40), 20), share)
        assert found.length is not None
        assert found.length.sign == sign
        assert (found.length == exact.length) == (share != 0.1)

    def test_it_is_never_below_the_exact_length(self) -> None:
        """Near answers that come back at the longest lines make a dip, so a shorter length is
        certified than the exact answers alone have.
        """

        def observer(targets: Floats, rng: np.random.Generator) -> Floats:
            is_right = rng.random(targets.shape) < np.where(targets < 60, 0.88, 0.1)
            is_near = np.where(targets < 200, 0.3, 0.99)
            answers = np.where(rng.random(targets.shape) < is_near, targets + 2, 3 * targets)
            return np.where(is_right, targets, answers)

        lower = 0
        for seed in range(10):
            samples = counted(observer, 20, seed)
            exact, found = lengths(samples)
            alone = scored_length(judged_near(samples, 0.05), THRESHOLD)
            for one, of_exact in zip(found.length_ci, exact.length_ci, strict=True):
                assert one.order >= of_exact.order
            if found.length is not None and exact.length is not None:
                assert found.length.order >= exact.length.order
            lower += any(
                one.order < of_exact.order
                for one, of_exact in zip(alone.length_ci, exact.length_ci, strict=True)
            )
        assert lower  # two fits alone do not promise it

    def test_cut_replies_limit_it_as_they_limit_the_exact_length(self) -> None:
        """Cut off beyond 50."""
        samples = counted(
            lambda targets, _: np.where(targets > 50, np.nan, targets + (targets > 30)),
            20,
            unread=Outcome.TRUNCATED,
        )
        _, found = lengths(samples)
        assert found.limit.by == "room"
        assert not found.is_ranked


class TestCounts:
    """Only counts and sums are near to anything."""

    def test_numbers_that_do_not_grow_with_the_rows_are_none(self) -> None:
        def drawn(lengths: Floats, rng: np.random.Generator) -> Floats:
            return rng.integers(1000, 9999, lengths.shape).astype(float)

        samples = counted(off(0.04, 0), 20, targets=drawn)
        assert not samples.counts
        assert near_length(samples, scored_length(samples, THRESHOLD), THRESHOLD) is None

    def test_numbers_below_0_are_none(self) -> None:
        assert not counted(off(0, 0), 20, targets=lambda lengths, _: lengths - 20).counts

    def test_texts_are_none(self) -> None:
        assert not counted(off(0, 0), 20, targets=lambda lengths, _: lengths * np.nan).counts

    def test_counts_of_a_part_are_counts(self) -> None:
        """Evenly from 0 to the length, as in `vocabulary/numbers`; and at a single length."""

        def part(lengths: Floats, rng: np.random.Generator) -> Floats:
            return np.floor(rng.random(lengths.shape) * (lengths + 1))

        assert counted(off(0, 0), 5, targets=part).counts
        samples = counted(off(0, 0), 5, targets=lambda lengths, rng: part(lengths * 0 + 40, rng))
        samples.lengths[:] = 40
        assert samples.counts
