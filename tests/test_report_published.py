"""Figures beside published ones: only where the same was asked, over the same quantity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pandas as pd
import pytest
import vl_convert

from eyechart.harness.analysis.samples.judged_run import read_run
from eyechart.harness.plan.plan import plan, sample_from_id
from eyechart.harness.plan.resolved_model import resolve_model
from eyechart.harness.report.charts.figures import answer_figures
from eyechart.harness.report.charts.files import complete_spec
from eyechart.harness.report.charts.panels import Figure, Panel
from eyechart.harness.report.page.section import Section, sections
from eyechart.harness.report.published.published import published_figures
from eyechart.harness.report.published.published_file import (
    PublishedFile,
    read_reported,
    reported_root,
)
from eyechart.harness.run.run_request import RunRequest
from eyechart.harness.spec import Settings
from eyechart.harness.task.catalogue import Task, built_in_files, open_task
from eyechart.providers.base import Request
from eyechart.providers.scripted import ScriptedProvider
from tests.vega_lite import check_valid

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Lab


def asked(
    lab: Lab,
    task: str | Task,
    lengths: Sequence[int] | None = None,
    axes: Mapping[str, Sequence[str]] | None = None,
    *,
    samples: int = 2,
    off: int = 0,
) -> Section:
    """A run whose answers are too high by `off`, or right where they are no numbers."""
    opened = task
    if isinstance(opened, str):
        opened = open_task(opened, built_in_files()[opened], trial=False)
    planned = plan(opened, lengths=lengths, exact=lengths is not None, samples=samples, axes=axes)
    wanted = RunRequest(planned, resolve_model("scripted/x"), Settings(), lab.out)

    def reply(request: Request) -> str:
        target = sample_from_id(planned.task, request.sample_id).target
        return f"Final answer: {target + off if isinstance(target, int) else target}"

    lab.run(wanted, ScriptedProvider(reply))
    (section,) = sections([read_run(wanted.folder)])
    return section


def drawn(figure: Figure) -> None:
    """Checks that the first panel is a valid chart with a source."""
    assert figure.source
    assert figure.source.partition("; ")[2] in figure.note
    spec = complete_spec("task", figure, figure.panels[0])
    check_valid(spec)
    svg = vl_convert.vegalite_to_svg(spec)
    assert "grey: " in svg
    assert "NaN" not in svg


def panel_of(figure: Figure, title: str) -> Panel:
    (panel,) = [panel for panel in figure.panels if panel.title == title]
    return panel


def test_every_file_says_where_it_is_from_and_how_it_was_read() -> None:
    """And is in the list beside the files."""
    listed = (reported_root() / "README.md").read_text(encoding="utf-8")
    for file in read_reported():
        assert file.reading, file.name
        assert file.cited.endswith(file.reading)
        assert f"`{file.name}.csv`" in listed


def test_copied_symbols_lie_over_the_condition_that_was_published(lab: Lab) -> None:
    """With ✓ at 1 and ✗ at 0; rows without an odd symbol and other separators are left out."""
    axes = {
        "hint": ["off", "on"],
        "layout": ["plain", "interleaved", "doubled"],
        "separator": ["none", "comma"],
    }
    section = asked(lab, "copying/first_last", [100, 300], axes, samples=1)
    (figure,) = published_figures(section, read_reported())
    drawn(figure)
    assert [panel.title for panel in figure.panels] == [
        *("first token", "last token", "last token, hint"),
        *("last token, interleaved", "last token, interleaved, twice"),
    ]
    last = panel_of(figure, "last token")
    assert {(row["x"], row["y"], row["mark"]) for row in last.data["published"]} == {
        *((length, 1.0, "✓") for length in (100, 150, 200, 250)),
        *((length, 0.0, "✗") for length in (300, 350, 400, 450, 500)),
    }
    assert [(row["x"], row["y"], row["n"]) for row in last.data["curve"]] == [
        (100.0, 1.0, 1),
        (300.0, 1.0, 1),
    ]
    hint = panel_of(figure, "last token, hint").data["published"]
    assert {row["mark"] for row in hint} == {"✓"}


def test_errors_lie_over_the_true_count(lab: Lab) -> None:
    """Not over the length of a sentence of which few words are counted."""
    section = asked(lab, "counting/words", [5, 200], samples=10, off=3)
    (figure,) = published_figures(section, read_reported())
    drawn(figure)
    (panel,) = figure.panels
    assert {row["y"] for row in panel.data["error"]} == {3.0}
    samples = section.series[0].samples
    counts = samples["target"][samples["target"] >= 1]
    assert sum(row["n"] for row in panel.data["error"]) == len(counts) < len(samples)
    assert max(row["x"] for row in panel.data["error"]) <= counts.max() < 100
    assert "true count" in str(figure.spec)


def test_errors_in_random_rows_lie_over_the_length(lab: Lab) -> None:
    """Whose ones are seven tenths there as here."""
    section = asked(lab, "counting/bernoulli", [15, 45], {"separator": ["none"]}, off=2)
    (figure,) = published_figures(section, read_reported())
    drawn(figure)
    (panel,) = figure.panels
    assert [(row["x"], row["y"]) for row in panel.data["error"]] == [(15.0, 2.0), (45.0, 2.0)]
    assert "true count" not in str(figure.spec)


def test_answers_to_314_ones_stand_beside_those_of_the_notes(lab: Lab) -> None:
    """By separator, in a row of their own; a model without a number says so."""
    (figure,) = published_figures(asked(lab, "separators/ones_314", off=-14), read_reported())
    drawn(figure)
    panel = panel_of(figure, "separator comma")
    assert {"row": "GPT-4o", "x": 300.0} in panel.data["published"]
    assert panel.data["silent"] == [{"row": "DeepSeek-R1", "note": "no number given"}]
    assert [(row["row"], row["x"], row["n"]) for row in panel.data["measured"]] == [
        ("this model", 300.0, 2)
    ]


def test_letters_have_the_published_ranges(lab: Lab) -> None:
    """For each way of writing, letter and strategy that was asked; the others have no panel."""
    axes = {"format": ["pure", "space"], "strategy": ["direct", "cot_zero_shot"]}
    (figure,) = published_figures(asked(lab, "separators/letters", [12], axes), read_reported())
    drawn(figure)
    assert [panel.title for panel in figure.panels] == ["pure, a, direct", "space, a, direct"]
    points = panel_of(figure, "pure, a, direct").data["published"]
    assert [(row["x"], row["x2"], row["y"]) for row in points] == [
        (10.0, 20.0, pytest.approx(0.301)),
        (20.0, 30.0, pytest.approx(0.151)),
        (30.0, 40.0, pytest.approx(0.064)),
    ]


def test_the_bases_stand_alone(lab: Lab) -> None:
    """Nothing measured is drawn beside them."""
    (figure,) = published_figures(asked(lab, "separators/two_symbols", [5]), read_reported())
    drawn(figure)
    (panel,) = figure.panels
    assert len(panel.data["published"]) == 10
    assert {"row": "base 10,000", "x": 0.5} in panel.data["published"]
    assert panel.data.keys() == {"published", "truth"}


ITEMS = """\
version: 1
title: Items
generator: rows.py:items
lengths: [5, 10]
samples: 2
axes:
  item: {default: [a, x], values: {a: a, x: x, z: z}}
  delimiter: {default: [comma], values: {comma: ", ", space: " "}}
prompt: |
  How many {{ item }}? "{{ phrase }}" and the number.
  {{ symbols | separated(delimiter) }}
answer: integer
"""


def capacities(folder: Path) -> list[PublishedFile]:
    """Two files of capacities, as published ones are."""
    (folder / "one.csv").write_text(
        "set,model,family,capacity\nclosed,m1,F,100\nopen,m2,F,0\nopen,m3,G,64\n"
    )
    (folder / "two.csv").write_text(
        'model,item,delimiter,capacity\nm1,a,", ",100\nm1,a, ,50\nm1,x,", ",70\nm2,x,", ",30\n'
    )
    names = {"dai2026_counting_capacity": "one.csv", "dai2026_stimulus_capacity": "two.csv"}
    return [
        PublishedFile(name, "Dai & Fan", "read", pd.read_csv(folder / file, keep_default_na=False))
        for name, file in names.items()
    ]


def test_capacities_stand_beside_the_same_writing(lab: Lab) -> None:
    """Matched by what is written, whatever the axes call it."""
    (lab.folder / "items.yaml").write_text(ITEMS)
    (lab.folder / "rows.py").write_text(
        "from eyechart import Item\n\n\ndef items(rng, length, *, item):\n"
        "    return Item([item] * length, length)\n"
    )
    task = open_task("capacity/items", lab.folder / "items.yaml")
    axes = {"item": ["all"], "delimiter": ["all"]}
    all_models, by_writing = published_figures(
        asked(lab, task, None, axes, samples=4), capacities(lab.folder)
    )
    drawn(all_models)
    drawn(by_writing)
    assert [panel.title for panel in all_models.panels] == ["a, a"]
    assert [row["x"] for row in all_models.panels[0].data["published"]] == [100.0, 0.0, 64.0]
    assert [panel.title for panel in by_writing.panels] == ["a, a", "a a", "x, x"]
    x = panel_of(by_writing, "x, x")
    assert [(row["row"], row["x"]) for row in x.data["published"]] == [("m1", 70.0), ("m2", 30.0)]
    assert [(row["row"], row["x"], row["n"]) for row in x.data["measured"]] == [
        ("this model", 10.0, 8)
    ]


def test_other_tasks_and_missing_files_have_no_figure(lab: Lab) -> None:
    """A task of one's own has none, and a task of ours none without the file."""
    assert published_figures(asked(lab, open_task("lab/ones", lab.ones)), read_reported()) == []
    assert published_figures(asked(lab, "counting/sum", [5]), []) == []


def test_the_commonest_answers_are_by_strategy(lab: Lab) -> None:
    """Where there are several; reasoning changes which number is said."""
    axes = {"strategy": ["direct", "cot_zero_shot"], "separator": ["none"]}
    section = asked(lab, "counting/ones", [5, 10], axes)
    (common,) = [figure for figure in answer_figures(section) if figure.kind == "common"]
    assert [panel.title for panel in common.panels] == [
        "strategy direct",
        "strategy cot_zero_shot",
    ]
    for panel in common.panels:
        assert [(row["answer"], row["given"]) for row in panel.data["common"]] == [
            ("5", 2),
            ("10", 2),
        ]
