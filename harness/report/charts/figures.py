"""The figures of a section: the rows behind every chart of a report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from eyechart.harness.analysis.comparison.effects import Effect
from eyechart.harness.analysis.comparison.signed_text import points_text, printed
from eyechart.harness.analysis.samples.details import FIRST_ROUNDED
from eyechart.harness.report.charts import charts
from eyechart.harness.report.charts.looks import OUTCOME_COLOURS, Look
from eyechart.harness.report.charts.panels import (
    Figure,
    Panel,
    Rows,
    look_of,
    marks_of,
    panels_of,
    told_apart,
    units_of,
)
from eyechart.harness.report.page.section import Section, Series
from eyechart.harness.score.outcomes import OUTCOMES

_COMMON = 12
"""Answers in the chart of the commonest answers."""
_POINTS = 600
"""Most different pairs of right and given answer in a panel; more pairs are put into bins."""
_BINS = 40


def outcomes_figure(section: Section) -> Figure:
    """The outcomes of the samples, a panel for each condition."""
    panels = []
    for series in section.series:
        rows: Rows = []
        # lines with the same nominal length, or in the same band, are one bar
        lengths = np.array([section.shown_as(int(length)) for length in series.cells["length"]])
        table = series.run_details.run.outcomes[list(series.judged.places)]
        for length in np.unique(lengths).tolist():
            counts = table[lengths == length].sum(axis=0).tolist()
            total = sum(counts)
            rows += [
                {
                    "length": length,
                    "outcome": name,
                    "rank": rank,
                    "n": count,
                    "share": count / total,
                }
                for rank, (name, count) in enumerate(zip(OUTCOMES, counts, strict=True))
                if count
            ]
        title = series.label(section.varied)
        panels.append(Panel(series.run_details.name, title, {"outcomes": rows}))
    spec = charts.outcomes_chart(
        sorted({*map(section.shown_as, section.every_length)}), section.over
    )
    seen = {row["outcome"] for panel in panels for row in panel.data["outcomes"]}
    return Figure(
        "outcomes",
        "Outcomes by length",
        spec,
        tuple(panels),
        lengths=False,
        hint="What became of the samples of each condition.",
        swatches={name: colour for name, colour in OUTCOME_COLOURS.items() if name in seen},
        least=230,
    )


def answer_figures(section: Section) -> list[Figure]:
    """Answers against right ones, the commonest, signed errors; empty unless they are integers."""
    if not section.integer:
        return []
    look = look_of(section)
    pairs, common, errors = [], [], []
    for run_details in section.runs:
        run_series = section.series_of(run_details.run)
        answered = _answered(run_details.samples)
        if answered.empty:
            continue
        pairs.append(Panel(run_details.name, "", _answer_rows(section, run_series)))
        for title, part in _by_strategy(section, run_series):
            said = _answered(part)
            if rows := _common_rows(said[said["answer"].abs() < FIRST_ROUNDED]):
                common.append(Panel(run_details.name, title, {"common": rows}))
    for model, title, panel_series in panels_of(section):
        rows = [row for series in panel_series for row in _error_rows(section, series)]
        if rows:
            data = {"error": told_apart(rows, always=True), "zero": [{"y": 0}]}
            errors.append(Panel(model, title, data))
    given, commonest = charts.answers_chart(look), charts.common_answers_chart()
    signed = charts.error_chart(look, section.lengths, section.over)
    answer_charts = [
        Figure(
            "answers",
            "Answers against right ones",
            given,
            tuple(pairs),
            look,
            lengths=False,
            hint="Larger marks are more samples; on the dashed line an answer is right.",
        ),
        Figure(
            "common",
            "The commonest answers",
            commonest,
            tuple(common),
            lengths=False,
            hint="Bars: how often a number was the answer. Ticks: how often it was right.",
        ),
        Figure(
            "error",
            "Signed error by length",
            signed,
            tuple(errors),
            look,
            hint="Medians, and the range of the middle 80 % of answers.",
        ),
    ]
    return [figure for figure in answer_charts if figure.panels]


def _by_strategy(
    section: Section, run_series: Sequence[Series]
) -> Iterator[tuple[str, pd.DataFrame]]:
    """A title and the samples of each strategy; of all together if there is only one."""
    strategies = section.axes.get("strategy", [])
    if len(strategies) <= 1:
        yield "", pd.concat([series.samples for series in run_series])
        return
    for strategy in strategies:
        samples = [one.samples for one in run_series if one.condition["strategy"] == strategy]
        if samples:
            yield f"strategy {strategy}", pd.concat(samples)


def _answered(samples: pd.DataFrame) -> pd.DataFrame:
    """The samples with an answer, and with a target that a chart can show exactly."""
    answers, targets = (samples[name].to_numpy() for name in ("answer", "target"))
    answered: pd.DataFrame = samples[~np.isnan(answers) & ~np.isnan(targets)]
    return answered


def _answer_rows(section: Section, run_series: Sequence[Series]) -> dict[str, Rows]:
    parts = [_answered(series.samples) for series in run_series]
    true, given = (np.concatenate([part[name] for part in parts]) for name in ("target", "answer"))
    given = np.clip(given, -charts.LARGEST, charts.LARGEST)
    names = ("colour", "dash", "where")
    marks = [tuple(str(marks_of(section, series)[name]) for name in names) for series in run_series]
    marked = [mark for mark, part in zip(marks, parts, strict=True) for _ in range(len(part))]
    counts = Counter(zip(true.tolist(), given.tolist(), marked, strict=True))
    if len(counts) > _POINTS:
        true, given = _binned(true), _binned(given)
        counts = Counter(zip(true.tolist(), given.tolist(), marked, strict=True))
    ends = min(float(true.min()), 0.0), float(true.max())
    return {
        "answers": [
            {
                "true": int(target),
                "given": int(answer),
                **dict(zip(names, mark, strict=True)),
                "n": count,
            }
            for (target, answer, mark), count in sorted(counts.items())
        ],
        "ends": [{"true": end, "given": end} for end in ends],
    }


def _binned(values: Any) -> Any:
    """Each value rounded to a grid of equal steps of log(1 + |value|), then to a whole number."""
    logs = np.sign(values) * np.log1p(np.abs(values))
    step = max(float(np.ptp(logs)) / _BINS, 1e-9)
    logs = np.round(logs / step) * step
    return np.round(np.sign(logs) * np.expm1(np.abs(logs)))


def _common_rows(answered: pd.DataFrame) -> Rows:
    given, true = (Counter(answered[name].tolist()) for name in ("answer", "target"))
    # answers that were given equally often are sorted by size
    most = sorted(given.items(), key=lambda pair: (-pair[1], pair[0]))[:_COMMON]
    return [
        {"answer": f"{value:,.0f}", "given": count, "true": true[value]} for value, count in most
    ]


def _error_rows(section: Section, series: Series) -> Rows:
    rows = []
    signed = series.samples["signed_error"].to_numpy(float)
    lengths = np.array([section.shown_as(int(length)) for length in series.samples["length"]])
    for length in np.unique(lengths[~np.isnan(signed) & (lengths > 0)]):
        known = signed[(lengths == length) & ~np.isnan(signed)]
        errors = np.clip(known, -charts.LARGEST, charts.LARGEST)
        low, middle, high = (float(value) for value in np.quantile(errors, [0.1, 0.5, 0.9]))
        rows.append(
            {
                **marks_of(section, series),
                **units_of(series.at(float(length)), "x"),
                "length": int(length),
                "y": middle,
                "low": low,
                "high": high,
                "n": len(errors),
                "interval": f"{low:,.0f} to {high:,.0f}",
            }
        )
    return rows


def effect_figures(section: Section, section_effects: Sequence[Effect]) -> list[Figure]:
    """A figure for each axis: the difference of each value from the first one."""
    axis_figures = []
    for axis in section.varied:
        axis_effects = [effect for effect in section_effects if effect.axis == axis]
        # the first value keeps its colour, though it has no line of its own
        look = Look(tuple(section.axes[axis]), (), axis)
        panels: dict[tuple[str, str], Rows] = {}
        for effect in axis_effects:
            rows = panels.setdefault((effect.name, effect.where), [])
            rows += _effect_rows(section, effect, look)
        if not panels:
            continue
        drawn = [row for panel_rows in panels.values() for row in panel_rows]
        largest = max((abs(row[end]) for row in drawn for end in ("low", "high")), default=0)
        spec = charts.effects_chart(look, section.lengths, largest, section.over)
        shown = tuple(
            Panel(*key, {"effects": told_apart(rows, always=True), "zero": [{"y": 0}]})
            for key, rows in panels.items()
        )
        is_same = all(effect.compared.same_targets for effect in axis_effects)
        where = "on the same samples" if is_same else "on other rows of the same length"
        hint = f"Difference in accuracy from {look.colours[0]} {where}, with 95 % intervals."
        title = f"What {axis.replace('_', ' ')} changes"
        axis_figures.append(Figure(f"effect-{axis}", title, spec, shown, look, hint=hint))
    return axis_figures


def _effect_rows(section: Section, effect: Effect, look: Look) -> Rows:
    values = {**effect.others, effect.axis: effect.value}
    series = section.series_of(effect.run, **values)[0]
    rows = []
    for row, p in effect.compared.lines:
        low, high = row.difference_ci
        rows.append(
            {
                "colour": effect.value,
                "dash": effect.value,
                "size": look.size(effect.value),
                "solid": 1,
                "where": f"{effect.value} − {effect.baseline}",
                **units_of(series.at(row.length), "x"),
                "length": row.length,
                "y": row.difference,
                "low": low,
                "high": high,
                "n": row.n,
                "p": f"{p:.2g}",
                "difference": printed(points_text(row.difference, (low, high))),
            }
        )
    return rows
