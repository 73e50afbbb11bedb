"""Simulated answers on the lines of a built-in task."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from eyechart.harness.analysis.length.curve import Curve, Floats
from eyechart.harness.analysis.length.limits import Numbers, ScoredSamples
from eyechart.harness.score.outcomes import Outcome
from eyechart.harness.score.readings import Recount
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


Observer = Callable[[Floats, np.random.Generator], Floats]
"""Targets, one row for each row of symbols -> answers; NaN for a reply without one."""


def counted(
    observer: Observer,
    n: int,
    seed: int = 0,
    *,
    lines: Sequence[Line] = LINES,
    targets: Callable[[Floats, np.random.Generator], Floats] = lambda lengths, _: lengths,
    unread: Outcome = Outcome.UNPARSED,
    own_rows: bool = False,
) -> ScoredSamples:
    """Answers of a model that counts `n` rows on each line; `targets` of their lengths. Replies
    without an answer have the outcome `unread`.
    """
    rng = np.random.default_rng(seed)
    lengths = np.array([[line.length_of(row, _START) for line in lines] for row in range(n)], float)
    wanted = targets(lengths, rng)
    answers = observer(wanted, rng)
    read = np.where(answers == wanted, Outcome.CORRECT.place, Outcome.INCORRECT.place)
    not_read = Recount.UNREAD if unread is Outcome.UNPARSED else Recount.LEFT_OUT
    indexes, places = np.indices(lengths.shape)
    return ScoredSamples(
        lines,
        places.ravel(),
        indexes.ravel(),
        lengths.ravel().astype(int),
        np.where(np.isnan(answers), unread.place, read).ravel(),
        np.where(np.isnan(answers), not_read, Recount.AS_JUDGED).ravel(),
        has_same_rows=not own_rows,
        own_rows=own_rows,
        numbers=Numbers(wanted.ravel(), answers.ravel()),
    )


def some_of(samples: ScoredSamples, kept: npt.NDArray[np.bool_]) -> ScoredSamples:
    """The samples for which `kept` is true; `kept` has shape (N,)."""
    numbers = samples.numbers
    assert numbers is not None
    return replace(
        samples,
        places=samples.places[kept],
        indexes=samples.indexes[kept],
        lengths=samples.lengths[kept],
        outcomes=samples.outcomes[kept],
        readings=samples.readings[kept],
        numbers=Numbers(numbers.targets[kept], numbers.answers[kept]),
    )
