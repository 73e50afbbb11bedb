"""Measures the inside of every model with `bench probe`, before and after its training."""

from __future__ import annotations

import contextlib
import io
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from eyechart.harness.cli.defaults import PREFIX
from eyechart.harness.errors import COMPLETE, INTERRUPTED, JournalError
from eyechart.harness.plan.plan import Plan
from eyechart_lab.variants.folders import Model
from eyechart_lab.variants.probe_verb import probe_verb
from eyechart_lab.variants.reading import Lab
from eyechart_lab.variants.study import Probe

UNTRAINED, TRAINED = "untrained", "trained"
"""The states in which a model is measured."""


@dataclass(frozen=True, slots=True)
class Inside:
    """A row of `inside.csv`: what one model has inside at one length."""

    variant: str
    seed: int
    state: str
    """`untrained` or `trained`."""
    task: str
    condition: str
    measure: str
    quantity: str
    """Names of `probe.csv`."""
    length: int
    value: float
    """The mean over rows and heads, of the last layer where there is one value a layer."""


def measured(lab: Lab, model: Model, state: str, folder: Path) -> Iterator[Inside]:
    """Measures the model in `folder` on the rows of every task."""
    assert lab.spec.probe is not None
    for task, plan in zip(lab.spec.tasks, lab.plans, strict=True):
        usual = "none" if "lengths" in task.settings else plan.task.spec.usual_spread
        spread = task.settings.get("spread", usual)
        document = _probe(plan, spread, lab.spec.probe, folder, model.runs / state)
        for one in document["probes"]:
            shown = {(row["measure"], row["quantity"]) for row in one["changes"]}
            yield from _rows(plan, model, state, one["rows"], shown)


def _rows(
    plan: Plan,
    model: Model,
    state: str,
    rows: Sequence[Mapping[str, Any]],
    shown: set[tuple[str, str]],
) -> Iterator[Inside]:
    """The values of the quantities that the probe itself shows."""
    axes = list(plan.task.spec.axes)
    values: dict[tuple[Any, ...], dict[float, list[float]]] = {}
    for row in rows:
        if (row["measure"], row["quantity"]) in shown and row["value"] is not None:
            condition = ",".join(f"{axis}={row[axis]}" for axis in axes) or "-"
            key = (condition, row["measure"], row["quantity"], row["length"])
            layer = -1.0 if row["layer"] is None else row["layer"]
            values.setdefault(key, {}).setdefault(layer, []).append(row["value"])
    for (condition, measure, quantity, length), layers in values.items():
        last = layers[max(layers)]
        yield Inside(
            variant=model.variant,
            seed=model.seed,
            state=state,
            task=plan.task.name,
            condition=condition,
            measure=measure,
            quantity=quantity,
            length=int(length),
            value=sum(last) / len(last),
        )


def _probe(plan: Plan, spread: str, wanted: Probe, folder: Path, out: Path) -> dict[str, Any]:
    """The document that `bench probe --json` prints.

    Raises:
        JournalError: the probe did not come to its end.
        KeyboardInterrupt: it was interrupted.
    """
    values: dict[str, list[str]] = {}
    for condition in plan.conditions:
        for axis, value in condition.items():
            values.setdefault(axis, []).append(value)
    arguments = [
        *("--model", f"hf/{folder.resolve()}", "--task", str(plan.task.path)),
        *("--lengths", ",".join(str(line.length) for line in plan.lines)),
        *("--spread", spread, "--samples", str(wanted.samples)),
        *("--measure", ",".join(wanted.measures)),
        *("--seed", str(plan.seed), "--out", str(out.resolve()), "--json"),
    ]
    for axis, names in values.items():
        arguments += ["--axis", f"{axis}={','.join(dict.fromkeys(names))}"]
    printed = io.StringIO()
    out.mkdir(parents=True, exist_ok=True)
    with _without_defaults(out), contextlib.redirect_stdout(printed):
        code = probe_verb().main(args=arguments, prog_name="bench probe", standalone_mode=False)
    if code == INTERRUPTED:
        raise KeyboardInterrupt
    if code != COMPLETE:
        raise JournalError(f"{folder} cannot be probed")
    document: dict[str, Any] = json.loads(printed.getvalue())
    return document


@contextlib.contextmanager
def _without_defaults(folder: Path) -> Iterator[None]:
    """A context without the defaults of files and of the environment."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
    with contextlib.chdir(folder), mock.patch.dict(os.environ, kept, clear=True):
        yield
