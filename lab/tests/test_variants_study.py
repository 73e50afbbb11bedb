"""The file of a laboratory study: what is wrong is said at its place; what seeds say; the words."""

from __future__ import annotations

import os
import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from eyechart.harness.analysis.samples.judged_run import read_run
from eyechart.harness.analysis.tables.results import TABLE
from eyechart.harness.errors import INTERRUPTED, EyechartError, StudyFileError
from eyechart.harness.journal.record import SAMPLES
from eyechart.harness.plan.plan import plan, sample_id
from eyechart.harness.task.catalogue import built_in_files, open_task
from eyechart_lab.variants import asking
from eyechart_lab.variants.folders import LabFolder
from eyechart_lab.variants.lab_command import working
from eyechart_lab.variants.reading import Lab, most_tokens, read_lab
from eyechart_lab.variants.tokens import EOS, SPECIAL, build, opened, vocabulary
from eyechart_lab.variants.training import memory
from eyechart_lab.variants.training.data import (
    IGNORED,
    Examples,
    drawn,
    make_examples,
    read_examples,
)
from eyechart_lab.variants.training.memory import check_memory, check_positions
from eyechart_lab.variants.training.worker import CPU, Slot
from lab.pages import HERE
from tests.conftest import Lab as Bench

STUDY = """\
name: small
title: A small study
seeds: 2
training: {steps: 40, rows: 8}
tasks:
  - task: counting/ones
    trained: [1, 6]
    lengths: [3, 6, 12]
    samples: 4
    axes: {separator: [none]}
every: {layers: 1, width: 32, heads: 2}
variants:
  rope: {}
  fast: {positions: {rope: {base: 100}}}
"""


@pytest.fixture
def study(tmp_path: Path) -> Lab:
    """The study of `STUDY`."""
    return read(tmp_path, STUDY)


def read(folder: Path, text: str) -> Lab:
    """The study of a text."""
    path = folder / "study.yaml"
    path.write_text(text, encoding="utf-8")
    return read_lab(path)


class TestMistakes:
    """Each is one line with its place."""

    @pytest.mark.parametrize(
        ("part", "instead", "place", "words"),
        [
            ("  rope: {}", "  rope: {positions: rop}", "13:21", ["'rop'", "'rope'"]),
            ("  rope: {}", "  rope: {position: none}", "13:10", ["unknown key", "'positions'"]),
            ("  rope: {}", "  Rope: {}", "13:3", ["name 'Rope'", "lower case"]),
            ("  rope: {}", "  rope: {layers: two}", "13:18", ["layers", "whole number"]),
            ("  fast: {positions: {rope: {base: 100}}}", "  fast: {}", "14:3", ["same as 'rope'"]),
            ("counting/ones", "counting/onez", "6:5", ["did you mean 'counting/ones'"]),
            ("counting/ones", "counting", "6:5", ["several tasks", "counting/words"]),
            ("[1, 6]", "[6, 1]", "7:14", ["shortest row, 6, is longer than 1"]),
            ("[1, 6]", "6", "7:14", ["trained: must be the shortest and the longest", "not 6"]),
            ("[1, 6]", "[1, 2, 6]", "7:14", ["such as [1, 32], not [1, 2, 6]"]),
            ("[1, 6]", "[0, 6]", "7:15", ["trained: must be greater than 0, not 0"]),
            ("    trained: [1, 6]\n", "", "6:5", ["missing key 'trained'"]),
            ("steps: 40", "steps: many", "4:19", ["steps: must be a whole number"]),
            ("steps: 40", "step: 40", "4:12", ["unknown key 'step'", "'steps'"]),
            ("separator: [none]", "separator: [dots]", "6:5", ["no value 'dots'"]),
            ("samples: 4", "sampels: 4", "9:5", ["did you mean 'samples'"]),
            ("seeds: 2", "seeds: 0", "3:8", ["greater than 0"]),
            ("seeds: 2", "seeds: 2\nagainst: fst", "4:10", ["no variant 'fst'", "'fast'"]),
            ("seeds: 2", "seeds: 2\nread: text", "4:7", ["'reply', 'likelihood'"]),
            ("width: 32", "width: none", "11:27", ["width: must be a whole number"]),
            (
                "seeds: 2",
                "seeds: 2\nprobe: {measures: [attention, colapse]}",
                "4:31",
                ["measures: no measure 'colapse'; did you mean 'collapse'?"],
            ),
            (
                "seeds: 2",
                "seeds: 2\nprobe: {measures: [entropy]}",
                "4:20",
                ["measures: no measure 'entropy'; it is a quantity of attention"],
            ),
            (
                "seeds: 2",
                "seeds: 2\nprobe: on",
                "4:8",
                ["probe: must be a mapping, such as {measures: [collapse, attention]}, not 'on'"],
            ),
            ("[3, 6, 12]", "[3, 6, 3]", "8:14", ["lengths: 3 is here twice; leave one"]),
            (
                "steps: 40",
                "warm_up: 41, steps: 40",
                "4:21",
                ["warm_up: 41 is longer than the training of 40 steps; write at most 40"],
            ),
            ("  rope: {}", "  rope: {stretch: yarn}", "13:19", ["stretch: 'yarn' needs a number"]),
            (
                "{base: 100}",
                "{bass: 100}",
                "14:29",
                ["unknown key 'bass'; did you mean 'base'?"],
            ),
            (
                "heads: 2}",
                "heads: 2, loss: {seq_vcr: {weight: 1}}}",
                "11:58",
                ["unknown key 'weight'; known: variance, covariance, layer"],
            ),
            (
                "  rope: {}",
                "  rope: {attention: {window: 5, sink: 3}}",
                "13:22",
                ["unknown key 'sink'; did you mean 'sinks'?"],
            ),
        ],
    )
    def test_is_one_line(
        self, tmp_path: Path, part: str, instead: str, place: str, words: list[str]
    ) -> None:
        """It has the place and the remedy."""
        assert STUDY.count(part) == 1
        with pytest.raises(StudyFileError) as caught:
            read(tmp_path, STUDY.replace(part, instead))
        (line,) = caught.value.lines
        assert line.startswith(f"{tmp_path / 'study.yaml'}:{place}: ")
        assert not [word for word in words if word not in line], line

    def test_a_task_without_a_generator(self, tmp_path: Path) -> None:
        """Ready items cannot be drawn for training."""
        (tmp_path / "items.jsonl").write_text(
            '{"variables": {"q": "a"}, "target": "a", "length": 1}\n', encoding="utf-8"
        )
        (tmp_path / "mine.yaml").write_text(
            "version: 1\ntitle: Mine\nitems: items.jsonl\n"
            'prompt: "{{ q }} {{ phrase }}"\nanswer: text\n',
            encoding="utf-8",
        )
        text = STUDY.replace("counting/ones", "./mine.yaml").replace(
            "    axes: {separator: [none]}\n", ""
        )
        (tmp_path / "study.yaml").write_text(
            text.replace("lengths: [3, 6, 12]", "lengths: [1]"), encoding="utf-8"
        )
        with pytest.raises(StudyFileError, match=r":6:5: .*ready items and no generator"):
            read_lab(tmp_path / "study.yaml", trusts=True)

    def test_code_of_others_needs_trust(self, tmp_path: Path) -> None:
        """A study may come from somebody else."""
        (tmp_path / "rows.py").write_text("raise RuntimeError\n", encoding="utf-8")
        (tmp_path / "mine.yaml").write_text(
            "version: 1\ntitle: Mine\ngenerator: rows.py:row\nlengths: [2]\nsamples: 1\n"
            'prompt: "{{ sequence }} {{ phrase }}"\nanswer: text\n',
            encoding="utf-8",
        )
        text = STUDY.replace("counting/ones", "./mine.yaml")
        with pytest.raises(StudyFileError, match=r"executes the code in rows\.py"):
            read(tmp_path, text)

    def test_lengths_beyond_memory(
        self, tmp_path: Path, study: Lab, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The line says at its place what is needed and what is free."""
        (tokenizer,) = [build(words_of(study))]
        check_memory(study, tokenizer, [Slot(CPU)] * 1)
        monkeypatch.setattr(memory, "free_bytes", lambda: 1000)
        with pytest.raises(StudyFileError) as caught:
            check_memory(study, tokenizer, [Slot(CPU)] * 1)
        (line,) = caught.value.lines
        assert ":7:14: trained: a step of 8 rows of 6 symbols" in line
        monkeypatch.setattr(memory, "free_bytes", lambda: 1 << 30)
        long = read(tmp_path, STUDY.replace("[3, 6, 12]", "[3, 60000]"))
        with pytest.raises(StudyFileError, match=r":8:14: lengths: a row of 60,000 symbols"):
            check_memory(long, tokenizer, [Slot(CPU)] * 1)


def test_a_model_beyond_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its weights, their gradients and AdamW's numbers are counted, however short the rows are."""
    monkeypatch.setattr(memory, "free_bytes", lambda: 8 << 30)
    lab = read(tmp_path, STUDY.replace("rope: {}", "rope: {layers: 100, width: 2048}"))
    with pytest.raises(StudyFileError, match=r":7:14: .* about 8\d\.\d GiB, .* a smaller model"):
        check_memory(lab, build(words_of(lab)), [Slot(CPU)])
    one = read(tmp_path, STUDY.replace("rope: {}", "rope: {layers: 1, width: 2048}"))
    check_memory(one, build(words_of(one)), [Slot(CPU)])


def test_fewer_positions_than_tokens(tmp_path: Path) -> None:
    """There must be at least as many positions as a text of the training has tokens."""
    text = STUDY.replace("  rope: {}", "  few: {positions: {randomised: {of: 50}}}")
    lab = read(tmp_path, text)
    with pytest.raises(StudyFileError, match=r":13:20: a text of the training has \d+ tokens"):
        check_positions(lab, build(words_of(lab)))
    enough = read(tmp_path, text.replace("of: 50", "of: 500"))
    check_positions(enough, build(words_of(enough)))


def test_a_short_training_warms_up_to_its_end(tmp_path: Path, study: Lab) -> None:
    """The usual rise is no longer than the training; a given one is as it was given."""
    assert study.spec.training.warm_up == 40
    given = read(tmp_path, STUDY.replace("steps: 40", "steps: 40, warm_up: 4"))
    assert given.spec.training.warm_up == 4
    usual = read(tmp_path, STUDY.replace("steps: 40", "steps: 4000"))
    assert usual.spec.training.warm_up == 100


def test_what_every_variant_has(tmp_path: Path) -> None:
    """Its own fields come before it; a file without it has the defaults."""
    lab = read(tmp_path, STUDY.replace("  rope: {}", "  rope: {width: 64}"))
    assert [one.width for one in lab.spec.variants.values()] == [64, 32]
    assert {one.layers for one in lab.spec.variants.values()} == {1}
    assert lab.spec.reference == "rope"
    plain = read(tmp_path, STUDY.replace("every: {layers: 1, width: 32, heads: 2}\n", ""))
    assert plain.spec.variants["fast"].width == 64
    for every in ("every: {layers: 1, width: 32, heads: 2}\n", ""):
        text = STUDY.replace("every: {layers: 1, width: 32, heads: 2}\n", every)
        empty = read(tmp_path, text.replace("  rope: {}", "  rope:"))
        assert empty.spec.variants["rope"].positions.name == "rope"


def test_variants_that_differ_only_when_asked_are_trained_once(tmp_path: Path) -> None:
    """A stretched variant has a model of its own, and the training of the one without."""
    lab = read(tmp_path, STUDY + "  long: {stretch: {linear: 2}}\n")
    rope, _, long, *_ = LabFolder.of(lab, tmp_path).models()
    assert rope.training == long.training
    assert rope.folder != long.folder
    assert len({model.training for model in LabFolder.of(lab, tmp_path).models()}) == 4


def test_only_what_matters_changes_the_digest(tmp_path: Path, study: Lab) -> None:
    """More seeds, variants and asked lengths keep what is trained; steps and tasks do not."""

    def trained(text: str) -> str:
        lab = read(tmp_path, text)
        return lab.digest(lab.spec.variants["rope"].trained_as)

    before = study.digest(study.spec.variants["rope"].trained_as)
    assert trained(STUDY.replace("seeds: 2", "seeds: 5")) == before
    assert trained(STUDY.replace("[3, 6, 12]", "[3]") + "  nope: {positions: none}\n") == before
    assert trained(STUDY.replace("steps: 40", "steps: 41")) != before
    assert trained(STUDY.replace("[1, 6]", "[1, 7]")) != before


def words_of(lab: Lab) -> list[str]:
    """The vocabulary of a study."""
    return vocabulary(
        [one.plan for one in lab.learnt],
        [one.shortest for one in lab.learnt],
        lab.spec.training.merged,
    )


class TestTokens:
    """A token a word, a digit, a letter of a row."""

    def test_words_digits_and_names(self, study: Lab) -> None:
        """The name of a row is spelled, and a count that no training had is digits."""
        tokenizer = build(words_of(study))
        tokens = tokenizer.encode("How many ones are in row QXB? Final answer: 4071").tokens
        assert tokens[:6] == ["How", " many", " ones", " are", " in", " row"]
        assert tokens[6:10] == [" Q", "X", "B", "?"]
        assert tokens[-4:] == [" 4", "0", "7", "1"]
        assert tokenizer.encode("<bos>a<eos>").ids[-1] == EOS
        assert tokenizer.token_to_id(SPECIAL[0]) == 0

    def test_merged_letters(self, tmp_path: Path) -> None:
        """Rows of letters become tokens of up to so many of them."""
        text = STUDY.replace("counting/ones", "separators/two_symbols")
        one = build(words_of(read(tmp_path, text)))
        two = build(words_of(read(tmp_path, text.replace("rows: 8", "rows: 8, merged: 2"))))
        assert one.encode("xyyxx").tokens == ["x", "y", "y", "x", "x"]
        assert two.encode("xyyxx").tokens == ["xy", "yx", "x"]


class TestExamples:
    """What is trained."""

    def examples(self, lab: Lab, folder: Path, seed: int, steps: int = 40) -> Examples:
        """The examples of a seed."""
        training = lab.spec.training.model_copy(update={"rows": 8, "steps": steps, "growth": 0.5})
        path = folder / f"{seed}.npz"
        make_examples(path, lab.learnt, build(words_of(lab)), training, seed)
        return read_examples(path, training)

    def test_only_the_reply_has_a_loss(self, study: Lab, tmp_path: Path) -> None:
        """It ends with the token that ends a reply; short rows are filled with it."""
        batch = self.examples(study, tmp_path, 0).batch(39)
        tokenizer = build(words_of(study))
        assert batch.places.shape == batch.wanted.shape
        for row, places, wanted in zip(*batch, strict=True):
            reply = wanted != IGNORED
            assert (row[places + 1][reply] == wanted[reply]).all()
            text = tokenizer.decode(wanted[reply].tolist(), skip_special_tokens=False)
            assert text.startswith("Final answer: ")
            assert text.endswith("<eos>")
            prompt = tokenizer.decode(row.tolist())
            assert text.removeprefix("Final answer: ").removesuffix("<eos>") == str(
                prompt.split("Row ")[1].split("<assistant>")[0].split("Final")[0].count("1")
            )
            assert (row[places.max() + 1 :] == EOS).all()

    def test_rows_grow(self, study: Lab, tmp_path: Path) -> None:
        """The first steps have short rows; none is longer than the longest trained one."""
        examples = self.examples(study, tmp_path, 0)
        widths = [examples.batch(step)[0].shape[1] for step in range(40)]
        assert max(widths[:3]) < max(widths)
        assert widths[0] <= min(widths) + 1

    def test_they_follow_from_the_seed(self, study: Lab, tmp_path: Path) -> None:
        """The same seed gives the same ones, another seed others."""
        first, other = (self.examples(study, tmp_path, seed) for seed in (0, 1))
        again = self.examples(study, tmp_path, 0)
        assert (first.ids == again.ids).all()
        assert not np.array_equal(first.ids, other.ids)

    @pytest.mark.parametrize("content", [b"", b"PK half of a file", b"no archive"])
    def test_a_damaged_file(self, study: Lab, tmp_path: Path, content: bytes) -> None:
        """The message has the file and the remedy."""
        path = tmp_path / "0.npz"
        path.write_bytes(content)
        with pytest.raises(EyechartError, match=r"0\.npz cannot be read as examples: .*remove it"):
            read_examples(path, study.spec.training)

    def test_a_long_training_has_them_again(
        self, study: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Those with the longest rows, since these do not grow any more."""
        monkeypatch.setattr("eyechart_lab.variants.study.MOST_EXAMPLES", 8 * 20)
        examples = self.examples(study, tmp_path, 0, steps=50)
        assert len(examples.ends) == 8 * 20
        for step in (20, 30, 40):
            assert (examples.batch(step)[0] == examples.batch(10)[0]).all()

    def test_asked_rows_are_drawn_from_other_numbers(self, study: Lab) -> None:
        """No stream of training is that of a sample that is asked."""
        (plan,) = study.plans
        asked = {f"{plan.seed}|{plan.task.name}|{index}" for index in range(100)}
        assert not asked & {f"lab|{seed}|{step}" for seed in range(100) for step in range(100)}
        first = plan.sample(plan.conditions[0], plan.lines[0], 0)
        assert first.id == sample_id(plan.task, plan.conditions[0], 3, 0, plan.seed)
        prompt, reply = drawn(random.Random("lab|0|0"), study.learnt, [1.0], 1.0)
        assert opened(prompt).endswith("<assistant>")
        assert reply.startswith("Final answer: ")


def test_a_reply_has_room_for_the_right_answer_and_little_more() -> None:
    """A model that has not learned to end would fill its window with each reply."""
    task = open_task("counting/ones", built_in_files()["counting/ones"])
    assert (
        most_tokens(plan(task, lengths=[5, 160], exact=True, samples=1))
        == len("Final answer: 160") + 8
    )


def test_an_interrupt_says_what_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is said to be saved where no checkpoint was written."""

    def work() -> int:
        raise KeyboardInterrupt

    assert working(tmp_path / "study", work) == INTERRUPTED
    said = capsys.readouterr().err
    assert "continues each training from its last checkpoint, or from its start without one" in said
    assert "saved" not in said


def test_the_study_of_depth_has_equal_weights() -> None:
    """In all layers together, within 1 %, as its description says; and heads of one width."""
    spec = read_lab(HERE / "depth_majority.yaml").spec
    variants = list(spec.variants.values())
    assert [one.layers for one in variants] == [2, 4, 8]
    assert {one.turned_width for one in variants} == {16}
    counts = [memory.weights(one) for one in variants]
    assert max(counts) < 1.01 * min(counts)
    assert all(f"{count:,}" in spec.description for count in counts)


def test_a_name_almost_right(lab: Bench) -> None:
    """Where no such file is."""
    done = lab.bench("lab", "embeded")
    assert done.err == "bench: no file 'embeded'; did you mean 'embedded'?\n"
    assert "cannot be read: no such file" in lab.bench("lab", "study.yaml").err


def test_tables_that_a_kill_left_out_are_written(
    lab: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next command finds all answers and asks nothing; tables that are there stay."""
    assert lab.bench_run("--lengths", "3", "--samples", "2").code == 0
    judged, planned = read_run(lab.the_run()), plan(open_task("lab/ones", lab.ones))
    monkeypatch.setattr(asking, "_settings", lambda _study, _model: [{}])
    monkeypatch.setattr(asking, "_judged", lambda *_: judged)
    monkeypatch.setattr(asking, "_missing", lambda *_: 0)
    study: Any = SimpleNamespace(plans=[planned])
    model: Any = None
    table = judged.folder / TABLE
    text = table.read_text()
    for before in (None, "old", "new"):
        table.unlink()
        if before is not None:
            table.write_text(before)
            at = (judged.folder / SAMPLES).stat().st_mtime + (1 if before == "new" else -1)
            os.utime(table, (at, at))
        _, has_asked = asking.ask(study, model, lambda: None, lab.said.append)
        assert not has_asked
        assert table.read_text() == (before if before == "new" else text)
