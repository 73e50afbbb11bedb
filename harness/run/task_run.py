"""One model on one task: asks pending samples and writes the results."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from eyechart.harness.journal.record import Record, Warn
from eyechart.harness.journal.writer import Journal
from eyechart.harness.plan.cost import Budget, UsageMeter
from eyechart.harness.plan.forced_choice import ForcedChoice
from eyechart.harness.plan.plan import Plan
from eyechart.harness.run import pool
from eyechart.harness.run.batch.pending import refuse_if_under_way
from eyechart.harness.run.first_replies import FirstCheck
from eyechart.harness.run.first_samples import FirstSamples
from eyechart.harness.run.limiter import RateLimiter
from eyechart.harness.run.limits import RunLimits
from eyechart.harness.run.progress import Pace, Progress, RunOutcome
from eyechart.harness.run.room import Room
from eyechart.harness.run.run_request import RunRequest
from eyechart.harness.run.writer import Judge, PlannedRun, RunWriter
from eyechart.harness.spec import Sample
from eyechart.providers.base import Facts, Provider


class TaskRun:
    """One run: `begin` it, then `ask` its pending samples; an adaptive run `grow`s after that and
    is begun and asked again. The journal holds the folder's lock. Code that asks in another way
    reads `samples`, gives their records to `note` and the new ones to `take`, and calls `end`. If
    `ask` raises an error or is cancelled, the journal has all replies that came, and the manifest
    has the whole plan.
    """

    def __init__(
        self,
        request: RunRequest,
        run_journal: Journal,
        model: Facts,
        *,
        warn: Warn,
        budget: Budget | None = None,
        judge: Judge | None = None,
        room: Room | None = None,
        check_first: FirstCheck | None = None,
    ) -> None:
        """With `judge`, the progress counts correct answers. `room` is what earlier runs of the
        command have taught about the length of replies. `check_first` judges the first replies;
        without it all samples are asked, whatever they are.

        Raises:
            JournalError: the run's folder cannot be used.
            TaskError: a sample cannot be made.
        """
        self._request = request
        self._model = model
        self._warn = warn
        self._run = PlannedRun(request, run_journal, warn)
        self.room = Room.of(request.model, request.settings) if room is None else room
        self.pending = self._run.pending
        """Number of planned samples that had no answer at the time of planning."""
        self.progress = Progress(
            budget=budget or Budget(),
            total=self.pending,
            is_adaptive=request.plan.counts is not None,
            pace=Pace(self._run.pending_symbols),
        )
        self.first = FirstSamples(self._run, check_first, warn)
        system = request.settings.system or ""
        self._meter = UsageMeter(self.progress.budget, system, say=warn)
        is_chosen = request.settings.read == "likelihood"
        plan = request.plan
        self._choice = ForcedChoice(plan.task, plan.seed) if is_chosen else None
        self._rates: RateLimiter | None = None
        self._has_server = False
        self._has_asked = False
        self._writer = RunWriter(
            run_journal,
            self._run.manifest,
            warn,
            progress=self.progress,
            judge=judge,
            taught=(self.first.note, self.room.note),
        )

    @property
    def outcome(self) -> RunOutcome:
        return RunOutcome(self._request, self.progress)

    @property
    def plan(self) -> Plan:
        return self._request.plan

    @property
    def new(self) -> int:
        """Number of records without an error since the run was opened."""
        return self._writer.new

    def grow(self, plan: Plan) -> None:
        """Adds the next wave of an adaptive run; `plan` has the samples of all waves up to it."""
        self._request = replace(self._request, plan=plan)
        self._run.grow(plan)
        self.pending = self._run.pending
        self.progress.total += self.pending

    async def begin(self) -> None:
        """Reads the server's facts, and finds the cells that do not fit into its window. A complete
        run needs no server.

        Raises:
            ProviderError: there is no server, or it refuses, or the first replies ended an earlier
                command.
            JournalError: samples are in a batch, or another model answered before.
        """
        if not self.pending:
            self._run.save()
            return
        self.first.begin()
        if self._has_server:
            self._run.save()
        else:
            refuse_if_under_way(self._request.folder)
            self._run.set_server(await self._model.facts())
            self._has_server = True
        self.room.window = self._request.model.window(self._run.manifest.server)
        self.room.remember(self._request)
        await self._run.find_overflows(self._model)
        await self._run.count_prompts(self._model)

    def samples(self) -> Iterator[tuple[Sample, int]]:
        """The pending samples with the tokens of their replies; records those that do not fit."""
        for sample, answer in self._run.samples(self._writer, budget=self.progress.budget):
            yield sample, self.room.tokens(sample.prompt, answer)

    def note(self, record: Record) -> bool:
        """Whether the sample of the record had no answer before; notes an answer."""
        return self._run.note(record)

    def take(self, record: Record) -> None:
        """Writes the record of a sample and counts it."""
        self._writer.take(record)

    def read_again(self) -> None:
        """Reads again which samples are answered, after asking ended early."""
        self.progress.total -= self.progress.failed
        self.progress.failed = 0
        self._run.grow(self.plan)
        self.pending = self._run.pending

    def end(self) -> None:
        """Saves the manifest."""
        self._run.save()

    def first_samples(self, least: int = 1) -> list[tuple[Sample, int]]:
        """The samples to ask before all others, see `FirstSamples.take`."""
        return [] if self._has_asked else self.first.take(self.progress.budget, least)

    async def ask(self, provider: Provider, limits: RunLimits) -> None:
        """Asks every pending sample; those first whose replies decide about the others.

        Raises:
            StopRunError: the run cannot go on, or another model answers than before, or none of
                the first replies can be used.
            JournalError: the journal cannot be written, or an answer was to another prompt.
            TaskError: a sample cannot be made.
        """
        if not self.pending:
            return
        self._rates = self._rates or RateLimiter(rpm=limits.rpm, tpm=limits.tpm)
        self._meter.is_counting = limits.tpm is not None
        if self._has_asked:
            limits = replace(limits, first_connections=self.progress.connections or None)
        elif self._run.manifest.answered_by:  # the first reply shows whether another model
            # answers now
            limits = replace(limits, first_connections=1)
        first = self.first_samples()
        self._has_asked = True
        try:
            if first:
                await self._ask(iter(first), provider, limits)
                limits = replace(limits, first_connections=self.progress.connections or None)
                self.first.decide()
            samples = self._run.samples(self._writer, budget=self.progress.budget)
            await self._ask(samples, provider, limits)
        except BaseException:
            self._run.save()
            raise
        self.end()
        self.first.decide()

    async def _ask(
        self, samples: Iterator[tuple[Sample, int]], provider: Provider, limits: RunLimits
    ) -> None:
        settings = self._request.settings
        await pool.ask_all(
            samples,
            provider,
            self._writer,
            temperature=settings.temperature,
            seed=settings.seed,
            meter=self._meter,
            room=self.room,
            choice=self._choice,
            api=settings.api,
            limits=limits,
            rates=self._rates,
            progress=self.progress,
            say=self._warn,
        )
