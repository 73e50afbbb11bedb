"""Tables for papers, in LaTeX or in Markdown: numbers with their intervals and units."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from eyechart.harness.analysis.comparison.comparison import Comparison
from eyechart.harness.analysis.comparison.family import Ranking
from eyechart.harness.analysis.findings.finding import Finding, below_a_table, lines_of
from eyechart.harness.analysis.findings.of_run import findings
from eyechart.harness.analysis.findings.pair import of_pair
from eyechart.harness.analysis.findings.ranks import of_ranking, of_standing
from eyechart.harness.analysis.length.curve import threshold_text
from eyechart.harness.analysis.length.effective_length import EffectiveLength
from eyechart.harness.analysis.samples.judged_run import JudgedCondition
from eyechart.harness.analysis.tables.cells import escaped, markdown_text
from eyechart.harness.analysis.tables.paper_text import (
    length_cell,
    notes,
)
from eyechart.harness.report.page.section import Section, key_of
from eyechart.harness.report.paper.lengths import (
    BESIDE,
    Head,
    beside_heads,
    lengths_of,
    note_on_heads,
)
from eyechart.harness.report.ranking.comparison_columns import (
    ComparisonColumn,
    columns_of_lines,
    columns_of_pairs,
    columns_of_runs,
    columns_of_totals,
    factor_notes,
    pairs_title,
    run_notes,
)
from eyechart.harness.report.ranking.rank_table import rank_tables
from eyechart.harness.settings.figure import WIDTH
from eyechart.harness.settings.judging import Margin
from eyechart.harness.settings.spelling import as_option
from eyechart.harness.spec import varied_axes
from eyechart.providers.naming import spelled

_LATEX = str.maketrans(
    {
        **{sign: f"\\{sign}" for sign in "&%$#_{}"},
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": "$<$",
        ">": "$>$",
        "|": r"\textbar{}",
        "–": "--",
        "−": "$-$",
        "†": r"$^{\dagger}$",
        '"': r"\textquotedbl{}",
    }
)
"""Characters that mean something in LaTeX, or are not in its usual fonts -> how to write them."""
_MINUS = re.compile(r"(?<![\w-])-(?=\d)")
_DASH = "–"
_MOST_LINES = 4
"""Sets of lines that a note names."""
_NEEDS, _CAPTION = "% needs \\usepackage{booktabs}", "Effective lengths at an accuracy of"
BEGINNINGS = {"tex": _NEEDS.encode(), "md": _CAPTION.encode()}
"""Ending of a file of `paper_table` -> what is at its beginning."""


@dataclass(frozen=True, slots=True)
class PaperTable:
    """A table as texts, which `latex` and `markdown` escape."""

    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    keys: int
    """Columns at the left that say what a row is."""
    last: int = 0
    """Rows at the end that stand below a line of their own."""
    notes: tuple[str, ...] = ()
    words: int = 0
    """Columns at the right that are no numbers, and so stand at the left like the keys."""

    def _aligned(self, left: str, right: str) -> list[str]:
        """For each column, `left` or `right`."""
        numbers = len(self.header) - self.keys - self.words
        return [left] * self.keys + [right] * numbers + [left] * self.words

    def latex(self) -> str:
        """A `table` with the lines of the package booktabs."""
        lines = [_latex_row(row) for row in self.rows]
        if self.last:
            lines.insert(len(lines) - self.last, r"\midrule")
        body = [r"\toprule", _latex_row(self.header), r"\midrule", *lines, r"\bottomrule"]
        return "\n".join(
            [
                _NEEDS,
                r"\begin{table}",
                r"  \centering",
                rf"  \caption{{{latex_text(self.caption)}}}",
                rf"  \begin{{tabular}}{{{''.join(self._aligned('l', 'r'))}}}",
                *(f"    {line}" for line in body),
                r"  \end{tabular}",
                *(rf"  \par\footnotesize {latex_text(note)}" for note in self.notes),
                r"\end{table}",
            ]
        )

    def markdown(self) -> str:
        """A table of Markdown, with its caption above and its notes below."""
        parts = [
            [markdown_text(self.caption)],
            [
                _markdown_row(self.header),
                f"| {' | '.join(self._aligned('---', '---:'))} |",
                *map(_markdown_row, self.rows),
            ],
            *([markdown_text(note)] for note in self.notes),
        ]
        return "\n\n".join("\n".join(lines) for lines in parts)

    def text(self, form: str) -> str:
        """The table in one of `TABLE_FORMS`."""
        return self.latex() if form == "latex" else self.markdown()


def notes_of(found: Sequence[Finding]) -> tuple[str, ...]:
    """The findings below a table: those below one of the terminal, and, since a reader of a paper
    cannot ask for more, all warnings. Further results and notes are left out without a line that
    counts them: `bench score --all-findings` prints them for the author.
    """
    shown = below_a_table(found)[0]
    lines = [line for line, one in lines_of(found) if line in shown or one.level == "warning"]
    return tuple(spelled(line, as_option) for line in dict.fromkeys(lines))


def latex_text(text: str) -> str:
    """`text` for LaTeX: as it is read, with all of LaTeX's own signs escaped."""
    return _MINUS.sub("−", escaped(text)).translate(_LATEX)


def _latex_row(cells: Sequence[str]) -> str:
    return " & ".join(map(latex_text, cells)) + r" \\"


def _markdown_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(map(markdown_text, cells))} |"


def paper_table(section: Section, width: float = WIDTH) -> PaperTable:
    """The effective lengths and areas of the runs of a task: a row for each model and condition, of
    several runs in the order of the standing. Where `width` is more inches than a column has, the
    near and apart lengths of answers that have them stand between. The notes have what the run
    shows, of several runs their standing and the warnings of each: a row says the rest.
    """
    several = len(section.runs) > 1
    series = section.ranked_series if several else section.series
    estimates = [section.estimates.get(key_of(one)) for one in series]
    axes = section.varied
    keys = [*(["model"] if several or not axes else []), *axes]
    of = "" if "model" in keys else f" of {section.runs[0].name}"
    found = of_standing(section.standing) if several else []
    for details in section.runs:
        own = findings(details.run, name=details.name)
        found += [one for one in own if one.level == "warning"] if several else own
    names = [one.named(axes) if several else one.label(axes) for one in series]
    lengths = [lengths_of(section, one) for one in series]
    beside = [one for one in BESIDE if width > WIDTH and any(one in own for own in lengths)]
    heads = beside_heads(series, section.judging)
    areas = [_area(one.judged, estimate) for one, estimate in zip(series, estimates, strict=True)]
    of_areas = [one for one, area in zip(series, areas, strict=True) if area != _DASH]
    return PaperTable(
        f"{_CAPTION} {threshold_text(section.judging.threshold)}, and areas,{of} "
        f"on {section.name}, with 95 % intervals.",
        (*keys, f"right to ({section.unit})", *(heads[one].text for one in beside), "area"),
        tuple(
            (
                *([one.run_details.name] if "model" in keys else []),
                *(one.condition[axis] for axis in axes),
                length_cell(estimate),
                *(own[kind].text if kind in own else _DASH for kind in beside),
                area,
            )
            for one, estimate, own, area in zip(series, estimates, lengths, areas, strict=True)
        ),
        len(keys),
        notes=(
            *note_on_heads(section.judging.threshold, [heads[one] for one in beside]),
            *notes(dict(zip(names, estimates, strict=True))),
            *_note_on_areas([one.judged for one in of_areas], section.unit),
            *notes_of(found),
        ),
    )


def comparison_tables(comparison: Comparison, margin: Margin) -> Iterator[PaperTable]:
    """For each condition both sides on each line, their difference with its test, and both
    effective lengths and areas; the verdict is a note.
    """
    told = notes_of(of_pair(comparison, margin))
    for compared in comparison.conditions:
        of = ", ".join(f"{axis} {value}" for axis, value in compared.condition.items())
        test = "McNemar's" if compared.is_paired else "Fisher's"
        columns = columns_of_lines(compared, (comparison.first, comparison.second))
        totals = {one.name: one.cells for one in columns_of_totals(comparison, compared)}
        nothing = [""] * len(totals["row"])
        cells = [(*one.cells, *totals.get(one.name, nothing)) for one in columns]
        yield PaperTable(
            f"Accuracy of {comparison.first} and {comparison.second} on {comparison.task}"
            f"{f' with {of}' if of else ''}, with 95 % intervals; p is that of {test} exact test "
            "with Holm's correction.",
            tuple(column.head for column in columns),
            tuple(zip(*cells, strict=True)),
            1,
            last=len(nothing) if compared.paired.lengths else 0,
            notes=(
                *factor_notes([compared.length]),
                *(told if compared is comparison.conditions[-1] else ()),
            ),
        )


def ranking_tables(ranking: Ranking, margin: Margin) -> Iterator[PaperTable]:
    """The runs by effective length with the ranks that the tests allow, each pair of them, and then
    the lines of each pair, see `comparison_tables`.
    """
    names = [one.name for one in ranking.runs]
    comparisons = list(ranking.comparisons.values())
    varied = varied_axes(ranking.conditions)
    fixed = ", ".join(
        f"{axis} {value}" for axis, value in ranking.conditions[0].items() if axis not in varied
    )
    yield _of_columns(
        f"{len(names)} runs on {comparisons[0].task} by effective length"
        f"{f' with {fixed}' if fixed else ''}, in {ranking.unit}, with 95 % intervals and the "
        "ranks that the tests allow.",
        [*columns_of_runs(ranking, margin, names)],
        1,
        (*run_notes(ranking, margin, names), *notes_of(of_ranking(ranking, margin))),
    )
    title = pairs_title(ranking)
    notes_on_factors = factor_notes(one.length for one in comparisons)
    yield _of_columns(
        f"{title[:1].upper()}{title[1:]}.", columns_of_pairs(ranking, names), 2, notes_on_factors
    )
    for comparison in comparisons:
        yield from comparison_tables(comparison, margin)


def _of_columns(
    caption: str, columns: Sequence[ComparisonColumn], keys: int, notes: Sequence[str]
) -> PaperTable:
    """A table whose last column is one of words."""
    heads = tuple(column.head.replace("\n", " ") for column in columns)
    rows = tuple(zip(*(column.cells for column in columns), strict=True))
    return PaperTable(caption, heads, rows, keys, notes=tuple(notes), words=1)


def standing_tables(found: Sequence[Section], at: Sequence[int] = ()) -> Iterator[PaperTable]:
    """The models of each task by effective length, as `bench leaderboard` prints them, with the
    accuracy at each length `at`; tasks with a single model are in one table.
    """
    for table in rank_tables(found, at):
        section = table.sections[0]
        of = {one.unit for one in table.sections}
        caption = f"{_CAPTION} {threshold_text(table.judging.threshold)}"
        if not table.is_of_tasks:
            caption += f" on {section.name}"
            caption += f" with {section.of_standing}" if section.of_standing else ""
        caption += f", in {of.pop()}" if len(of) == 1 else ""
        heads = tuple(column.head for column in table.columns)
        beside = [Head(one.head, one.meaning) for one in table.columns if one.name in BESIDE]
        yield PaperTable(
            f"{caption}, with 95 % intervals.",
            heads,
            tuple(table.rows),
            table.keys,
            notes=(
                *note_on_heads(table.judging.threshold, beside),
                *table.notes,
                *notes_of(table.findings),
            ),
        )


def _area(judged: JudgedCondition, estimate: EffectiveLength | None) -> str:
    if estimate is None or judged.adaptive:
        return _DASH
    low, high = estimate.area_ci
    return f"{estimate.area:.2f} ({low:.2f}–{high:.2f})"


def _note_on_areas(shown: Sequence[JudgedCondition], unit: str) -> Iterator[str]:
    """That areas are over different lines, and from which length to which; nothing where all are
    over the same.
    """
    lines = {tuple(line.length for line in one.curve.lines) for one in shown if one.curve}
    if len(lines) > 1:
        each = dict.fromkeys(
            f"{len(lengths)} lines from {lengths[0]:,} to {lengths[-1]:,}"
            for lengths in sorted(lines)
        )
        which = f": {', '.join(each)} {unit}" if len(each) <= _MOST_LINES else ""
        yield f"The areas are over different lines, and so cannot be compared{which}."
