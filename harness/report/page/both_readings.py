"""What a model knows and does not say: both readings of one model on the same rows, as a chart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from eyechart.harness.analysis.samples.reply_and_choice import ReplyAndChoice, known
from eyechart.harness.report.charts import charts
from eyechart.harness.report.charts.effects import Gap
from eyechart.harness.report.charts.looks import KNOWN_COLOURS
from eyechart.harness.report.charts.panels import Figure, Panel, Rows
from eyechart.harness.report.page.page_tables import ReportTable, Value, file_name, report_table
from eyechart.harness.report.page.section import Section


def known_figures(section: Section, gaps: Sequence[Gap]) -> list[Figure]:
    """A panel for each model that a report has both readings of; empty without any."""
    panels = tuple(
        Panel(model, "", {"known": _bars(rows), "guesses": _guesses(rows)})
        for model, rows in _found(gaps)
    )
    if not panels:
        return []
    lengths = sorted({int(bar["length"]) for panel in panels for bar in panel.data["known"]})
    spec = charts.known_chart(lengths, section.over)
    return [
        Figure(
            "known",
            "Known and not said",
            spec,
            panels,
            lengths=False,
            hint=(
                "Replies and likelihoods of one model on the same rows: which of them are right. "
                "Ticks: where the second part of a bar would end if the likelihood guessed."
            ),
            swatches=KNOWN_COLOURS,
            least=230,
        )
    ]


def known_table(section: Section, gaps: Sequence[Gap]) -> ReportTable:
    """What models know and do not say: a row for each line of a run with replies and with
    likelihoods.
    """
    rows: list[dict[str, Value]] = [
        {
            "model": model,
            "length": row.length,
            **_counts(row),
            "guesses": round(row.guesses, 1),
            "p": f"{row.p:.2g}",
        }
        for model, found in _found(gaps)
        for row in found
    ]
    return report_table(file_name(section, "known"), f"Known and not said: {section.name}", rows)


def _found(gaps: Sequence[Gap]) -> Iterator[tuple[str, list[ReplyAndChoice]]]:
    for gap in gaps:
        if rows := known(gap.comparison):
            yield gap.comparison.readings_of, rows


def _counts(row: ReplyAndChoice) -> dict[str, int]:
    counts = row.both, row.only_known, row.only_said, row.neither
    return dict(zip(KNOWN_COLOURS, counts, strict=True))


def _bars(rows: Sequence[ReplyAndChoice]) -> Rows:
    return [
        {
            "length": row.length,
            "reading": name,
            "rank": rank,
            "n": count,
            "share": count / sum(_counts(row).values()),
        }
        for row in rows
        for rank, (name, count) in enumerate(_counts(row).items())
        if count
    ]


def _guesses(rows: Sequence[ReplyAndChoice]) -> Rows:
    """Where the bar of what is known alone would end if it were guessed."""
    return [
        {
            "length": row.length,
            "share": (row.both + row.guesses) / sum(_counts(row).values()),
            "n": round(row.guesses, 1),
        }
        for row in rows
    ]
