"""`--repeat`: the samples of a complete run are asked again, by a run in its folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path

from harness.errors import IncompleteError
from harness.journal.answers import answered
from harness.journal.manifest import MANIFEST, read_manifest, repeat_folder
from harness.run.run_request import RunRequest
from harness.spec import line_start


def repeat_requests(requests: Sequence[RunRequest]) -> list[RunRequest]:
    """The same requests as repeats: each continues a repeat that is not complete, or begins one.

    Raises:
        IncompleteError: a run is not there or lacks samples; a line for each.
        JournalError: a run cannot be read, or its answers were to other prompts.
        TaskError: a sample cannot be made.
    """
    problems = [problem for request in requests if (problem := _problem(request))]
    if problems:
        raise IncompleteError(*problems)
    return [replace(request, repeat=_number(request.repeated)) for request in requests]


def _problem(request: RunRequest) -> str:
    """Why the run cannot be repeated; empty if it can."""
    folder, plan = request.repeated, request.plan
    remedy = "the same command without --repeat"
    if not (folder / MANIFEST).exists():
        return f"{request.name}: there is no run to repeat in {folder}; {remedy} makes it"
    answers = answered(folder, _say_nothing, plan.lines, line_start(plan.seed, plan.task.name))
    missing = sum(
        not (answers.covers(sample, sample.key) or answers.unsent.covers(sample, sample.key))
        for sample in plan
    )
    if not missing:
        return ""
    return (
        f"{request.name}: the run in {folder} lacks {missing:,} of {plan.size:,} samples, so it "
        f"cannot be repeated; {remedy} asks them"
    )


def _number(run: Path) -> int:
    """The first number whose repeat is not there or not complete."""
    return next(number for number in count(1) if not _is_complete(repeat_folder(run, number)))


def _is_complete(folder: Path) -> bool:
    if not (folder / MANIFEST).exists():
        return False
    manifest = read_manifest(folder)
    start = line_start(int(manifest.settings["seed"]), manifest.task)
    answers = answered(folder, _say_nothing, (cell.line for cell in manifest.cells), start)
    return all(
        answers.has(cell.key, index) or answers.unsent.has(cell.key, index)
        for cell in manifest.cells
        for index in range(cell.samples)
    )


def _say_nothing(_: str) -> None:
    """Unreadable lines are said by the command that asks or judges."""
