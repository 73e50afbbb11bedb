"""Code that the figures beside published ones share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from eyechart.harness.analysis.details import RunDetails
from eyechart.harness.report.panels import Figure, look_of
from eyechart.harness.report.reported import Reported
from eyechart.harness.report.section import Section, Series

Files: TypeAlias = Mapping[str, Reported]
"""Name -> file."""
LARGEST = 1e12
"""Answers and errors beyond this are drawn at this value."""


def beside(section: Section, file: Reported, figure: Figure) -> Figure | None:
    """The figure with the source of its grey marks; `None` without panels. A source that the figure
    already has, such as names of models, comes first.
    """
    if not figure.panels:
        return None
    note = f"Grey: published, not measured here. {figure.note} Source: {file.cited}."
    source = "; ".join(filter(None, (figure.source, file.source)))
    return replace(figure, look=look_of(section), lengths=False, note=note, source=source)


def series_of(
    section: Section, run_details: RunDetails, wanted: Mapping[str, str]
) -> Sequence[Series]:
    """The series of a run under the wanted values; axes that the task lacks are ignored."""
    return [
        series
        for series in section.series
        if series.run_details is run_details
        and all(series.condition.get(axis, value) == value for axis, value in wanted.items())
    ]
