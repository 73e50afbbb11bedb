"""`bench run` against a bare aiohttp loop that sends the same bodies to the same real server.

    vllm serve providers/tiny/model --served-model-name tiny --dtype float32 --max-model-len 4096
    python tests/benchmarks/throughput.py --base-url http://127.0.0.1:8000/v1 --model tiny

Both ask the same questions over as many connections, in turn, each in a process of its own; the
first round of each only fills the server's cache. `bench run` asks once as of any server and once
as of vLLM; no reply is asked again with more room. It is timed while sending, from the
first request to the last reply, as the loop is, whose bodies are ready. Ratios are of the rates of
one round, so that a machine with other work slows both; the median counts.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import defaultdict
from pathlib import Path
from statistics import median

import orjson

from eyechart.harness.journal.record import SAMPLES
from eyechart.harness.plan.plan import plan
from eyechart.harness.task.catalogue import built_in_files, open_task
from eyechart.providers.base import ModelSettings, Request
from eyechart.providers.registry.model_name import parse_model
from eyechart.providers.registry.registry import open_batch_form
from tests.benchmarks.measure import TASK, Cost, bare_loop, bench, run, show

BARE = "bare loop"
MOST_TOKENS = 32


def write_bodies(path: Path, model: str, base_url: str, samples: int) -> int:
    """The bodies that `bench run` sends, one a line; how many there are."""
    name = parse_model(model, base_urls=(base_url,))
    form = open_batch_form(name, ModelSettings(name.model, name.provider, base_urls=(base_url,)))
    task = open_task(TASK, built_in_files()[TASK])
    wanted = sorted(sample.prompt for sample in plan(task, samples=samples))
    bodies = (form.body(Request(prompt, MOST_TOKENS)) for prompt in wanted)
    path.write_bytes(b"".join(orjson.dumps(body) + b"\n" for body in bodies))
    return len(wanted)


def sending(model: str, base_url: str, samples: int, connections: int, out: Path) -> Cost:
    """`bench run`; its `wall_s` is that from the first request to the last reply."""
    out.mkdir(parents=True)
    cost = run(
        bench(
            *("run", "--task", TASK, "--samples", str(samples), "--model", model),
            *("--base-url", base_url, "--max-connections", str(connections)),
            *("--max-tokens", str(MOST_TOKENS), "--out", out / "results"),
        ),
        out,
    )
    (journal,) = out.rglob(SAMPLES)
    records = [orjson.loads(line) for line in journal.read_bytes().splitlines()]
    assert not [record for record in records if "failure" in record]
    begun_s = min(record["at"] - record["latency_s"] for record in records)
    wall_s = max(record["at"] for record in records) - begun_s
    return Cost(wall_s, cost.cpu_s, cost.peak_mb, cost.out)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--base-url", required=True)
    parser.add_argument("--model", required=True, help="as the server names it")
    parser.add_argument("--samples", type=int, default=100, help="a cell")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--connections", type=int, default=64)
    given = parser.parse_args()
    url, connections = given.base_url, given.connections
    costs: dict[str, list[Cost]] = defaultdict(list)
    ways = [BARE, f"local/{given.model}", f"vllm/{given.model}"]
    with tempfile.TemporaryDirectory() as temporary:
        bodies = Path(temporary) / "bodies.jsonl"
        requests = write_bodies(bodies, ways[1], url, given.samples)
        for number in range(given.rounds + 1):
            for way in ways[number % 3 :] + ways[: number % 3]:
                if way == BARE:
                    cost = bare_loop(url, bodies, connections)
                    seconds, answered = cost.out.split()
                    assert int(answered) == requests
                    cost = Cost(float(seconds), cost.cpu_s, cost.peak_mb, cost.out)
                else:
                    out = Path(temporary) / f"{number}-{way.replace('/', '-')}"
                    cost = sending(way, url, given.samples, connections, out)
                if number:
                    costs[way].append(cost)
    print(f"{requests:,} requests, {connections} connections, {given.rounds} rounds\n")
    show(
        ["", "seconds", "of the bare rate", "each round", "CPU s"],
        [
            [
                f"bench run --model {way}" if way != BARE else way,
                f"{median(cost.wall_s for cost in costs[way]):.1f}",
                f"{median(ratios):.2f}",
                ", ".join(f"{ratio:.2f}" for ratio in ratios),
                f"{median(cost.cpu_s for cost in costs[way]):.1f}",
            ]
            for way in ways
            for ratios in [
                [
                    bare.wall_s / ours.wall_s
                    for bare, ours in zip(costs[BARE], costs[way], strict=True)
                ]
            ]
        ],
    )


if __name__ == "__main__":
    main()
