"""Plans samples of one task and says how long that takes and what memory it peaks at.

    python tests/benchmarks/plan_million.py [samples] [task]

The ratio is against drawing the same rows alone, without prompts, ids and hashes.
"""

from __future__ import annotations

import random
import resource
import sys
import time

from eyechart.harness.plan.plan import plan, sample_hash
from eyechart.harness.task.catalogue import built_in_files, open_task

LENGTHS = (10, 20, 50, 100)


def peak_mb() -> float:
    """Peak resident memory of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(samples: int = 1_000_000, name: str = "counting/bernoulli") -> None:
    task = open_task(name, built_in_files()[name])
    axes = {"separator": ["none", "comma"]}
    wanted = plan(
        task, lengths=LENGTHS, exact=True, samples=samples // (2 * len(LENGTHS)), axes=axes
    )
    before = peak_mb()
    started = time.perf_counter()
    total = 0
    for sample in wanted:
        total += sample_hash(sample)
    planned_s = time.perf_counter() - started
    grown = peak_mb() - before
    drawn = wanted.size // 20
    started = time.perf_counter()
    for index in range(drawn // 2 // len(LENGTHS)):
        for condition in wanted.conditions:
            for length in LENGTHS:
                task.draw(random.Random(f"0|{name}|{index}"), condition, length, index)
    drawn_s = (time.perf_counter() - started) * 20
    print(f"{wanted.size:,} samples of {name}, lengths {LENGTHS}")
    print(f"planned in {planned_s:.1f} s, {planned_s / wanted.size * 1e6:.0f} us each")
    print(f"drawing the rows alone would take {drawn_s:.1f} s (ratio {planned_s / drawn_s:.2f})")
    print(f"peak memory {peak_mb():.0f} MB, {grown:.1f} MB of it while planning")
    print(f"fingerprint {total % 2**256:064x}"[:28])


if __name__ == "__main__":
    main(*(int(argument) if argument.isdigit() else argument for argument in sys.argv[1:]))  # type: ignore[arg-type]
