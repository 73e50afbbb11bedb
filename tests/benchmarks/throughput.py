"""`bench run` against a bare aiohttp loop: what the harness costs beside the network.

    python tests/benchmarks/throughput.py [--samples 20000] [--rounds 2] [--connections 64]

Both ask the same zero-latency server the same questions, in turn, each in a process of its own;
the best round counts. `bench run`, on uvloop as ever, is timed from the start of its process to its
end: imports, rows, prompts, requests, journal, scoring and the CSV. While sending it is timed by
the server, from the first question to the last answer. The bare loop has its bodies ready; its
requests alone, on asyncio's own loop, are the yardstick. CPU time is the steadier ratio
on a machine with other work. With more than 20,000 samples the peak memory at 20,000 is shown too.
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
    cheapest,
    fetch,
    local_server,
    show,
    write_bodies,
)

SMALL = 20_000


def compare(model: str, samples: int, rounds: int, connections: int, *options: str) -> Cost:
    """Prints the table for one number of samples; the cost of `bench run`."""
    ours: list[Cost] = []
    bare: list[Cost] = []
    quick: list[Cost] = []
    sending_s: list[float] = []
    with tempfile.TemporaryDirectory() as temporary, local_server() as url:
        folder = Path(temporary)
        bodies = folder / "bodies.jsonl"
        write_bodies(bodies, samples // CELLS)
        for number in range(rounds):
            bare.append(bare_loop(url, bodies, connections, *options))
            if not options:
                quick.append(bare_loop(url, bodies, connections, "--uvloop"))
            server = url.removesuffix("/v1")
            fetch(f"{server}/reset")
            ours.append(bench_run(model, url, samples // CELLS, connections, folder / str(number)))
            sending_s.append(json.loads(fetch(f"{server}/count"))["seconds"])
    best, yardstick = cheapest(ours), cheapest(bare)
    alone_s, answered = map(float, yardstick.out.split())
    assert answered == samples, (answered, samples)
    rows = [
        ("bare loop, requests alone", alone_s, yardstick.cpu_s, yardstick.peak_mb),
        ("bare loop, whole process", yardstick.wall_s, yardstick.cpu_s, yardstick.peak_mb),
        *(
            (f"bare loop on uvloop, {name}", wall_s, cost.cpu_s, cost.peak_mb)
            for cost in ([cheapest(quick)] if quick else [])
            for name, wall_s in (
                ("requests alone", float(cost.out.split()[0])),
                ("whole process", cost.wall_s),
            )
        ),
        ("bench run, while sending", min(sending_s), best.cpu_s, best.peak_mb),
        ("bench run, whole process", best.wall_s, best.cpu_s, best.peak_mb),
    ]
    print(f"{samples:,} samples, {connections} connections, best of {rounds}\n")
    show(
        ["", "seconds", "requests/s", "of the bare requests", "CPU µs a request", "peak MB"],
        [
            [
                name,
                f"{wall_s:.2f}",
                f"{samples / wall_s:,.0f}",
                f"{alone_s / wall_s:.2f}",
                f"{cpu_s / samples * 1e6:.0f}",
                f"{peak_mb:.0f}",
            ]
            for name, wall_s, cpu_s, peak_mb in rows
        ],
    )
    return best


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--samples", type=int, default=SMALL)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--model", default="vllm/fake")
    given = parser.parse_args()
    small = compare(given.model, min(SMALL, given.samples), given.rounds, given.connections)
    if given.samples > SMALL:
        large = compare(given.model, given.samples, given.rounds, given.connections)
        grown = large.peak_mb - small.peak_mb
        print(f"{grown:.0f} MB more for {given.samples / SMALL:.0f} times the samples")


if __name__ == "__main__":
    main()
