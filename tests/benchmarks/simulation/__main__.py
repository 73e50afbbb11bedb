"""Simulates runs of models whose accuracy is known at every length, and judges them as runs are.

    python -m tests.benchmarks.simulation
        coverage|ranges|right_further|equivalence|adaptive|early_line|unpaired|limits|drift|at_length|capped
        |chance|confidence|unequal|asked_pairs|ranked|gated|baselines|several_draws|dips|apart|patterns
        |copies|control|pieces|adaptive_pairs|lost
        [--runs 500] [--shape NAME,…] [--jobs 2] [--out results.csv] [--docs]

`--docs` renews a table in `results/simulations`, whose page says what its columns are. Each run has
a seed of its own, so any row can be simulated alone and comes out the same.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import multiprocessing
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter

from tests.benchmarks.simulation import (
    adaptive,
    adaptive_pairs,
    apart,
    asked_pairs,
    at_length,
    baselines,
    capped,
    chance,
    confidence,
    control,
    copies,
    coverage,
    dips,
    drift,
    early_line,
    equivalence,
    gated,
    limits,
    lost,
    patterns,
    pieces,
    ranges,
    ranked,
    right_further,
    several_draws,
    unequal,
    unpaired,
)
from tests.benchmarks.simulation.audited import MORE
from tests.benchmarks.simulation.shapes import SHAPES
from tests.benchmarks.simulation.table import (
    Row,
    Simulation,
    Spread,
    folded,
    lines,
    markdown,
    renew,
    write_cells,
    write_csv,
)

PAGE = Path(__file__).resolve().parents[3] / "results" / "simulations" / "README.md"
SIMULATIONS: Mapping[str, Simulation] = {
    "capped": capped.SIMULATION,
    "coverage": coverage.SIMULATION,
    "ranges": ranges.SIMULATION,
    "right_further": right_further.SIMULATION,
    "equivalence": equivalence.SIMULATION,
    "unequal": unequal.SIMULATION,
    "asked_pairs": asked_pairs.SIMULATION,
    "ranked": ranked.SIMULATION,
    "gated": gated.SIMULATION,
    "baselines": baselines.SIMULATION,
    "adaptive": adaptive.SIMULATION,
    "adaptive_pairs": adaptive_pairs.SIMULATION,
    "at_length": at_length.SIMULATION,
    "early_line": early_line.SIMULATION,
    "unpaired": unpaired.SIMULATION,
    "limits": limits.SIMULATION,
    "lost": lost.SIMULATION,
    "dips": dips.SIMULATION,
    "drift": drift.SIMULATION,
    "chance": chance.SIMULATION,
    "confidence": confidence.SIMULATION,
    "apart": apart.SIMULATION,
    "patterns": patterns.SIMULATION,
    "copies": copies.SIMULATION,
    "control": control.SIMULATION,
    "pieces": pieces.SIMULATION,
    "several_draws": several_draws.SIMULATION,
}


@contextmanager
def spread(jobs: int) -> Iterator[Spread]:
    """A `map` in this process, or in `jobs` others."""
    if jobs == 1:
        yield map
        return
    with multiprocessing.Pool(jobs) as pool:
        yield pool.imap


def main(
    simulations: Mapping[str, Simulation] = SIMULATIONS,
    program: str = "python -m tests.benchmarks.simulation",
    about: str | None = __doc__,
) -> None:
    """Runs the simulation that the command names."""
    parser = argparse.ArgumentParser(
        prog=program,
        description=about,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("simulation", choices=simulations)
    parser.add_argument("--runs", type=int, default=500, help="of each row (500)")
    parser.add_argument("--shape", help="names with “; ” between; default: all")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, help="a CSV file for the unrounded table")
    parser.add_argument("--docs", action="store_true", help=f"renews the table in {PAGE.name}")
    given = parser.parse_args()
    known = [*SHAPES, *MORE]
    shapes = given.shape.split("; ") if given.shape else known
    unknown = [shape for shape in shapes if shape not in known]
    if unknown:
        parser.error(f"unknown shapes {', '.join(unknown)}; known are {'; '.join(known)}")
    if given.docs and given.shape:
        parser.error("--docs needs all shapes")
    if given.docs and f"<!-- {given.simulation} -->" not in PAGE.read_text(encoding="utf-8"):
        parser.error(f"{PAGE.name} has no place for this table")
    simulation = simulations[given.simulation]
    started = perf_counter()
    done: list[Row] = []

    def noted(rows: Iterator[Row]) -> Iterator[Row]:
        for row in rows:
            done.append(row)
            yield row

    with spread(given.jobs) as mapper:
        for line in lines(simulation.columns, noted(simulation.rows(shapes, given.runs, mapper))):
            print(line, flush=True)
    command = f"{program} {given.simulation} --runs {given.runs}"
    title = f"{simulation.about[0].upper()}{simulation.about[1:]}; {given.runs} runs a row."
    cells = list(folded(simulation.columns, done))
    compact = "\n".join(markdown(cells))
    print(f"\n{title}\n\n{compact}\n\n{perf_counter() - started:.0f} s")
    if given.out:
        write_csv(given.out, simulation.columns, done)
    if given.docs:
        write_cells(PAGE.with_name(f"{given.simulation}.csv"), cells)
        renew(PAGE, given.simulation, f"{title}\n\n    {command}\n\n{compact}\n")


if __name__ == "__main__":
    main()
