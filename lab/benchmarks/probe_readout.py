"""The published tables of `bench probe --measure readout`, from the folders of probes.

    python lab/benchmarks/probe_readout.py PROBE… > results/laboratory/readout.csv

A row for each task, line and layer, with the mean over rows of each quantity in a column; what has
no layer stands in a row of its own, and of pairs that are patched their number.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd

_KEYS = ["model", "task", "length", "layer"]


def main() -> None:
    frames = []
    for folder in map(Path, sys.argv[1:]):
        table = pd.read_csv(folder / "probe.csv").query("measure == 'readout'")
        table["layer"] = table["layer"].fillna(-1).astype(int)
        wide = table.pivot_table(index=_KEYS, columns="quantity", values="value", sort=False)
        wide["rows"] = table.groupby(_KEYS)["n"].max()
        wide["pairs"] = table[table["quantity"] == "follows"].set_index(_KEYS)["n"]
        frames.append(wide)
    whole = pd.concat(frames).reset_index().sort_values(_KEYS)
    whole["layer"] = whole["layer"].astype(str).replace("-1", "")
    print(whole.to_csv(index=False, float_format="%.4g", lineterminator="\n"), end="")


if __name__ == "__main__":
    main()
