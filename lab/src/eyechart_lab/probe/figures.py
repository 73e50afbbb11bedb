"""The figures of a probe: values measured inside a model, by length, below its accuracy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from eyechart.harness.analysis import JudgedRun
from eyechart.harness.errors import UsageError
from eyechart.harness.report.charts import charts
from eyechart.harness.report.charts.looks import Look, Spec
from eyechart.harness.report.charts.panels import (
    DrawMore,
    Figure,
    Panel,
    Rows,
    look_of,
    marks_of,
    panels_of,
    told_apart,
    units_of,
)
from eyechart.harness.report.page.section import Section, Series, key_of
from eyechart_lab.probe.fails_first import SHARES, FallingShare, falling_shares, first_to_fail
from eyechart_lab.probe.folder import is_probe, read_manifest
from eyechart_lab.probe.readout import READOUT
from eyechart_lab.probe.shown_measures import (
    SHOWN,
    ShownMeasure,
    rows_with,
    shown_changes,
    shown_values,
)
from eyechart_lab.probe.table import probe_rows


@dataclass(frozen=True, eq=False)
class ProbeOfRun:
    """A probe of a task that a section is about."""

    model: str
    task_digest: str
    seed: int
    """Seed of its samples."""
    frame: pd.DataFrame
    """The rows of `probe_rows`."""


def read_probe(folder: Path) -> ProbeOfRun:
    """A probe, from its folder.

    Raises:
        JournalError: there is no probe, or its files are damaged.
    """
    manifest = read_manifest(folder)
    return ProbeOfRun(
        manifest["model"], manifest["task_digest"], manifest["seed"], probe_rows(folder)
    )


_PROBE, _FIRST = "probe", "first"
_NOTHING = {
    _PROBE: "no probe of these runs is here, so there is nothing to draw; name its folder too, "
    "which 'bench probe' makes under 'probes'",
    _FIRST: "no probe of these runs has what can be read at the end, so there is nothing to draw; "
    "'bench probe --measure readout' measures it, and its folder is named too",
}


class ProbePanels:
    """The folders of probes, as `bench report` takes them; see `PanelSource`."""

    what = "a probe"
    kinds = _NOTHING

    def has(self, folder: Path) -> bool:
        """Whether the folder is that of a probe."""
        return is_probe(folder)

    def read(
        self, folders: Sequence[Path], runs: Sequence[JudgedRun], warn: Callable[[str], None]
    ) -> DrawMore:
        """Reads the probes of tasks that `runs` have.

        Raises:
            JournalError: the files of a probe are damaged.
            UsageError: a probe belongs to another task.
        """
        asked = {run.manifest.task_digest for run in runs}
        probes = []
        for folder in folders:
            probe = read_probe(folder)
            if probe.task_digest not in asked:
                raise UsageError(
                    f"{folder} is a probe of a task that none of the runs has; name its run too, "
                    "whose folder has 'runs' in place of 'probes'"
                )
            seeds = {
                run.manifest.settings.seed
                for run in runs
                if run.manifest.task_digest == probe.task_digest and run.manifest.recorded is None
            }
            if others := sorted(seeds - {probe.seed}, key=str):
                warn(
                    f"{folder}: its samples have seed {probe.seed}, those of a run beside it "
                    f"seed {others[0]}"
                )
            probes.append(probe)
        return partial(_draw, probes=probes)


PANELS = ProbePanels()


def _draw(section: Section, probes: Sequence[ProbeOfRun]) -> list[Figure]:
    """A figure for each shown measure that a probe of the section's task has; a model without a run
    in the section is drawn under the conditions of the first run.
    """
    digest = section.runs[0].run.manifest.task_digest
    rows = {probe.model: probe.frame for probe in probes if probe.task_digest == digest}
    frames = {model: shown_values(frame) for model, frame in rows.items()}
    changes = {model: shown_changes(frame) for model, frame in rows.items()}
    asked = [run_details.name for run_details in section.runs]
    others = [model for model in frames if model not in asked]
    look = look_of(section)
    found = []
    for shown in SHOWN:
        panels = []
        for model, title, panel_series in panels_of(section):
            drawn = {model: frames.get(model)}
            if model == asked[0]:
                drawn |= {other: frames[other] for other in others}
            panels += [
                panel
                for name, frame in drawn.items()
                if frame is not None
                and (
                    panel := _panel(
                        section, panel_series, shown, model=name, title=title, frame=frame
                    )
                )
            ]
        if panels:
            said = _said(section, shown, changes)
            found.append(_figure(section, shown, look, panels, " ".join([shown.note, *said])))
    return [*_fails_first(section, rows), *found]


_SHARES = Look(SHARES, (), "what")
_LINES = "vertical lines are effective lengths"


def _fails_first(section: Section, rows: Mapping[str, pd.DataFrame]) -> Iterator[Figure]:
    """The picture of what fails first, of each condition in which the end was read; see
    `fails_first`.
    """
    panels, said = [], []
    for series in section.series:
        frame = rows.get(series.run_details.name)
        if frame is None:
            continue
        of_series = rows_with(frame, series.condition)
        if not (of_series["measure"] == READOUT).any():
            continue
        line = [{"y": section.judging.threshold}]
        shares = falling_shares(series.judged, of_series)
        where = series.label(section.varied)
        inside = [row for share in shares for row in _of_share(series, share)]
        panels.append(
            Panel(
                series.run_details.name,
                where,
                {
                    "inside": told_apart(inside),
                    "estimate": [],
                    "line": line,
                },
            )
        )
        name = ", ".join(filter(None, (series.run_details.name, where)))
        said.append(f"{name}: {first_to_fail(shares)}")
    if panels:
        spec = charts.inside_chart(
            _SHARES,
            section.lengths,
            "share",
            over=section.over,
            is_log=False,
            is_share=True,
            are_intervals=True,
        )
        _add_legend(spec)
        note = (
            "The order of answers holds where three quarters of the pairs of rows are ordered "
            "right, the others where this share of rows is at the dashed line. n and n + 1 are "
            "apart where the distance of their states at the end exceeds that of rounding alone. "
        )
        yield Figure(
            "inside",
            "What fails first",
            spec,
            tuple(panels),
            _SHARES,
            note=note + " ".join(said),
            hint=f"Bars are 95 % intervals; {_LINES}.",
            kinds=(_PROBE, _FIRST),
        )


def _add_legend(spec: Spec) -> None:
    """Names the curves below the chart, in two rows; the page itself names conditions only."""
    legend = {"title": None, "orient": "bottom", "columns": 2, "symbolOpacity": 1}
    for layer in spec["layer"]:
        for channel in ("color", "shape", "strokeDash"):
            encoded = layer["encoding"].get(channel, {})
            if encoded.get("field") in ("colour", "dash"):
                encoded["legend"] = legend


def _of_share(series: Series, share: FallingShare) -> Iterator[dict[str, Any]]:
    """The rows of the curve of a share."""
    for line in share.lines:
        yield {
            **_SHARES.marks(share.name),
            **units_of(series.at(float(line.length)), "x"),
            "length": line.length,
            "y": line.value,
            "low": line.low,
            "high": line.high,
            "n": line.n,
        }


def _said(
    section: Section, shown: ShownMeasure, changes: Mapping[str, pd.DataFrame]
) -> Iterator[str]:
    """What is said of a shown measure with length: a sentence for each model and condition."""
    conditions = {series.label(section.varied): series.condition for series in section.series}
    for model, frame in changes.items():
        of_shown = frame[
            (frame["measure"] == shown.measure) & (frame["quantity"] == shown.quantity)
        ]
        for label, condition in conditions.items():
            for said in rows_with(of_shown, condition)["said"]:
                yield f"{', '.join(filter(None, (model, label)))}: {said}."


def _panel(
    section: Section,
    panel_series: Sequence[Series],
    shown: ShownMeasure,
    *,
    model: str,
    title: str,
    frame: pd.DataFrame,
) -> Panel | None:
    """The panel of a probe: with effective lengths if `panel_series` belong to its model; otherwise
    they only give the conditions. `None` if nothing was measured.
    """
    rows: Rows = []
    marks: Rows = []
    for series in panel_series:
        is_own = series.run_details.name == model
        rows += _rows(section, series, shown, frame, is_own=is_own)
        marks += _marks(section, series) if is_own else []
    if not rows:
        return None
    return Panel(
        model,
        title,
        {
            "inside": told_apart(rows, always=True),
            "estimate": marks,
            "line": [] if shown.line is None else [{"y": shown.line}],
        },
    )


def _figure(
    section: Section, shown: ShownMeasure, look: Look, panels: Sequence[Panel], note: str
) -> Figure:
    spec = charts.inside_chart(
        look,
        section.lengths,
        shown.axis,
        over=section.over,
        is_log=shown.is_log,
        is_share=shown.is_share,
    )
    return Figure(
        "inside",
        shown.title,
        spec,
        tuple(panels),
        look,
        note=note,
        hint=f"Points are means, bars reach from the smallest to the largest value; {_LINES}.",
        reading=shown.reading,
        kinds=(_PROBE,),
    )


def _rows(
    section: Section, series: Series, shown: ShownMeasure, frame: pd.DataFrame, *, is_own: bool
) -> Rows:
    """The values under the condition of a series; tokens are known for its own model only."""
    chosen = rows_with(frame[frame["shown"] == shown.name], series.condition)
    rows: Rows = []
    for _, row in chosen.iterrows():
        if shown.is_log and not row["low"] > 0:
            continue
        at = series.at(float(row["length"]))
        if not is_own:
            at["tokens"] = None
        rows.append(
            {
                **marks_of(section, series),
                **units_of(at, "x"),
                "length": int(row["length"]),
                "y": float(row["value"]),
                "low": float(row["low"]),
                "high": float(row["high"]),
                "n": int(row["n"]),
            }
        )
    return rows


def _marks(section: Section, series: Series) -> Rows:
    """The effective length of a series, if it lies within the tested lines."""
    estimate = section.estimates.get(key_of(series))
    length = None if estimate is None else estimate.length
    if length is None or length.sign != "=":
        return []
    at = series.at(length.length)
    return [{**marks_of(section, series), **units_of(at, "x")}]
