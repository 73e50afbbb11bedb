"""One run whose pending samples go into batches: fills, submits, polls and imports these.

A batch may take a day, and the command need not run all the time: the run's folder lists its
batches, and the same command continues from there.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from functools import partial
from itertools import chain

from eyechart.harness.errors import JournalError
from eyechart.harness.journal.writer import Journal
from eyechart.harness.plan.cost import UsageMeter
from eyechart.harness.plan.plan import Plan
from eyechart.harness.plan.request import request_of
from eyechart.harness.run.batch.context import BatchContext
from eyechart.harness.run.batch.files import RequestFile, request_line, run_tag
from eyechart.harness.run.batch.importer import ImportSummary, ReplyImporter, read_replies
from eyechart.harness.run.batch.pending import PENDING_FILE, BatchJob, PendingBatches
from eyechart.harness.run.first_replies import FirstCheck
from eyechart.harness.run.first_samples import WORTH_A_JOB, FirstSamples
from eyechart.harness.run.progress import Progress, RunOutcome
from eyechart.harness.run.room import Room
from eyechart.harness.run.run_request import RunRequest
from eyechart.harness.run.writer import PlannedRun, RunWriter
from eyechart.harness.spec import Sample
from eyechart.providers.base import (
    ProviderError,
    StopRunError,
    TransientError,
    UnknownModelError,
    sent_of,
)
from eyechart.providers.batches import BatchState
from eyechart.providers.naming import named

SETTLE_S = 10.0
"""Seconds until the service lists a batch that was created just before its command was killed."""
_MIN_SHARE = 0.1
"""Least share of the budget that a wave's worst case takes; the last wave may take less. Many small
waves would take long, since even a small batch may take a day.
"""


class BatchRun:
    """One run and its batches. The journal holds the folder's lock."""

    def __init__(
        self,
        request: RunRequest,
        run_journal: Journal,
        context: BatchContext,
        check_first: FirstCheck | None = None,
    ) -> None:
        """`check_first` judges the first replies.

        Raises `JournalError` where a batch is at another address or its state cannot be read.
        """
        self._context = context
        self._request = request
        self._run = run = PlannedRun(request, run_journal, context.warn)
        self.name = request.name
        self._pending_at_first = run.pending
        self._tag = run_tag(request.out, request.folder)
        self.batches = PendingBatches(request.folder)
        self.progress = Progress(budget=context.budget)
        self._first = FirstSamples(run, check_first, context.warn)
        self._room = Room.of(request.model, request.settings)
        self._writer = RunWriter(
            run_journal,
            run.manifest,
            context.warn,
            progress=self.progress,
            taught=(self._first.note, self._room.note),
        )
        self._meter = UsageMeter(context.budget, request.settings.system or "", say=context.warn)
        self._importer = ReplyImporter(
            request.plan.task,
            run.manifest,
            run.answered,
            self._writer,
            context.form,
            meter=self._meter,
            room=self._room,
        )
        self._lines: Iterator[tuple[bytes, float]] = iter(())
        self.next_line: tuple[bytes, float] | None = None
        """The next request and its highest cost; `None` after the last request."""
        for batch in self.batches.jobs:
            if batch.address != context.service.address:
                raise JournalError(
                    f"{request.folder} has a batch at {batch.address}, not at "
                    f"{context.service.address}; use that address again, or delete "
                    f"{request.folder / PENDING_FILE} to give it up"
                )

    @property
    def outcome(self) -> RunOutcome:
        return RunOutcome(self._request, self.progress)

    @property
    def plan(self) -> Plan:
        return self._request.plan

    @property
    def may_grow(self) -> bool:
        """Whether a further wave makes sense: no batch is under way, and asking helps."""
        return not self.batches.jobs and (self._writer.new > 0 or not self._pending_at_first)

    @property
    def is_complete(self) -> bool:
        """Whether nothing is pending and no batch is under way, so that no server is needed."""
        return not self._run.pending and not self.batches.jobs

    def save(self) -> None:
        self._run.save()

    async def begin(self, server: dict[str, object]) -> None:
        """Finds the samples to submit; only the first ones, if they decide about the others.
        `server` has the facts of the service.

        Raises:
            JournalError: another model or server answered before.
            FirstRepliesError: the first replies ended an earlier command.
        """
        if not self.batches.jobs:  # replies that are paid for are fetched, whatever the first were
            self._first.begin()
        self.batches.sweep()
        self._run.set_server(server)
        self._room.window = self._request.model.window(self._run.manifest.server)
        self._room.remember(self._request)
        await self._run.find_overflows(None)
        in_batches = self.batches.samples(self._run.manifest.cells, self._run.start)
        if in_batches is None:
            self._context.warn(
                f"{self.name}: the requests of a batch are gone from {self.batches.folder}; "
                "nothing new is submitted until it is imported"
            )
            return
        samples = self._run.samples(self._writer, in_batches, self._context.budget)
        if not self.batches.jobs and (first := self._first.take(self._context.budget, WORTH_A_JOB)):
            samples = iter(first)
        self._lines = self._requests(samples)
        self._advance()

    def decide(self) -> bool:
        """Judges the first replies, if only these were asked, and returns whether the rest is to be
        asked now; raises `FirstRepliesError` if none of them can be used.
        """
        return self._first.decide()

    def _requests(self, samples: Iterator[tuple[Sample, int]]) -> Iterator[tuple[bytes, float]]:
        settings = self._request.settings
        for sample, answer in samples:
            max_tokens = self._room.tokens(sample.prompt, answer)
            if self.progress.sent is None:
                request = request_of(
                    sample, max_tokens, settings.temperature, settings.seed, api=settings.api
                )
                self.progress.sent = sent_of(self._context.form.body(request))
            line = request_line(self._tag, sample, max_tokens, self._context.form, settings)
            yield line, self._context.budget.worst(self._meter.max_usage(sample.prompt, max_tokens))

    def _advance(self) -> None:
        self.next_line = next(self._lines, None)

    def fill(self, left: float | None) -> BatchJob | None:
        """Puts as many requests into a new batch as one file holds and `left` dollars pay for;
        returns `None` if there are none.
        """
        token = secrets.token_hex(8)
        context = self._context
        part = RequestFile(self.batches.partial(token), context.limits)
        least = _MIN_SHARE * (context.budget.limit or 0.0)
        most = 0.0
        short = False
        small: list[tuple[bytes, float]] = []
        while self.next_line is not None:
            line, dollars = self.next_line
            short = left is not None and most + dollars > left
            if short or not part.takes(line):
                break
            part.write(line)
            if most < least:
                small.append(self.next_line)
            most += dollars
            self._advance()
        if not part.requests or (short and most < least):
            part.discard()
            if small and self.next_line is not None:  # they wait until more dollars are left
                self._lines = chain(small, [self.next_line], self._lines)
                self._advance()
            return None
        batch = BatchJob(
            token=token,
            address=context.service.address,
            requests=part.requests,
            most=most,
            since_s=context.clocks.now(),
        )
        part.keep(self.batches.requests_of(batch))
        self.batches.add(batch)
        return batch

    async def submit(self, batch: BatchJob) -> None:
        """Uploads a batch and creates it at the service; a refused batch is removed from the list;
        raises `ProviderError` if the service refuses it, or does not answer.
        """
        context = self._context
        lost = False  # the reply to a request, and perhaps not the request

        async def create() -> BatchState:
            nonlocal lost
            if lost:
                await context.clocks.sleep(SETTLE_S)
                if state := await context.service.find(batch.token, batch.since_s):
                    return state
            lost = False
            try:
                return await context.service.create(file, context.form.url, batch.token)
            except TransientError:
                lost = True
                raise

        self._run.journal.sync()
        try:
            path = self.batches.requests_of(batch)
            file = await context.ask(lambda: context.service.upload(path))
            self._update(batch, await context.ask(create))
        except TransientError:
            raise
        except ProviderError:
            if not lost:
                self.batches.close(batch)
            raise

    async def recover(self) -> None:
        """Finds the batches whose id was not saved because their command was killed, and submits
        those that the service does not have.
        """
        clocks = self._context.clocks
        for batch in [batch for batch in self.batches.jobs if batch.id is None]:
            young_s = clocks.now() - batch.since_s
            await clocks.sleep(min(SETTLE_S, max(0.0, SETTLE_S - young_s)))
            find = partial(self._context.service.find, batch.token, batch.since_s)
            state = await self._context.ask(find)
            if state is not None:
                self._update(batch, state)
            elif self.batches.requests_of(batch).is_file():
                await self.submit(batch)
            else:
                self.batches.close(batch)

    def _update(self, batch: BatchJob, state: BatchState) -> None:
        """Saves the id and the status of a batch if they changed."""
        if (batch.id, batch.status) == (state.id, state.status):
            return
        batch.id, batch.status = state.id, state.status
        self.batches.save()

    async def look(self, batch: BatchJob) -> BatchState:
        """The state of a batch; raises `StopRunError` if the service does not know it."""
        assert batch.id is not None
        identifier = batch.id
        try:
            state = await self._context.ask(lambda: self._context.service.state(identifier))
        except UnknownModelError as error:
            raise StopRunError(
                f"{self.name}: batch {batch.id} is not at {batch.address} ({error}); is the key "
                "that of another account? to give the batch up, delete "
                f"{self.batches.folder / PENDING_FILE}"
            ) from error
        self._update(batch, state)
        return state

    async def collect(self, batch: BatchJob, state: BatchState) -> bool:
        """Imports the replies of an ended batch. Returns `False` if some could not be fetched; the
        batch then stays in the list.
        """
        context = self._context
        about = f"{self.name}: batch {state.id}"
        if state.status == "failed" and not state.completed and state.output_file is None:
            why = state.problems[0] if state.problems else "no reason given"
            more = f" and {len(state.problems) - 1} more" if len(state.problems) > 1 else ""
            context.warn(f"{about} failed, and nothing was asked: {why}{more}{_remedy(why)}")
            self.batches.close(batch)
            return True
        if state.completed and state.output_file is None:
            context.warn(
                f"{about} has {state.completed:,} answered requests, but names no file of replies; "
                "give the same command again to look for it, or, to give the batch up, delete "
                f"{self.batches.folder / PENDING_FILE}"
            )
            return False
        summary = ImportSummary()
        gone = False
        for what, file in (("output", state.output_file), ("error", state.error_file)):
            if file is not None and not await self._import(what, file, batch, summary):
                gone |= what == "output"
        for complaint in summary.complaints():
            context.warn(complaint)
        if gone or summary.of_run < state.completed:  # answers that are paid for
            has = f"{state.completed:,} answered requests, and its files have {summary.of_run:,}"
            context.warn(
                f"{about} has {has}; give the same command again to look for its answers, or, to "
                f"give them up, delete {self.batches.folder / PENDING_FILE}"
            )
            return False
        if state.status != "completed":
            context.warn(
                f"{about} {state.status} with {state.completed:,} of {state.total:,} answered"
            )
        self._run.journal.sync()  # before the batch is forgotten
        self.batches.close(batch)
        return True

    async def _import(self, what: str, file: str, batch: BatchJob, summary: ImportSummary) -> bool:
        """Imports one file of an ended batch; `False` if the service no longer has the file."""
        path = self.batches.replies_of(batch, what)
        try:
            await self._context.ask(lambda: self._context.service.fetch(file, path))
        except UnknownModelError as error:
            self._context.warn(f"{self.name}: batch {batch.id}: its {what} file is gone ({error})")
            return False
        before = summary.unused
        try:
            read_replies([path], {self._tag: self._importer}.get, batch.id, summary)
        except StopRunError as error:  # another model answers by now
            raise StopRunError(
                f"{error}; the replies that were paid for are in {path}: to keep them, give 'bench "
                f"export batch' another --out, then 'bench import' that file with the same --out"
            ) from error
        if summary.unused == before:
            path.unlink(missing_ok=True)
        return True


def _remedy(problem: str) -> str:
    if "token_limit_exceeded" in problem or "nqueued token" in problem:
        return (
            "; give the same command again when other batches have ended, or make the batch "
            f"smaller with {named('lengths')} or {named('samples')}"
        )
    return ""
