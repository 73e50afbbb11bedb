"""Errors and accuracies over length, or over the true count, beside published ones."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from eyechart.harness.report.charts import charts
from eyechart.harness.report.charts.panels import Figure, Panel, Rows, look_of, marks_of, told_apart
from eyechart.harness.report.page.section import Section, Series
from eyechart.harness.report.published.published_file import PublishedFile

_MARKS = "○□◇"
_APART = 1.6
"""Ratio of two errors from which their labels do not overlap."""
_SMALL_COUNTS = (1, 2, 3)
"""Counts in the middle of a bin, in addition to the lengths that were asked."""
COUNTED = {
    "counting/sum": "sum of ones",
    "counting/ones": "ones in all-ones",
    "counting/bernoulli": "ones in 0/1, P(1)=0.7",
    "counting/words": "word in a sentence",
}
"""Our task -> its name in the file of counting errors."""
_OVER_LENGTH = ("counting/bernoulli",)
"""Tasks whose published lengths are lengths of the row; in the others they are true counts."""
_COPIED = {
    "first token": {"position": "first", "hint": "off", "layout": "plain"},
    "last token": {"position": "last", "hint": "off", "layout": "plain"},
    "last token, hint": {"position": "last", "hint": "on", "layout": "plain"},
    "last token, interleaved": {"position": "last", "hint": "off", "layout": "interleaved"},
    "last token, interleaved, twice": {"position": "last", "hint": "off", "layout": "doubled"},
}
"""Condition in the file of copied tokens -> our condition. There the odd token is a zero, and
nothing stands between the tokens. For interleaved rows the paper has both forms."""


def errors_figure(section: Section, file: PublishedFile) -> Figure:
    """The mean size of the error, by strategy: over the true count, or over the length."""
    published = file.table[file.table["task"] == COUNTED[section.task]]
    over_length = section.task in _OVER_LENGTH
    panels, most = [], 0.0
    for run_details in section.runs:
        for strategy in section.axes.get("strategy", []):
            of_strategy = published[published["strategy"] == strategy]
            points = _published_errors(of_strategy)
            rows = [
                row
                for series in section.series_of(run_details.run, strategy=strategy)
                for row in _mean_errors(section, series, over_length=over_length)
            ]
            if points and rows:
                data = {
                    "published": points,
                    "names": _label_rows(points),
                    "error": told_apart(rows),
                }
                panels.append(Panel(run_details.name, f"strategy {strategy}", data))
                most = max(most, *(row["x"] for row in rows))
    title = section.over if over_length else "true count"
    ticks = section.lengths if over_length else _middles(section)
    ticks = ticks[: bisect_left(ticks, most) + 1]
    look = look_of(section)
    spec = charts.published_chart(look, ticks, published["length"].tolist(), title)
    note = (
        "Over the length of the row, seven tenths of which are ones on both sides."
        if over_length
        else "Over the true count, as there: how many are to be counted, not how long the row is."
    )
    note += " Prompts and models differ. △ lies at or above the edge of the published figure."
    return Figure("published", "Beside published errors", spec, tuple(panels), look, note=note)


def _published_errors(published: pd.DataFrame) -> Rows:
    """Rows of one strategy, marked by model; a triangle at or above the edge of the figure."""
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


def _label_rows(published_rows: Rows) -> Rows:
    """A label at the end of each model's line; lines that end close together share one label."""
    marks = {row["model"]: row["mark"] for row in published_rows if not row["note"]}
    ends = sorted({row["model"]: row for row in published_rows}.values(), key=lambda row: row["y"])
    labels: Rows = []
    for row in ends:
        label = f"{marks.get(row['model'], '△')} {row['model']}"
        if labels and row["y"] + 1 < _APART * (labels[-1]["y"] + 1):
            labels[-1]["label"] += f", {label}"
        else:
            labels.append({"x": row["x"], "y": row["y"], "label": label})
    return labels


def _mean_errors(section: Section, series: Series, *, over_length: bool) -> Rows:
    """Mean sizes of errors: of each line, or of the answers to about the same true count."""
    samples = series.samples.dropna(subset=["signed_error", "target"])
    if over_length:
        places = samples["length"]
    else:
        samples = samples[samples["target"] >= 1]
        places = _nearest(samples["target"], _middles(section))
    return [
        {
            **marks_of(section, series),
            "x": float(place) if over_length else round(float(part["target"].mean()), 1),
            "y": min(float(part["signed_error"].abs().mean()), charts.LARGEST),
            "n": len(part),
        }
        for place, part in samples.groupby(places)
    ]


def _middles(section: Section) -> list[int]:
    """The counts in the middle of bins of true counts."""
    return sorted({*_SMALL_COUNTS, *section.lengths})


def _nearest(counts: pd.Series[float], middles: Sequence[int]) -> pd.Series[float]:
    """For each count the nearest of `middles`, by ratio."""
    logs = np.log(np.asarray(middles, float))
    apart = np.abs(np.log(counts.to_numpy(float))[:, None] - logs[None, :])
    return pd.Series(np.asarray(middles, float)[apart.argmin(axis=1)], index=counts.index)


def copied_figure(section: Section, file: PublishedFile) -> Figure:
    """Accuracy of copying, with the published ✓ at 1 and ✗ at 0."""
    wanted: dict[str, tuple[Mapping[str, str], Rows]] = {}
    for name, values in _COPIED.items():
        table = file.table[file.table["condition"] == name.removesuffix(", twice")]
        points = [
            {
                "x": float(row["length"]),
                "x2": float(row["length"]),
                "y": float(row["correct"]),
                "mark": "✓" if int(row["correct"]) else "✗",
                "model": row["model"],
            }
            for _, row in table.iterrows()
        ]
        wanted[name] = ({**values, "separator": "none", "odd": "zero"}, points)
    note = "✓ is drawn at 100 % and ✗ at 0 %; their prompt is another one."
    return _accuracies(section, wanted, ", ".join(file.table["model"].unique()), note)


def letters_figure(section: Section, file: PublishedFile) -> Figure:
    """Accuracy of counting a letter, with the published ones of each range of lengths."""
    axes = ["format", "letter", "strategy"]
    marks = dict(zip(sorted(file.table["model"].unique()), _MARKS, strict=False))
    wanted: dict[str, tuple[Mapping[str, str], Rows]] = {}
    for values, table in file.table.groupby(axes, sort=False):
        points: Rows = []
        for _, row in table.iterrows():
            low, high = map(float, str(row["length_range"]).split("-"))
            share = float(row["accuracy_percent"]) / 100
            mark, model = marks[row["model"]], row["model"]
            points.append({"x": low, "x2": high, "y": share, "mark": mark, "model": model})
        names = list(map(str, values))
        wanted[", ".join(names)] = dict(zip(axes, names, strict=True)), points
    models = ", ".join(f"{mark} {model}" for model, mark in marks.items())
    note = "1,000 strings of each range of lengths, with another prompt."
    return _accuracies(section, wanted, models, note)


def _accuracies(
    section: Section, wanted: Mapping[str, tuple[Mapping[str, str], Rows]], models: str, note: str
) -> Figure:
    """Accuracy over length: a panel for each run and each published condition that the run has.
    `wanted` has the name of a condition, our values of its axes, and its published points; `models`
    are named with their marks.
    """
    panels = []
    for run_details in section.runs:
        for name, (values, points) in wanted.items():
            rows = [
                {
                    **marks_of(section, series),
                    "x": float(cell["length"]),
                    "y": float(cell["accuracy"]),
                    "n": int(cell["n"]),
                }
                for series in section.series_of(run_details.run, **values)
                for _, cell in series.cells.iterrows()
                if cell["n"]
            ]
            if rows and points:
                panels.append(
                    Panel(run_details.name, name, {"published": points, "curve": told_apart(rows)})
                )
    reach = [int(row["x2"]) for _, points in wanted.values() for row in points]
    look, title = look_of(section), "Beside published accuracies"
    spec = charts.published_accuracy_chart(look, section.lengths, reach, section.over)
    note = f"{models}: {note}"
    return Figure("published", title, spec, tuple(panels), look, note=note, source=models)
