"""How often answers of a run are said to be in reverse order, heaped on tens, constant, or out of
order between lines that are in order, which none of these observers is.

Runs of two conditions with 20 rows a line, of the observers of `apart`. A run takes about 0.06 s on
one core.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from eyechart.harness.analysis.order.order import PATTERNS, order
from tests.benchmarks.simulation.apart import BLIND, OBSERVERS
from tests.benchmarks.simulation.table import Column, Row, Simulation, Spread
from tests.simulated import counted

SAMPLES, CONDITIONS = 20, 2
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
    claims = dict.fromkeys((*PATTERNS, "false"), 0)
    for run in range(runs):
        named = set()
        for condition in range(CONDITIONS):
            seed = CONDITIONS * run + condition
            found = order(counted(observer, SAMPLES, seed=seed), CONDITIONS)
            assert found is not None
            named |= {line.pattern for line in found.lines.values()} - {""}
        for pattern in named:
            claims[pattern] += 1
        claims["false"] += any(name not in HAVE[pattern] for pattern in named)
    shares = {pattern: claimed / runs for pattern, claimed in claims.items()}
    return {"shape": name, **shares, "runs": runs}


def rows(_: Sequence[str], runs: int, spread: Spread) -> Iterator[Row]:
    """One row for each observer."""
    yield from spread(partial(measure, runs=runs), (*OBSERVERS, *BLIND))


SIMULATION = Simulation(
    "how often a line of a run is said to have a pattern",
    (
        Column("shape", "answers"),
        *(Column(pattern, pattern, ".3f") for pattern in PATTERNS),
        Column("false", "a false one", ".3f"),
    ),
    rows,
)
