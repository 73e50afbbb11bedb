"""The charts: valid Vega-Lite that draws without a warning, and files for papers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import altair as alt
import pytest
import vl_convert

from eyechart.harness.analysis.length.interval import Bound, Span
from eyechart.harness.analysis.ranking.standing import standing
from eyechart.harness.analysis.samples.judged_run import read_run
from eyechart.harness.plan.plan import plan
from eyechart.harness.plan.resolved_model import resolve_model
from eyechart.harness.report.charts.accuracy import MOST_TOGETHER, accuracy_figure, accuracy_figures
from eyechart.harness.report.charts.charts import effects_chart, published_chart
from eyechart.harness.report.charts.effects import effects_of
from eyechart.harness.report.charts.figures import (
    answer_figures,
    effect_figures,
    outcomes_figure,
)
from eyechart.harness.report.charts.files import complete_spec, write_charts
from eyechart.harness.report.charts.heat_map import heat_map_figure
from eyechart.harness.report.charts.looks import (
    DARK,
    LIGHT,
    OUTCOME_COLOURS,
    SERIES_DARK,
    SERIES_LIGHT,
    Look,
    inked,
)
from eyechart.harness.report.charts.panels import Figure
from eyechart.harness.report.page.page_tables import _span
from eyechart.harness.report.page.section import Section, sections
from eyechart.harness.report.published.published import published_figures
from eyechart.harness.report.published.published_file import read_reported
from eyechart.harness.run.run_request import RunRequest
from eyechart.harness.score.outcomes import NOT_SCORED, OUTCOMES
from eyechart.harness.spec import Settings
from eyechart.harness.task.catalogue import built_in_files, open_task
from eyechart.providers.base import Request
from eyechart.providers.scripted import ScriptedProvider
from tests.conftest import right
from tests.vega_lite import check_valid

if TYPE_CHECKING:
    from tests.conftest import Lab

PNG, PDF = b"\x89PNG\r\n", b"%PDF-"
READABLE = 3.0
"""Contrast that WCAG 2.2 (1.4.11) asks of graphics."""


def section_of(*folders: Path) -> Section:
    (section,) = sections([read_run(folder) for folder in folders])
    return section


def top_figures(section: Section) -> list[Figure]:
    """The figures above all others."""
    runs = [(one.name, one.run) for one in section.runs]
    return accuracy_figures(section, standing(runs))


def all_figures(section: Section) -> Iterator[Figure]:
    """Every figure of a report."""
    yield from top_figures(section)
    yield outcomes_figure(section)
    yield from answer_figures(section)
    yield from effect_figures(section, effects_of(section))
    by_position = heat_map_figure(section)
    if by_position is not None:
        yield by_position
    yield from published_figures(section, read_reported())


def fields(spec: object) -> set[str]:
    """Names of the rows' fields that a spec uses."""
    if isinstance(spec, dict):
        own = {spec["field"]} if isinstance(spec.get("field"), str) else set()
        made = {one["as"] for one in spec.get("transform", ()) if "calculate" in one}
        return own.union(*map(fields, spec.values())) - made
    return set().union(*map(fields, spec)) if isinstance(spec, list) else set()


def data_names(spec: object) -> set[str]:
    """Names of the data that a spec uses."""
    if isinstance(spec, dict):
        own = {spec["data"]["name"]} if "name" in (spec.get("data") or {}) else set()
        return own.union(*map(data_names, spec.values()))
    return set().union(*map(data_names, spec)) if isinstance(spec, list) else set()


@pytest.fixture
def counted(lab: Lab) -> Section:
    """Numbers, two conditions, two lengths."""
    wanted = lab.wanted()
    lab.run(wanted)
    return section_of(wanted.folder)


def test_every_chart_is_valid_vega_lite(counted: Section) -> None:
    """Altair's schema takes each spec with its rows, and each kind is there."""
    kinds = []
    for figure in all_figures(counted):
        for panel in figure.panels:
            spec = complete_spec("lab/ones", figure, panel)
            check_valid(spec)
            vl_convert.vegalite_to_svg(spec)
        kinds.append(figure.kind)
    assert kinds == ["accuracy", "outcomes", "answers", "common", "error", "effect-separator"]


def test_a_chart_uses_what_its_rows_have(counted: Section) -> None:
    """Every field and every table of rows that a spec names is there."""
    for figure in all_figures(counted):
        for panel in figure.panels:
            rows = [row for part in panel.data.values() for row in part]
            there = {name.partition("@")[0] for row in rows for name in row}
            assert fields(figure.spec) <= there, figure.kind
            assert data_names(figure.spec) == set(panel.data), figure.kind


def texts(svg: str) -> list[str]:
    return re.findall(r"<text[^>]*>([^<]+)</text>", svg)


def test_a_file_says_what_it_shows(counted: Section, tmp_path: Path) -> None:
    """Title, model, legend and the effective length are in the drawing."""
    figure = accuracy_figure(counted)
    (svg,) = write_charts([("lab/ones", [figure])], tmp_path, ["svg"])
    said = texts(svg.read_text())
    assert {"lab/ones: accuracy by length", "scripted/test", "none", "comma", "&gt; 5*"} <= set(
        said
    )
    assert "var(" not in svg.read_text()


def test_intervals_lie_side_by_side(counted: Section) -> None:
    """Each in the colour of its series: bands of several series would mix to another colour."""
    figure = accuracy_figure(counted)
    spec = complete_spec("lab/ones", figure, figure.panels[0])
    svg = vl_convert.vegalite_to_svg(spec)
    bars = re.findall(r'<line aria-label="x: [^"]*; low: [^>]*translate\(([\d.]+),', svg)
    assert len(set(bars)) == len(bars) == len(figure.panels[0].data["curve"]) == 4


def test_the_fitted_curve_is_drawn(lab: Lab) -> None:
    """In every unit that is known, from the shortest length to the longest; it never rises. The
    effective length is marked between the lengths that were asked.
    """
    wanted = lab.wanted(lengths=[2, 4, 8, 16], samples=20)
    lab.asked(wanted, lambda request: right(request) if at(request) <= 4 else "Final answer: 100")
    data = accuracy_figure(section_of(wanted.folder)).panels[0].data
    rows = [row for row in data["fit"] if row["colour"] == "none"]
    assert (rows[0]["x@length"], rows[-1]["x@length"]) == (2, 16)
    assert [row["y"] for row in rows] == sorted((row["y"] for row in rows), reverse=True)
    assert rows[0]["y"] > 0.9
    assert rows[-1]["y"] < 0.1
    marked, shortest, *_, longest = data["estimate"][0], *data["curve"]
    assert 4 < marked["x@length"] < 8
    assert shortest["x@characters"] < marked["x@characters"] < longest["x@characters"]
    assert (marked["x@tokens"], rows[0]["x@tokens"]) == (None, None)
    assert marked["label@length"] == f"{marked['x@length']:.0f}"


def at(request: Request) -> int:
    """The length of a request's row."""
    return int(request.sample_id.partition("|length=")[2].partition("|")[0])


def test_no_single_threshold_is_said_in_the_chart(lab: Lab, tmp_path: Path) -> None:
    """By a star, which the title explains; a curve that never rises is not drawn."""
    wanted = lab.wanted(lengths=[2, 4, 8, 16], samples=20, axes={"separator": ["none"]})
    lab.asked(wanted, lambda request: "Final answer: 100" if at(request) == 4 else right(request))
    figure = accuracy_figure(section_of(wanted.folder))
    assert figure.panels[0].data["fit"] == []
    (svg,) = write_charts([("lab/ones", [figure])], tmp_path, ["svg"])
    assert {"2*", "Effective length and its 95 % interval (*: no single threshold)"} <= set(
        texts(svg.read_text())
    )


def test_files_lie_by_task_and_model(counted: Section, tmp_path: Path) -> None:
    """One a panel and format, and none where none is asked for."""
    figures = [("lab/ones", list(all_figures(counted)))]
    written = write_charts(figures, tmp_path, ["svg"])
    folder = tmp_path / "lab-ones" / "scripted-test"
    assert {path.parent for path in written} == {folder}
    assert sorted(path.name for path in written) == [
        "accuracy.svg",
        "answers.svg",
        "common.svg",
        "effect-separator.svg",
        "error.svg",
        "outcomes-comma.svg",
        "outcomes-none.svg",
    ]
    outcomes = [("lab/ones", [outcomes_figure(counted)])]
    written = write_charts(outcomes, tmp_path, ["png", "svg", "pdf"])
    assert len(written) == 6
    for begin, kind in ((PNG, "png"), (PDF, "pdf")):
        files = [folder / f"outcomes-{value}.{kind}" for value in ("comma", "none")]
        assert {*files} < {*written}
        assert all(path.read_bytes().startswith(begin) for path in files)
    assert write_charts(figures, tmp_path / "none", []) == []
    assert not (tmp_path / "none").exists()


def test_the_command_writes_each_format_alone(lab: Lab) -> None:
    """It prints the paths, and refuses a format that it does not know."""
    wanted = lab.wanted(lab.plain)
    lab.run(wanted)
    page = lab.folder / "r.html"
    done = lab.bench("report", wanted.folder, "-o", page, "--format", "pdf")
    written = list(map(Path, done.out.splitlines()))
    assert (done.code, page.exists(), len(written)) == (0, False, len(set(written)))
    assert written
    assert all(path.read_bytes().startswith(PDF) for path in written)
    refused = lab.bench("report", wanted.folder, "-o", page, "--format", "jpg")
    assert (refused.code, refused.err) == (
        2,
        "bench: --format is one of html, pdf, png, svg, not 'jpg'\n",
    )


def test_no_file_is_written_over(counted: Section, tmp_path: Path) -> None:
    """Letters of any script are kept; names that look the same, or are too long, get a number."""
    figure = accuracy_figure(counted)
    long = "a/" + "型" * 300
    models = ["scripted/模型", "scripted/日本", "a/b", "a-b", "A/B", long, f"{long}!"]
    panels = tuple(replace(figure.panels[0], model=model) for model in models)
    written = write_charts([("lab/ones", [replace(figure, panels=panels)])], tmp_path, ["svg"])
    assert [path.parent.name for path in written] == [
        "scripted-模型",
        "scripted-日本",
        "a-b",
        "a-b-2",
        "A-B-3",
        "a-" + "型" * 66,
        "a-" + "型" * 66 + "-2",
    ]


def test_legend_marks_are_solid(counted: Section, tmp_path: Path) -> None:
    """Whatever dashes their lines have."""
    (svg,) = write_charts([("lab/ones", [accuracy_figure(counted)])], tmp_path, ["svg"])
    marks = re.findall(r'class="mark-symbol role-legend-symbol".*?</g>', svg.read_text(), re.DOTALL)
    assert marks
    assert not [mark for mark in marks if "stroke-dasharray" in mark]


LENGTHS = [5, 7, 10, 15, 22, 33, 50, 75, 110, 160, 240, 350, 500]


def length_labels(svg: str) -> list[tuple[str, float]]:
    """The labels of the lengths that are seen, from the left, each with the place of its middle."""
    found = re.findall(
        r'<text text-anchor="middle" transform="translate\(([\d.]+),[^>]*opacity="1">(\d+)<', svg
    )
    return sorted(((text, float(x)) for x, text in found), key=lambda label: label[1])


def test_the_longest_length_has_its_label(lab: Lab, tmp_path: Path) -> None:
    """Also where the labels have no room for all lengths; then others are left out, and none covers
    another.
    """
    wanted = lab.wanted(lengths=[*LENGTHS, 520, 540], samples=2)
    lab.run(wanted)
    figures = [
        figure
        for figure in all_figures(section_of(wanted.folder))
        if figure.kind in ("accuracy", "outcomes", "error", "effect-separator")
    ]
    written = write_charts([("lab/ones", figures)], tmp_path, ["svg"])
    assert len(written) == 5
    for path in written:
        labels = length_labels(path.read_text())
        assert (labels[0][0], labels[-1][0]) == ("5", "540"), path.name
        assert len(labels) > len(LENGTHS) // 2
        ends = [(x - 3 * len(text), x + 3 * len(text)) for text, x in labels]
        assert all(right < left for (_, right), (left, _) in pairwise(ends)), labels


@pytest.mark.parametrize(
    ("largest", "end"), [(0, 0.1), (0.1, 0.1), (0.11, 0.2), (0.27, 0.4), (0.81, 1), (1, 1)]
)
def test_the_axis_of_differences_follows_them(largest: float, end: float) -> None:
    """Symmetric around 0, which has a tick, and not shorter than where chance would look large."""
    y = effects_chart(Look(("a", "b"), ()), [5, 10], largest, "length")["layer"][1]["encoding"]["y"]
    assert y["scale"]["domain"] == [-end, end]
    assert y["axis"]["values"] == [-end, -end / 2, 0, end / 2, end]


def test_every_interval_of_a_difference_is_whole(lab: Lab) -> None:
    """The axis ends after the farthest end of one; with many equal answers it is short."""
    wanted = lab.wanted(lengths=[2, 4], samples=60)
    lab.run(wanted)
    section = section_of(wanted.folder)
    (figure,) = effect_figures(section, effects_of(section))
    low, high = figure.spec["layer"][2]["encoding"]["y"]["scale"]["domain"]
    rows = figure.panels[0].data["effects"]
    assert len(rows) == 2
    assert all(low <= row["low"] < row["high"] <= high for row in rows)
    assert (low, high) == (-0.1, 0.1)


def test_ticks_go_as_far_as_what_was_published() -> None:
    """Also where the lengths measured end before."""
    spec = published_chart(Look(("all",), ()), [5, 10], [5, 95, 185], "true count")
    assert spec["layer"][0]["encoding"]["x"]["axis"]["values"] == [5, 10, 20, 50, 100]
    spec = published_chart(Look(("all",), ()), [5, 45], [5, 95, 185], "true count")
    assert spec["layer"][0]["encoding"]["x"]["axis"]["values"] == [5, 45, 100]  # 50 is too close


def test_intervals_are_sorted_by_their_lower_end() -> None:
    """Below the tested range comes before its shortest length."""
    below, at = Bound("<", 5.0), Bound("=", 5.0)
    assert _rank((below, at)) < _rank((at, at)) < _rank((Bound(">", 5.0), Bound(">", 5.0)))


def _rank(span: Span) -> float:
    shown = _span(span)
    assert isinstance(shown, list)
    return float(shown[1])


def test_texts_have_no_counts(lab: Lab) -> None:
    """A task whose answers are words has accuracy and outcomes only, on one line each."""
    wanted = lab.wanted(lab.echo)
    lab.run(wanted)
    assert [figure.kind for figure in all_figures(section_of(wanted.folder))] == [
        "accuracy",
        "outcomes",
    ]


def test_all_models_are_in_one_panel(lab: Lab, tmp_path: Path) -> None:
    """Under the default condition, the longest effective length first; where there are other
    conditions too, each model has a panel as well.
    """
    folders = []
    for model, reach in (("near", 2), ("far", 8)):
        wanted = lab.wanted(lengths=[2, 4, 8, 16], samples=20, model=f"scripted/{model}")

        def answer(request: Request, reach: int = reach) -> str:
            return right(request) if at(request) <= reach else "Final answer: 100"

        lab.asked(wanted, answer)
        folders.append(wanted.folder)
    section = section_of(*folders)
    together, apart = top_figures(section)
    (panel,) = together.panels
    assert (panel.model, panel.title) == ("all models", "separator none")
    assert list(dict.fromkeys(row["colour"] for row in panel.data["curve"])) == [
        "scripted/far",
        "scripted/near",
    ]
    assert [row["where"] for row in panel.data["estimate"]] == ["scripted/far", "scripted/near"]
    assert len(panel.data["curve"]) == 8
    assert [panel.model for panel in apart.panels] == ["scripted/near", "scripted/far"]
    spec = complete_spec("lab/ones", together, panel)
    check_valid(spec)
    (svg,) = write_charts([("lab/ones", [together])], tmp_path, ["svg"])
    assert {"all models, separator none", "model", "scripted/far"} <= set(texts(svg.read_text()))
    assert svg == tmp_path / "lab-ones" / "all-models" / "together-separator-none.svg"


def test_equal_curves_are_all_seen(lab: Lab, tmp_path: Path) -> None:
    """Their marks lie side by side at each length, and not as far as the next length; a mark that
    is alone at its point stays there.
    """
    folders = []
    for name in ("a", "b", "c"):
        wanted = lab.wanted(lab.plain, lengths=[2, 4, 8], samples=5, model=f"scripted/{name}")

        def answer(request: Request, name: str = name) -> str:
            is_wrong = at(request) == 8 and name == "c"
            return "Final answer: 100" if is_wrong else right(request)

        lab.asked(wanted, answer)
        folders.append(wanted.folder)
    (figure,) = top_figures(section_of(*folders))
    lanes = {
        (row["length"], row["colour"][-1]): row["lane"] for row in figure.panels[0].data["curve"]
    }
    assert [lanes[4, name] for name in "abc"] == [-1, 0, 1]
    assert [lanes[8, name] for name in "abc"] == [-0.5, 0.5, 0]
    (svg,) = write_charts([("lab/plain", [figure])], tmp_path, ["svg"])
    places = [
        (float(x), float(y))
        for x, y in re.findall(
            r'aria-label="x: [^"]*; y: [^"]*"[^>]*aria-roledescription="point" '
            r'transform="translate\(([\d.]+),([\d.]+)\)',
            svg.read_text(),
        )
    ]
    top = sorted(x for x, y in places if y == 0)
    assert (len(places), len(set(places)), len(top)) == (9, 9, 8)
    groups = [top[:3], top[3:6], top[6:]]
    assert all(3 < right - left < 5 for group in groups for left, right in pairwise(group))
    assert all(after[0] - before[-1] > 50 for before, after in pairwise(groups))


def test_one_condition_needs_no_other_panels(lab: Lab) -> None:
    """Of too many models the best are shown, and then each has a panel of its own."""
    folders = []
    for number in range(MOST_TOGETHER + 1):
        wanted = lab.wanted(lab.plain, model=f"scripted/{number}")
        lab.run(wanted)
        folders.append(wanted.folder)
    (figure,) = top_figures(section_of(*folders[:2]))
    assert [panel.model for panel in figure.panels] == ["all models"]
    together, apart = top_figures(section_of(*folders))
    assert [panel.model for panel in together.panels] == ["the first 7 of 8 models"]
    assert len(apart.panels) == 8


def test_of_many_series_one_colour_is_highlighted(lab: Lab) -> None:
    """Each colour has its chart, with the curves of the other ones behind it; few are together."""
    task = open_task("counting/bernoulli", built_in_files()["counting/bernoulli"], trial=False)
    few = {"separator": ["none", "comma"], "strategy": ["direct", "cot_zero_shot"]}
    many = {
        "separator": ["none", "space", "comma", "groups_of_five"],
        "strategy": [*few["strategy"]],
    }
    charts: list[Figure] = []
    for chosen in (few, many):
        planned = plan(task, lengths=[5, 10], samples=2, axes=chosen)
        wanted = RunRequest(planned, resolve_model(f"scripted/{len(charts)}"), Settings(), lab.out)
        lab.run(wanted, ScriptedProvider(lambda _: "Final answer: 3"))
        charts.append(accuracy_figure(section_of(wanted.folder)))
    together, apart = charts
    assert len(together.panels) == 1
    assert together.panels[0].data["others"] == []
    assert [panel.title for panel in apart.panels] == [
        f"separator {one}" for one in many["separator"]
    ]
    for panel, colour in zip(apart.panels, many["separator"], strict=True):
        assert {row["colour"] for row in panel.data["curve"]} == {colour}
        assert {row["colour"] for row in panel.data["others"]} == {*many["separator"]} - {colour}


def domain(channel: alt.Color | alt.StrokeDash) -> object:
    said = channel.to_dict()
    assert isinstance(said, dict)
    return said["scale"]["domain"]


def test_two_axes_are_colour_and_dash() -> None:
    """The axis with more values is told by colour and shape, the other by dashes."""
    look = Look(("a", "b", "c"), ("x", "y"), "one", "two")
    assert look.solid("x") != look.solid("y")
    assert len({look.size(value) for value in look.colours}) == 3
    assert domain(look.colour()) == ["a", "b", "c"]
    assert domain(look.dash()) == ["x", "y"]
    assert domain(Look(("a", "b"), ()).dash()) == ["a", "b"]


def luminance(colour: str) -> float:
    """Relative luminance as WCAG 2.2 defines it."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize(("inks", "first"), [(LIGHT, 3), (DARK, 7)], ids=["light", "dark"])
def test_colours_stand_out(inks: dict[str, str], first: int) -> None:
    """Text is readable; the first series stand out, the later ones have shapes and dashes too."""
    assert contrast(inks["ink"], inks["paper"]) > 12
    assert contrast(inks["soft"], inks["paper"]) > 4.5
    for place in range(1, first + 1):
        assert contrast(inks[f"s{place}"], inks["paper"]) >= READABLE, place


def test_every_outcome_has_a_colour_of_its_own() -> None:
    """All but the two kinds that were not scored."""
    coloured = [colour for colour in OUTCOME_COLOURS.values() if colour != "var(--ghost)"]
    assert len(set(coloured)) == len(coloured) == len(OUTCOMES) - len(NOT_SCORED)
    assert len(SERIES_LIGHT) == len(SERIES_DARK)


def test_inked_leaves_no_name() -> None:
    """Also where one name begins like another."""
    spec = {"a": "var(--s1)", "b": ["var(--ink)", {"c": "var(--soft)"}]}
    assert inked(spec, LIGHT) == {"a": LIGHT["s1"], "b": [LIGHT["ink"], {"c": LIGHT["soft"]}]}


def test_a_bound_is_drawn_open(lab: Lab) -> None:
    """An open mark, and a bar to the edge of the chart on the side whose end is not known."""
    wanted = lab.wanted(samples=20)
    lab.run(wanted)
    section = section_of(wanted.folder)
    figure = next(all_figures(section))
    rows = [row for panel in figure.panels for row in panel.data["estimate"]]
    bounds = [row for row in rows if str(row["label@length"]).startswith(">")]
    assert bounds
    for row in bounds:
        assert row["solid"] == 0.0
        assert row["x@length"] == section.lengths[-1]
        assert row["high@length"] > section.lengths[-1]
        assert row["low@length"] <= section.lengths[-1]


def test_equal_curves_are_beside_each_other(lab: Lab) -> None:
    """Each at its own lane, and the line is drawn by it."""
    wanted = lab.wanted(samples=20)
    lab.run(wanted)
    figure = next(all_figures(section_of(wanted.folder)))
    lanes = {row["lane"] for panel in figure.panels for row in panel.data["curve"]}
    assert lanes == {-0.5, 0.5}
    assert "datum.lane" in json.dumps(figure.spec)
    drawn = [one for one in figure.spec["vconcat"][-1]["layer"] if "drawn" in json.dumps(one)]
    assert [one["mark"]["type"] for one in drawn] == ["line"]
