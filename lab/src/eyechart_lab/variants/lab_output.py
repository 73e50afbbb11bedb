"""What `bench lab` prints: the trainings ahead, the results, and the document of `--json`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, astuple, dataclass
from typing import TYPE_CHECKING, Any

from eyechart.harness.cli.documents import print_document
from eyechart.harness.cli.tables.layout import Column, table
from eyechart.harness.cli.terminal import echo, show, tell
from eyechart.harness.spec.duration import duration
from eyechart_lab.variants.asking import unanswered
from eyechart_lab.variants.folders import CSV, PAGE, VARIANTS, LabFolder
from eyechart_lab.variants.results.results import (
    Result,
    VariantComparison,
    interval_text,
    length_text,
    p_text,
    share_span,
    share_text,
)
from eyechart_lab.variants.results.seeds import FEWEST, fewest_seeds, mean, smallest_p
from eyechart_lab.variants.results.words import ceilings_text, method, sentence, shared_training
from eyechart_lab.variants.study import LabSpec
from eyechart_lab.variants.training.memory import longest_tokens
from eyechart_lab.variants.training.order import TRAINED, ended
from eyechart_lab.variants.training.worker import Slot

if TYPE_CHECKING:
    from tokenizers import Tokenizer


@dataclass
class _Ahead:
    """What is missing of a variant, and the time that it would take here."""

    trainings: int = 0
    steps: int = 0
    requests: int = 0
    training_s: float = 0.0
    asking_s: float = 0.0


def dry_run(
    folder: LabFolder, tokenizer: Tokenizer, places: Sequence[Slot], *, as_json: bool
) -> None:
    """Prints what is to be trained and asked, with the time that this would take here."""
    spec, device = folder.lab.spec, places[0].device
    ahead = _ahead(folder, tokenizer, device)
    total = _Ahead(*map(sum, zip(*map(astuple, ahead.values()), strict=True)))
    total.training_s /= len(places)
    if as_json:
        print_document(
            {
                "study": spec.name,
                "trainings": {name: one.trainings for name, one in ahead.items()},
                "steps": {name: one.steps for name, one in ahead.items()},
                "seconds": total.training_s,
                "requests": {name: one.requests for name, one in ahead.items()},
                "asking_seconds": total.asking_s,
            }
        )
        return
    rows = ahead.values()
    show(
        table(
            [
                Column(["variant"], list(ahead), "left"),
                Column(["trainings"], [f"{one.trainings:,}" for one in rows]),
                Column(["steps"], [f"{one.steps:,}" for one in rows]),
                Column(["to train"], [_time(one.training_s) for one in rows]),
                Column(["requests"], [f"{one.requests:,}" for one in rows]),
                Column(["to ask"], [_time(one.asking_s) for one in rows]),
            ]
        )
    )
    models, processes = len(ahead) * spec.seeds, f"process{'es' * (len(places) > 1)}"
    tell(
        f"{models} models, {total.trainings} to train, about {duration(total.training_s)} at most "
        f"on {device} in {len(places)} {processes}; then {total.requests:,} requests, about "
        f"{duration(total.asking_s)} at most{' besides the probe' if spec.probe else ''}."
    )
    if said := _of_seeds(spec):
        tell(said)


def _time(seconds: float) -> str:
    return duration(seconds) if seconds else "-"


def _ahead(folder: LabFolder, tokenizer: Tokenizer, device: str) -> dict[str, _Ahead]:
    """What is missing of each variant."""
    from eyechart_lab.variants.training.devices import (  # noqa: PLC0415  imports torch
        seconds_of_model,
        seconds_of_step,
    )
    from eyechart_lab.variants.training.train import steps_left  # noqa: PLC0415  imports torch

    lab, known = folder.lab, set()
    training, words = lab.spec.training, tokenizer.get_vocab_size()
    tokens = longest_tokens(lab, tokenizer)
    found = {name: _Ahead() for name in lab.spec.variants}
    for model in folder.models():
        one, how = found[model.variant], ended(model.training)
        if how is None and model.training not in known:
            known.add(model.training)
            one.trainings += 1
            one.steps += steps_left(model.training, training)
        if how is None or how.how == TRAINED:
            one.requests += unanswered(lab, model)
    a_model = sum(plan.size for plan in lab.plans)
    for name, one in found.items():
        variant = lab.spec.variants[name]
        if one.trainings:
            a_step = seconds_of_step(variant, training, words, tokens, device)
            one.training_s = one.steps * a_step
        if one.requests:
            one.asking_s = seconds_of_model(lab, variant, tokenizer) * one.requests / a_model
    return found


def _of_seeds(spec: LabSpec) -> str:
    """What so many seeds cannot show; empty if they are enough."""
    others = len(spec.variants) - 1
    if not others or spec.seeds >= (fewest := fewest_seeds(others)):
        return ""
    least = min(1.0, smallest_p(spec.seeds, spec.seeds) * others)
    interval = "" if spec.seeds >= FEWEST else f", and {FEWEST} to give an interval over seeds"
    return (
        f"With {spec.seeds} seed{'s' * (spec.seeds > 1)} p cannot be below {least:.2g}, so no "
        f"variant can be called better: that takes {fewest} seeds{interval}."
    )


def results(spec: LabSpec, found: Sequence[Result]) -> None:
    """Prints a table and a sentence a variant for each condition."""
    for where in dict.fromkeys(one.where for one in found):
        mine = [one for one in found if one.where == where]
        task, condition = where
        echo(f"{task}  {condition.replace(',', ', ')}")
        show(
            table(
                [
                    Column(["variant"], [one.variant for one in mine], "left"),
                    Column(["trained", "right"], [share_text(one.within) for one in mine]),
                    Column(["", "p"], [p_text(one.by_within.p) for one in mine]),
                    Column(["right to"], [length_text(one) for one in mine]),
                    Column(["95 % interval"], [interval_text(one) for one in mine], "left"),
                    Column(["p"], [p_text(one.by_length.p) for one in mine]),
                    Column(["longer", "right"], [share_text(one.beyond) for one in mine]),
                    Column(["", "p"], [p_text(one.by_beyond.p) for one in mine]),
                ]
            )
        )
        if known := ceilings_text(mine):
            tell(known)
        for one in mine:
            tell(sentence(one, spec.reference))
        echo("")
    tell(method(found, spec.reference))
    if shared := shared_training(spec):
        tell(shared)


def document(folder: LabFolder, found: Sequence[Result]) -> None:
    """Prints the document of `--json`."""
    spec = folder.lab.spec
    print_document(
        {
            "study": spec.name,
            "csv": folder.path / CSV,
            "variants": folder.path / VARIANTS,
            "page": folder.path / PAGE,
            "against": spec.reference,
            "read": spec.read,
            "results": [_entry(one, spec.reference) for one in found],
        }
    )


def _entry(one: Result, reference: str) -> dict[str, Any]:
    span = one.span
    return {
        "variant": one.variant,
        "task": one.task,
        "condition": one.condition,
        "seeds": len(one.seeds),
        "learned": one.learnt,
        "diverged": one.diverged,
        "effective_length": None if one.length is None else asdict(one.length),
        "interval": None if span is None else [asdict(end) for end in span],
        **_compared(one.by_length),
        "within": mean(one.within) if one.within else None,
        "within_interval": share_span(one.within),
        **{f"within_{name}": value for name, value in _compared(one.by_within).items()},
        "answers_to": one.limit,
        "beyond": mean(one.beyond) if one.beyond else None,
        "beyond_interval": share_span(one.beyond),
        **{f"beyond_{name}": value for name, value in _compared(one.by_beyond).items()},
        "said": sentence(one, reference),
    }


def _compared(of: VariantComparison) -> dict[str, Any]:
    return {"p": of.p, "smallest_p": of.smallest_p, "verdict": of.verdict or None}
