"""The values of a probe that the terminal and the page show: one for each condition and length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import pandas as pd

from eyechart.harness.satellites.probe.measures.collapse import LINE
from eyechart.harness.spec import Condition


@dataclass(frozen=True, slots=True)
class Shown:
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
    line: float | None = None
    """A value to compare with."""
    note: str = ""

    @property
    def name(self) -> str:
        """Its name in the column `shown`."""
        return f"{self.measure}.{self.quantity}"


SHOWN = (
    Shown(
        "answer",
        "probability",
        "Probability of the right answer",
        "probability",
        ("right", "answer"),
        is_share=True,
        note="If it is given at once, after the phrase that announces it.",
    ),
    Shown(
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
    Shown(
        "collapse",
        "final_relative_symbol",
        "Collapse: n and n + 1 symbols at the last symbol",
        "difference, share of size",
        ("n, n+1", "at symbol"),
        is_log=True,
        line=LINE,
        note="The same where the row ends.",
    ),
    Shown(
        "collapse",
        "final_equal_end_bfloat16",
        "Collapse: equal numbers in bfloat16",
        "share",
        ("equal in", "bfloat16"),
        note="Share of the numbers of the state at the end that are equal for n and n + 1 symbols "
        "in a pass that is rounded to bfloat16.",
    ),
    Shown(
        "squashing",
        "first_to_last",
        "Over-squashing: first tenth against the last",
        "ratio",
        ("first/", "last"),
        is_log=True,
        line=1.0,
        note="How much more the answer depends on the first tenth of the row than on the last one.",
    ),
    Shown(
        "attention",
        "sinks_0.3",
        "Attention sinks",
        "share of heads",
        ("sinks", "> 0.3"),
        is_share=True,
        note="Share of heads whose mean weight on the first token exceeds 0.3.",
    ),
    Shown(
        "attention",
        "largest_end",
        "Dispersion: largest weight at the end",
        "weight",
        ("largest", "weight"),
        layers="all",
        note="Mean of all heads.",
    ),
    Shown(
        "attention",
        "entropy_share",
        "Dispersion: entropy over the row",
        "share of the largest",
        ("entropy", "share"),
        layers="all",
        note="Mean of all heads; 1 where all tokens have the same weight.",
    ),
    Shown(
        "residual",
        "rank_one_distance",
        "Rank collapse: distance to rank one",
        "share of size",
        ("to rank", "one"),
        note="Of the row's states after the last layer; 0 where all are equal.",
    ),
    Shown(
        "residual",
        "effective_rank",
        "Rank collapse: effective rank",
        "rank",
        ("effective", "rank"),
        note="Of the row's states after the last layer.",
    ),
    Shown(
        "counter",
        "within_half",
        "The count in the states",
        "share",
        ("count", "readable"),
        layers="best",
        is_share=True,
        note="Share of the counts so far that a linear map reads off the states to within a half, "
        "in rows of at most this length, at the best layer.",
    ),
    Shown(
        "counter",
        "position_within_half",
        "The count from the position alone",
        "share",
        ("from", "position"),
        is_share=True,
        note="The same from the position in the row, for comparison.",
    ),
    Shown(
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
    Shown(
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


def shown_values(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of `probe.csv` that are shown, with a column `shown`; one for each condition and
    line. Of heads and layers the values are means, and so are `low` and `high`.
    """
    parts = [_values(frame, shown) for shown in SHOWN]
    return pd.concat(parts, ignore_index=True)


def _values(frame: pd.DataFrame, shown: Shown) -> pd.DataFrame:
    chosen = frame[(frame["measure"] == shown.measure) & (frame["quantity"] == shown.quantity)]
    if shown.layers == "last" and chosen["layer"].notna().any():
        chosen = chosen[chosen["layer"] == chosen["layer"].max()]
    places = ("measure", "quantity", "unit", "layer", "head", "value", "low", "high")
    keys = [name for name in chosen.columns if name not in places]
    if shown.layers == "best":
        chosen = chosen.sort_values("value", ascending=False).drop_duplicates(keys)
    means = chosen.groupby(keys, sort=False, dropna=False)[["value", "low", "high"]].mean()
    whole = dict.fromkeys(("length", "length_low", "length_high", "n"), int)
    return means.reset_index().assign(shown=shown.name).astype(whole)
