"""The runs of one task side by side: their conditions, and the effective lengths of each model."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from eyechart.harness.analysis.comparison.comparability import names_by_settings
from eyechart.harness.analysis.length.bands import band_of, is_banded
from eyechart.harness.analysis.length.curve import Floats
from eyechart.harness.analysis.length.effective_length import EffectiveLength
from eyechart.harness.analysis.ranking.standing import Standing, standing
from eyechart.harness.analysis.samples.details import RunDetails, read_details
from eyechart.harness.analysis.samples.judged_run import JudgedCondition, JudgedRun
from eyechart.harness.analysis.tables.cell_table import cell_means
from eyechart.harness.analysis.tables.tokens_text import how
from eyechart.harness.report.page.cut_texts import cut_detail
from eyechart.harness.settings.judging import JudgeSettings
from eyechart.harness.spec import Condition
from eyechart.harness.spec.unit import length_title

UNITS = ("length", "characters", "tokens")
"""Units of a length on the page: the task's, characters of the prompt, tokens of the row."""


_UNKNOWN = np.array([math.nan]), np.array([math.nan])


@dataclass(frozen=True, eq=False)
class Series:
    """One model under one condition."""

    run_details: RunDetails
    judged: JudgedCondition

    @property
    def condition(self) -> Condition:
        return self.judged.condition

    @property
    def cells(self) -> pd.DataFrame:
        """The rows of `table.csv` of its cells."""
        return self.judged.cells

    @cached_property
    def samples(self) -> pd.DataFrame:
        """The rows of `RunDetails.samples` of its cells."""
        samples = self.run_details.samples
        return samples[np.isin(samples["cell"].to_numpy(), self.judged.places)]

    def at(self, length: float) -> dict[str, float | None]:
        """A length in every unit; `None` if unknown. Characters are interpolated."""
        characters = float(np.interp(length, *self._characters, left=math.nan, right=math.nan))
        tokens = self.judged.tokens_a_symbol
        values = (
            float(length),
            None if math.isnan(characters) else characters,
            None if tokens is None else length * tokens.value,
        )
        return dict(zip(UNITS, values, strict=True))

    @cached_property
    def _characters(self) -> tuple[Floats, Floats]:
        """The nominal lengths where the characters of prompts are known, ascending, and their mean
        at each: of the means of its cells.
        """
        samples = self.run_details.samples
        cells, characters = (samples[name].to_numpy() for name in ("cell", "characters"))
        of_cells = cell_means(cells, characters, len(self.judged.run.manifest.cells))
        lengths, places = np.unique(self.cells["length"].to_numpy(float), return_inverse=True)
        means = cell_means(places, of_cells[list(self.judged.places)], len(lengths))
        known = means > 0
        return (lengths[known], means[known]) if known.any() else _UNKNOWN

    def named(self, axes: Iterable[str]) -> str:
        """Its model and its values on `axes`."""
        return ", ".join(filter(None, (self.run_details.name, self.label(axes))))

    def label(self, axes: Iterable[str]) -> str:
        """Its values on `axes`."""
        return ", ".join(self.condition[axis] for axis in axes)


@dataclass(frozen=True)
class Section:
    """All runs of one task in one report."""

    name: str
    """The name of the task, with its version if the report has several."""
    runs: tuple[RunDetails, ...]

    @property
    def judging(self) -> JudgeSettings:
        """How its runs are judged, which is the same for all."""
        return self.runs[0].run.settings

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
    def unit(self) -> str:
        """What a length of the task counts."""
        return self.runs[0].run.spec.unit

    @property
    def over(self) -> str:
        """The title of an axis of lengths."""
        return length_title([self.unit])

    @property
    def integer(self) -> bool:
        """Whether answers are numbers."""
        return self.runs[0].run.spec.answer.kind.stored is int

    @property
    def unit_titles(self) -> dict[str, str]:
        """Unit -> its title on an axis of lengths."""
        source = how(series.judged.tokens_a_symbol for series in self.series)
        of_row = ", ".join(filter(None, ("tokens of the row", source)))
        titles = self.unit, "characters of the prompt", of_row
        return dict(zip(UNITS, titles, strict=True))

    @cached_property
    def axes(self) -> dict[str, list[str]]:
        """Every axis, and its values that were run, in the order of the task file."""
        conditions = [
            cell.condition for run_details in self.runs for cell in run_details.run.manifest.cells
        ]
        return {
            axis: [
                value
                for value in spec["values"]
                if any(condition[axis] == value for condition in conditions)
            ]
            for axis, spec in self.runs[0].run.manifest.spec["axes"].items()
        }

    @property
    def varied(self) -> list[str]:
        """Axes with more than one value, the axis with most values first."""
        varied = [axis for axis, values in self.axes.items() if len(values) > 1]
        return sorted(varied, key=lambda axis: -len(self.axes[axis]))

    @property
    def fixed(self) -> dict[str, str]:
        """Axes with one value, and that value."""
        return {axis: values[0] for axis, values in self.axes.items() if len(values) == 1}

    @cached_property
    def series(self) -> list[Series]:
        """Every model under every condition it was asked under, model by model."""
        return [
            Series(run_details, judged)
            for run_details in self.runs
            for judged in run_details.run.conditions.values()
        ]

    @property
    def ranked_series(self) -> list[Series]:
        """The series by the place of their model in the standing."""
        order = [place.name for place in self.standing.places]
        return sorted(self.series, key=lambda series: order.index(series.run_details.name))

    def series_of(self, run: JudgedRun, **wanted: str) -> list[Series]:
        """The series of a run under the wanted values; axes that the task lacks are ignored."""
        return [
            series
            for series in self.series
            if series.run_details.run is run
            and all(series.condition.get(axis, value) == value for axis, value in wanted.items())
        ]

    @cached_property
    def every_length(self) -> list[int]:
        """Every length tested, ascending."""
        return sorted(
            {cell.length for run_details in self.runs for cell in run_details.run.manifest.cells}
        )

    @property
    def lengths(self) -> list[int]:
        """The lengths at the ticks of a logarithmic axis: all tested but 0, or the middles of bands
        between the shortest and the longest; 1 if there is no other.
        """
        lengths = [length for length in self.every_length if length] or [1]
        return sorted({lengths[0], *map(self.shown_as, lengths), lengths[-1]})

    @cached_property
    def is_banded(self) -> bool:
        """Whether charts show lengths in bands."""
        return any(is_banded(series.judged) for series in self.series)

    def shown_as(self, length: int) -> int:
        """The length at which charts show a line: its own, or the middle of its band."""
        return band_of(length).length if self.is_banded else length

    @cached_property
    def standing(self) -> Standing:
        """The models by effective length, and which of them differ by test."""
        return standing([(shown.name, shown.run) for shown in self.runs])

    @property
    def of_standing(self) -> str:
        """The condition of the standing by the axes that vary; empty if none does."""
        values = self.standing.condition.only(self.varied)
        if not values:
            return ""
        text = ", ".join(f"{axis.replace('_', ' ')} {value}" for axis, value in values.items())
        return f"{text} (the default)" if self.standing.default else text

    @cached_property
    def estimates(self) -> dict[tuple[str, str], EffectiveLength]:
        """(model's name, condition's label) -> effective length; only with a scored sample."""
        return {
            key_of(series): estimate
            for series in self.series
            if (estimate := series.judged.effective_length()) is not None
        }


def key_of(series: Series) -> tuple[str, str]:
    """The key of a series in its section: the model's name and the condition's label."""
    return series.run_details.name, series.condition.label


def sections(runs: Sequence[JudgedRun]) -> list[Section]:
    """A section for each task; tasks and models keep the order of `runs`."""
    by_task: dict[tuple[str, str], list[JudgedRun]] = {}
    for run in runs:
        key = run.manifest.task, run.manifest.task_digest
        by_task.setdefault(key, []).append(run)
    versions = Counter(task for task, _ in by_task)
    task_sections = []
    for (task, digest), task_runs in by_task.items():
        version = task_runs[0].manifest.task_version
        name = f"{task} (version {version}, {digest[:6]})" if versions[task] > 1 else task
        named_runs = zip(task_runs, _names(task_runs), strict=True)
        task_sections.append(
            Section(
                name,
                tuple(
                    RunDetails(run, read_details(run, cut_detail), name) for run, name in named_runs
                ),
            )
        )
    return task_sections


def _names(runs: Sequence[JudgedRun]) -> list[str]:
    """A different name for each run, see `names_by_settings`; equal names have numbers."""
    names = names_by_settings(runs)
    frequencies = Counter(names)
    numbers: Counter[str] = Counter()
    for place, name in enumerate(names):
        if frequencies[name] > 1:
            numbers[name] += 1
            names[place] = f"{name} #{numbers[name]}"
    return names
