"""Studies to panels: the rows behind every chart of a report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from harness.analysis.details import FIRST_ROUNDED
from harness.analysis.stats import Bound
from harness.columns import OUTCOMES
from harness.report import charts
from harness.report.effects import Effect
from harness.report.looks import Look
from harness.report.panels import Figure, Panel, Rows, look_of, marks_of, panels_of, units_of
from harness.report.reported import Reported, counting_errors
from harness.report.section import UNITS, Section, Series, key_of

_SAID = 12
"""Answers in the histogram."""
_POINTS = 600
"""Different pairs of true and given count in a panel; more are put into bins."""
_BINS = 40
_MARKS = "○□◇"
_APART = 1.6
"""How many times one error must be the other for two labels to have room."""
_TOO_LONG = 1e12
"""Answers further out are drawn here."""


def accuracy_figure(section: Section) -> Figure:
    """Accuracy over length and effective length."""
    look = look_of(section)
    panels = []
    most = 1
    for model, title, mine in panels_of(section):
        data: dict[str, Rows] = {
            "curve": [],
            "estimate": [],
            "threshold": _thresholds(section, mine),
        }
        for row, series in enumerate(mine):
            data["curve"] += _curve_rows(section, series)
            data["estimate"] += _estimate_rows(section, series, row)
        most = max(most, len(mine))
        panels.append(Panel(model, title, data))
    spec = charts.accuracy_chart(look, section.lengths, most)
    return Figure("accuracy", "Accuracy by length", spec, tuple(panels), look)


def _curve_rows(section: Section, series: Series) -> Rows:
    return [
        {
            **marks_of(section, series),
            **units_of(series.at(row["length"]), "x"),
            "length": int(row["length"]),
            "y": row["accuracy"],
            "low": row["ci_low"],
            "high": row["ci_high"],
            "n": int(row["n"]),
            "interval": f"{100 * row['ci_low']:.1f} to {100 * row['ci_high']:.1f} %",
        }
        for _, row in series.cells.iterrows()
        if row["n"]
    ]


def _estimate_rows(section: Section, series: Series, row: int) -> Rows:
    found = section.estimates.get(key_of(series))
    if found is None:
        return []
    low, high = found.length_ci
    made: dict[str, Any] = {**marks_of(section, series), "row": row}
    for name, bound in (("x", found.length), ("low", low), ("high", high)):
        made |= units_of(series.at(bound.length), name)
    for unit in UNITS:
        made[f"label@{unit}"] = _in_unit(found.length, series, unit)
        ends = [_in_unit(low, series, unit), _in_unit(high, series, unit)]
        made[f"span@{unit}"] = " to ".join(dict.fromkeys(ends))
    return [made]


def _in_unit(bound: Bound, series: Series, unit: str) -> str:
    value = series.at(bound.length)[unit]
    if value is None:
        return ""
    said = f"{value:,.0f}"
    return said if bound.sign == "=" else f"{bound.sign} {said}"


def _thresholds(section: Section, mine: Sequence[Series]) -> Rows:
    threshold = section.threshold
    if not threshold.relative:
        return [{"y": threshold.share}]
    firsts = [series.curve.accuracies for series in mine if series.curve is not None]
    return [{"y": float(threshold.of(first)[0])} for first in firsts]


def outcomes_figure(section: Section) -> Figure:
    """What became of the samples, a panel a condition."""
    panels = []
    for series in section.series:
        rows: Rows = []
        for _, cell in series.cells.iterrows():
            counts = [int(cell[name]) for name in OUTCOMES]
            whole = sum(counts)
            rows += [
                {
                    "length": int(cell["length"]),
                    "outcome": name,
                    "rank": rank,
                    "n": count,
                    "share": count / whole,
                }
                for rank, (name, count) in enumerate(zip(OUTCOMES, counts, strict=True))
                if count
            ]
        title = series.label(section.varied)
        panels.append(Panel(series.shown.name, title, {"outcomes": rows}))
    spec = charts.outcomes_chart(section.lengths)
    return Figure("outcomes", "Outcomes by length", spec, tuple(panels), lengths=False)


def answer_figures(section: Section) -> list[Figure]:
    """Answers against true counts, the commonest answers, and signed errors; of integers only."""
    if not section.integer:
        return []
    look = look_of(section)
    pairs, said, errors = [], [], []
    for shown in section.runs:
        mine = [series for series in section.series if series.shown is shown]
        read = _read(shown.samples)
        if read.empty:
            continue
        pairs.append(Panel(shown.name, "", _answer_rows(section, mine)))
        if commonest := _said_rows(read[read["answer"].abs() < FIRST_ROUNDED]):
            said.append(Panel(shown.name, "", {"said": commonest}))
    for model, title, mine in panels_of(section):
        rows = [row for series in mine for row in _error_rows(section, series)]
        if rows:
            errors.append(Panel(model, title, {"error": rows, "zero": [{"y": 0}]}))
    made = [
        Figure(
            "answers",
            "Answers against true counts",
            charts.answers_chart(look),
            tuple(pairs),
            look,
            lengths=False,
        ),
        Figure("common", "The commonest answers", charts.said_chart(), tuple(said), lengths=False),
        Figure(
            "error",
            "Signed error by length",
            charts.error_chart(look, section.lengths),
            tuple(errors),
            look,
        ),
    ]
    return [figure for figure in made if figure.panels]


def _read(samples: pd.DataFrame) -> pd.DataFrame:
    """Those with an answer, and a target that a chart can show as it is."""
    return samples[samples["answer"].notna() & samples["target"].notna()]


def _answer_rows(section: Section, mine: Sequence[Series]) -> dict[str, Rows]:
    parts = []
    for series in mine:
        read = _read(series.samples)
        given = read["answer"].clip(-_TOO_LONG, _TOO_LONG)
        parts.append(
            pd.DataFrame({"true": read["target"], "given": given, **marks_of(section, series)})
        )
    whole = pd.concat(parts, ignore_index=True)
    if len(whole[["true", "given", "where"]].drop_duplicates()) > _POINTS:
        for name in ("true", "given"):
            whole[name] = _binned(whole[name].to_numpy())
    names = ["true", "given", "colour", "dash", "where"]
    counted = whole.groupby(names, sort=True).size().reset_index(name="n")
    low = float(min(whole["true"].min(), 0))
    high = float(whole["true"].max())
    return {
        "answers": [_plain(row) for row in counted.to_dict("records")],
        "ends": [{"true": end, "given": end} for end in (low, high)],
    }


def _plain(row: dict[Any, Any]) -> dict[str, Any]:
    """A row of whole numbers and texts."""
    return {
        str(name): int(value) if isinstance(value, float) else value for name, value in row.items()
    }


def _binned(values: Any) -> Any:
    """Each value's place on a grid of equal steps of log(1 + |value|), in whole numbers."""
    at = np.sign(values) * np.log1p(np.abs(values))
    step = max(float(np.ptp(at)) / _BINS, 1e-9)
    at = np.round(at / step) * step
    return np.round(np.sign(at) * np.expm1(np.abs(at)))


def _said_rows(read: pd.DataFrame) -> Rows:
    said = read["answer"].value_counts()
    true = read["target"].value_counts()
    # numbers that were said as often go by size
    most = sorted(said.items(), key=lambda pair: (-pair[1], float(str(pair[0]))))[:_SAID]
    return [
        {
            "answer": f"{float(str(value)):,.0f}",
            "given": int(count),
            "true": int(true.get(value, 0)),
        }
        for value, count in most
    ]


def _error_rows(section: Section, series: Series) -> Rows:
    rows = []
    for length, part in series.samples.groupby("length"):
        errors = part["signed_error"].dropna().clip(-_TOO_LONG, _TOO_LONG)
        if errors.empty:
            continue
        low, middle, high = (float(value) for value in errors.quantile([0.1, 0.5, 0.9]))
        rows.append(
            {
                **marks_of(section, series),
                **units_of(series.at(float(str(length))), "x"),
                "length": int(str(length)),
                "y": middle,
                "low": low,
                "high": high,
                "n": len(errors),
                "interval": f"{low:,.0f} to {high:,.0f}",
            }
        )
    return rows


def published_figure(section: Section, files: list[Reported]) -> Figure | None:
    """Mean error's size beside what was published of the same task; `None` where nothing was."""
    published = counting_errors(section.task, files)
    if published is None:
        return None
    panels = []
    for shown in section.runs:
        for strategy in section.axes.get("strategy", []):
            ghosts = _ghosts(published[published["strategy"] == strategy])
            mine = [
                series
                for series in section.series
                if series.shown is shown and series.condition["strategy"] == strategy
            ]
            rows = [row for series in mine for row in _mean_errors(section, series)]
            if ghosts and rows:
                data = {"published": ghosts, "names": _names(ghosts), "error": rows}
                panels.append(Panel(shown.name, f"strategy {strategy}", data))
    if not panels:
        return None
    look = look_of(section)
    spec = charts.published_chart(look, section.lengths, published["length"].tolist())
    return Figure("published", "Beside published figures", spec, tuple(panels), look, lengths=False)


def _ghosts(published: pd.DataFrame) -> Rows:
    """Rows of one strategy, each model's with its own mark; a triangle where the figure ends."""
    marks = dict(zip(sorted(published["model"].unique()), _MARKS, strict=False))
    return [
        {
            "x": int(row["length"]),
            "y": float(row["abs_error"]),
            "model": row["model"],
            "note": "at least" if int(row["clipped_at_axis"]) else "",
            "mark": "△" if int(row["clipped_at_axis"]) else marks.get(row["model"], "·"),
        }
        for _, row in published.sort_values(["model", "length"]).iterrows()
    ]


def _names(ghosts: Rows) -> Rows:
    """A label at the end of each model's line; one for all whose lines end together."""
    marks = {row["model"]: row["mark"] for row in ghosts if not row["note"]}
    ends = sorted({row["model"]: row for row in ghosts}.values(), key=lambda row: row["y"])
    names: Rows = []
    for row in ends:
        label = f"{marks.get(row['model'], '△')} {row['model']}"
        if names and row["y"] + 1 < _APART * (names[-1]["y"] + 1):
            names[-1]["label"] += f", {label}"
        else:
            names.append({"x": row["x"], "y": row["y"], "label": label})
    return names


def _mean_errors(section: Section, series: Series) -> Rows:
    return [
        {
            **marks_of(section, series),
            "x": int(cell["length"]),
            "length": int(cell["length"]),
            "y": cell["mean_abs_error"],
            "n": int(cell["n"]),
        }
        for _, cell in series.cells.iterrows()
        if pd.notna(cell["mean_abs_error"])
    ]


def effect_figures(section: Section, found: Sequence[Effect]) -> list[Figure]:
    """A figure an axis: each value's difference from the first one."""
    made = []
    for axis in section.varied:
        mine = [effect for effect in found if effect.axis == axis]
        # the first value keeps its colour, though it has no line of its own
        look = Look(tuple(section.axes[axis]), (), axis)
        panels: dict[tuple[str, str], Rows] = {}
        for effect in mine:
            rows = panels.setdefault((effect.shown.name, effect.where), [])
            rows += _effect_rows(section, effect, look)
        if panels:
            made.append(
                Figure(
                    f"effect-{axis}",
                    f"What {axis.replace('_', ' ')} changes",
                    charts.effects_chart(look, section.lengths),
                    tuple(
                        Panel(model, where, {"effects": rows, "zero": [{"y": 0}]})
                        for (model, where), rows in panels.items()
                    ),
                    look,
                    note=(
                        "on the same samples"
                        if all(effect.compared.same_targets for effect in mine)
                        else "on other rows of the same length"
                    ),
                )
            )
    return made


def _effect_rows(section: Section, effect: Effect, look: Look) -> Rows:
    series = next(
        series
        for series in section.series
        if series.shown is effect.shown
        and series.condition[effect.axis] == effect.value
        and all(series.condition[axis] == value for axis, value in effect.others.items())
    )
    values = section.axes[effect.axis]
    # side by side, so that intervals do not hide each other
    aside = 1.02 ** (values.index(effect.value) - len(values) / 2)
    rows = []
    for row, p in zip(effect.compared.paired.lengths, effect.compared.p_values, strict=True):
        low, high = row.difference_ci
        at = {unit: x and x * aside for unit, x in series.at(row.length).items()}
        rows.append(
            {
                "colour": effect.value,
                "dash": effect.value,
                "size": look.size(effect.value),
                "solid": 1,
                "where": f"{effect.value} − {effect.baseline}",
                **units_of(at, "x"),
                "length": row.length,
                "y": row.difference,
                "low": low,
                "high": high,
                "n": row.n,
                "p": f"{p:.2g}",
                "difference": (
                    f"{100 * row.difference:+.0f} ({100 * low:+.0f} to {100 * high:+.0f})"
                ),
            }
        )
    return rows
