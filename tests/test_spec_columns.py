"""Every column of every table is in one list, and no axis may have its name."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from eyechart.harness.analysis.samples.judged_run import read_run
from eyechart.harness.analysis.tables.results import write_results
from eyechart.harness.errors import TaskFileError
from eyechart.harness.report.charts.effects import effects_of
from eyechart.harness.report.page import page_tables as listed
from eyechart.harness.report.page.section import sections
from eyechart.harness.spec import columns, taken_by
from eyechart.harness.task import check
from eyechart.harness.task.catalogue import open_task

if TYPE_CHECKING:
    from tests.conftest import Lab

AXIS = re.compile(r"[a-z][a-z0-9_]*")
"""What an axis may be called."""


def header(path: Path) -> list[str]:
    with path.open(newline="", encoding="utf-8") as file:
        return next(csv.reader(file))


def older(lab: Lab, axis: str) -> Path:
    """The folder of a run that was made while every axis was free."""
    renamed(lab, axis)
    with lab.monkeypatch.context() as patch:
        patch.setattr(check, "taken_by", lambda _: None)
        wanted = lab.wanted()
    lab.asked(wanted)
    return wanted.folder


def renamed(lab: Lab, axis: str) -> Path:
    """A task whose axis is called `axis`, and shown in the prompt."""
    text = lab.ones.read_text().replace("separator:", f"{axis}:")
    lab.ones.write_text(text.replace("How many", f"{{{{ {axis} }}}}How many"))
    return lab.ones


def test_each_column_of_each_table_is_in_the_list(lab: Lab) -> None:
    """Of all that a run, a comparison and a leaderboard write, but for the axes themselves."""
    first, second = lab.wanted(model="scripted/a"), lab.wanted(model="scripted/b")
    for wanted in (first, second):
        lab.asked(wanted)
        write_results(read_run(wanted.folder))
    lab.bench("compare", first.folder, second.folder, "-o", lab.out / "compare.csv")
    lab.bench("leaderboard", "--out", lab.out, "--task", lab.ones)
    files = sorted(lab.out.rglob("*.csv"))
    assert {path.name for path in files} == {
        *("table.csv", "effective_length.csv", "diagnosis.csv", "compare.csv", "leaderboard.csv")
    }
    for path in files:
        names = [name for name in header(path) if name != "separator"]
        assert [name for name in names if columns.table_of(name) is None] == [], path


def test_each_column_of_a_report_that_an_axis_could_be_called_is_in_the_list(lab: Lab) -> None:
    """And so are the names that a report's own reckoning has."""
    wanted = lab.wanted(model="scripted/a")
    lab.asked(wanted)
    (study,) = sections([read_run(wanted.folder)])
    tables = [
        listed.estimates_table(study),
        listed.pairs_table(study, effects_of(study)),
        listed.cell_diagnosis_table(study),
        listed.cells_table(study),
    ]
    names = {name for table in tables for name in table.columns} - {"separator"}
    names |= {str(name) for one in study.series for name in one.cells.columns} - {"separator"}
    assert len(names) > 40
    assert [n for n in names if AXIS.fullmatch(n) and columns.table_of(n) is None] == []


@pytest.mark.parametrize(
    ("axis", "taken"),
    [
        ("area", "a column of effective_length.csv"),
        ("threshold", "a column of effective_length.csv"),
        ("error_growth", "a column of effective_length.csv"),
        ("median_abs_error", "a column of diagnosis.csv"),
        ("collapsed", "a column of diagnosis.csv"),
        ("mean_first_divergence", "a column of diagnosis.csv"),
        ("accuracy", "a column of table.csv"),
        ("condition", "a column of leaderboard.csv"),
        ("accuracy_at_20", "a column of leaderboard.csv"),
        ("p_holm", "a column of what 'bench compare' writes"),
        ("characters", "a column of a report's tables"),
        ("phrase", "a name that every prompt has"),
        ("rng", "a name that every sample has"),
    ],
)
def test_an_axis_of_that_name_is_a_mistake_of_the_file(lab: Lab, axis: str, taken: str) -> None:
    """With its place, what has the name, and the remedy."""
    with pytest.raises(TaskFileError) as raised:
        open_task("lab/ones", renamed(lab, axis))
    (line,) = raised.value.lines
    assert line.endswith(
        f":7:3: an axis cannot be called {axis!r}: that is {taken}; give it another name"
    )


@pytest.mark.parametrize("axis", ["separator", "strategy", "hint", "odd", "format", "letter"])
def test_names_of_the_tasks_that_are_there_are_free(axis: str) -> None:
    """And stay so."""
    assert taken_by(axis) is None


@pytest.mark.parametrize("axis", ["area", "collapsed", "characters"])
def test_a_run_made_with_such_an_axis_is_one_line(lab: Lab, axis: str) -> None:
    """A run that an older version made is left out of a leaderboard, and judged by nothing."""
    folder = older(lab, axis)
    words = (f"the axis {axis!r}", "rename the axis")
    lab.bench("score", folder).one_line(1, *words)
    lab.bench("report", folder, "-o", lab.folder / "r.html").one_line(1, *words)
    board = lab.bench("leaderboard", "--out", lab.out, "--task", lab.ones)
    board.one_line(1, "left out", *words)


def test_a_run_whose_axis_stands_in_no_column_stays_readable(lab: Lab) -> None:
    """`date` is a column of the leaderboard, where axes have none of their own."""
    assert lab.bench("score", older(lab, "date")).code == 0
