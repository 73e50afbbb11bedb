"""Several runs as Python shows them: in order, with the ranks that the tests allow."""

from __future__ import annotations

from functools import cached_property

import pandas as pd

from eyechart.harness.analysis.comparison.comparison_table import comparison_table
from eyechart.harness.analysis.comparison.family import Ranking
from eyechart.harness.analysis.findings.finding import Finding
from eyechart.harness.analysis.findings.ranks import of_ranking
from eyechart.harness.analysis.tables.tables import estimate_columns
from eyechart.harness.face.python.findings import in_words_of_python, paragraphs
from eyechart.harness.face.python.result import RunComparison
from eyechart.harness.settings.judging import JUDGING, Margin


class RunRanking:
    """Several runs of one task, the longest effective length first, and each pair of them."""

    def __init__(self, ranking: Ranking, margin: Margin) -> None:
        self.ranking = ranking
        """What all of this is taken from."""
        self.margin: Margin = JUDGING["margin"].read(margin)

    @cached_property
    def ranks(self) -> pd.DataFrame:
        """A row for each run: its name, the best and the last rank that the tests allow (empty
        where its length is not ranked), and under each condition its effective length.
        """
        rows = []
        for place, ranked in enumerate(self.ranking.runs):
            best, last = self.ranking.ranks(place) or (None, None)
            for condition, estimate in ranked.estimates.items():
                adaptive = ranked.run.conditions[condition].adaptive
                found = estimate_columns(estimate, adaptive=adaptive).items()
                lengths = {name: one for name, one in found if name.startswith("effective_length")}
                ranks = {"run": ranked.name, "rank_best": best, "rank_last": last}
                rows.append({**ranks, "condition": condition.label, **lengths})
        table = pd.DataFrame(rows)
        table[["rank_best", "rank_last"]] = table[["rank_best", "rank_last"]].astype("Int64")
        return table

    @cached_property
    def table(self) -> pd.DataFrame:
        """What `bench compare -o` writes: the lines, effective lengths and areas of each pair."""
        return comparison_table([pair.comparison for pair in self.pairs], self.margin)

    @property
    def pairs(self) -> list[RunComparison]:
        """The comparison of each pair, with Holm's correction over all of them."""
        return [RunComparison(one, self.margin) for one in self.ranking.comparisons.values()]

    @cached_property
    def findings(self) -> list[Finding]:
        """What the runs show, such as which are right furthest; the most important first."""
        return in_words_of_python(of_ranking(self.ranking, self.margin))

    def to_latex(self) -> str:
        """The tables of a paper, in LaTeX with the lines of the package booktabs: the runs with
        their ranks, the factor between each two, and the lines of each pair.
        """
        return self._paper_tables("latex")

    def to_markdown(self) -> str:
        """The tables of `to_latex` in Markdown."""
        return self._paper_tables("markdown")

    def _paper_tables(self, form: str) -> str:
        from eyechart.harness.report.paper.tables import ranking_tables  # noqa: PLC0415

        tables = ranking_tables(self.ranking, self.margin)
        return "\n\n".join(table.text(form) for table in tables)

    def __repr__(self) -> str:
        return "\n".join(map(str, self.findings))

    def _repr_html_(self) -> str:
        return f"{paragraphs(self.findings)}{self.ranks.to_html(index=False, na_rep='')}"
