"""Makes a published table from runs and probes: to which length answers are right and in order, and
to which length the states of n and n + 1 differ.

    python lab/benchmarks/probe_order.py RESULTS… > results/laboratory/order.csv

RESULTS is a folder that has `runs/` and `probes/`. A row for each model, condition and line: the
shares of right answers and of pairs in the right order with the 95 % interval of the latter, and
the mean distance of the states for n and n + 1 symbols at the end, with that of rounding alone.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

_LINE = ["model", "task", "length"]
_ORDER = ["ordered", "ordered_ci_low", "ordered_ci_high"]


def tables(results: Path) -> Iterator[pd.DataFrame]:
    """A table for each probe with the measure collapse, joined with its run."""
    for probe in sorted((results / "probes").rglob("probe.csv")):
        measured = pd.read_csv(probe).query("quantity == 'final_relative_end'")
        run = results / "runs" / probe.parent.relative_to(results / "probes")
        if measured.empty or not (run / "table.csv").exists():
            continue
        inside = measured[[*_LINE, "value", "rounding", "n"]].rename(
            columns={"value": "distance", "n": "probed"}
        )
        right = pd.read_csv(run / "table.csv")[[*_LINE, "n", "accuracy"]]
        order = pd.read_csv(run / "diagnosis.csv")[[*_LINE, *_ORDER]]
        yield right.merge(order, on=_LINE).merge(inside, on=_LINE)


def main() -> None:
    whole = pd.concat([one for results in sys.argv[1:] for one in tables(Path(results))])
    print(whole.to_csv(index=False, float_format="%.4g", lineterminator="\n"), end="")


if __name__ == "__main__":
    main()
