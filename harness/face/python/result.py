"""A run as Python shows it: tables as DataFrames, a chart, and a table in notebooks."""

from __future__ import annotations

import html
import warnings
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import pandas as pd

from eyechart.harness.analysis.comparison.comparison import Change, Comparison, compare_conditions
from eyechart.harness.analysis.comparison.comparison_table import comparison_table
from eyechart.harness.analysis.findings.finding import Finding
from eyechart.harness.analysis.findings.of_run import findings
from eyechart.harness.analysis.findings.pair import of_pair
from eyechart.harness.analysis.length.effective_length import EffectiveLength
from eyechart.harness.analysis.length.interval import span_text
from eyechart.harness.analysis.length.tokens_of_row import TokensASymbol
from eyechart.harness.analysis.order.order import Order
from eyechart.harness.analysis.samples.details import RemadePrompts, prompts_of
from eyechart.harness.analysis.samples.draws import DrawSummary
from eyechart.harness.analysis.samples.judged_run import JudgedRun, read_run
from eyechart.harness.analysis.tables.tables import (
    at_table,
    cells_table,
    diagnosis_table,
    effective_length_table,
)
from eyechart.harness.errors import UsageError
from eyechart.harness.face.listing import list_runs as listed_runs
from eyechart.harness.face.options.arguments import (
    argument,
    knows_its_arguments,
    lengths_of,
    texts_by_axis,
)
from eyechart.harness.face.options.run_options import as_warning
from eyechart.harness.face.python.findings import in_words_of_python, paragraphs
from eyechart.harness.face.python.samples_frame import samples_frame
from eyechart.harness.face.samples import SampleFilter, choose, shown_samples
from eyechart.harness.settings.checks import MAX_DRAWS, NumberRange, full_text, path, texts
from eyechart.harness.settings.figure import WIDTH
from eyechart.harness.settings.judging import (
    JUDGING,
    MARGIN,
    JudgeSettings,
    JudgingArguments,
    Margin,
)
from eyechart.harness.task.catalogue import Task

if TYPE_CHECKING:
    import altair as alt


class Run:
    """A judged run. `load_run` and `run` make it."""

    def __init__(self, judged: JudgedRun, task: Task | None = None) -> None:
        """`task` is the task that was asked, if it is at hand; otherwise it is opened again."""
        self.judged = judged
        """The judged run behind all of these values."""
        self.threshold = judged.settings.threshold
        """The accuracy from which a model is right to a length."""
        self._prompts = prompts_of(judged) if task is None else RemadePrompts(task)

    @property
    def folder(self) -> Path:
        """The run's folder."""
        return self.judged.folder

    @property
    def model(self) -> str:
        """The model, as tables name it."""
        return self.judged.manifest.model

    @property
    def task(self) -> str:
        """The name of the task."""
        return self.judged.manifest.task

    @property
    def missing(self) -> int:
        """Number of planned samples without a reply."""
        return self.judged.missing

    @cached_property
    def cells(self) -> pd.DataFrame:
        """A row for each cell: the columns of `table.csv`."""
        return cells_table(self.judged)

    @cached_property
    def diagnosis(self) -> pd.DataFrame:
        """A row for each cell: the columns of `diagnosis.csv`."""
        return diagnosis_table(self.judged)

    @cached_property
    def conditions(self) -> pd.DataFrame:
        """A row for each condition: the columns of `effective_length.csv`."""
        return effective_length_table(self.judged)

    @cached_property
    def samples(self) -> pd.DataFrame:
        """A row for each sample that has a record, see `samples_frame`; warns where prompts cannot
        be made again.
        """
        return self.choose_samples()

    def choose_samples(
        self,
        *,
        outcomes: str | Sequence[str] = (),
        lengths: int | Sequence[int] = (),
        condition: dict[str, str] | None = None,
    ) -> pd.DataFrame:
        """The rows of `samples` with these outcomes, lengths and values, as `bench samples` prints
        them. An argument that is not given sets no limit.

        Raises:
            UsageError: there is no such outcome, axis or value.
        """
        values = argument("condition", condition or {}, texts_by_axis)
        choice = SampleFilter(
            argument("outcomes", outcomes, texts),
            argument("lengths", lengths, lengths_of),
            [values] if values else (),
        )
        places = choose(self.judged, choice)
        if self._prompts.task is None:
            warnings.warn(f"no prompts: {self._prompts.why}", stacklevel=3)
        return samples_frame(
            list(shown_samples(self.judged, places, self._prompts)), self.judged.spec.axes
        )

    @cached_property
    def effective_length(self) -> dict[str, EffectiveLength | None]:
        """The label of each condition -> its effective length, with intervals; `None` where nothing
        was scored.
        """
        return {
            condition.label: judged.effective_length()
            for condition, judged in self.judged.conditions.items()
        }

    @cached_property
    def near_length(self) -> dict[str, EffectiveLength | None]:
        """The label of each condition -> the length to which answers are near, see `load_run`, as
        often as the threshold says; `None` where nothing was scored, or where answers are neither
        counts nor copies.
        """
        return {
            condition.label: judged.near_length
            for condition, judged in self.judged.conditions.items()
        }

    @property
    def order(self) -> dict[str, Order | None]:
        """The label of each condition -> whether its answers order the rows, line by line, and the
        length to which they tell rows apart; `None` where nothing was scored, or answers are
        neither counts nor copies nor choices with a control.
        """
        return {
            condition.label: judged.order for condition, judged in self.judged.conditions.items()
        }

    @cached_property
    def tokens_a_symbol(self) -> dict[str, TokensASymbol | None]:
        """The label of each condition -> by how many tokens a prompt grows with each symbol, with a
        95 % interval; `None` where it is not known.
        """
        return {
            condition.label: judged.tokens_a_symbol
            for condition, judged in self.judged.conditions.items()
        }

    @property
    def drawn(self) -> DrawSummary | None:
        """What several draws of the prompts say: pass@k, the majority vote and the variance between
        and within prompts; `None` where each prompt is asked once.
        """
        return self.judged.drawn

    def pass_at(self, k: int) -> float | None:
        """Mean probability that at least one of `k` replies to a prompt is right, over the prompts
        with at least `k` replies, without controls; `None` if there are none. Where prompts have
        different numbers of replies, `drawn.pass_at_rows` says how many prompts these are.

        Raises:
            UsageError: `k` is less than 1.
        """
        return self.judged.pass_at(argument("k", k, NumberRange(1, MAX_DRAWS)))

    def right_at(self, *lengths: int) -> pd.DataFrame:
        """A row for each condition and each of `lengths`: how often the model is right there, by
        the fitted curve, with the 95 % interval, and the probability that this reaches the
        threshold. Outside the lengths asked `bound` says that they are bounds. The last columns
        have the dollars of a reply there, where prices and tokens are known, and `>` or `<` where
        they are a bound.
        """
        return at_table(self.judged, argument("lengths", lengths, lengths_of))

    @cached_property
    def findings(self) -> list[Finding]:
        """All that the run shows, the most important first: `kind`, `level`, `facts`, `sentence`
        and `remedy` of each; `str` has the last two.
        """
        return in_words_of_python(findings(self.judged))

    @property
    def table(self) -> pd.DataFrame:
        """Accuracy: lines as rows, by nominal length, and conditions as columns."""
        cells = self.judged.manifest.cells
        names = self.judged.line_names
        long = pd.DataFrame(
            {
                "length": names,
                "condition": [cell.condition.label for cell in cells],
                "accuracy": self.judged.cells["accuracy"].to_numpy(float),
            }
        )
        by_line = sorted(zip((cell.line for cell in cells), names, strict=True))
        wide = long.pivot_table(
            index="length", columns="condition", values="accuracy", dropna=False
        )
        wide = wide.reindex(
            index=list(dict.fromkeys(name for _, name in by_line)),
            columns=[condition.label for condition in self.judged.conditions],
        )
        if all(name.isdecimal() for name in wide.index):
            wide.index = wide.index.astype(int).rename("length")
        return wide

    def plot(self) -> alt.TopLevelMixin:
        """A chart of accuracy over length with the effective lengths, for the screen; its data are
        the `datasets` of its `to_dict()`. `eyechart.figures` draws for papers.

        Raises:
            UsageError: nothing is scored yet.
        """
        from eyechart.harness.face.python.chart import accuracy_chart  # noqa: PLC0415  altair is slow to import

        if not self.judged.cells["n"].any():
            raise UsageError(f"{self.folder}: no sample is scored, so there is nothing to draw")
        return accuracy_chart(self.judged)

    def to_latex(self, *, width: float = WIDTH) -> str:
        """The table of a paper, as `bench figure table` writes it: a row for each condition with
        its effective length and its area, with 95 % intervals; in LaTeX with the lines of the
        package booktabs. Where `width` is more inches than a column has, 3.25, it also has the near
        and apart lengths of answers that have them.
        """
        return self._paper_table("latex", width)

    def to_markdown(self, *, width: float = WIDTH) -> str:
        """The table of `to_latex` in Markdown."""
        return self._paper_table("markdown", width)

    def _paper_table(self, form: str, width: float) -> str:
        from eyechart.harness.report.page.section import sections  # noqa: PLC0415
        from eyechart.harness.report.paper.tables import paper_table  # noqa: PLC0415  slow, as altair

        of_run = sections([self.judged])
        return "\n\n".join(paper_table(one, width).text(form) for one in of_run)

    def compare(
        self, axis: str, first: str, second: str, *, margin: float | str = MARGIN
    ) -> RunComparison:
        """Compares two values of an axis on the same rows; recorded replies to different rows are
        compared unpaired.

        Raises:
            CompareError: they cannot be compared.
        """
        named = argument("axis", axis, full_text)
        values = [argument("first", first, full_text), argument("second", second, full_text)]
        compared = compare_conditions(self.judged, named, values, unpaired=True)
        return RunComparison(compared, margin)

    def __repr__(self) -> str:
        seen = ", ".join(
            f"{label}: {'–' if estimate is None else estimate}"
            for label, estimate in self.effective_length.items()
        )
        return f"<Run of {self.model} on {self.task}, right to {seen}>"

    def _repr_html_(self) -> str:
        shown = self.table.map(lambda share: "–" if pd.isna(share) else f"{share:.0%}")
        shown.index = shown.index.map(str)
        estimates = list(self.effective_length.values())
        shown.loc["right to"] = ["–" if one is None else one.length_text for one in estimates]
        shown.loc["95 % interval"] = [
            "" if one is None else span_text(one.length_ci) for one in estimates
        ]
        notes = ["" if one is None else one.note for one in estimates]
        if any(notes):
            shown.loc["note"] = notes
        title = html.escape(f"{self.task}, {self.model}, accuracy by length")
        return f"<p><b>{title}</b></p>{shown.to_html()}{paragraphs(self.findings)}"


class RunComparison:
    """The comparison of two runs, or of two conditions of one run."""

    def __init__(self, comparison: Comparison, margin: Margin) -> None:
        self.comparison = comparison
        """What all of this is taken from."""
        self.margin: Margin = JUDGING["margin"].read(margin)

    @cached_property
    def table(self) -> pd.DataFrame:
        """What `bench compare -o` writes: each line, effective length and area, with tests."""
        return comparison_table([self.comparison], self.margin)

    @cached_property
    def findings(self) -> list[Finding]:
        """All that the two sides show, the most important first: who is right further, that they
        differ, that they are equivalent, or that this is open.
        """
        return in_words_of_python(of_pair(self.comparison, self.margin))

    @property
    def change(self) -> Change:
        """What the second side is, compared with the first: worse, better, equivalent or undecided.
        It is `second_is` of `table`. Differences and factors are the other way round: the first
        minus, or over, the second.
        """
        return self.comparison.change(self.margin)

    def to_latex(self) -> str:
        """The table of a paper, in LaTeX with the lines of the package booktabs: both sides on each
        line, their difference with its interval and test, and the verdict.
        """
        return self._paper_tables("latex")

    def to_markdown(self) -> str:
        """The table of `to_latex` in Markdown."""
        return self._paper_tables("markdown")

    def _paper_tables(self, form: str) -> str:
        from eyechart.harness.report.paper.tables import comparison_tables  # noqa: PLC0415

        tables = comparison_tables(self.comparison, self.margin)
        return "\n\n".join(table.text(form) for table in tables)

    def __repr__(self) -> str:
        return "\n".join(map(str, self.findings))

    def _repr_html_(self) -> str:
        return f"{paragraphs(self.findings)}{self.table.to_html(index=False, na_rep='')}"


@knows_its_arguments
def load_run(folder: str | Path, **judging: Unpack[JudgingArguments]) -> Run:
    """The run in `folder`, judged again.

    A model is right to a length where its accuracy is at least `threshold`, and an answer is
    near that is at most `near`, a share of the target, away from it.

    Prompts are made again from built-in tasks, from files or folders that `tasks` names, and
    from the files that the run kept. Code that came with the run is executed only with
    `run_kept_code`.

    Raises:
        JournalError: there is no run, or it cannot be read.
        UsageError: an argument cannot have its value.
    """
    settings = JudgeSettings.read(**judging)
    return Run(read_run(argument("folder", folder, path), as_warning, settings))


def list_runs(out: str | Path = "results") -> pd.DataFrame:
    """A row for each run under `out`; warns of runs that cannot be read."""
    columns = ["model", "task", "task_version", "settings", "recorded"]
    columns += ["answered", "planned", "updated"]
    rows = [run.row() for run in listed_runs(argument("out", out, path), as_warning)]
    return pd.DataFrame(rows, columns=[*columns, "folder"])
