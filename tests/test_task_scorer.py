"""A task's own scorer: what it is given, what it may return, and what is said of its mistakes."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from eyechart.harness.analysis.samples.details import read_details
from eyechart.harness.analysis.samples.judged_run import read_run
from eyechart.harness.errors import JournalError, TaskError, UsageError
from eyechart.harness.plan import proof
from eyechart.harness.plan.plan import plan
from eyechart.harness.satellites.export.lm_eval.writer import export
from eyechart.harness.score.judge import judge
from eyechart.harness.score.outcomes import OUTCOMES, Outcome
from eyechart.harness.score.verdict import Verdict
from eyechart.harness.settings.judging import JudgeSettings
from eyechart.harness.spec import Item, TaskSpec
from eyechart.harness.task import scorer
from eyechart.harness.task.catalogue import Task, open_task, tasks_root
from eyechart.harness.task.generator import load_items
from eyechart.harness.task.scorer import load_scorer

if TYPE_CHECKING:
    from tests.conftest import Lab

TASK = """\
version: 1
title: Near
items: near.jsonl
scorer: near.py:score
prompt: |
  Which number is near {{ n }}? End with "{{ phrase }}" and it.
answer: number
"""
ITEMS = """\
{"variables": {"n": 3}, "target": 3, "length": 1}
{"variables": {"n": 7}, "target": 7, "length": 1}
"""
SCORER = """\
from eyechart import Item, ScorerResult


def score(reply: str, item: Item) -> ScorerResult:
    if "answer" not in reply.lower():
        return "unparsed", "no  answer\\nin it"
    return "correct" if str(item.target) in reply else "incorrect"
"""


def opened(folder: Path, scorer: str = SCORER) -> Task:
    (folder / "near.yaml").write_text(TASK)
    (folder / "near.jsonl").write_text(ITEMS)
    (folder / "near.py").write_text(scorer)
    return open_task("x/near", folder / "near.yaml")


def judged(task: Task, text: str, finish: str = "stop") -> Verdict:
    """The verdict on a reply where 3 is the target."""
    own = task.scorer
    assert own is not None
    return judge(
        text=text,
        finish_reason=finish,
        refusal=None,
        failure=None,
        target=3.0,
        answer=task.spec.answer,
        scorer=lambda reply: own(reply, Item((), 3.0)),
    )


def test_a_scorer_judges_whole_replies(tmp_path: Path) -> None:
    """Without their thinking; what is no reply is decided before."""
    task = opened(tmp_path)
    assert judged(task, "My answer: 3.0!") == Verdict(Outcome.CORRECT)
    assert judged(task, "My answer: 4") == Verdict(Outcome.INCORRECT)
    assert judged(task, "<think>3.0</think>My answer: 4") == Verdict(Outcome.INCORRECT)
    assert judged(task, "Hm.") == Verdict(Outcome.UNPARSED, why="no answer in it")
    assert judged(task, " ") == Verdict(Outcome.UNPARSED, why="no text")
    assert judged(task, "<think>3.0") == Verdict(Outcome.UNPARSED, why="nothing but thinking")
    assert judged(task, "My answer: 3.0", "length").outcome == "truncated"
    assert judged(task, "I'm sorry, but I can't help with that.").outcome == "refused"
    assert list(proof.failures(task)) == []


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        ("'right'", "near.py:score returned 'right'; return 'correct'"),
        ("True", "near.py:score returned True; return"),
        ("None", "near.py:score returned None; return"),
        ("('correct', 1)", "returned ('correct', 1); return"),
        ("('refused', '')", "returned ('refused', ''); return"),
        ("1 / 0", "raised ZeroDivisionError: division by zero (line 2) for the target 3.0"),
        ("exit()", "raised SystemExit"),
    ],
)
def test_mistakes_of_a_scorer_are_one_line(returned: str, message: str, lab: Lab) -> None:
    """Which scorer, and what it did."""
    task = opened(lab.folder, f"def score(reply, item):\n    return {returned}\n")
    with pytest.raises(TaskError) as error:
        judged(task, "Answer: 3")
    assert message in str(error.value)
    done = lab.bench("tasks", "check", lab.folder / "near.yaml")
    assert (done.code, len(done.err.splitlines())) == (2, 1)


@pytest.mark.parametrize(
    ("scorer", "message"),
    [
        ("def scor(reply, item): ...", "no function 'score' in 'near.py'; it has scor"),
        ("def score(reply, target): ...", "near.py:score must take (reply, item) and nothing else"),
        (
            "def score(reply, item, more): ...",
            "near.py:score must take (reply, item) and nothing",
        ),
        ("score = 5", "'score' in 'near.py' is no function, its type is int"),
        ("import nothing_such", "importing near.py raised ModuleNotFoundError"),
    ],
)
def test_a_scorer_that_cannot_be_loaded(scorer: str, message: str, lab: Lab) -> None:
    """The task file is wrong at the scorer's line."""
    (lab.folder / "near.yaml").write_text(TASK)
    (lab.folder / "near.jsonl").write_text(ITEMS)
    (lab.folder / "near.py").write_text(scorer)
    done = lab.bench("tasks", "check", lab.folder / "near.yaml")
    assert done.code == 2
    assert f"near.yaml:4:9: {message}" in done.err


def test_a_run_is_judged_by_its_scorer(lab: Lab) -> None:
    """Also later, as long as the scorer is there; else one line says what is missing."""
    opened(lab.folder)
    file, out = lab.folder / "near.yaml", lab.folder / "results"
    assert lab.bench_ask("--task", file, "--model", "tiny", "--out", out).code == 0
    (folder,) = (out / "runs" / "tiny").glob("*/near@1-*")
    usual = read_run(folder).samples["outcome"].map(OUTCOMES.__getitem__)
    assert set(usual) <= {"correct", "incorrect"}
    (lab.folder / "moved").mkdir()
    for name in ("near.py", "near.yaml", "near.jsonl"):
        (lab.folder / name).rename(lab.folder / "moved" / name)
    load_scorer.cache_clear()
    with pytest.raises(JournalError, match=r"has a scorer of its own, and scorer file 'near.py'"):
        read_run(folder)
    done = lab.bench("score", folder)
    assert (done.code, len(done.err.splitlines())) == (1, 1)
    assert "name the task file with --task" in done.err
    assert lab.bench("score", folder, "--task", lab.folder / "moved").code == 0


@pytest.mark.parametrize(
    "place", ["in the run", "beside the run", "by a link", "anywhere", "built in"]
)
def test_a_scorer_that_came_with_a_run_is_not_executed(place: str, lab: Lab) -> None:
    """A manifest may name a file of a stranger; only `--task` makes that be executed."""
    opened(lab.folder)
    out = lab.folder / "results"
    done = lab.bench("run", "--task", lab.folder / "near.yaml", "--model", "tiny", "--out", out)
    assert done.code == 0
    (folder,) = (out / "runs" / "tiny").glob("*/near@1-*")
    manifest = json.loads((folder / "manifest.json").read_text())
    home = folder.parent if place == "beside the run" else folder
    if place in ("by a link", "anywhere"):
        home = lab.folder / "unpacked"
        home.mkdir()
        (lab.folder / "link").symlink_to(home)
    for name in ("near.yaml", "near.jsonl"):
        shutil.copy(lab.folder / name, home)
    executed = lab.folder / "executed"
    (home / "near.py").write_text(f"open({str(executed)!r}, 'w').close()\n{SCORER}")
    named = lab.folder / "link" if place == "by a link" else home
    manifest["file"] = "" if place == "built in" else str(named / "near.yaml")
    if place == "built in":
        manifest["task"] = "counting/ones"
        beside = os.path.relpath(home / "near.py", tasks_root() / "counting")
        manifest["spec"]["scorer"] = f"{beside}:score"
        spec = TaskSpec.model_validate(manifest["spec"])
        manifest |= {"run": "", "task_digest": spec.digest_as_written()}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    done = lab.bench("score", folder)
    assert (done.code, len(done.err.splitlines())) == (1, 1)
    assert "has a scorer of its own, and" in done.err
    others = ("compare", folder, folder), ("samples", folder), ("report", folder)
    of_out = ("leaderboard", folder, "--out", out)
    for command in (*others, of_out, ("export", "every-eval-ever", folder)):
        assert "has a scorer of its own, and" in lab.bench(*command).err
    assert not executed.exists()
    if place != "built in":
        judged = lab.bench("score", folder, "--task", home / "near.yaml")
        assert (judged.code, executed.exists()) == (0, True)


def test_a_scorer_that_a_run_names_is_executed_where_asked(lab: Lab) -> None:
    """By another process than the one that ran the task: with `--run-kept-code`."""
    opened(lab.folder)
    out = lab.folder / "results"
    done = lab.bench("run", "--task", lab.folder / "near.yaml", "--model", "tiny", "--out", out)
    assert done.code == 0
    (folder,) = (out / "runs" / "tiny").glob("*/near@1-*")
    lab.monkeypatch.setattr(scorer, "_loaded", set())
    for command in (("score", folder), ("score", folder, "--json"), ("samples", folder)):
        done = lab.bench(*command)
        assert done.code == 1
        assert "is named only by the run; name the task file with --task, or" in done.err
        assert lab.bench(*command, "--run-kept-code").code == 0
        lab.monkeypatch.setattr(scorer, "_loaded", set())


def test_a_scorer_gets_what_its_item_has(lab: Lab) -> None:
    """In the check of the task, in a run, and when the run is judged again; nothing of an item
    that is no longer the one that was asked.
    """
    code = (
        "def score(reply, item):\n"
        "    return 'incorrect', f'{item.variables.get(\"n\")} {item.metadata.get(\"of\")}'\n"
    )
    opened(lab.folder, code)
    items = ITEMS.replace('"length": 1', '"length": 1, "metadata": {"of": "primes"}')
    (lab.folder / "near.jsonl").write_text(items)
    assert lab.bench("tasks", "check", lab.folder / "near.yaml").code == 0
    out = lab.folder / "results"
    done = lab.bench("run", "--task", lab.folder / "near.yaml", "--model", "tiny", "--out", out)
    assert done.code == 0
    (folder,) = (out / "runs" / "tiny").glob("*/near@1-*")
    whys = {one.verdict.why for one in read_details(read_run(folder))}
    assert whys == {"3 primes", "7 primes"}
    (lab.folder / "near.jsonl").write_text(items.replace('"n": 3', '"n": 2'))
    load_items.cache_clear()
    own = JudgeSettings(tasks=str(lab.folder / "near.yaml"))
    whys = {one.verdict.why for one in read_details(read_run(folder, settings=own))}
    assert whys == {"None None", "7 primes"}


def test_lm_eval_cannot_run_a_scorer(tmp_path: Path) -> None:
    """It is refused before anything is written."""
    task = opened(tmp_path)
    with pytest.raises(UsageError, match="'x/near' has a scorer of its own, which lm-eval cannot"):
        export([plan(task)], tmp_path / "out", api="chat")
    assert not (tmp_path / "out").exists()
