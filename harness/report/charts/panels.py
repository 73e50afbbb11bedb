"""The figures of a report: panels side by side on the same axes, with one chart each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from eyechart.harness.analysis.samples.judged_run import JudgedRun
from eyechart.harness.journal.record import Warn
from eyechart.harness.report.charts.looks import Look, Spec
from eyechart.harness.report.page.section import UNITS, Section, Series

Rows = list[dict[str, Any]]
TALL, MOST_TALL = 0.3, 380
"""Height of curves on the page: the share of the width of their panel, and most pixels."""


@dataclass(frozen=True)
class Panel:
    """One chart: the rows for the spec of its figure."""

    model: str
    title: str
    data: dict[str, Rows]


@dataclass(frozen=True)
class Figure:
    """The charts of one kind in one section, on the same axes."""

    kind: str
    title: str
    spec: Spec
    panels: tuple[Panel, ...]
    look: Look | None = None
    lengths: bool = True
    """Whether the x axis is a length whose unit can be chosen."""
    note: str = ""
    """What is said of its data, on the page and in papers."""
    hint: str = ""
    """How its marks are read: what the page says above it."""
    swatches: Mapping[str, str] = field(default_factory=dict)
    """The entries of a legend that a click does not change: name -> colour."""
    least: int = 270
    """The smallest width of a panel on the page, in pixels."""
    below: int = 0
    """The height of a legend that the spec has below the chart, in pixels."""
    source: str = ""
    """The source of what is published, for files."""
    reading: str = ""
    """What the values are called beside the accuracy of free text and forced choices, where they
    are shares of answers too; else empty."""
    kinds: tuple[str, ...] = ()
    """Kinds of figures for papers, of those of its `PanelSource`, that show it below the curve of
    its run."""

    @property
    def room(self) -> str:
        """The height in CSS that the page reserves: a wide chart of curves is taller."""
        parts = self.spec.get("vconcat")
        if not parts:
            return f"{self.height}px"
        curves = int(parts[-1]["height"])
        rest, share = self.height - curves, f"{100 * TALL:g}cqi"
        return f"calc({rest}px + clamp({curves}px, {share}, {MOST_TALL}px))"

    @property
    def height(self) -> int:
        """The expected height of a panel in pixels, which the page reserves."""
        parts = self.spec.get("vconcat")
        axis, title = 44, 30
        if parts:
            return int(sum(part["height"] for part in parts)) + axis + title
        return int(self.spec["height"]) + axis + self.below


DrawMore: TypeAlias = Callable[[Section], Sequence[Figure]]
"""What a satellite draws of a section, below the accuracy of its runs."""


class PanelSource(Protocol):
    """A satellite whose folders `bench report` takes beside those of runs: the object that an entry
    point of the group `eyechart.panels` names.
    """

    what: str
    """What one of its folders is called, with its article: `a probe`."""
    kinds: Mapping[str, str]
    """Each kind that it adds to `bench figure` -> what is said if there is nothing of it to draw.
    """

    def has(self, folder: Path) -> bool:
        """Whether the folder is one of its own. Nothing but the folder's file names is read."""

    def read(self, folders: Sequence[Path], runs: Sequence[JudgedRun], warn: Warn) -> DrawMore:
        """Reads folders of its own that were named beside `runs`.

        Raises:
            EyechartError: a folder is damaged, or belongs to none of the runs.
        """


def look_of(section: Section) -> Look:
    """The axis with most values by colour, the next one by dashes; further axes make panels."""
    varied = section.varied
    if not varied:
        return Look(("all",), ())
    colours = tuple(section.axes[varied[0]])
    if len(varied) == 1:
        return Look(colours, (), varied[0])
    return Look(colours, tuple(section.axes[varied[1]]), varied[0], varied[1])


def panels_of(section: Section) -> Iterable[tuple[str, str, list[Series]]]:
    """Model, title and series of each panel: one panel for each model and each combination of
    values of the axes that neither colour nor dash shows. The title says where all are adaptive.
    """
    panel_axes = section.varied[2:]
    panels: dict[tuple[str, str], list[Series]] = {}
    for series in section.series:
        where = ", ".join(f"{axis} {series.condition[axis]}" for axis in panel_axes)
        panels.setdefault((series.run_details.name, where), []).append(series)
    for (model, where), panel_series in panels.items():
        asked = "adaptive" if all(series.judged.adaptive for series in panel_series) else ""
        yield model, ", ".join(filter(None, (where, asked))), panel_series


def marks_of(section: Section, series: Series) -> dict[str, str | float]:
    """The fields of every row of a series: colour, dash, marks, name in tooltips."""
    varied = section.varied
    colour = series.condition[varied[0]] if varied else "all"
    dash = series.condition[varied[1]] if len(varied) > 1 else colour
    look = look_of(section)
    return {
        "colour": colour,
        "dash": dash,
        "size": look.size(colour),
        "solid": look.solid(dash),
        "where": (series.label(varied) or "all") + ", adaptive" * series.judged.adaptive,
    }


def told_apart(rows: Rows, *, always: bool = False) -> Rows:
    """The rows of a panel's curves with their `lane`, which keeps equal curves visible: the place
    of a mark among others at the same point, 0 in the middle. With `always`, each series has its
    own lane, so that intervals do not hide each other.
    """
    series = list(dict.fromkeys((row["colour"], row["dash"]) for row in rows))
    at: dict[tuple[float, float], list[tuple[str, str]]] = {}
    for row in rows:
        at.setdefault((_x_of(row), row["y"]), []).append((row["colour"], row["dash"]))
    apart = []
    for row in rows:
        beside = series if always else at[_x_of(row), row["y"]]
        place = beside.index((row["colour"], row["dash"]))
        apart.append(row | {"lane": place - (len(beside) - 1) / 2})
    return apart


def _x_of(row: Mapping[str, Any]) -> float:
    return float(row["x"] if "x" in row else row[f"x@{UNITS[0]}"])


def units_of(values: dict[str, float | None], name: str) -> dict[str, float | None]:
    return {
        f"{name}@{unit}": None if value is None else round(value, 1)
        for unit, value in values.items()
    }
