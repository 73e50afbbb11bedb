"""Why the state at the last symbol moves more again in long rows: the distance at every length.

    python -m lab.benchmarks.probe_rise FOLDER --rows 1 > results/smollm2/symbol_distance.csv

FOLDER is a model of Hugging Face. In a causal model the state at symbol n of a long row is that of
the row of n symbols, so one pass over a row of 2,100 ones gives the distance of n and n + 1 for all
n. The same is done under interventions: without the text before the row, but for its first 4
tokens, and with only the last 512 ones; with that text, and only the last 512 ones; with positions
divided by 2; with sharper attention. One line for each intervention, layer and band of n:
the median and two deciles of the largest difference as a share of the largest number.
`between_rows` is the median standard deviation of its logarithm over rows, which differ in their
label; empty for one row. Needs torch and transformers.
"""

from __future__ import annotations

import argparse
import csv
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eyechart.harness.plan.plan import Plan, make_sample, plan
from eyechart.harness.spec import Line
from eyechart.harness.task.catalogue import built_in_files, open_task
from eyechart.providers.base import ModelSettings
from eyechart_lab.probe.changed import open_inside as open_changed
from eyechart_lab.probe.hf.inside import open_inside
from eyechart_lab.probe.inside import Array, Positions, Wants, Watcher
from eyechart_lab.probe.places import places_of, symbol_spans

LONGEST = 2_100
EDGES = (5, 10, 20, 50, 100, 200, 400, 600, 1000, 1400, 1700, LONGEST)
EARLY = 5
"""The stream after so many blocks is shown beside the final state."""
INTERVENTIONS = (
    "none",
    "window=512:4",
    "window=512:{text}",
    "rope_scaling=linear:2",
    "log_n=512",
)
"""`{text}`: the number of tokens before the row."""
Floats = NDArray[Any]


class _Row(Watcher):
    """States at the symbols of a row."""

    def __init__(self, row: list[int]) -> None:
        self.wants: Wants = {"residual": row, "final": row}
        self.states: dict[str, Floats] = {}

    def residual(self, layer: int, at: Positions, states: Array) -> None:
        del at
        if layer == EARLY:
            self.states[str(layer)] = states.copy()

    def final(self, at: Positions, states: Array) -> None:
        del at
        self.states["final"] = states.copy()


def apart(states: Floats) -> Floats:
    """(n - 1,): the distance of each state and the next one."""
    sizes = np.abs(states).max(axis=1)
    most = np.abs(np.diff(states, axis=0)).max(axis=1)
    found: Floats = most / np.maximum(sizes[1:], sizes[:-1])
    return found


def distances(folder: Path, planned: Plan, change: str) -> tuple[str, dict[str, Floats]]:
    """The intervention, and (rows, n) distances by layer."""
    prompts = [
        make_sample(planned.task, planned.conditions[0], Line.exact(LONGEST), index, planned.seed)
        for index in range(planned.cell_size(planned.conditions[0], planned.lines[0]))
    ]
    plain = open_inside(ModelSettings(str(folder), device="cpu", api="chat"))
    places = [places_of(plain.tokens(one.prompt), symbol_spans(planned, one)) for one in prompts]
    change = change.format(text=max(one.row[0] for one in places if one is not None))
    inside = plain
    if change != "none":
        settings = ModelSettings(f"{change}/hf/{folder}", device="cpu", api="chat")
        inside = open_changed(settings)
    found: dict[str, list[Floats]] = {}
    for sample, place in zip(prompts, places, strict=True):
        assert place is not None
        watcher = _Row(list(place.ends))
        inside.forward(inside.tokens(sample.prompt).ids, watcher)
        for layer, states in watcher.states.items():
            found.setdefault(layer, []).append(apart(states.astype(float)))
    return change, {layer: np.stack(rows) for layer, rows in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path, help="folder of a model of Hugging Face")
    parser.add_argument("--rows", type=int, default=2)
    given = parser.parse_args()
    task = open_task("counting/ones", built_in_files()["counting/ones"], trial=False)
    axes = {"separator": ["none"], "strategy": ["direct"]}
    planned = plan(task, lengths=[LONGEST], samples=given.rows, axes=axes)
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(
        ("intervention", "layer", "from_n", "to_n", "rows", "median", "q10", "q90", "between_rows")
    )
    for name in INTERVENTIONS:
        change, layers = distances(given.model, planned, name)
        for layer, values in layers.items():
            for low, high in pairwise(EDGES):
                band = values[:, low - 1 : high - 1]
                numbers = [*np.quantile(band, [0.5, 0.1, 0.9])]
                if len(values) > 1:
                    numbers.append(np.median(np.log(band).std(axis=0, ddof=1)))
                shown = [f"{one:.3g}" for one in numbers] + [""] * (len(values) == 1)
                writer.writerow((change, layer, low, high - 1, len(values), *shown))
        sys.stdout.flush()


if __name__ == "__main__":
    main()
