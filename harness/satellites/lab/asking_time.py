"""How long it takes here to ask a model of a study. It imports torch, so it is imported late."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import torch
from transformers.utils import logging

from eyechart.harness.plan.forced_choice import ForcedChoice
from eyechart.harness.plan.plan import Plan
from eyechart.harness.plan.request import request_of
from eyechart.harness.run.limits import RunLimits
from eyechart.harness.satellites.lab.memory import longest_tokens
from eyechart.harness.satellites.lab.model import LabForCausalLM, config_of
from eyechart.harness.satellites.lab.reading import Lab
from eyechart.harness.satellites.lab.tokens import save
from eyechart.harness.satellites.lab.variant import Variant
from eyechart.providers.base import Likelihood, ModelSettings, Reply, Request
from eyechart.providers.registry import open_model, parse_model

if TYPE_CHECKING:
    from tokenizers import Tokenizer


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
    config = config_of(variant, vocabulary=tokenizer.get_vocab_size(), trained_window=window)
    logging.disable_progress_bar()
    LabForCausalLM(config).save_pretrained(folder)
    save(tokenizer, folder, window)


def _requests(lab: Lab, plan: Plan, most: int) -> Iterator[Request]:
    """As many requests as a run sends at the same time, or one for each cell."""
    is_chosen = lab.spec.read == "likelihood"
    choice = ForcedChoice(plan.task, plan.seed) if is_chosen else None
    for sample in islice(plan, max(RunLimits().max_connections, len(plan.sizes))):
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
