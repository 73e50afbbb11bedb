"""The figures for papers, by kind: which rows of which runs each one shows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any, TypeAlias

from eyechart.harness.analysis.comparison.comparison import readings_of
from eyechart.harness.analysis.length.curve import threshold_text
from eyechart.harness.analysis.length.interval import Bound, Span
from eyechart.harness.analysis.order.words import answers_of, words_of
from eyechart.harness.analysis.tables.paper_text import length_cell, notes
from eyechart.harness.errors import UsageError
from eyechart.harness.report.charts.accuracy import accuracy_figure, accuracy_figures, panel_rows
from eyechart.harness.report.charts.looks import SERIES_LIGHT, Look, Spec
from eyechart.harness.report.charts.panels import (
    DrawMore,
    Figure,
    Panel,
    Rows,
    look_of,
    marks_of,
    told_apart,
)
from eyechart.harness.report.page.section import Section, Series, key_of
from eyechart.harness.report.paper.charts import NAMED, above_spec, accuracy_spec, lengths_spec
from eyechart.harness.report.paper.lengths import (
    APART,
    BESIDE,
    EXACT,
    NEAR,
    ShownLength,
    lengths_of,
)
from eyechart.harness.settings.figure import CHARTS, KINDS, TABLE, FigureStyle
from eyechart.harness.settings.judging import JudgeSettings
from eyechart.harness.spec import Condition
from eyechart.providers.close_match import did_you_mean
from eyechart.providers.naming import named

_READINGS = ("free text", "forced choice")


@dataclass(frozen=True, slots=True)
class PaperFigure:
    task: str
    name: str
    """What tells it from others of its task: model, condition, measure; may be empty."""
    spec: Spec
    """Vega-Lite with its rows."""
    notes: tuple[str, ...] = ()
    """What a caption must say; also `notes` in the `usermeta` of the spec."""

    @property
    def title(self) -> str:
        """`counting/ones: tiny`, which no figure shows."""
        return ": ".join(filter(None, (self.task, self.name)))


def check_kind(kind: str, added: Mapping[str, str]) -> None:
    """Raises `UsageError` where no chart is of this kind, neither of ours nor of those `added` by
    packages.
    """
    if kind == TABLE:
        raise UsageError("a table is no chart; 'to_latex' and 'to_markdown' of a run return it")
    if kind not in CHARTS and kind not in added:
        raise UsageError(f"no figure {kind!r}; {did_you_mean(kind, [*KINDS, *added])}")


def paper_figures(
    kind: str,
    sections: Sequence[Section],
    style: FigureStyle,
    draw_more: Sequence[DrawMore],
    added: Mapping[str, str],
) -> list[PaperFigure]:
    """The figures of this kind about the runs of each task; `readings`, and the kinds that are
    `added` by packages, also show what `draw_more` draws of them.

    Raises:
        UsageError: there is no such kind, or nothing to draw of it.
    """
    check_kind(kind, added)
    if not any(section.estimates for section in sections):
        raise UsageError("no sample of these runs is scored, so there is nothing to draw")
    found = []
    for section in sections:
        figures = list(_OF_KIND.get(kind, partial(_added, kind))(section, style, draw_more))
        found += [
            PaperFigure(section.name, name, spec | {"usermeta": {"notes": list(said)}}, tuple(said))
            for name, spec, said in figures
        ]
    if not found:
        raise UsageError(_NOTHING.get(kind) or added[kind])
    return found


_NOTHING: Mapping[str, str] = {
    "accuracy": "no length above 0 is scored, so there is nothing to draw",
    "lengths": "no effective length is there, so there is nothing to draw",
    "readings": "no model is here with both readings of one task, so there is nothing to draw; "
    f"make the second run with {named('reading', 'likelihood')}, and name both",
}

_Found: TypeAlias = Iterator[tuple[str, Spec, Sequence[str]]]
"""Name, spec and notes of each figure."""


def _accuracy(section: Section, style: FigureStyle, _: Sequence[DrawMore]) -> _Found:
    for figure in accuracy_figures(section, section.standing):
        look = _look(figure)
        said = _too_many(look)
        for panel in figure.panels:
            if panel.data["curve"]:
                data = _apart(panel)
                spec = accuracy_spec(look, section.lengths, data, style, section.over)
                yield ", ".join(filter(None, (panel.model, panel.title))), spec, said


def _lengths(section: Section, style: FigureStyle, _: Sequence[DrawMore]) -> _Found:
    varied, in_order = section.varied, section.ranked_series
    labels = list(dict.fromkeys(series.label(varied) for series in section.series))
    found = {series: lengths_of(section, series) for series in in_order}
    by_name = {one.named(varied): section.estimates.get(key_of(one)) for one in in_order}
    said = notes(by_name)
    if kinds := [kind for kind in BESIDE if any(kind in of for of in found.values())]:
        # marks tell the lengths apart, so conditions have their names at the axis
        shown, over = Look((EXACT, *kinds), ()), section.over
        rows = list(_three(found, shown, section))
        said += _meanings(in_order, kinds, section.judging)
    else:
        # one axis has colours and shapes; of two axes each pair of values has its own
        shown = Look(tuple(labels), (), ", ".join(varied)) if len(varied) > 1 else look_of(section)
        if are_named := len(labels) > len(SERIES_LIGHT):
            shown = Look(("",), ())
        over = f"effective {section.over}"
        rows = [_estimate(section, series, shown, labels) for series in in_order]
        if are_named:
            rows = list(_named_rows(rows))
    said += _too_many(shown)
    yield "", lengths_spec(shown, _around(section.lengths, rows), rows, style, over), said


def _meanings(
    shown: Sequence[Series], kinds: Sequence[str], judging: JudgeSettings
) -> Iterator[str]:
    """What the marks mean."""
    has_some = [one.judged for one in shown if one.judged.order or one.judged.near_length]
    words = words_of(answers_of(one.scored) for one in has_some if one.scored)
    share = threshold_text(judging.threshold)
    off = {"share": f"{100 * judging.near:g}", "threshold": share}
    meanings = {NEAR: words.near_meaning.format(**off), APART: words.apart_meaning}
    yield f"{EXACT}: the length up to which it is right in at least {share} of its replies"
    yield from (f"{kind}: {meanings[kind].removesuffix('.')}" for kind in kinds)


def _three(
    found: Mapping[Series, Mapping[str, ShownLength]],
    look: Look,
    section: Section,
) -> Iterator[dict[str, Any]]:
    """The rows of all kinds of lengths, in a band for each model and condition."""
    several = len({series.run_details.name for series in found}) > 1
    for series, lengths in found.items():
        label, name = series.label(section.varied), series.run_details.name
        band = "\n".join([name] * (several or not label) + [label] * bool(label))
        for lane, kind in enumerate(look.colours):
            length, span, text = lengths.get(kind, (None, None, "–"))
            about = {"model": band, "of": name, "condition": label, "lane": lane, "label": text}
            yield about | _mark(look, kind, length, span)


def _named_rows(rows: Rows) -> Iterator[dict[str, Any]]:
    """The rows of more conditions than can be told apart by colour: each has its condition's name
    at the axis, below a row with the model's name where there are several.
    """
    models = list(dict.fromkeys(row["model"] for row in rows))
    for model in models:
        mine = [row for row in rows if row["model"] == model]
        if len(models) > 1:
            nothing = dict.fromkeys(("x", "low", "high"))
            yield mine[0] | {"lane": 0, "label": "", "colour": "", "dash": ""} | nothing
        for row in mine:
            named = f"{model}{NAMED}{row['condition']}"
            yield row | {"model": named, "lane": 0, "colour": "", "dash": ""}


def _around(lengths: Sequence[int], rows: Rows) -> list[int]:
    """The lengths asked that the intervals lie among, and one on each side."""
    ends = [row[name] for row in rows for name in ("low", "high") if row[name] is not None]
    if not ends:
        return list(lengths)
    first = max(0, sum(length <= min(ends) for length in lengths) - 2)
    last = len(lengths) - max(0, sum(length >= max(ends) for length in lengths) - 2)
    return list(lengths[first:last])


def _estimate(
    section: Section, series: Series, look: Look, labels: Sequence[str]
) -> dict[str, Any]:
    estimate = section.estimates.get(key_of(series))
    label = series.label(section.varied)
    colour = label if label in look.colours else look.colours[0]
    length, span = (None, None) if estimate is None else (estimate.length, estimate.length_ci)
    return {
        "model": series.run_details.name,
        "condition": label,
        "lane": labels.index(label),
        "label": length_cell(estimate),
        **_mark(look, colour, length, span),
    }


def _mark(look: Look, colour: str, length: Bound | None, span: Span | None) -> dict[str, Any]:
    """The fields of a mark with its interval; it is open where the length is a bound. An open mark
    that is itself the end of the interval says so without an arrow over it.
    """
    low, high = span if length and span else (None, None)
    return {
        "colour": colour,
        "dash": colour,
        "size": look.size(colour),
        "solid": 1.0 if length is not None and length.sign == "=" else 0.0,
        "x": None if length is None else length.length,
        "low": None if low is None else low.length,
        "high": None if high is None else high.length,
        "is_below": low is not None and low.sign == "<" and low != length,
        "is_above": high is not None and high.sign == ">" and high != length,
    }


def _readings(section: Section, style: FigureStyle, draw_more: Sequence[DrawMore]) -> _Found:
    """Free text and forced choice of one model, and what a package reads off its states."""
    drawn = [figure for draw in draw_more for figure in draw(section) if figure.reading]
    for first, second in combinations(section.runs, 2):
        model = readings_of(first.run, second.run)
        if not model:
            continue
        written, forced = (second, first) if first.run.options else (first, second)
        conditions = [one for one in written.run.conditions if one in forced.run.conditions]
        for condition in conditions:
            series = [_series(section, details.name, condition) for details in (written, forced)]
            inside = [(figure, _inside(section, figure, series[0])) for figure in drawn]
            inside = [(figure, rows) for figure, rows in inside if rows]
            look = Look((*_READINGS, *(figure.reading for figure, _ in inside)), (), "reading")
            marks = [look.marks(name) for name in _READINGS]
            panel = Panel(model, "", panel_rows(section, list(zip(series, marks, strict=True))))
            if panel.data["curve"]:
                for figure, rows in inside:
                    found = [row | look.marks(figure.reading) for row in rows]
                    panel.data["curve"].extend(found)
                values = condition.only(section.varied)
                name = ", ".join([model, *(f"{axis} {value}" for axis, value in values.items())])
                data = _apart(panel)
                spec = accuracy_spec(look, section.lengths, data, style, section.over)
                yield name, spec, [f"{figure.reading}: {figure.note}" for figure, _ in inside]


def _inside(section: Section, figure: Figure, series: Series) -> Rows:
    """The rows of a package's figure of the model and condition of a series."""
    where = marks_of(section, series)["where"]
    return [
        row
        for panel in figure.panels
        if panel.model == series.run_details.name
        for row in panel.data["inside"]
        if row["where"] == where
    ]


def _series(section: Section, model: str, condition: Condition) -> Series:
    return next(
        series
        for series in section.series
        if series.run_details.name == model and series.condition == condition
    )


def _added(
    kind: str, section: Section, style: FigureStyle, draw_more: Sequence[DrawMore]
) -> _Found:
    """What a package draws of this kind, each panel below the curve of its run."""
    drawn = [figure for draw in draw_more for figure in draw(section) if kind in figure.kinds]
    curves = accuracy_figure(section)
    look = _look(curves)
    of_model = {(panel.model, panel.title): panel for panel in curves.panels}
    for figure in drawn:
        for panel in figure.panels:
            upper = of_model.get((panel.model, panel.title))
            if upper is None or not upper.data["curve"]:
                continue
            spec = above_spec(
                look, section.lengths, _apart(upper), (figure.spec, panel.data), style
            )
            name = ", ".join(filter(None, (panel.model, panel.title, figure.title)))
            yield name, spec, [figure.note]


_OF_KIND: Mapping[str, Callable[[Section, FigureStyle, Sequence[DrawMore]], _Found]] = {
    "accuracy": _accuracy,
    "lengths": _lengths,
    "readings": _readings,
}


def _look(figure: Figure) -> Look:
    if figure.look is None:
        raise TypeError(f"a figure {figure.kind!r} of curves needs a look")
    return figure.look


def _apart(panel: Panel) -> dict[str, Rows]:
    """Its rows, with a lane for each series, so that no interval hides another."""
    renamed: Rows = [row | {"x": row["x@length"]} for row in panel.data["curve"]]
    return dict(panel.data) | {"curve": told_apart(renamed, always=True)}


def _too_many(look: Look) -> list[str]:
    most, many = len(SERIES_LIGHT), len(look.colours)
    if many <= most:
        return []
    of = look.colour_title
    return [f"{of} has {many} values, of which {most} can be told apart by colour and mark"]
