"""Every sample of a run in full: its reply, its verdict with the place of the answer, its prompt.

`JudgedRun` keeps numbers only; a report also shows the texts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from eyechart.harness.analysis.samples.judged_run import JudgedRun, each_counted
from eyechart.harness.analysis.samples.judged_samples import as_float
from eyechart.harness.analysis.samples.task_of_run import NoTaskError, task_of
from eyechart.harness.errors import PlanError, TaskError, TaskFileError, UnknownTaskError
from eyechart.harness.journal.record import Record
from eyechart.harness.plan.plan import id_of_draw, item_of, make_sample, sample_id
from eyechart.harness.score.verdict import Verdict
from eyechart.harness.spec import Item, Sample
from eyechart.harness.task.catalogue import Task


@dataclass(frozen=True)
class Detail:
    """One sample that has a record."""

    cell: int
    """Place in `manifest.cells`."""
    record: Record
    verdict: Verdict
    thinking: str = ""
    """How long the thoughts of the whole reply are; `record` may have only their beginning."""
    options: str = ""
    logprobs: str = ""
    """The whole record's probabilities as text, see `probabilities`; `record` may lack them."""


def read_details(
    run: JudgedRun, change: Callable[[Detail], Detail] = lambda detail: detail
) -> list[Detail]:
    """Every sample that has a record, with its verdict; sorted by index, cell and draw.

    Each detail is reduced by `change` at once, so only one whole record is in memory at a time.
    """
    cells = run.samples["cell"].to_numpy()
    details = [
        change(Detail(int(cells[place]), record, run.judge.verdict(record)))
        for place, record in each_counted(run)
    ]
    return sorted(details, key=lambda one: (one.record.index, one.cell, one.record.draw))


@dataclass(frozen=True)
class RunDetails:
    """One run with its details, as a report shows it."""

    run: JudgedRun
    details: Sequence[Detail]
    name: str
    """The model's name, with the settings that tell this run from its other runs in the report."""

    @cached_property
    def samples(self) -> pd.DataFrame:
        """One row for each detail: `cell`, `length` (the nominal one of its line), `index`,
        `outcome` (place in `OUTCOMES`), `target`, `answer`, `signed_error`, `characters`,
        `prompt_tokens`, `output_tokens` (of all turns), `cost` (dollars).
        NaN where a value is unknown or not a number.
        """
        records = [detail.record for detail in self.details]
        samples = self.run.samples
        order = np.lexsort([samples[name].to_numpy() for name in ("draw", "cell", "index")])
        taken = ("cell", "index", "outcome", "signed_error", "cost")
        of_samples = {name: samples[name].to_numpy()[order] for name in taken}
        lengths = np.array([cell.length for cell in self.run.manifest.cells], int)
        of_records = {
            "target": [_exact_float(record.target) for record in records],
            "answer": [as_float(detail.verdict.answer) for detail in self.details],
            "characters": [as_float(record.chars) for record in records],
            "prompt_tokens": [_taken(record, "prompt_tokens") for record in records],
            "output_tokens": [_taken(record, "output_tokens") for record in records],
        }
        return pd.DataFrame(
            {
                **of_samples,
                "length": lengths[of_samples["cell"]],
                **{name: np.array(values, float) for name, values in of_records.items()},
            }
        )


def _taken(record: Record, name: str) -> float:
    """The tokens of a record's requests, one a turn."""
    return math.fsum(as_float(getattr(turn, name)) for turn in (*(record.turns or ()), record))


FIRST_ROUNDED = 2.0**53
"""From here on a float cannot hold every integer."""


def _exact_float(value: object) -> float:
    """`value` as a float; NaN if it is not a number or a float would round it. Charts omit NaN."""
    number = as_float(value)
    return number if abs(number) < FIRST_ROUNDED else math.nan


@dataclass(frozen=True)
class RemadePrompts:
    """Makes the prompts of a run again, or says why that is impossible."""

    task: Task | None
    why: str = ""
    """Why `task` is `None`."""
    remedy: str = ""
    """What the user can do about that; "" where nothing is known to help."""

    def item_of(self, run: JudgedRun, record: Record) -> Item | None:
        """The item, made again; `None` without the task, or if it is not one of the task's."""
        task, seed = self.task, run.manifest.settings.seed
        place = record.condition, record.length, record.index
        known = "" if task is None else sample_id(task, *place, seed)
        if task is None or id_of_draw(known, record.draw) != record.id:
            return None
        try:
            return item_of(task, *place, seed)
        except TaskError:
            return None

    def of(self, run_details: RunDetails) -> Iterator[str | None]:
        """The prompt of each detail, in order; `None` if another prompt was sent."""
        drawn: dict[int, Item] = {}
        drawn_index = -1
        seed = run_details.run.manifest.settings.seed
        for detail in run_details.details:
            if self.task is None or detail.record.prompt is not None:
                yield detail.record.prompt
                continue
            if detail.record.index != drawn_index:
                drawn, drawn_index = {}, detail.record.index
            sample = _sample(self.task, run_details, detail, seed, drawn)
            same = sample is not None and sample.prompt_hash == detail.record.prompt_hash
            yield sample.prompt if sample is not None and same else None


def _sample(
    task: Task, run_details: RunDetails, detail: Detail, seed: int, drawn: dict[int, Item]
) -> Sample | None:
    cell = run_details.run.manifest.cells[detail.cell]
    record, index = detail.record, detail.record.index
    known = sample_id(task, cell.condition, record.length, index, seed)
    if id_of_draw(known, record.draw) != record.id:
        return None
    try:
        kept = drawn if task.paired else None
        return make_sample(task, cell.condition, cell.line, index, seed, drawn=kept)
    except (PlanError, TaskError, UnicodeEncodeError):
        return None


def prompts_of(run: JudgedRun) -> RemadePrompts:
    """The prompts of `run`, made by the task that `task_of_run.task_of` opens."""
    try:
        return RemadePrompts(task_of(run.folder, run.manifest, run.settings))
    except NoTaskError as error:
        return RemadePrompts(None, str(error), error.remedy)
    except (UnknownTaskError, TaskFileError) as error:
        return RemadePrompts(None, f"the task file of {run.manifest.task} cannot be read: {error}")
