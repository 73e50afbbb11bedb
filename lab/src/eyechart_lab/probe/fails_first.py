"""What fails first as rows grow: the answer, the order of answers, what can be read of the answer
from the states at the end, or the distance of those states for n and n + 1 symbols.

Each is a share that falls with length. The length to which it holds comes from the same falling
curve as an effective length. One fails before another where the intervals of these lengths do not
meet; nothing else is said.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from eyechart.harness.analysis import (
    Bound,
    JudgedCondition,
    Span,
    curve,
    fit,
    named_length,
    span_text,
    wilson,
)
from eyechart.harness.spec import LINE as OF_LINE
from eyechart.harness.spec import Line
from eyechart_lab.probe.measures.readout import LEAST

RIGHT, ORDERED, READ, APART = SHARES = (
    "answer right",
    "order kept",
    "read at the end",
    "n, n + 1 apart",
)
"""What may fail; the names of the curves of the picture."""
_FEW_LINES = 2


@dataclass(frozen=True, slots=True)
class ShareAtLength:
    """One of `SHARES` at one line."""

    length: int
    value: float
    low: float
    high: float
    """95 % interval, with rows as the unit."""
    n: int


@dataclass(frozen=True, slots=True)
class FallingShare:
    """One of `SHARES` over length."""

    name: str
    lines: tuple[ShareAtLength, ...]
    length: Bound | None
    """To which length it holds; `None` where that is not known."""
    ends: Span
    unknown_from: int | None = None
    """The first line at which there are too few rows to show that an answer can be read."""

    @property
    def words(self) -> str:
        """`answer right 38 (34 to 40)`."""
        said = f"{self.name} {self.length or 'not known'}"
        if self.length is None or self.length.sign == "=":
            said += f" ({span_text(self.ends)})"
        if self.unknown_from is not None:
            said += f" (too few rows to tell from {self.unknown_from:,} on)"
        return said

    def is_before(self, other: FallingShare) -> bool:
        """Whether it surely fails before another share does."""
        high, low = self.ends[1].at_most, other.ends[0].at_least
        return high is not None and low is not None and high < low


def falling_shares(judged: JudgedCondition, rows: pd.DataFrame) -> list[FallingShare]:
    """The shares of one condition: of the replies of a run, and of the rows of `probe_rows` of the
    same model and condition. Those that were not measured are missing.
    """
    threshold = judged.run.settings.threshold
    found = [*_of_replies(judged)]
    read = rows[(rows["measure"] == "readout") & (rows["quantity"] == "best_readable")]
    control = rows[(rows["measure"] == "readout") & (rows["quantity"] == "best_control")]
    if len(read):
        known, unknown_from = _where_known(read, control, threshold)
        found.append(_of_rows(READ, known, threshold, unknown_from))
    apart = rows[(rows["measure"] == "collapse") & (rows["quantity"] == "final_relative_end")]
    apart = apart.dropna(subset=["one", "rounding"])
    if len(apart):
        beyond = apart.assign(one=(apart["one"] > apart["rounding"]).astype(float))
        found.append(_of_rows(APART, beyond, threshold))
    return found


def first_to_fail(shares: Sequence[FallingShare]) -> str:
    """A sentence that says what fails first; empty where there are less than two shares."""
    if len(shares) < 2:  # noqa: PLR2004  one alone has no first
        return ""
    held = "; ".join(share.words for share in shares)
    for share in shares:
        if all(share.is_before(other) for other in shares if other is not share):
            return f"'{share.name}' fails first. To which length each holds: {held}."
    later = [one for one in shares if any(other.is_before(one) for other in shares)]
    open_ = " or ".join(f"'{one.name}'" for one in shares if one not in later)
    return f"Not known which fails first, {open_}. To which length each holds: {held}."


def _of_replies(judged: JudgedCondition) -> Iterator[FallingShare]:
    """Right answers, and the order of answers, of a run."""
    cells = judged.scored_cells
    estimate = judged.effective_length()
    if estimate is not None:
        lines = [
            ShareAtLength(
                int(row["length"]), row["accuracy"], row["ci_low"], row["ci_high"], int(row["n"])
            )
            for row in cells.to_dict("records")
        ]
        yield FallingShare(RIGHT, tuple(lines), estimate.length, estimate.length_ci)
    scored, order = judged.scored, judged.order
    if scored is None or order is None:
        return
    lines = [
        ShareAtLength(scored.lines[place].length, line.share, *line.share_ci, line.pairs)
        for place, line in order.lines.items()
        if line.share == line.share
    ]
    yield FallingShare(ORDERED, tuple(lines), order.apart.length, order.apart.length_ci)


def _where_known(
    read: pd.DataFrame, control: pd.DataFrame, threshold: float
) -> tuple[pd.DataFrame, int | None]:
    """The rows of lines up to the first at which too little is read although so many rows could
    not show more: there random directions in the states are read too rarely as well.
    """
    could = control.groupby("length")["one"].mean()
    for length, value in read.groupby("length")["one"].mean().sort_index().items():
        if value < threshold and could.get(length, 0.0) < threshold:
            return read[read["length"] < length], int(str(length))
    return read, None


def _of_rows(
    name: str, rows: pd.DataFrame, threshold: float, unknown_from: int | None = None
) -> FallingShare:
    """A share of which each row of `probe_rows` has a 0 or a 1."""
    numbers = rows[[*OF_LINE, "symbols", "index"]].to_numpy(int)
    ones = rows["one"].to_numpy(float)
    lines = sorted({Line(*line) for line in numbers[:, :3].tolist()})
    places = np.array([lines.index(Line(*line)) for line in numbers[:, :3].tolist()], int)
    shares = []
    for place, line in enumerate(lines):
        n, right = int((places == place).sum()), float(ones[places == place].sum())
        interval = wilson(right, n) or (0.0, 1.0)
        shares.append(ShareAtLength(line.length, right / n, *interval, n))
    fitted = None
    if len(lines) >= _FEW_LINES and min(share.n for share in shares) >= LEAST:
        of_rows = curve(numbers[:, 3], numbers[:, 4], ones, lines=lines, places=places)
        fitted = fit(of_rows, threshold)
    shortest = min((line.low for line in lines), default=0)
    longest = max((line.high for line in lines), default=0)
    found = named_length(fitted, float(shortest), float(longest))
    return FallingShare(name, tuple(shares), found.length, found.length_ci, unknown_from)
