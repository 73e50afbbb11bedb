"""One model on one task: opens the run, sends what is pending, writes manifest and table."""

from __future__ import annotations

import platform
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import orjson

from harness import journal, runner
from harness.forecast import Room, rooms
from harness.journal import Cell, CellKey, Journal, JournalError, Manifest, Settings
from harness.money import Meter
from harness.patience import overflow
from harness.plan import Plan, output_budget, sample_hash
from harness.score import judge_record
from harness.spec import Sample, condition_label
from providers.base import Provider, StopRunError, redact
from providers.model_facts import model_facts


@dataclass(frozen=True, slots=True)
class Wanted:
    """One run that a command asks for."""

    plan: Plan
    model: str
    settings: Settings
    out: Path

    @property
    def folder(self) -> Path:
        """Where the run is or will be."""
        task = self.plan.task
        return journal.run_folder(self.out, self.model, task.spec, task.name, self.settings)


async def run_task(
    wanted: Wanted,
    provider: Provider,
    *,
    limits: runner.Limits,
    warn: journal.Warn,
    meter: Meter | None = None,
    judging: bool = False,
    started: Callable[[runner.Progress, int], None] = lambda _progress, _pending: None,
) -> None:
    """Asks everything of `wanted` that its run has no answer to yet.

    `started` is told the progress to watch and how many samples are pending; the progress counts
    what is correct with `judging`. Whatever is raised or cancelled on the way, each reply that
    came is in the journal and the manifest says what the run was meant to have.

    Raises:
        StopRunError: the provider gives up on the run, or another model answers than before.
        JournalError: the run's folder cannot be used.
        TaskError: a sample cannot be made.
    """
    with Journal(wanted.folder, warn) as book:
        manifest = _manifest(wanted)
        answered = book.answered({cell.key: cell.samples for cell in manifest.cells})
        plan = wanted.plan
        for cell in manifest.cells:
            if (index := answered.first(cell.key)) is not None:
                # a generator or items file that changed since is found before anything is asked
                answered.covers(plan.sample(cell.condition, cell.length, index), cell.key)
        cells = [
            Cell(condition, length, plan.cell_size(length))
            for condition in plan.conditions
            for length in plan.lengths
        ]
        manifest.plan_cells(cells)
        pending = plan.size - sum(answered.count_in(cell.key, cell.samples) for cell in cells)
        progress = runner.Progress(meter=meter or Meter())
        if not pending:  # nobody need be there
            journal.write_manifest(wanted.folder, manifest)
            started(progress, pending)
            return
        facts = dict(await provider.facts())
        if any(answered.first(cell.key) is not None for cell in manifest.cells):
            _check_server(manifest, facts, wanted.folder)
        manifest.server = orjson.loads(orjson.dumps(facts))
        journal.write_manifest(wanted.folder, manifest)
        window = manifest.server.get("max_model_len") or model_facts(wanted.model).window
        room = await rooms(plan, provider, window, wanted.settings.max_tokens)
        for key, fit in room.items():
            if not fit.fits:
                warn(f"{plan.task.name} {key[0]} at length {key[1]}: {fit}; not sent")
        sums = dict.fromkeys((cell.key for cell in cells), 0)
        if manifest.answered_by:  # should another model answer now, one reply shows it
            limits = replace(limits, first_connections=1)
        record = _Recorder(book.append, manifest, wanted, progress, warn, judging=judging)
        started(progress, pending)
        try:
            await runner.run(
                _pending(wanted, answered, sums, room, record),
                provider,
                record,
                temperature=wanted.settings.temperature,
                seed=wanted.settings.seed,
                limits=limits,
                progress=progress,
                say=warn,
            )
            if not progress.meter.exhausted:
                manifest.plan_cells([replace(cell, fingerprint=sums[cell.key]) for cell in cells])
        finally:
            journal.write_manifest(wanted.folder, manifest)


def _pending(
    wanted: Wanted,
    answered: journal.Answered,
    sums: dict[CellKey, int],
    room: Mapping[CellKey, Room],
    record: _Recorder,
) -> Iterator[tuple[Sample, int]]:
    """Samples to ask with their output budgets; keeps each cell's fingerprint on the way.

    What cannot fit the model's window is recorded here and never sent.
    """
    for sample in wanted.plan:
        key = condition_label(sample.condition), sample.length
        sums[key] = (sums[key] + sample_hash(sample)) % 2**256
        if answered.covers(sample, key):
            continue
        fit = room.get(key)
        if fit is not None and not fit.fits:
            record.unsent(sample, str(fit), known=answered.unsent.covers(sample, key))
        else:
            budget = wanted.settings.max_tokens or output_budget(sample)
            yield sample, budget if fit is None else fit.at_most(budget)


class _Recorder:
    """Writes each record, and keeps what they say of the run as a whole."""

    def __init__(
        self,
        append: Callable[[dict[str, Any]], None],
        manifest: Manifest,
        wanted: Wanted,
        progress: runner.Progress,
        warn: journal.Warn,
        *,
        judging: bool,
    ) -> None:
        self._append = append
        self._manifest = manifest
        self._folder = wanted.folder
        self._warn = warn
        self._before = tuple(manifest.answered_by)
        self._answer = wanted.plan.task.spec.answer if judging else None
        self._progress = progress

    def __call__(self, record: dict[str, Any]) -> None:
        """Raises `StopRunError` where another model answers than in earlier commands."""
        name = record.get("model")
        if name is not None and name not in self._manifest.answered_by:
            if self._before:
                raise StopRunError(
                    f"{self._manifest.model!r} is now answered by {name!r}, and was by "
                    f"{', '.join(map(repr, self._before))}; use another --out or --fresh"
                )
            if self._manifest.answered_by:
                self._warn(
                    f"replies now come from {name!r} as well as {self._manifest.answered_by}"
                )
            self._manifest.answered_by.append(name)
            journal.write_manifest(self._folder, self._manifest)
        self._append(record)
        if self._answer is not None:
            outcome = judge_record(record, self._answer).outcome
            self._progress.judged += outcome != "error"
            self._progress.correct += outcome == "correct"

    def unsent(self, sample: Sample, why: str, *, known: bool) -> None:
        """Notes a sample that does not fit, unless that is known from an earlier command."""
        if not known:
            self._append(overflow(sample, why))
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
    manifest.software = software()
    command = redact(shlex.join(["bench", *sys.argv[1:]]))
    if command not in manifest.commands:
        manifest.commands.append(command)
    return manifest


def _check_server(manifest: Manifest, facts: dict[str, Any], folder: Path) -> None:
    """Keeps what answers apart from what answered before."""
    facts = orjson.loads(orjson.dumps(facts))
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


def software() -> dict[str, str]:
    """Versions of what runs here."""
    try:
        own = version("eyechart")
    except PackageNotFoundError:
        own = "not installed"
    return {"eyechart": own, "python": platform.python_version(), "platform": platform.platform()}
