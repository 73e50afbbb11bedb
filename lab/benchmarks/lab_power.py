"""How often a study of the laboratory with these seeds and variants finds a difference.

    python -m lab.benchmarks.lab_power

Log lengths, or shares, are normal in every variant, with the same deviation between the seeds. One
variant differs from the reference by so many deviations, the others in nothing. A row of the table
is a published study: its seeds, steps and rows of a step, its comparisons with the reference, the
smallest p that its seeds can give after the correction, and the shares of 4,000 simulated studies
that find a difference of 1, 2 and 3 deviations: p at most 0.05 after Holm's correction (taken as
Bonferroni's, which the smallest p gets). The last columns say how much a deviation is, that of the
seeds of the reference: in points of the share of longer rows, and as a factor of the length where
that of each seed is known; the least and the largest of its conditions.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import combinations
from pathlib import Path
from statistics import stdev

import numpy as np

from eyechart.harness.analysis.length.curve import SIGNIFICANT
from eyechart_lab.variants.asking import read_csv
from eyechart_lab.variants.reading import read_lab
from eyechart_lab.variants.results.results import results_of
from eyechart_lab.variants.results.seeds import smallest_p
from lab.pages import HERE

STUDIES = 4_000
DIFFERENCES = 1.0, 2.0, 3.0


@cache
def found(seeds: int, comparisons: int, difference: float, studies: int = STUDIES) -> float:
    """The share of studies that find a difference of so many deviations."""
    rng = np.random.default_rng([seeds, comparisons, int(10 * difference)])
    drawn = rng.normal(size=(studies, 2 * seeds))
    drawn[:, :seeds] += difference
    signs = np.full((math.comb(2 * seeds, seeds), 2 * seeds), -1.0)
    for row, chosen in zip(signs, combinations(range(2 * seeds), seeds), strict=True):
        row[list(chosen)] = 1.0
    sums = np.abs(drawn @ signs.T)
    p = (sums >= sums[:, :1] - 1e-9).mean(axis=1)  # the first split is the one that was drawn
    return float((p * comparisons <= SIGNIFICANT).mean())


def table() -> Iterator[str]:
    """The lines of the table, shares in percent."""
    head: tuple[str, ...] = ("study", "seeds", "steps", "rows", "comparisons", "smallest p")
    head += tuple(f"{one:g} found, %" for one in DIFFERENCES)
    head += ("1 in points", "1 in length")
    yield f"| {' | '.join(head)} |"
    yield f"| --- |{' ---: |' * (len(head) - 1)}"
    for path in sorted(HERE.glob("*.yaml")):
        spec = read_lab(path).spec
        comparisons = len(spec.variants) - 1
        smallest = comparisons * smallest_p(spec.seeds, spec.seeds)
        numbers = spec.seeds, f"{spec.training.steps:,}", spec.training.rows, comparisons
        shares = (found(spec.seeds, comparisons, one) for one in DIFFERENCES)
        cells = path.stem, *numbers, f"{smallest:.2g}", *(f"{100 * one:.0f}" for one in shares)
        yield f"| {' | '.join(map(str, (*cells, *deviations(path, spec.reference))))} |"


def deviations(study: Path, reference: str) -> tuple[str, str]:
    """How much one deviation between the seeds of the reference is: in points of the share of
    longer rows, and as a factor of the length.
    """
    found = results_of(read_csv(study.with_suffix(".csv")), reference)
    points, factors = [], []
    for one in found:
        if one.variant == reference and len(one.beyond) == len(one.seeds):
            points.append(100 * stdev(share.value for share in one.beyond))
        known = {seen.length.sign for seen in one.seen} == {"="} and not one.unknown
        if one.variant == reference and known:
            factors.append(math.exp(stdev(seen.log.value for seen in one.seen)))
    return _range(points, ".0f"), _range(factors, ".2f")


def _range(numbers: Sequence[float], form: str) -> str:
    """The least and the largest of numbers: `2 to 12`, `2` where they are equal, `–` of none."""
    return (
        " to ".join(dict.fromkeys(f"{one(numbers):{form}}" for one in (min, max)))
        if numbers
        else "–"
    )


if __name__ == "__main__":
    sys.stdout.writelines(f"{line}\n" for line in table())
