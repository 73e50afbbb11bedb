"""Where models are trained, and how long it takes here to train and to ask them. It imports torch,
so it is imported late.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np
import torch
from transformers.utils import logging

from eyechart.harness.errors import UsageError
from eyechart.harness.plan import ForcedChoice, Plan, request_of
from eyechart.harness.settings.run_settings import RunSettings
from eyechart.providers.base import Likelihood, ModelSettings, Reply, Request
from eyechart.providers.naming import named
from eyechart.providers.registry.model_name import parse_model
from eyechart.providers.registry.registry import open_model
from eyechart_lab.variants.config import config_of
from eyechart_lab.variants.model import LabForCausalLM
from eyechart_lab.variants.reading import Lab
from eyechart_lab.variants.study import Training
from eyechart_lab.variants.tokens import save, widened
from eyechart_lab.variants.training.data import Examples
from eyechart_lab.variants.training.memory import longest_tokens
from eyechart_lab.variants.training.order import TrainingOrder
from eyechart_lab.variants.training.steps import Steps, new_optimizer, steps_of
from eyechart_lab.variants.training.train import new_model, one_thread
from eyechart_lab.variants.variant import Variant

if TYPE_CHECKING:
    from tokenizers import Tokenizer

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
            raise UsageError(f"{named('device')} {wanted!r} is no device; {known}") from error
        why = " ".join(str(error).split("\n")[0].split())
        raise UsageError(f"{named('device')} {wanted!r} cannot be used: {why}") from error
    if wanted == "cuda":
        return [f"cuda:{number}" for number in range(torch.cuda.device_count())]
    return [wanted]


def seconds_of_step(
    variant: Variant, training: Training, vocabulary: int, tokens: int, device: str
) -> float:
    """Seconds that a step takes here, with rows of `tokens` tokens drawn at random."""
    training = training.model_copy(update={"steps": TIMED + 1})
    order = TrainingOrder(variant=variant.trained_as, training=training, seed=0, tokenizer="")
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


def seconds_of_model(lab: Lab, variant: Variant, tokenizer: Tokenizer) -> float:
    """The most seconds that all requests to one model take. Loading the model is not included.

    They are measured on an untrained model, which is asked a few rows of each cell. It does not end
    its replies, so they are as long as the limit allows.
    """
    with TemporaryDirectory() as place:
        folder = Path(place) / "model"
        _write(lab, variant, tokenizer, folder)
        return sum(
            asyncio.run(_seconds(folder, plan, list(_requests(lab, plan, most))))
            for plan, most in zip(lab.plans, lab.reply_tokens, strict=True)
        )


def _write(lab: Lab, variant: Variant, tokenizer: Tokenizer, folder: Path) -> None:
    """Writes a model of random weights."""
    torch.manual_seed(0)
    window = longest_tokens(lab, tokenizer)
    tokenizer = widened(tokenizer, variant.tokens)
    config = config_of(variant, vocabulary=tokenizer.get_vocab_size(), trained_window=window)
    logging.disable_progress_bar()
    LabForCausalLM(config).save_pretrained(folder)
    save(tokenizer, folder, window, variant.tokens)


def _requests(lab: Lab, plan: Plan, most: int) -> Iterator[Request]:
    """As many requests as a run sends at the same time, or one for each cell."""
    is_chosen = lab.spec.read == "likelihood"
    choice = ForcedChoice(plan.task, plan.seed) if is_chosen else None
    for sample in islice(plan, max(RunSettings().max_connections, len(plan.sizes))):
        yield request_of(sample, most, 0.0, plan.seed, choice, api="chat")


async def _seconds(folder: Path, plan: Plan, requests: Sequence[Request]) -> float:
    """Seconds that all requests of a plan take, from those of some."""
    name = parse_model(f"hf/{folder}")
    provider = open_model(name, ModelSettings(name.model, api="chat"))
    ask: Callable[[Request], Awaitable[Reply]] = provider.complete
    if requests[0].options:
        assert isinstance(provider, Likelihood), "its descriptor says so"
        ask = provider.score
    try:
        await ask(requests[-1])
        begun = time.perf_counter()
        await asyncio.gather(*map(ask, requests))
        return (time.perf_counter() - begun) / len(requests) * plan.size
    finally:
        await provider.aclose()
