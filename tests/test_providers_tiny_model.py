"""The model that ships: how far it sees, and that it is the one transformers would load."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest

from eyechart.harness.analysis.samples.verdicts import Judge
from eyechart.harness.plan.plan import output_budget, plan
from eyechart.harness.run.records import answered
from eyechart.harness.task.catalogue import built_in_files, open_task
from eyechart.providers.base import Request
from eyechart.providers.registry.model_name import parse_model
from eyechart.providers.registry.registry import open_model

MODEL = Path(__file__).parent.parent / "providers" / "tiny" / "model"
HELD_OUT_SEED = 77
SAMPLES, FAR_SAMPLES = 24, 12
"""A cell: so many within sight, and fewer where next to nothing is right and replies are long."""


def accuracies(name: str, lengths: list[int], size: int = SAMPLES) -> dict[int, float]:
    """Length -> share of right replies over all default conditions."""
    task = open_task(name, built_in_files()[name])
    samples = list(plan(task, lengths=lengths, samples=size, seed=HELD_OUT_SEED))

    async def ask() -> list[bool]:
        provider = open_model(parse_model("tiny"))
        requests = [Request(sample.prompt, output_budget(sample)) for sample in samples]
        replies = await asyncio.gather(*map(provider.complete, requests))
        await provider.aclose()
        judge = Judge(task.spec.answer)
        return [
            judge.verdict(answered(sample, reply, attempts=1, latency_s=0.0)).outcome == "correct"
            for sample, reply in zip(samples, replies, strict=True)
        ]

    right = asyncio.run(ask())
    pairs = list(zip(samples, right, strict=True))
    return {
        length: float(np.mean([hit for sample, hit in pairs if sample.length == length]))
        for length in lengths
    }


@pytest.mark.parametrize(
    "name", ["copying/first_last", "counting/sum", "counting/ones", "counting/bernoulli"]
)
def test_it_sees_short_rows_and_not_long_ones(name: str) -> None:
    """At least 95 % right up to 20 symbols, and visibly fewer further out."""
    near, far = accuracies(name, [5, 10, 20]), accuracies(name, [200], FAR_SAMPLES)
    assert min(near.values()) >= 0.95, near
    assert far[200] < 0.5, far


def test_it_counts_words_in_short_sentences() -> None:
    """At least 80 % right at 10 words."""
    found = accuracies("counting/words", [10])
    assert found[10] >= 0.8, found


@pytest.mark.torch
def test_its_logits_are_those_of_transformers() -> None:
    """To 1e-3, on prompts of every task, through the same tokenizer and template."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    from eyechart.providers.tiny.runtime import TinyModel

    ours = TinyModel.load(MODEL)
    theirs = transformers.AutoModelForCausalLM.from_pretrained(MODEL).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(MODEL)
    for name, path in built_in_files().items():
        task = open_task(name, path)
        for sample in plan(task, samples=1, lengths=[20, 100]):
            message = [{"role": "user", "content": sample.prompt}]
            ids = tokenizer.apply_chat_template(
                message, add_generation_prompt=True, return_dict=True
            )["input_ids"]
            if len(ids) > ours.config.window:
                continue
            with torch.no_grad():
                wanted = theirs(torch.tensor([ids])).logits[0].numpy()
            assert np.abs(ours.logits(ids) - wanted).max() < 1e-3
