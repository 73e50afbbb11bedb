"""`bench run` over HTTP with ever more samples: its time, its peak memory and its journal's bytes.

    python tests/benchmarks/http_million.py [--samples 20000,200000,1000000] [--connections 64]

The server answers at once, on the same machine, so that the time is the harness's own. The last
column is the memory that each further sample takes.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from eyechart.harness.journal.record import SAMPLES
from tests.benchmarks.measure import CELLS, bench_run, local_server, show


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--samples", default="20000,200000,1000000")
    parser.add_argument("--connections", type=int, default=64)
    given = parser.parse_args()
    rows: list[list[str]] = []
    before = (0, 0.0)
    for number in sorted(map(int, given.samples.split(","))):
        with tempfile.TemporaryDirectory() as temporary, local_server() as url:
            folder = Path(temporary) / "run"
            cost = bench_run("vllm/fake", url, number // CELLS, given.connections, folder)
            (journal,) = folder.rglob(SAMPLES)
            size = journal.stat().st_size
            with journal.open("rb") as file:
                assert sum(1 for _ in file) == number
        more, grown = number - before[0], cost.peak_mb - before[1]
        rows.append(
            [
                f"{number:,}",
                f"{cost.wall_s:.0f}",
                f"{number / cost.wall_s:,.0f}",
                f"{cost.cpu_s / number * 1e6:.0f}",
                f"{cost.peak_mb:.0f}",
                f"{size / 1e6:,.0f}",
                f"{size / number:.0f}",
                f"{grown * 2**20 / more:.0f}" if rows else "",
            ]
        )
        before = number, cost.peak_mb
    show(
        [
            *("samples", "s", "samples/s", "CPU µs each", "peak MB", "journal MB", "bytes a line"),
            "bytes of memory for each sample more",
        ],
        rows,
    )


if __name__ == "__main__":
    main()
