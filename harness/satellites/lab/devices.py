"""Where models are trained, and how fast. It imports torch, so it is imported late."""

from __future__ import annotations

import time
from collections.abc import Sequence

import torch

from eyechart.harness.errors import UsageError
from eyechart.harness.satellites.lab.data import IGNORED
from eyechart.harness.satellites.lab.order import Order
from eyechart.harness.satellites.lab.study import Training
from eyechart.harness.satellites.lab.train import new_model, new_optimizer, step_of
from eyechart.harness.satellites.lab.variant import Variant

_TIMED = 3
"""Steps of which the time is taken, after one that is not."""


def devices(given: str | None) -> Sequence[str]:
    """The devices that trainings are spread over: `cuda` alone is all GPUs.

    Raises:
        UsageError: there is no such device.
    """
    wanted = given or ("cuda" if torch.cuda.is_available() else "cpu")
    try:
        torch.zeros(1, device=wanted)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        why = " ".join(str(error).split("\n")[0].split())
        raise UsageError(f"--device {wanted!r} cannot be used: {why}") from error
    if wanted == "cuda":
        return [f"cuda:{number}" for number in range(torch.cuda.device_count())]
    return [wanted]


def seconds_of_step(
    variant: Variant, training: Training, vocabulary: int, tokens: int, device: str
) -> float:
    """Seconds that a step takes here, with rows of `tokens` tokens drawn at random."""
    order = Order(
        variant=variant.trained_as,
        training=training,
        seed=0,
        examples="",
        tokenizer="",
        device=device,
    )
    model = new_model(order, vocabulary, tokens)
    optimizer = new_optimizer(model, training)
    ids = torch.randint(0, vocabulary, (training.rows, tokens), device=device)
    labels = torch.full_like(ids, IGNORED)
    labels[:, -5:] = ids[:, -5:]
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        step_of(model, optimizer, ids, labels).item()
        begun = time.perf_counter()
        for _ in range(_TIMED):
            step_of(model, optimizer, ids, labels).item()
        return (time.perf_counter() - begun) / _TIMED
    finally:
        torch.set_num_threads(threads)
