"""The file of a laboratory study: what is wrong is said at its place; what seeds say; the words."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from eyechart.harness.analysis.interval import Bound
from eyechart.harness.errors import EyechartError, StudyFileError
from eyechart.harness.plan.plan import plan, sample_id
from eyechart.harness.satellites.lab import memory
from eyechart.harness.satellites.lab.asking import Cell, csv_text, most_tokens, read_csv
from eyechart.harness.satellites.lab.data import (
    IGNORED,
    Examples,
    Recipe,
    drawn,
    make_examples,
    read_examples,
)
from eyechart.harness.satellites.lab.folders import LabFolder
from eyechart.harness.satellites.lab.memory import check_memory, check_positions
from eyechart.harness.satellites.lab.page import page
from eyechart.harness.satellites.lab.reading import Lab, read_lab
from eyechart.harness.satellites.lab.results import Result, results_of
from eyechart.harness.satellites.lab.seeds import (
    SeedLength,
    fewest_seeds,
    interval,
    mean_length,
    permutation_p,
    smallest_p,
)
from eyechart.harness.satellites.lab.tokens import EOS, SPECIAL, build, opened, vocabulary
from eyechart.harness.satellites.lab.words import method, sentence
from eyechart.harness.satellites.lab.worker import CPU, Slot
from eyechart.harness.task.catalogue import built_in_files, open_task

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
            ("[1, 6]", "6", "7:14", ["trained: must be a list"]),
            ("    trained: [1, 6]\n", "", "6:5", ["missing key 'trained'"]),
            ("steps: 40", "steps: many", "4:19", ["steps: must be a whole number"]),
            ("steps: 40", "step: 40", "4:12", ["unknown key 'step'", "'steps'"]),
            ("separator: [none]", "separator: [dots]", "6:5", ["no value 'dots'"]),
            ("samples: 4", "sampels: 4", "9:5", ["did you mean 'samples'"]),
            ("seeds: 2", "seeds: 0", "3:8", ["greater than 0"]),
            ("seeds: 2", "seeds: 2\nagainst: fst", "4:10", ["no variant 'fst'", "'fast'"]),
            ("seeds: 2", "seeds: 2\nread: text", "4:7", ["'reply', 'likelihood'"]),
            ("width: 32", "width: none", "11:27", ["width: must be a whole number"]),
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


def test_fewer_positions_than_tokens(tmp_path: Path) -> None:
    """There must be at least as many positions as a text of the training has tokens."""
    text = STUDY.replace("  rope: {}", "  few: {positions: {randomised: {of: 50}}}")
    lab = read(tmp_path, text)
    with pytest.raises(StudyFileError, match=r":13:20: a text of the training has \d+ tokens"):
        check_positions(lab, build(words_of(lab)))
    enough = read(tmp_path, text.replace("of: 50", "of: 500"))
    check_positions(enough, build(words_of(enough)))


def test_what_every_variant_has(tmp_path: Path) -> None:
    """Its own fields come before it; a file without it has the defaults."""
    lab = read(tmp_path, STUDY.replace("  rope: {}", "  rope: {width: 64}"))
    assert [one.width for one in lab.spec.variants.values()] == [64, 32]
    assert {one.layers for one in lab.spec.variants.values()} == {1}
    assert lab.spec.reference == "rope"
    plain = read(tmp_path, STUDY.replace("every: {layers: 1, width: 32, heads: 2}\n", ""))
    assert plain.spec.variants["fast"].width == 64


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
        return lab.trained_digest(lab.spec.variants["rope"])

    before = study.trained_digest(study.spec.variants["rope"])
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
        recipe = Recipe(rows=8, steps=steps, growth=0.5)
        path = folder / f"{seed}.npz"
        make_examples(
            path,
            lab.learnt,
            build(words_of(lab)),
            recipe=recipe,
            seed=seed,
        )
        return read_examples(path, recipe)

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

    def test_a_long_training_has_them_again(
        self, study: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Those with the longest rows, since these do not grow any more."""
        monkeypatch.setattr("eyechart.harness.satellites.lab.data.MOST", 8 * 20)
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


def seen(*lengths: float, width: float = 1.1) -> list[SeedLength]:
    """How far the models of several seeds see."""
    return [
        SeedLength(Bound("=", one), (Bound("=", one / width), Bound("=", one * width)))
        for one in lengths
    ]


class TestSeeds:
    """A seed of training is the unit."""

    def test_the_smallest_p(self) -> None:
        """Of three seeds against three the extremest two of twenty splits remain."""
        assert smallest_p(3, 3) == pytest.approx(0.1)
        assert permutation_p(seen(10, 11, 12), seen(20, 21, 22)) == pytest.approx(0.1)
        assert permutation_p(seen(20, 21, 22, 23), seen(1, 2, 3, 4)) == pytest.approx(2 / 70)

    def test_no_difference(self) -> None:
        """Equal models give p = 1, those that interleave a large one."""
        assert permutation_p(seen(10, 10, 10), seen(10, 10, 10)) == 1
        assert permutation_p(seen(10, 12, 14), seen(11, 13, 15)) > 0.5

    @pytest.mark.parametrize(("comparisons", "seeds"), [(1, 4), (6, 5), (7, 6)])
    def test_how_many_seeds_are_needed(self, comparisons: int, seeds: int) -> None:
        """One fewer cannot be below 5 % after Holm's correction."""
        assert fewest_seeds(comparisons) == seeds
        assert smallest_p(seeds, seeds) * comparisons <= 0.05
        assert smallest_p(seeds - 1, seeds - 1) * comparisons > 0.05

    def test_drawn_splits_are_as_good_as_all(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Where there are too many to count."""
        first, second = seen(10, 14, 18, 22, 13), seen(12, 20, 24, 26, 30)
        every = permutation_p(first, second)
        monkeypatch.setattr("eyechart.harness.satellites.lab.seeds._ALL_SPLITS", 251)
        several = permutation_p(first, second)
        assert several == permutation_p(first, second)
        assert several == pytest.approx(every, abs=0.08)

    def test_the_interval(self) -> None:
        """It is wider with fewer seeds, never as narrow as that over rows, and open at bounds."""
        assert interval(seen(10, 12), 1, 100) is None
        low, high = interval(seen(20, 20, 20), 1, 100) or (None, None)
        assert low is not None
        assert high is not None
        assert [low.length, high.length] == pytest.approx([20 / 1.1, 22])
        few, many = interval(seen(10, 20, 40), 1, 900), interval(seen(10, 20, 40) * 3, 1, 900)
        assert few is not None
        assert many is not None
        assert few[0].length < many[0].length < 20 < many[1].length < few[1].length
        above = [SeedLength(Bound(">", 100), (Bound("=", 90), Bound("=", 100)))] * 3
        low, high = interval(above, 1, 100) or (None, None)
        assert high == Bound(">", 100)
        assert low is not None
        assert low.length == pytest.approx(94.87, abs=0.01)

    def test_the_mean_is_a_bound_where_a_seed_is(self) -> None:
        """The geometric mean; with a seed that sees to the end it is at least that."""
        assert str(mean_length(seen(10, 40), 1, 100)) == "20"
        above = SeedLength(Bound(">", 100), (Bound("=", 100), Bound("=", 100)))
        below = SeedLength(Bound("<", 1), (Bound("=", 1), Bound("=", 1)))
        assert str(mean_length([*seen(25), above], 1, 100)) == "> 50"
        assert mean_length([below, above], 1, 100).sign == "="


@pytest.mark.parametrize(
    ("count", "spread", "error"), [(3, 0.3, 0.1), (6, 0.3, 0.1), (4, 0.05, 0.2)]
)
def test_intervals_and_tests_hold_as_often_as_they_say(
    count: int, spread: float, error: float
) -> None:
    """Models of known lengths, with an error that they share since they are asked the same rows."""
    rng = np.random.default_rng(count)
    held = found = 0
    rounds = 1000

    def models(shared: float) -> list[SeedLength]:
        logs = np.log(50) + shared + rng.normal(0, spread, count)
        return seen(*np.exp(logs), width=float(np.exp(1.96 * error)))

    for _ in range(rounds):
        shared = float(rng.normal(0, error))
        first, second = models(shared), models(shared)
        low, high = interval(first, 1, 10_000) or (Bound("=", 0), Bound("=", 0))
        held += low.length <= 50 <= high.length
        found += permutation_p(first, second) <= 0.05
    assert held >= 0.94 * rounds
    assert found <= 0.06 * rounds


def cells(
    variant: str, lengths: list[float | None], accuracy: float = 1.0, *, trained: bool = True
) -> list[Cell]:
    """The rows of a variant: for each seed how far it sees; two lines, one of them trained."""
    found = []
    for seed, length in enumerate(lengths):
        for at in (10, 80):
            right = accuracy if at == 10 else 0.0
            found.append(
                Cell(
                    variant=variant,
                    seed=seed,
                    task="counting/ones",
                    condition="separator=none",
                    training="trained" if trained else "diverged",
                    steps=100,
                    loss=0.1,
                    trained_to=20,
                    length=at if trained else None,
                    length_low=at if trained else None,
                    length_high=at if trained else None,
                    n=20 if trained else 0,
                    correct=round(20 * right) if trained else 0,
                    accuracy=right if trained else None,
                    effective_length=length if trained else None,
                    effective_length_ci_low=None if length is None else length / 1.1,
                    effective_length_ci_high=None if length is None else length * 1.1,
                )
            )
    return found


def said(*rows: list[Cell], of: str = "new") -> str:
    """The sentence about a variant, compared with `old`."""
    results = results_of([cell for one in rows for cell in one], "old")
    (one,) = [result for result in results if result.variant == of]
    return sentence(one, "old")


class TestWords:
    """What is said of a variant is carried by its numbers."""

    old = cells("old", [20, 20.5, 21, 20.2])

    def test_learned_and_beyond(self) -> None:
        """An interval above the longest trained row, and a difference over seeds."""
        line = said(self.old, cells("new", [50, 55, 60, 52]))
        assert "learned the trained lengths (to 20) in 4 of 4 seeds" in line
        assert "beyond the trained lengths; sees farther than old over seeds (p = 0.029)" in line
        assert "where it is right on 0 % of longer rows" in line
        assert "not beyond" not in line

    def test_worse(self) -> None:
        """The other direction."""
        assert "sees less far than old over seeds" in said(self.old, cells("new", [8, 9, 9.5, 8.2]))

    def test_not_learned_is_not_a_failure_to_extrapolate(self) -> None:
        """Nothing is said of lengths beyond a training that did not teach."""
        line = said(self.old, cells("new", [None, None, None, None], 0.5))
        assert "did not reach 95 % at the trained lengths (to 20) in 4 of 4 seeds" in line
        assert "with 50 % right there" in line
        assert "beyond" not in line

    def test_learned_and_not_beyond(self) -> None:
        """The interval ends within the trained lengths."""
        line = said(self.old, cells("new", [12, 13, 12.5, 12.2]))
        assert "not beyond the trained lengths" in line

    def test_no_difference(self) -> None:
        """Seeds that interleave."""
        assert "no difference to old found" in said(self.old, cells("new", [20.1, 20.4, 21.2, 20]))

    def test_too_few_seeds(self) -> None:
        """With three of each p cannot be below 0.1."""
        line = said(cells("old", [20, 21, 22]), cells("new", [50, 55, 60]))
        assert "a difference to old: p is 0.1, and no p below 0.1 is possible" in line

    def test_two_seeds_have_no_interval(self) -> None:
        """They say how far they see, and no more."""
        line = said(cells("old", [20, 21]), cells("new", [50, 55]))
        assert "without an interval over fewer than 3 seeds" in line

    def test_a_training_that_diverged(self) -> None:
        """It is said, and nothing of lengths."""
        line = said(self.old, cells("new", [None] * 4, trained=False))
        assert line.startswith("new: the training diverged in 4 of 4 seeds;")
        assert "sees to" not in line

    def test_how_variants_are_compared(self) -> None:
        """The test, its smallest p and the seeds that are needed; nothing for a single variant."""
        results = results_of([*self.old, *cells("new", [1, 2, 3, 4])], "old")
        assert (
            "p cannot be below 0.029, and one of them can be called better from 4 seeds on"
            in method(results, "old")
        )
        assert method(results_of(self.old, "old"), "old") == ""


def test_the_rows_are_read_as_they_were_written(tmp_path: Path) -> None:
    """Also those of a model that was not asked."""
    rows = [*cells("new", [20.5, 21]), *cells("old", [None], trained=False)]
    (tmp_path / "lab.csv").write_text(csv_text(rows), encoding="utf-8")
    again = read_csv(tmp_path / "lab.csv")
    assert csv_text(again) == csv_text(rows)
    assert again[-1].length is None
    (tmp_path / "other.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    with pytest.raises(EyechartError, match="cannot be read as the results of a study"):
        read_csv(tmp_path / "other.csv")


def test_the_page_has_sentences_tables_and_curves(study: Lab) -> None:
    """It is complete in itself, and no text of the file is code in it."""
    spec = study.spec.model_copy(update={"title": "<b>bold</b>", "against": "old"})
    results: list[Result] = results_of([*cells("old", [20, 21]), *cells("new", [9, 8])], "old")
    text = page(spec, results)
    assert "&lt;b&gt;bold" in text
    assert "<svg" in text
    assert text.count("<tr>") == 3
    assert all(sentence(one, "old") in text for one in results)
    assert "http-equiv" in text
    assert "<script" not in text


def test_a_reply_has_room_for_the_right_answer_and_little_more() -> None:
    """A model that has not learned to end would fill its window with each reply."""
    task = open_task("counting/ones", built_in_files()["counting/ones"])
    assert most_tokens(plan(task, lengths=[5, 160], samples=1)) == len("Final answer: 160") + 8
