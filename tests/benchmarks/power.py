"""The power that `--dry-run` promises, against simulated comparisons of two models.

    python tests/benchmarks/power.py [--comparisons 300]

Both models of a comparison answer independently of each other. For falls of accuracy, all lines of
the design are simulated and corrected by Holm, and one of them falls. For effective lengths, both
curves are logistic with 2 % lapses and lie evenly about the middle of the range.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence

import numpy as np

from eyechart.harness.analysis.comparison.paired_curves import holm, mcnemar
from eyechart.harness.analysis.comparison.power import FROM, smallest_factor, smallest_fall
from eyechart.harness.analysis.length.curve import Curve, Floats
from eyechart.harness.settings.judging import THRESHOLD
from eyechart.harness.spec import Line, lines_of
from tests.benchmarks.measure import show
from tests.curves import length_difference

LENGTHS = (5, 7, 10, 15, 22, 33, 50, 75, 110, 160, 240, 350, 500)
FALLS = ((20, 1), (20, 13), (20, 26), (50, 13), (100, 26), (400, 13))
"""Pairs of a line, and tests."""
DESIGNS = (
    ("13 bands, 5 to 500", lines_of(LENGTHS, "bands"), (5, 10, 20, 50, 200)),
    ("13 exact lengths", lines_of(LENGTHS, "none"), (10, 20, 50)),
    ("7 bands, 5 to 500", lines_of((5, 10, 20, 50, 100, 200, 500), "bands"), (10, 20, 50)),
    ("4 bands, 10 to 40", lines_of((10, 16, 25, 40), "bands"), (50, 200)),
)


def fall_found(pairs: int, tests: int, fall: float, rng: np.random.Generator) -> bool:
    """Whether the first of the lines, and in the right direction, is significant."""
    second = np.full(tests, FROM)
    second[0] -= fall
    right = rng.random((pairs, tests)) < FROM
    other = rng.random((pairs, tests)) < second
    ahead, behind = (right & ~other).sum(axis=0), (other & ~right).sum(axis=0)
    p_values = holm([mcnemar(int(a), int(b)) for a, b in zip(ahead, behind, strict=True)])
    return p_values[0] < 0.05 and bool(ahead[0] > behind[0])


def answers(
    lines: Sequence[Line], samples: int, crossing: float, rng: np.random.Generator
) -> Curve:
    """A model whose accuracy is 85 % at `crossing`."""
    lengths: Floats = np.array(
        [[line.length_of(index, 0) for line in lines] for index in range(samples)], float
    )
    accuracies = 0.98 / (1 + (0.98 / 0.85 - 1) * (lengths / crossing) ** 3)
    correct = (rng.random(lengths.shape) < accuracies).astype(float)
    return Curve(tuple(lines), correct, np.ones_like(correct), lengths)


def rows_of_falls(comparisons: int) -> Iterator[list[str]]:
    rng = np.random.default_rng(1)
    for pairs, tests in FALLS:
        fall = smallest_fall(pairs, tests)
        if fall is None:
            yield [str(pairs), str(tests), "none", ""]
            continue
        found = sum(fall_found(pairs, tests, fall, rng) for _ in range(comparisons))
        yield [str(pairs), str(tests), f"{100 * fall:.1f}", f"{100 * found / comparisons:.0f}"]


def rows_of_factors(comparisons: int) -> Iterator[list[str]]:
    rng = np.random.default_rng(1)
    for name, lines, sizes in DESIGNS:
        middle = (lines[0].low * lines[-1].high) ** 0.5
        for samples in sizes:
            factor = smallest_factor(tuple((line, samples) for line in lines))
            if factor is None:
                yield [name, str(samples), "none", "", ""]
                continue
            signs = [
                length_difference(
                    answers(lines, samples, middle * factor**0.5, rng),
                    answers(lines, samples, middle / factor**0.5, rng),
                    THRESHOLD,
                ).further
                for _ in range(comparisons)
            ]
            right, wrong = (f"{100 * signs.count(sign) / comparisons:.1f}" for sign in (1, -1))
            yield [name, str(samples), f"{factor:.2f}", right, wrong]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--comparisons", type=int, default=300)
    comparisons = parser.parse_args().comparisons
    heads = ["pairs", "tests", "smallest fall from 90 %, points", "power %"]
    show(heads, list(rows_of_falls(10 * comparisons)))
    print()
    heads = ["lines", "samples", "smallest factor", "power %", "wrong way %"]
    show(heads, list(rows_of_factors(comparisons)))


if __name__ == "__main__":
    main()
