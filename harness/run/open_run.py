"""A run that is open for writing: its manifest, what it has answers to, what is still to be asked.

Whoever fills a run begins here: requests sent one by one, batch files, and replies read from files.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

from harness import exact_json
from harness.errors import JournalError
from harness.journal import journal
from harness.journal.journal import Cell, Journal, Manifest, Settings
from harness.journal.software import software
from harness.plan.estimate import Room, rooms
from harness.plan.plan import Plan, output_budget, sample_hash
from harness.run.batch.pending import STATE as BATCHES
from harness.run.retry import Progress, overflow
from harness.spec import CellKey, Sample, condition_label
from harness.task.catalogue import built_in_files
from providers.base import Provider, StopRunError, redact
from providers.catalog.model_facts import model_facts
from providers.secrets import mask, masked


@dataclass(frozen=True, slots=True)
class Wanted:
    """One run that a command asks for."""

    plan: Plan
    model: str
    settings: Settings
    out: Path
    told: Mapping[str, object] = field(default_factory=dict)
    """What is known of who answers before anybody is asked."""

    @property
    def folder(self) -> Path:
        """Where the run is or will be."""
        task = self.plan.task
        return journal.run_folder(self.out, self.model, task.spec, task.name, self.settings)


class OpenRun:
    """What a command wants, set against what its run's folder has; `book` holds the lock."""

    def __init__(self, wanted: Wanted, book: Journal, warn: journal.Warn) -> None:
        """Reads the journal, and adds the plan to the manifest.

        Raises:
            JournalError: the folder cannot be used, or its answers were to other prompts.
            TaskError: a sample cannot be made.
        """
        self.wanted = wanted
        self.book = book
        self._warn = warn
        self.manifest = manifest = _manifest(wanted)
        self.answered = book.answered()
        self._check(wanted.told)
        plan = wanted.plan
        for cell in manifest.cells:
            if (index := self.answered.first(cell.key)) is not None:
                # a generator or items file that changed since is found before anything is asked
                self.answered.covers(plan.sample(cell.condition, cell.length, index), cell.key)
        self._cells = [
            Cell(condition, length, plan.cell_size(length))
            for condition in plan.conditions
            for length in plan.lengths
        ]
        self._plan()
        self._sums = dict.fromkeys((cell.key for cell in self._cells), 0)
        self._room: dict[CellKey, Room] = {}

    def _plan(self) -> None:
        """Adds what is asked for to what is complete; says what is planned no longer."""
        manifest, before = self.manifest, {cell.key: cell for cell in self.manifest.cells}
        manifest.complete(
            cell
            for cell in manifest.cells
            if cell.fingerprint is not None
            and self.answered.recorded_in(cell.key, cell.samples) == cell.samples
        )
        in_batches = (self.book.folder / BATCHES).exists()  # they may be paid for by now
        manifest.plan_cells([*(manifest.cells if in_batches else ()), *self._cells])
        now = {cell.key: cell.samples for cell in manifest.cells}
        fewer = sum(max(0, cell.samples - now.get(key, 0)) for key, cell in before.items())
        if fewer:
            self._warn(
                f"{self.wanted.plan.task.name}: {fewer:,} samples that an earlier command planned "
                "and did not complete are taken back; their answers stay in the journal"
            )

    @property
    def pending(self) -> int:
        """How many samples of the plan have no answer."""
        known = sum(self.answered.count_in(cell.key, cell.samples) for cell in self._cells)
        return self.wanted.plan.size - known

    def save(self) -> None:
        """Writes the manifest."""
        journal.write_manifest(self.wanted.folder, self.manifest)

    def meet(self, facts: Mapping[str, object]) -> None:
        """Takes note of who is to answer; raises `JournalError` where it is not who did before."""
        said = masked(exact_json.loads(exact_json.dumps(dict(facts))))
        self._check(said, whole=True)
        self.manifest.server = said
        self.save()

    def _check(self, facts: Mapping[str, object], *, whole: bool = False) -> None:
        """Keeps what answers apart from what answered before; `whole` where there are no facts
        besides.
        """
        if self.answered:
            known = {} if whole else self.manifest.server
            _check_server(self.manifest, {**known, **facts}, self.wanted.folder)

    async def measure(self, counter: Provider | None) -> None:
        """Finds the cells that the model's window cannot hold, and says so."""
        wanted = self.wanted
        window = self.manifest.server.get("max_model_len") or model_facts(wanted.model).window
        self._room = await rooms(wanted.plan, counter, window, wanted.settings.max_tokens)
        for key, fit in self._room.items():
            if not fit.fits:
                name = wanted.plan.task.name
                self._warn(f"{name} {key[0]} at length {key[1]}: {fit}; not sent")

    def samples(
        self, record: Recorder, elsewhere: journal.Answered | None = None
    ) -> Iterator[tuple[Sample, int]]:
        """Samples to ask with their output budgets; those that were asked `elsewhere` are not.

        What cannot fit the model's window is recorded here and never sent.
        """
        self._sums = dict.fromkeys(self._sums, 0)
        for sample in self.wanted.plan:
            key = self._add(sample)
            if self.answered.covers(sample, key):
                continue
            if elsewhere is not None and elsewhere.has(key, sample.index):
                continue
            fit = self._room.get(key)
            if fit is not None and not fit.fits:
                record.unsent(sample, str(fit), known=self.answered.unsent.covers(sample, key))
            else:
                budget = self.wanted.settings.max_tokens or output_budget(sample)
                yield sample, budget if fit is None else fit.at_most(budget)

    def seen(self) -> None:
        """Keeps the dataset's fingerprint, once `samples` gave all there are."""
        sizes = {cell.key: cell.samples for cell in self._cells}
        self.manifest.fingerprint_cells(self._sums, sizes)

    def see(self) -> None:
        """Makes the samples again where the dataset's fingerprint is not known, as in a plan that
        was taken back to what is answered.

        Raises:
            JournalError: an answer was to another prompt.
            TaskError: a sample cannot be made.
        """
        asked = {cell.key for cell in self._cells}
        if all(one.fingerprint is not None for one in self.manifest.cells if one.key in asked):
            return
        for sample in self.wanted.plan:
            self.answered.covers(sample, self._add(sample))
        self.seen()

    def _add(self, sample: Sample) -> CellKey:
        """Adds to the fingerprint of the sample's cell."""
        key = condition_label(sample.condition), sample.length
        self._sums[key] = (self._sums[key] + sample_hash(sample)) % 2**256
        return key


Judge: TypeAlias = Callable[[dict[str, Any]], bool | None]
"""Says whether the reply of a record is correct; `None` for a record that has no reply."""
MOST_NAMES = 16
"""Names of models that a manifest keeps. A server that has more gives each reply a new one."""
_TOLD_NAMES = 3
_NAME_CHARS = 200


class Recorder:
    """Writes each record, and keeps what they say of the run as a whole."""

    def __init__(
        self,
        book: Journal,
        manifest: Manifest,
        warn: journal.Warn,
        *,
        progress: Progress | None = None,
        judge: Judge | None = None,
    ) -> None:
        """With `judge` the progress counts the correct answers."""
        self._book = book
        self._manifest = manifest
        self._warn = warn
        self._before = tuple(manifest.answered_by)
        self._told_all = False
        self._progress = progress or Progress()
        self._judge = judge

    def __call__(self, record: dict[str, Any]) -> None:
        """Raises `StopRunError` where another model answers than in earlier commands."""
        if record.get("model") is not None:
            self._heard(mask(record["model"])[:_NAME_CHARS])
        self._book.append(record)
        if self._judge is not None and (correct := self._judge(record)) is not None:
            self._progress.judged += 1
            self._progress.correct += correct

    def _heard(self, name: str) -> None:
        """Keeps the name of a model that answered, and says so where it is not the only one."""
        names = self._manifest.answered_by
        if name in names or len(names) >= MOST_NAMES:  # beyond them a new one says nothing
            return
        if self._before:
            raise StopRunError(
                f"{self._manifest.model!r} is now answered by {name!r}, and was by "
                f"{', '.join(map(repr, self._before))}; use another --out or --fresh"
            )
        if 0 < len(names) <= _TOLD_NAMES:
            self._warn(f"replies now come from {name!r} as well as {names}")
        elif len(names) > _TOLD_NAMES and not self._told_all:
            self._told_all = True
            self._warn("replies come from still more models; their names are in the journal")
        names.append(name)
        journal.write_manifest(self._book.folder, self._manifest)

    def unsent(self, sample: Sample, why: str, *, known: bool) -> None:
        """Notes a sample that does not fit, unless that is known from an earlier command."""
        if not known:
            self._book.append(overflow(sample, why))
        self._progress.answered += 1


def _manifest(wanted: Wanted) -> Manifest:
    """The run's manifest, read or new, with this command added."""
    task, folder = wanted.plan.task, wanted.folder
    if (folder / journal.MANIFEST).exists():
        manifest = journal.read_manifest(folder)
        asked = wanted.model, task.spec.digest(), asdict(wanted.settings)
        if (manifest.model, manifest.task_digest, manifest.settings) != asked:
            raise JournalError(
                f"{folder} holds a run of {manifest.model} on another {manifest.task}; "
                "use another --out or --fresh"
            )
    else:
        if (folder / journal.SAMPLES).exists() and (folder / journal.SAMPLES).stat().st_size:
            raise JournalError(
                f"{folder} has answers but no {journal.MANIFEST}, so nobody knows what made them; "
                "put it back or start over with --fresh"
            )
        manifest = Manifest(
            model=wanted.model,
            task=task.name,
            task_version=task.spec.version,
            task_digest=task.spec.digest(),
            spec=task.spec.model_dump(mode="json"),
            settings=asdict(wanted.settings),
            created=datetime.now(UTC).isoformat(timespec="seconds"),
        )
    manifest.file = "" if built_in_files().get(task.name) == task.path else str(task.path)
    manifest.software = software()
    command = shlex.join(map(redact, ["bench", *sys.argv[1:]]))
    if command not in manifest.commands:
        manifest.commands.append(command)
    return manifest


def _check_server(manifest: Manifest, facts: dict[str, Any], folder: Path) -> None:
    """Keeps what answers apart from what answered before."""
    if manifest.server and manifest.server != facts:
        changed = sorted(
            name
            for name in {*manifest.server, *facts}
            if manifest.server.get(name) != facts.get(name)
        )
        name = changed[0]
        raise JournalError(
            f"{folder} was answered by another model or server ({name} was "
            f"{manifest.server.get(name)!r}, is {facts.get(name)!r}); use another --out or --fresh"
        )
