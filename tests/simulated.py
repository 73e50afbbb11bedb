"""Curves of simulated answers on the lines of a built-in task."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from eyechart.harness.analysis.curve import Curve, Floats
from eyechart.harness.spec import Line, line_start, lines_of

LENGTHS = (5, 7, 10, 15, 22, 33, 50, 75, 110, 160, 240, 350, 500)
LINES = tuple(lines_of(LENGTHS, "bands"))
_START = line_start(0, "simulated")


def logistic(crossing: float, slope: float = 3.0, lapse: float = 0.0) -> Callable[[Floats], Floats]:
    """Accuracy over length: half of the ceiling at `crossing`."""
    return lambda lengths: (1 - lapse) / (1 + (lengths / crossing) ** slope)


def simulated(
    accuracy: Callable[[Floats], Floats],
    n: int | Mapping[Line, int],
    seed: int = 0,
    all_lines: Sequence[Line] = LINES,
) -> Curve:
    """Independent answers; `n` on each line, or on each of the named lines."""
    counts = (
        dict.fromkeys(all_lines, n) if isinstance(n, int) else {k: v for k, v in n.items() if v}
    )
    rows = max(counts.values())
    lengths = np.array(
        [[line.length_of(index, _START) for line in all_lines] for index in range(rows)], float
    )
    right = np.random.default_rng(seed).random(lengths.shape) < accuracy(lengths)
    used = [place for place, line in enumerate(all_lines) if line in counts]
    lengths, right = lengths[:, used], right[:, used]
    lines = tuple(all_lines[place] for place in used)
    scored = np.arange(rows)[:, None] < np.array([counts[line] for line in lines])
    return Curve(
        lines,
        np.where(scored, right, False).astype(float),
        scored.astype(float),
        np.where(scored, lengths, np.nan),
    )
