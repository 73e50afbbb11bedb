"""Worked examples stand before the same questions, are read as right, and give no answer away."""

from __future__ import annotations

import json
import re
from functools import cache
from itertools import product
from typing import TYPE_CHECKING

import pytest

from eyechart.harness.analysis.samples.verdicts import judge_of_task
from eyechart.harness.errors import PlanError
from eyechart.harness.journal.record import Record
from eyechart.harness.plan.forced_choice import ForcedChoice
from eyechart.harness.plan.plan import make_sample, plan, sample_from_id
from eyechart.harness.plan.request import request_of
from eyechart.harness.score.judge import judge
from eyechart.harness.score.outcomes import Outcome
from eyechart.harness.spec.worked_examples import NUMBERS
from eyechart.harness.task.catalogue import Task, built_in_files, of_digest, open_task
from eyechart.harness.task.examples import LONGEST
from eyechart.providers.documents import as_document, opened, stops
from tests.conftest import records

if TYPE_CHECKING:
    from pathlib import Path

    from eyechart.harness.spec import Sample
    from tests.conftest import Lab

every_task = pytest.mark.parametrize("name", sorted({*built_in_files()} - {"turns/running_sum"}))
"""Those that take worked examples."""
INDICES = range(2)
LENGTHS = (8, 40)


@cache
def built_in(name: str) -> Task:
    return open_task(name, built_in_files()[name], trial=False)


def samples(task: Task, *numbers: int, **axes: str) -> list[Sample]:
    """Some samples with so many examples: of the conditions with the values in `axes`, or else of
    each value of each axis with the others at their default.
    """
    usual = {axis: of.default[0] for axis, of in task.spec.axes.items()} | axes
    changed = [
        usual | {axis: value}
        for axis, of in task.spec.axes.items()
        for value, shown in of.values.items()
        if axis not in axes and shown not in (8_000, 32_000, 120_000, 128_000, 500_000, 1_000_000)
    ]
    found = []
    for values in [usual] if axes else [usual, *changed]:
        given = {axis: [value] for axis, value in values.items()}
        planned = plan(task, axes=given | {"examples": list(map(str, numbers))}, lengths=LENGTHS)
        found += [
            planned.sample(condition, line, index)
            for condition in planned.conditions
            for line in planned.lines
            for index in INDICES
        ]
    return found


def parts(sample: Sample) -> list[tuple[str, str]]:
    """The examples of a sample: each question with its answer."""
    text = sample.prompt[: sample.before]
    *found, end = re.split(r"\nFinal answer: (.*?)\n\n", text, flags=re.DOTALL)
    assert end == ""
    return list(zip(found[::2], found[1::2], strict=True))


@every_task
def test_the_question_is_the_one_that_is_asked_without(name: str) -> None:
    """The same rows, targets and words, under every condition of every task."""
    task = built_in(name)
    for sample in samples(task, 0, 4):
        bare = sample.condition.without("examples")
        plain = make_sample(task, bare, sample.line, sample.index, 0)
        assert (sample.question, sample.target) == (plain.prompt, plain.target)
        assert (sample.before == 0) == (sample.condition["examples"] == "0")
        assert sample_from_id(task, sample.id).prompt == sample.prompt


@every_task
def test_each_example_is_another_row_with_its_right_answer(name: str) -> None:
    """As a reply the line with an answer is judged right, and the answers are not all the same."""
    task = built_in(name)
    answer = task.spec.answer
    for sample in samples(task, 4):
        found = parts(sample)
        assert len(found) == 4
        assert len({said for _, said in found}) > 1
        questions = [question.rstrip() for question, _ in found]
        assert sample.question not in questions
        assert len(set(questions)) == 4
        for question, said in found:
            verdict = judge(
                text=f"{answer.first_phrase} {said}",
                finish_reason="stop",
                refusal=None,
                failure=None,
                target=said if answer.kind.stored is not int else int(said),
                answer=answer,
            )
            assert verdict.outcome is Outcome.CORRECT, (question, said)


@pytest.mark.parametrize("name", ["counting/bernoulli", "separators/two_symbols"])
def test_the_answers_of_examples_are_counted_in_their_own_rows(name: str) -> None:
    """The answer of each example, counted here in the row that it shows."""
    task = built_in(name)
    counted = str(task.spec.params["counted"])
    for sample in samples(task, 8, separator="none"):
        for question, said in parts(sample):
            row = re.search(r"^Row [A-Z]{3}: (\w+)$", question, re.MULTILINE)
            assert row is not None
            assert row[1].count(counted) == int(said)
            assert 4 <= len(row[1]) <= LONGEST


@every_task
def test_examples_do_not_grow_with_the_row(name: str) -> None:
    """Rows of all lengths have the same examples, and two are the first two of eight."""
    task = built_in(name)
    axes = {"examples": ["all"]}
    planned = plan(task, axes=axes, lengths=[40, 60, 300], exact=True)
    usual = planned.conditions[0].without("examples")
    for index in INDICES:
        before: dict[str, str] = {}
        for number, line in product(map(str, NUMBERS), planned.lines):
            sample = planned.sample(usual.with_value("examples", number), line, index)
            text = sample.prompt[: sample.before]
            assert before.setdefault(number, text) == text
        assert before["8"].startswith(before["4"])
        assert before["4"].startswith(before["2"])
        assert before["2"].startswith(before["0"])
        assert len(set(before.values())) == 4


def test_the_row_that_is_asked_is_none_of_them() -> None:
    """Rows of ones are known by their length, so one of eight lengths would give the answer."""
    task = built_in("counting/ones")
    for length in range(4, LONGEST + 1):
        planned = plan(task, axes={"examples": ["8"]}, lengths=[length])
        for index in range(20):
            sample = planned.sample(planned.conditions[0], planned.lines[0], index)
            answers = [int(said) for _, said in parts(sample)]
            assert sorted([*answers, length]) == list(range(4, LONGEST + 1))


def test_where_all_rows_have_one_answer_the_generator_varies_what_no_prompt_shows() -> None:
    """A row whose odd symbol is always 0 would teach a model to say 0."""
    task = built_in("copying/first_last")
    for odd in ("zero", "absent"):
        for sample in samples(task, 2, odd=odd):
            for question, said in parts(sample):
                row = question.rstrip().rpartition(": ")[2].partition("\n")[0]
                assert row[0] == said


def test_two_answers_are_shown_as_often() -> None:
    """Of two possible answers each stands in half of the examples."""
    task = built_in("memory/flip_flop")
    for sample in samples(task, 2, 4, 8):
        answers = [said for _, said in parts(sample)]
        assert answers.count("0") == answers.count("1")


def test_the_text_around_a_row_is_not_repeated() -> None:
    """A row amid 120,000 tokens has examples without text around them."""
    task = built_in("context/ones")
    (sample, *_) = samples(task, 8, context="tokens_120k")
    assert sample.before < 2_000
    assert len(sample.question) > 400_000


class TestAsText:
    """`--api completions`: a base model goes on with the answer."""

    @pytest.fixture
    def sample(self) -> Sample:
        return samples(built_in("counting/ones"), 2)[0]

    def test_it_ends_as_the_examples_go_on(self, sample: Sample) -> None:
        request = request_of(sample, 9, 0.0, 0, api="completions")
        text = as_document(request.prompt)
        assert text == f"{sample.prompt}\nFinal answer:"
        assert text.count("\nFinal answer: ") == 2
        assert stops(request.prompt) == ["\nHow many ones", "\nFinal", "\nAnswer:", "\n\n"]
        assert request_of(sample, 9, 0.0, 0, api="chat").prompt == sample.prompt

    def test_no_examples_end_alike(self) -> None:
        """So that values of the axis differ in nothing but their examples."""
        sample = samples(built_in("counting/ones"), 0)[0]
        request = request_of(sample, 9, 0.0, 0, api="completions")
        assert as_document(request.prompt) == f"{sample.prompt}\nFinal answer:"

    def test_a_phrase_without_a_colon_gets_none_besides(self, lab: Lab) -> None:
        lab.ones.write_text(
            lab.ones.read_text().replace(
                "answer: integer", "answer: {type: integer, phrase: It is}"
            )
        )
        sample = samples(open_task("lab/ones", lab.ones), 2)[0]
        request = request_of(sample, 9, 0.0, 0, api="completions")
        assert as_document(request.prompt) == f"{sample.prompt}\nIt is"

    def test_an_option_follows_the_phrase_once(self, sample: Sample) -> None:
        choice = ForcedChoice(built_in("counting/ones"), 0)
        request = request_of(sample, 9, 0.0, 0, choice, api="completions")
        text = opened(request.prompt, request.opening)
        assert text == f"{sample.prompt}\nFinal answer:"

    def test_a_prompt_with_an_empty_line_has_no_examples(self) -> None:
        """The last line of a prompt does not begin an earlier one."""
        prompt = "Row ABC: 1\n\nRow ABD: 1 1"
        assert as_document(prompt) == f"{prompt}\nAnswer:"
        assert "\n\n" not in stops(prompt)

    @pytest.mark.parametrize(
        ("reply", "outcome"),
        [
            (" 2", Outcome.CORRECT),
            (" 2\nThe row has 2 ones, and 7 zeros.", Outcome.CORRECT),
            (" 3\n2", Outcome.INCORRECT),
        ],
    )
    def test_the_answer_is_the_first_thing_said(
        self, sample: Sample, reply: str, outcome: Outcome
    ) -> None:
        task = built_in("counting/ones").with_examples()
        record = as_record(sample, reply)
        assert judge_of_task(task, 0, "completions").verdict(record).outcome is outcome
        assert judge_of_task(task, 0, "chat").answer == task.spec.answer


def as_record(sample: Sample, reply: str) -> Record:
    """A record of a reply to a sample, as if its target were 2."""
    return Record(
        id=sample.id,
        condition=sample.condition,
        length=sample.length,
        index=sample.index,
        target=2,
        prompt_hash=sample.prompt_hash,
        reply=reply,
        finish_reason="stop",
    )


ITEMS = """\
version: 1
title: Capitals
items: capitals.jsonl
prompt: 'What is the capital of {{ country }}? Write "{{ phrase }}" and then its name.'
answer: text
"""


def capitals(folder: Path, *answers: str) -> Task:
    """A task with these ready items."""
    lines = [
        json.dumps({"variables": {"country": f"C{n}"}, "target": answer, "length": n}) + "\n"
        for n, answer in enumerate(answers, start=1)
    ]
    (folder / "capitals.jsonl").write_text("".join(lines))
    file = folder / "capitals.yaml"
    file.write_text(ITEMS)
    return open_task("x/capitals", file)


class TestOtherTasks:
    """Tasks of users take the axis too."""

    def test_ready_items_are_examples_of_one_another(self, tmp_path: Path) -> None:
        task = capitals(tmp_path, "Lima", "Oslo", "Rome")
        planned = plan(task, axes={"examples": ["2"]})
        shown = {str(sample.target): {said for _, said in parts(sample)} for sample in planned}
        every = {"Lima", "Oslo", "Rome"}
        assert shown == {one: every - {one} for one in every}

    def test_a_file_with_too_few_items_says_so(self, tmp_path: Path) -> None:
        task = capitals(tmp_path, "Lima", "Oslo", "Rome")
        with pytest.raises(PlanError, match="has 2 other rows for the 4 worked examples"):
            list(plan(task, axes={"examples": ["4"]}))

    def test_an_answer_with_an_empty_line_is_no_example(self, tmp_path: Path) -> None:
        task = capitals(tmp_path, "Li\n\nma", "Oslo", "Rome")
        with pytest.raises(PlanError, match="answers with an empty line"):
            list(plan(task, axes={"examples": ["2"]}))

    def test_a_generator_that_makes_no_short_rows_says_so(self, lab: Lab) -> None:
        rows = lab.ones.parent / "rows.py"
        rows.write_text(rows.read_text().replace("    row =", "    assert length > 20\n    row ="))
        lab.ones.write_text(lab.ones.read_text().replace("[3, 5]", "[30]"))
        done = lab.bench_run("--axis", "examples=2")
        assert "so there are no worked examples, which have 4 to 12 symbols" in done.one_line(2)

    def test_an_axis_of_the_file_keeps_its_meaning(self, lab: Lab) -> None:
        text = lab.ones.read_text().replace("separator", "examples")
        lab.ones.write_text(f"{text}".replace("{{ sequence }}", "{{ symbols | join(examples) }}"))
        task = open_task("lab/ones", lab.ones)
        planned = plan(task, axes={"examples": ["comma"]})
        assert planned.task is task
        assert all(sample.before == 0 and "," in sample.prompt for sample in planned)


class TestRuns:
    """A run with the axis is one of its own, and is read like any other."""

    def test_the_task_without_it_stays_as_it_is(self, lab: Lab) -> None:
        task = open_task("lab/ones", lab.ones)
        both = task.with_examples()
        assert task.spec.digest() != both.spec.digest()
        assert of_digest(task, both.spec.digest()) == both
        assert of_digest(task, task.spec.digest()) is task
        assert of_digest(task, "f00") is None

    def test_it_is_asked_continued_and_shown(self, lab: Lab) -> None:
        command = ("--axis", "examples=0,2", "--axis", "separator=none", "--lengths", "5")
        done = lab.bench_run(*command)
        assert done.code == 0, done.err
        run = lab.the_run()
        written = records(run)
        assert {one["condition"]["examples"] for one in written} == {"0", "2"}
        assert lab.bench_ask(*command).code == 0
        assert records(run) == written
        shown = lab.bench(
            "samples", run, "--task", lab.ones, "--condition", "examples=2", "--limit", "1"
        )
        assert shown.out.count("How many ones?") == 3, shown
        compared = lab.bench("compare", run, "--axis", "examples=0,2")
        assert compared.code == 0, compared.err
        assert "examples=0 against examples=2" in compared.out

    def test_an_unknown_number_names_the_known_ones(self, lab: Lab) -> None:
        line = lab.bench_run("--axis", "examples=3").one_line(2)
        assert "no value '3' on axis 'examples'; it has 0, 2, 4, 8" in line

    def test_options_are_those_without_examples(self) -> None:
        """The numbers in examples are no wrong answers."""
        task = built_in("memory/key_values")
        choice = ForcedChoice(task.with_examples(), 0)
        for sample in samples(task, 8, asked="one"):
            assert all(option in sample.question for option in choice.options(sample))

    def test_recorded_replies_have_them_too(self, lab: Lab) -> None:
        """Ids name the examples, which one option makes known."""
        sample = samples(open_task("lab/ones", lab.ones), 2)[0]
        file = lab.folder / "replies.jsonl"
        reply = {"id": sample.id, "reply": f"Final answer: {sample.target}"}
        file.write_text(json.dumps(reply) + "\n")
        command = ("import", file, "--task", lab.ones, "--model", "x/y", "--out", lab.out)
        refused = lab.bench(*command)
        assert "import such rows with --axis examples=2" in refused.err
        done = lab.bench(*command, "--axis", "examples=2")
        assert done.code == 0, done.err
        assert records(lab.the_run())[0]["condition"]["examples"] == "2"
