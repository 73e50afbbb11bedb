"""The values of a probe that the terminal and the page show: one for each condition and length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import pandas as pd

from eyechart.harness.spec import LINE as OF_LINE
from eyechart.harness.spec import Condition
from eyechart_lab.probe.change import MeasureAtLength, MeasureChange, change_with_length
from eyechart_lab.probe.measures.collapse import LINE
from eyechart_lab.probe.passes import COUNTER


@dataclass(frozen=True, slots=True)
class ShownMeasure:
    """A quantity of `probe.csv` over length."""

    measure: str
    quantity: str
    title: str
    axis: str
    """Title of the axis."""
    header: Sequence[str]
    """Title in the terminal, in two lines."""
    layers: Literal["last", "all", "best"] = "last"
    """For a quantity with one value a layer: the last layer, the mean, or the largest value."""
    is_log: bool = False
    is_share: bool = False
    """Whether the axis shows all from 0 to 1."""
    reading: str = ""
    """See `panels.Figure`."""
    line: float | None = None
    """A value to compare with."""
    note: str = ""

    @property
    def name(self) -> str:
        """Its name in the column `shown`."""
        return f"{self.measure}.{self.quantity}"


SHOWN = (
    ShownMeasure(
        "answer",
        "probability",
        "Probability of the right answer",
        "probability",
        ("right", "answer"),
        is_share=True,
        note="If it is given at once, after the phrase that announces it.",
    ),
    ShownMeasure(
        "collapse",
        "final_relative_end",
        "Collapse: n and n + 1 symbols at the end",
        "difference, share of size",
        ("n, n+1", "at end"),
        is_log=True,
        line=LINE,
        note="Largest difference of the states after the final norm, as a share of their largest "
        "number. Below the dashed line, 2⁻⁷, bfloat16 may not tell them apart.",
    ),
    ShownMeasure(
        "collapse",
        "final_relative_symbol",
        "Collapse: n and n + 1 symbols at the last symbol",
        "difference, share of size",
        ("n, n+1", "at symbol"),
        is_log=True,
        line=LINE,
        note="The same where the row ends.",
    ),
    ShownMeasure(
        "collapse",
        "final_equal_end_bfloat16",
        "Collapse: equal numbers in bfloat16",
        "share",
        ("equal in", "bfloat16"),
        note="Share of the numbers of the state at the end that are equal for n and n + 1 symbols "
        "in a pass that is rounded to bfloat16.",
    ),
    ShownMeasure(
        "squashing",
        "first_to_last",
        "Over-squashing: first tenth against the last",
        "ratio",
        ("first/", "last"),
        is_log=True,
        line=1.0,
        note="How much more the answer depends on the first tenth of the row than on the last one.",
    ),
    ShownMeasure(
        "attention",
        "sinks_0.3",
        "Attention sinks",
        "share of heads",
        ("sinks", "> 0.3"),
        is_share=True,
        note="Share of heads whose mean weight on the first token exceeds 0.3.",
    ),
    ShownMeasure(
        "attention",
        "largest_end",
        "Dispersion: largest weight at the end",
        "weight",
        ("largest", "weight"),
        layers="all",
        note="Mean of all heads.",
    ),
    ShownMeasure(
        "attention",
        "entropy_share",
        "Dispersion: entropy over the row",
        "share of the largest",
        ("entropy", "share"),
        layers="all",
        note="Mean of all heads; 1 where all tokens have the same weight.",
    ),
    ShownMeasure(
        "residual",
        "rank_one_distance",
        "Rank collapse: distance to rank one",
        "share of size",
        ("to rank", "one"),
        note="Of the row's states after the last layer; 0 where all are equal.",
    ),
    ShownMeasure(
        "residual",
        "effective_rank",
        "Rank collapse: effective rank",
        "rank",
        ("effective", "rank"),
        note="Of the row's states after the last layer.",
    ),
    ShownMeasure(
        "counter",
        "within_half",
        "The count in the states",
        "share",
        ("count", "readable"),
        layers="best",
        is_share=True,
        reading="read off the states",
        note="Share of the counts so far that a linear map reads off the states to within a half, "
        "in rows of at most this length, at the best layer.",
    ),
    ShownMeasure(
        "counter",
        "position_within_half",
        "The count from the position alone",
        "share",
        ("from", "position"),
        is_share=True,
        note="The same from the position in the row, for comparison.",
    ),
    ShownMeasure(
        "readout",
        "best_readable",
        "The answer in the state at the end",
        "share",
        ("read at", "the end"),
        is_share=True,
        reading="read off the end",
        note="Share of rows whose answer a linear map reads off the state at the end, where the "
        "answer is chosen; at the layer that reads the other rows best.",
    ),
    ShownMeasure(
        "readout",
        "position_readable",
        "The answer from the length alone",
        "share",
        ("from", "length"),
        is_share=True,
        note="The same from the length of the row and of the prompt.",
    ),
    ShownMeasure(
        "readout",
        "best_control",
        "What so many rows can show at the end",
        "share",
        ("could be", "read"),
        is_share=True,
        note="The same of quantities that are in the states for certain: random directions, with "
        "the spread of the answers. Where this is low, there are too few rows.",
    ),
    ShownMeasure(
        "rotary",
        "query_norm_fast",
        "Rotary positions: the faster half of the pairs",
        "share of norms",
        ("fast", "pairs"),
        layers="all",
        is_share=True,
        note="How much of the norms of queries belongs to the pairs that turn faster; mean of all "
        "layers, 0.5 where all pairs are equally long.",
    ),
    ShownMeasure(
        "lipschitz",
        "largest_slope",
        "Largest slope of the logits",
        "slope",
        ("largest", "slope"),
        is_log=True,
        note="Largest singular value of the derivative of all logits by all embeddings.",
    ),
)


def rows_with(frame: pd.DataFrame, condition: Condition) -> pd.DataFrame:
    for axis, value in condition.items():
        frame = frame[frame[axis] == value]
    return frame


def shown_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """The shown values of each sample, with a column `shown`; from the rows of `probe_rows`. One
    for each condition, line and sample: of heads and layers the mean.
    """
    return pd.concat([_rows_of(rows, shown) for shown in SHOWN], ignore_index=True)


def shown_values(rows: pd.DataFrame) -> pd.DataFrame:
    """The values that are shown, with a column `shown`; one for each condition and line, with the
    columns of `probe_frame`.
    """
    frames = shown_rows(rows)
    keys = [name for name in frames.columns if name not in _VALUES]
    grouped = frames.groupby(keys, sort=False, dropna=False)
    ones = grouped["one"]
    found = pd.DataFrame(
        {"n": ones.count(), "value": ones.mean(), "low": ones.min(), "high": ones.max()}
    )
    whole = dict.fromkeys(("length", "length_low", "length_high", "n"), int)
    return found.reset_index().astype(whole)


_VALUES = ("tokens", "symbols", "index", "one", "rounding")
_PLACES = ("measure", "quantity", "unit", "layer", "head")


def _rows_of(rows: pd.DataFrame, shown: ShownMeasure) -> pd.DataFrame:
    chosen = rows[(rows["measure"] == shown.measure) & (rows["quantity"] == shown.quantity)]
    if shown.layers == "last" and chosen["layer"].notna().any():
        chosen = chosen[chosen["layer"] == chosen["layer"].max()]
    lines = [name for name in chosen.columns if name not in (*_PLACES, *_VALUES)]
    if shown.layers == "best":
        means = chosen.groupby([*lines, "layer"], sort=False, dropna=False)["one"].transform("mean")
        chosen = chosen.assign(mean=means).sort_values("mean", ascending=False, kind="stable")
        best = chosen.drop_duplicates(lines)[[*lines, "layer"]]
        chosen = chosen.drop(columns="mean").merge(best, on=[*lines, "layer"])
    grouped = chosen.groupby([*lines, "index"], sort=False, dropna=False)
    return grouped[["one", "rounding"]].mean().reset_index().assign(shown=shown.name)


def shown_changes(rows: pd.DataFrame) -> pd.DataFrame:
    """`changes.csv`, from the rows of `probe_rows`: for each condition and shown measure, whether
    it changes with length.

    `from_length` and `to_length` are those of the largest change, `change` is its size (the end as
    a multiple of the start where `is_ratio` is `yes`), with an interval that holds for all pairs
    of lengths together; empty where nothing changes. `said` is the verdict in words.
    """
    frame = shown_rows(rows)
    axes = [name for name in frame.columns if name not in (*_VALUES, *OF_LINE, "shown")]
    said = []
    for keys, of_condition in frame.groupby([*axes, "shown"], sort=False, dropna=False):
        shown = next(one for one in SHOWN if one.name == keys[-1])
        found = _change_of(of_condition, shown)
        of_leg: tuple[object, ...] = (None,) * 6
        if (leg := found.largest) is not None:
            ratio = "yes" if leg.is_ratio else "no"
            of_leg = (leg.start.length, leg.end.length, leg.change, leg.low, leg.high, ratio)
        where = (*keys[:-1], shown.measure, shown.quantity)
        said.append((*where, found.rows, *of_leg, found.words))
    return pd.DataFrame(said, columns=[*axes, *_CHANGES], dtype=object)


_CHANGES = (
    *("measure", "quantity", "rows", "from_length", "to_length"),
    *("change", "change_low", "change_high", "is_ratio", "said"),
)


def _change_of(rows: pd.DataFrame, shown: ShownMeasure) -> MeasureChange:
    """What is said of one shown measure under one condition."""
    if shown.measure == COUNTER:
        return MeasureChange((), "fitted on all rows together: no verdict", 0)
    lengths = []
    for length in sorted(set(rows["length"])):
        known = rows[rows["length"] == length].dropna(subset=["one"])
        rounding = known["rounding"].mean()
        lengths.append(
            MeasureAtLength(
                int(length),
                dict(zip(known["index"].astype(int), known["one"].astype(float), strict=True)),
                None if pd.isna(rounding) else float(rounding),
            )
        )
    return change_with_length(lengths, is_ratio=shown.is_log)
