"""The parts of a study that need no other part: the examples of a seed, the answers and the inside
of a model. Each is done by a function that can be called in a process of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from eyechart.harness.errors import EyechartError
from eyechart.harness.satellites.lab.asking import Cell, ask, cells_of, not_asked
from eyechart.harness.satellites.lab.data import make_examples
from eyechart.harness.satellites.lab.folders import LabFolder, Model, keep_model
from eyechart.harness.satellites.lab.order import DIVERGED, WEIGHTS, ended
from eyechart.harness.satellites.lab.probing import TRAINED, UNTRAINED, Inside, measured
from eyechart.harness.satellites.lab.tokens import read_tokenizer
from eyechart.providers.base import ProviderError


def draw(folder: LabFolder, seed: int) -> int:
    """Draws the examples of a seed; returns the seed."""
    lab = folder.lab
    make_examples(
        folder.examples(seed),
        lab.learnt,
        read_tokenizer(folder.tokenizer),
        recipe=lab.recipe,
        seed=seed,
    )
    return seed


@dataclass(frozen=True)
class Asked:
    """What a model answered."""

    model: Model
    cells: Sequence[Cell] = ()
    """The rows of `lab.csv`."""
    warnings: Sequence[str] = ()
    failure: str = ""
    """Why it could not be asked."""
    has_asked: bool = False
    """Whether anything was asked; a run may have all answers already."""


def asked(folder: LabFolder, number: int) -> Asked:
    """Asks the model with this number what has no answer yet; a model whose training diverged is
    not asked.
    """
    lab, model = folder.lab, list(folder.models())[number]
    how = ended(model.training)
    assert how is not None
    if how.how == DIVERGED:
        return Asked(model, list(not_asked(lab, model, how)))
    variant = lab.spec.variants[model.variant]
    keep = partial(keep_model, model.training / WEIGHTS, model.folder, variant)
    warnings: list[str] = []
    try:
        runs, has_asked = ask(lab, model, keep, warnings.append)
    except (EyechartError, ProviderError) as error:
        return Asked(model, warnings=warnings, failure=" ".join(error.lines))
    return Asked(model, list(cells_of(lab, model, runs, how)), warnings, has_asked=has_asked)


@dataclass(frozen=True)
class Probed:
    """What a model has inside."""

    model: Model
    rows: Sequence[Inside] = ()
    """The rows of `inside.csv`."""
    failure: str = ""
    """Why it could not be measured."""


def probed(folder: LabFolder, number: int) -> Probed:
    """Measures the model with this number, and what it was before its training."""
    from eyechart.harness.satellites.lab.train import (  # noqa: PLC0415  imports torch
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
        return Probed(model, failure=" ".join(error.lines))
    return Probed(model, rows)
