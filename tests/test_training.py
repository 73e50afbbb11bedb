"""The embedded model's training: what it learns from, and a few real steps."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from eyechart.harness.satellites.lab.embedded import tokenizer as tokenizers_
from eyechart.harness.satellites.lab.embedded.examples import batch, example_of, tasks
from eyechart.harness.score.judge import judge
from eyechart.harness.spec import Condition
from eyechart.harness.task.catalogue import tasks_root

MODEL = Path(__file__).parent.parent / "providers" / "tiny" / "model"


@pytest.mark.parametrize("name", sorted(tasks()))
def test_what_is_taught_is_right(name: str) -> None:
    """Each reply the model learns from is judged correct, under every axis value."""
    task = tasks()[name]
    defaults = task.spec.default_conditions().items()
    usual = Condition((axis, names[0]) for axis, names in defaults)
    conditions = [usual] + [
        usual.with_value(axis, value)
        for axis, known in task.spec.axes.items()
        for value in known.values
    ]
    for condition in conditions:
        for length in (2, 5, 13, 30):
            stream = f"taught|{length}"
            item = task.draw(random.Random(stream), condition, length, 0)
            one = example_of(random.Random(stream), task, condition, length)
            verdict = judge(
                text=one.reply,
                finish_reason="stop",
                refusal=None,
                failure=None,
                target=task.spec.answer.kind.value(item.target),
                answer=task.spec.answer,
            )
            assert verdict.outcome == "correct", (condition, one)
            if one.marks:
                assert one.marks[-1].so_far == item.target
                assert sum(mark.counted for mark in one.marks) == item.target
                assert len(one.marks) == len(item.symbols)


def test_batches_are_drawn_from_their_stream_alone() -> None:
    """The same stream gives the same batch, another one another."""
    first, again, other = (batch(random.Random(stream), 4, 20) for stream in (1, 1, 2))
    assert first == again
    assert first != other


def test_tokenizer_is_lossless_and_knows_the_prompts() -> None:
    """Every prompt and reply comes back to the letter, with no unknown token."""
    tokenizer = tokenizers_.build()
    for stream in range(40):
        for one in batch(random.Random(stream), 4, 40):
            for text in (one.prompt, one.reply):
                encoded = tokenizer.encode(text, add_special_tokens=False)
                assert tokenizer.decode(encoded.ids) == text
                assert "<unk>" not in encoded.tokens


def test_shipped_tokenizer_is_the_one_the_tasks_make() -> None:
    """A prompt changed without a new model fails here."""
    shipped = json.loads((MODEL / "tokenizer.json").read_text(encoding="utf-8"))
    assert shipped["model"]["vocab"] == tokenizers_.build().get_vocab()
    assert tasks_root().is_dir()


@pytest.mark.torch
def test_a_few_steps_resume_and_repeat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four steps in one go and two plus two give the same weights, and the loss falls. The
    accuracies that are logged are those of short rows alone, which take a moment.
    """
    torch = pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from safetensors.torch import load_file

    from eyechart.harness.satellites.lab.embedded import train as training
    from eyechart.harness.satellites.lab.embedded.train import Recipe, train

    curve = training.curve
    monkeypatch.setattr(training, "curve", lambda model, tokens, _: curve(model, tokens, (5,)))
    recipe = Recipe(steps=30, rows=8, longest=10, layers=1, width=32, heads=2, inner=48, warm_up=2)
    whole = train(recipe, tmp_path / "whole", stop_at=4, log_every=2)
    train(recipe, tmp_path / "parts", stop_at=2, log_every=2)
    parts = train(recipe, tmp_path / "parts", stop_at=4, log_every=2)
    first, second = (load_file(folder / "model.safetensors") for folder in (whole, parts))
    assert first.keys() == second.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)
    train(recipe, tmp_path / "whole", log_every=10)
    lines = (tmp_path / "whole" / "log.jsonl").read_text(encoding="utf-8").splitlines()
    losses = [json.loads(line)["loss"] for line in lines]
    assert losses[-1] < losses[0] - 0.5
    with pytest.raises(SystemExit, match="another recipe"):
        train(Recipe(seed=2), tmp_path / "whole")
