"""Fills a run's folder: its manifest, the answered samples and the pending ones.

Single requests, batch files and imported replies all write their runs through this module.
"""

from __future__ import annotations

import shlex
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, TypeAlias

from eyechart.harness.errors import JournalError
from eyechart.harness.journal.answers import AnswerIndex, answered
from eyechart.harness.journal.judged_before import check_journal
from eyechart.harness.journal.kept import keep
from eyechart.harness.journal.manifest import (
    MANIFEST,
    Manifest,
    check_names,
    read_manifest,
    run_mark,
    write_manifest,
)
from eyechart.harness.journal.record import Record, Warn, journal_size
from eyechart.harness.journal.server import differences, silent_one, together, unknown_addresses
from eyechart.harness.journal.software import software
from eyechart.harness.journal.writer import Journal, refuse_if_written
from eyechart.harness.plan.context_fit import CellFit, context_fits
from eyechart.harness.plan.cost import Budget
from eyechart.harness.plan.counted_prompts import counted_prompts
from eyechart.harness.plan.own_tasks import remember
from eyechart.harness.plan.plan import Plan, output_budget
from eyechart.harness.run.batch.pending import PENDING_FILE
from eyechart.harness.run.first_replies import first_count
from eyechart.harness.run.progress import Progress
from eyechart.harness.run.records import overflow
from eyechart.harness.run.run_request import RunRequest
from eyechart.harness.spec import CellKey, Condition, Sample, exact_json, line_start, token_counts
from eyechart.providers.base import Facts, StopRunError, resampled
from eyechart.providers.naming import named, turned_on
from eyechart.providers.secrets import mask, masked, redact


class PlannedRun:
    """A run that a command asks for, with what its folder already has."""

    def __init__(self, request: RunRequest, run_journal: Journal, warn: Warn) -> None:
        """Reads the journals of the run, and adds the plan to the manifest.

        Raises:
            JournalError: the folder cannot be used, its answers were to other prompts, or a shard
                of the rows is being asked.
            TaskError: a sample cannot be made.
        """
        self.request = request
        self.journal = run_journal
        self._warn = warn
        self.manifest = manifest = _manifest(request)
        plan = request.plan
        self.start = line_start(plan.seed, plan.task.name)
        self._fits: dict[CellKey, CellFit] = {}
        self._measured: set[CellKey] = set()
        self.tried: set[str] = set()
        """Ids of samples that this command has asked before the others."""
        check_journal(request.folder)
        if request.plan.shard.is_whole:
            refuse_if_written(request.folder)
        self._read()
        self._check(request.known_facts)
        for cell in manifest.cells:
            if (index := self.answered.first(cell.key)) is not None:
                # a generator or items file that changed since is found before anything is asked
                self.answered.covers(plan.sample(cell.condition, cell.line, index), cell.key)
        self._plan()
        manifest.kept = keep(request.folder, plan.task.source)
        remember(plan.task)

    def grow(self, plan: Plan) -> None:
        """Plans the next wave of an adaptive run; reads again what is answered."""
        self.request = replace(self.request, plan=plan)
        self.tried.clear()
        self._read()
        self._plan()

    def _read(self) -> None:
        lines = (*(cell.line for cell in self.manifest.cells), *self.request.plan.lines)
        self.answered = answered(self.journal.folder, self._warn, lines, self.start)

    def _plan(self) -> None:
        """Makes the plan of the manifest: that of this command, and what is answered."""
        manifest, plan = self.manifest, self.request.plan
        self._cells = plan.cells
        in_batches = (self.journal.folder / PENDING_FILE).exists()  # they may be paid for by now
        recorded = manifest.cells if in_batches else map(self.answered.recorded, manifest.cells)
        waves: Collection[Condition] = ()
        if plan.counts is not None:
            waves = plan.conditions if plan.is_adaptive else manifest.adaptive
        manifest.plan_cells(self._cells, [cell for cell in recorded if cell.samples], waves)

    @property
    def pending(self) -> int:
        """How many samples of the plan have no answer."""
        plan, answers = self.request.plan, self.answered
        return plan.size - sum(answers.count_in(cell, plan.shard) for cell in self._cells)

    @property
    def pending_symbols(self) -> int:
        """Symbols in the rows of the pending samples, by the nominal lengths of their lines."""
        shard, answers = self.request.plan.shard, self.answered
        return sum(
            cell.line.length
            * (len(shard.rows(cell.samples)) * cell.draws - answers.count_in(cell, shard))
            for cell in self._cells
        )

    def save(self) -> None:
        write_manifest(self.request.folder, self.manifest)

    def set_server(self, facts: Mapping[str, object]) -> None:
        """Writes the server's facts into the manifest; raises `JournalError` if another model or
        server gave the answers that the run has.
        """
        server = masked(exact_json.loads(exact_json.dumps(dict(facts))))
        self._check(server, whole=True)
        manifest = self.manifest
        if self.answered:
            self._accept(unknown_addresses(manifest.server, server), server)
            server = together(manifest.server, server)
        manifest.server = server
        manifest.served_as = self.request.model.served_as  # files may have been moved
        self.save()

    def _accept(self, addresses: Sequence[str], server: Mapping[str, Any]) -> None:
        """Notes new addresses that may have another model; raises `JournalError` if not
        accepted.
        """
        manifest, new = self.manifest, ", ".join(addresses)
        if not addresses:
            return
        if not self.request.accept_server:
            raise JournalError(
                f"{self.request.folder} was answered at other addresses than {new}, and whether "
                "the model is the same is not known, as no list of models has it at "
                f"{silent_one(manifest.server, server)}; if it is the same, add "
                f"{turned_on('trust')}, "
                f"else use another {named('out')} or {turned_on('fresh')}"
            )
        manifest.accepted = sorted({*manifest.accepted, *addresses})
        self._warn(f"{new} is accepted; whether it has the same model is not known")

    def _check(self, facts: Mapping[str, object], *, whole: bool = False) -> None:
        """Raises `JournalError` if another model or server gave the answers of the run. `whole`:
        `facts` are all facts, and not some of them.
        """
        if self.answered:
            known = {} if whole else self.manifest.server
            _check_server(self.request, self.manifest, {**known, **facts})

    async def find_overflows(self, counter: Facts | None) -> None:
        """Finds the cells that are too long for the model's window, and tells the user. `counter`
        counts tokens, if it can.

        Cells of earlier waves are not measured again.
        """
        request, plan = self.request, self.request.plan
        if self._measured:
            sizes = plan.sizes.items()
            plan = plan.with_counts({key: n for key, n in sizes if key not in self._measured})
        self._measured.update(plan.sizes)
        fits = await context_fits(
            plan, request.model, self.manifest.server, counter, request.settings.reply_tokens
        )
        self._fits |= fits
        for key, fit in fits.items():
            if why := str(fit):
                self._warn(f"{request.name} {key[0].label} at length {key[1]}: {why}")

    async def count_prompts(self, counter: Facts) -> None:
        """Notes the tokens of some prompts of each condition, if `counter` counts tokens."""
        manifest = self.manifest
        known = [
            condition
            for condition in self.request.plan.conditions
            if len(
                {one.length for one in token_counts.read(manifest.counted.get(condition.label, ""))}
            )
            > 1
        ]
        found = await counted_prompts(self.request.plan, counter, known)
        manifest.counted |= {one.label: token_counts.written(found[one]) for one in found}

    def first_samples(self, budget: Budget | None = None) -> list[tuple[Sample, int]]:
        """The first samples of each condition's shortest line, or of its shortest lines where one
        has too few, with their output budgets, as far as they are pending and fit into the window.
        """
        plan, sizes = self.request.plan, self.request.plan.sizes
        count = first_count(len({condition for condition, _ in sizes}))
        seen = Counter[Condition]()
        chosen = []
        for key in sorted(sizes, key=lambda key: key[1]):
            for index in plan.shard.rows(sizes[key])[: max(0, count - seen[key[0]])]:
                seen[key[0]] += 1
                sample = plan.sample(*key, index)
                if self.answered.covers(sample, key):
                    continue
                tokens = self._fitting(sample, key)
                if isinstance(tokens, int) and (budget is None or budget.take_request()):
                    chosen.append((self.answered.go_on(sample), tokens))
        return chosen

    def _fitting(self, sample: Sample, key: CellKey) -> int | str:
        """The output budget of a sample, or why it does not fit into the window."""
        cell_fit = self._fits.get(key)
        fit = None if cell_fit is None else cell_fit.at(sample.length)
        if fit is not None and not fit.fits:
            return str(fit)
        tokens = self.request.settings.reply_tokens or output_budget(sample)
        return tokens if fit is None else fit.at_most(tokens)

    def samples(
        self, writer: RunWriter, in_batches: AnswerIndex | None = None, budget: Budget | None = None
    ) -> Iterator[tuple[Sample, int]]:
        """The pending samples with their output budgets, without those that are `in_batches`, and
        no more than the requests that the `budget` has left.

        Samples that do not fit the model's window are recorded here and never sent.
        """
        for sample in self.request.plan:
            key = sample.key
            if self.answered.covers(sample, key) or sample.id in self.tried:
                continue
            if in_batches is not None and in_batches.has(key, sample.index, sample.draw):
                continue
            tokens = self._fitting(sample, key)
            if isinstance(tokens, str):
                writer.unsent(sample, tokens, known=self.answered.unsent.covers(sample, key))
            elif budget is None or budget.take_request():
                yield self.answered.go_on(sample), tokens
            else:
                return

    def note(self, record: Record) -> bool:
        """Whether the sample of the record had no answer before; notes an answer."""
        if self.answered.has_record(record):
            return False
        if not record.is_error:
            self.answered.note_record(record)
        return True


Judge: TypeAlias = Callable[[Record], bool | None]
"""Says whether the reply of a record is correct; `None` for a record that has no reply."""
MAX_NAMES = 16
"""Names of models that a manifest keeps. A server with more names probably
gives each reply a new one."""
_SAID_NAMES = 3
"""Names of models that a message to the user lists."""
_NAME_CHARS = 200


class RunWriter:
    """Writes the records of a run, and notes in the manifest which models answered."""

    def __init__(
        self,
        run_journal: Journal,
        manifest: Manifest,
        warn: Warn,
        *,
        progress: Progress | None = None,
        judge: Judge | None = None,
        taught: Sequence[Callable[[Record], None]] = (),
    ) -> None:
        """With `judge`, the progress counts correct answers. Each of `taught` is called with every
        record before it is written, and uses it to decide how the next samples are asked.
        """
        self._journal = run_journal
        self._manifest = manifest
        self._warn = warn
        self._before = tuple(manifest.answered_by)
        self._sent_before = dict(manifest.sent)
        self._said_all = False
        self._model: str | None = None
        """The model of the last reply."""
        self.progress = progress or Progress()
        self._judge = judge
        self._taught = taught
        self.new = 0
        """Number of records without an error."""

    def take(self, record: Record) -> None:
        """Writes a record and counts it in the progress."""
        self.progress.take(record, self)

    def __call__(self, record: Record) -> None:
        """Writes a record; raises `StopRunError` if another model answers than before."""
        for learn in self._taught:
            learn(record)
        self._note_sent(self.progress.sent, record.dropped_params or ())
        if record.model is not None and record.model != self._model:
            self._note_model(mask(record.model)[:_NAME_CHARS])
            self._model = record.model
        self._append(record)
        self.new += not record.is_error
        if record.latency_s is not None:
            self.progress.pace.note(record.length, record.latency_s)
        if self._judge is not None and (correct := self._judge(record)) is not None:
            self.progress.judged += 1
            self.progress.correct += correct

    def _note_sent(self, sent: Mapping[str, Any] | None, refused: Sequence[str]) -> None:
        """Notes how the model was asked; warns once where its sampling differs from that of replies
        that were there before.
        """
        manifest = self._manifest
        new = [name for name in refused if name not in manifest.refused]
        is_other = sent is not None and sent != manifest.sent
        if not new and not is_other:
            return
        manifest.refused += new
        if sent is not None and is_other:
            manifest.sent = dict(sent)
            if self._sent_before and (names := resampled(self._sent_before, sent)):
                self._warn(
                    f"earlier replies of this run were asked with another {' and '.join(names)}; "
                    f"{turned_on('fresh')} asks all again"
                )
            self._sent_before = {}
        write_manifest(self._journal.folder, manifest)

    def _note_model(self, name: str) -> None:
        """Notes the name of a model that answered; warns where several models answer."""
        names = self._manifest.answered_by
        if name in names or len(names) >= MAX_NAMES:  # more names would tell nothing new
            return
        if self._before:
            raise StopRunError(
                f"{self._manifest.model!r} is now answered by {name!r}, and was by "
                f"{', '.join(map(repr, self._before))}; use another {named('out')} or "
                f"{turned_on('fresh')}"
            )
        if 0 < len(names) <= _SAID_NAMES:
            before = " and ".join(map(repr, names))
            self._warn(f"replies now come from {name!r}, and those before from {before}")
        elif len(names) > _SAID_NAMES and not self._said_all:
            self._said_all = True
            self._warn("replies come from still more models; their names are in the journal")
        names.append(name)
        write_manifest(self._journal.folder, self._manifest)

    def unsent(self, sample: Sample, why: str, *, known: bool) -> None:
        """Records a sample that does not fit the window, unless an earlier command did."""
        if not known:
            self._append(overflow(sample, why))
            self.new += 1
        self.progress.answered += 1

    def _append(self, record: Record) -> None:
        record.run = self._manifest.run
        record.chosen = record.condition in self._manifest.adaptive
        self._journal.append(record)


def _manifest(request: RunRequest) -> Manifest:
    """The run's manifest, read or new, with this command added."""
    task, folder = request.plan.task, request.folder
    if (folder / MANIFEST).exists():
        manifest = read_manifest(folder, to_continue=True)
        if manifest.recorded is not None:
            raise JournalError(
                f"{folder} holds recorded replies, which asked ones never join; use another "
                f"{named('out')}"
            )
        if manifest.served_as != request.model.served_as and not request.model.is_file:
            now = request.model.served_as or manifest.model_name
            raise JournalError(
                f"{folder} holds a run of {manifest.model}, which was {manifest.asked_as} at its "
                f"server, and this command asks {now}; use "
                f"another {named('name')} or {named('out')}, or {turned_on('fresh')}"
            )
        check_names(folder, manifest, request.model.label, task.name)
        identity = request.model.label, task.spec.digest(), request.settings
        if (manifest.model, manifest.task_digest, manifest.settings) != identity:
            raise JournalError(
                f"{folder} holds a run of {manifest.model} on another {manifest.task}; "
                f"use another {named('out')} or {turned_on('fresh')}"
            )
    else:
        if journal_size(folder):
            raise JournalError(
                f"{folder} has replies but no {MANIFEST}, so their model and settings are unknown; "
                f"restore the file or start over with {turned_on('fresh')}"
            )
        digest, settings = task.spec.digest(), request.settings
        manifest = Manifest(
            model=request.model.label,
            task=task.name,
            task_version=task.spec.version,
            task_digest=digest,
            spec=task.spec.model_dump(mode="json"),
            settings=settings,
            variant=request.model.variant,
            served_as=request.model.served_as,
            run=run_mark(request.model.label, task.name, digest, settings),
            created=datetime.now(UTC).isoformat(timespec="seconds"),
        )
    manifest.file = "" if task.is_installed else str(task.path)
    manifest.given = dict(request.given)
    manifest.software = software(request.plugin, task.plugin)
    command_line = shlex.join(map(redact, ["bench", *sys.argv[1:]]))
    command = redact(request.command) or command_line
    if command not in manifest.commands:
        manifest.commands.append(command)
    return manifest


def _check_server(request: RunRequest, manifest: Manifest, facts: dict[str, Any]) -> None:
    """Raises `JournalError` if the facts belong to another model or server."""
    before = manifest.server
    if before and (changed := differences(before, facts)):
        name = changed[0]
        remedy = f"another {named('out')} or {turned_on('fresh')}"
        if request.model.is_code:
            raise JournalError(
                f"{request.folder} has replies of other code with the name {request.model.label}; "
                f"give this code a name of its own ({named('name', '…')}), or use {remedy}"
            )
        if request.model.is_file:
            remedy = f"another {named('name')} for these files, {remedy}"
        raise JournalError(
            f"{request.folder} was answered by another model or server ({name} was "
            f"{before.get(name)!r}, is {facts.get(name)!r}); use {remedy}"
        )
