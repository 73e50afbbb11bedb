"""All pairs of a leaderboard: their tests alone, against the whole difference of each pair.

    python -m tests.benchmarks.leaderboard_pairs FOLDER

Prints the CPU time of both ways, and whether p-values and signs are the same. FOLDER has runs of
one task, each with one condition, such as the folder `length` that
`python -m results.recorded FILE --runs …` writes.
"""

from __future__ import annotations

import argparse
from itertools import combinations
from pathlib import Path
from time import process_time

from eyechart.harness.analysis.comparison.comparability import have_other_rows
from eyechart.harness.analysis.comparison.comparison import sides_of
from eyechart.harness.analysis.comparison.family import corrected
from eyechart.harness.analysis.comparison.length_difference import Sides, sides_difference
from eyechart.harness.analysis.ranking.standing import LengthTest, length_tests
from eyechart.harness.analysis.samples.judged_run import read_run
from eyechart.harness.settings.judging import THRESHOLD


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="runs of one task, each with one condition")
    folders = sorted(file.parent for file in parser.parse_args().folder.rglob("manifest.json"))
    judged = [next(iter(read_run(folder).conditions.values())) for folder in folders]
    other_rows = {
        (left, right)
        for left, right in combinations(range(len(judged)), 2)
        if have_other_rows(judged[left], judged[right])
    }
    started = process_time()
    tests = length_tests(judged, Sides(THRESHOLD), other_rows)
    tests_s = process_time() - started
    started, sides = process_time(), Sides(THRESHOLD)
    differences = []
    for left, right in tests:
        other = (left, right) in other_rows
        pair = sides_of(judged[left], judged[right], sides, other_rows=other)
        assert pair is not None
        differences.append(sides_difference(*pair, paired=not other))
    whole = [LengthTest(one.p, one.further) for one in corrected(differences)]
    whole_s = process_time() - started
    found = list(tests.values())
    both = [(one.p, other.p) for one, other in zip(found, whole, strict=True)]
    apart = max(abs(p - other) for p, other in both if p is not None and other is not None)
    same = sum(one.further == other.further for one, other in zip(found, whole, strict=True))
    print(f"{len(judged)} runs, {len(tests):,} pairs")
    print(f"CPU: {tests_s:.1f} s for the tests, {whole_s:.1f} s for the differences")
    print(f"p-values differ by at most {apart:.1g}; {same:,} signs are the same")


if __name__ == "__main__":
    main()
