"""`bench lab embedded`: makes the embedded model again, from one seed."""

from __future__ import annotations

from pathlib import Path

from eyechart.harness.cli.documents import print_document
from eyechart.harness.cli.terminal import echo, say
from eyechart.harness.errors import COMPLETE, INCOMPLETE, UsageError
from eyechart.harness.journal import replace_file
from eyechart.harness.spec.duration import duration
from eyechart_lab.variants.embedded.examples import tasks
from eyechart_lab.variants.embedded.tokenizer import build, vocabulary
from eyechart_lab.variants.folders import ROOT
from eyechart_lab.variants.lab_command import LabOptions, places_of, working
from eyechart_lab.variants.study import Training, digest_of
from eyechart_lab.variants.training.order import ORDER, WEIGHTS, TrainingOrder, ended
from eyechart_lab.variants.training.progress import TrainingDisplay
from eyechart_lab.variants.training.worker import Slot, train_all
from eyechart_lab.variants.variant import Variant

NAME = "embedded"
"""What stands in the place of a study's file."""
RECIPE = TrainingOrder(
    of="embedded",
    variant=Variant(layers=4, width=128, heads=4, inner=352),
    training=Training(steps=4000, rows=64, learning_rate=0.002, warm_up=200, growth=0.4),
    seed=1,
    tokenizer="vocabulary.json",
)


def embedded(wanted: LabOptions, recipe: TrainingOrder = RECIPE) -> int:
    """Trains the model, or goes on with it; prints its folder and returns the exit code.

    Raises:
        UsageError: there is no such device, or several jobs for the one training.
        SetupError: a package is missing.
    """
    if wanted.jobs not in (None, 1):
        raise UsageError("the embedded model is one training; leave out --jobs")
    (place, *_) = places_of(wanted)
    folder = _folder(wanted.out, recipe)
    if wanted.dry_run:
        _dry_run(folder, recipe, place, as_json=wanted.as_json)
        return COMPLETE
    return working(folder, lambda: _train(folder, recipe, place, as_json=wanted.as_json))


def _folder(out: Path, recipe: TrainingOrder) -> Path:
    """The folder of a training: another recipe, vocabulary or task has another one."""
    content = {
        "recipe": recipe.model_dump(mode="json"),
        "vocabulary": vocabulary(),
        "tasks": {name: task.spec.digest() for name, task in tasks().items()},
    }
    return out / ROOT / NAME / f"{digest_of(content)}-{recipe.seed}"


def _train(folder: Path, recipe: TrainingOrder, place: Slot, *, as_json: bool) -> int:
    if ended(folder) is None:
        replace_file(folder / recipe.tokenizer, build().to_str().encode())
        replace_file(folder / ORDER, recipe.model_dump_json(indent=2).encode() + b"\n")
        with TrainingDisplay({folder: NAME}, recipe.training.steps) as display:
            train_all([folder], [place], display)
    model = folder / WEIGHTS
    if not model.is_dir():
        say("the model is missing; the same command goes on with it")
        return INCOMPLETE
    if as_json:
        print_document({"study": NAME, "model": model})
    else:
        echo(str(model))
    return COMPLETE


def _dry_run(folder: Path, recipe: TrainingOrder, place: Slot, *, as_json: bool) -> None:
    """Prints the steps that are missing, with the time that they take here."""
    from eyechart_lab.variants.embedded.training import (  # noqa: PLC0415  likewise
        EmbeddedTraining,
    )
    from eyechart_lab.variants.training.devices import seconds_of  # noqa: PLC0415  imports torch
    from eyechart_lab.variants.training.steps import new_optimizer  # noqa: PLC0415  likewise
    from eyechart_lab.variants.training.train import steps_left  # noqa: PLC0415  likewise

    training = recipe.training
    missing = steps_left(folder, training)
    of = EmbeddedTraining(recipe, build(), place.device)
    steps = of.steps(new_optimizer(of.learned, training, place.device))
    seconds = missing * seconds_of(steps, training.steps)
    if as_json:
        print_document({"study": NAME, "steps": missing, "seconds": seconds})
    else:
        takes = f"on {place.device} they take about {duration(seconds)}"
        say(f"steps that are left: {missing:,}; {takes}")
