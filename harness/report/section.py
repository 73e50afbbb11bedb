"""Runs of one task side by side: the conditions that were tried, and how far each model sees."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from harness.analysis.details import RunDetails, read_details
from harness.analysis.judged_run import NOT_SCORED, JudgedCondition, JudgedRun
from harness.analysis.stats import Curve, EffectiveLength, Threshold
from harness.columns import OUTCOMES
from harness.spec import Condition

CORRECT = OUTCOMES.index("correct")
UNSCORED = [OUTCOMES.index(name) for name in NOT_SCORED]
UNITS = ("symbols", "characters", "tokens")


@dataclass(frozen=True, eq=False)
class Series:
    """One model under one condition."""

    shown: RunDetails
    judged: JudgedCondition

    @property
    def condition(self) -> Condition:
        return self.judged.condition

    @property
    def curve(self) -> Curve | None:
        """Its scored samples; `None` where there are none."""
        return self.judged.curve

    @cached_property
    def cells(self) -> pd.DataFrame:
        """Rows of `table.csv`, with `characters` and what a cell's prompts have of them."""
        cells = self.judged.cells.copy()
        characters = self.shown.samples.groupby("cell")["characters"].mean()
        cells["characters"] = characters.reindex(cells.index)
        return cells

    @cached_property
    def samples(self) -> pd.DataFrame:
        """The rows of `RunDetails.samples` of these cells, with their `length`."""
        samples = self.shown.samples
        mine = samples[samples["cell"].isin(self.judged.places)].copy()
        mine["length"] = mine["cell"].map(self.judged.cells["length"])
        return mine

    def at(self, length: float) -> dict[str, float | None]:
        """A tested length in every unit; `None` where unknown."""
        row = self.cells.loc[self.cells["length"] == length].iloc[0]
        found = (row["length"], row["characters"], row["prompt_tokens"])
        return {
            unit: float(value) if value > 0 else None
            for unit, value in zip(UNITS, found, strict=True)
        }

    def label(self, axes: Iterable[str]) -> str:
        """Its values on `axes`."""
        return ", ".join(self.condition[axis] for axis in axes)


@dataclass(frozen=True)
class Section:
    """All runs of one task in one report."""

    name: str
    """The task's, with its version where a report has two."""
    runs: tuple[RunDetails, ...]
    threshold: Threshold

    @property
    def task(self) -> str:
        return self.runs[0].run.manifest.task

    @property
    def title(self) -> str:
        return str(self.runs[0].run.manifest.spec["title"])

    @property
    def source(self) -> str:
        return str(self.runs[0].run.manifest.spec.get("source") or "")

    @property
    def integer(self) -> bool:
        """Whether answers are numbers."""
        return bool(self.runs[0].run.manifest.spec["answer"]["type"] == "integer")

    @cached_property
    def axes(self) -> dict[str, list[str]]:
        """Every axis, and its values that were run, in the task file's order."""
        run = [cell.condition for shown in self.runs for cell in shown.run.manifest.cells]
        return {
            axis: [value for value in spec["values"] if any(c[axis] == value for c in run)]
            for axis, spec in self.runs[0].run.manifest.spec["axes"].items()
        }

    @property
    def varied(self) -> list[str]:
        """Axes with more than one value, the one with most first."""
        many = [axis for axis, values in self.axes.items() if len(values) > 1]
        return sorted(many, key=lambda axis: -len(self.axes[axis]))

    @property
    def fixed(self) -> dict[str, str]:
        """Axes with one value."""
        return {axis: values[0] for axis, values in self.axes.items() if len(values) == 1}

    @cached_property
    def series(self) -> list[Series]:
        """Every model under every condition it was asked under, model by model."""
        return [
            Series(shown, judged) for shown in self.runs for judged in shown.run.conditions.values()
        ]

    @cached_property
    def lengths(self) -> list[int]:
        """Every length tested."""
        return sorted({cell.length for shown in self.runs for cell in shown.run.manifest.cells})

    @cached_property
    def estimates(self) -> dict[tuple[str, str], EffectiveLength]:
        """Model's name, condition's label -> how far; of those with a scored sample."""
        return {
            key_of(series): estimate
            for series in self.series
            if (estimate := series.judged.effective_length(self.threshold)) is not None
        }


def key_of(series: Series) -> tuple[str, str]:
    """What tells a series from the others of its section."""
    return series.shown.name, series.condition.label


def sections(runs: Sequence[JudgedRun], threshold: Threshold) -> list[Section]:
    """One a task, tasks and models in the order in which the runs are given."""
    by_task: dict[tuple[str, str], list[JudgedRun]] = {}
    for run in runs:
        key = run.manifest.task, run.manifest.task_digest
        by_task.setdefault(key, []).append(run)
    twice = Counter(task for task, _ in by_task)
    made = []
    for (task, digest), mine in by_task.items():
        version = mine[0].manifest.task_version
        name = f"{task} (version {version}, {digest[:6]})" if twice[task] > 1 else task
        named = zip(mine, _names(mine), strict=True)
        made.append(
            Section(
                name,
                tuple(RunDetails(run, read_details(run), name) for run, name in named),
                threshold,
            )
        )
    return made


def _names(runs: Sequence[JudgedRun]) -> list[str]:
    """A different name for each run: its model, and the settings in which it differs."""
    names = []
    for run in runs:
        twins = [other for other in runs if other.manifest.model == run.manifest.model]
        settings: Mapping[str, object] = run.manifest.settings
        differing = [
            name
            for name in settings
            if any(other.manifest.settings.get(name) != settings[name] for other in twins)
        ]
        said = [f"{name} {json.dumps(settings[name])}" for name in differing]
        names.append(", ".join([run.manifest.model, *said]))
    again = Counter(names)
    seen: Counter[str] = Counter()
    for place, name in enumerate(names):
        if again[name] > 1:
            seen[name] += 1
            names[place] = f"{name} #{seen[name]}"
    return names
