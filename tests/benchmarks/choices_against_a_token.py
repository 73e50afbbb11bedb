r"""Forced choices against replies of one token, of one model and on prompts of one kind.

    python -m tests.benchmarks.choices_against_a_token --model hf/FOLDER
        [--prompts 260] [--longest 500] [--api completions] [--rounds 2]
    python -m tests.benchmarks.choices_against_a_token --model vllm/SmolLM2 \
        --base-url http://127.0.0.1:8000/v1 [--without-listed]

Asks in turn: one token for each prompt, and the options of each prompt; of a vLLM server as chosen
next tokens and as listed prompts, which older servers need. Of a server 16 requests are open at a
time, of a model in this process 256. The prompts are of all lines and conditions of the task up to
`--longest` symbols, as many of each. Each pass has prompts of a seed of its own, so no pass finds
the prompts of another in the server's cache. Prints prompts a second, the time of each way as a
multiple of the replies', and for a server the same of the tokens that it computed: those of the
prompts that were not in its cache, and those that it wrote.
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
from eyechart.providers.base import Api, ModelSettings, Provider, Request
from eyechart.providers.registry.model_name import parse_model
from eyechart.providers.registry.registry import open_model
from eyechart.providers.vllm.client import VllmProvider

TASK = "counting/ones"


def requests(prompts: int, longest: int, seed: int, api: Api) -> list[Request]:
    """Prompts of the task with their options: counts near the right one. There are as many of each
    cell, and about `prompts` in all.
    """
    task = open_task(TASK, built_in_files()[TASK])
    lengths = [length for length in task.spec.lengths or () if length <= longest]
    cells = plan(task, lengths=lengths, samples=1).size
    planned = plan(task, lengths=lengths, samples=-(-prompts // cells), seed=seed)
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
    provider: Provider, asked: Sequence[Request], way: str, *, connections: int
) -> float:
    """The time until all are answered, by the provider's method `way`."""
    ask: Callable[[Request], Any] = getattr(provider, way)
    waiting = iter(asked)

    async def worker() -> None:
        for request in waiting:
            await ask(request)

    started = perf_counter()
    await asyncio.gather(*(worker() for _ in range(connections)))
    return perf_counter() - started


async def measure(given: argparse.Namespace) -> None:
    """Asks all ways in turn, and prints what each took."""
    settings = ModelSettings(given.model, base_urls=tuple(given.base_url), api=given.api)
    provider = open_model(parse_model(given.model, base_urls=given.base_url), settings)
    is_server = isinstance(provider, VllmProvider)
    ways = [("one token", "complete"), ("options", "score"), ("listed", "score")]
    ways = ways[: 3 if is_server and not given.without_listed else 2]
    seeds = itertools.count(time_ns() % 10**9)
    took = {name: np.zeros(2) for name, _ in ways}
    options = prompts = 0
    for _, way in ways:  # a model in this process is loaded
        await seconds(provider, requests(1, 5, next(seeds), given.api), way, connections=1)
    for _ in range(given.rounds):
        for name, way in ways:
            asked = requests(given.prompts, given.longest, next(seeds), given.api)
            options, prompts = max(len(one.options) for one in asked), len(asked)
            if isinstance(provider, VllmProvider):
                provider._gives_chosen = name == "options"
            before = computed(given.base_url[0]) if is_server else 0.0
            spent = await seconds(provider, asked, way, connections=16 if is_server else 256)
            after = computed(given.base_url[0]) if is_server else 0.0
            took[name] += spent, after - before
    await provider.aclose()
    for name, (spent, tokens) in took.items():
        rate, each = prompts * given.rounds / spent, tokens / prompts / given.rounds
        times = spent / took["one token"][0]
        more = f"  {each:7.1f} tokens  {tokens / took['one token'][1]:.2f}" if is_server else ""
        print(f"{name:9}  {rate:7.1f} prompts/s  {times:.2f}{more}")
    print(f"up to {options} options, {prompts} prompts in each of {given.rounds} rounds")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True)
    parser.add_argument("--base-url", action="append", default=[])
    parser.add_argument("--api", default="chat", choices=("chat", "completions"))
    parser.add_argument("--prompts", type=int, default=260)
    parser.add_argument("--longest", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--without-listed", action="store_true")
    asyncio.run(measure(parser.parse_args()))


if __name__ == "__main__":
    main()
