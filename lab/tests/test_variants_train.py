"""A study is trained, asked and compared; a training goes on where it was stopped."""

from __future__ import annotations

import csv
import html
import json
import math
import re
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from filelock import FileLock  # noqa: E402
from safetensors.torch import load_file  # noqa: E402

from eyechart.harness.errors import COMPLETE, INCOMPLETE, INTERRUPTED, EyechartError  # noqa: E402
from eyechart_lab.variants import asking, lab_command  # noqa: E402
from eyechart_lab.variants.folders import LabFolder, Model  # noqa: E402
from eyechart_lab.variants.lab_command import LabOptions, lab  # noqa: E402
from eyechart_lab.variants.reading import read_lab  # noqa: E402
from eyechart_lab.variants.study import Training  # noqa: E402
from eyechart_lab.variants.training import steps, train, worker  # noqa: E402
from eyechart_lab.variants.training.data import Examples  # noqa: E402
from eyechart_lab.variants.training.order import (  # noqa: E402
    CHECKPOINT,
    DIVERGED,
    LOSSES,
    TRAINED,
    WEIGHTS,
    TrainingOrder,
    ended,
)
from eyechart_lab.variants.training.worker import CPU  # noqa: E402
from eyechart_lab.variants.variant import read_variant  # noqa: E402

pytestmark = pytest.mark.torch
STUDY = """\
name: small
title: A small study
seeds: 2
training: {steps: 40, rows: 4, learning_rate: 0.01, warm_up: 4}
tasks:
  - task: counting/ones
    trained: [1, 3]
    lengths: [2, 3, 6]
    samples: 3
    axes: {separator: [none]}
every: {layers: 1, width: 16, heads: 2}
variants:
  rope: {}
  alibi: {positions: alibi}
"""
PATIENCE_S = 120.0


def study_in(folder: Path, text: str = STUDY) -> Path:
    """The file of a study."""
    path = folder / "study.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def wanted(folder: Path, **given: Any) -> LabOptions:
    """The options of a command whose results are in `folder`."""
    usual: dict[str, Any] = {
        "out": folder / "out",
        "jobs": 1,
        "device": "cpu",
        "dry_run": False,
        "trusts": False,
        "as_json": False,
    }
    return LabOptions(**usual | given)


def models(folder: Path, text: str = STUDY) -> list[Model]:
    """The models of a study whose results are in `folder`."""
    return list(LabFolder.of(read_lab(study_in(folder, text)), folder / "out").models())


def rows(folder: Path) -> list[dict[str, str]]:
    """The rows of its `lab.csv`."""
    with (folder / "out" / "lab" / "small" / "lab.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a study that is trained and asked."""
    folder = tmp_path_factory.mktemp("lab")
    assert lab(study_in(folder), wanted(folder)) == COMPLETE
    return folder


class TestStudy:
    """Two variants with two seeds."""

    def test_every_model_is_asked_the_same_rows(self, done: Path) -> None:
        """A row for each line of each model, with how its training ended."""
        found = rows(done)
        assert len(found) == 2 * 2 * 3
        assert {(row["variant"], row["seed"]) for row in found} == {
            (variant, seed) for variant in ("rope", "alibi") for seed in ("0", "1")
        }
        assert {row["training"] for row in found} == {TRAINED}
        assert {row["n"] for row in found} == {"3"}
        prompts = [
            sorted((path / "samples.jsonl").read_text().count("\n") for path in runs_of(model))
            for model in models(done)
        ]
        assert prompts == [[9]] * 4

    def test_the_curve_of_the_loss_is_kept(self, done: Path) -> None:
        """It falls; the checkpoint is gone."""
        for model in models(done):
            lines = (model.training / LOSSES).read_text().splitlines()
            losses = [float(line.split(",")[1]) for line in lines[1:]]
            assert lines[0] == "step,loss"
            assert losses[-1] < losses[0]
            assert not (model.training / CHECKPOINT).exists()

    def test_the_same_command_has_nothing_to_do(
        self, done: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """No training begins, no model is opened, no run is written, and the results are the
        same.
        """
        before = rows(done)
        journals = [path for model in models(done) for path in runs_of(model)]
        written = [path.stat().st_mtime_ns for one in journals for path in one.iterdir()]
        monkeypatch.setattr(lab_command, "train_all", None)
        monkeypatch.setattr(asking, "run", None)
        assert lab(done / "study.yaml", wanted(done, as_json=True)) == COMPLETE
        assert rows(done) == before
        assert [path.stat().st_mtime_ns for one in journals for path in one.iterdir()] == written
        document = json.loads(capsys.readouterr().out)
        assert [one["variant"] for one in document["results"]] == ["rope", "alibi"]
        assert document["results"][1]["verdict"] == "too few seeds"

    def test_the_models_of_a_seed_have_the_same_examples(self, done: Path) -> None:
        """And those of another seed others."""
        folder = done / "out" / "lab" / "small" / "examples"
        assert len(list(folder.glob("*.npz"))) == 2

    def test_lines_of_earlier_files_are_left_out(self, done: Path) -> None:
        """A run keeps them, and the results are those of the file as it is."""
        text = STUDY.replace("[2, 3, 6]", "[2, 9]")
        assert lab(study_in(done, text), wanted(done)) == COMPLETE
        assert {row["length"] for row in rows(done)} == {"2", "9"}
        assert lab(study_in(done), wanted(done)) == COMPLETE
        assert {row["length"] for row in rows(done)} == {"2", "3", "6"}

    def test_fewer_samples_are_the_same_rows_of_every_model(self, done: Path) -> None:
        """Also where some models were asked more of them by an earlier file."""
        text = STUDY.replace("samples: 3", "samples: 2") + "  nope: {positions: none}\n"
        assert lab(study_in(done, text), wanted(done)) == COMPLETE
        assert {(row["variant"], row["n"]) for row in rows(done)} == {
            (variant, "2") for variant in ("rope", "alibi", "nope")
        }
        assert lab(study_in(done), wanted(done)) == COMPLETE
        assert {row["n"] for row in rows(done)} == {"3"}

    def test_a_run_that_lacks_answers_is_asked_them(self, done: Path) -> None:
        """More samples grow the run."""
        text = STUDY.replace("samples: 3", "samples: 4")
        assert lab(study_in(done, text), wanted(done)) == COMPLETE
        assert {row["n"] for row in rows(done)} == {"4"}
        study_in(done)

    def test_a_model_that_lacks_a_file_is_made_again(self, done: Path) -> None:
        """From the weights of its training."""
        text = STUDY.replace("[2, 3, 6]", "[2, 4, 6]")
        lost = models(done, text)[0].folder / "model.safetensors"
        lost.unlink()
        assert lab(study_in(done, text), wanted(done)) == COMPLETE
        assert lost.is_file()
        study_in(done)

    def test_weights_that_are_gone(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """They are not needed for what is asked; for more, a line says how to train them again."""
        text = STUDY.replace("steps: 40", "steps: 8").replace("seeds: 2", "seeds: 1")
        assert lab(study_in(tmp_path, text), wanted(tmp_path)) == COMPLETE
        rope, _ = models(tmp_path, text)
        for folder in (rope.training / WEIGHTS, rope.folder):
            shutil.rmtree(folder)
        assert lab(tmp_path / "study.yaml", wanted(tmp_path)) == COMPLETE
        more = study_in(tmp_path, text.replace("samples: 3", "samples: 4"))
        assert lab(more, wanted(tmp_path)) == INCOMPLETE
        assert f"is gone; remove {rope.training}, and the same" in capsys.readouterr().err
        assert {row["variant"] for row in rows(tmp_path)} == {"alibi"}
        shutil.rmtree(rope.training)
        assert lab(more, wanted(tmp_path)) == COMPLETE

    def test_a_row_for_each_variant(self, done: Path) -> None:
        """Beside the rows of the models."""
        assert lab(study_in(done), wanted(done)) == COMPLETE
        folder = done / "out" / "lab" / "small"
        with (folder / "variants.csv").open(encoding="utf-8") as file:
            found = list(csv.DictReader(file))
        assert [(row["variant"], row["seeds"]) for row in found] == [("rope", "2"), ("alibi", "2")]
        said = [html.escape(row["said"], quote=False) for row in found]
        assert all(one in (folder / "lab.html").read_text() for one in said)

    def test_a_dry_run_trains_nothing(
        self, done: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """It says how many trainings and steps are ahead."""
        study = study_in(tmp_path)
        assert lab(study, wanted(tmp_path, dry_run=True)) == COMPLETE
        out = capsys.readouterr().out
        assert "4 models, 4 to train" in out
        assert "on cpu in 1 process; then" in out
        assert re.search(r"then 36 requests, about \S+ (s|min) at most", out)
        assert "with 2 seeds p cannot be below 0.33" in out.lower()
        assert not (tmp_path / "out").exists()
        assert lab(done / "study.yaml", wanted(done, dry_run=True, as_json=True)) == COMPLETE
        document = json.loads(capsys.readouterr().out)
        assert document["trainings"] == document["requests"] == {"rope": 0, "alibi": 0}
        assert document["seconds"] == document["asking_seconds"] == 0

    def test_a_dry_run_counts_what_is_not_asked(
        self, done: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Of models that are trained as well."""
        text = STUDY.replace("[2, 3, 6]", "[2, 5, 7]")
        assert lab(study_in(done, text), wanted(done, dry_run=True, as_json=True)) == COMPLETE
        document = json.loads(capsys.readouterr().out)
        assert document["trainings"] == {"rope": 0, "alibi": 0}
        assert document["requests"] == {"rope": 18, "alibi": 18}
        assert document["asking_seconds"] > 0
        missing = []
        for samples in (5, 7):
            more = STUDY.replace("samples: 3", f"samples: {samples}")
            lab(study_in(done, more), wanted(done, dry_run=True, as_json=True))
            missing.append(json.loads(capsys.readouterr().out)["requests"])
        assert {name: missing[1][name] - few for name, few in missing[0].items()} == {
            "rope": 12,
            "alibi": 12,
        }
        study_in(done)

    def test_a_stretched_variant_is_trained_with_the_one_it_stretches(self, done: Path) -> None:
        """It has the same weights, and another config."""
        text = STUDY + "  longer: {stretch: {linear: 2}}\n"
        assert lab(study_in(done, text), wanted(done)) == COMPLETE
        rope, _, longer, *_ = models(done, text)
        assert rope.training == longer.training
        configs = [json.loads((one.folder / "config.json").read_text()) for one in (rope, longer)]
        assert [config["variant"]["stretch"] for config in configs] == ["none", {"linear": 2.0}]
        assert {row["variant"] for row in rows(done)} == {"rope", "alibi", "longer"}
        study_in(done)


def test_the_results_say_that_answers_were_chosen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both tables, the page and the document."""
    text = STUDY.replace("seeds: 2", "seeds: 1\nread: likelihood").replace("steps: 40", "steps: 8")
    assert lab(study_in(tmp_path, text), wanted(tmp_path, as_json=True)) == COMPLETE
    assert json.loads(capsys.readouterr().out)["read"] == "likelihood"
    folder = tmp_path / "out" / "lab" / "small"
    for name in ("lab.csv", "variants.csv"):
        with (folder / name).open(encoding="utf-8") as file:
            assert {row["read"] for row in csv.DictReader(file)} == {"likelihood"}
    assert "(read: likelihood)" in (folder / "lab.html").read_text()


def test_the_inside_before_and_after(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row for each quantity that the probe shows; defaults of the environment do not hold."""
    monkeypatch.setenv("EYECHART_LENGTHS", "4")
    text = STUDY.replace("seeds: 2", "seeds: 1\nprobe: {measures: [attention], samples: 2}")
    assert lab(study_in(tmp_path, text), wanted(tmp_path)) == COMPLETE
    folder = tmp_path / "out" / "lab" / "small"
    with (folder / "inside.csv").open(encoding="utf-8") as file:
        found = list(csv.DictReader(file))
    assert {row["state"] for row in found} == {"untrained", "trained"}
    assert {row["variant"] for row in found} == {"rope", "alibi"}
    assert {row["length"] for row in found} == {"2", "3", "6"}
    entropy = {
        (row["variant"], row["state"]): float(row["value"])
        for row in found
        if row["quantity"] == "entropy_share" and row["length"] == "6"
    }
    assert len(set(entropy.values())) == 4
    assert (folder / "lab.html").read_text().count("<figure>") > 1


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ("pause: 2", "<bos><user>Q<assistant><pause><pause>"),
        ("memory: 3", "<bos><memory_1><memory_2><memory_3><user>Q<assistant>"),
    ],
)
def test_extra_tokens_are_trained_and_asked(tmp_path: Path, given: str, text: str) -> None:
    """They stand where they are to stand in the examples and in the prompts of the trained model,
    and only such a variant has them in its vocabulary.
    """
    from transformers import AutoTokenizer

    study = STUDY.replace("seeds: 2", "seeds: 1").replace(
        "positions: alibi", f"tokens: {{{given}}}"
    )
    assert lab(study_in(tmp_path, study), wanted(tmp_path)) == COMPLETE
    rope, extra = models(tmp_path, study)
    plain, wide = (AutoTokenizer.from_pretrained(str(one.folder)) for one in (rope, extra))
    asked = wide.apply_chat_template(
        [{"role": "user", "content": "Q"}], tokenize=False, add_generation_prompt=True
    )
    assert asked == text
    order = TrainingOrder.model_validate_json((extra.training / "training.json").read_bytes())
    learned = train.StudyTraining(
        extra.training, order, wide.backend_tokenizer, CPU
    )._examples.batch(39)
    own = train.StudyTraining(
        rope.training,
        order.model_copy(update={"variant": read_variant({})}),
        plain.backend_tokenizer,
        CPU,
    )._examples.batch(39)
    pieces = [piece for piece in re.findall("<[a-z_0-9]+>", text) if piece not in plain.get_vocab()]
    ids = wide.convert_tokens_to_ids(pieces)
    assert min(ids) == len(plain) == vocabulary_of(rope) == vocabulary_of(extra) - len(set(pieces))
    assert learned.ids.shape[1] == own.ids.shape[1] + len(pieces)
    for row, before, places, was in zip(
        learned.ids, own.ids, learned.places, own.places, strict=True
    ):
        at = 1 if "memory" in given else was[0] + 1
        assert row.tolist() == [*before[:at], *ids, *before[at:]]
        assert (places - was)[was > 0].tolist() == [len(pieces)] * int((was > 0).sum())
    assert {row["training"] for row in rows(tmp_path)} == {TRAINED}


def vocabulary_of(model: Model) -> int:
    """Number of tokens of a trained model."""
    return int(json.loads((model.folder / "config.json").read_text())["vocab_size"])


def runs_of(model: Model) -> Iterator[Path]:
    """The folders of the runs of a model."""
    for path in model.runs.rglob("manifest.json"):
        if model.label in path.parts:
            yield path.parent


def trained(folder: Path) -> list[int]:
    """Trains to the end; returns the steps at which the loss is known."""
    with train.one_thread():
        return [point[0] for point in train.steps_in(folder, CPU) if point is not None]


def prepared(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str = STUDY) -> list[Model]:
    """The models of a study of which nothing is trained yet, but all is ready for it."""
    monkeypatch.setattr(lab_command, "train_all", lambda *_: None)
    lab(study_in(folder, text), wanted(folder))
    monkeypatch.undo()
    return models(folder, text)


class TestStopped:
    """A training that is stopped goes on from its last checkpoint, to the same weights."""

    long = STUDY.replace("steps: 40", "steps: 400")

    def test_killed_in_the_middle(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """By a signal that no process can catch, after some checkpoint."""
        killed, whole = prepared(tmp_path, monkeypatch, self.long)[::3]
        whole_order = (killed.training / "training.json").read_text()
        (whole.training / "training.json").write_text(whole_order)
        ours, theirs = worker.CONTEXT.Pipe()
        process = worker.CONTEXT.Process(target=worker.serve, args=(theirs, worker.Slot(CPU)))
        process.start()
        ours.send(killed.training)
        until = time.monotonic() + PATIENCE_S
        while not (killed.training / CHECKPOINT).exists() and time.monotonic() < until:
            time.sleep(0.005)
        process.kill()
        process.join()
        assert process.exitcode == -signal.SIGKILL
        assert ended(killed.training) is None
        left = train.steps_left(killed.training, Training(steps=400))
        steps = trained(killed.training)
        trained(whole.training)
        assert 1 < steps[0] == 400 - left
        assert steps[-1] == 400
        assert train.steps_left(killed.training, Training(steps=400)) == 0
        first, second = (
            load_file(one.training / WEIGHTS / "model.safetensors") for one in (killed, whole)
        )
        assert first.keys() == second.keys()
        assert all(torch.equal(first[name], second[name]) for name in first)
        curves = [(one.training / LOSSES).read_text() for one in (killed, whole)]
        assert curves[0] == curves[1]

    def test_a_checkpoint_is_whole_or_not_there(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Where it cannot be written, the one before is as it was."""
        model = prepared(tmp_path, monkeypatch)[0]
        saved = torch.save
        count = 0

        def fail(state: Any, file: Any) -> None:
            nonlocal count
            count += 1
            if count > 1:
                file.write(b"half of it")
                raise OSError(28, "No space left on device")
            saved(state, file)

        monkeypatch.setattr(torch, "save", fail)
        with pytest.raises(EyechartError, match="No space left"):
            trained(model.training)
        state = torch.load(model.training / CHECKPOINT, weights_only=True)
        assert count == 2
        assert 0 < state["step"] < 40
        assert [path.name for path in model.training.glob("*.tmp")] == []

    @pytest.mark.parametrize("content", [b"", b"half", None], ids=["empty", "cut", "other"])
    def test_a_checkpoint_that_cannot_be_read(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes | None
    ) -> None:
        """The message has the file and the remedy."""
        model = prepared(tmp_path, monkeypatch)[0]
        path = model.training / CHECKPOINT
        if content is None:
            torch.save({"step": 3}, path)
        else:
            path.write_bytes(content)
        with pytest.raises(EyechartError, match=r"checkpoint.pt cannot be gone on from"):
            trained(model.training)

    def test_an_interrupt_keeps_what_is_done(
        self,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        """The same command trains the rest only."""
        real = train.steps_in
        begun: list[Path] = []

        def stop(folder: Path, device: str) -> worker.Training:
            begun.append(folder)
            if len(begun) == 3:
                raise KeyboardInterrupt
            return real(folder, device)

        monkeypatch.setattr(train, "steps_in", stop)
        assert lab(study_in(tmp_path), wanted(tmp_path)) == INTERRUPTED
        assert "the same command continues" in capsys.readouterr().err
        assert lab(study_in(tmp_path), wanted(tmp_path)) == COMPLETE
        assert begun[2] == begun[3]
        assert len(begun) == 5

    def test_two_commands_do_not_train_together(self, tmp_path: Path) -> None:
        """The second one says so."""
        folder = tmp_path / "out" / "lab" / "small"
        folder.mkdir(parents=True)
        with (
            FileLock(folder / ".lock"),
            pytest.raises(EyechartError, match="another command trains"),
        ):
            lab(study_in(tmp_path), wanted(tmp_path))


class TestDiverged:
    """It ends one model, and the others go on."""

    @pytest.mark.parametrize("value", [math.nan, 1e6], ids=["not finite", "exploded"])
    def test_the_curve_is_kept(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: float
    ) -> None:
        """The model is not asked, and the sentence says why."""
        real = steps.step_of

        def step(model: Any, *given: Any) -> Any:
            loss = real(model, *given)
            return loss * value if model.config.read.positions.name == "alibi" else loss

        monkeypatch.setattr(steps, "step_of", step)
        assert lab(study_in(tmp_path), wanted(tmp_path)) == COMPLETE
        found = {row["variant"]: row for row in rows(tmp_path)}
        assert found["rope"]["training"] == TRAINED
        assert found["alibi"]["training"] == DIVERGED
        assert found["alibi"]["length"] == ""
        alibi = models(tmp_path)[1]
        assert len((alibi.training / LOSSES).read_text().splitlines()) == 2
        assert not (alibi.training / WEIGHTS).exists()
        page = (tmp_path / "out" / "lab" / "small" / "lab.html").read_text()
        assert "the training diverged in 2 of 2 seeds" in page

    def test_an_error_is_said_at_the_end(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Of memory, for example; the other models are asked."""
        real = train.new_model

        def new(order: Any, *given: Any) -> Any:
            if order.variant.positions.name == "alibi":
                raise RuntimeError("not enough memory")
            return real(order, *given)

        monkeypatch.setattr(train, "new_model", new)
        assert lab(study_in(tmp_path), wanted(tmp_path)) == INCOMPLETE
        assert "alibi-0: not enough memory" in capsys.readouterr().err
        assert {row["variant"] for row in rows(tmp_path)} == {"rope"}


def test_several_processes(done: Path, tmp_path: Path) -> None:
    """They ask trained models what is missing; each model is asked once."""
    folder = tmp_path / "again"
    shutil.copytree(done, folder)
    text = STUDY.replace("samples: 3", "samples: 5")
    assert lab(study_in(folder, text), wanted(folder, jobs=2)) == COMPLETE
    assert [row["n"] for row in rows(folder)] == ["5"] * 12


def test_a_process_that_dies_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each training has a process of its own then, which dies as well."""
    model, other, *_ = prepared(tmp_path, monkeypatch)
    watch = Watch()
    monkeypatch.setattr(worker, "serve", sys.exit)
    worker.train_all([model.training, other.training], [worker.Slot(CPU)] * 2, watch)
    assert sorted(watch.ends_of) == sorted([model.training, other.training])
    assert set(watch.ends_of.values()) == {"its process ended with code 1"}


def test_an_interrupt_is_no_end_of_a_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is said of processes that the interrupt ends."""
    folders = [model.training for model in prepared(tmp_path, monkeypatch, TestStopped.long)]
    watch = Watch()

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(watch, "goes_on", interrupt)
    with pytest.raises(KeyboardInterrupt):
        worker.train_all(folders, [worker.Slot(CPU)] * 2, watch)
    assert watch.ends_of == {}
    assert not any(ended(folder) for folder in folders)


def test_a_process_whose_asker_is_gone_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At its next point; the training can go on."""
    model, *_ = prepared(tmp_path, monkeypatch, TestStopped.long)
    ours, theirs = worker.CONTEXT.Pipe()
    process = worker.CONTEXT.Process(target=worker.serve, args=(theirs, worker.Slot(CPU)))
    process.start()
    theirs.close()
    ours.send(model.training)
    assert ours.recv()[1][0] > 0
    ours.close()
    process.join(PATIENCE_S)
    assert process.exitcode == 0
    assert ended(model.training) is None


class Watch:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.ends_of: dict[Path, str] = {}

    def begins(self, folder: Path) -> None:
        pass

    def goes_on(self, folder: Path, step: int, loss: float) -> None:
        pass

    def ends(self, folder: Path, how: str) -> None:
        self.ends_of[folder] = how


def test_a_device_that_is_not_there(tmp_path: Path) -> None:
    """One line, without the list of torch's devices."""
    with pytest.raises(EyechartError, match=r"'gpu' is no device; write cpu, cuda or cuda:N$"):
        lab(study_in(tmp_path), wanted(tmp_path, device="gpu"))
    with pytest.raises(EyechartError, match=r"^device 'cuda:99' cannot be used"):
        lab(study_in(tmp_path), wanted(tmp_path, device="cuda:99"))


RECORDED: dict[str, dict[str, Any]] = {
    "rope": {},
    "alibi": {"positions": "alibi"},
    "kerple": {"positions": {"kerple": "log"}},
    "sandwich": {"positions": "sandwich"},
    "relu": {"attention": "relu"},
    "differential": {"attention": "differential"},
    "off_by_one": {"attention": "off_by_one"},
    "window": {"attention": {"window": 4, "sinks": 1}},
    "delta": {"attention": "delta_rule", "positions": "none"},
    "strided": {"attention": {"strided": 3}},
    "gate": {"gate": "sigmoid"},
    "t5": {"positions": "t5"},
    "relative": {"positions": "relative"},
    "learned": {"positions": {"learned": {"of": 20, "random_padding": True}}},
    "scalar": {"positions": "scalar"},
    "randomised": {"positions": {"randomised": {"of": 30}}},
    "randomised alibi": {"positions": {"randomised": {"of": 30, "encoding": "alibi"}}},
    "log_n": {"temperature": "log_n"},
    "adaptive": {"temperature": "adaptive"},
    "seq_vcr": {"loss": "seq_vcr", "layers": 2},
}


@pytest.mark.parametrize("name", RECORDED)
def test_steps_that_can_be_recorded_are_those_of_the_batches(name: str) -> None:
    """All rows are padded to the longest of the training, and the numbers are the same; also where
    a training goes on.
    """
    variant = read_variant({"layers": 1, "width": 16, "heads": 2, **RECORDED[name]})
    training = Training(steps=6, rows=4, learning_rate=0.01, warm_up=2)
    order = TrainingOrder(variant=variant, training=training, seed=3, examples="", tokenizer="")
    rng = np.random.default_rng(0)
    sizes = rng.integers(8, 15, 24)
    examples = Examples(
        rng.integers(5, 40, sizes.sum(), np.uint16),
        np.cumsum(sizes),
        rng.integers(1, 4, 24),
        training,
    )
    found = []
    for kind in (steps.steps_of, steps.RecordedSteps):
        model = train.new_model(order, 40, 14, CPU)
        optimizer = steps.new_optimizer(model, training, CPU)
        taken = kind(model, optimizer, order, examples, CPU)
        losses = []
        for at in (0, 1, 2):
            taken.take(at)
        losses.append(taken.mean_loss())
        again = kind(model, optimizer, order, examples, CPU)
        for at in (3, 4, 5):
            again.take(at)
        losses.append(again.mean_loss())
        weights = torch.cat([one.detach().flatten() for one in model.parameters()])
        found.append((losses, weights))
    (plain, first), (recorded, second) = found
    assert recorded == pytest.approx(plain, rel=1e-4)
    assert torch.allclose(first, second, atol=2e-4)


def test_where_models_are_trained() -> None:
    """One process a training on a CPU, one a GPU; a GPU has several trainings at a time."""
    assert worker.slots([CPU], None) == [worker.Slot(CPU)]
    assert worker.slots([CPU], 3) == [worker.Slot(CPU)] * 3
    gpus = ["cuda:0", "cuda:1"]
    assert worker.slots(gpus, None) == [worker.Slot(one, worker.TOGETHER) for one in gpus]
    assert [slot.most for slot in worker.slots(gpus, 5)] == [3, 2]
    assert worker.slots(gpus, 1) == [worker.Slot("cuda:0")]


@pytest.mark.parametrize("processes", [1, 2])
def test_trainings_in_turn_end_in_the_same_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, processes: int
) -> None:
    """As each alone, whether in this process or in several."""
    folders = [model.training for model in prepared(tmp_path, monkeypatch)]
    watch = Watch()
    worker.train_all(folders, [worker.Slot(CPU, most=2)] * processes, watch)
    assert set(watch.ends_of.values()) == {TRAINED}
    together = [load_file(folder / WEIGHTS / "model.safetensors") for folder in folders]
    for folder in folders:
        (folder / "ended.json").unlink()
    worker.train_all(folders, [worker.Slot(CPU)], watch)
    for folder, before in zip(folders, together, strict=True):
        after = load_file(folder / WEIGHTS / "model.safetensors")
        assert all(torch.equal(after[name], before[name]) for name in after)
