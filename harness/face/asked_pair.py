"""Asks two runs until their comparison is decided; `bench compare --ask` uses it.

All that was asked is in the folders of the two runs, as if `bench run` had asked it, and the next
command goes on from there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from eyechart.harness.analysis.comparability import check_same_task, names_of_all
from eyechart.harness.analysis.comparison import compare_runs
from eyechart.harness.analysis.curve import Threshold
from eyechart.harness.analysis.judged_run import JudgedRun, read_run
from eyechart.harness.analysis.next_pairs import (
    WAVES,
    Both,
    Counts,
    draws_of,
    full_run,
    is_decided,
    lacking,
    missing_pairs,
    more_pairs,
    next_wave,
)
from eyechart.harness.analysis.results import write_results
from eyechart.harness.analysis.task_of_run import NoTaskError, task_of
from eyechart.harness.errors import UsageError
from eyechart.harness.face.engine import Job, Loop, Talk, ask
from eyechart.harness.face.run_options import RunOptions, models_of
from eyechart.harness.face.variant import variant_of
from eyechart.harness.journal.manifest import folder_of
from eyechart.harness.journal.record import Warn
from eyechart.harness.plan.cost import Budget
from eyechart.harness.plan.plan import Plan
from eyechart.harness.run.run_request import RunRequest
from eyechart.harness.settings.run_settings import RunSettings
from eyechart.harness.spec import Settings
from eyechart.harness.task.catalogue import Task
from eyechart.providers.base import SetupError
from eyechart.providers.naming import named
from eyechart.providers.registry import check_intervention, parse_model


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What asking may cost, and how the models are reached."""

    requests: int | None = None
    """Samples to ask, at most; `None`: as many as a full run of the larger one has."""
    budget: float | None = None
    """Dollars to spend, at most."""
    base_url: tuple[str, ...] = ()
    max_connections: int = 64
    tasks: str = ""
    run_kept_code: bool = False


class AskedPair:
    """Two runs that are asked until their comparison is decided, or the price is spent."""

    def __init__(
        self,
        folders: Sequence[Path],
        limits: Limits,
        threshold: Threshold,
        margin: float,
        warn: Warn,
        *,
        command: str = "",
    ) -> None:
        """Nothing is sent yet.

        Raises:
            EyechartError: a run cannot be read or asked again, or both are of other tasks.
            SetupError: a model is not there.
        """
        self._folders, self._limits, self._warn = folders, limits, warn
        self._threshold, self._margin, self._command = threshold, margin, command
        runs = self._read()
        check_same_task(*runs)
        self.names = names_of_all(runs)
        self._models = [self._opened(run) for run in runs]
        self.price = limits.requests or max(map(full_run, runs))
        self._budget = Budget(limit=limits.budget, requests=self.price)
        self.asked = 0
        self.waves = 0
        self._rows_waves = 0

    def _read(self) -> tuple[JudgedRun, JudgedRun]:
        given = self._limits
        first, second = (
            read_run(folder, tasks=given.tasks, run_kept_code=given.run_kept_code)
            for folder in self._folders
        )
        return first, second

    def before(self) -> str:
        """What asking may cost, said before anything is sent."""
        runs = self._read()
        lacks = lacking(runs, missing_pairs(*runs))
        dollars = self.price * max(float(run.samples["cost"].mean()) for run in runs)
        limits = [f"{self.price:,} samples"]
        if self._limits.budget is not None:
            limits.append(f"${self._limits.budget:g}")
        cost = f", which is about ${dollars:.2f}" if math.isfinite(dollars) else ""
        counts = " and ".join(
            f"{lack:,} of {name}" for name, lack in zip(self.names, lacks, strict=True) if lack
        )
        first = f"first {counts}, which the other run has; then " if counts else ""
        return (
            f"asking at most {' and '.join(limits)}{cost}: {first}those that tell most, in "
            f"{WAVES} waves; {named('max_requests')} sets another limit"
        )

    def ask(self, talk: Talk, loop: Loop) -> str:
        """Asks wave after wave, and writes the tables of both runs; returns why it ended.

        Raises:
            ProviderError: a model cannot be asked. What was answered is saved.
        """
        while True:
            runs = self._read()
            wanted = self._next(*runs)
            if isinstance(wanted, str):
                return wanted
            before = lacking(runs, wanted)
            self.waves += 1
            for place in range(2):
                if before[place]:
                    self._ask(place, wanted[place], talk, loop)
            lacks = sum(lacking(self._read(), wanted))
            self.asked += sum(before) - lacks
            if lacks:
                again = "and the same command asks them again"
                return self._limit() or f"{lacks:,} samples have no reply, {again}"

    def _limit(self) -> str:
        """The limit that is reached; empty where none is."""
        if self._budget.exhausted:
            return f"the budget of ${self._limits.budget:g} is spent"
        return "" if self._budget.has_requests else f"the {self.price:,} samples are asked"

    def _next(self, first: JudgedRun, second: JudgedRun) -> Both | str:
        """What both runs are to have next, or why nothing more is asked."""
        wanted = missing_pairs(first, second)
        if not sum(lacking((first, second), wanted)):
            comparison = compare_runs(first, second, self._threshold)
            if is_decided(comparison, self._margin):
                return "the comparison is decided"
            wave = next_wave(self._budget.requests or 0, self._rows_waves)
            wanted = more_pairs(first, second, comparison, wave)
            self._rows_waves += 1
            if not (self._limit() or sum(lacking((first, second), wanted))):
                what = f"{WAVES} waves were asked" if not wave else "no line has more samples"
                return f"{what}, and it is open"
        return self._limit() or wanted

    def _ask(self, place: int, counts: Counts, talk: Talk, loop: Loop) -> None:
        """Asks one run what it lacks, and writes its tables."""
        options, task = self._models[place]
        self._budget = replace(self._budget, prices=options.model.prices, full=False)
        draws = draws_of(read_run(self._folders[place]))
        request = _request(options, task, counts, draws)
        asked = ask(Job([request], options, self._budget), talk, loop)
        try:
            write_results(read_run(request.folder))
        finally:
            if asked.ended_by is not None:  # also where the tables cannot be written
                raise asked.ended_by

    def _opened(self, run: JudgedRun) -> tuple[RunOptions, Task]:
        """How the model of a run is asked, and its task."""
        manifest, folder = run.manifest, run.folder
        cannot = f"{folder} cannot be asked again"
        if manifest.recorded is not None:
            raise UsageError(f"{cannot}: its replies were recorded elsewhere")
        if manifest.shard:
            raise UsageError(f"{cannot}: it is a part of another run; name that one")
        try:
            task = task_of(
                folder, manifest, self._limits.tasks, run_kept_code=self._limits.run_kept_code
            )
        except NoTaskError as error:
            raise UsageError(
                "; ".join(filter(None, (f"{cannot}: {error}", error.remedy)))
            ) from None
        given = self._settings(run)
        (options,) = models_of(given, notify=self._warn, command=self._command)
        counts = {cell.key: cell.samples for cell in manifest.cells}
        request = _request(options, task, counts, draws_of(run))
        if request.folder.resolve() != folder.resolve():
            raise UsageError(
                f"{cannot}: it would be asked as {request.folder}; ask it with the command that "
                "made it"
            )
        return options, task

    def _settings(self, run: JudgedRun) -> RunSettings:
        """The settings with which the run was asked, and those of the command."""
        manifest, limits = run.manifest, self._limits
        settings = Settings(**manifest.settings)
        label, change = _variant(manifest.variant, manifest.asked_as, settings, limits.base_url)
        depth = len(folder_of(Path(), manifest).parts)
        given = {
            "model": [manifest.asked_as],
            "name": manifest.model_name if manifest.served_as else None,
            "seed": settings.seed,
            "temperature": settings.temperature,
            "max_tokens": settings.max_tokens,
            "api": settings.api,
            "reading": settings.read,
            "system": settings.system,
            "effort": settings.effort,
            "thinking": settings.thinking,
            "params": dict(settings.params),
            "label": label,
            "intervention": change,
            "base_url": limits.base_url,
            "max_connections": limits.max_connections,
            "budget": limits.budget,
            "out": run.folder.absolute().parents[depth - 1],
        }
        return RunSettings.read(**{name: value for name, value in given.items() if value})


def _variant(
    variant: str, model: str, settings: Settings, base_url: tuple[str, ...]
) -> tuple[str | None, str | None]:
    """The label and the intervention in a variant."""
    asked = variant_of(None, None, settings.effort, settings.thinking, settings.read)
    rest = variant.removesuffix(asked).removesuffix("+")
    if not rest:
        return None, None
    parts = rest.split("+")
    for place in range(len(parts)):
        label, change = "+".join(parts[:place]), "+".join(parts[place:])
        with suppress(UsageError, SetupError):
            check_intervention(parse_model(model, (), base_url), change)
            return label or None, change
    return rest, None


def _request(options: RunOptions, task: Task, counts: Counts, draws: int) -> RunRequest:
    """The request for so many samples of each cell, each asked `draws` times."""
    conditions = list(dict.fromkeys(condition for condition, _ in counts))
    lines = sorted({line for _, line in counts})
    most = max(counts.values(), default=1)
    seed = options.settings.seed
    plan = Plan(task, conditions, lines, most, seed, counts, is_adaptive=False, draws=draws)
    (request,) = options.requests([plan])
    return request
