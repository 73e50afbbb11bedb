"""Add up the right answers of several seeds."""

from __future__ import annotations

from collections import Counter
from typing import Any

import typer

from eyechart.harness.cli.documents import print_document
from eyechart.harness.cli.parsing.options import JsonOption, RunsArgument, examples
from eyechart.harness.cli.parsing.settings import Verb
from eyechart.harness.cli.tables.layout import Column, table
from eyechart.harness.cli.terminal import show
from eyechart.harness.errors import UsageError

app = typer.Typer(rich_markup_mode=None)


@app.command(cls=Verb, epilog=examples("bench pooled 'results/runs/tiny/counting/ones@1-*'"))
def pooled(runs: RunsArgument, *, as_json: JsonOption = False) -> None:
    """Add up the right answers of a model to a task with several seeds, at each length, and give
    the 95 % interval of their share. All conditions are together.
    """
    from eyechart.harness.analysis import read_run, wilson  # noqa: PLC0415  slow

    judged = [read_run(folder) for folder in runs]
    if len({(run.manifest.model, run.manifest.task) for run in judged}) > 1:
        raise UsageError("these runs are not all of one model and one task")
    if len({run.manifest.settings.seed for run in judged}) < len(judged):
        raise UsageError("two of these runs have the same seed, and so the same rows")
    scored, correct = Counter[int](), Counter[int]()
    for run in judged:
        for condition in run.conditions.values():
            for length, n, right in condition.cells[["length", "n", "correct"]].to_numpy(int):
                scored[int(length)] += int(n)
                correct[int(length)] += int(right)
    rows = [
        {"length": length, "n": n, "correct": correct[length], "ci": wilson(correct[length], n)}
        for length, n in sorted(scored.items())
    ]
    if as_json:
        print_document({"rows": rows})
    else:
        names = ("length", "n", "correct", "ci")
        show(table([Column([name], [_text(row[name]) for row in rows]) for name in names]))


def _text(value: Any) -> str:
    if isinstance(value, tuple):
        return " to ".join(f"{100 * end:.0f} %" for end in value)
    return "" if value is None else str(value)
