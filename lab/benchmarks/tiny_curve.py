"""Asks the embedded model rows of each of its tasks and prints its curve, as its card shows it.

    python lab/benchmarks/tiny_curve.py [seed] [samples]

Accuracy in percent, all default conditions together. The rows are those of `bench run --seed SEED`;
the training drew from other streams.
"""

from __future__ import annotations

import os

from eyechart.harness.analysis.samples.verdicts import Judge
from eyechart.harness.run.records import answered

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import asyncio
import sys
from collections import Counter

from eyechart.harness.plan.plan import output_budget, plan
from eyechart.harness.spec import Sample
from eyechart.harness.task.catalogue import built_in_files, open_task
from eyechart.providers.base import Provider, Reply, Request
from eyechart.providers.registry.model_name import parse_model
from eyechart.providers.registry.registry import open_model
from eyechart_lab.variants.embedded.examples import KNOWN

LENGTHS = (5, 10, 15, 20, 30, 40, 50, 70, 100)


async def ask(provider: Provider, samples: list[Sample]) -> list[Reply]:
    """Replies in the order of `samples`."""
    requests = (Request(sample.prompt, output_budget(sample)) for sample in samples)
    return await asyncio.gather(*(provider.complete(request) for request in requests))


async def main(seed: int = 2026, samples: int = 100) -> None:
    provider = open_model(parse_model("tiny"))
    print("| task | " + " | ".join(map(str, LENGTHS)) + " |")
    print("| --- |" + " ---: |" * len(LENGTHS))
    for name in sorted(KNOWN):
        task = open_task(name, built_in_files()[name])
        wanted = list(plan(task, lengths=LENGTHS, samples=samples, exact=True, seed=seed))
        replies = await ask(provider, wanted)
        asked, right = Counter[int](), Counter[int]()
        for sample, reply in zip(wanted, replies, strict=True):
            record = answered(sample, reply, attempts=1, latency_s=0.0)
            verdict = Judge(task.spec.answer).verdict(record)
            asked[sample.length] += 1
            right[sample.length] += verdict.outcome == "correct"
        cells = [f"{100 * right[length] / asked[length]:.0f}" for length in LENGTHS]
        print(f"| `{name}` | " + " | ".join(cells) + " |")
    await provider.aclose()


if __name__ == "__main__":
    asyncio.run(main(*map(int, sys.argv[1:])))
