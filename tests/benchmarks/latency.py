"""Many connections to a slow server: how near the harness keeps them all to being busy.

    python tests/benchmarks/latency.py [--samples 25000] [--connections 512] [--latency 0.2]

A server that answers each request after 200 ms can answer 2,560 a second over 512 connections.
The rate is the server's own count, from the first question to the last answer, so that it has the
way up to that many connections in it and not the start of the process. A bare aiohttp loop does
the same for comparison.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

from tests.benchmarks.measure import (
    CELLS,
    Cost,
    bare_loop,
    bench_run,
    fetch,
    local_server,
    show,
    write_bodies,
)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--samples", type=int, default=25_000)
    parser.add_argument("--connections", type=int, default=512)
    parser.add_argument("--latency", type=float, default=0.2, help="seconds")
    parser.add_argument("--model", default="vllm/fake")
    given = parser.parse_args()
    ideal = given.connections / given.latency
    rows: list[list[str]] = []

    def row(name: str, cost: Cost, url: str) -> None:
        seen = json.loads(fetch(f"{url.removesuffix('/v1')}/count"))
        assert seen["answers"] == given.samples, seen
        rate = given.samples / seen["seconds"]
        rows.append(
            [
                name,
                f"{rate:,.0f}",
                f"{rate / ideal:.2f}",
                f"{cost.wall_s:.1f}",
                f"{cost.cpu_s:.1f}",
                f"{given.samples / cost.wall_s / ideal:.2f}",
                f"{cost.peak_mb:.0f}",
            ]
        )

    with (
        tempfile.TemporaryDirectory() as temporary,
        local_server("--latency", str(given.latency)) as url,
    ):
        folder = Path(temporary)
        bodies = folder / "bodies.jsonl"
        write_bodies(bodies, given.samples // CELLS)
        row("bare loop", bare_loop(url, bodies, given.connections), url)
        fetch(f"{url.removesuffix('/v1')}/reset")
        samples = given.samples // CELLS
        row("bench run", bench_run(given.model, url, samples, given.connections, folder / "o"), url)
    print(f"{given.samples:,} samples, {given.connections} connections, {given.latency} s each: ")
    print(f"{ideal:,.0f} requests/s at most\n")
    show(
        ["", "requests/s", "of the most", "whole process s", "CPU s", "of the most", "peak MB"],
        rows,
    )


if __name__ == "__main__":
    main()
