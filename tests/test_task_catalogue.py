"""Task files are found by name, group, path and folder, and opened the same way everywhere."""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING

import pytest

from eyechart.harness.errors import TaskError, TaskFileError, UnknownTaskError
from eyechart.harness.plan.plan import plan
from eyechart.harness.spec import Condition, Line
from eyechart.harness.task.catalogue import built_in_files, find, open_task, tasks_root
from tests.conftest import PLAIN, ROWS

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Lab

READY = """\
version: 2
title: Ready rows
items: rows.jsonl
axes:
  tone:
    default: [plain]
    values: {plain: "", kind: "Please. "}
prompt: |
  {{ tone }}How many ones are in {{ name }}: {{ sequence }}?
  Write "{{ phrase }}" and the number.
answer: integer
"""
ITEMS = """\
{"variables": {"symbols": ["1", "1"], "name": "a"}, "target": 2, "length": 2}
{"variables": {"symbols": ["1", "0"], "name": "b"}, "target": 1, "length": 2}

{"variables": {"symbols": ["1", "0", "1"], "name": "c"}, "target": 2, "length": 3}
"""


def test_the_built_in_tasks_are_named_by_their_paths() -> None:
    """A task's name is its file's path under the tasks folder, and names come sorted."""
    files = built_in_files()
    assert list(files) == sorted(files)
    assert {name.partition("/")[0] for name in files} >= {"copying", "counting", "separators"}
    for name, path in files.items():
        assert path == tasks_root().resolve() / f"{name}.yaml"


@pytest.mark.parametrize("name", built_in_files())
def test_each_built_in_task_opens(name: str) -> None:
    """Every built-in file is sound, its generator tried at every length."""
    (found,) = find(name).items()
    assert open_task(*found).name == name


def test_a_group_is_its_tasks() -> None:
    """A folder's name stands for every task in it; a list stands for all it names, once each."""
    counting = [name for name in built_in_files() if name.startswith("counting/")]
    assert list(find("counting")) == counting
    assert list(find("counting/ones, counting")) == [
        "counting/ones",
        *sorted({*counting} - {"counting/ones"}),
    ]
    assert list(find(" counting/sum ,, copying/first_last,")) == [
        "counting/sum",
        "copying/first_last",
    ]


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("countng", "unknown task 'countng'; did you mean 'counting'?"),
        ("counting/one", "unknown task 'counting/one'; did you mean 'counting/ones'?"),
        ("ones", "unknown task 'ones'; did you mean 'counting/ones'?"),
        ("bernouli", "unknown task 'bernouli'; did you mean 'counting/bernoulli'?"),
        ("first-last", "unknown task 'first-last'; did you mean 'copying/first_last'?"),
        ("Counting", "unknown task 'Counting'; did you mean 'counting'?"),
        ("COUNTING/ONES", "unknown task 'COUNTING/ONES'; did you mean 'counting/ones'?"),
        ("zzzzzz", "unknown task 'zzzzzz'; 'bench tasks' lists them"),
        ("counting,zzzzzz", "unknown task 'zzzzzz'; 'bench tasks' lists them"),
        ("", "no task named; 'bench tasks' lists them"),
        (" , ", "no task named; 'bench tasks' lists them"),
        ("my_task.yaml", "no file 'my_task.yaml'"),
        ("no/such.yml", "no file 'no/such.yml'"),
        ("x" * 300, "unknown task 'xxx"),
        (f"{'x' * 300}.yaml", "no file 'xxx"),
        ("./no_such_folder", "no folder './no_such_folder'"),
    ],
)
def test_what_is_not_there_is_said_with_a_remedy(
    asked: str, words: str, lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An unknown task is one line with a suggestion and exit code 2."""
    monkeypatch.chdir(lab.folder)
    with pytest.raises(UnknownTaskError) as caught:
        find(asked)
    assert words in str(caught.value)
    lab.bench("tasks", "check", asked).one_line(2, words)
    lab.bench("run", "--task", asked, "--model", lab.model()).one_line(2, words)


def test_a_file_named_without_its_ending_is_suggested(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before a built-in task with a name that is alike."""
    monkeypatch.chdir(lab.ones.parent)
    with pytest.raises(UnknownTaskError, match=r"did you mean the file 'ones\.yaml'\?"):
        find("ones")


def test_a_users_file_is_named_by_its_folder_and_stem(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same task has the same name, however its file or folder is asked for."""
    monkeypatch.chdir(lab.folder)
    for asked in (lab.ones, "lab/ones.yaml", "./lab/../lab/ones.yaml"):
        assert find(str(asked)) == {"lab/ones": lab.ones}
    assert find("lab") == find(str(lab.ones.parent)) == find("lab/")
    assert find("lab") == {
        f"lab/{name}": lab.folder / f"lab/{name}.yaml" for name in ("echo", "ones", "plain")
    }
    monkeypatch.chdir(lab.ones.parent)
    assert find("ones.yaml") == {"lab/ones": lab.ones}
    assert find(".")["lab/ones"] == lab.ones
    assert list(find("../lab/plain.yaml,counting/ones")) == ["lab/plain", "counting/ones"]


def test_a_folder_may_have_folders(lab: Lab) -> None:
    """Task files are found at every depth, with either suffix, and what is none is passed over."""
    inner = lab.folder / "mine" / "deep"
    inner.mkdir(parents=True)
    (lab.folder / "mine" / "a.yml").write_text("")
    (lab.folder / "mine" / "notes.txt").write_text("")
    (inner / "b.yaml").write_text("")
    assert list(find(str(lab.folder / "mine"))) == ["mine/a", "mine/deep/b"]


def test_a_folder_called_like_a_file_is_no_task(tmp_path: Path) -> None:
    """Only files are task files."""
    (tmp_path / "old.yaml").mkdir()
    (tmp_path / "a.yaml").write_text("")
    assert list(find(str(tmp_path))) == [f"{tmp_path.name}/a"]


def test_a_folder_without_task_files_is_said(lab: Lab) -> None:
    """A folder with no YAML in it is one line and exit code 2."""
    empty = lab.folder / "empty"
    empty.mkdir()
    (empty / "rows.py").write_text("")
    lab.bench("tasks", "check", empty).one_line(2, f"no task file (*.yaml) in folder '{empty}'")


def test_a_link_to_a_file_elsewhere_is_a_task(lab: Lab) -> None:
    """A folder may collect task files by links."""
    collected = lab.folder / "deep" / "collected"
    collected.mkdir(parents=True)
    (collected / "mine.yaml").symlink_to(lab.ones)
    ((name, path),) = find(str(collected)).items()
    assert name == "collected/mine"
    assert path.samefile(lab.ones)
    assert open_task(name, path).spec.title == "Ones"


@pytest.mark.parametrize("content", [b"\x89PNG\r\n\x1a\n\0", b"import os\nprint(os)\n", b"{}"])
def test_a_file_that_is_no_task_is_said(lab: Lab, content: bytes) -> None:
    """Whatever file is asked for, what is wrong with it comes with a place, and exit code 2."""
    path = lab.folder / "picture.png"
    path.write_bytes(content)
    done = lab.bench("run", "--task", path, "--model", lab.model())
    assert (done.code, done.out) == (2, "")
    assert f"{path}:1:1: " in done.err


def test_two_files_of_one_name_are_not_run_together(lab: Lab) -> None:
    """A command with two different tasks of one name is refused; the same file twice is not."""
    other = lab.folder / "other" / "lab"
    other.mkdir(parents=True)
    (other / "ones.yaml").write_text(lab.ones.read_text())
    asked = f"{lab.ones},{other / 'ones.yaml'}"
    with pytest.raises(UnknownTaskError, match="two different files have the name 'lab/ones'"):
        find(asked)
    lab.bench("tasks", "check", asked).one_line(2, str(lab.ones), str(other / "ones.yaml"))
    assert list(find(f"{lab.ones},{lab.ones}")) == ["lab/ones"]


def test_a_generator_is_found_beside_its_task_file(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The generator's path is relative to the task file, not to where the command runs."""
    inner = lab.folder / "mine" / "deep"
    inner.mkdir(parents=True)
    for reference in ("../../lab/rows.py:ones", f"{lab.folder}/lab/rows.py:ones"):
        path = inner / f"{len(reference)}.yaml"
        path.write_text(lab.ones.read_text().replace("rows.py:ones", reference))
        monkeypatch.chdir("/")
        task = open_task("deep/x", path)
        assert len(task.draw(random.Random(0), Condition({"separator": "none"}), 4, 0).symbols) == 4


def test_two_generator_files_of_one_name_are_two(lab: Lab) -> None:
    """A module is known by its path: another folder's rows.py is another."""
    for name, symbol in (("a", "x"), ("b", "y")):
        folder = lab.folder / name
        folder.mkdir()
        (folder / "ones.yaml").write_text(lab.plain.read_text())
        (folder / "rows.py").write_text(
            "from eyechart.harness.spec import Item\n\n\n"
            f"def ones(rng, length):\n    return Item(['{symbol}'] * length, length)\n"
        )
        task = open_task(f"{name}/ones", folder / "ones.yaml")
        assert symbol * 4 in next(iter(plan(task))).prompt
    assert not list(lab.folder.rglob("__pycache__"))


def test_an_items_file_runs_from_end_to_end(lab: Lab) -> None:
    """A user's own items are planned by their lengths, rendered and scored."""
    path = lab.folder / "mine" / "ready.yaml"
    path.parent.mkdir()
    path.write_text(READY)
    (path.parent / "rows.jsonl").write_text(ITEMS)
    task = open_task("mine/ready", path)
    assert (list(task.lengths), task.samples) == ([2, 3], 2)
    assert [task.items_at(length) for length in (1, 2, 3)] == [0, 2, 1]
    samples = list(plan(task, axes={"tone": ["all"]}))
    assert len(samples) == plan(task, axes={"tone": ["all"]}).size == 6
    assert [(s.condition["tone"], s.length, s.index, s.target) for s in samples] == [
        ("plain", 2, 0, 2),
        ("plain", 3, 0, 2),
        ("kind", 2, 0, 2),
        ("kind", 3, 0, 2),
        ("plain", 2, 1, 1),
        ("kind", 2, 1, 1),
    ]
    assert samples[5].prompt == (
        'Please. How many ones are in b: 10?\nWrite "Final answer:" and the number.'
    )
    assert lab.bench("tasks", "check", path).code == 0
    done = lab.bench(
        "run", "--task", path, "--model", lab.model("Final answer: 2"), "--out", lab.out
    )
    assert done.code == 0
    assert "2" in done.out


FAILS_AT_FOUR = """\
from eyechart.harness.spec import Item


def ones(rng, length):
    row = ["1"] * min(length, 5)
    return Item(row, {3: 3, 5: 5}[len(row)])
"""
EXITS_AT_FOUR = """\
import sys
from eyechart.harness.spec import Item


def ones(rng, length):
    if length == 4:
        sys.exit(0)
    return Item(["1"] * length, length)
"""


def test_a_generator_that_fails_later_says_where(lab: Lab) -> None:
    """A length that the task file does not try is an error of its own: task, length, sample."""
    (lab.ones.parent / "rows.py").write_text(FAILS_AT_FOUR)
    task = open_task("lab/ones", lab.ones)
    condition = Condition({"separator": "none"})
    with pytest.raises(
        TaskError,
        match=r"'lab/ones' at length 4, sample 7: the generator raised KeyError: 4 \(line 6\)",
    ):
        task.draw(random.Random(0), condition, 4, 7)
    with pytest.raises(TaskError, match="5 symbols where length is 9"):
        task.draw(random.Random(0), condition, 9, 0)


def test_a_generator_that_exits_later_is_an_error(lab: Lab) -> None:
    """A generator cannot end the run."""
    (lab.ones.parent / "rows.py").write_text(EXITS_AT_FOUR)
    with pytest.raises(TaskError, match="SystemExit"):
        open_task("lab/ones", lab.ones).draw(
            random.Random(0), Condition({"separator": "none"}), 4, 0
        )


def test_a_prompt_that_fails_later_says_where(lab: Lab) -> None:
    """A template's error on one item names task and length."""
    lab.plain.write_text(lab.plain.read_text().replace("{{ sequence }}", "{{ 1 / (length - 3) }}"))
    task = open_task("lab/plain", lab.plain)
    item = task.draw(random.Random(0), Condition(), 3, 0)
    with pytest.raises(TaskError, match="'lab/plain' at length 3, line 2 of the prompt: Zero"):
        task.prompt(item, Condition(), 3)


BAD_LATER = """\
from eyechart.harness.spec import Item


class Large:
    def __str__(self):
        raise MemoryError


def ones(rng, length):
    if length == 7:
        raise MemoryError
    row = ["\\ud83d" if length == 9 else "1"] * length
    return Item(row, length, {"more": Large() if length == 8 else ""})
"""


@pytest.mark.parametrize(
    ("length", "said"),
    [
        (7, "at length 7, sample 2: the generator raised MemoryError"),
        (8, "at length 8, sample 2, line 2 of the prompt: MemoryError"),
        (9, r"at length 9, sample 2: a symbol has the lone surrogate '\\ud83d'"),
    ],
)
def test_memory_and_half_characters_are_errors_of_the_task(
    lab: Lab, length: int, said: str
) -> None:
    """Of one line, with task, length and sample."""
    (lab.plain.parent / "rows.py").write_text(BAD_LATER)
    lab.plain.write_text(
        lab.plain.read_text().replace("{{ sequence }}", "{{ sequence }}{{ more }}")
    )
    planned = plan(open_task("lab/plain", lab.plain), lengths=[length])
    with pytest.raises(TaskError, match=f"^task 'lab/plain' {said}"):
        planned.sample(Condition(), Line.exact(length), 2)


def test_a_name_that_is_no_utf8_is_refused(tmp_path: Path) -> None:
    """It is part of every sample's id; a folder further up is not."""
    folder = tmp_path / os.fsdecode(b"r\xe9") / "sound"
    folder.mkdir(parents=True)
    (folder / "ones.yaml").write_text(PLAIN)
    (folder / "rows.py").write_text(ROWS)
    assert open_task("sound/ones", folder / "ones.yaml").draw(random.Random(0), Condition(), 4, 0)
    assert list(find(str(folder / "ones.yaml"))) == ["sound/ones"]
    with pytest.raises(UnknownTaskError, match=r"not UTF-8.*rename"):
        find(str(folder.parent))


def test_without_a_trial_the_generator_is_left_alone(lab: Lab) -> None:
    """Listing tasks imports no generator."""
    (lab.ones.parent / "rows.py").unlink()
    assert open_task("lab/ones", lab.ones, trial=False).spec.title == "Ones"
    with pytest.raises(TaskFileError, match=r"ones\.yaml:3:12: generator file 'rows\.py'"):
        open_task("lab/ones", lab.ones)
