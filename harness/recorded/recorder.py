"""Writes recorded replies into the journal of a run, and plans the run after them.

The journal of a recorded run has no reply twice: a row that is there is known by its mark, and a
sample that has a reply takes no other one.
"""

from __future__ import annotations

import shlex
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict
from datetime import UTC, datetime

from harness.errors import JournalError
from harness.journal.kept import keep
from harness.journal.line_finder import LineFinder
from harness.journal.manifest import (
    MANIFEST,
    Manifest,
    Recorded,
    RecordedFile,
    read_manifest,
    write_manifest,
)
from harness.journal.record import Failure, Record, Warn, read_records, record_of
from harness.journal.software import software
from harness.journal.writer import Journal
from harness.plan.plan import fingerprint, make_sample, sample_hash
from harness.recorded.fields import RecordedReply, RowError
from harness.recorded.files import sha256_of
from harness.recorded.reader import Imported, ImportRequest, Reader
from harness.recorded.samples import GivenSample, SampleFinder
from harness.spec import (
    Cell,
    CellKey,
    Condition,
    Line,
    Sample,
    Settings,
    line_start,
    lines_of,
)
from harness.task.catalogue import built_in_files
from providers.base import BatchForm
from providers.secrets import mask, redact

_UNKNOWN = {"temperature": None, "max_tokens": None, "api": None, "system": None}
"""Settings of a run that nobody here asked."""


def import_recorded(
    request: ImportRequest, batch_form: Callable[[], BatchForm], warn: Warn
) -> Imported:
    """Takes the rows of the files into the run; `batch_form` reads lines of OpenAI's Batch form.

    Raises:
        JournalError: the run was asked, or a file or the run's folder cannot be used.
        UsageError: the task has no such axis or value, or a package is missing.
    """
    hashes = [RecordedFile(path.name, sha256_of(path)) for path in request.files]
    refuse_asked(request)
    finder = SampleFinder(request.task, request.fixed)
    if problems := _nothing_usable(request, batch_form, finder):
        return problems
    reader = Reader(request, batch_form)
    with Journal(request.folder, warn) as run_journal:
        recorder = _Recorder(request, finder, run_journal, reader.imported)
        for place, reply in reader.replies():
            try:
                recorder.take(reply)
            except RowError as error:
                reader.imported.problems.append(f"{place}: {error}")
        recorder.save(hashes)
    return reader.imported


def _nothing_usable(
    request: ImportRequest, batch_form: Callable[[], BatchForm], finder: SampleFinder
) -> Imported | None:
    """What became of the rows where none of them can be used; then no folder is made. `None` where
    one can.
    """
    reader = Reader(request, batch_form)
    with closing(reader.replies()) as replies:
        for place, reply in replies:
            try:
                finder.of(reply)
            except RowError as error:
                reader.imported.problems.append(f"{place}: {error}")
            else:
                return None
    return reader.imported


def refuse_asked(request: ImportRequest) -> None:
    """Raises `JournalError` where the run's folder has replies that were asked."""
    folder = request.folder
    if (folder / MANIFEST).exists() and read_manifest(folder).recorded is None:
        raise JournalError(
            f"{folder} holds replies that were asked, which recorded ones never join; use another "
            "--out or --model"
        )


class _Recorder:
    """The journal of one recorded run, with what it has of each cell."""

    def __init__(
        self, request: ImportRequest, finder: SampleFinder, run_journal: Journal, imported: Imported
    ) -> None:
        self._request = request
        self._finder = finder
        self._journal = run_journal
        self._imported = imported
        self.manifest = manifest = _manifest(request)
        self._origins: set[str] = set()
        self._ids: set[str] = set()
        self._own: list[tuple[Condition, int, int]] = []
        """Condition, length and index of the task's own samples."""
        self._given: dict[CellKey, dict[int, int]] = {}
        """Cell -> index -> hash of the samples that rows gave."""
        self._next: Counter[CellKey] = Counter()
        """Cell -> the least index from which on all are free."""
        for record in read_records(request.folder):
            self._note(record)
        self._finder.keep_seed(int(manifest.settings["seed"]), is_sure=bool(self._own))

    def take(self, reply: RecordedReply) -> None:
        """Writes a reply, unless it is known.

        Raises:
            RowError: its sample cannot be found, or has another reply.
        """
        if reply.origin in self._origins:
            self._imported.known += 1
            return
        sample = self._finder.of(reply)
        self._note_model(reply)
        record = self._record(sample, reply)
        if record.id in self._ids:
            raise RowError(f"the run has another reply to sample {record.id}")
        self._journal.append(record)
        self._note(record)
        self._imported.new += 1

    def _record(self, sample: Sample | GivenSample, reply: RecordedReply) -> Record:
        """The record of a reply to one of the task's samples, or to one that its row gives."""
        if isinstance(sample, Sample):
            return _replied(sample, reply)
        record = _replied(self._made(sample), reply)
        record.line = sample.line.length
        record.prompt = sample.prompt
        record.chars = None if sample.prompt is None else len(sample.prompt)
        return record

    def _made(self, given: GivenSample) -> Sample:
        """The sample that a row gives, with an index."""
        key = given.condition, given.line
        index = self._next[key] if given.index is None else given.index
        task = self._request.task
        facts = (
            f"{task.name}@{task.spec.version}|{given.condition.label}|length={given.length}"
            f"|line={given.line.length}|index={index}"
        )
        return Sample(
            id=f"{facts}|recorded",
            condition=given.condition,
            line=given.line,
            length=given.length,
            index=index,
            prompt=given.prompt if given.prompt is not None else f"{facts}|{given.target}",
            target=given.target,
        )

    def _note(self, record: Record) -> None:
        if record.origin is not None:
            self._origins.add(record.origin)
        self._ids.add(record.id)
        if record.line is None:
            self._own.append((record.condition, record.length, record.index))
            return
        key = record.condition, self._finder.line(record.length, record.line)
        self._given.setdefault(key, {})[record.index] = _record_hash(record)
        self._next[key] = max(self._next[key], record.index + 1)

    def _note_model(self, reply: RecordedReply) -> None:
        if reply.model is None:
            return
        name, names = mask(reply.model), self.manifest.answered_by
        if not names:
            names.append(name)
        elif name not in names:
            raise RowError(
                f"{name!r} answered it, and {names[0]!r} the rows before; choose the rows of one "
                "with --where COLUMN=VALUE"
            )

    def save(self, files: Sequence[RecordedFile]) -> None:
        """Writes the manifest: files, plan and fingerprints."""
        manifest, request = self.manifest, self._request
        before = manifest.recorded or Recorded()
        manifest.recorded = Recorded(
            request.by or before.by,
            request.at or before.at,
            [*before.files, *(file for file in files if file not in before.files)],
        )
        cells = [*self._given_cells(), *self._own_cells()]
        if manifest.recorded == before and set(cells) == set(manifest.cells):
            return
        command = redact(request.command) or shlex.join(map(redact, ["bench", *sys.argv[1:]]))
        if command not in manifest.commands:
            manifest.commands.append(command)
        manifest.settings["seed"] = self._finder.seed
        manifest.kept = keep(request.folder, request.task.source)
        manifest.software = software()
        manifest.cells = []
        manifest.plan_cells(cells)
        write_manifest(request.folder, manifest)

    def _given_cells(self) -> Iterator[Cell]:
        for (condition, line), hashes in self._given.items():
            samples = max(hashes) + 1
            total = sum(hashes.values()) % 2**256 if len(hashes) == samples else None
            yield Cell(condition, line, samples, total)

    def _own_cells(self) -> Iterator[Cell]:
        """The cells of the task's own samples: on its lines, else on exact ones."""
        task, seed = self._request.task, self._finder.seed
        start = line_start(seed, task.name)
        lines = LineFinder(lines_of(task.lengths, task.spec.usual_spread), start)
        indexes: dict[CellKey, set[int]] = {}
        for condition, length, index in self._own:
            found = lines.find(length, index) or (Line.exact(length),)
            indexes.setdefault((condition, found[0]), set()).add(index)
        for (condition, line), places in indexes.items():
            samples = max(places) + 1
            total = None
            if len(places) == samples:
                made = (make_sample(task, condition, line, index, seed) for index in range(samples))
                total = fingerprint(made)
            yield Cell(condition, line, samples, total)


def _replied(sample: Sample, reply: RecordedReply) -> Record:
    """The record of what was replied; what the row lacks stays empty."""
    failed = None
    if reply.error is not None:
        failed = Failure("error", "recorded", redact(reply.error))
    record = record_of(sample, reply=reply.reply, failure=failed)
    record.origin = reply.origin
    record.finish_reason = reply.finish_reason
    record.refusal, record.reasoning = reply.refusal, reply.reasoning
    record.model = reply.model
    record.prompt_tokens, record.output_tokens = reply.prompt_tokens, reply.output_tokens
    record.latency_s = reply.latency_s
    return record


def _record_hash(record: Record) -> int:
    """The hash of a given sample, made from its record."""
    prompt = record.prompt if record.prompt is not None else record.prompt_hash
    return sample_hash(
        Sample(
            id=record.id,
            condition=record.condition,
            line=Line.exact(record.length),
            length=record.length,
            index=record.index,
            prompt=prompt,
            target=record.target,
        )
    )


def _manifest(request: ImportRequest) -> Manifest:
    """The run's manifest, read or new."""
    task, folder = request.task, request.folder
    if (folder / MANIFEST).exists():
        return read_manifest(folder)
    manifest = Manifest(
        model=request.model,
        task=task.name,
        task_version=task.spec.version,
        task_digest=task.spec.digest(),
        spec=task.spec.model_dump(mode="json"),
        settings={**asdict(Settings()), **_UNKNOWN},
        file="" if built_in_files().get(task.name) == task.path else str(task.path),
        recorded=Recorded(),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    write_manifest(folder, manifest)
    return manifest
