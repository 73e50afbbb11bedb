"""Oracles prove a task: right replies win, wrong ones lose, and no reply is neither."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, TypeAlias

import pytest

from eyechart.harness.plan import proof
from eyechart.harness.plan.oracles import PERFECT, knower, right_replies
from eyechart.harness.plan.plan import plan
from eyechart.harness.plan.warnings import warnings
from eyechart.harness.score.judge import judge
from eyechart.harness.score.outcomes import Outcome
from eyechart.harness.score.verdict import Verdict
from eyechart.harness.spec import Sample
from eyechart.harness.task.catalogue import Task, built_in_files, open_task

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Lab

TASK = """\
version: 1
title: Ones
generator: rows.py:row
lengths: [2, 3]
samples: 1
prompt: |
  Say "{{{{ phrase }}}}" and the answer.
  {{{{ sequence }}}}
answer: {answer}
"""
ROWS = """\
from eyechart.harness.spec import Item


def row(rng, length):
    return Item(["1"] * length, {target!r})
"""


TARGETS: list[tuple[str, float | str | list[str]]] = [
    ("integer", 0),
    ("integer", 1),
    ("integer", -3),
    ("integer", 10_000),
    ("symbol", "7"),
    ("symbol", "x"),
    ("symbol", "é"),
    ("symbol", "tea"),
    ("text", "tea"),
    ("text", "tea cake"),
    ("text", "7"),
    ("text", "3 11 4"),
    ("{type: integer, phrase: 'Antwort ='}", 5),
    ("{type: symbol, phrase: '>>>'}", "q"),
    ("integer", 10**30),
    ("number", 3),
    ("number", 0.0),
    ("number", -2.5e-7),
    ("{type: number, tolerance: 0.1}", 3.0),
    ("{type: number, relative_tolerance: 0.05}", -1e20),
    ("{type: choice, options: [red, green, not sure]}", "not sure"),
    ("{type: choice, options: [red, green], letters: true}", "green"),
    ("{type: choice, options: [A, B, C]}", "A"),
    ("{type: choice, options: [a*b, c]}", "a*b"),
    ("list", ["red", "green tea", "7"]),
    ("list", "red"),
    ("{type: list, ordered: false}", "red, green, blue"),
]
"""Answer types of tasks of one's own, each with a target."""


def opened(folder: Path, answer: str, target: float | str | list[str]) -> Task:
    (folder / "task.yaml").write_text(TASK.format(answer=answer))
    (folder / "rows.py").write_text(ROWS.format(target=target))
    return open_task("x/task", folder / "task.yaml")


@pytest.mark.parametrize("group", sorted({name.partition("/")[0] for name in built_in_files()}))
def test_the_command_says_so(group: str, lab: Lab) -> None:
    """`bench tasks check` prints a line for each task on stdout and ends with 0; prompts come after
    the line of a group's only task.
    """
    done = lab.bench("tasks", "check", group)
    names = [name for name in built_in_files() if name.startswith(f"{group}/")]
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()[: None if len(names) > 1 else 1]
    assert [line.partition(": sound (")[0] for line in lines] == names


@pytest.mark.parametrize(("answer", "target"), TARGETS)
def test_a_users_task_is_sound(
    answer: str, target: float | str | list[str], tmp_path: Path
) -> None:
    """Targets of every kind, with phrases of one's own, can be won and lost."""
    assert [str(failure) for failure in proof.failures(opened(tmp_path, answer, target))] == []


@pytest.mark.parametrize(
    ("answer", "target"),
    [
        ("symbol", "**"),
        ("symbol", "`"),
        ("list", ["- x", "- y"]),
    ],
)
def test_a_target_that_no_reply_can_show_fails(
    answer: str, target: str | list[str], lab: Lab
) -> None:
    """Each failure is a line with the sample, the oracle, its reply, and what came of it."""
    task = opened(lab.folder, answer, target)
    failed = list(proof.failures(task))
    assert failed
    for failure in failed:
        assert failure.sample_id in [sample.id for sample in plan(task)]
        assert failure.oracle in str(failure)
        assert f"should be {failure.wanted}, is {failure.got}" in str(failure)
        assert "\n" not in str(failure)
    done = lab.bench("tasks", "check", lab.folder / "task.yaml")
    assert (done.code, done.out) == (2, "")
    warned, *lines = done.err.splitlines()
    assert "always right" in warned  # of a target that is always the same
    assert len(lines) == len(failed)
    assert "should be correct, is " in done.err


def judged(outcome: Outcome, signed_error: int | None = None) -> object:
    """A judge who always says the same."""
    return lambda **_: Verdict(outcome, signed_error=signed_error)


def test_a_judge_who_calls_everything_right_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Off by one, silence, a refusal and a cut-off must not pass as right."""
    task = opened(tmp_path, "integer", 5)
    monkeypatch.setattr(proof, "judge", judged(Outcome.CORRECT, 0))
    failed = {failure.oracle: failure.wanted for failure in proof.failures(task)}
    assert failed == {
        "one too many": "incorrect with error 1",
        "one too few": "incorrect with error 1",
        "silent": "unparsed",
        "refusing": "refused",
        "cut-off": "truncated",
    }


def test_a_judge_who_calls_everything_wrong_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every way of being right must win, and an error of two is not one of one."""
    task = opened(tmp_path, "integer", 5)
    monkeypatch.setattr(proof, "judge", judged(Outcome.INCORRECT, 2))
    failed = {failure.oracle for failure in proof.failures(task)}
    assert failed == {
        *PERFECT,
        "one too many",
        "one too few",
        "silent",
        "refusing",
        "cut-off",
    }


def test_accepted_answers_are_proved(tmp_path: Path) -> None:
    """Each is tried, and none is taken for a wrong answer."""
    (tmp_path / "task.yaml").write_text(
        TASK.format(answer="symbol").replace("{{{{", "{{").replace("}}}}", "}}")
    )
    (tmp_path / "rows.py").write_text(
        ROWS.format(target="yes").replace("'yes')", "'yes', accept=['7', 'y'])")
    )
    task = open_task("x/task", tmp_path / "task.yaml")
    sample = next(iter(plan(task)))
    assert sample.accept == ("7", "y")
    answer = task.spec.answer
    replies = dict(right_replies(sample, answer))
    assert replies["accepted answer 'y'"] == "Final answer: y"
    wrong = answer.kind.wrong(sample.target, answer, sample.accept)
    assert [text for _, text, _ in wrong] == ["8"]
    assert list(proof.failures(task)) == []


def test_a_cell_of_equal_prompts_is_reported(tmp_path: Path) -> None:
    """Twenty samples that are one prompt are one sample; built-in tasks have none such."""
    task = opened(tmp_path, "integer", 3)
    many = Task(task.name, task.path, task.spec.model_copy(update={"samples": 20}))
    (said,) = proof.repetitions(many)
    assert "only 1 different" in said
    assert list(proof.repetitions(task)) == []


@pytest.mark.parametrize(("name", "path"), built_in_files().items())
def test_samples_of_built_in_tasks_are_different_prompts(name: str, path: Path) -> None:
    """So that an interval over them says what it says."""
    assert list(proof.repetitions(open_task(name, path))) == []


Ready: TypeAlias = tuple[str, str, list[str]]


def ready(folder: Path, *answers: Ready) -> tuple[list[str], list[str]]:
    """What is said of ready items: the problems, and the warnings. Each of the `answers` is one
    item, a country, its target and `accept`; an empty line follows each in the file.
    """
    folder = folder / str(len(list(folder.iterdir())))  # an items file is read once
    folder.mkdir()
    (folder / "capitals.yaml").write_text(
        "version: 1\ntitle: Capitals\nitems: c.jsonl\n"
        "prompt: 'What is the capital of {{ country }}? Say \"{{ phrase }}\" and its name.'\n"
        "answer: text\n"
    )
    items = (
        {"variables": {"country": one}, "target": target, "accept": accept, "length": 1}
        for one, target, accept in answers
    )
    (folder / "c.jsonl").write_text("\n\n".join(map(json.dumps, items)))
    task = open_task("mine/capitals", folder / "capitals.yaml")
    problems, warned = (
        [one.removeprefix(f"{folder}/") for one in found]
        for found in (proof.repetitions(task), warnings(task))
    )
    return problems, warned


def test_ready_items_that_ask_the_same_are_named_by_their_lines(tmp_path: Path) -> None:
    """Contradictions are always mistakes, and repeated items where they are many."""
    peru: Ready = ("Peru", "Lima", [])
    chile: Ready = ("Chile", "Santiago", [])
    said = (
        "c.jsonl:5:1: the same prompt as in line 1, where the target is 'Lima' and not 'Quito'; "
        "keep one, or give the other as 'accept'"
    )
    assert ready(tmp_path, peru, chile, ("Peru", "Quito", [])) == ([said], [])
    said = "c.jsonl:5:1: the same prompt as in line 1, and the same right answer; leave one out"
    assert ready(tmp_path, peru, chile, peru) == ([said], [])
    others: list[Ready] = [(f"land {number}", f"town {number}", []) for number in range(20)]
    assert ready(tmp_path, peru, chile, peru, *others) == ([], [said])
    both: list[Ready] = [("Peru", "Lima", ["Quito"]), ("Peru", "Quito", ["Lima"]), *others]
    problems, warned = ready(tmp_path, *both)
    assert (problems, len(warned)) == ([], 1)
    half: list[Ready] = [("Peru", "Lima", ["Quito"]), ("Peru", "Quito", []), *others]
    assert len(ready(tmp_path, *half)[0]) == 1
    problems, _ = ready(tmp_path, *[peru] * 9)
    assert len(problems) == 5
    assert problems[-1].endswith("leave one out (and 3 more such lines)")


def outcome(task: Task, sample: Sample, reply: str) -> str:
    """What the judge says of a reply."""
    return judge(
        text=reply,
        finish_reason="stop",
        refusal=None,
        failure=None,
        target=sample.target,
        answer=task.spec.answer,
        accept=sample.accept,
    ).outcome


def check_known(task: Task) -> None:
    """What the built-in model `oracle` knows of the samples of a task is so."""
    known = knower([task])
    for sample in plan(task, samples=3):
        of_sample = known(sample.id)
        assert of_sample.length == sample.length
        assert outcome(task, sample, of_sample.right) == "correct"
        assert outcome(task, sample, of_sample.wrong) == "incorrect", of_sample
        assert known(sample.id) == of_sample


@pytest.mark.parametrize(("name", "path"), built_in_files().items())
def test_an_oracle_knows_each_built_in_task(name: str, path: Path) -> None:
    """Its right replies are right and its wrong ones are read and wrong."""
    check_known(open_task(name, path))


@pytest.mark.parametrize(("answer", "target"), TARGETS)
def test_an_oracle_knows_a_users_task(
    answer: str, target: float | str | list[str], tmp_path: Path
) -> None:
    """Of every type of answer."""
    check_known(opened(tmp_path, answer, target))


def test_an_oracle_that_miscounts_is_off_by_one_and_never_below_none(tmp_path: Path) -> None:
    """A count of -1 would be no mistake that a model makes."""
    task = opened(tmp_path, "integer", 0)
    assert {knower([task])(sample.id).wrong for sample in plan(task)} == {"Final answer: 1"}


def test_options_that_are_signs_come_with_a_remedy(tmp_path: Path) -> None:
    """They look like marks of a list or of a quotation."""
    items = [{"variables": {"a": 3, "b": 2}, "target": ">", "length": 1}]
    (tmp_path / "signs.jsonl").write_text("\n".join(map(json.dumps, items)))
    file = tmp_path / "signs.yaml"
    lines = (
        *("version: 1", "title: Signs", "items: signs.jsonl", "prompt: |"),
        *("  Which sign belongs between {{ a }} and {{ b }}?", "  Write {{ phrase }} and then it."),
        'answer: {type: choice, options: ["<", ">"]}',
    )
    file.write_text("\n".join(lines) + "\n")
    *found, remedy = proof.failure_lines(open_task("x/signs", file))
    assert found
    assert remedy.endswith("as signs alone; write words in their place")
