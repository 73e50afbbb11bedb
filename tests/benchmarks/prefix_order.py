r"""What the order of the prompts is worth on a real vLLM whose cache holds a part of them.

    vllm serve MODEL --served-model-name NAME --max-model-len 4096 --block-size 32 \
        --num-gpu-blocks-override 400 --port 8000
    python tests/benchmarks/prefix_order.py --base-url http://127.0.0.1:8000/v1 --model NAME

Twenty 0/1 rows, each length a prefix of the next, twelve lengths: 240 prompts over 32 connections,
once as `bench run` sends them and once by length, longest first, as harnesses do that sort. Each
order has rows of its own, so that none finds the other's in the cache. Tokens prefilled are prompt
tokens less those that the server's counters say were in its prefix cache; no order can do with less
than the distinct prefixes. Rates are of the requests alone. 400 blocks of 32 hold 12,800 tokens,
about an eighth of the distinct ones. On a CPU `--dtype float32` and `VLLM_CPU_KVCACHE_SPACE=1`
are wanted besides.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import orjson

from eyechart.harness.journal.record import SAMPLES
from eyechart.harness.plan.plan import plan
from eyechart.harness.spec import Sample
from eyechart.harness.task.catalogue import built_in_files, open_task
from tests.benchmarks.measure import bare_loop, bench, fetch, post, run, show

TASK = "counting/bernoulli"
ROWS = 20
CONNECTIONS = 32
OUTPUT_TOKENS = 4


@dataclass(frozen=True)
class Server:
    """A vLLM server and the model on it."""

    base_url: str
    model: str

    def counted(self, name: str) -> float:
        """One of its counters, over all its engines."""
        text = fetch(f"{self.base_url.removesuffix('/v1')}/metrics")
        found = re.findall(rf"^vllm:{name}(?:{{[^}}]*}})? (\S+)$", text, re.MULTILINE)
        return sum(map(float, found))

    def tokens(self, prompt: str) -> list[int]:
        """Of a prompt as a user's message."""
        messages = [{"role": "user", "content": prompt}]
        asked = {"model": self.model, "messages": messages, "add_generation_prompt": True}
        read = post(f"{self.base_url.removesuffix('/v1')}/tokenize", asked)
        return list(read["tokens"])


@dataclass(frozen=True)
class Order:
    """What one order of the prompts came to."""

    name: str
    asked: float
    """Tokens of all prompts."""
    hits: float
    """Of them in the cache."""
    distinct: int
    """Distinct prefixes of them."""
    seconds: float

    @property
    def prefilled(self) -> float:
        return self.asked - self.hits


def samples(lengths: list[int], seed: int) -> list[Sample]:
    """What `ours` asks with this seed."""
    task = open_task(TASK, built_in_files()[TASK])
    axes = {"separator": ["none"]}
    return list(plan(task, lengths=lengths, exact=True, samples=ROWS, axes=axes, seed=seed))


def distinct_prefixes(server: Server, wanted: list[Sample]) -> int:
    """Tokens that must be prefilled with a cache that forgets nothing."""
    seen: set[int] = set()
    for sample in wanted:
        state = 0
        for token in server.tokens(sample.prompt):
            state = hash((state, token))
            seen.add(state)
    return len(seen)


def by_length(server: Server, wanted: list[Sample], folder: Path) -> float:
    """Seconds of the requests, longest first."""
    bodies = folder / "bodies.jsonl"
    with bodies.open("w", encoding="utf-8") as file:
        for sample in sorted(wanted, key=lambda sample: -sample.length):
            messages = [{"role": "user", "content": sample.prompt}]
            body = {"model": server.model, "messages": messages, "temperature": 0.0}
            file.write(json.dumps(body | {"max_tokens": OUTPUT_TOKENS}) + "\n")
    alone_s, answered = map(float, bare_loop(server.base_url, bodies, CONNECTIONS).out.split())
    assert answered <= len(wanted)
    return alone_s


def ours(server: Server, lengths: list[int], seed: int, folder: Path) -> float:
    """Seconds from the first request of `bench run` to its last reply."""
    out = folder / "results"
    run(
        bench(
            *("run", "--task", TASK, "--lengths", ",".join(map(str, lengths))),
            *("--samples", str(ROWS), "--axis", "separator=none", "--seed", str(seed)),
            *("--model", f"vllm/{server.model}", "--base-url", server.base_url, "--out", out),
            *("--max-connections", str(CONNECTIONS), "--max-tokens", str(OUTPUT_TOKENS)),
        ),
        folder,
    )
    (path,) = out.rglob(SAMPLES)
    records = [orjson.loads(line) for line in path.read_bytes().splitlines()]
    assert len(records) == len(lengths) * ROWS
    assert not [record for record in records if "failure" in record]
    first_s = min(record["at"] - record["latency_s"] for record in records)
    return float(max(record["at"] for record in records) - first_s)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--base-url", required=True)
    parser.add_argument("--model", required=True, help="as the server names it")
    parser.add_argument("--longest", type=int, default=3_500, help="symbols")
    parser.add_argument("--shortest", type=int, default=100, help="symbols")
    parser.add_argument("--rounds", type=int, default=2)
    given = parser.parse_args()
    server = Server(given.base_url, given.model)
    step = (given.longest - given.shortest) / 11
    lengths = [round(given.shortest + step * number) for number in range(12)]
    seeds = iter(range(time.time_ns() % 2**40, 2**62))
    orders: dict[str, list[Order]] = {"by length": [], "bench run": []}
    with tempfile.TemporaryDirectory() as temporary:
        for number in range(given.rounds):
            for name, seen in orders.items():
                folder = Path(temporary) / f"{name}-{number}"
                folder.mkdir()
                seed = next(seeds)
                wanted = samples(lengths, seed)
                distinct = distinct_prefixes(server, wanted)
                counters = "prefix_cache_queries_total", "prefix_cache_hits_total"
                before = [server.counted(counter) for counter in counters]
                seconds = (
                    by_length(server, wanted, folder)
                    if name == "by length"
                    else ours(server, lengths, seed, folder)
                )
                asked, hits = (
                    server.counted(counter) - was
                    for counter, was in zip(counters, before, strict=True)
                )
                seen.append(Order(name, asked, hits, distinct, seconds))
    best = [min(seen, key=lambda order: order.seconds) for seen in orders.values()]
    requests = ROWS * len(lengths)
    print(f"{requests} prompts, {CONNECTIONS} connections, best of {given.rounds}\n")
    show(
        ["order", "prompt tokens", "prefilled", "distinct", "prefilled / distinct", "requests/s"],
        [
            [
                order.name,
                f"{order.asked:,.0f}",
                f"{order.prefilled:,.0f}",
                f"{order.distinct:,}",
                f"{order.prefilled / order.distinct:.2f}",
                f"{requests / order.seconds:.0f}",
            ]
            for order in best
        ],
    )
    sorted_by_length, mine = best
    print(
        f"bench run: {sorted_by_length.prefilled / mine.prefilled:.1f} times fewer tokens "
        f"prefilled, {sorted_by_length.seconds / mine.seconds:.1f} times the requests/s"
    )


if __name__ == "__main__":
    main()
