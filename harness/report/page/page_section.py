"""One task of a page: its figures, findings and tables."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from eyechart.harness.analysis.comparison.effects import Effect
from eyechart.harness.analysis.comparison.signed_text import printed
from eyechart.harness.analysis.findings.finding import Finding
from eyechart.harness.analysis.findings.moved import MOVED, NOT_MOVED, moved
from eyechart.harness.analysis.findings.of_run import findings
from eyechart.harness.analysis.findings.pair import of_sides
from eyechart.harness.analysis.findings.ranks import RANKS, of_standing
from eyechart.harness.report.charts import figures
from eyechart.harness.report.charts.accuracy import accuracy_figures
from eyechart.harness.report.charts.effects import effects_of, gaps
from eyechart.harness.report.charts.heat_map import heat_map_figure
from eyechart.harness.report.charts.panels import DrawMore, Figure, Panel
from eyechart.harness.report.page import page_tables as listed
from eyechart.harness.report.page.both_readings import known_figures, known_table
from eyechart.harness.report.page.costs import cost_figures
from eyechart.harness.report.page.page_tables import ReportTable
from eyechart.harness.report.page.section import Section
from eyechart.harness.report.published.published import published_figures
from eyechart.harness.report.published.published_file import PublishedFile
from eyechart.harness.settings.spelling import as_option
from eyechart.providers.naming import spelled


@dataclass(frozen=True)
class PageSection:
    """One section with its figures, findings and tables."""

    section: Section
    effects: Sequence[Effect]
    top: Sequence[Figure]
    """Accuracy over length."""
    figures: Sequence[Figure]
    moved: Mapping[str, str]
    """Model -> the sentences about what moved its effective length."""
    gap: Sequence[str]
    """What the comparison of two models shows; empty with more or fewer."""
    tables: Sequence[ReportTable]

    @property
    def adaptive(self) -> bool:
        """Whether a model was asked adaptively under the condition of the standing."""
        return any(place.adaptive for place in self.section.standing.places)

    @cached_property
    def findings(self) -> list[Finding]:
        """All that the models show, without what `moved` has; of a single one what ends its run."""
        if len(self.section.runs) > 1:
            return of_standing(self.section.standing)
        (details,) = self.section.runs
        found = findings(details.run, name=details.name)
        return [one for one in found if one.kind not in (MOVED.name, NOT_MOVED.name)]

    @property
    def summary(self) -> str:
        """The finding above the charts: which models are right furthest, or how far the one is."""
        return _said(self.findings[0]) if self._has_summary else ""

    @property
    def notes(self) -> list[str]:
        """The findings under the table: all others."""
        return [*map(_said, self.findings[self._has_summary :])]

    @property
    def _has_summary(self) -> bool:
        is_alone = len(self.section.runs) == 1
        return bool(self.findings) and (is_alone or self.findings[0].kind == RANKS.name)

    @property
    def mentions_area(self) -> bool:
        """Whether a sentence speaks of areas."""
        return any(" area" in sentence for sentence in (*self.gap, *self.moved.values()))

    @property
    def other_lines(self) -> bool:
        """Whether areas stand beside each other that are over different lines."""
        series = [one.judged for one in self.section.series if not one.judged.adaptive]
        return len({tuple(cell.line for cell in judged.planned) for judged in series}) > 1

    @cached_property
    def anchors(self) -> dict[str, str]:
        """Model -> the HTML id of its first panel, or of the section where it has none."""
        panels = list(dict.fromkeys(panel.model for panel in self.panels))
        return {
            run_details.name: f"{self.anchor}-{panels.index(run_details.name) + 1}"
            if run_details.name in panels
            else self.anchor
            for run_details in self.section.runs
        }

    @cached_property
    def panels(self) -> Sequence[Panel]:
        """The panels of single models; empty where all models are in one."""
        return [
            panel for figure in self.top if figure.kind == "accuracy" for panel in figure.panels
        ]

    @property
    def moved_under_panels(self) -> bool:
        """Whether each model has exactly one panel, so that its sentences can stand under it."""
        return len(self.moved) > 1 and len(self.panels) == len(self.moved)

    @property
    def anchor(self) -> str:
        """The HTML id of the section."""
        return re.sub(r"[^a-z0-9]+", "-", self.section.name.lower()).strip("-") or "task"


def _said(finding: Finding) -> str:
    return spelled(str(finding), as_option)


def page_section_of(
    section: Section, published: list[PublishedFile], draw_more: Sequence[DrawMore] = ()
) -> PageSection:
    """Everything that a page shows of a section, with what satellites draw of it."""
    section_effects = effects_of(section)
    ranks = section.standing
    section_gaps = gaps(section, ranks)
    model_effects = [effect for gap in section_gaps for effect in gap.effects]
    return PageSection(
        section,
        section_effects,
        accuracy_figures(section, ranks),
        [
            *chain.from_iterable(draw(section) for draw in draw_more),
            *figures.effect_figures(section, section_effects),
            *filter(None, [heat_map_figure(section)]),
            *known_figures(section, section_gaps),
            figures.outcomes_figure(section),
            *figures.answer_figures(section),
            *cost_figures(section),
            *published_figures(section, published),
        ],
        {
            details.name: " ".join(map(_said, found))
            for details in section.runs
            if (found := [*moved(details.run, details.name)])
        },
        [printed(str(one)) for one in of_sides(section_gaps[0].comparison)]
        if len(section.runs) == 2 and section_gaps  # noqa: PLR2004
        else [],
        [
            table
            for table in (
                listed.estimates_table(section),
                listed.models_table(section, ranks),
                listed.pairs_table(section, [*section_effects, *model_effects]),
                known_table(section, section_gaps),
                listed.cell_diagnosis_table(section),
                listed.cells_table(section),
            )
            if table.rows
        ],
    )
