"""The tables that follow from a run: `effective_length.csv`, `diagnosis.csv`, and CSV itself."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from eyechart.harness.analysis.comparison.comparison import Comparison
from eyechart.harness.analysis.findings.finding import Finding
from eyechart.harness.analysis.length.at_length import (
    AT_COLUMNS,
    at_length,
    is_described,
    pieces_of,
)
from eyechart.harness.analysis.length.capacity import STATISTIC, capacity_columns
from eyechart.harness.analysis.length.effective_length import EffectiveLength
from eyechart.harness.analysis.length.in_tokens import token_columns
from eyechart.harness.analysis.length.interval import Bound, Span
from eyechart.harness.analysis.length.overall import overall
from eyechart.harness.analysis.length.tokens_of_row import PairTokens, TokensASymbol
from eyechart.harness.analysis.order.apart import ApartLength
from eyechart.harness.analysis.order.order import OrderOfLine
from eyechart.harness.analysis.ranking.cost_at import CostAt, costs_at
from eyechart.harness.analysis.samples.judged_run import JudgedCondition, JudgedRun
from eyechart.harness.analysis.samples.reply_and_choice import ReplyAndChoice
from eyechart.harness.analysis.tables.cell_table import cell_means
from eyechart.harness.analysis.tables.cells import csv_text
from eyechart.harness.journal.files import replace_file
from eyechart.harness.score.outcomes import NOT_SCORED
from eyechart.harness.spec import columns


def cells_table(run: JudgedRun) -> pd.DataFrame:
    """The columns of `table.csv`: `JudgedRun.cells`, and for each line the mean tokens of its rows,
    by tokens a symbol; and the probability that its accuracy reaches the threshold, by the fitted
    curve; empty where nothing was scored, for length 0, and where the curve does not describe it.
    """
    cells, lengths = (run.samples[name].to_numpy() for name in ("cell", "true_length"))
    symbols = cell_means(cells, lengths.astype(float), len(run.cells))
    row_tokens, reaches = np.full((2, len(run.cells)), np.nan)
    for judged in run.conditions.values():
        estimate = judged.effective_length()
        tokens = judged.tokens_a_symbol
        if tokens is not None:
            places = list(judged.places)
            row_tokens[places] = symbols[places] * tokens.value
        if estimate is not None:
            nominal = judged.scored_cells["length"]
            nominal = nominal[[one > 0 and is_described(estimate, one) for one in nominal]]
            reaches[nominal.index] = estimate.fit.reaches(nominal.to_numpy(float))
    more = {columns.ROW_TOKENS: row_tokens, columns.REACHES: reaches}
    return run.cells.assign(**{name: np.round(one, columns.DIGITS) for name, one in more.items()})


def effective_length_table(run: JudgedRun) -> pd.DataFrame:
    """One row for each condition: accuracy over all lengths, effective length, tested length and
    area, with intervals.

    `…_bound` is `<` or `>` where a length is below or above the tested range, and an end of an
    interval that is not in it is empty. The area of an adaptive condition is empty, since its
    samples are where the accuracy falls. `error_growth` is empty for answers that are texts. The
    lengths in tokens are empty where tokens a symbol are not known. A task that asks for the
    statistic `capacity` has its columns last.
    """
    manifest = run.manifest
    has_capacity = STATISTIC in run.spec.statistics
    rows = []
    for condition, judged in run.conditions.items():
        estimate = judged.effective_length()
        rows.append(
            {
                "model": manifest.model,
                "task": manifest.task,
                "task_version": manifest.task_version,
                **condition,
                "adaptive": "yes" if judged.adaptive else "",
                "n": int(judged.cells["n"].sum()),
                "not_scored": sum(int(judged.cells[name].sum()) for name in NOT_SCORED),
                "read": run.manifest.settings.read,
                "chance": judged.curve.mean_chance if run.options and judged.curve else None,
                **_named(columns.READ[2:], judged.calibration),
                **_named(columns.OVERALL, overall(judged)),
                **run.settings.of_runs,
                **estimate_columns(estimate, adaptive=judged.adaptive),
                **near_apart_columns(judged),
                "error_growth": judged.error_growth,
                **token_columns(judged),
                **cost_columns(judged),
                **(capacity_columns(judged) if has_capacity else {}),
            }
        )
    numbers = [
        *(*columns.NUMBERS, *columns.OVERALL, "error_growth", "cost_usd"),
        *(name for name in columns.NEAR_APART if not name.endswith("_bound")),
        *(name for name in columns.READ if name != "read"),
    ]
    if has_capacity:
        numbers += ["capacity", "capacity_fails_at"]
    for row in rows:
        values = np.array([row.get(name) for name in numbers], float)
        row.update(zip(numbers, np.round(values, columns.DIGITS), strict=True))
    names = [*columns.EFFECTIVE_LENGTH, *(columns.CAPACITY if has_capacity else ())]
    return pd.DataFrame(rows, columns=[*columns.RUN, *manifest.spec["axes"], *names])


def _named(names: Sequence[str], values: Sequence[float] | None) -> dict[str, float]:
    """Column -> value; empty where there are no values."""
    return {} if values is None else dict(zip(names, values, strict=True))


def at_table(run: JudgedRun, lengths: Sequence[int]) -> pd.DataFrame:
    """A row for each condition and each of `lengths`: the values of its axes, and the columns of
    `AtLength`; outside the lengths asked there are bounds. The last columns have the dollars of a
    reply there, see `cost_at`.
    """
    rows = [
        {**condition, **at_length(estimate, length).columns, **reply_cost(costs.get(length))}
        for condition, judged in run.conditions.items()
        if (estimate := judged.effective_length()) is not None
        for costs in [costs_at(judged, lengths)]
        for length in lengths
    ]
    names = (*AT_COLUMNS, columns.COST_A_REPLY, columns.COST_BOUND)
    table = pd.DataFrame(rows, columns=[*run.manifest.spec["axes"], *names])
    numbers = [name for name in AT_COLUMNS if name not in ("at", "bound", "limited_by")]
    table[numbers] = table[numbers].astype(float).round(columns.DIGITS)
    table[columns.COST_A_REPLY] = table[columns.COST_A_REPLY].astype(float)
    return table


def reply_cost(found: CostAt | None) -> dict[str, float | str | None]:
    """Dollars of a reply at a length, and whether they are a bound; as in JSON."""
    dollars, sign = (None, "=") if found is None else found
    return {columns.COST_A_REPLY: dollars, columns.COST_BOUND: "" if sign == "=" else sign}


def cost_at_columns(costs: Mapping[int, CostAt]) -> dict[str, float | str | None]:
    """The columns `COST_AT`, with lengths in their names -> what a reply costs there."""
    return {
        name.format(length): value
        for length, one in costs.items()
        for name, value in zip(columns.COST_AT, reply_cost(one).values(), strict=True)
    }


def cost_columns(judged: JudgedCondition) -> dict[str, Any]:
    """Column -> value of what its replies cost in CSV files: the columns `COST`."""
    cost = judged.cost
    values = (None, "") if cost is None else (cost.dollars, cost.prices_of)
    return dict(zip(columns.COST, values, strict=True))


def right_at_columns(
    estimate: EffectiveLength, lengths: Sequence[int]
) -> dict[str, float | str | None]:
    """The columns `RIGHT_AT`, with each of `lengths` in their names -> the accuracy there; and of
    lengths that are several pieces of another one `REACHES_IN`.
    """
    in_pieces: dict[str, float | str | None] = {
        columns.REACHES_IN.format(length, pieces): (
            at_length(estimate, length // pieces, pieces).reaches
        )
        for length, pieces in pieces_of(lengths)
    }
    return in_pieces | {
        name.format(length): value
        for length in lengths
        for found in [at_length(estimate, length)]
        for name, value in zip(
            columns.RIGHT_AT,
            (
                *(found.accuracy, *found.accuracy_ci, found.reaches),
                "" if found.bound == "=" else found.bound,
            ),
            strict=True,
        )
    }


def estimate_columns(estimate: EffectiveLength | None, *, adaptive: bool) -> dict[str, Any]:
    """The columns `ESTIMATE` -> values; the area of an adaptive condition is `None`."""
    if estimate is None:
        return dict.fromkeys(columns.ESTIMATE)
    area = None if adaptive else estimate.area
    low, high = (None, None) if adaptive else estimate.area_ci
    return {
        **_length_columns("effective_length", estimate.length, estimate.length_ci),
        "limited_by": estimate.limit.by,
        "rows": estimate.rows,
        "one_threshold": "yes" if estimate.one_threshold else "no",
        "lapse": estimate.lapse,
        **_length_columns("tested_length", estimate.tested_length, estimate.tested_length_ci),
        "area": area,
        "area_ci_low": low,
        "area_ci_high": high,
    }


def _length_columns(
    name: str, length: Bound | None, interval: Span
) -> dict[str, float | str | None]:
    """A length, the sign of its bound, its interval; the first two are empty if it is unknown."""
    return {
        name: None if length is None else length.length,
        f"{name}_bound": "" if length is None else length.side,
        f"{name}_ci_low": interval[0].at_least,
        f"{name}_ci_high": interval[1].at_most,
    }


def near_apart_columns(judged: JudgedCondition) -> dict[str, float | str | None]:
    """The columns `NEAR_APART` -> values."""
    near, order = judged.near_length, judged.order
    apart = None if order is None else order.apart
    found: dict[str, EffectiveLength | ApartLength | None]
    found = {"near_length": near, "apart_length": apart}
    values: dict[str, float | str | None] = dict.fromkeys(columns.NEAR_APART)
    for name, one in found.items():
        if one is not None:
            values |= _length_columns(name, one.length, one.length_ci)
    return values


def finding_columns(finding: Finding) -> dict[str, Any]:
    """A finding as a document: `kind`, `level`, `facts`, `sentence`, `remedy`, and `runs`."""
    return {
        "kind": finding.kind,
        "level": finding.level,
        "facts": {name: _plain(value) for name, value in finding.facts.items()},
        "sentence": finding.sentence,
        "remedy": finding.remedy or None,
        "runs": list(finding.names),
    }


def _plain(value: Any) -> Any:
    """A fact as numbers, texts, lists and mappings."""
    if isinstance(value, EffectiveLength):
        return estimate_columns(value, adaptive=False)
    if isinstance(value, Comparison):
        return {"task": value.task, "first": value.first, "second": value.second}
    if isinstance(value, ApartLength | Bound | PairTokens | TokensASymbol):
        return asdict(value)
    if isinstance(value, ReplyAndChoice):
        return value._asdict()
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return value


def diagnosis_table(run: JudgedRun) -> pd.DataFrame:
    """`JudgedRun.diagnosis` with the columns of the cell and its number of scored samples, the
    order of the answers of each line, and how well it is told from its control.
    """
    names = [*columns.ORDER, *columns.D_PRIME]
    found = {name: np.full(len(run.cells), np.nan, object) for name in names}
    for judged in run.conditions.values():
        for place, line in (judged.order.lines if judged.order else {}).items():
            for name, value in zip(columns.ORDER, _order_of_line(line), strict=True):
                found[name][place] = value
        for place in judged.places:
            if (d_prime := judged.d_prime(place)) is not None:
                for name, value in zip(columns.D_PRIME, d_prime, strict=True):
                    found[name][place] = value
    for name in (name for name in names if name != "pattern"):
        found[name] = np.round(found[name].astype(float), columns.DIGITS)
    order = pd.DataFrame(found, run.cells.index)
    table = pd.concat([run.cells, run.diagnosis, order], axis="columns")
    return table[[*columns.RUN, *run.manifest.spec["axes"], *columns.DIAGNOSIS]]


def _order_of_line(line: OrderOfLine) -> tuple[float | str | None, ...]:
    """The values of `ORDER`."""
    found = line.resolution
    ratios = (None, None, None) if found is None else (found.ratio, found.low, found.high)
    return (line.share, *line.share_ci, line.p, *ratios, line.pattern or None)


def to_csv(table: pd.DataFrame, path: Path) -> Path:
    """Writes `table` to `path`, and returns `path`; unknown is empty, texts are `cells.csv_text`.

    Raises:
        JournalError: the file cannot be written.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.columns)
    columns = (map(_cell, values.tolist()) for _, values in table.items())
    writer.writerows(zip(*columns, strict=True))
    replace_file(path, text.getvalue().encode())
    return path


def _cell(value: object) -> object:
    """A value as `csv.writer` takes it."""
    if isinstance(value, str):
        return csv_text(value)
    return None if value is pd.NA or value != value else value  # noqa: PLR0124  NaN
