"""How long the analysis of a hundred curves takes: effective length, tested length, area.

    python -m tests.benchmarks.curves_time [--curves 100] [--samples 20]

The curves have the shapes of the simulations, and the lines of the built-in tasks. The time is that
of the processor, of which the analysis uses one core.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
from time import process_time

from eyechart.harness.analysis.length.effective_length import effective_length
from tests.benchmarks.measure import show
from tests.benchmarks.simulation.draws import CORRELATION, Setting, simulate
from tests.benchmarks.simulation.shapes import SHAPES

WANTED_S = 5.0
"""For a hundred curves."""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--curves", type=int, default=100)
    parser.add_argument("--samples", type=int, default=20)
    given = parser.parse_args()
    settings = [Setting(shape, CORRELATION, given.samples) for shape in SHAPES]
    curves = [
        simulate(settings[number % len(settings)], number)[1] for number in range(given.curves)
    ]
    effective_length(curves[0])  # the first call makes the prior of the curves
    times = []
    for curve in curves:
        started = process_time()
        effective_length(curve)
        times.append(process_time() - started)
    wanted = WANTED_S * given.curves / 100
    show(
        ["curves", "samples of a line", "s", "wanted, s", "longest, ms"],
        [
            [
                str(given.curves),
                str(given.samples),
                f"{sum(times):.2f}",
                f"{wanted:g}",
                f"{1000 * max(times):.0f}",
            ]
        ],
    )
    if sum(times) > wanted:
        raise SystemExit("slower than wanted")


if __name__ == "__main__":
    main()
