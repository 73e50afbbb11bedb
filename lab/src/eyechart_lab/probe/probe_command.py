"""The work of `bench probe`."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eyechart.harness.cli.documents import print_document, rows_of
from eyechart.harness.cli.progress import counting_bar
from eyechart.harness.cli.tables.layout import Column, show_blocks, show_title
from eyechart.harness.cli.terminal import (
    echo,
    one_line,
    say,
    tell,
    warn,
)
from eyechart.harness.errors import COMPLETE, INTERRUPTED
from eyechart.harness.journal.software import software
from eyechart.harness.plan import Plan
from eyechart.harness.spec import Settings
from eyechart.providers.naming import named
from eyechart_lab.probe.engine import Probe, ProbeResult
from eyechart_lab.probe.folder import ProbeFolder, probe_folder
from eyechart_lab.probe.inside import open_inside
from eyechart_lab.probe.shown_measures import SHOWN, rows_with, shown_values
from eyechart_lab.probe.table import CHANGES, TABLE, write_tables

if TYPE_CHECKING:
    import pandas as pd

    from eyechart.providers.base import ModelSettings
    from eyechart.providers.registry.model_name import ModelName
    from eyechart_lab.probe.inside import Inside


@dataclass(frozen=True, slots=True)
class ProbedModel:
    """A model that a command probes."""

    name: ModelName
    settings: ModelSettings


def probe(
    plans: Sequence[Plan],
    models: Sequence[ProbedModel],
    measures: Sequence[str],
    *,
    settings: Settings,
    out: Path,
    command: str,
    as_json: bool,
) -> int:
    """Probes each model on each plan and prints a table for each; returns the exit code."""
    documents: list[dict[str, Any]] = []
    code = COMPLETE
    for model in models:
        with closing(open_inside(model.name, model.settings)) as inside:
            for missing in inside.anatomy.missing:
                warn(f"{model.name.label}: {missing}")
            for planned in plans:
                folder = probe_folder(out, model.name.label, planned.task, settings)
                try:
                    probe_one(planned, model, inside, folder, measures, command=command)
                except KeyboardInterrupt:
                    say("interrupted; what was measured is saved, and the same command continues")
                    code = INTERRUPTED
                rows, frame, changes = write_tables(folder)
                if as_json:
                    documents.append(
                        {"folder": folder, "rows": rows_of(frame), "changes": rows_of(changes)}
                    )
                else:
                    _show(rows, changes, model.name.label, planned)
                    echo(str(folder / CHANGES), str(folder / TABLE))
                if code == INTERRUPTED:
                    return code
    if as_json:
        print_document({"probes": documents})
    return code


def probe_one(
    planned: Plan,
    model: ProbedModel,
    inside: Inside,
    folder: Path,
    measures: Sequence[str],
    *,
    command: str = "",
) -> None:
    """Probes one model on one task, into a folder, and prints what was left out."""
    name = planned.task.name
    with ProbeFolder(folder) as writer, counting_bar() as bar:
        writer.describe(_manifest(planned, model, inside, command))
        probing = Probe(planned, inside, writer, measures)
        shown = bar.add_task(one_line(name), total=planned.size)
        probing.run(lambda done, total: bar.update(shown, completed=done, total=total))
    _warn_of(name, probing.result)
    _warn_of_rows(planned, measures)


def _manifest(planned: Plan, model: ProbedModel, inside: Inside, command: str) -> dict[str, Any]:
    task = planned.task
    return {
        "model": model.name.label,
        "task": task.name,
        "task_version": task.spec.version,
        "task_digest": task.spec.digest(),
        "axes": list(task.spec.axes),
        "seed": planned.seed,
        "facts": inside.facts(),
        "anatomy": asdict(inside.anatomy) | {"unavailable": sorted(inside.anatomy.unavailable)},
        "software": software(),
        "commands": [command or shlex.join(["bench", *sys.argv[1:]])],
    }


def _warn_of(task: str, result: ProbeResult) -> None:
    """Warns of measures that could not be taken, with the reason."""
    by_length: dict[int, list[str]] = {}
    for condition, length in result.too_long.items():
        by_length.setdefault(length, []).append(condition.label or "all")
    for length, conditions in sorted(by_length.items()):
        warn(
            f"{task}: rows from {length:,} symbols on do not fit the model's window and are left "
            f"out ({'; '.join(conditions)})"
        )
    for (measure, why), samples in result.left_out.items():
        times = f", {samples:,} samples" if samples > 1 else ""
        warn(f"{task}: {measure} is left out: {why}{times}")


def _warn_of_rows(planned: Plan, measures: Sequence[str]) -> None:
    """Warns where the rows cannot show how far a value would be off by chance."""
    if all(planned.cell_size(*cell) == 1 for cell in planned.sizes):
        warn(
            f"{planned.task.name}: one row a length gives no interval and no verdict: "
            f"{named('samples', '3')} or more"
        )
    elif "collapse" in measures and all(line.low == line.high for line in planned.lines):
        warn(
            f"{planned.task.name}: all rows of a line have the same length; the distance of n and "
            f"n + 1 may differ more from one length to the next: two or more {named('lengths')} "
            f"without {named('exact')} vary it"
        )


def _show(rows: pd.DataFrame, changes: pd.DataFrame, label: str, planned: Plan) -> None:
    """Prints a table for each condition: a row for each length, a column for each shown measure;
    and below it what is said of each measure's change with length.
    """
    values = shown_values(rows)
    for condition in planned.conditions:
        of_condition = rows_with(values, condition)
        if of_condition.empty:
            continue
        lengths = sorted(set(of_condition["length"]))
        columns = [
            Column(shown.header, [_cell(of_condition, shown.name, length) for length in lengths])
            for shown in SHOWN
            if (of_condition["shown"] == shown.name).any()
        ]
        show_title([f"{planned.task.name}  {label}  {condition.label.replace(',', ', ')}"])
        show_blocks([Column(["length"], [f"{length:,}" for length in lengths])], columns)
        for line in _said(rows_with(changes, condition)):
            echo(line)
    known = set(values["shown"])
    names = [f"{' '.join(one.header)} is {one.name}" for one in SHOWN if one.name in known]
    tell(f"In probe.csv, as measure.quantity: {'; '.join(names)}.")


def _said(changes: pd.DataFrame) -> Iterator[str]:
    """A line for each measure that changes, and one for all others of which the same is said."""
    titles = {(one.measure, one.quantity): " ".join(one.header) for one in SHOWN}
    alike: dict[str, list[str]] = {}
    for row in changes.to_dict("records"):
        title = titles[row["measure"], row["quantity"]]
        if row["from_length"] is None:
            alike.setdefault(row["said"], []).append(title)
        else:
            yield f"{title}: {row['said']}"
    for said, names in alike.items():
        yield f"{said}: {', '.join(names)}"


def _cell(values: pd.DataFrame, name: str, length: int) -> str:
    """A value in the table; empty if it is not known."""
    found = values.loc[(values["shown"] == name) & (values["length"] == length), "value"]
    return f"{found.iloc[0]:.3g}" if len(found) else ""
