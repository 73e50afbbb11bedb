"""`bench run --batch`: what is pending goes into batches, which are waited for and imported.

A batch may take a day, and the command need not: each run's folder knows what was submitted, and
the same command goes on from there. A batch cannot be stopped midway, so under a budget only as
much is submitted as is paid for at the worst; what that leaves of the budget is the next wave.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from itertools import chain

from harness.errors import JournalError
from harness.journal.writer import Journal
from harness.plan.cost import Account, Budget
from harness.run.batch.context import FIRST_POLL_S, LONGEST_POLL_S, Desk
from harness.run.batch.files import RequestFile, request_line, run_tag
from harness.run.batch.importer import Intake, Tally, read_replies
from harness.run.batch.pending import STATE, Ledger, Submitted
from harness.run.open_run import OpenRun, Recorder, Wanted
from harness.run.retry import Progress
from harness.spec import Sample
from providers.base import (
    BadReplyError,
    BatchState,
    ProviderError,
    SampleError,
    SetupError,
    StopRunError,
    TransientError,
    UnknownModelError,
)

_SLOWER = 1.5
SETTLE_S = 10.0
"""How long a request of a killed command may take to become a batch that can be found."""
_LEAST_SHARE = 0.1
"""Of the budget, that the worst case of a wave takes if it is not the last: a batch may take a day,
however small."""
_ENDED = ("completed", "failed", "expired", "cancelled")


class BatchedRun:
    """One run and its batches; its folder is locked."""

    def __init__(self, run: OpenRun, desk: Desk) -> None:
        """Raises `JournalError` where a batch is elsewhere or its state cannot be read."""
        self._desk = desk
        self._run = run
        self._wanted = run.wanted
        self.name = run.wanted.plan.task.name
        self._tag = run_tag(run.wanted.out, run.wanted.folder)
        self.ledger = Ledger(run.wanted.folder)
        self.progress = Progress(budget=desk.budget)
        keep = Recorder(run.book, run.manifest, desk.warn, progress=self.progress)
        self._keep = keep
        system = run.wanted.settings.system or ""
        self._account = Account(desk.budget, system, desk.facts.room_to_think, say=desk.warn)
        self._intake = Intake(
            run.wanted.plan.task,
            run.manifest,
            run.answered,
            keep,
            desk.form,
            account=self._account,
        )
        self._lines: Iterator[tuple[bytes, float]] = iter(())
        self.ahead: tuple[bytes, float] | None = None
        """The next request and what it costs at most."""
        self._all_seen = False
        for batch in self.ledger.batches:
            if batch.address != desk.service.address:
                raise JournalError(
                    f"{run.wanted.folder} has a batch at {batch.address}, not at "
                    f"{desk.service.address}; go on there, or delete "
                    f"{run.wanted.folder / STATE} to give it up"
                )

    @property
    def idle(self) -> bool:
        """Whether nobody need be there."""
        return not self._run.pending and not self.ledger.batches

    def save(self) -> None:
        """Writes the manifest."""
        if self._all_seen:
            self._run.seen()
        self._run.save()

    async def begin(self, server: dict[str, object]) -> None:
        """Sees what is to be submitted; `server` says who answers.

        Raises:
            JournalError: somebody else answered before.
        """
        self.ledger.sweep()
        self._run.meet(server)
        await self._run.measure(None)
        asked = self.ledger.asked(cell.key for cell in self._run.manifest.cells)
        if asked is None:
            self._desk.warn(
                f"{self.name}: the requests of a batch are gone from {self.ledger.folder}; "
                "nothing new is submitted until it is imported"
            )
            return
        self._lines = self._requests(self._run.samples(self._keep, asked))
        self._next()

    def _requests(self, samples: Iterator[tuple[Sample, int]]) -> Iterator[tuple[bytes, float]]:
        settings = self._wanted.settings
        for sample, max_tokens in samples:
            line = request_line(self._tag, sample, max_tokens, self._desk.form, settings)
            yield line, self._desk.budget.worst(self._account.most(sample.prompt, max_tokens))
        self._all_seen = True

    def _next(self) -> None:
        self.ahead = next(self._lines, None)

    def fill(self, left: float | None) -> Submitted | None:
        """Puts as much as one file holds and `left` dollars pay for into a batch to be submitted;
        `None` where that is nothing.
        """
        token = secrets.token_hex(8)
        desk = self._desk
        part = RequestFile(self.ledger.partial(token), desk.limits)
        least = _LEAST_SHARE * (desk.budget.limit or 0.0)
        most = 0.0
        short = False
        small: list[tuple[bytes, float]] = []
        while self.ahead is not None:
            line, dollars = self.ahead
            short = left is not None and most + dollars > left
            if short or not part.takes(line):
                break
            part.write(line)
            if most < least:
                small.append(self.ahead)
            most += dollars
            self._next()
        if not part.requests or (short and most < least):
            part.discard()
            if small and self.ahead is not None:  # they wait for more to be left
                self._lines = chain(small, [self.ahead], self._lines)
                self._next()
            return None
        batch = Submitted(
            token=token,
            address=desk.service.address,
            requests=part.requests,
            most=most,
            since_s=desk.waiting.now(),
        )
        part.keep(self.ledger.requests_of(batch))
        self.ledger.add(batch)
        return batch

    async def submit(self, batch: Submitted) -> None:
        """Uploads a batch and has it begin; one that was refused is forgotten.

        Raises:
            ProviderError: it was refused, or nobody answers.
        """
        desk = self._desk
        tried = False

        async def create() -> BatchState:
            nonlocal tried
            if tried and (found := await desk.service.find(batch.token, batch.since_s)):
                return found  # its reply was lost, and not the request
            tried = True
            return await desk.service.create(file, desk.form.url, batch.token)

        self._run.book.sync()
        try:
            path = self.ledger.requests_of(batch)
            file = await desk.ask(lambda: desk.service.upload(path))
            self._heard(batch, await desk.ask(create))
        except TransientError:
            raise
        except ProviderError:
            self.ledger.close(batch)
            raise

    async def recover(self) -> None:
        """Finds batches whose ids were not written down, and submits those that never were."""
        waiting = self._desk.waiting
        for batch in [one for one in self.ledger.batches if one.id is None]:
            young_s = waiting.now() - batch.since_s
            await waiting.sleep(min(SETTLE_S, max(0.0, SETTLE_S - young_s)))
            find = partial(self._desk.service.find, batch.token, batch.since_s)
            found = await self._desk.ask(find)
            if found is not None:
                self._heard(batch, found)
            elif self.ledger.requests_of(batch).is_file():
                await self.submit(batch)
            else:
                self.ledger.close(batch)

    def _heard(self, batch: Submitted, state: BatchState) -> None:
        """Keeps what is new of a batch."""
        if (batch.id, batch.status) == (state.id, state.status):
            return
        batch.id, batch.status = state.id, state.status
        self.ledger.save()

    async def look(self, batch: Submitted) -> BatchState:
        """How far a batch is.

        Raises:
            StopRunError: it is not there.
        """
        assert batch.id is not None
        identifier = batch.id
        try:
            state = await self._desk.ask(lambda: self._desk.service.state(identifier))
        except UnknownModelError as error:
            raise StopRunError(
                f"{self.name}: batch {batch.id} is not at {batch.address} ({error}); is the key of "
                f"another account? deleting {self.ledger.folder / STATE} gives it up"
            ) from error
        self._heard(batch, state)
        return state

    async def collect(self, batch: Submitted, state: BatchState) -> bool:
        """Takes what an ended batch has into the journal; whether it is done with."""
        desk = self._desk
        about = f"{self.name}: batch {state.id}"
        if state.status == "failed":
            why = state.problems[0] if state.problems else "no reason given"
            more = f" and {len(state.problems) - 1} more" if len(state.problems) > 1 else ""
            desk.warn(f"{about} failed, and nothing was asked: {why}{more}{_remedy(why)}")
            self.ledger.close(batch)
            return True
        if state.completed and state.output_file is None:
            desk.warn(
                f"{about} says that {state.completed:,} requests are answered and names no file of "
                f"them; the same command looks again, and deleting {self.ledger.folder / STATE} "
                "gives it up"
            )
            return False
        tally = Tally()
        gone = False
        for what, file in (("output", state.output_file), ("error", state.error_file)):
            if file is not None and not await self._import(what, file, batch, tally):
                gone |= what == "output"
        for complaint in tally.complaints():
            desk.warn(complaint)
        if gone:  # answers that are paid for
            desk.warn(
                f"{about}: the same command looks for its answers again, and deleting "
                f"{self.ledger.folder / STATE} gives them up"
            )
            return False
        if state.status != "completed":
            desk.warn(
                f"{about} {state.status} with {state.completed:,} of {state.total:,} answered"
            )
        self._run.book.sync()  # before the batch is forgotten
        self.progress.answered += tally.fates["answered"]
        self.progress.failed += tally.fates["failed"]
        self.progress.last_failure = self._intake.last_failure
        self.ledger.close(batch)
        return True

    async def _import(self, what: str, file: str, batch: Submitted, tally: Tally) -> bool:
        """Takes a file of an ended batch into the journal; whether it was there."""
        path = self.ledger.replies_of(batch, what)
        try:
            await self._desk.ask(lambda: self._desk.service.fetch(file, path))
        except UnknownModelError as error:
            self._desk.warn(f"{self.name}: batch {batch.id}: its {what} file is gone ({error})")
            return False
        before = tally.unused
        try:
            read_replies([path], {self._tag: self._intake}.get, batch.id, tally)
        except StopRunError as error:  # another model answers by now
            raise StopRunError(
                f"{error}; what was paid for is in {path}: 'bench export batch' with another "
                "--out, then 'bench import' of that file with it, keep it"
            ) from error
        if tally.unused == before:
            path.unlink(missing_ok=True)
        return True


def _remedy(problem: str) -> str:
    if "token_limit_exceeded" in problem or "nqueued token" in problem:
        return (
            "; the same command submits it once other batches are done, and --lengths or "
            "--samples make it smaller"
        )
    return ""


async def run_batched(
    runs: Sequence[Wanted],
    desk: Desk,
    begun: list[tuple[Wanted, Progress]],
    *,
    make_way: Callable[[], None] | None = None,
) -> None:
    """Submits what is pending in `runs`, waits, and imports; `begun` is told of each run.

    `make_way` is called first, once the service has answered something. Where a batch fails nothing
    more is submitted, and the others are waited for.

    Raises:
        ProviderError: the service refuses or does not answer, or another model answers than before.
        JournalError: a run's folder cannot be used.
        TaskError: a sample cannot be made.
    """
    jobs: list[BatchedRun] = []
    with ExitStack() as stack:
        try:
            if make_way is not None:
                await _has_answered(desk)
                make_way()
            for one in runs:
                book = stack.enter_context(Journal(one.folder, desk.warn))
                job = BatchedRun(OpenRun(one, book, desk.warn), desk)
                begun.append((one, job.progress))
                jobs.append(job)
            if not all(job.idle for job in jobs):
                server = dict(await desk.service.facts())
                for job in jobs:
                    await job.begin(server)
                for job in jobs:
                    await job.recover()
                await _run_waves(jobs, desk)
        except SetupError:  # there is nothing to show of a run that cannot be asked
            begun.clear()
            raise
        finally:
            for job in jobs:
                job.save()
            await desk.service.aclose()


async def _has_answered(desk: Desk) -> None:
    """Waits for any answer of the service; raises a `StopRunError` where it lets nobody in."""

    async def look() -> None:
        with suppress(UnknownModelError, SampleError, BadReplyError):  # it has no list: it is there
            await desk.service.find("", desk.waiting.now())

    await desk.ask(look)


async def _run_waves(jobs: Sequence[BatchedRun], desk: Desk) -> None:
    given_up: list[Submitted] = []
    shown: dict[str, str] = {}
    refused = False
    while True:
        for job in [] if refused else jobs:
            while batch := job.fill(_left(jobs, desk.budget)):
                await job.submit(batch)
            if job.ahead is not None:
                break  # it keeps its place before the runs that follow
        live = [
            (job, batch) for job in jobs for batch in job.ledger.batches if batch not in given_up
        ]
        if not live:
            desk.budget.full = not refused and any(job.ahead is not None for job in jobs)
            return
        for job, batch, state in await _until_one_ends(live, desk, shown):
            if not await job.collect(batch, state):
                given_up.append(batch)
            refused |= state.status == "failed"


def _left(jobs: Sequence[BatchedRun], budget: Budget) -> float | None:
    """Dollars of the budget that neither were spent nor may be by the batches under way."""
    if budget.limit is None:
        return None
    return budget.limit - budget.spent - sum(b.most for job in jobs for b in job.ledger.batches)


async def _until_one_ends(
    live: Sequence[tuple[BatchedRun, Submitted]], desk: Desk, shown: dict[str, str]
) -> list[tuple[BatchedRun, Submitted, BatchState]]:
    """Looks at batches, ever more rarely, until some have ended; says what is not `shown` yet."""
    wait_s = FIRST_POLL_S
    while True:
        ended = []
        for job, batch in live:
            state = await job.look(batch)
            failed = f", {state.failed:,} failed" if state.failed else ""
            done = f"{state.completed:,} of {state.total or batch.requests:,} answered{failed}"
            line = f"{job.name}: batch {state.id} is {state.status.replace('_', ' ')}, {done}"
            if shown.get(batch.token) != line:
                shown[batch.token] = line
                desk.say(line)
            if state.status in _ENDED:
                ended.append((job, batch, state))
        if ended:
            return ended
        await desk.waiting.sleep(wait_s)
        wait_s = min(_SLOWER * wait_s, LONGEST_POLL_S)
