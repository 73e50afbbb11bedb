"""Charts with one row for each published model, family or setting, and one for ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from eyechart.harness.analysis.samples.details import RunDetails
from eyechart.harness.report.charts import charts
from eyechart.harness.report.charts.panels import Figure, Panel, Rows, look_of, marks_of
from eyechart.harness.report.page.section import Section, Series, key_of
from eyechart.harness.report.published.published_file import PublishedFile
from eyechart.harness.spec import Condition

OURS = "this model"
"""The name of the row with our measurements."""
_ONES_WRITTEN = {
    "none": "none",
    "comma": "comma",
    "groups_of_five": "groups of five: comma inside, semicolon between",
}
"""Our separator -> its name in the file of 314 ones."""
_WITHOUT_COMMAS = 0.16
"""Percent right without commas, in the notes that have the bases."""
_CAPACITY = (
    "A capacity is the largest centre of a band of lengths at which every reply can be read and "
    "the mean relative error is at most 5 %: another measure than the effective length, which is "
    "in colour."
)


def ones_314_figure(section: Section, file: PublishedFile) -> Figure:
    """The answers to 314 ones, by separator: a row for each published model."""
    panels = []
    for run_details in section.runs:
        for separator, written in _ONES_WRITTEN.items():
            table = file.table[file.table["separator"] == written]
            answered = table[table["answer"] != ""]
            data: dict[str, Rows] = {
                "published": [
                    {"row": row["model"], "x": float(row["answer"])}
                    for _, row in answered.iterrows()
                ],
                "silent": [
                    {"row": row["model"], "note": row["note"]}
                    for _, row in table[table["answer"] == ""].iterrows()
                ],
                "measured": [
                    row
                    for series in section.series_of(run_details.run, separator=separator)
                    for row in _given(section, series)
                ],
                "truth": [{"x": 314.0}],
            }
            if data["measured"]:
                panels.append(Panel(run_details.name, f"separator {separator}", data))
    models = list(dict.fromkeys(file.table["model"]))
    look = look_of(section)
    spec = charts.published_rows_chart(look, [*models, OURS], "answer")
    note = "The dashed line is the true count. Larger marks are more samples with that answer."
    return Figure("published", "Beside published answers", spec, tuple(panels), look, note=note)


def _given(section: Section, series: Series) -> Rows:
    """How often each answer was given."""
    answers = series.samples["answer"].dropna().clip(-charts.LARGEST, charts.LARGEST)
    return [
        {**marks_of(section, series), "row": OURS, "x": float(str(answer)), "n": int(count)}
        for answer, count in answers.value_counts().sort_index().items()
    ]


def bases_figure(section: Section, file: PublishedFile) -> Figure:
    """The published accuracies under ten bases of RoPE; we have no measurements of them."""
    rows: Rows = [
        {"row": f"base {int(row['base']):,}", "x": float(row["case_1_accuracy_percent"])}
        for _, row in file.table.iterrows()
    ]
    data: dict[str, Rows] = {"published": rows, "truth": [{"x": _WITHOUT_COMMAS}]}
    names = [str(row["row"]) for row in rows]
    spec = charts.published_rows_chart(
        look_of(section), names, "percent right, with commas", measured=False
    )
    note = (
        f"The dashed line, {_WITHOUT_COMMAS} %, is without commas. Nothing measured is drawn: "
        "neither the model nor the lengths are known."
    )
    title = "Published under ten bases of RoPE"
    return Figure("published", title, spec, (Panel("", "", data),), note=note)


def writings_figure(section: Section, file: PublishedFile) -> Figure:
    """The published capacities of three models for the same item and delimiter."""
    published: dict[tuple[str, str], Rows] = {}
    for row in file.table.to_dict("records"):
        rows = published.setdefault((row["item"], row["delimiter"]), [])
        rows.append({"row": row["model"], "x": float(row["capacity"])})
    panels = []
    for run_details in section.runs:
        for (item, delimiter), rows in published.items():
            if ours := _seen_in(section, run_details, (item, delimiter)):
                data = {"published": rows, "measured": ours}
                panels.append(Panel(run_details.name, f"{item}{delimiter}{item}", data))
    models = list(dict.fromkeys(file.table["model"]))
    title = "Beside published capacities, by writing"
    return _capacities("published-writings", title, section, panels, models)


def capacities_figure(section: Section, file: PublishedFile) -> Figure:
    """The published capacities at the same way of writing, one row for each family."""
    table = file.table.assign(row=file.table["family"] + ", " + file.table["set"])
    rows: Rows = [
        {"row": row["row"], "x": float(row["capacity"]), "model": row["model"]}
        for _, row in table.iterrows()
    ]
    panels = [
        Panel(run_details.name, "a, a", {"published": rows, "measured": ours})
        for run_details in section.runs
        if (ours := _seen_in(section, run_details, ("a", ", ")))
    ]
    families = sorted(table["row"].unique())
    return _capacities("published", "Beside published capacities", section, panels, families)


def _capacities(
    kind: str, title: str, section: Section, panels: Sequence[Panel], rows: Sequence[str]
) -> Figure:
    look = look_of(section)
    spec = charts.published_rows_chart(look, [*rows, OURS], "capacity (items)", truth=False)
    return Figure(kind, title, spec, tuple(panels), look, note=_CAPACITY)


def _written(section: Section, condition: Condition) -> tuple[str, str]:
    """The item and the text between two items, as the task file has them."""
    axes: Mapping[str, Any] = section.runs[0].run.spec.axes
    item, delimiter = (
        axes[axis].model_dump()["values"][condition[axis]] for axis in ("item", "delimiter")
    )
    return str(item), str(delimiter)


def _seen_in(section: Section, run_details: RunDetails, written: tuple[str, str]) -> Rows:
    """The effective lengths of a run with this item and this text between two items."""
    return [
        row
        for series in section.series_of(run_details.run)
        if _written(section, series.condition) == written
        for row in _seen(section, series)
    ]


def _seen(section: Section, series: Series) -> Rows:
    """The effective length of a series, if it has one."""
    estimate = section.estimates.get(key_of(series))
    if estimate is None or estimate.length is None or not estimate.is_ranked:
        return []
    row = {**marks_of(section, series), "row": OURS, "x": float(estimate.length.length)}
    return [row | {"n": int(series.cells["n"].sum())}]
