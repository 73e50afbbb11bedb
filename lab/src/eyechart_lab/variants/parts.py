"""The parts of a study that need no other part: the examples of a seed, the answers and the inside
of a model. Each is done by a function, which is called in a process of its own.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from eyechart import EyechartError, ProviderError
from eyechart_lab.variants.asking import LabCell, ask, cells_of, not_asked
from eyechart_lab.variants.folders import LabFolder, Model, keep_model
from eyechart_lab.variants.probing import TRAINED, UNTRAINED, InsideRow, measured
from eyechart_lab.variants.tokens import read_tokenizer
from eyechart_lab.variants.training.data import make_examples
from eyechart_lab.variants.training.order import DIVERGED, WEIGHTS, ended
from eyechart_lab.variants.training.worker import CONTEXT

Row = TypeVar("Row", LabCell, InsideRow)
Thing = TypeVar("Thing")
Result = TypeVar("Result")


def in_processes(
    function: Callable[[Thing], Result], things: Sequence[Thing], jobs: int
) -> Iterator[Result]:
    """What the function returns for each thing, in their order, from `jobs` processes, but no more
    than there are cores; with one, from this process. An interrupt ends all.
    """
    cores = os.cpu_count() or 1
    jobs = min(jobs, len(things), cores)
    if jobs <= 1:
        yield from map(function, things)
        return
    pool = ProcessPoolExecutor(
        jobs, mp_context=CONTEXT, initializer=_begin, initargs=(cores // jobs,)
    )
    try:
        yield from pool.map(function, things)
    except BaseException:
        for process in multiprocessing.active_children():
            process.kill()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _begin(threads: int) -> None:
    """Leaves interrupts to the process that asks, and gives torch its share of the cores."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ["OMP_NUM_THREADS"] = str(threads)  # read when torch is imported


def draw(folder: LabFolder, seed: int) -> int:
    """Draws the examples of a seed; returns the seed."""
    lab, tokenizer = folder.lab, read_tokenizer(folder.tokenizer)
    make_examples(folder.examples(seed), lab.learnt, tokenizer, lab.spec.training, seed)
    return seed


@dataclass(frozen=True)
class ModelParts(Generic[Row]):
    """What was found of a model."""

    model: Model
    rows: Sequence[Row] = ()
    """Its rows of `lab.csv` or `inside.csv`."""
    said: str = ""
    """What was done, in a line for the user."""
    warnings: Sequence[str] = ()
    failure: str = ""
    """Why it could not be asked or measured."""


def asked(folder: LabFolder, number: int) -> ModelParts[LabCell]:
    """Asks the model with this number what has no answer yet; not one whose training diverged."""
    lab, model = folder.lab, list(folder.models())[number]
    how = ended(model.training)
    assert how is not None
    if how.how == DIVERGED:
        return ModelParts(model, list(not_asked(lab, model, how)), "has all answers")
    variant = lab.spec.variants[model.variant]
    keep = partial(keep_model, model.training / WEIGHTS, model.folder, variant)
    warnings: list[str] = []
    try:
        runs, has_asked = ask(lab, model, keep, warnings.append)
    except (EyechartError, ProviderError) as error:
        return ModelParts(model, warnings=warnings, failure=" ".join(error.lines))
    said = "asked" if has_asked else "has all answers"
    return ModelParts(model, list(cells_of(lab, model, runs, how)), said, warnings)


def probed(folder: LabFolder, number: int) -> ModelParts[InsideRow]:
    """Measures the model with this number, and what it was before its training."""
    from eyechart_lab.variants.training.train import (  # noqa: PLC0415  imports torch
        write_untrained,
    )

    lab, model = folder.lab, list(folder.models())[number]
    before = model.training / UNTRAINED
    try:
        if not before.exists():
            write_untrained(model.training, before)
        keep_model(before, model.untrained, lab.spec.variants[model.variant])
        rows = [
            *measured(lab, model, UNTRAINED, model.untrained),
            *measured(lab, model, TRAINED, model.folder),
        ]
    except (EyechartError, ProviderError) as error:
        return ModelParts(model, failure=" ".join(error.lines))
    return ModelParts(model, rows, "probed")
