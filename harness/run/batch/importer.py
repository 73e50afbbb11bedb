"""Writes replies from files into the journals of their runs.

A line that cannot be used is skipped and counted. No sample gets two answers: the same file may be
read again, whole or in part, and some of its samples may have been asked directly.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, Literal, TypeAlias

from eyechart.harness.errors import TaskError
from eyechart.harness.journal import answers
from eyechart.harness.journal.answers import AnswerIndex, text_mark
from eyechart.harness.journal.manifest import Manifest, read_manifest
from eyechart.harness.journal.record import Warn
from eyechart.harness.journal.server import addresses
from eyechart.harness.journal.writer import Journal
from eyechart.harness.plan.cost import UsageMeter
from eyechart.harness.plan.plan import drawn_again, make_sample, output_budget
from eyechart.harness.plan.request import seed_of
from eyechart.harness.run.batch.files import (
    CustomId,
    ReplyLine,
    condition_tag,
    read_custom_id,
    reply_lines,
)
from eyechart.harness.run.records import answered, failed, kind_of
from eyechart.harness.run.room import Room
from eyechart.harness.run.writer import RunWriter
from eyechart.harness.settings.checks import MAX_DRAWS
from eyechart.harness.spec import MAX_LENGTH, MAX_SAMPLES, Condition, Line, line_start
from eyechart.harness.task.catalogue import Task
from eyechart.providers.base import ModelSettings, ProviderError, Reply, SampleError, TransientError
from eyechart.providers.batches import BatchForm
from eyechart.providers.naming import named
from eyechart.providers.registry.model_name import parse_model
from eyechart.providers.registry.registry import open_batch_form
from eyechart.providers.secrets import redact

Fate: TypeAlias = Literal[
    "answered",
    "failed",
    "known",
    "torn",
    "no JSON",
    "foreign",
    "request",
    "no run",
    "unknown",
    "changed",
]
"""What was done with a line."""
USED: tuple[Fate, Fate, Fate] = ("answered", "failed", "known")
"""What was done with lines that were used."""
_UNUSED: Mapping[Fate, str] = {
    "torn": "the last line is cut off",
    "no JSON": "the line is no JSON object",
    "foreign": "the line has no custom_id of Eyechart",
    "no run": f"the reply's run is not here; give the folder that holds it with {named('out')}",
    "unknown": "the reply's task has no such sample",
    "changed": "the reply is to another prompt: the task changed after the request",
    "request": "the line is a request, not a reply",
}
"""Why a line could not be used."""


class ReplyImporter:
    """Writes lines of replies into the journal of one run."""

    def __init__(
        self,
        task: Task,
        manifest: Manifest,
        answered: AnswerIndex,
        writer: RunWriter,
        form: BatchForm,
        *,
        meter: UsageMeter,
        room: Room,
    ) -> None:
        """`writer` takes each record, `meter` charges each reply. `room` says how many tokens a
        reply without usage may have taken.
        """
        self._task = task
        self._answered = answered
        self._writer = writer
        self._form = form
        self._meter = meter
        self._room = room
        self._max_tokens = manifest.settings.max_tokens
        self._seed = manifest.settings.seed
        self._is_drawn = bool(manifest.settings.temperature)
        self._conditions = {
            condition_tag(cell.condition): cell.condition for cell in manifest.cells
        }

    @property
    def last_failure(self) -> str:
        """The reason why the latest sample without a reply has none."""
        return self._writer.progress.last_failure

    def take(self, custom_id: CustomId, line: Mapping[str, Any], batch: str | None = None) -> Fate:
        """Writes the reply or error on `line` for the sample in `custom_id`. `batch` is the id of
        its batch.

        Raises:
            StopRunError: another model answered than before.
            JournalError: the journal has an answer to another prompt, or cannot be written.
            TaskError: the sample cannot be made.
        """
        condition = self._condition(custom_id.condition)
        if (
            condition is None
            or custom_id.length > MAX_LENGTH
            or custom_id.index >= MAX_SAMPLES
            or custom_id.draw > MAX_DRAWS
        ):
            return "unknown"
        exact = Line.exact(custom_id.length)
        try:
            first = make_sample(self._task, condition, exact, custom_id.index, self._seed)
        except TaskError:
            return "unknown"
        sample = drawn_again(first, custom_id.draw)
        if not sample.prompt_hash.startswith(custom_id.prompt):
            return "changed"
        key = self._answered.cell_key(sample)
        if self._answered.covers(sample, key):
            return "known"
        try:
            reply = self._read(line)
        except ProviderError as error:
            if isinstance(error, TransientError):
                self._meter.settle_nothing(error.usage)
            kind = kind_of(error)
            if kind != "error":
                self._writer.take(failed(sample, error, attempts=1, batch=batch))
                self._answered.note(sample)
                return "answered"
            reason = text_mark(str(error))
            if self._answered.failed.mark(key, sample.index, sample.draw) == reason:
                return "known"
            self._writer.take(failed(sample, error, attempts=1, batch=batch))
            self._answered.failed.add(condition, sample.length, sample.index, reason, sample.draw)
            return "failed"
        least = self._max_tokens or output_budget(sample)
        most = self._room.tokens(sample.prompt, least)
        reply, _ = self._meter.settle(reply, sample.prompt, most)
        record = answered(
            sample,
            reply,
            attempts=1,
            latency_s=None,
            batch=batch,
            max_tokens=most if most == least else None,  # else a request had less room, or as much
            seed=seed_of(self._seed, sample.draw) if self._is_drawn else None,
        )
        self._writer.take(record)
        self._answered.note(sample)
        return "answered"

    def _condition(self, tag: str) -> Condition | None:
        """The condition with this tag, even if it left the plan: its reply may be paid for."""
        if tag not in self._conditions:
            axes = self._task.spec.axes
            for values in product(*(axis.values for axis in axes.values())):
                condition = Condition(zip(axes, values, strict=True))
                self._conditions[condition_tag(condition)] = condition
        return self._conditions.get(tag)

    def _read(self, line: Mapping[str, Any]) -> Reply:
        try:
            return self._form.reply(line)
        except ProviderError:
            raise
        except Exception as error:  # an unexpected reply costs only its own line
            raise SampleError(redact(f"{type(error).__name__}: {error}")) from error


@dataclass(slots=True)
class ImportSummary:
    """The counts of what was done with the lines of some files."""

    fates: Counter[Fate] = field(default_factory=Counter)
    firsts: dict[Fate, str] = field(default_factory=dict)
    """The place of the first line of each kind: `file:line`."""

    def add(self, fate: Fate, path: Path, number: int) -> None:
        self.fates[fate] += 1
        self.firsts.setdefault(fate, f"{path}:{number}")

    @property
    def unused(self) -> int:
        """How many lines could not be used."""
        return sum(self.fates[fate] for fate in _UNUSED)

    @property
    def of_run(self) -> int:
        """How many lines were replies or errors of the run, used or not."""
        return sum(self.fates[fate] for fate in (*USED, "unknown", "changed"))

    def complaints(self) -> list[str]:
        """A message for each reason why lines could not be used."""
        return [
            f"{self.firsts[fate]}: {what} ({self.fates[fate]:,} such)"
            for fate, what in _UNUSED.items()
            if self.fates[fate]
        ]


def read_replies(
    paths: Iterable[Path],
    importer_of: Callable[[str], ReplyImporter | None],
    batch: str | None = None,
    summary: ImportSummary | None = None,
) -> ImportSummary:
    """Reads files of replies line by line; `importer_of` returns the importer of the run with a
    tag, or `None` if there is no such run here.

    `batch` is the id of the batch of these files; `summary` has the counts of earlier files.

    Raises:
        JournalError: a file or a run's folder cannot be used.
        StopRunError: another model answered a run than before.
        TaskError, TaskFileError, UnknownTaskError: samples cannot be made again.
    """
    summary = summary or ImportSummary()
    for path in paths:
        for line in reply_lines(path):
            summary.add(_fate(line, importer_of, batch), path, line.number)
    return summary


def _fate(
    line: ReplyLine, importer_of: Callable[[str], ReplyImporter | None], batch: str | None
) -> Fate:
    if line.read is None:
        return "torn" if line.torn else "no JSON"
    custom_id = read_custom_id(line.read.get("custom_id"))
    if custom_id is None:
        return "foreign"
    if "body" in line.read and not line.read.keys() & {"response", "error"}:
        return "request"
    importer = importer_of(custom_id.run)
    return "no run" if importer is None else importer.take(custom_id, line.read, batch)


class ReplyImporters:
    """The runs that replies belong to; each is opened and locked at its first reply."""

    def __init__(
        self,
        folders: Mapping[str, Path],
        task_of: Callable[[Path, Manifest], Task],
        stack: ExitStack,
        warn: Warn,
    ) -> None:
        """`folders` has every run by its tag. `task_of` opens the task of a run, given its folder
        and manifest; the run may come from a stranger.
        """
        self._folders = folders
        self._task_of = task_of
        self._stack = stack
        self._warn = warn
        self.opened: dict[Path, ReplyImporter] = {}

    def of(self, tag: str) -> ReplyImporter | None:
        """The importer of the run with this tag; `None` if there is no such run here."""
        folder = self._folders.get(tag)
        if folder is None:
            return None
        if folder not in self.opened:
            self.opened[folder] = self._open(folder)
        return self.opened[folder]

    def _open(self, folder: Path) -> ReplyImporter:
        manifest = read_manifest(folder)
        task = self._task_of(folder, manifest)
        name = parse_model(manifest.asked_as, base_urls=addresses(manifest.server))
        settings = manifest.settings
        form = open_batch_form(
            name,
            ModelSettings(name.model, **settings.shared()),
        )
        run_journal = self._stack.enter_context(Journal(folder, self._warn))
        start = line_start(settings.seed, manifest.task)
        lines = (cell.line for cell in manifest.cells)
        writer = RunWriter(run_journal, manifest, self._warn)
        return ReplyImporter(
            task,
            manifest,
            answers.answered(folder, self._warn, lines, start),
            writer,
            form,
            meter=UsageMeter(say=self._warn),
            room=Room(),
        )
