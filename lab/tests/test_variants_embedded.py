"""The embedded model's training: what it learns from, and a few real steps."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from eyechart.harness.errors import COMPLETE, INTERRUPTED
from eyechart.harness.score.judge import judge
from eyechart.harness.spec import Condition
from eyechart.harness.task.catalogue import tasks_root
from eyechart_lab.variants.embedded import tokenizer as tokenizers_
from eyechart_lab.variants.embedded.command import RECIPE, embedded
from eyechart_lab.variants.embedded.examples import batch, example_of, tasks
from eyechart_lab.variants.lab_command import LabOptions
from eyechart_lab.variants.study import Training
from eyechart_lab.variants.training.order import LOSSES
from eyechart_lab.variants.variant import Variant
from tests.conftest import Lab

MODEL = Path(__file__).parents[2] / "providers" / "tiny" / "model"


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
                target=task.spec.answer.kind.value(item.target, task.spec.answer),
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


SMALL = RECIPE.model_copy(
    update={
        "variant": Variant(layers=1, width=32, heads=2, inner=48),
        "training": Training(steps=40, rows=8, learning_rate=0.01, warm_up=2, growth=0.5),
    }
)


def test_several_jobs_are_refused(lab: Lab) -> None:
    """There is one model to train."""
    done = lab.bench("lab", "embedded", "--jobs", "4", "--dry-run")
    done.one_line(2, "the embedded model is one training; leave out --jobs")


@pytest.mark.torch
class TestTrained:
    """`bench lab embedded` trains as the laboratory does."""

    def test_stopped_and_gone_on_with(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """An interrupt ends it after some checkpoint; the same command gives the weights of a
        training that was not stopped, and the loss falls.
        """
        load_file = pytest.importorskip("safetensors.torch").load_file
        training = pytest.importorskip("eyechart_lab.variants.embedded.training")
        assert embedded(wanted(tmp_path / "whole"), SMALL) == COMPLETE
        whole = Path(capsys.readouterr().out.strip())
        losses = [line.split(",")[1] for line in (whole.parent / LOSSES).read_text().splitlines()]
        assert float(losses[-1]) < float(losses[1]) - 2
        real = training.EmbeddedTraining.loss_at

        def until(of: Any, step: int) -> Any:
            if step == 30:
                raise KeyboardInterrupt
            return real(of, step)

        monkeypatch.setattr(training.EmbeddedTraining, "loss_at", until)
        assert embedded(wanted(tmp_path / "parts"), SMALL) == INTERRUPTED
        monkeypatch.undo()
        embedded(wanted(tmp_path / "parts", dry_run=True), SMALL)
        assert "\nsteps that are left: 10; on cpu they take about" in capsys.readouterr().err
        assert embedded(wanted(tmp_path / "parts"), SMALL) == COMPLETE
        parts = Path(capsys.readouterr().out.strip())
        first, second = (load_file(folder / "model.safetensors") for folder in (whole, parts))
        assert all((first[name] == second[name]).all() for name in first)

    def test_the_recipe_makes_the_files_that_are_shipped(self, tmp_path: Path) -> None:
        """Its size, its tokenizer, and the names and shapes of its weights."""
        pytest.importorskip("torch")
        pytest.importorskip("transformers")
        safe_open = pytest.importorskip("safetensors").safe_open
        recipe = RECIPE.model_copy(update={"training": Training(steps=1, rows=1, warm_up=0)})
        assert embedded(wanted(tmp_path), recipe) == COMPLETE
        (made,) = tmp_path.rglob("model.safetensors")
        ours, shipped = (
            json.loads((folder / "config.json").read_text()) for folder in (made.parent, MODEL)
        )
        ours.pop("transformers_version")
        assert {name: shipped[name] for name in ours} == ours
        for name in ("tokenizer.json", "tokenizer_config.json"):
            texts = [json.loads((folder / name).read_text()) for folder in (made.parent, MODEL)]
            assert texts[0] == texts[1]
        shapes = []
        for path in (made, MODEL / made.name):
            with safe_open(path, "numpy") as file:
                shapes.append({one: file.get_slice(one).get_shape() for one in file.keys()})  # noqa: SIM118
        assert shapes[0] == shapes[1]


def wanted(out: Path, *, dry_run: bool = False) -> LabOptions:
    """The options of a command."""
    return LabOptions(out=out, jobs=1, device="cpu", dry_run=dry_run, trusts=False, as_json=False)
