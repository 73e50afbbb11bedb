"""Tables for papers, in LaTeX or in Markdown: numbers with their intervals and units."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from eyechart.harness.analysis.comparison.beside import beside_rows
from eyechart.harness.analysis.comparison.comparison import Comparison
from eyechart.harness.analysis.comparison.comparison_cells import (
    accuracy_cell,
    area_rows,
    factor_cell,
    points_cell,
)
from eyechart.harness.analysis.comparison.comparison_text import p_text
from eyechart.harness.analysis.findings.finding import Finding, below_a_table
from eyechart.harness.analysis.findings.of_run import findings
from eyechart.harness.analysis.findings.pair import of_pair
from eyechart.harness.analysis.findings.ranks import of_standing
from eyechart.harness.analysis.length.bands import Shown, shown_lines
from eyechart.harness.analysis.length.curve import threshold_text
from eyechart.harness.analysis.length.effective_length import EffectiveLength
from eyechart.harness.analysis.samples.details import RunDetails
from eyechart.harness.analysis.samples.judged_run import JudgedCondition
from eyechart.harness.analysis.tables.cells import escaped, markdown_text
from eyechart.harness.analysis.tables.paper_text import (
    NOTED,
    interval_text,
    length_cell,
    length_head,
    notes,
)
from eyechart.harness.report.page.section import Section, key_of
from eyechart.harness.report.ranking.rank_table import rank_tables
from eyechart.harness.settings.spelling import as_option
from eyechart.harness.spec import varied_axes
from eyechart.harness.spec.unit import counted
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
                "% needs \\usepackage{booktabs}",
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
    """The findings below a table: those that stand below one of the terminal."""
    return tuple(spelled(line, as_option) for line in below_a_table(found)[0])


def latex_text(text: str) -> str:
    """`text` for LaTeX: as it is read, with all of LaTeX's own signs escaped."""
    return _MINUS.sub("−", escaped(text)).translate(_LATEX)


def _latex_row(cells: Sequence[str]) -> str:
    return " & ".join(map(latex_text, cells)) + r" \\"


def _markdown_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(map(markdown_text, cells))} |"


def paper_tables(section: Section) -> Iterator[PaperTable]:
    """The effective lengths of several runs in one table, and the accuracies of each."""
    if len(section.runs) > 1:
        yield _lengths(section)
    for details in section.runs:
        judged = list(details.run.conditions.values())
        if judged:
            yield _accuracies(section, details, judged)


def comparison_tables(comparison: Comparison, margin: float) -> Iterator[PaperTable]:
    """For each condition both sides on each line, their difference with its test, and both
    effective lengths and areas; the verdict is a note.
    """
    told = notes_of(of_pair(comparison, margin))
    for compared in comparison.conditions:
        of = ", ".join(f"{axis} {value}" for axis, value in compared.condition.items())
        test = "McNemar's" if compared.is_paired else "Fisher's"
        lines = [
            (
                str(row.line),
                accuracy_cell(row.first, row.n),
                accuracy_cell(row.second, row.scored_second),
                points_cell(row),
                p_text(p),
            )
            for row, p in compared.lines
        ]
        length = compared.length
        seen = length_head(comparison.threshold)
        ends = [(seen, *map(length_cell, compared.estimates), factor_cell(length), "")]
        others = *beside_rows(compared, comparison.threshold), *area_rows(compared.area)
        ends += [(*row, "") for row in others]
        yield PaperTable(
            f"Accuracy in % of {comparison.first} and {comparison.second} on {comparison.task}"
            f"{f' with {of}' if of else ''}, and the difference in points, with 95 % intervals; "
            f"p is that of {test} exact test with Holm's correction.",
            ("length", comparison.first, comparison.second, "difference", "p"),
            (*lines, *ends),
            1,
            last=len(ends) if lines else 0,
            notes=told if compared is comparison.conditions[-1] else (),
        )


def standing_tables(found: Sequence[Section], at: Sequence[int] = ()) -> Iterator[PaperTable]:
    """The models of each task by effective length, as `bench leaderboard` prints them, with the
    accuracy at each length `at`; tasks with a single model are in one table.
    """
    for table in rank_tables(found, at):
        section, told = table.sections[0], table.notes
        of = {one.unit for one in table.sections}
        caption = f"Effective lengths at an accuracy of {threshold_text(table.threshold)}"
        if not table.is_of_tasks:
            caption += f" on {section.name}"
            caption += f" with {section.of_standing}" if section.of_standing else ""
            told = [*told, *notes_of(of_standing(section.standing, table.threshold))]
        caption += f", in {of.pop()}" if len(of) == 1 else ""
        heads = tuple(column.head for column in table.columns)
        yield PaperTable(
            f"{caption}, with 95 % intervals.",
            heads,
            tuple(table.rows),
            table.keys,
            notes=tuple(told),
        )


def _lengths(section: Section) -> PaperTable:
    """A row for each model and condition, in the order of the standing."""
    series = section.ranked_series
    estimates = [section.estimates.get(key_of(one)) for one in series]
    axes = section.varied
    return PaperTable(
        f"Effective lengths at an accuracy of {threshold_text(section.threshold)}, "
        f"and areas, on {section.name}, with 95 % intervals.",
        ("model", *axes, f"effective length ({section.unit})", "area"),
        tuple(
            (
                one.run_details.name,
                *(one.condition[axis] for axis in axes),
                length_cell(estimate),
                _area(one.judged, estimate),
            )
            for one, estimate in zip(series, estimates, strict=True)
        ),
        1 + len(axes),
        notes=tuple(notes(dict(zip((one.named(axes) for one in series), estimates, strict=True)))),
    )


def _area(judged: JudgedCondition, estimate: EffectiveLength | None) -> str:
    if estimate is None or judged.adaptive:
        return _DASH
    low, high = estimate.area_ci
    return f"{estimate.area:.2f} ({low:.2f}–{high:.2f})"


def _accuracies(
    section: Section, details: RunDetails, judged: Sequence[JudgedCondition]
) -> PaperTable:
    """Lengths as rows and conditions as columns; the last row has the effective lengths."""
    by_line = shown_lines(judged)
    lines = sorted({line for of_part in by_line for line in of_part})
    estimates = [part.effective_length(section.threshold) for part in judged]
    axes = varied_axes([part.condition for part in judged])
    headers = [", ".join(part.condition[axis] for axis in axes) or "accuracy, %" for part in judged]
    unit = partial(_with_unit, unit=section.unit)
    seen = (length_head(section.threshold), *map(unit, estimates))
    of_axes = f" by {', '.join(axes)}" if axes else ""
    return PaperTable(
        f"Accuracy in % of {details.name} on {section.name}{of_axes}, and its effective length, "
        "with 95 % intervals.",
        (section.over, *headers),
        (
            *(
                (str(line), *(_accuracy(of_part.get(line)) for of_part in by_line))
                for line in lines
            ),
            seen,
        ),
        1,
        last=1,
        notes=(
            *notes(dict(zip(headers, estimates, strict=True))),
            *notes_of(findings(details.run, section.threshold, name=details.name)),
        ),
    )


def _with_unit(estimate: EffectiveLength | None, unit: str) -> str:
    """`38 (27–42) symbols`, `6 (5–20) symbols†`."""
    text = length_cell(estimate)
    if estimate is None or estimate.length is None:
        return text
    number = text.removesuffix(NOTED)
    said = counted(number, unit, is_one=estimate.length.length == 1)
    return said + text.removeprefix(number)


def _accuracy(cell: Shown | None) -> str:
    """`95 (76–99)`; a dash where nothing was scored."""
    if cell is None or not cell["n"]:
        return _DASH
    return interval_text(cell["accuracy"], cell["ci_low"], cell["ci_high"])
