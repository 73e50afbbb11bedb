r"""Forced choices against replies of one token, of one vLLM server and on prompts of one kind.

    python -m tests.benchmarks.choices_against_a_token --model SmolLM2 \
        --base-url http://127.0.0.1:8000/v1 [--prompts 260] [--longest 500] [--api completions]
        [--rounds 2] [--without-listed]

Asks over 16 connections, in turn: one token for each prompt; the options of each prompt as chosen
next tokens; and the options as listed prompts, which older servers need. The prompts are of all
lines and conditions of the task up to `--longest` symbols, as many of each. Each pass has prompts
of a seed of its own, so no pass finds the prompts of another in the server's cache. Prints prompts
a second, the time of each way as a multiple of the replies', and the same of the tokens that the
server computed: those of the prompts that were not in its cache, and those that it wrote.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import re
from collections.abc import Callable, Sequence
from time import perf_counter, time_ns
from typing import Any

import httpx2
import numpy as np

from eyechart.harness.plan.forced_choice import ForcedChoice
from eyechart.harness.plan.plan import plan
from eyechart.harness.plan.request import request_of
from eyechart.harness.task.catalogue import built_in_files, open_task
from eyechart.providers.base import Api, ModelSettings, Request
from eyechart.providers.vllm.client import VllmProvider

TASK = "counting/ones"
CONNECTIONS = 16


def requests(prompts: int, longest: int, seed: int, api: Api) -> list[Request]:
    """Prompts of the task with their options: counts near the right one. There are as many of each
    cell, and about `prompts` in all.
    """
    task = open_task(TASK, built_in_files()[TASK])
    lengths = [length for length in task.spec.lengths or () if length <= longest]
    cells = plan(task, lengths=lengths, samples=1).size
    planned = plan(task, lengths=lengths, samples=-(-prompts // cells), spread="bands", seed=seed)
    choice = ForcedChoice(task, seed)
    return [request_of(sample, 1, 0.0, seed, choice, api=api) for sample in planned]


def computed(base_url: str) -> float:
    """Tokens that the server computed since its start."""
    text = httpx2.get(base_url.removesuffix("/v1") + "/metrics").text
    numbers = dict(re.findall(r"^vllm:(\w+)\{[^}]*\} (\S+)$", text, re.MULTILINE))
    prompts, cached, written = (
        float(numbers[f"{name}_total"])
        for name in ("prompt_tokens", "prefix_cache_hits", "generation_tokens")
    )
    return prompts - cached + written


async def seconds(
    settings: ModelSettings, asked: Sequence[Request], way: str, *, gives_chosen: bool
) -> float:
    """The time until all are answered, by the provider's method `way`."""
    provider = VllmProvider(settings)
    provider._gives_chosen = gives_chosen
    ask: Callable[[Request], Any] = getattr(provider, way)
    waiting = iter(asked)

    async def worker() -> None:
        for request in waiting:
            await ask(request)

    try:
        started = perf_counter()
        await asyncio.gather(*(worker() for _ in range(CONNECTIONS)))
        return perf_counter() - started
    finally:
        await provider.aclose()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--base-url", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--api", default="chat", choices=("chat", "completions"))
    parser.add_argument("--prompts", type=int, default=260)
    parser.add_argument("--longest", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--without-listed", action="store_true")
    given = parser.parse_args()
    settings = ModelSettings(given.model, base_urls=(given.base_url,), api=given.api)
    ways = [("one token", "complete", True), ("chosen", "score", True), ("listed", "score", False)]
    ways = ways[: 2 if given.without_listed else 3]
    seeds = itertools.count(time_ns() % 10**9)
    took = {name: np.zeros(2) for name, *_ in ways}
    options = prompts = 0
    for _ in range(given.rounds):
        for name, way, gives_chosen in ways:
            asked = requests(given.prompts, given.longest, next(seeds), given.api)
            options, prompts = max(len(one.options) for one in asked), len(asked)
            before = computed(given.base_url)
            spent = asyncio.run(seconds(settings, asked, way, gives_chosen=gives_chosen))
            took[name] += spent, computed(given.base_url) - before
    for name, (spent, tokens) in took.items():
        rate, each = (prompts * given.rounds / spent, tokens / prompts / given.rounds)
        times, more = took[name] / took["one token"]
        print(f"{name:9}  {rate:7.1f} prompts/s  {times:.2f}  {each:7.1f} tokens  {more:.2f}")
    print(f"up to {options} options, {prompts} prompts in each of {given.rounds} rounds")


if __name__ == "__main__":
    main()
