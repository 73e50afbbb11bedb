"""Whether copies are nearer to their own rows than to rows with two neighbours exchanged.

`score.copies` says which rows these are. Of replies that know nothing of the row one half is
nearer, so the shares are those of a forced choice of two.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from eyechart.harness.analysis.length.curve import Floats, curve
from eyechart.harness.analysis.length.fit import Fit, fit
from eyechart.harness.analysis.length.interval import at_most, wilson
from eyechart.harness.analysis.length.limits import ScoredSamples
from eyechart.harness.analysis.order.apart import (
    CHANCE,
    FEWEST_LINES,
    ApartLength,
    limited,
    named_length,
)
from eyechart.harness.analysis.order.order import LEAST_ROWS, Order, OrderOfLine
from eyechart.harness.analysis.order.resolution import SHARE


def order_of_copies(samples: ScoredSamples) -> Order | None:
    """The shares of copies that are nearer to their rows, line by line, and the length to which
    three quarters are; `None` where no row has another one beside it.
    """
    if samples.copies is None or not (known := ~np.isnan(samples.copies.nearer)).any():
        return None
    lines = {}
    for place in sorted(set(samples.places[known].tolist()), key=samples.lines.__getitem__):
        here = known & (samples.places == place)
        lines[place] = _of_line(samples.copies.nearer[here], samples.indexes[here])
    lengths = samples.lengths[known].astype(float)
    ends = float(lengths.min()), float(lengths.max())
    found = _apart(samples, known, len(lines), ends)
    if not samples.set_aside.any():
        return Order(lines, found)
    others = known & ~samples.set_aside
    allowed = _apart(samples, others, len(lines), ends).length if others.any() else None
    return Order(lines, limited(found, allowed, ends[1], is_misread=bool(samples.misread.any())))


def _of_line(nearer: Floats, indexes: Floats) -> OrderOfLine:
    """Rows are the unit, with the mean of their draws: Wilson's interval, and a sign test."""
    _, row = np.unique(indexes, return_inverse=True)
    means = np.bincount(row, nearer) / np.bincount(row)
    more, less = int((means > CHANCE).sum()), int((means < CHANCE).sum())
    share = float(means.mean())
    is_known = len(means) >= LEAST_ROWS
    interval = wilson(share * len(means), len(means)) or (np.nan, np.nan)
    return OrderOfLine(
        share if is_known else np.nan,
        interval if is_known else (np.nan, np.nan),
        len(nearer),
        1 - at_most(more - 1, more + less, 0.5) if more else 1.0,
        None,
        "",
    )


def _apart(
    samples: ScoredSamples, kept: npt.NDArray[np.bool_], lines: int, ends: tuple[float, float]
) -> ApartLength:
    return named_length(None if lines < FEWEST_LINES else _fit(samples, kept), *ends)


def _fit(samples: ScoredSamples, kept: npt.NDArray[np.bool_]) -> Fit:
    assert samples.copies is not None
    nearer = curve(
        samples.lengths[kept],
        samples.indexes[kept],
        samples.copies.nearer[kept],
        lines=samples.lines,
        places=samples.places[kept],
        chances=np.full(int(kept.sum()), CHANCE),
        own_rows=samples.own_rows,
    )
    return fit(nearer, SHARE)
