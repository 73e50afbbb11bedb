"""The command that a user may want next."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from harness.analysis.judged_run import JudgedRun


def after_runs(runs: Sequence[JudgedRun]) -> str:
    """`next: ` and a complete command about `runs`, of which there is at least one.

    An incomplete run is continued; a repeat is compared with its run, conditions of one run and
    runs of one task with each other; else samples are shown, or a page is made.
    """
    for run in runs:
        if run.missing and (command := _last_command(run)):
            return f"next: {command}"
    first, *others = runs
    if first.manifest.repeat:
        return _next("compare", first.folder.parents[1], first.folder)
    if others:
        tasks = {(run.manifest.task, run.manifest.task_digest) for run in runs}
        return _next("compare", *(run.folder for run in runs)) if len(tasks) == 1 else _page(runs)
    if axis := _axis(first):
        return _next("compare", first.folder, "--axis", axis)
    if first.cells["incorrect"].any():
        return _next("samples", first.folder, "--outcome", "incorrect")
    return _page(runs)


def after_comparison(runs: Sequence[JudgedRun]) -> list[str]:
    """`next: ` and the command that makes a page of those that are no repeats, if there are any."""
    kept = [run for run in runs if not run.manifest.repeat]
    return [_page(kept)] if kept else []


def _page(runs: Sequence[JudgedRun]) -> str:
    return _next("report", *(run.folder for run in runs), "-o", "report.html")


def _next(*words: object) -> str:
    return f"next: bench {shlex.join(map(str, words))}"


def _last_command(run: JudgedRun) -> str:
    """The last command of a run; empty where it was not asked on the command line."""
    commands = [command for command in run.manifest.commands if command.startswith("bench run ")]
    return commands[-1] if commands else ""


def _axis(run: JudgedRun) -> str:
    """An axis with the first two of its values that the run has under equal conditions; empty if
    there is none.
    """
    for axis in run.spec.axes:
        for condition in run.conditions:
            for other in run.conditions:
                values = condition[axis], other[axis]
                if values[0] != values[1] and condition.without(axis) == other.without(axis):
                    return f"{axis}={','.join(values)}"
    return ""
