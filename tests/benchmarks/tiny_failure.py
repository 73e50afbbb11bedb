"""Why the embedded model fails, as its card says it: not by representational collapse.

    python tests/benchmarks/tiny_failure.py

Prints how far apart the states for n and n + 1 ones are at the last one, how many replies change
with states rounded to bfloat16, and the accuracy with other bases of the rotary positions.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from dataclasses import replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from eyechart.harness.plan.plan import make_sample, output_budget, plan
from eyechart.harness.score.answers import extract
from eyechart.harness.spec import Line, Sample
from eyechart.harness.task.catalogue import Task, built_in_files, open_task
from eyechart.providers.tiny.chat import Chat
from eyechart.providers.tiny.folder import SHIPPED
from eyechart.providers.tiny.runtime import TinyModel
from eyechart.providers.tiny.weights import Tensors, read_config

DISTANCES = (1, 5, 10, 20, 40, 60, 100, 200, 400, 700, 1000)
LABELS = 9
"""Rows with different labels over which a distance is the median."""
LENGTHS = (5, 10, 20, 30, 40, 60)
TASKS = ("counting/ones", "counting/bernoulli", "copying/first_last")
BASES = (1_000, 5_000, 10_000, 20_000, 100_000)
SAMPLES = 20
AFTER_ROW = 1
"""Tokens of the chat template after the row."""


class Watched(TinyModel):
    """Keeps the states after its last layer."""

    states: NDArray[np.float32]

    def _mixed(self, x, attended, layer):  # type: ignore[no-untyped-def]
        self.states = super()._mixed(x, attended, layer)
        return self.states


class Rounded(TinyModel):
    """Rounds the states after each layer to bfloat16."""

    def _mixed(self, x, attended, layer):  # type: ignore[no-untyped-def]
        states = super()._mixed(x, attended, layer)
        bits = np.ascontiguousarray(states).view(np.uint32)
        nearest = (bits + 0x7FFF + (bits >> 16 & 1)) & np.uint32(0xFFFF0000)
        return nearest.view(np.float32)


def opened(name: str) -> Task:
    return open_task(name, built_in_files()[name], trial=False)


def distance(model: Watched, chat: Chat, n: int) -> float:
    """The largest difference of a state at the last of n ones and of n + 1 ones: the median over
    some labels.
    """
    task = opened("counting/ones")
    condition = plan(task).conditions[0]
    apart = []
    for index in range(LABELS):
        ends = []
        for length in (n, n + 1):
            prompt = make_sample(task, condition, Line.exact(length), index, 0).prompt
            (ids,) = chat.ids([prompt], "chat", None)
            model.logits(ids)
            ends.append(model.states[-1 - AFTER_ROW])
        apart.append(np.abs(ends[0] - ends[1]).max())
    return float(np.median(apart))


def replies(model: TinyModel, chat: Chat, samples: list[Sample]) -> list[str]:
    """The replies to some samples."""
    prompts = chat.ids([sample.prompt for sample in samples], "chat", None)
    generated = model.generate(prompts, [output_budget(sample) for sample in samples])
    return [chat.text(one.ids) for one in generated]


def main() -> None:
    chat, config = Chat(SHIPPED), read_config(SHIPPED)
    tensors = SHIPPED / "model.safetensors"
    watched = Watched(config, Tensors(tensors))
    for n in DISTANCES:
        print(f"{n:5} and {n + 1} ones: {distance(watched, chat, n):.1f}")
    samples = [
        sample
        for name, length in product(TASKS, LENGTHS)
        for sample in list(plan(opened(name), lengths=[length], samples=SAMPLES))[:SAMPLES]
    ]
    plain = replies(TinyModel(config, Tensors(tensors)), chat, samples)
    rounded = replies(Rounded(config, Tensors(tensors)), chat, samples)
    changed = sum(one != other for one, other in zip(plain, rounded, strict=True))
    print(f"bfloat16 changes {changed} of {len(samples)} replies")
    for name, base in product(TASKS, BASES):
        task = opened(name)
        twenty = list(plan(task, lengths=[20], samples=SAMPLES))
        model = TinyModel(replace(config, rope_theta=float(base)), Tensors(tensors))
        said = [extract(text, task.spec.answer).value for text in replies(model, chat, twenty)]
        right = sum(value == sample.target for value, sample in zip(said, twenty, strict=True))
        print(f"{name}, base {base:,}: {100 * right / len(twenty):.0f} % of {len(twenty)} at 20")


if __name__ == "__main__":
    main()
