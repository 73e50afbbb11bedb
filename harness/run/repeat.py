"""`--repeat`: a run in the folder of a complete run asks its samples again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path

from eyechart.harness.errors import IncompleteError
from eyechart.harness.journal.answers import answered
from eyechart.harness.journal.files import replace_file
from eyechart.harness.journal.manifest import MANIFEST, read_manifest, repeat_folder
from eyechart.harness.run.run_request import RunRequest
from eyechart.harness.spec import line_start
from eyechart.providers.naming import named, turned_on

_FINISHED = "finished"
"""Empty file in the folder of a finished repeat."""


def repeat_requests(requests: Sequence[RunRequest], *, adaptive: bool = False) -> list[RunRequest]:
    """The same requests as repeats: each continues a repeat that is not finished, or begins one.

    In adaptive conditions, or in all with `adaptive`, the samples that the run has are asked again,
    and not those of the request.

    Raises:
        IncompleteError: a run is not there or lacks samples; a line for each.
        JournalError: a run cannot be read, or its answers were to other prompts.
        TaskError: a sample cannot be made.
    """
    requests = [_as_it_was(request, adaptive=adaptive) for request in requests]
    problems = [problem for request in requests if (problem := _problem(request))]
    if problems:
        raise IncompleteError(*problems)
    return [replace(request, repeat=_number(request.repeated)) for request in requests]


def _as_it_was(request: RunRequest, *, adaptive: bool) -> RunRequest:
    """The request, with the samples that the run has under its adaptive conditions."""
    if not (request.repeated / MANIFEST).exists():
        return request
    manifest, plan = read_manifest(request.repeated), request.plan
    chosen = set(plan.conditions) & set(plan.conditions if adaptive else manifest.adaptive)
    if not chosen:
        return request
    counts = {key: size for key, size in plan.sizes.items() if key[0] not in chosen}
    counts |= {cell.key: cell.samples for cell in manifest.cells if cell.condition in chosen}
    return replace(request, plan=plan.with_counts(counts))


def _problem(request: RunRequest) -> str:
    """Why the run cannot be repeated; empty if it can."""
    folder, plan = request.repeated, request.plan
    remedy = f"the same command without {turned_on('repeat')}"
    if not (folder / MANIFEST).exists():
        return f"{request.name}: there is no run to repeat in {folder}; {remedy} makes it"
    if read_manifest(folder).recorded is not None:
        return (
            f"{request.name}: the replies in {folder} were recorded elsewhere and cannot be asked "
            f"again; use another {named('out')}"
        )
    asked = {condition for condition, _ in plan.sizes}
    absent = [condition.label for condition in plan.conditions if condition not in asked]
    if absent:
        return (
            f"{request.name}: the run in {folder} has no sample to repeat under "
            f"{' and '.join(absent)}; {remedy} asks them"
        )
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


def finish(folder: Path) -> None:
    """Marks the repeat in `folder` as finished: its command asked all that was wanted and has shown
    it, so the next command begins another repeat.

    Raises:
        JournalError: the mark cannot be written.
    """
    replace_file(folder / _FINISHED, b"")


def _number(run: Path) -> int:
    """The lowest number whose repeat does not exist or is not finished."""
    return next(
        number for number in count(1) if not (repeat_folder(run, number) / _FINISHED).exists()
    )


def _say_nothing(_: str) -> None:
    """Ignores messages about unreadable lines: the command that asks or judges reports them."""
