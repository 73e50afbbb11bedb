"""Asks trained models through the ordinary run, each the same rows; the rows of `lab.csv`."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from eyechart import Run, run
from eyechart.harness.analysis import (
    JudgedCondition,
    JudgedRun,
    has_results,
    part_of,
    read_run,
    write_results,
)
from eyechart.harness.errors import JournalError
from eyechart.harness.face.options import models_of
from eyechart.harness.journal import MANIFEST
from eyechart.harness.plan import Plan
from eyechart.harness.settings.run_settings import RunSettings
from eyechart.harness.spec import LINE
from eyechart_lab.variants.ceilings import Ceilings
from eyechart_lab.variants.folders import Model
from eyechart_lab.variants.reading import Lab
from eyechart_lab.variants.training.order import TrainingEnd


@dataclass(frozen=True, slots=True)
class LabCell:
    """A row of `lab.csv`: what one model answered at one length."""

    variant: str
    seed: int
    task: str
    condition: str
    read: str
    """`reply` or `likelihood`, see `LabSpec.read`."""
    training: str
    """`trained` or `diverged`; a model whose training diverged is not asked."""
    steps: int
    """Steps of the training."""
    loss: float | None
    """The mean loss at its end."""
    trained_to: int
    """The longest row of the training."""
    length: int | None = None
    """The nominal length of the line; `None` for a model that was not asked."""
    length_low: int | None = None
    length_high: int | None = None
    """The shortest and the longest row of the line."""
    n: int = 0
    """Scored rows of the line."""
    correct: int = 0
    accuracy: float | None = None
    ceiling: float | None = None
    """Share of the rows of the line whose right answer the training had, see `ceilings`."""
    effective_length: float | None = None
    """How far the model is right, the same in all lines of a condition; `None` where not known."""
    effective_length_bound: str = ""
    """`<` or `>` where the length is a bound."""
    effective_length_ci_low: float | None = None
    effective_length_ci_high: float | None = None
    """The ends of its 95 % interval over the rows."""


def ask(
    lab: Lab, model: Model, keep: Callable[[], None], notify: Callable[[str], None]
) -> tuple[list[Run], bool]:
    """Asks a model the samples of every task that have no answer yet; returns its runs, and whether
    anything was asked. `keep` puts the model into its folder.

    A run that has all answers is judged from its journal, as every command judges runs: the model
    is not needed. Its tables are written where a command was killed before it wrote them.
    """
    runs, has_asked = [], False
    for plan, settings in zip(lab.plans, _settings(lab, model), strict=True):
        judged = _judged(plan, model, settings, notify)
        if judged is None or _missing(judged, plan):
            keep()
            runs.append(run(plan.task, _name(model), warn=notify, **settings))
            has_asked = True
        else:
            if not has_results(judged):
                write_results(judged)
            runs.append(Run(judged, plan.task))
    return runs, has_asked


def unanswered(lab: Lab, model: Model) -> int:
    """The samples of all plans that have no answer of a model yet."""
    found = 0
    for plan, settings in zip(lab.plans, _settings(lab, model), strict=True):
        judged = _judged(plan, model, settings, lambda _: None)
        found += plan.size if judged is None else _missing(judged, plan)
    return found


def _name(model: Model) -> str:
    return f"hf/{model.folder}"


def _settings(lab: Lab, model: Model) -> Iterator[dict[str, Any]]:
    """The settings of the run of each task."""
    for task, most in zip(lab.spec.tasks, lab.reply_tokens, strict=True):
        yield {
            "reading": lab.spec.read,
            "max_tokens": most if lab.spec.read == "reply" else None,
            "out": model.runs,
            "keep_going": True,
            **task.settings,
        }


def _judged(
    plan: Plan, model: Model, settings: Mapping[str, Any], notify: Callable[[str], None]
) -> JudgedRun | None:
    """The run of a plan, with the answers that it has; `None` if there is none."""
    given = RunSettings.read(**settings, model=[_name(model)])
    (options,) = models_of(given, [plan], notify=notify)
    (request,) = options.requests([plan])
    return read_run(request.folder) if (request.folder / MANIFEST).is_file() else None


def _missing(judged: JudgedRun, plan: Plan) -> int:
    """The samples of a plan that have no answer in a run."""
    known = {cell.key for cell in judged.manifest.cells}
    absent = sum(size for key, size in plan.sizes.items() if key not in known)
    return absent + (_part(judged, plan).missing if known & plan.sizes.keys() else 0)


def _part(judged: JudgedRun, plan: Plan) -> JudgedRun:
    """What a plan asks of a run, which may have more lines and samples of earlier files."""
    sizes = plan.sizes
    part = part_of(judged, lambda cell: cell.key in sizes)
    cells = [replace(cell, samples=sizes[cell.key]) for cell in part.manifest.cells]
    most = np.array([cell.samples for cell in cells])
    samples = part.samples[part.samples["index"] < most[part.samples["cell"].to_numpy()]]
    return replace(
        part, manifest=replace(part.manifest, cells=cells), samples=samples.reset_index(drop=True)
    )


def cells_of(lab: Lab, model: Model, runs: Sequence[Run], ended: TrainingEnd) -> Iterator[LabCell]:
    """The rows of the runs of a model, one for each task; `ended` is how its training ended."""
    firsts = _first_of_tasks(lab, model, ended)
    for first, plan, run_ in zip(firsts, lab.plans, runs, strict=True):
        for condition in _part(run_.judged, plan).conditions.values():
            of_condition = replace(first, condition=condition.label)
            yield from _of_condition(of_condition, condition, lab.ceilings)


def not_asked(lab: Lab, model: Model, ended: TrainingEnd) -> Iterator[LabCell]:
    """A row for each condition of a model whose training diverged."""
    for first, plan in zip(_first_of_tasks(lab, model, ended), lab.plans, strict=True):
        for condition in plan.conditions:
            yield replace(first, condition=condition.label)


def _first_of_tasks(lab: Lab, model: Model, ended: TrainingEnd) -> Iterator[LabCell]:
    """What the rows of each task have before anything is asked."""
    for task, plan in zip(lab.spec.tasks, lab.plans, strict=True):
        yield LabCell(
            variant=model.variant,
            seed=model.seed,
            task=plan.task.name,
            condition="",
            read=lab.spec.read,
            training=ended.how,
            steps=ended.step,
            loss=ended.loss,
            trained_to=task.trained[1],
        )


def _of_condition(
    first: LabCell, condition: JudgedCondition, ceilings: Ceilings
) -> Iterator[LabCell]:
    """A row for each line of a condition."""
    estimate = condition.effective_length()
    length = None if estimate is None else estimate.length
    span = None if estimate is None else estimate.length_ci
    for row in condition.cells[["length", "length_low", "length_high", "n", "correct"]].to_numpy():
        at, low, high, n, correct = map(int, row)
        yield replace(
            first,
            length=at,
            length_low=low,
            length_high=high,
            n=n,
            correct=correct,
            accuracy=correct / n if n else None,
            ceiling=ceilings[first.task, first.condition, at],
            effective_length=None if length is None else length.length,
            effective_length_bound="" if length is None else length.side,
            effective_length_ci_low=None if span is None else span[0].length,
            effective_length_ci_high=None if span is None else span[1].length,
        )


def read_csv(path: Path) -> list[LabCell]:
    """The rows of a `lab.csv`.

    Raises:
        JournalError: it is none.
    """
    try:
        with path.open(newline="", encoding="utf-8") as file:
            return [_cell(row) for row in csv.DictReader(file)]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise JournalError(f"{path} cannot be read as the results of a study: {error}") from error


def _cell(row: dict[str, str]) -> LabCell:
    whole = {name: int(row[name]) for name in ("seed", "steps", "trained_to", "n", "correct")}
    numbers = {
        name: float(row[name]) if row[name] else None
        for name in (
            "loss",
            "accuracy",
            "ceiling",
            "effective_length",
            "effective_length_ci_low",
            "effective_length_ci_high",
        )
    }
    lines = {name: int(row[name]) if row[name] else None for name in LINE}
    return LabCell(**{**row, **whole, **numbers, **lines})  # type: ignore[arg-type]
