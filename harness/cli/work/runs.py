"""The work of `bench runs`."""

from __future__ import annotations

from pathlib import Path

from eyechart.harness.cli.documents import print_document
from eyechart.harness.cli.tables.lists import aligned
from eyechart.harness.cli.terminal import echo, say, warn
from eyechart.harness.errors import COMPLETE, INCOMPLETE
from eyechart.harness.face.listing import list_runs


def runs(out: Path, *, as_json: bool) -> int:
    """Prints a line for each run under `out`; returns the exit code."""
    unread: list[str] = []

    def note(problem: str) -> None:
        unread.append(problem)
        warn(problem)

    listed = list(list_runs(out, note))
    if as_json:
        print_document({"runs": [run.row() for run in listed]})
    elif listed:
        rows = [("model", "task", "answered", "updated", "folder")]
        rows += [
            (
                run.model,
                f"{run.task}@{run.task_version}",
                f"{run.answered:,} of {run.planned:,}" + (" recorded" if run.recorded else ""),
                run.updated.removesuffix("+00:00").replace("T", " ") or "-",
                str(run.folder),
            )
            for run in listed
        ]
        echo(*aligned(rows, right=(2,)))
    if not listed:
        say(f"no run under {out / 'runs'}")
    return INCOMPLETE if unread else COMPLETE
