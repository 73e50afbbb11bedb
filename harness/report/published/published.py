"""Figures with published results of the same task in grey, and ours in colour. Only comparable
results are put together: the same condition, and the same quantity on both axes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from eyechart.harness.report.charts.panels import Figure
from eyechart.harness.report.page.section import Section
from eyechart.harness.report.published.published_curves import (
    COUNTED,
    copied_figure,
    errors_figure,
    letters_figure,
)
from eyechart.harness.report.published.published_file import PublishedFile
from eyechart.harness.report.published.published_rows import (
    bases_figure,
    capacities_figure,
    ones_314_figure,
    writings_figure,
)

_MAKERS: Mapping[str, Mapping[str, Callable[[Section, PublishedFile], Figure]]] = {
    "copying/first_last": {"barbero2024_copying": copied_figure},
    **{task: {"barbero2024_counting_abs_error": errors_figure} for task in COUNTED},
    "capacity/items": {
        "dai2026_counting_capacity": capacities_figure,
        "dai2026_stimulus_capacity": writings_figure,
    },
    "separators/letters": {"zhang2024_letter_counting": letters_figure},
    "separators/ones_314": {"mtandhj2025_314_ones": ones_314_figure},
    "separators/two_symbols": {"mtandhj2025_rope_base_sweep": bases_figure},
}
"""Task -> name of a file -> the function that makes its figure."""


def published_figures(section: Section, files: Sequence[PublishedFile]) -> list[Figure]:
    """Charts of results that papers published for the task of a section; mostly none."""
    by_name = {file.name: file for file in files}
    made = [
        (by_name[name], make(section, by_name[name]))
        for name, make in _MAKERS.get(section.task, {}).items()
        if name in by_name
    ]
    return [_sourced(figure, file) for file, figure in made if figure.panels]


def _sourced(figure: Figure, file: PublishedFile) -> Figure:
    """With the source of its grey marks after one that it has already, such as models."""
    note = f"Grey: published, not measured here. {figure.note} Source: {file.cited}."
    source = "; ".join(filter(None, (figure.source, file.source)))
    return replace(figure, lengths=False, note=note, source=source, least=360)
