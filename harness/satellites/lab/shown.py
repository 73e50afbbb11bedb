"""What `bench lab` prints: the trainings ahead, the results, and the document of `--json`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from eyechart.harness.analysis.interval import span_text
from eyechart.harness.cli.documents import print_document
from eyechart.harness.cli.layout import Column, table
from eyechart.harness.cli.terminal import echo, show, tell
from eyechart.harness.satellites.lab.folders import CSV, PAGE, VARIANTS, LabFolder
from eyechart.harness.satellites.lab.memory import longest_tokens
from eyechart.harness.satellites.lab.order import ended
from eyechart.harness.satellites.lab.progress import duration
from eyechart.harness.satellites.lab.results import Result, length_text
from eyechart.harness.satellites.lab.seeds import FEWEST, fewest_seeds, smallest_p
from eyechart.harness.satellites.lab.study import LabSpec
from eyechart.harness.satellites.lab.words import method, sentence

if TYPE_CHECKING:
    from tokenizers import Tokenizer


def dry_run(
    folder: LabFolder, tokenizer: Tokenizer, device: str, jobs: int, *, as_json: bool
) -> None:
    """Prints what is to be trained, with the time that its steps would take here."""
    from eyechart.harness.satellites.lab.devices import (  # noqa: PLC0415  imports torch
        seconds_of_step,
    )

    lab = folder.lab
    spec = lab.spec
    tokens = longest_tokens(lab, tokenizer)
    missing: dict[str, set[str]] = {name: set() for name in spec.variants}
    known: set[str] = set()
    for model in folder.models():
        if ended(model.training) is None and str(model.training) not in known:
            known.add(str(model.training))
            missing[model.variant].add(str(model.training))
    steps = spec.training.steps
    seconds = {
        name: len(ahead)
        * steps
        * seconds_of_step(
            spec.variants[name], spec.training, tokenizer.get_vocab_size(), tokens, device
        )
        for name, ahead in missing.items()
        if ahead
    }
    total = sum(seconds.values()) / jobs
    if as_json:
        print_document(
            {
                "study": spec.name,
                "trainings": {name: len(ahead) for name, ahead in missing.items()},
                "steps": steps,
                "seconds": total,
            }
        )
        return
    names = list(spec.variants)
    show(
        table(
            [
                Column(["variant"], names, "left"),
                Column(["trainings"], [f"{len(missing[name]):,}" for name in names]),
                Column(["steps"], [f"{len(missing[name]) * steps:,}" for name in names]),
                Column(
                    ["about"],
                    [duration(seconds[name]) if name in seconds else "-" for name in names],
                ),
            ]
        )
    )
    requests = sum(plan.size for plan in lab.plans)
    models = len(names) * spec.seeds
    tell(
        f"{models} models, {sum(map(len, missing.values()))} to train, about {duration(total)} at "
        f"most on {device} with {jobs} jobs; then {models * requests:,} requests, {requests:,} a "
        "model."
    )
    if said := _of_seeds(spec):
        tell(said)


def _of_seeds(spec: LabSpec) -> str:
    """What so many seeds cannot show; empty if they are enough."""
    others = len(spec.variants) - 1
    if not others or spec.seeds >= (fewest := fewest_seeds(others)):
        return ""
    least = min(1.0, smallest_p(spec.seeds, spec.seeds) * others)
    interval = "" if spec.seeds >= FEWEST else f", and {FEWEST} to give an interval over seeds"
    return (
        f"With {spec.seeds} seeds p cannot be below {least:.2g}, so no variant can be called "
        f"better: that takes {fewest} seeds{interval}."
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
                    Column(["learned"], [f"{one.learnt}/{len(one.seeds)}" for one in mine]),
                    Column(["sees to"], [length_text(one) for one in mine]),
                    Column(["95 % interval"], [_span(one) for one in mine], "left"),
                    Column(["p"], ["" if one.p is None else f"{one.p:.2g}" for one in mine]),
                ]
            )
        )
        for one in mine:
            tell(sentence(one, spec.reference))
        echo("")
    tell(method(found, spec.reference))


def _span(one: Result) -> str:
    return "" if one.span is None else span_text(one.span)


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
        "p": one.p,
        "smallest_p": one.smallest_p,
        "verdict": one.verdict or None,
        "said": sentence(one, reference),
    }
