"""The samples of a run that are asked before all others, and what their replies decide."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from eyechart.harness.journal.line_finder import LineFinder
from eyechart.harness.journal.record import Record, Warn, read_records
from eyechart.harness.plan.cost import Budget
from eyechart.harness.run.first_replies import FirstCheck, FirstRepliesError, first_count
from eyechart.harness.run.writer import PlannedRun
from eyechart.harness.spec import Sample
from eyechart.providers.naming import turned_on

WORTH_A_JOB = 10
"""The first samples get a batch, or a job of a cluster, of their own only if the run has at least
this many times as many samples: each batch and each job takes time to start."""


class FirstSamples:
    """The first samples of one run. Without `check` all samples are asked at once."""

    def __init__(self, run: PlannedRun, check: FirstCheck | None, warn: Warn) -> None:
        self._run = run
        self._check = check
        self._warn = warn
        self._ids: set[str] = set()
        self._records: list[Record] = []
        self._is_open = False
        """Whether replies are awaited that decide."""

    def begin(self) -> None:
        """Raises `FirstRepliesError` if the run has replies to earlier commands, of which none has
        an answer that can be read.
        """
        request, check = self._run.request, self._check
        if check is None or self._is_open or not self._run.pending:
            return
        first = list(islice(self._earlier(), self._few))
        if len(first) == self._few and check(request, first).stop:
            found = check(request, list(self._earlier()))  # later ones may be better
            if found.stop:
                raise FirstRepliesError.again(found.stop[0])

    def take(self, budget: Budget, least: int = 1) -> list[tuple[Sample, int]]:
        """The first samples with the tokens of their answers. Empty if the run has other replies,
        or if the pending samples are not more than `least` times as many: these are
        judged when all of them were asked.
        """
        request, pending = self._run.request, self._run.pending
        if self._check is None or self._ids:
            return []
        if request.plan.size - self._few > pending:
            return []
        self._is_open = True
        self._records = list(self._earlier())
        if pending <= least * self._few:
            return []
        chosen = self._run.first_samples(budget)
        self._ids = {sample.id for sample, _ in chosen}
        return chosen

    def note(self, record: Record) -> None:
        """Keeps a record, if the first ones are not yet judged."""
        if self._is_open:
            self._records.append(record)
        if record.id in self._ids:
            self._run.tried.add(record.id)

    def decide(self, *, is_end: bool = False) -> bool:
        """Judges the first replies; `False` if no samples were taken as the first ones. The first
        waves of an adaptive run may be too small for that, unless `is_end`.

        Raises:
            FirstRepliesError: none of them can be used, so that the rest should not be asked.
        """
        plan, records = self._run.request.plan, self._records
        is_early = plan.counts is not None and len(records) < self._few and not is_end
        if self._check is None or not self._is_open or not records or is_early:
            return False
        self._is_open, self._records = False, []
        found = self._check(self._run.request, records)
        if found.warning:
            self._warn(found.warning)
        if found.stop:
            has_more = bool(self._ids) or plan.counts is not None
            *lines, remedy = found.stop
            ways = [
                *["the same command asks them again"] * found.asks_again,
                *[f"{turned_on('keep_going')} asks the rest all the same"] * has_more,
            ]
            raise FirstRepliesError(
                [*lines, "; ".join([remedy, *ways])], asks_again=found.asks_again
            )
        return bool(self._ids)

    @property
    def _few(self) -> int:
        conditions = len(self._run.request.plan.conditions)
        return first_count(conditions) * conditions

    def _earlier(self) -> Iterator[Record]:
        """The replies that the run has under the conditions and on the lines of its plan."""
        folder, plan = self._run.request.folder, self._run.request.plan
        lines = LineFinder(plan.lines, self._run.start)
        for record in read_records(folder):
            if not record.is_error and record.condition in plan.conditions and lines.of(record):
                yield record
