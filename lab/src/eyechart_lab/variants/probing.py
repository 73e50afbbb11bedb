"""Measures the inside of every model with `bench probe`, before and after its training."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from eyechart.harness.cli.documents import rows_of
from eyechart.harness.face.options import shaping
from eyechart.harness.plan import Plan, selection
from eyechart.harness.settings.run_settings import RunSettings
from eyechart.providers.base import ModelSettings
from eyechart.providers.registry.model_name import parse_model
from eyechart_lab.probe.folder import probe_folder
from eyechart_lab.probe.inside import open_inside
from eyechart_lab.probe.measures.catalogue import check_measures
from eyechart_lab.probe.probe_command import ProbedModel, probe_one
from eyechart_lab.probe.table import write_tables
from eyechart_lab.variants.folders import Model
from eyechart_lab.variants.reading import Lab

UNTRAINED, TRAINED = "untrained", "trained"
"""The states in which a model is measured."""


@dataclass(frozen=True, slots=True)
class InsideRow:
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


def measured(lab: Lab, model: Model, state: str, folder: Path) -> Iterator[InsideRow]:
    """Measures the model in `folder` on the rows of every task, as `bench probe` does."""
    wanted = lab.spec.probe
    assert wanted is not None
    name = parse_model(f"hf/{folder.resolve()}")
    for of_study in lab.plans:
        plan = replace(of_study, samples=wanted.samples)
        settings = shaping(RunSettings(seed=plan.seed), selection.system_prompt([plan], None))
        probed = ProbedModel(name, ModelSettings(name.model, system=settings.system))
        place = probe_folder(model.runs / state, name.label, plan.task, settings)
        with closing(open_inside(name, probed.settings)) as inside:
            probe_one(plan, probed, inside, place, check_measures(wanted.measures))
        _, frame, changes = write_tables(place)
        shown = set(zip(changes["measure"], changes["quantity"], strict=True))
        yield from _rows(plan, model, state, rows_of(frame), shown)


def _rows(
    plan: Plan,
    model: Model,
    state: str,
    rows: Sequence[Mapping[str, Any]],
    shown: set[tuple[str, str]],
) -> Iterator[InsideRow]:
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
        yield InsideRow(
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
