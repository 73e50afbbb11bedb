"""`bench merge` of sixteen shards: its time and its peak memory.

    python tests/benchmarks/merge_million.py [--samples 1000000]

The journals are those of `score_million.py`. The yardstick is reading the same lines as JSON alone.
Merging alone is what `bench merge` does before it judges the merged run and writes its tables.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from eyechart.harness.journal.manifest import find_runs, shard_folder
from eyechart.harness.journal.record import SAMPLES
from eyechart.harness.settings.shard import Shard
from tests.benchmarks.measure import CELLS, bench, run, samples_plan, show
from tests.benchmarks.score_million import write_run

SHARDS = 16
READ = """
import orjson, sys
total = 0
for path in sys.argv[1:]:
    with open(path, "rb") as file:
        total += sum(len(orjson.loads(line)) for line in file)
"""
MERGE = """
import sys
from pathlib import Path
from eyechart.harness.journal.manifest import folder_of
from eyechart.harness.journal.merge import merge
from eyechart.harness.journal.parts import find_parts
(parts,) = find_parts([Path(sys.argv[1])], [])
merge(parts, folder_of(Path(sys.argv[2]), parts[0].manifest), print)
"""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--samples", type=int, default=1_000_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        source = folder / "run"
        planned = samples_plan(given.samples // CELLS)
        journals = []
        for number in range(1, SHARDS + 1):
            shard = Shard(number, SHARDS)
            place = shard_folder(source, shard)
            place.mkdir(parents=True)
            write_run(place, replace(planned, shard=shard))
            journals.append(place / SAMPLES)
        size_mb = sum(path.stat().st_size for path in journals) / 1e6
        alone = run([sys.executable, "-c", READ, *journals], folder)
        rows = []
        merging: list[str | Path] = [sys.executable, "-c", MERGE, source, folder / "merged"]
        for name, command in (
            ("merging alone", merging),
            ("merging alone, again", merging),
            ("bench merge, with the tables", bench("merge", source, "-o", folder / "judged")),
        ):
            cost = run(command, folder)
            ratio = cost.wall_s / alone.wall_s
            rows.append([name, f"{cost.wall_s:.1f}", f"{ratio:.1f}", f"{cost.peak_mb:.0f}"])
        (merged,) = find_runs(folder / "merged")
        with (merged / SAMPLES).open("rb") as file:
            assert sum(1 for _ in file) == planned.size
    print(
        f"{planned.size:,} journal lines in {SHARDS} shards, {size_mb:.0f} MB "
        f"({size_mb * 1e6 / planned.size:.0f} bytes a line); JSON alone {alone.wall_s:.1f} s\n"
    )
    show(["", "s", "of JSON alone", "peak MB"], rows)


if __name__ == "__main__":
    main()
