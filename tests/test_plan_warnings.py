"""What `bench tasks check` warns of, and the prompts that it shows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from eyechart.harness.plan.warnings import warnings
from eyechart.harness.task.catalogue import Task, built_in_files, open_task

if TYPE_CHECKING:
    from tests.conftest import Lab

TASK = """\
version: 1
title: Words
generator: rows.py:row
lengths: [15, 30]
samples: 3
axes:
  separator:
    default: {default}
    values:
      none: ""
      comma: ", "
      pairs: {{inside: "", between: " ", every: 2}}
      quoted: {{quote: "'"}}
prompt: |
  Say "{{{{ phrase }}}}" and the last of {{{{ sequence }}}}.
answer: symbol
"""
ROWS = """\
from eyechart import Item


def row(rng, length):
    {rows}
    return Item(row, row[-1])
"""
NESTED = "row = [rng.choice(['tea', 'rum']) for _ in range(length)]"


def opened(folder: Path, default: str = "[comma]", rows: str = NESTED) -> Task:
    (folder / "task.yaml").write_text(TASK.format(default=default))
    (folder / "rows.py").write_text(ROWS.format(rows=rows))
    return open_task("x/task", folder / "task.yaml")


@pytest.mark.parametrize(("name", "path"), built_in_files().items())
def test_built_in_tasks_are_usual(name: str, path: Path) -> None:
    """Their rows are nested, but for one odd symbol, and their symbols can be told apart."""
    assert list(warnings(open_task(name, path))) == []


@pytest.mark.parametrize(
    ("default", "warned"),
    [("[none, comma, quoted]", ["none"]), ("[pairs]", ["pairs"]), ("[comma, quoted]", [])],
)
def test_words_without_a_separator(default: str, warned: list[str], tmp_path: Path) -> None:
    """A warning for each condition that joins them."""
    found = list(warnings(opened(tmp_path, default)))
    assert len(found) == len(warned)
    for line, value in zip(found, warned, strict=True):
        assert f"x/task: under separator={value} symbols of several characters" in line


@pytest.mark.parametrize(
    "rows",
    [
        "rng.seed(length + rng.random()); row = [rng.choice(['t', 'r']) for _ in range(length)]",
        "row = [rng.choice(['t', 'r']) for _ in range(length)][::-1]",
    ],
)
def test_rows_that_are_not_nested(rows: str, tmp_path: Path) -> None:
    """One warning, with the two lengths."""
    (line,) = warnings(opened(tmp_path, rows=rows))
    assert "the row of 30 symbols does not begin with the one of 15 (sample " in line


def test_the_command_shows_warnings_and_prompts(lab: Lab) -> None:
    """Warnings change neither the exit code nor the verdict."""
    opened(lab.folder, "[none, comma]")
    done = lab.bench("tasks", "check", lab.folder / "task.yaml")
    assert done.code == 0
    assert "under separator=none symbols of several characters" in done.err
    assert "task: sound (4 cells, 10 ways to be right in each)" in done.out
    shown = [line for line in done.out.splitlines() if line.startswith("| Say")]
    assert len(shown) == 2
    assert ", " in shown[1]


def test_a_task_with_one_target_is_warned_of(tmp_path: Path) -> None:
    """A model that always says it is always right; one other target is enough. Of few samples all
    may have one target by chance, and of one length by design.
    """
    for name in ("constant", "rare", "of_length"):
        (tmp_path / name).mkdir()
    constant = opened(tmp_path / "constant", rows=f"{NESTED}; row[-1] = 'tea'")
    (said,) = warnings(constant)
    assert 'the target of all 40 samples that were looked at is "tea"' in said
    rare = "row = ['tea'] * (length - 1) + [rng.choice(['tea', 'tea', 'tea', 'tea', 'rum'])]"
    assert list(warnings(opened(tmp_path / "rare", rows=rare))) == []
    of_length = opened(
        tmp_path / "of_length", rows="row = ['tea', 'rum'] * length; row = row[:length]"
    )
    alone = of_length.spec.model_copy(update={"lengths": [15]})
    assert list(warnings(Task(of_length.name, of_length.path, alone))) == []
