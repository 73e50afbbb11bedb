"""Accuracy by the metadata of a run's items."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from eyechart.harness.analysis.samples.draws import accuracy_interval, rows_of
from eyechart.harness.analysis.samples.judged_run import JudgedRun
from eyechart.harness.analysis.samples.task_of_run import NoTaskError, task_of
from eyechart.harness.errors import TaskError, UsageError
from eyechart.harness.plan.plan import make_sample
from eyechart.harness.score.outcomes import OUTCOMES, SCORED_PLACES
from eyechart.harness.spec import Item
from eyechart.harness.spec.columns import DIGITS, GROUPS, RUN
from eyechart.harness.task.catalogue import Task

Value = int | float | str


@dataclass(frozen=True)
class Groups:
    """The outcomes of a run, grouped by one name of the items' metadata."""

    table: pd.DataFrame
    """The columns of `by_NAME.csv`: one row for each condition and value."""
    without: int
    """Samples whose item lacks this metadata, or is no longer the item that was sent."""


def grouped(run: JudgedRun, name: str) -> Groups:
    """The recorded samples of `run` by the metadata `name` of their items.

    The journal has no metadata, so the items are made again by the task that `task_of` opens.

    Raises:
        UsageError: the task cannot be opened, or no item has the name.
    """
    manifest = run.manifest
    try:
        task = task_of(run.folder, manifest, run.settings)
    except NoTaskError as error:
        remedy = f"; {error.remedy}" if error.remedy else ""
        raise UsageError(f"no groups by {name!r}: {error}{remedy}") from None
    places: dict[tuple[int, Value], list[int]] = {}
    known: set[str] = set()
    without = 0
    order = {condition: place for place, condition in enumerate(run.conditions)}
    for place, (cell, item) in enumerate(_items(run, task)):
        known.update(item.metadata if item is not None else ())
        if item is None or name not in item.metadata:
            without += 1
            continue
        key = order[manifest.cells[cell].condition], item.metadata[name]
        places.setdefault(key, []).append(place)
    if not places:
        names = f"they have {', '.join(sorted(known))}" if known else "they have none"
        raise UsageError(f"no item of {manifest.task} has the metadata {name!r}; {names}")
    conditions = list(run.conditions)
    rows = [
        {
            **dict(zip(RUN, (manifest.model, manifest.task, manifest.task_version), strict=True)),
            **conditions[place],
            "metadata": name,
            "metadata_value": value,
            **_measures(run.samples.iloc[places[place, value]]),
        }
        for place, value in sorted(places, key=_by_value)
    ]
    return Groups(pd.DataFrame(rows)[[*RUN, *manifest.spec["axes"], *GROUPS]], without)


def _items(run: JudgedRun, task: Task) -> Iterator[tuple[int, Item | None]]:
    """Cell and item of each sample; no item if its prompt is not the one that was sent."""
    seed = run.manifest.settings.seed
    samples = run.samples
    columns = (samples[name].tolist() for name in ("cell", "index", "prompt"))
    for cell, index, prompt_hash in zip(*columns, strict=True):
        planned, drawn = run.manifest.cells[cell], dict[int, Item]()
        try:
            sample = make_sample(task, planned.condition, planned.line, index, seed, drawn=drawn)
        except TaskError:
            yield cell, None
            continue
        same = int(sample.prompt_hash, 16) == prompt_hash
        yield cell, drawn[sample.length] if same else None


def _by_value(key: tuple[int, Value]) -> tuple[int, bool, float, str]:
    place, value = key
    is_text = isinstance(value, str)
    return place, is_text, 0.0 if isinstance(value, str) else float(value), str(value)


def _measures(samples: pd.DataFrame) -> dict[str, float | None]:
    counts = np.bincount(samples["outcome"], minlength=len(OUTCOMES)).tolist()
    rows, n = rows_of(samples), sum(counts[place] for place in SCORED_PLACES)
    values = (rows.accuracy, *(accuracy_interval(rows) or ())) if n else (None,) * 3
    rounded = [None if value is None else round(value, DIGITS) for value in values]
    measures = zip(("accuracy", "ci_low", "ci_high"), rounded, strict=True)
    return {"n": n, **dict(zip(OUTCOMES, counts, strict=True)), **dict(measures)}
