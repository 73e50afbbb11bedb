"""Whether runs find the effective length of a model whose accuracy is measured at every length.

    python -m tests.benchmarks.every_length [--task NAME[,NAME]] [--samples 40] [--step 5]
        [--full] [--out FOLDER]

The embedded model answers 40 samples at every length of each built-in task under its default
conditions; beyond 100 symbols only every `--step`-th length. Another run with another seed, and so
with other rows, is adaptive, or with `--full` of the task's usual lines and samples. The table
compares both: an interval should hold the true effective length where the accuracy has a single
threshold, and the run should say so where it has none.

The true length is where the falling accuracies of greatest likelihood fall below the threshold. It
has an interval too, from answers drawn from those accuracies. With `--out` a run that was stopped
continues.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import numpy as np

from eyechart.harness.analysis.length.curve import Curve, Floats
from eyechart.harness.analysis.length.effective_length import effective_length
from eyechart.harness.analysis.length.interval import Span, span_text
from eyechart.harness.analysis.samples.judged_run import read_run
from eyechart.harness.settings.judging import THRESHOLD
from eyechart.harness.spec import Condition
from eyechart.harness.task.catalogue import built_in_files, open_task
from tests.benchmarks.measure import environment, show
from tests.curves import falling_fit

EVERY_TO = 100
TRUTH_SEED, FOUND_SEED = 0, 1
_DRAWS = 500
_FEW = 10
"""Draws of the tested length, which is not needed."""


@dataclass(frozen=True, slots=True)
class Truth:
    """The effective length of the curve that was measured at every length."""

    length: float
    """The longest length that reaches the threshold; 0 or infinite outside the range asked."""
    low: float
    high: float
    one_threshold: bool

    def agrees(self, interval: Span) -> bool:
        """Whether an interval meets that of the truth."""
        low, high = interval
        longest = np.inf if high.sign == ">" else high.length
        shortest = 0.0 if low.sign == "<" else low.length
        return shortest <= self.high and self.low <= longest

    def __str__(self) -> str:
        numbers = (f"{number:g}" for number in (self.length, self.low, self.high))
        return "{} ({} to {})".format(*numbers)


def truth_of(curve: Curve) -> Truth:
    """The truth of a curve that was asked at every length."""
    lengths, answered = curve.lengths, curve.n
    correct = curve.correct.sum(axis=0)
    best = falling_fit(correct[None], answered[None])[0]
    drawn = np.random.default_rng(0).binomial(
        answered.astype(np.int64), np.clip(best, 0, 1), (_DRAWS, len(lengths))
    )
    ends = _reached(lengths, np.array([falling_fit(one[None], answered[None])[0] for one in drawn]))
    low, high = np.quantile(ends, (0.025, 0.975), method="inverted_cdf")
    single = effective_length(curve, resamples=_FEW).one_threshold
    return Truth(float(_reached(lengths, best[None])[0]), float(low), float(high), single)


def _reached(lengths: Floats, accuracies: Floats) -> Floats:
    """The longest length at which falling accuracies reach the threshold; (D, L) to (D,)."""
    count = (accuracies >= THRESHOLD).sum(axis=1)
    ends = np.concatenate([[0.0], lengths[:-1], [np.inf]])
    reached: Floats = ends[count]
    return reached


def exact_lengths(nominal: Sequence[int], step: int) -> list[int]:
    """Every length of a task's range, and every `step`-th beyond `EVERY_TO`."""
    shortest, longest = min(nominal), max(nominal)
    every = list(range(shortest, min(longest, EVERY_TO) + 1))
    return every + list(range(max(shortest, EVERY_TO) + step, longest + 1, step))


def run(out: Path, *options: str) -> dict[Condition, Curve]:
    """The curves of one run of the embedded model, through the command that users give.

    Raises:
        SystemExit: the command failed.
    """
    command = [
        sys.executable,
        "-m",
        "eyechart.harness",
        "run",
        "--model",
        "tiny",
        "--out",
        str(out),
    ]
    subprocess.run([*command, *options], env=environment(), check=True, stdout=subprocess.DEVNULL)
    (manifest,) = out.glob("runs/**/manifest.json")
    judged = read_run(manifest.parent)
    return {
        condition: one.curve
        for condition, one in judged.conditions.items()
        if one.curve is not None
    }


def compare(task: str, folder: Path, given: argparse.Namespace) -> Iterator[list[str]]:
    """The rows of one task, a condition each."""
    spec = open_task(task, built_in_files()[task]).spec
    exact = exact_lengths(spec.lengths or [], given.step)
    truths = run(
        folder / "every" / task,
        *("--task", task, "--samples", str(given.samples), "--seed", str(TRUTH_SEED)),
        *("--lengths", ",".join(map(str, exact))),
    )
    how = [] if given.full else ["--adaptive"]
    found = run(folder / "found" / task, "--task", task, "--seed", str(FOUND_SEED), *how)
    for condition, curve in found.items():
        truth, estimate = truth_of(truths[condition]), effective_length(curve)
        if truth.one_threshold and estimate.one_threshold:
            verdict = "holds" if truth.agrees(estimate.length_ci) else "misses"
        elif estimate.one_threshold:
            verdict = "not said"
        else:
            verdict = "falsely said" if truth.one_threshold else "said"
        yield [
            task,
            condition.label,
            str(truth),
            "yes" if truth.one_threshold else "no",
            str(estimate.length),
            span_text(estimate.length_ci),
            "yes" if estimate.one_threshold else "no",
            f"{int(curve.n.sum()):,}",
            verdict,
        ]


COLUMNS = (
    *("task", "condition", "true length", "one threshold", "found", "95 % interval", "says one"),
    *("requests", "verdict"),
)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--task", help="names with commas between; default: all that have lengths")
    parser.add_argument("--samples", type=int, default=40, help="at each length (40)")
    parser.add_argument("--step", type=int, default=5, help=f"of lengths beyond {EVERY_TO} (5)")
    parser.add_argument("--full", action="store_true", help="finds the length by a full run")
    parser.add_argument("--out", type=Path, help="folder of the runs; default: a temporary one")
    given = parser.parse_args()
    known = [
        name
        for name, path in built_in_files().items()
        if len(open_task(name, path).spec.lengths or []) > 1
    ]
    tasks = given.task.split(",") if given.task else known
    unknown = [task for task in tasks if task not in known]
    if unknown:
        parser.error(f"unknown tasks {', '.join(unknown)}; known are {', '.join(known)}")
    rows: list[list[str]] = []
    with tempfile.TemporaryDirectory() as scratch:
        for task in tasks:
            started = perf_counter()
            rows += compare(task, given.out or Path(scratch), given)
            print(f"{task}: {perf_counter() - started:.0f} s", file=sys.stderr, flush=True)
            show(COLUMNS, [row for row in rows if row[0] == task])
    if len(tasks) > 1:
        show(COLUMNS, rows)
    counts = Counter(row[-1] for row in rows)
    print(", ".join(f"{verdict}: {count}" for verdict, count in counts.items()))


if __name__ == "__main__":
    main()
