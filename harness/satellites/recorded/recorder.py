"""Writes recorded replies into the journal of a run, and plans the run after them.

The journal of a recorded run has no reply twice. A row is recognised by its file and its content,
and a sample that has a reply takes no other one.
"""

from __future__ import annotations

import shlex
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from eyechart.harness.errors import JournalError, UsageError
from eyechart.harness.journal.answers import text_mark
from eyechart.harness.journal.kept import keep
from eyechart.harness.journal.line_finder import LineFinder
from eyechart.harness.journal.manifest import (
    MANIFEST,
    Manifest,
    check_names,
    read_manifest,
    run_mark,
    write_manifest,
)
from eyechart.harness.journal.record import Failure, Record, Warn, read_records, record_of
from eyechart.harness.journal.recorded import RecordedFiles
from eyechart.harness.journal.software import software
from eyechart.harness.journal.writer import Journal
from eyechart.harness.plan.own_tasks import remember
from eyechart.harness.plan.plan import (
    drawn_again,
    id_of_draw,
    sample_hash,
)
from eyechart.harness.satellites.recorded.draws import Draws, Given, given_of
from eyechart.harness.satellites.recorded.fields import DRAW, RecordedReply, RowError, RowMark
from eyechart.harness.satellites.recorded.reader import ImportRequest, ImportResult, Reader
from eyechart.harness.satellites.recorded.rows import RecordedRows, RowPlace, RowProblem
from eyechart.harness.satellites.recorded.samples import GivenSample, SampleFinder
from eyechart.harness.satellites.recorded.sources import GivenFile, Sources
from eyechart.harness.spec import (
    Cell,
    CellKey,
    Condition,
    Line,
    Sample,
    Settings,
    line_start,
    lines_of,
)
from eyechart.providers.batches import BatchForm
from eyechart.providers.naming import named
from eyechart.providers.secrets import mask, redact

_SHOWN_MODELS = 6
"""Names of models that a message lists, at most."""
_UNKNOWN = Settings(temperature=None, api=None)
"""Settings of a run that was not asked here."""


def import_recorded(
    request: ImportRequest, rows: RecordedRows, batch_form: Callable[[], BatchForm], warn: Warn
) -> ImportResult:
    """Writes the rows of the request's model into its run. `batch_form` reads lines of OpenAI's
    Batch form.

    Raises:
        JournalError: the run was asked, or its folder cannot be used.
        UsageError: the task has no such axis or value, or a package is missing.
    """
    _refuse_asked(request.folder)
    finder = SampleFinder(request.task, request.fixed)
    reader = Reader(request, rows, batch_form)
    if unused := _nothing_usable(reader, finder):
        return unused
    found = _survey(reader, finder)
    reader.only_model = _only_model(request, found.models, warn)
    nameless = 0 if reader.only_model or not found.models else found.nameless
    imported = ImportResult(nameless=nameless, draw_column=rows.draw_column)
    with Journal(request.folder, warn) as run_journal:
        recorder = _Recorder(request, finder, run_journal, imported, found)
        recorder.place(rows.files, reader)
        is_named = recorder.sources.name(rows.files, request.by, request.at, warn)
        if is_named:
            write_manifest(request.folder, recorder.manifest)
        for place, reply in reader.replies(imported):
            try:
                recorder.take(reply, place)
            except RowError as error:
                imported.problems.append(RowProblem(place, str(error)))
        recorder.save(is_named=is_named)
    imported.is_unproven = finder.is_unproven
    return imported


def _refuse_asked(folder: Path) -> None:
    """Raises `JournalError` if the replies of a run were asked."""
    if (folder / MANIFEST).exists() and read_manifest(folder).recorded is None:
        raise JournalError(
            f"{folder} holds replies that were asked, which recorded ones never join; use another "
            f"{named('out')} or --model"
        )


def _nothing_usable(reader: Reader, finder: SampleFinder) -> ImportResult | None:
    """The result of an import without any usable row, which makes no folder; else `None`."""
    imported = ImportResult()
    for place, reply in reader.replies(imported):
        try:
            finder.of(reply)
        except RowError as error:
            imported.problems.append(RowProblem(place, str(error)))
        else:
            return None
    return imported


@dataclass(slots=True)
class _Found:
    """What the rows of all files say."""

    models: list[str] = field(default_factory=list)
    """The models that they name, in their order."""
    nameless: int = 0
    """Rows with a reply that name none."""
    is_numbered: bool = False
    """Whether at least one row says its index."""
    draws: Draws = field(default_factory=Draws)


def _survey(reader: Reader, finder: SampleFinder) -> _Found:
    found, models = _Found(), dict[str, None]()
    for _, reply in reader.replies(ImportResult()):
        if reply.model is not None:
            models[reply.model] = None
        elif reply.reply is not None:
            found.nameless += 1
        with suppress(RowError):
            sample = finder.of(reply)
            found.draws.note(sample, reply.draw)
            found.is_numbered |= isinstance(sample, GivenSample) and sample.index is not None
    found.models = [*models]
    found.draws.begin()
    return found


def _only_model(request: ImportRequest, models: Sequence[str], warn: Warn) -> str | None:
    """The one model whose rows are imported. If the files have several, it is the model of the run.

    Raises:
        UsageError: the files have several models, and none is the model of the run.
    """
    wanted = _bare(request.model)
    if len(models) == 1 and _bare(models[0]) != wanted:
        warn(f"the rows name the model {models[0]!r}; their run is that of {request.model!r}")
    if len(models) < 2:  # noqa: PLR2004  one
        return None
    same = [name for name in models if _bare(name) == wanted]
    if len(same) != 1:
        shown = ", ".join(map(repr, models[:_SHOWN_MODELS]))
        more = f" and {len(models) - _SHOWN_MODELS} more" if models[_SHOWN_MODELS:] else ""
        raise UsageError(
            f"the rows name {len(models)} models ({shown}{more}), and a run has one: choose it "
            f"with --where {request.columns.of('model')}=NAME"
        )
    warn(f"the rows name {len(models)} models; only those of {same[0]!r} are taken")
    return same[0]


def _bare(name: str) -> str:
    """A model's name without its provider and its variant."""
    return name.rpartition("/")[2].partition("@")[0].lower()


@dataclass(frozen=True, slots=True)
class _Taken:
    """What the run has of a sample: the hash of a reply, or an error."""

    origin: str | None
    is_error: bool
    reply: int
    """Mark of the text."""


class _Recorder:
    """The journal of one recorded run, with what it has of each cell."""

    def __init__(
        self,
        request: ImportRequest,
        finder: SampleFinder,
        run_journal: Journal,
        imported: ImportResult,
        found: _Found,
    ) -> None:
        self._numbers_all = found.is_numbered
        """Whether every row needs a number of its own, since others have one."""
        self._draws = found.draws
        self._request = request
        self._finder = finder
        self._journal = run_journal
        self._imported = imported
        self.manifest = manifest = _manifest(request)
        assert manifest.recorded is not None
        self.sources = Sources(manifest.recorded)
        self._before: dict[str, _Taken] = {}
        """Id of each sample -> what the run has of it."""
        self._own: dict[tuple[Condition, int, int], int] = {}
        """Condition, length and index of the task's own samples -> their draws."""
        self._given: dict[CellKey, dict[int, int]] = {}
        """Cell -> index -> hash of the samples that rows gave."""
        self._most: dict[CellKey, int] = {}
        """Cell -> the most draws of a sample that rows gave."""
        self._alike: dict[Given, list[int]] = {}
        """Content of samples that rows gave -> their indexes."""
        self._next: Counter[CellKey] = Counter()
        """Cell -> the smallest index from which on all indexes are free."""
        for record in read_records(request.folder):
            self._note(record)
        self._finder.keep_seed(manifest.settings.seed, is_sure=bool(self._own))

    def place(self, files: Sequence[GivenFile], reader: Reader) -> None:
        """Finds which of the files were imported before.

        Raises:
            JournalError: nothing says whether rows are those of an earlier file.
        """

        def unnumbered(file: int) -> Iterator[RowMark]:
            for _, reply in reader.replies(ImportResult(), file):
                with suppress(RowError):
                    sample = self._finder.of(reply)
                    if isinstance(sample, GivenSample) and sample.index is None:
                        yield reply.mark

        self.sources.find(files, reader.marks)
        self.sources.refuse_doubtful(files, unnumbered)

    def take(self, reply: RecordedReply, at: RowPlace) -> None:
        """Writes the reply of the row at a place, unless it is known.

        Raises:
            RowError: its sample cannot be found, or has another reply.
        """
        sample = self._finder.of(reply) if self._draws else None
        draw, place = self._draws.number(sample, reply.draw) if sample else (1, 0)
        if (known := self.sources.known(reply.mark)) is not None:
            if known != reply.mark.values:
                raise RowError(
                    "the run has this row with other fields or values on axes; start over with "
                    f"another {named('out')}"
                )
            self._imported.known += 1
            return
        sample = sample or self._finder.of(reply)
        if self._numbers_all and isinstance(sample, GivenSample) and sample.index is None:
            raise RowError(
                "the row has no index, and other rows have one; give all of them one, or number "
                "rows as they come with --field index="
            )
        record = self._record(sample, reply, draw, place)
        if self._has(record):
            if self.sources.are_here(self._before[record.id].origin):
                self._imported.repeated.append(at)
            else:
                self._imported.known += 1
            return
        if isinstance(sample, GivenSample) and self._given.get(
            (sample.condition, sample.line), {}
        ).get(record.index) not in (None, _record_hash(record)):
            raise RowError(
                f"the run has another row with index {record.index} on line {sample.line.length}"
            )
        self._note_model(reply)
        record.run = self.manifest.run
        self._journal.append(record)
        self._note(record)
        self._imported.new += 1

    def _has(self, record: Record) -> bool:
        """Whether the run already has the sample: with the same reply from another file, or with
        anything if the record is an error. A reply replaces an error.

        Raises:
            RowError: the run has another reply to the sample.
        """
        before = self._before.get(record.id)
        if before is None or (before.is_error and not record.is_error):
            return False
        if record.is_error or _is_copy(before.origin, record.origin):
            return True
        if before.reply == text_mark(record.reply or ""):
            return True
        raise RowError(
            f"the run has another reply to sample {record.id}; if both are draws of one prompt, "
            f"number them with --field {DRAW}={self._imported.draw_column}"
        )

    def _record(
        self, sample: Sample | GivenSample, reply: RecordedReply, draw: int, place: int
    ) -> Record:
        """The record of a reply to one of the task's samples, or to one that its row gives; `place`
        tells those that are alike apart.
        """
        if isinstance(sample, Sample):
            sample = drawn_again(sample, draw)
            record = _replied(sample, reply, self.sources.origin(reply.mark))
            if reply.prompt is not None and reply.prompt != sample.prompt:
                record.prompt, record.chars = reply.prompt, len(reply.prompt)
            return record
        record = _replied(self._made(sample, draw, place), reply, self.sources.origin(reply.mark))
        record.line = sample.line.length
        record.prompt = sample.prompt
        record.chars = None if sample.prompt is None else len(sample.prompt)
        return record

    def _made(self, given: GivenSample, draw: int, place: int) -> Sample:
        """The sample that a row gives, with an index."""
        key, index = (given.condition, given.line), given.index
        if index is None and self._draws:
            alike = self._alike.get(given_of(key, given.length, given.target, given.prompt), ())
            index = alike[place] if place < len(alike) else None
        if index is None:
            index = self._next[key]
        task = self._request.task
        facts = (
            f"{task.name}@{task.spec.version}|{given.condition.label}|length={given.length}"
            f"|line={given.line.length}|index={index}"
        )
        return Sample(
            id=id_of_draw(f"{facts}|recorded", draw),
            condition=given.condition,
            line=given.line,
            length=given.length,
            index=index,
            prompt=given.prompt if given.prompt is not None else f"{facts}|{given.target}",
            target=given.target,
            draw=draw,
        )

    def _note(self, record: Record) -> None:
        self.sources.note(record)
        mark = text_mark(record.reply or "")
        self._before[record.id] = _Taken(record.origin, record.is_error, mark)
        if record.line is None:
            place = record.condition, record.length, record.index
            self._own[place] = max(self._own.get(place, 1), record.draw)
            return
        key = record.condition, self._finder.line(record.length, record.line)
        self._most[key] = max(self._most.get(key, 1), record.draw)
        given = self._given.setdefault(key, {})
        if record.index not in given:
            given[record.index] = _record_hash(record)
            if self._draws:
                content = given_of(key, record.length, record.target, record.prompt)
                self._alike.setdefault(content, []).append(record.index)
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

    def save(self, *, is_named: bool) -> None:
        """Writes the manifest if its cells have changed, or if it names files anew (`is_named`)."""
        manifest, request = self.manifest, self._request
        cells = [*self._given_cells(), *self._own_cells()]
        self._imported.gaps = sum(max(given) + 1 - len(given) for given in self._given.values())
        if not is_named and set(cells) == set(manifest.cells):
            return
        command = redact(request.command) or shlex.join(map(redact, ["bench", *sys.argv[1:]]))
        if command not in manifest.commands:
            manifest.commands.append(command)
        manifest.settings = replace(manifest.settings, seed=self._finder.seed)
        manifest.kept = keep(request.folder, request.task.source)
        remember(request.task)
        manifest.software = software(request.task.plugin)
        manifest.cells = cells
        write_manifest(request.folder, manifest)

    def _given_cells(self) -> Iterator[Cell]:
        for (condition, line), hashes in self._given.items():
            yield Cell(condition, line, max(hashes) + 1, draws=self._most[condition, line])

    def _own_cells(self) -> Iterator[Cell]:
        """The cells of the task's own samples: on its lines, or on exact ones where one sample lies
        on none of them. Samples of exact lengths may lie in a band, each by chance.
        """
        task, seed = self._request.task, self._finder.seed
        start = line_start(seed, task.name)
        lines = LineFinder(lines_of(task.lengths, task.spec.usual_spread), start)
        indexes: dict[CellKey, dict[int, int]] = {}
        found = [lines.find(length, index) for _, length, index in self._own]
        are_usual = all(found)
        for ((condition, length, index), draws), usual in zip(
            self._own.items(), found, strict=True
        ):
            line = usual[0] if are_usual else Line.exact(length)
            indexes.setdefault((condition, line), {})[index] = draws
        if task.spec.items is not None:
            yield from self._item_cells(indexes)
            return
        for (condition, line), places in indexes.items():
            yield Cell(condition, line, max(places) + 1, max(places.values()))

    def _item_cells(self, indexes: Mapping[CellKey, Mapping[int, int]]) -> Iterator[Cell]:
        """All items of the task under each condition that has a reply."""
        task = self._request.task
        for condition in dict.fromkeys(condition for condition, _ in indexes):
            for length in sorted({*task.lengths, *(line.length for _, line in indexes)}):
                line, samples = Line.exact(length), task.items_at(length) or 0
                asked = indexes.get((condition, line), {})
                yield Cell(condition, line, samples, max(asked.values(), default=1))


def _replied(sample: Sample, reply: RecordedReply, origin: str) -> Record:
    """The record of a reply; fields that the row lacks stay empty."""
    failed = None
    if reply.error is not None:
        failed = Failure("error", "recorded", redact(reply.error))
    record = record_of(sample, reply=reply.reply, failure=failed)
    record.origin = origin
    record.finish_reason = reply.finish_reason
    record.refusal, record.reasoning = reply.refusal, reply.reasoning
    record.model = reply.model
    record.prompt_tokens, record.output_tokens = reply.prompt_tokens, reply.output_tokens
    record.thought_tokens = reply.thought_tokens
    record.latency_s, record.recorded_verdict = reply.latency_s, reply.verdict
    return record


def _is_copy(before: str | None, now: str | None) -> bool:
    """Whether two rows of different files are equal."""
    if before is None or now is None:
        return False
    (source, *_, values), (other, *_, other_values) = before.split("/"), now.split("/")
    return source != other and values == other_values


def _record_hash(record: Record) -> int:
    """The hash of a given sample, made from the record of any of its draws."""
    prompt = record.prompt if record.prompt is not None else record.prompt_hash
    return sample_hash(
        Sample(
            id=record.id.removesuffix(f"|draw={record.draw}"),
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
        manifest = read_manifest(folder)
        check_names(folder, manifest, request.model, task.name)
        return manifest
    digest, settings = task.spec.digest(), _UNKNOWN
    manifest = Manifest(
        model=request.model,
        task=task.name,
        task_version=task.spec.version,
        task_digest=digest,
        spec=task.spec.model_dump(mode="json"),
        settings=settings,
        run=run_mark(request.model, task.name, digest, settings),
        file="" if task.is_installed else str(task.path),
        recorded=RecordedFiles(),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    write_manifest(folder, manifest)
    return manifest
