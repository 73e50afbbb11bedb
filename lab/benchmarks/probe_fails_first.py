"""Makes the published table of what fails first. It reads the folders of runs and of their probes.

    python lab/benchmarks/probe_fails_first.py RESULTS… > results/laboratory/fails_first.csv

RESULTS is a folder that has `runs/` and `probes/`. A row for each model, condition, share and line:
the share with its 95 % interval over `n` rows, or pairs of rows; `holds`, the length to which the
share holds, with its interval, as `bench figure first` says it; and `unknown_from`, the first line
with too few rows to show that an answer can be read.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from pathlib import Path

import eyechart
from eyechart_lab.probe.fails_first import falling_shares
from eyechart_lab.probe.readout import READOUT
from eyechart_lab.probe.shown_measures import rows_with
from eyechart_lab.probe.table import probe_rows

COLUMNS = (
    *("model", "task", "condition", "share", "length", "value", "low", "high", "n"),
    *("holds", "holds_low", "holds_high", "unknown_from"),
)


def rows(results: Path) -> Iterator[tuple[object, ...]]:
    """The rows of all runs that have a probe with what can be read at the end."""
    for probe in sorted((results / "probes").rglob("probe.csv")):
        folder = probe.parent
        measured = probe_rows(folder)
        run = eyechart.load_run(results / "runs" / folder.relative_to(results / "probes"))
        for condition, judged in run.judged.conditions.items():
            inside = rows_with(measured, condition)
            if not (inside["measure"] == READOUT).any():
                continue
            for share in falling_shares(judged, inside):
                holds = (share.length or "", *share.ends, share.unknown_from or "")
                for line in share.lines:
                    values = (f"{one:.4g}" for one in (line.value, line.low, line.high))
                    yield (
                        *(run.model, run.task, condition.label, share.name),
                        *(line.length, *values, line.n),
                        *holds,
                    )


def main() -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(COLUMNS)
    for results in map(Path, sys.argv[1:]):
        writer.writerows(rows(results))


if __name__ == "__main__":
    main()
