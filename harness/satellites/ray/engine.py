"""`bench run --engine ray`: the pending samples of all runs are one job of a cluster.

Results are written as blocks finish. A job that ends early is begun again with the samples that
have no reply. After two jobs without any result the command ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Self

from eyechart.harness.journal.writer import Journal
from eyechart.harness.run.chooser import next_plan
from eyechart.harness.run.engine import Display, EngineContext
from eyechart.harness.run.first_replies import FirstStops
from eyechart.harness.run.first_samples import WORTH_A_JOB
from eyechart.harness.run.progress import RunOutcome
from eyechart.harness.run.room import Room
from eyechart.harness.run.task_run import TaskRun
from eyechart.harness.satellites.ray.cluster import Cluster, JobError
from eyechart.harness.satellites.ray.fleet import Fleet, connect
from eyechart.harness.satellites.ray.rows import ClusterJob, ResultRow, SampleRow
from eyechart.harness.settings.ray_options import RayOptions
from eyechart.providers.base import ModelSettings, StopRunError
from eyechart.providers.registry.model_name import ModelName

MOST_SAMPLES = 500_000
"""Most samples of one job; their prompts stay in the object store until it ends."""
_TRIES = 2
"""Number of jobs in a row without a reply after which the command ends."""


class RayEngine:
    """Asks the runs of a command on a cluster."""

    def __init__(
        self, asking: EngineContext, connect: Callable[..., tuple[Cluster, Fleet]]
    ) -> None:
        """The connection is closed when `run` ends."""
        self._asking = asking
        self._connect = connect
        self._runs: dict[Path, TaskRun] = {}

    @property
    def outcomes(self) -> Sequence[RunOutcome]:
        """The runs that were begun so far."""
        return [run.outcome for run in self._runs.values()]

    async def run(self) -> None:
        """Asks everything that is pending.

        Raises:
            ProviderError: there is no cluster, the model cannot be loaded, or another model answers
                than before.
            JournalError: a run's folder cannot be used.
            TaskError: a sample cannot be made.
        """
        asking, stopped = self._asking, FirstStops()
        first = asking.requests[0]
        cluster, fleet = self._connect(room=Room.of(first.model, first.settings))
        with ExitStack() as stack:
            stack.callback(cluster.close)
            if asking.old_runs.any:
                await fleet.facts()
                asking.old_runs.move_away()
            journals = {
                request.folder: stack.enter_context(
                    Journal(request.folder, asking.warn, request.journal)
                )
                for request in asking.requests
            }
            begun: list[TaskRun] = []
            for request in map(asking.first_request, asking.requests):
                room = begun[0].room if begun else None
                run = asking.run_of(request, journals[request.folder], fleet, room)
                with stopped.of(request.name):
                    await run.begin()
                    begun.append(run)
                self._runs[request.folder] = run
            runs = await self._ask_first(begun, cluster, fleet, stopped)
            while runs:
                before = {run: run.new for run in runs}
                await self._ask(runs, cluster, fleet)
                runs = await self._grown(
                    [run for run in runs if run.new > before[run] or not run.pending]
                )
            for run in self._runs.values():
                with stopped.of(run.outcome.request.name):
                    run.first.decide(is_end=True)
            stopped.end()

    async def _ask_first(
        self, runs: Sequence[TaskRun], cluster: Cluster, fleet: Fleet, stopped: FirstStops
    ) -> list[TaskRun]:
        """Asks the first samples of each run; the runs that go on."""
        job = ClusterJob(
            SampleRow(number, sample, run.room.tokens(sample.prompt, answer))
            for number, run in enumerate(runs)
            for sample, answer in run.first_samples(WORTH_A_JOB)
        )
        try:
            with suppress(JobError):  # the next job says what is wrong
                async for block in cluster.answers(job, fleet.pipeline):
                    job.back += sum(self._take(runs, job, back) for back in block)
            self._give_back(job.sent - job.back)
        finally:
            for run in runs:
                run.end()
        go_on = []
        for run in runs:
            with stopped.of(run.outcome.request.name):
                run.first.decide()
                go_on.append(run)
        return go_on

    async def _grown(self, runs: Sequence[TaskRun]) -> list[TaskRun]:
        """The adaptive runs that have a next wave."""
        grown: list[TaskRun] = []
        choose, budget = self._asking.choose, self._asking.budget
        if choose is None:
            return grown
        requests = {request.folder: request for request in self._asking.requests}
        for run in runs:
            request = requests[run.outcome.request.folder]
            plan = next_plan(request, run.plan, choose, budget, run.progress)
            if plan is not None:
                run.grow(plan)
                await run.begin()
                grown.append(run)
        return grown

    async def _ask(self, runs: Sequence[TaskRun], cluster: Cluster, fleet: Fleet) -> None:
        """Asks the pending samples of `runs`, job after job."""
        pending = sum(run.pending for run in runs)
        if not pending:
            return
        self._asking.say(f"{pending:,} samples go to {fleet.text} on Ray ({cluster.address})")
        barren = 0
        samples = self._samples(runs)
        with _ShownRun(runs, self._asking.display) as shown:
            try:
                while True:
                    job = ClusterJob(islice(samples, MOST_SAMPLES))
                    try:
                        async for block in cluster.answers(job, fleet.pipeline):
                            job.back += sum(self._take(runs, job, back) for back in block)
                            shown.update()
                    except JobError as error:
                        barren = 0 if job.back else barren + 1
                        why = f"{fleet.why() or error}; Ray's logs are in {cluster.logs}"
                        if barren == _TRIES:
                            raise StopRunError(f"the job on Ray failed: {why}") from error
                        self._asking.warn(f"the job on Ray ended early and is begun again: {why}")
                        self._give_back(job.sent - job.back)
                        for run in runs:
                            run.read_again()  # failed samples are pending again
                        samples = self._samples(runs)
                    else:
                        if not job.sent:
                            return
            finally:
                for run in runs:
                    run.end()

    def _take(self, runs: Sequence[TaskRun], job: ClusterJob, back: ResultRow) -> bool:
        """Charges and writes the result of a sample; returns whether it is new."""
        record, charged = back.record, back.charged
        if record is not None:
            job.check(back.run, record)
            if not runs[back.run].note(record):
                return False
        self._asking.budget.charge(*charged.usages, estimated=charged.estimated)
        if record is None:
            raise back.stop or StopRunError("a worker of Ray ended the run")
        runs[back.run].take(record)
        return True

    def _give_back(self, samples: int) -> None:
        """Counts samples without a reply as not asked, so that they may be asked again."""
        if self._asking.budget.requests is not None:
            self._asking.budget.requests += samples

    @staticmethod
    def _samples(runs: Sequence[TaskRun]) -> Iterator[SampleRow]:
        """The pending samples of all runs, one run after another."""
        for number, run in enumerate(runs):
            for sample, max_tokens in run.samples():
                yield SampleRow(number, sample, max_tokens)


class _ShownRun:
    """Shows the first incomplete run, since samples are sent run by run."""

    def __init__(self, runs: Sequence[TaskRun], display: Display) -> None:
        self._left = list(runs)
        self._display = display
        self._shown = ExitStack()

    def __enter__(self) -> Self:
        self._open()
        return self

    def __exit__(self, *_: object) -> None:
        self._shown.close()

    def update(self) -> None:
        """Shows the next run if this one is complete."""
        while self._left and self._left[0].progress.done >= self._left[0].progress.total:
            self._shown.close()
            self._left.pop(0)
            self._open()

    def _open(self) -> None:
        if self._left:
            outcome = self._left[0].outcome
            self._shown.enter_context(self._display.show(outcome.request, outcome.progress))


def open_engine(
    asking: EngineContext, cluster: RayOptions, name: ModelName, settings: ModelSettings
) -> RayEngine:
    """The engine of `--engine ray`. It connects to the cluster when it runs."""
    seed = asking.requests[0].settings.seed
    return RayEngine(asking, partial(connect, cluster, name, settings, asking.limits, seed=seed))
