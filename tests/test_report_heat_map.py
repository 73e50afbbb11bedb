"""Accuracy by position and length: its numbers, its drawing, and tasks without positions."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from eyechart.harness.analysis.samples.judged_run import read_run
from eyechart.harness.plan.plan import plan
from eyechart.harness.plan.resolved_model import resolve_model
from eyechart.harness.report.charts.files import complete_spec, write_charts
from eyechart.harness.report.charts.heat_map import heat_map_figure
from eyechart.harness.report.page.section import sections
from eyechart.harness.run.run_request import RunRequest
from eyechart.harness.spec import Settings
from eyechart.harness.task.catalogue import built_in_files, open_task
from eyechart.providers.base import Request
from tests.vega_lite import check_valid

if TYPE_CHECKING:
    from tests.conftest import Lab

TASK = "copying/first_last"


def sees_the_first(request: Request) -> str:
    """The first symbol of the row, which is asked for at one of two positions."""
    row = request.prompt.rstrip().splitlines()[-1].partition(": ")[2]
    return f"Final answer: {row[0]}"


@pytest.fixture
def copied(lab: Lab) -> Path:
    """Two positions, two controls, two lengths."""
    opened = open_task(TASK, built_in_files()[TASK], trial=False)
    planned = plan(opened, lengths=[5, 10], samples=4, exact=True)
    wanted = RunRequest(planned, resolve_model("scripted/test"), Settings(), lab.out)
    lab.asked(wanted, sees_the_first)
    return wanted.folder


def test_each_cell_has_its_accuracy(copied: Path, tmp_path: Path) -> None:
    """A panel for each other condition; the drawing has every number and a legend."""
    (section,) = sections([read_run(copied)])
    figure = heat_map_figure(section)
    assert figure is not None
    assert [panel.title for panel in figure.panels] == ["odd zero", "odd absent"]
    seen = figure.panels[0].data["cells"]
    assert [(row["position"], row["length"], row["percent"], row["n"]) for row in seen] == [
        ("first", 5, "100", 4),
        ("first", 10, "100", 4),
        ("last", 5, "0", 4),
        ("last", 10, "0", 4),
    ]
    assert seen[0]["interval"] == "51.0 to 100.0 %"
    for panel in figure.panels:
        check_valid(complete_spec(TASK, figure, panel))
    drawing = write_charts([(TASK, [figure])], tmp_path, ["svg"])[0].read_text()
    texts = re.findall(r"<text[^>]*>([^<]+)</text>", drawing)
    assert {"first", "last", "accuracy", "25%", "100"} <= set(texts)
    assert texts.count("100") == 2


def test_a_row_amid_text_has_one_by_depth(lab: Lab) -> None:
    """A panel for each amount of context, and a line of cells for each depth in it."""
    name = "context/first_last"
    opened = open_task(name, built_in_files()[name], trial=False)
    axes = {"context": ["none", "tokens_1k"], "depth": ["start", "middle", "between"]}
    planned = plan(opened, lengths=[20], samples=2, axes=axes)
    wanted = RunRequest(planned, resolve_model("scripted/test"), Settings(), lab.out)
    lab.asked(wanted, sees_what_is_near_the_end)
    (section,) = sections([read_run(wanted.folder)])
    figure = heat_map_figure(section)
    assert figure is not None
    assert figure.title == "Accuracy by depth and length"
    cells = {
        panel.title: [(row["depth"], row["percent"]) for row in panel.data["cells"]]
        for panel in figure.panels
    }
    assert cells == {
        "context none": [("start", "100"), ("middle", "100"), ("between", "100")],
        "context tokens_1k": [("start", "0"), ("middle", "0"), ("between", "100")],
    }
    check_valid(complete_spec(name, figure, figure.panels[0]))


def sees_what_is_near_the_end(request: Request) -> str:
    """The last symbol before the instructions, whatever it is part of."""
    return f"Final answer: {request.prompt.splitlines()[-3][-1]}"


def test_a_task_at_one_position_has_no_heat_map(lab: Lab) -> None:
    """Nor has a task without the axis."""
    wanted = lab.wanted()
    lab.run(wanted)
    (section,) = sections([read_run(wanted.folder)])
    assert heat_map_figure(section) is None
