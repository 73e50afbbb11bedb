"""A run that is asked more samples, with the settings it was asked with.

All that was asked is in the folder of the run, as if `bench run` had asked it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from eyechart.harness.analysis.adaptive.next_pairs import Counts, draws_of, lacking, within
from eyechart.harness.analysis.samples.judged_run import JudgedRun, read_run
from eyechart.harness.analysis.samples.task_of_run import NoTaskError, task_of
from eyechart.harness.analysis.tables.results import write_results
from eyechart.harness.errors import UsageError
from eyechart.harness.face.asking.engine import Loop, ModelRuns, RunNotices, ask
from eyechart.harness.face.asking.own_models import remembered
from eyechart.harness.face.options.run_options import RunOptions, models_of
from eyechart.harness.journal.manifest import folder_of
from eyechart.harness.journal.record import Warn, unsaid
from eyechart.harness.plan.cost import Budget
from eyechart.harness.plan.plan import Plan
from eyechart.harness.run.run_request import RunRequest
from eyechart.harness.settings.judging import JudgeSettings
from eyechart.harness.settings.run_settings import RunSettings
from eyechart.harness.spec import CellKey
from eyechart.harness.task.catalogue import Task

AskedRequest: TypeAlias = tuple[RunOptions, RunRequest]
"""How a run is asked, and what."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What asking may cost, and how the models are reached."""

    requests: int | None = None
    """Samples to ask, at most, each of several draws counted; `None`: as many as a full run of the
    larger one has, of several runs half a full run of each, of a gate those of the baseline."""
    budget: float | None = None
    """Dollars to spend, at most."""
    base_url: tuple[str, ...] = ()
    header: tuple[str, ...] = ()
    """`NAME=VALUE`; no run keeps them."""
    max_connections: int | None = None
    """Requests in flight, at most; `None`: as many as the run was asked with."""


class AskedRun:
    """A run that can be asked again."""

    def __init__(
        self,
        folder: Path,
        limits: Limits,
        judging: JudgeSettings,
        warn: Warn,
        command: str = "",
    ) -> None:
        """Nothing is sent yet.

        Raises:
            EyechartError: the run cannot be read or asked again.
            SetupError: the model is not there.
        """
        self.folder, self._limits, self._judging = folder, limits, judging
        self._warn, self._command = warn, command
        self._options, self._task = self._opened(self.read())
        self._is_announced = False
        self.last_failure = ""
        """Why the last sample that got no reply got none."""

    def read(self) -> JudgedRun:
        """The run as it is now."""
        return read_run(self.folder, settings=self._judging)

    def lacks(self, counts: Counts) -> int:
        """How many of the samples that `counts` name, and the task has, have no reply."""
        return lacking(self.read(), self._there(counts))

    def _there(self, counts: Counts) -> Counts:
        """`counts`, with no more samples than the task has."""
        items = {line: self._task.items_at(line.length) for _, line in counts}
        return {
            (condition, line): size if (most := items[line]) is None else min(size, most)
            for (condition, line), size in counts.items()
        }

    def ask(
        self, counts: Counts, budget: Budget, talk: RunNotices, loop: Loop
    ) -> tuple[Budget, int]:
        """Asks what the run lacks of so many samples a cell, and writes its tables; returns the
        budget that is left, and how many samples that were asked have no reply. What the limit of
        requests leaves out is not planned.

        Raises:
            ProviderError: the model cannot be asked. What was answered is saved.
        """
        budget = replace(budget, prices=self._options.model.prices, full=False)
        paid = within(self.read(), self._there(counts), budget.requests)
        _, request = self._to_ask(paid)
        if self._is_announced:
            talk = replace(talk, announce=unsaid)  # where the requests go was said
        (asked,) = ask([ModelRuns([request], self._options, budget)], talk, loop)
        self._is_announced = True
        for outcome in asked.outcomes:
            self.last_failure = outcome.progress.last_failure or self.last_failure
        try:
            write_results(run := self.read())
        finally:
            if asked.ended_by is not None:  # also where the tables cannot be written
                raise asked.ended_by
        return budget, lacking(run, paid)

    def to_ask(self, counts: Counts, requests: int) -> AskedRequest:
        """What `ask` asks for at most so many requests; nothing is sent."""
        return self._to_ask(within(self.read(), self._there(counts), requests))

    def on_line(self, key: CellKey, requests: int) -> AskedRequest:
        """These requests on one line, at most as many as the task has there, to price them."""
        rows = math.ceil(requests / draws_of(self.read()))
        return self._to_ask(self._there({key: rows}))

    def _to_ask(self, counts: Counts) -> AskedRequest:
        draws = draws_of(self.read())
        return self._options, _request(self._options, self._task, counts, draws)

    def _opened(self, run: JudgedRun) -> tuple[RunOptions, Task]:
        """How the model of a run is asked, and its task."""
        manifest, folder = run.manifest, run.folder
        cannot = f"{folder} cannot be asked again"
        if manifest.recorded is not None:
            raise UsageError(f"{cannot}: its replies were recorded elsewhere")
        try:
            task = task_of(folder, manifest, self._judging)
        except NoTaskError as error:
            raise UsageError(
                "; ".join(filter(None, (f"{cannot}: {error}", error.remedy)))
            ) from None
        given = self._settings(run)
        (options,) = models_of(given, notify=self._warn, command=self._command)
        function = remembered(options.name, folder, manifest.server)
        options = replace(options, name=replace(options.name, function=function))
        counts = {cell.key: cell.samples for cell in manifest.cells}
        request = _request(options, task, counts, draws_of(run))
        if request.folder.resolve() != folder.resolve():
            raise UsageError(
                f"{cannot}: it would be asked as {request.folder}; ask it with the command that "
                "made it"
            )
        return options, task

    def _settings(self, run: JudgedRun) -> RunSettings:
        """The settings with which the run was asked, and those of the command. What a batch was
        asked is asked one by one, since each wave is chosen by the replies of the one before.
        """
        manifest, limits = run.manifest, self._limits
        depth = len(folder_of(Path(), manifest).parts)
        asked = manifest.settings.given()
        reading, effort = asked.pop("read", "reply"), asked.pop("effort", None)
        if reading == "likelihood":
            del asked["temperature"]  # none can be given: a forced choice draws no reply
        given = (
            asked
            | manifest.given
            | {
                "model": [manifest.asked_as],
                "reading": reading,
                "thinking": effort or asked.get("thinking"),
                "base_url": limits.base_url,
                "header": limits.header,
                "budget": limits.budget,
                "out": run.folder.absolute().parents[depth - 1],
            }
        )
        if limits.max_connections is not None:
            given["max_connections"] = limits.max_connections
        if given.get("tier") == "batch":
            self._warn(
                f"{run.folder} was asked by the vendor's Batch API, and is now asked one by one, "
                "at the price of that"
            )
            given |= {"tier": None}
        return RunSettings.read(**given)


def _request(options: RunOptions, task: Task, counts: Counts, draws: int) -> RunRequest:
    """The request for so many samples of each cell, each asked `draws` times."""
    conditions = list(dict.fromkeys(condition for condition, _ in counts))
    lines = sorted({line for _, line in counts})
    most = max(counts.values(), default=1)
    seed = options.settings.seed
    plan = Plan(task, conditions, lines, most, seed, counts, is_adaptive=False, draws=draws)
    (request,) = options.requests([plan])
    return request
