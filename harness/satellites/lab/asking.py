"""Asks trained models through the ordinary run, each the same rows; the rows of `lab.csv`."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

from eyechart.harness.analysis.judged_run import JudgedCondition, part_of
from eyechart.harness.errors import JournalError
from eyechart.harness.face.ask import run
from eyechart.harness.face.result import Run
from eyechart.harness.journal.record import Warn
from eyechart.harness.plan.plan import Plan
from eyechart.harness.satellites.lab.folders import Model
from eyechart.harness.satellites.lab.order import Ended
from eyechart.harness.satellites.lab.reading import Lab


@dataclass(frozen=True, slots=True)
class Cell:
    """A row of `lab.csv`: what one model answered at one length."""

    variant: str
    seed: int
    task: str
    condition: str
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
    effective_length: float | None = None
    """How far the model sees, the same in all lines of a condition; `None` where not known."""
    effective_length_bound: str = ""
    """`<` or `>` where the length is a bound."""
    effective_length_ci_low: float | None = None
    effective_length_ci_high: float | None = None
    """The ends of its 95 % interval over the rows."""


_BESIDES = 8
"""Tokens of a reply besides those of the right answer."""
_LINE = ("length", "length_low", "length_high")
COLUMNS = tuple(field.name for field in fields(Cell))
"""The columns of `lab.csv`."""


def ask(lab: Lab, model: Model, notify: Warn) -> list[Run]:
    """Asks a model the samples of every task that have no answer yet."""
    return [
        run(
            plan.task,
            f"hf/{model.folder}",
            reading=lab.spec.read,
            max_tokens=most_tokens(plan) if lab.spec.read == "reply" else None,
            out=model.runs,
            keep_going=True,
            warn=notify,
            **task.settings,
        )
        for task, plan in zip(lab.spec.tasks, lab.plans, strict=True)
    ]


def most_tokens(plan: Plan) -> int:
    """Tokens for a reply: no right one has more tokens than characters. A model that has not
    learned to end its replies would fill its window with each of them.
    """
    phrase = plan.task.spec.answer.phrase
    return _BESIDES + max(len(f"{phrase} {sample.target}") for sample in plan)


def cells_of(model: Model, run_: Run, plan: Plan, trained_to: int, ended: Ended) -> Iterator[Cell]:
    """The rows of what a plan asks in a run, which may have more of earlier files; `ended` is how
    the model's training ended.
    """
    asked = part_of(
        run_.judged, lambda cell: cell.condition in plan.conditions and cell.line in plan.lines
    )
    for condition in asked.conditions.values():
        estimate = condition.effective_length(run_.threshold)
        length = None if estimate is None else estimate.length
        span = None if estimate is None else estimate.length_ci
        first = _cell_of(model, run_.task, condition.label, trained_to, ended)
        for at, low, high, n, correct in _counts(condition):
            yield replace(
                first,
                length=at,
                length_low=low,
                length_high=high,
                n=n,
                correct=correct,
                accuracy=correct / n if n else None,
                effective_length=None if length is None else length.length,
                effective_length_bound="" if length is None or length.sign == "=" else length.sign,
                effective_length_ci_low=None if span is None else span[0].length,
                effective_length_ci_high=None if span is None else span[1].length,
            )


def _cell_of(model: Model, task: str, condition: str, trained_to: int, ended: Ended) -> Cell:
    """The row of a model that was not asked."""
    return Cell(
        variant=model.variant,
        seed=model.seed,
        task=task,
        condition=condition,
        training=ended.how,
        steps=ended.step,
        loss=ended.loss,
        trained_to=trained_to,
    )


def _counts(condition: JudgedCondition) -> Iterator[tuple[int, int, int, int, int]]:
    """Nominal length, shortest and longest row, scored samples and right ones of each line."""
    names = ("length", "length_low", "length_high", "n", "correct")
    for row in zip(*(condition.cells[name].to_numpy() for name in names), strict=True):
        length, low, high, n, correct = map(int, row)
        yield length, low, high, n, correct


def not_asked(model: Model, lab: Lab, ended: Ended) -> Iterator[Cell]:
    """A row for each condition of a model whose training diverged."""
    for task, plan in zip(lab.spec.tasks, lab.plans, strict=True):
        for condition in plan.conditions:
            yield _cell_of(model, plan.task.name, condition.label, task.trained[1], ended)


def csv_text(cells: Sequence[Cell]) -> str:
    """The content of `lab.csv`."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for cell in cells:
        row = asdict(cell)
        shown = {name: _shown(value) for name, value in row.items()}
        writer.writerow(shown)
    return text.getvalue()


def _shown(value: object) -> object:
    return f"{value:.6g}" if isinstance(value, float) else value


def read_csv(path: Path) -> list[Cell]:
    """The rows of a `lab.csv`.

    Raises:
        JournalError: it is none.
    """
    try:
        with path.open(newline="", encoding="utf-8") as file:
            return [_cell(row) for row in csv.DictReader(file)]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise JournalError(f"{path} cannot be read as the results of a study: {error}") from error


def _cell(row: dict[str, str]) -> Cell:
    whole = {name: int(row[name]) for name in ("seed", "steps", "trained_to", "n", "correct")}
    numbers = {
        name: float(row[name]) if row[name] else None
        for name in (
            "loss",
            "accuracy",
            "effective_length",
            "effective_length_ci_low",
            "effective_length_ci_high",
        )
    }
    lines = {name: int(row[name]) if row[name] else None for name in _LINE}
    return Cell(**{**row, **whole, **numbers, **lines})  # type: ignore[arg-type]
