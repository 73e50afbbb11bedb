"""How often the two tests over seeds that the laboratory could use for variants with the same
trained weights say a difference: the permutation test that it uses, which takes all models for
independent ones, and sign flips over the pairs of models of one seed (Fisher 1935).

    python -m lab.benchmarks.lab_pairs

Log lengths are normal, with deviation 1 in both variants and a correlation between the two models
of a seed. A row of the table is a number of seeds, a correlation and a true difference; its numbers
are shares of 2,000 studies with p at most 0.05, first without and then with Holm's correction for 7
variants of which the other 6 differ in nothing (taken as Bonferroni's, which the smallest p gets).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import product

import numpy as np
import numpy.typing as npt

from eyechart.harness.analysis.length.curve import SIGNIFICANT
from eyechart_lab.variants.results.seeds import SeedValue, permutation_p

STUDIES = 2_000
SEEDS = 3, 4, 5, 6
CORRELATIONS = -0.5, 0.0, 0.5, 0.9
DIFFERENCES = 0.0, 1.0, 2.0
VARIANTS = 7


def sign_flip_p(differences: npt.NDArray[np.float64]) -> float:
    """The exact two-sided p-value of a mean difference of pairs: the share of all changes of signs
    whose mean is at least as large. Of k pairs it is at least 2 / 2^k.
    """
    signs = np.array(list(product((1, -1), repeat=len(differences))))
    means = np.abs(signs @ differences)
    return float((means >= abs(differences.sum()) - 1e-9).mean())


def rows(studies: int = STUDIES) -> Iterator[tuple[int, float, float, list[float]]]:
    """Seeds, correlation, difference, and the four shares."""
    for seeds, correlation, difference in product(SEEDS, CORRELATIONS, DIFFERENCES):
        rng = np.random.default_rng([seeds, int(10 * correlation) + 10, int(difference)])
        covariance = [[1.0, correlation], [correlation, 1.0]]
        drawn = rng.multivariate_normal([0.0, difference], covariance, size=(studies, seeds))
        found = np.array([_tests(one) for one in drawn])
        shares = [
            float((found[:, test] * factor <= SIGNIFICANT).mean())
            for factor in (1, VARIANTS)
            for test in (0, 1)
        ]
        yield seeds, correlation, difference, shares


def _tests(drawn: npt.NDArray[np.float64]) -> tuple[float, float]:
    first, second = ([SeedValue(float(value), 0.0, 0.0) for value in column] for column in drawn.T)
    return permutation_p(first, second), sign_flip_p(drawn[:, 1] - drawn[:, 0])


def main() -> None:
    """Prints the table, in percent."""
    head = ("seeds", "correlation", "difference", "permutation", "signs")
    sys.stdout.write(f"| {' | '.join(head)} | of {VARIANTS}: permutation | signs |\n")
    sys.stdout.write(f"|{' ---: |' * 7}\n")
    for seeds, correlation, difference, shares in rows():
        texts = (f"{100 * share:.1f}" for share in shares)
        given = (str(seeds), f"{correlation:g}", f"{difference:g}")
        sys.stdout.write(f"| {' | '.join((*given, *texts))} |\n")


if __name__ == "__main__":
    main()
