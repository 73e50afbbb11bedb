"""Groups of tasks that other packages add: they do what built-in tasks do."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import eyechart
from eyechart.harness.cli.parsing.completion import complete_tasks
from eyechart.harness.errors import AbsentTaskError, UnknownTaskError
from eyechart.harness.task.catalogue import find, installed_file, open_task, plugin_tasks, reopen
from eyechart.harness.task.scorer import _loaded, load_scorer
from eyechart.providers.plugins import plugins
from eyechart.providers.plugins.plugins import TASKS
from tests.conftest import ONES, ROWS
from tests.plugged import plug, plug_example

if TYPE_CHECKING:
    from tests.conftest import Lab

FILES = {"acme/__init__.py": "", "acme/deep/ones.yaml": ONES, "acme/deep/rows.py": ROWS}
OWN_SCORER = """\
def score(reply, item):
    return "correct" if reply.strip() == str(item.target) else "incorrect"
"""


@pytest.fixture
def brackets(lab: Lab, site: Path) -> Lab:
    """A lab with the example package installed."""
    lab.monkeypatch.setattr(sys, "path", plug_example("eyechart-brackets", site))
    lab.monkeypatch.chdir(lab.folder)
    return lab


def test_the_verbs_take_its_tasks(brackets: Lab) -> None:
    """By name and by group, as built-in ones."""
    done = brackets.bench("tasks")
    assert (done.code, done.err) == (0, "")
    title, *rows = done.out.splitlines()
    assert "from" in title
    assert "built in" in rows[0]
    assert "eyechart-brackets 0.1.0" in rows[-1]
    tasks = json.loads(brackets.bench("tasks", "--json").out)["tasks"]
    assert {task["task"]: task["from"] for task in tasks}["brackets/open"] == (
        "eyechart-brackets 0.1.0"
    )
    (shown,) = json.loads(brackets.bench("tasks", "show", "brackets", "--json").out)["tasks"]
    assert (shown["task"], shown["from"]) == ("brackets/open", "eyechart-brackets 0.1.0")
    sample = shown["prompts"][0]
    again = brackets.bench("tasks", "sample", sample["id"], "--json").out
    assert json.loads(again) == sample
    done = brackets.bench("tasks", "check", "brackets/open")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("brackets/open: sound")
    brackets.bench("tasks", "show", "brackets/opne").one_line(2, "did you mean 'brackets/open'?")
    assert {"brackets", "brackets/open"} <= set(complete_tasks(None, "brack"))
    assert brackets.bench("export", "lm-eval", "-t", "brackets", "-o", "exported").code == 0
    assert list((brackets.folder / "exported").rglob("*brackets_open*"))


def test_a_run_of_it_is_read_again(brackets: Lab) -> None:
    """The manifest has its version and no path; without the package it is judged all the same."""
    run = eyechart.run("brackets", "oracle:12", samples=2, out=brackets.out, lengths=[5, 20])
    manifest = json.loads((run.folder / "manifest.json").read_text())
    assert manifest["software"]["eyechart-brackets"] == "0.1.0"
    assert manifest.get("file", "") == ""
    task = eyechart.load_task("brackets/open")
    assert (str(task.plugin), task.is_installed) == ("eyechart-brackets 0.1.0", True)
    assert "Each " in brackets.bench("samples", run.folder, "--limit", "1").out
    before = brackets.bench("score", run.folder).out
    brackets.monkeypatch.setattr(sys, "path", sys.path[:-2])
    assert brackets.bench("score", run.folder).out == before
    assert "prompts are not shown" in brackets.bench("samples", run.folder, "--limit", "1").err


def test_a_scorer_of_its_own(brackets: Lab, site: Path) -> None:
    """Judges again without --task, as that of a built-in task does."""
    text = ONES.replace("answer: integer", "answer: integer\nscorer: score.py:score")
    files = {**FILES, "acme/deep/ones.yaml": text, "acme/deep/score.py": OWN_SCORER}
    plug(site, "acme-tasks", {TASKS: {"acme": "acme.deep"}}, files=files)
    run = eyechart.run("acme/ones", brackets.model("2"), samples=8, out=brackets.out)
    load_scorer.cache_clear()
    _loaded.clear()  # as in another process
    done = brackets.bench("score", run.folder)
    assert (done.code, done.err) == (0, "")
    assert 0 < run.cells["correct"].sum() < run.cells["n"].sum()


@pytest.mark.parametrize(
    ("value", "files", "said"),
    [
        ("no_such_package", {}, "there is no package 'no_such_package'"),
        ("no_such_package.tasks", {}, "importing it raised ModuleNotFoundError"),
        ("acme.deep:tasks", FILES, "it should name a package"),
        ("single", {"single.py": ""}, "'single' is no package in a folder"),
        ("hollow", {"hollow/__init__.py": ""}, "the folder of 'hollow' has no task file"),
        ("angry.x", {"angry/__init__.py": "1 / 0"}, "importing it raised ZeroDivisionError"),
    ],
)
def test_one_that_cannot_be_used(
    lab: Lab, site: Path, value: str, files: dict[str, str], said: str
) -> None:
    """Is named in one line by the verbs that need it; all others go on."""
    plug(site, "acme-tasks", {TASKS: {"mine": value}}, files=files)
    place = f"acme-tasks 1.0, entry point 'mine = {value}' of eyechart.tasks: {said}"
    lab.bench_run("--task", "mine/ones").one_line(2, place)
    listed = lab.bench("tasks")
    assert "counting/ones" in listed.out
    assert len(listed.err.splitlines()) == 1
    assert place in listed.err
    with pytest.raises(AbsentTaskError, match="name it with tasks"):
        reopen("mine/ones", "")
    lab.monkeypatch.chdir(lab.folder)
    (lab.folder / "mine").mkdir()
    lab.plain.rename(lab.folder / "mine" / "plain.yaml")
    assert list(find("mine")) == ["mine/plain"]


def test_a_file_with_a_mistake(lab: Lab, site: Path) -> None:
    """Is named with its package, and the others are listed."""
    files = FILES | {"acme/deep/wrong.yaml": "version: 1\n"}
    plug(site, "acme-tasks", {TASKS: {"acme": "acme.deep"}}, files=files)
    done = lab.bench("tasks", "--json")
    assert [task["task"] for task in json.loads(done.out)["tasks"]][-1] == "acme/ones"
    assert "acme-tasks 1.0: " in done.err
    assert "wrong.yaml:1:1" in done.err


def test_a_name_that_is_taken(lab: Lab, site: Path) -> None:
    """The built-in group is used; of two plugins with one group neither is."""
    plug(site, "acme-tasks", {TASKS: {"counting": "acme.deep", "twice": "acme.deep"}}, files=FILES)
    plug(site, "other", {TASKS: {"twice": "acme.deep"}})
    assert "counting/bernoulli" in find("counting")
    built_in, twice = lab.bench("tasks").err.splitlines()
    assert "'counting' is built in, and that one is used" in built_in
    assert "acme-tasks 1.0, entry point 'twice = acme.deep'" in twice
    assert "other 1.0 has the same name, so neither is used" in twice
    with pytest.raises(UnknownTaskError, match="has the same name"):
        find("twice/ones")
    with pytest.raises(UnknownTaskError, match="unknown task 'counting/deep'"):
        find("counting/deep")


def test_the_user_s_own_file_of_that_name(lab: Lab, site: Path) -> None:
    """Is named by its path, and its run says so."""
    plug(site, "acme-tasks", {TASKS: {"lab": "acme.deep"}}, files=FILES)
    added = installed_file("lab/ones")
    assert added == plugin_tasks().files["lab/ones"]
    assert added != lab.ones
    assert not open_task("lab/ones", lab.ones).is_installed
    lab.monkeypatch.chdir(lab.folder)
    assert find("lab") == {"lab/ones": added}
    assert set(find("./lab")) == {"lab/ones", "lab/plain", "lab/echo"}
    with pytest.raises(UnknownTaskError, match="two different files"):
        find("lab,./lab")


def test_built_in_names_read_no_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does a path that no entry point can have as its name."""
    monkeypatch.setattr(plugins, "_read", lambda *_: pytest.fail("read"))
    assert len(find("counting,copying/first_last")) > 2
    assert eyechart.load_task("counting/ones").is_installed
    with pytest.raises(UnknownTaskError, match="no file"):
        find("./mine.yaml")
    with pytest.raises(pytest.fail.Exception):
        find("other")
