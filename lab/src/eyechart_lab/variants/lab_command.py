"""The work of `bench lab`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout

from eyechart.harness.cli.terminal import echo, say, warn
from eyechart.harness.errors import COMPLETE, INCOMPLETE, INTERRUPTED, JournalError
from eyechart.harness.journal import replace_file
from eyechart.providers.base import SetupError
from eyechart_lab.extras import install
from eyechart_lab.variants import lab_output
from eyechart_lab.variants.asking import LabCell
from eyechart_lab.variants.folders import (
    CSV,
    INSIDE,
    PAGE,
    STUDY,
    VARIANTS,
    LabFolder,
    Model,
)
from eyechart_lab.variants.parts import ModelParts, Row, asked, draw, in_processes, probed
from eyechart_lab.variants.probing import InsideRow
from eyechart_lab.variants.reading import read_lab
from eyechart_lab.variants.results.page import page
from eyechart_lab.variants.results.results import results_of
from eyechart_lab.variants.results.tables import csv_text, variants_text
from eyechart_lab.variants.tokens import build, vocabulary
from eyechart_lab.variants.training.memory import check_memory, check_positions
from eyechart_lab.variants.training.order import DIVERGED, ORDER, TrainingOrder, ended
from eyechart_lab.variants.training.progress import TrainingDisplay
from eyechart_lab.variants.training.worker import Slot, slots, train_all

if TYPE_CHECKING:
    from tokenizers import Tokenizer


@dataclass(frozen=True, kw_only=True)
class LabOptions:
    """The options of `bench lab`, see its help."""

    out: Path
    jobs: int | None
    device: str | None
    dry_run: bool
    trusts: bool
    as_json: bool


def lab(path: Path, wanted: LabOptions) -> int:
    """Trains and asks what is missing of a study, and writes its results; returns the exit code.

    Raises:
        StudyFileError: the file has mistakes; the error lists all of them.
        UsageError: there is no such device.
        SetupError: a package is missing.
    """
    study = read_lab(path, trusts=wanted.trusts)
    words = vocabulary(
        [one.plan for one in study.learnt],
        [one.shortest for one in study.learnt],
        study.spec.training.merged,
    )
    tokenizer = build(words)
    check_positions(study, tokenizer)
    places = places_of(wanted)
    check_memory(study, tokenizer, places)
    folder = LabFolder.of(study, wanted.out)
    if wanted.dry_run:
        lab_output.dry_run(folder, tokenizer, places, as_json=wanted.as_json)
        return COMPLETE
    return working(folder.path, _Work(folder, tokenizer, places, wanted).run)


def places_of(wanted: LabOptions) -> list[Slot]:
    """The processes that train.

    Raises:
        UsageError: there is no such device.
        SetupError: a package is missing.
    """
    try:
        from eyechart_lab.variants.training.devices import devices  # noqa: PLC0415  imports torch
    except ImportError as error:
        raise SetupError(f"training needs torch and transformers: {install('train')}") from error
    return slots(devices(wanted.device), wanted.jobs)


def working(path: Path, work: Callable[[], int]) -> int:
    """The exit code of work in a folder that no other command has.

    Raises:
        JournalError: another command holds it, or the folder cannot be made.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        lock = FileLock(path / ".lock")
        lock.acquire(timeout=0)
    except Timeout:
        raise JournalError(f"another command trains or asks in {path}; wait for its end") from None
    except OSError as error:
        raise JournalError(f"cannot write {path}: {error.strerror}") from error
    try:
        return work()
    except KeyboardInterrupt:
        say(
            "interrupted; the same command continues each training from its last checkpoint, "
            "or from its start without one, and asks what has no answer yet"
        )
        return INTERRUPTED
    finally:
        lock.release()


class _Work:
    """One command on one study."""

    def __init__(
        self, folder: LabFolder, tokenizer: Tokenizer, places: Sequence[Slot], wanted: LabOptions
    ) -> None:
        self._folder, self._lab, self._wanted = folder, folder.lab, wanted
        self._tokenizer, self._places = tokenizer, places
        self._jobs = sum(slot.most for slot in places)
        self._models = list(folder.models())
        self._failed: list[str] = []
        """What could not be trained or asked, and why."""
        self._warned: set[str] = set()
        """Warnings that were printed, since all models are asked the same."""

    def run(self) -> int:
        """Trains, asks, and writes."""
        replace_file(self._folder.path / STUDY, self._lab.text.encode())
        self._train()
        cells = self._found(asked, self._numbers())
        is_probed = self._lab.spec.probe is not None
        self._write(cells, self._found(probed, self._numbers(DIVERGED)) if is_probed else [])
        if self._failed:
            say(f"{len(self._failed)} of {len(self._models)} models are missing:")
            say(*(f"  {line}" for line in self._failed), "the same command goes on with them")
            return INCOMPLETE
        return COMPLETE

    def _train(self) -> None:
        """Trains what has not ended."""
        missing = {model.training: model for model in self._models if ended(model.training) is None}
        if not missing:
            return
        self._make_examples(sorted({model.seed for model in missing.values()}))
        for model in missing.values():
            self._order(model)
        labels = {folder: model.label for folder, model in missing.items()}
        with TrainingDisplay(labels, self._lab.spec.training.steps) as display:
            train_all(list(missing), self._places, display)
        self._failed += [
            f"{labels[folder]}: {why}"
            for folder, why in display.ended.items()
            if ended(folder) is None
        ]

    def _make_examples(self, seeds: Sequence[int]) -> None:
        self._folder.tokenizer.parent.mkdir(exist_ok=True)
        replace_file(self._folder.tokenizer, self._tokenizer.to_str().encode())
        missing = [seed for seed in seeds if not self._folder.examples(seed).exists()]
        for seed in in_processes(partial(draw, self._folder), missing, self._jobs):
            say(f"examples of seed {seed}: drawn")

    def _order(self, model: Model) -> None:
        """Writes what is to be trained into the folder of a training."""
        model.training.mkdir(parents=True, exist_ok=True)
        beside = Path("..", "..", "examples")
        order = TrainingOrder(
            variant=self._lab.spec.variants[model.variant].trained_as,
            training=self._lab.spec.training,
            seed=model.seed,
            examples=str(beside / self._folder.examples(model.seed).name),
            tokenizer=str(beside / self._folder.tokenizer.name),
        )
        replace_file(model.training / ORDER, order.model_dump_json(indent=2).encode() + b"\n")

    def _numbers(self, *left_out: str) -> list[int]:
        """The numbers of the models whose training ended, but not in one of these ways."""
        ends = [ended(model.training) for model in self._models]
        return [at for at, how in enumerate(ends) if how is not None and how.how not in left_out]

    def _found(
        self, work: Callable[[LabFolder, int], ModelParts[Row]], numbers: Sequence[int]
    ) -> list[Row]:
        """The rows that `work` finds of the models with these numbers."""
        rows: list[Row] = []
        done = in_processes(partial(work, self._folder), numbers, self._jobs)
        for number, one in zip(numbers, done, strict=True):
            for text in one.warnings:
                if text not in self._warned:
                    self._warned.add(text)
                    warn(text)
            if one.failure:
                self._failed.append(f"{one.model.label}: {one.failure}")
                continue
            rows += one.rows
            say(f"{one.model.label}: {one.said} ({number + 1:,} of {len(self._models):,})")
        return rows

    def _write(self, cells: Sequence[LabCell], inside: Sequence[InsideRow]) -> None:
        """Writes the tables and the page, and prints what the seeds say."""
        path = self._folder.path
        replace_file(path / CSV, csv_text(LabCell, cells).encode())
        if inside:
            replace_file(path / INSIDE, csv_text(InsideRow, inside).encode())
        results = results_of(cells, self._lab.spec.reference)
        replace_file(path / VARIANTS, variants_text(results, self._lab.spec.reference).encode())
        replace_file(path / PAGE, page(self._lab.spec, results, inside).encode())
        if self._wanted.as_json:
            lab_output.document(self._folder, results)
            return
        lab_output.results(self._lab.spec, results)
        echo(*(str(path / name) for name in (CSV, VARIANTS, *([INSIDE] if inside else ()), PAGE)))
