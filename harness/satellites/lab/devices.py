"""Where models are trained, and how fast. It imports torch, so it is imported late."""

from __future__ import annotations

import re
import time

import numpy as np
import torch

from eyechart.harness.errors import UsageError
from eyechart.harness.satellites.lab.data import Examples
from eyechart.harness.satellites.lab.order import Order
from eyechart.harness.satellites.lab.steps import Steps, new_optimizer, steps_of
from eyechart.harness.satellites.lab.study import Training
from eyechart.harness.satellites.lab.train import new_model, one_thread
from eyechart.harness.satellites.lab.variant import Variant

TIMED = 3
"""Steps of which the time is taken, after one that is not."""
_NAMED = re.compile(r"cpu|cuda(:\d+)?")
_REPLY = 5
"""Tokens of a reply, about."""


def devices(given: str | None) -> list[str]:
    """The devices that trainings are spread over: `cuda` alone is all GPUs.

    Raises:
        UsageError: there is no such device.
    """
    wanted = given or ("cuda" if torch.cuda.is_available() else "cpu")
    try:
        torch.zeros(1, device=wanted)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        if not _NAMED.fullmatch(wanted):
            known = "write cpu, cuda or cuda:N"
            raise UsageError(f"--device {wanted!r} is no device; {known}") from error
        why = " ".join(str(error).split("\n")[0].split())
        raise UsageError(f"--device {wanted!r} cannot be used: {why}") from error
    if wanted == "cuda":
        return [f"cuda:{number}" for number in range(torch.cuda.device_count())]
    return [wanted]


def seconds_of_step(
    variant: Variant, training: Training, vocabulary: int, tokens: int, device: str
) -> float:
    """Seconds that a step takes here, with rows of `tokens` tokens drawn at random."""
    training = training.model_copy(update={"steps": TIMED + 1})
    order = Order(variant=variant.trained_as, training=training, seed=0, tokenizer="")
    count = training.rows * training.steps
    examples = Examples(
        np.random.default_rng(0).integers(0, vocabulary, count * tokens, np.uint16),
        np.arange(1, count + 1) * tokens,
        np.full(count, _REPLY),
        training,
    )
    model = new_model(order, vocabulary, tokens, device)
    optimizer = new_optimizer(model, training, device)
    return seconds_of(steps_of(model, optimizer, order, examples, device), training.steps)


def seconds_of(steps: Steps, end: int) -> float:
    """Seconds that each of the steps before `end` takes here, from the last few."""
    with one_thread():
        first, *timed = range(end - TIMED - 1, end)
        steps.take(first)
        steps.mean_loss()
        begun = time.perf_counter()
        for step in timed:
            steps.take(step)
        steps.mean_loss()
        return (time.perf_counter() - begun) / TIMED
