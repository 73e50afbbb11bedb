"""Figures with published results of the same task in grey, and ours in colour. Only comparable
results are put together: the same condition, and the same quantity on both axes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from eyechart.harness.report.beside import Files
from eyechart.harness.report.panels import Figure
from eyechart.harness.report.published_curves import (
    COUNTED,
    copied_figure,
    errors_figure,
    letters_figure,
)
from eyechart.harness.report.published_rows import (
    bases_figure,
    capacities_figure,
    ones_314_figure,
    writings_figure,
)
from eyechart.harness.report.reported import Reported
from eyechart.harness.report.section import Section

_MAKERS: Mapping[str, tuple[Callable[[Section, Files], Figure | None], ...]] = {
    "copying/first_last": (copied_figure,),
    **dict.fromkeys(COUNTED, (errors_figure,)),
    "capacity/items": (capacities_figure, writings_figure),
    "separators/letters": (letters_figure,),
    "separators/ones_314": (ones_314_figure,),
    "separators/two_symbols": (bases_figure,),
}
"""Task -> the function that makes its figures."""


def published_figures(section: Section, files: Sequence[Reported]) -> list[Figure]:
    """Charts of results that papers published for the task of a section; for most tasks there are
    none.
    """
    by_name = {file.name: file for file in files}
    made = (make(section, by_name) for make in _MAKERS.get(section.task, ()))
    return [figure for figure in made if figure is not None]
