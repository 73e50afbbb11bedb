"""`bench tasks new`: a task that can be checked and run at once, and no file that is replaced."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from eyechart.harness.plan.plan import plan
from eyechart.harness.task.catalogue import open_task

if TYPE_CHECKING:
    from tests.conftest import Lab

DRAW = """\
from eyechart import Item


def draw(rng, length):
    row = [rng.choice("01") for _ in range(length)]
    return Item(row, row.count("1"))


def marked(rng, length, *, mark):
    return Item([mark] * length, length)
"""


@pytest.fixture
def here(lab: Lab) -> Path:
    """The empty folder that commands run in."""
    folder = lab.folder / "mine"
    folder.mkdir()
    lab.monkeypatch.chdir(folder)
    return folder


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_the_task_is_sound_and_runs(lab: Lab, here: Path) -> None:
    """The commands that are printed next do what they say, without a change of the files."""
    done = lab.bench("tasks", "new", "marks")
    assert (done.code, done.err) == (0, "")
    first, *nexts = [line for line in done.out.splitlines() if line.startswith("next: ")]
    assert done.out.splitlines()[:2] == ["marks.yaml", "marks.py"]
    assert names(here) == {"marks.yaml", "marks.py"}
    checked = lab.bench(*first.removeprefix("next: bench ").split())
    assert (checked.code, checked.err) == (0, "")
    assert checked.out.startswith("mine/marks: sound (8 cells")
    (run,) = nexts
    ran = lab.bench(*run.removeprefix("next: bench ").split(), "--lengths", "5,10")
    assert ran.code == 0
    assert "mine/marks  tiny" in ran.out
    assert "right to" in ran.out


def test_its_rows_are_nested_under_every_condition(lab: Lab, here: Path) -> None:
    """A longer row of one index begins with the shorter one, and has the same label."""
    lab.bench("tasks", "new", "marks")
    planned = plan(open_task("mine/marks", here / "marks.yaml"), exact=True, samples=3)
    assert len(planned.conditions) == 2
    for condition in planned.conditions:
        for index in range(3):
            rows = [
                planned.sample(condition, line, index).prompt.splitlines()[-1]
                for line in planned.lines
            ]
            assert len(rows) == 4
            assert all(long.startswith(short) for short, long in pairwise(rows))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("", ("''", "such as my_task")),
        ("../x", ("'../x'", "lower case letters")),
        ("/tmp/x", ("'/tmp/x'", "lower case letters")),  # noqa: S108  nothing is written
        ("my task", ("'my task'", "lower case letters")),
        ("a\nb", (r"'a\nb'", "lower case letters")),
        ("a\x00", (r"'a\x00'", "lower case letters")),
        ("\udcff", ("udcff", "lower case letters")),
        ("counting/ones", ("'counting/ones'", "lower case letters")),
        ("x" * 5000, ("…", "at most 40 characters")),
        ("counting", ("'counting'", "a group of tasks", "another name")),
        ("bernoulli", ("'bernoulli'", "counting/bernoulli", "another name")),
        (".yaml", ("'.yaml'", "lower case letters")),
    ],
)
def test_a_name_that_no_task_can_have(lab: Lab, here: Path, name: str, words: object) -> None:
    """One line that is short, and nothing is written anywhere."""
    assert isinstance(words, tuple)
    assert len(lab.bench("tasks", "new", name).one_line(2, *words)) < 300
    assert names(here) == set()


@pytest.mark.parametrize("there", ["marks.yaml", "marks.yml", "marks.py"])
def test_a_file_that_is_there_stays(lab: Lab, here: Path, there: str) -> None:
    """Also a link that leads nowhere."""
    (here / there).write_text("mine", encoding="utf-8")
    lab.bench("tasks", "new", "marks.yaml").one_line(2, repr(there), "nothing was written")
    assert names(here) == {there}
    assert (here / there).read_text(encoding="utf-8") == "mine"
    (here / there).unlink()
    (here / there).symlink_to(here / "nowhere")
    lab.bench("tasks", "new", "marks").one_line(2, repr(there))
    assert names(here) == {there}


def test_a_generator_that_is_there_is_used(lab: Lab, here: Path) -> None:
    """And its file is the only one beside the new one; a name that YAML would misread is quoted."""
    for file in ("rows.py", "a #b.py"):
        (here / file).write_text(DRAW, encoding="utf-8")
    for name, reference in (("marks", "rows.py:draw"), ("hashed", "a #b.py:draw")):
        done = lab.bench("tasks", "new", name, "--generator", reference, "--json")
        assert done.code == 0
        assert json.loads(done.out)["files"] == [f"{name}.yaml"]
        assert lab.bench("tasks", "check", f"{name}.yaml").code == 0
        assert open_task("x", here / f"{name}.yaml").spec.generator == reference


def test_a_generator_that_needs_more_is_told(lab: Lab, here: Path) -> None:
    """The task is there to be completed: the message has the place in it."""
    (here / "rows.py").write_text(DRAW, encoding="utf-8")
    done = lab.bench("tasks", "new", "marks", "--generator", "rows.py:marked")
    assert done.code == 2
    first, second = done.lines
    assert "marks.yaml is written" in first
    assert f"{here / 'marks.yaml'}:3:" in second
    assert "'mark'" in second


@pytest.mark.parametrize(
    ("reference", "words"),
    [
        ("rows.py:none", ("'none'", "it has draw, marked")),
        ("none.py:draw", ("'none.py'", "is not there")),
        ("rows.py", ("FILE.py:FUNCTION", "'rows.py'")),
    ],
)
def test_a_generator_that_is_not_there(
    lab: Lab, here: Path, reference: str, words: tuple[str, ...]
) -> None:
    """One line, and nothing is written."""
    (here / "rows.py").write_text(DRAW, encoding="utf-8")
    lab.bench("tasks", "new", "marks", "--generator", reference).one_line(2, *words)
    assert names(here) == {"rows.py"}


def test_a_file_that_cannot_be_written_leaves_nothing(lab: Lab, here: Path) -> None:
    """The disk is full at the second file, and the first one goes again."""
    opened = Path.open

    def full(path: Path, *arguments: object, **named: object) -> object:
        if path.name == "marks.py":
            raise OSError(28, "No space left on device", str(path))
        return opened(path, *arguments, **named)  # type: ignore[call-overload]

    lab.monkeypatch.setattr(Path, "open", full)
    lab.bench("tasks", "new", "marks").one_line(1, "No space left on device")
    assert names(here) == set()
