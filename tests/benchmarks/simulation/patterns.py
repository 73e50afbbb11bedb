"""How often answers of a run are said to be in reverse order, heaped on tens, constant, or out of
order between lines that are in order, which none of these observers is.

Runs of two conditions of the observers of `apart`: full ones with 20 rows a line, and adaptive ones
that stop at an interval of 0.75 octaves. A run takes about 0.3 s on one core.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from eyechart.harness.analysis.adaptive.adaptive import Aim
from eyechart.harness.analysis.length.limits import ScoredSamples
from eyechart.harness.analysis.order.order import PATTERNS, order
from tests.benchmarks.simulation.adaptive import asked, counts_at_the_end
from tests.benchmarks.simulation.apart import BLIND, OBSERVERS
from tests.benchmarks.simulation.table import Column, Row, Simulation, Spread
from tests.simulated import counted, some_of

SAMPLES, CONDITIONS = 20, 2
MOST_SAMPLES = 200
AIM = Aim(0.75, most_samples=MOST_SAMPLES)
HAVE = {
    "reversed": {"turns back at 40"},
    "heaped": {
        *("never above 100", "heaped on tens", "guesses on tens", "one of three"),
        *("nearly always 100", "always 100"),
    },
    "constant": {"never above 100", "nearly always 100", "always 100", "turns back at 40"},
    "broken": set[str](),
}
"""Pattern -> the observers some of whose lines have it."""


def measure(name: str, runs: int) -> Row:
    """One row of the table."""
    observer = {**OBSERVERS, **BLIND}[name]
    claims = dict.fromkeys((*PATTERNS, "false", "adaptive"), 0)
    for run in range(runs):
        seeds = range(CONDITIONS * run, CONDITIONS * (run + 1))
        named = _patterns([counted(observer, SAMPLES, seed=seed) for seed in seeds])
        for pattern in named:
            claims[pattern] += 1
        claims["false"] += any(name not in HAVE[pattern] for pattern in named)
        every = [counted(observer, MOST_SAMPLES, seed=seed) for seed in seeds]
        named = _patterns([_as_adaptive(one) for one in every])
        claims["adaptive"] += any(name not in HAVE[pattern] for pattern in named)
    shares = {pattern: claimed / runs for pattern, claimed in claims.items()}
    return {"shape": name, **shares, "runs": runs}


def _patterns(conditions: Sequence[ScoredSamples]) -> set[str]:
    """The patterns that some line of a run has."""
    named = set()
    for samples in conditions:
        found = order(samples, len(conditions))
        assert found is not None
        named |= {line.pattern for line in found.lines.values()} - {""}
    return named


def _as_adaptive(every: ScoredSamples) -> ScoredSamples:
    """The samples that an adaptive run asks of these."""
    shape = (MOST_SAMPLES, len(every.lines))
    right, lengths = every.right.reshape(shape).astype(float), every.lengths.reshape(shape)
    (counts,) = counts_at_the_end(partial(asked, right, lengths), [AIM])
    return some_of(every, every.indexes < counts[every.places])


def rows(_: Sequence[str], runs: int, spread: Spread) -> Iterator[Row]:
    """One row for each observer."""
    yield from spread(partial(measure, runs=runs), (*OBSERVERS, *BLIND))


SIMULATION = Simulation(
    "how often a line of a run is said to have a pattern",
    (
        Column("shape", "answers"),
        *(Column(pattern, pattern, ".3f") for pattern in PATTERNS),
        Column("false", "a false one", ".3f"),
        Column("adaptive", "adaptive: a false one", ".3f"),
    ),
    rows,
)
