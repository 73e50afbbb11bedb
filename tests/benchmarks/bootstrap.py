"""Effective length, tested length and area of many curves, with their intervals.

    python tests/benchmarks/bootstrap.py [--curves 100] [--resamples 2000] [--samples 50]

The yardstick draws indexes and takes means one resample after the other, for the tested length
alone; it is timed on a tenth of the curves.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from time import perf_counter

import numpy as np

from eyechart.harness.analysis.length.curve import Curve, curve
from eyechart.harness.analysis.length.effective_length import effective_length, passing_lengths
from eyechart.harness.settings.judging import THRESHOLD
from tests.benchmarks.measure import show

LENGTHS = np.array([5, 10, 20, 50, 100, 200, 500])


def curves(count: int, samples: int) -> list[Curve]:
    """Logistic ones with their middles all over the tested range."""
    rng = np.random.default_rng(0)
    made = []
    for middle in np.geomspace(5, 500, count):
        right = rng.random((samples, len(LENGTHS))) < 1 / (1 + (LENGTHS / middle) ** 3)
        indexes, places = np.indices(right.shape)
        made.append(curve(LENGTHS[places.ravel()], indexes.ravel(), right.ravel()))
    return made


def one_by_one(some: Sequence[Curve], resamples: int) -> None:
    """A plain bootstrap of the tested length."""
    rng = np.random.default_rng(0)
    for one in some:
        drawn = []
        for _ in range(resamples):
            rows = rng.integers(len(one.correct), size=len(one.correct))
            drawn.append(passing_lengths(one.correct[rows].mean(axis=0)[None], THRESHOLD)[0])
        np.quantile(drawn, (0.025, 0.975), method="inverted_cdf")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--curves", type=int, default=100)
    parser.add_argument("--resamples", type=int, default=2000)
    parser.add_argument("--samples", type=int, default=50)
    given = parser.parse_args()
    made = curves(given.curves, given.samples)
    started = perf_counter()
    for one in made:
        effective_length(one, resamples=given.resamples)
    ours_s = perf_counter() - started
    tenth = made[::10]
    started = perf_counter()
    one_by_one(tenth, given.resamples)
    plain_s = (perf_counter() - started) * len(made) / len(tenth)
    print(f"{given.curves} curves of {len(LENGTHS)} lengths, {given.resamples:,} resamples\n")
    show(
        ["", "s", "of one by one"],
        [
            ["effective length, tested length, area", f"{ours_s:.1f}", f"{ours_s / plain_s:.2f}"],
            ["tested length alone, one by one", f"{plain_s:.1f}", "1.00"],
        ],
    )


if __name__ == "__main__":
    main()
