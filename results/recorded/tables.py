"""The tables of all variants, with the published capacities beside ours."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from eyechart.harness.analysis.length.limit import RANKED
from eyechart.harness.analysis.tables.tables import near_apart_columns
from eyechart.harness.spec.columns import NEAR_APART
from eyechart.harness.task.catalogue import built_in_files, open_task
from results.recorded.variants import TASK, Variant

REPORTED = Path(__file__).parents[1] / "reported"


def csv_of(rows: Sequence[Mapping[str, Any]]) -> str:
    """A table as CSV; unknown is empty."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


@cache
def published() -> dict[tuple[str, str, str], dict[str, str]]:
    """Set, model and writing -> the row of the published capacity."""
    names = {
        axis: {str(text): name for name, text in of.values.items()}
        for axis, of in open_task(TASK, built_in_files()[TASK]).spec.axes.items()
    }
    found = {}
    for name in ("dai2026_counting_capacity", "dai2026_stimulus_capacity"):
        with (REPORTED / f"{name}.csv").open(newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                writing = [
                    names[axis][row.get(axis, usual)]
                    for axis, usual in (("item", "a"), ("delimiter", ", "))
                ]
                found[row.get("set", "stimulus"), row["model"], ", ".join(writing)] = row
    return found


def _number(value: float | None, digits: int = 3) -> float | int | str:
    if value is None or not math.isfinite(value):
        return ""
    rounded = round(value, digits)
    return int(rounded) if rounded == int(rounded) else rounded


def measures(variant: Variant | None, reported: Mapping[str, str]) -> dict[str, Any]:
    """What is known of a variant, by column."""
    capacity_columns = {
        "capacity_published": int(float(reported["capacity"])),
        "capacity": "" if variant is None else variant.capacity_number,
    }
    if variant is None:
        names = (
            *("replies", "effective_length", "effective_length_bound"),
            *("effective_length_ci_low", "effective_length_ci_high"),
            *("limited_by", "one_threshold", *NEAR_APART),
        )
        rest = ("area", "area_ci_low", "area_ci_high", "unread", "cut_off", "no_reply")
        empty = dict.fromkeys(names, "") | capacity_columns | dict.fromkeys(rest, "")
        return {**empty, "replies": 0, "capacity": 0}
    estimate = variant.estimate
    length, (low, high) = estimate.length, estimate.length_ci
    return {
        "replies": int(variant.judged.cells["n"].sum()),
        "effective_length": "" if length is None else _number(length.length),
        "effective_length_bound": "" if length is None or length.sign == "=" else length.sign,
        "effective_length_ci_low": _number(low.at_least),
        "effective_length_ci_high": _number(high.at_most),
        "limited_by": estimate.limit.by,
        "one_threshold": "yes" if estimate.one_threshold else "no",
        **{
            name: value if isinstance(value, str) else _number(value)
            for name, value in near_apart_columns(variant.judged).items()
        },
        **capacity_columns,
        "area": _number(estimate.area),
        "area_ci_low": _number(estimate.area_ci[0]),
        "area_ci_high": _number(estimate.area_ci[1]),
        "unread": variant.count("unparsed"),
        "cut_off": variant.count("truncated"),
        "no_reply": variant.count("error"),
    }


def tables(found: Sequence[Variant]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """A row for each model with a published capacity, the best first; and one for each writing."""
    by_key = {(one.set, one.model, one.writing): one for one in found}
    models, writings = [], []
    for (kind, model, writing), reported in published().items():
        variant = by_key.get((kind, model, writing))
        if kind == "stimulus":
            item, delimiter = writing.split(", ")
            key = {"model": model, "item": item, "delimiter": delimiter}
            writings.append(key | measures(variant, reported))
        else:
            of_model = {name: reported[name] for name in ("family", "parameters_billion")}
            models.append({"model": model, "set": kind, **of_model, **measures(variant, reported)})
    models.sort(key=_place)
    return models, writings


def _place(row: Mapping[str, Any]) -> tuple[bool, float, float, str]:
    is_known = row["limited_by"] in RANKED and row["effective_length"] != ""
    length = float(row["effective_length"] or 0)
    length -= 0.5 * (row["effective_length_bound"] == "<")
    return not is_known, -length, -row["capacity_published"], row["model"]


def share(part: int, whole: int) -> str:
    """How many of how many."""
    return f"{part} of {whole}"
