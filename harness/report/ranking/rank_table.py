"""A ranking as a table: one list of columns for the terminal, for papers, and for pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

from eyechart.harness.analysis.findings.at_lengths import longer_replies, suited
from eyechart.harness.analysis.findings.finding import Finding, of_several
from eyechart.harness.analysis.findings.ranks import OF_TASKS, of_standing
from eyechart.harness.analysis.length.at_length import AtLength, at_length
from eyechart.harness.analysis.length.curve import threshold_text
from eyechart.harness.analysis.length.interval import Bound, Span
from eyechart.harness.analysis.order.words import answers_of, words_of
from eyechart.harness.analysis.ranking.cost_at import CostAt, costs_at
from eyechart.harness.analysis.ranking.standing import Place
from eyechart.harness.analysis.samples.judged_run import JudgedCondition
from eyechart.harness.analysis.tables.paper_text import NOTED, length_head, noted, reached_text
from eyechart.harness.report.charts.scale import Scale
from eyechart.harness.report.page.section import Section
from eyechart.harness.settings.judging import JudgeSettings
from eyechart.harness.spec.columns import MANY_REPLIES, RECORDED

KEYS = ("rank", "who", "model")
"""The columns at the left, which say what a row is."""


class LengthEstimate(NamedTuple):
    """A length with its interval."""

    length: Bound | None
    span: Span


@dataclass(frozen=True, kw_only=True)
class RankLine:
    """One model of a ranking; empty values are not known, or of another table."""

    model: str = ""
    task: str = ""
    """Its task, in a table of tasks with one model each."""
    unit: str = ""
    """What a length counts; in such a table alone."""
    marks: Sequence[str] = ()
    """`adaptive`, and its kind where that is none of the heading."""
    vendor: str = ""
    parameters: str = ""
    """Billions of parameters."""
    open_weights: str = ""
    """`yes` or `no`; empty where it is not known."""
    ranks: str = ""
    length: LengthEstimate | None = None
    near: LengthEstimate | None = None
    """The length of near answers, see `near_length`; `None` where answers have none."""
    apart: LengthEstimate | None = None
    """See `ApartLength`."""
    answers: str = ""
    """What the answers are, which says what these two lengths mean, see `answers_of`."""
    note: str = ""
    """The note on the length; mostly empty."""
    right_at: Mapping[int, AtLength] = field(default_factory=dict)
    in_pieces: Mapping[tuple[int, int], AtLength] = field(default_factory=dict)
    """Length and number of pieces -> how surely it passes with a row of them, see `at_length`."""
    by_test: tuple[int, int, int] | None = None
    """See `Place.by_test`."""
    costs: Mapping[int, CostAt] = field(default_factory=dict)
    """Length -> dollars of a reply there; that of 0 is the mean of the run's own rows."""
    collected: str = ""
    published: str = ""
    """The figures that somebody else published."""

    @property
    def name(self) -> str:
        """`tiny, adaptive`."""
        return ", ".join(filter(None, (self.model, *self.marks)))

    @property
    def known(self) -> str:
        """`Mistral, 24 B`: what is known of the model."""
        size = f"{self.parameters} B" if self.parameters else ""
        return ", ".join(filter(None, (self.vendor, size)))

    @property
    def length_text(self) -> str:
        """`43 (38–51)`, with a sign where there is a note."""
        empty = "–" if self.note else ""
        text = empty if self.length is None else reached_text(*self.length)
        return text + NOTED * bool(self.note)

    @property
    def tested(self) -> str:
        """Of the other models: how many it is shown to be right further than, how many it cannot
        be told from, and how many are shown to be right further.
        """
        if self.by_test is None or not self.by_test[2]:
            return ""
        further, less, others = self.by_test
        return f"{further} / {others - further - less} / {less}"


class RankColumn(NamedTuple):
    """A column of a ranking."""

    name: str
    """Its class on a page."""
    head: str
    cells: Sequence[str]
    meaning: str = ""
    at: int | None = None
    """The length that it is about, where a page lets its reader choose one."""


def columns_of(
    lines: Sequence[RankLine], judging: JudgeSettings, at: Sequence[int]
) -> list[RankColumn]:
    """All columns in which a line has a value; a dash stands for no value."""
    share = threshold_text(judging.threshold)
    of_tasks = any(line.task for line in lines)
    units = [line.unit for line in lines]
    words = words_of(line.answers for line in lines)
    off = {"share": f"{100 * judging.near:g}", "threshold": share}
    days = [line.collected for line in lines]
    costs = sorted({length for line in lines for length in line.costs})
    models = [line.name for line in lines]
    columns = [
        RankColumn(
            "rank",
            "rank",
            [line.ranks for line in lines],
            "every rank that the tests of all pairs leave open, with Holm’s correction.",
        ),
        RankColumn("who", "task", [line.task for line in lines]),
        RankColumn("model" if of_tasks else "who", "model", models),
        RankColumn("known", "vendor, size", [line.known for line in lines]),
        RankColumn("published", "published", [line.published for line in lines]),
        RankColumn("unit", "unit", units if len(set(units)) > 1 else [""] * len(lines)),
        RankColumn(
            "length",
            length_head(judging.threshold),
            [line.length_text for line in lines],
            f"the length up to which a model is right in at least {share} of its replies, by the "
            "fitted curve, with a 95 % interval. < and > (an open mark) are bounds beyond the "
            "lengths that were asked.",
        ),
        RankColumn(
            "near",
            f"near ({100 * judging.near:g} %)",
            ["" if line.near is None else reached_text(*line.near) for line in lines],
            words.near_meaning.format(**off),
        ),
        RankColumn(
            "apart",
            words.apart_head,
            ["" if line.apart is None else reached_text(*line.apart) for line in lines],
            words.apart_meaning,
        ),
        *(column for length in at for column in _at(lines, share, length)),
        RankColumn(
            "tested",
            "ahead / open / behind",
            _tested(lines),
            "how many other models of the table a model is shown to be right further than, cannot "
            "be told from, and is shown to be right less far than: tests with Holm’s correction "
            "for all pairs. With thousands of pairs and few rows a model such a test shows little: "
            "open does not mean equal, also where two intervals lie apart.",
        ),
        *(
            RankColumn(
                "cost",
                f"price of {MANY_REPLIES:,}{f' at {length:,}' if length else ''}",
                [one.text() if (one := line.costs.get(length)) else "" for line in lines],
                "dollars of so many rows, asked once each, at catalog prices: a prompt grows with "
                "its row, and replies are as long as those to rows near that length. > beyond the "
                "rows that were asked, where they may be longer; < below. Without a length it is "
                "their mean.",
                length if len(costs) > 1 else None,
            )
            for length in costs
        ),
        RankColumn("when", "replies of", days if len(set(days)) > 1 else [""] * len(lines)),
    ]
    return [
        column._replace(cells=[cell or "–" for cell in column.cells])
        for column in columns
        if any(column.cells)
    ]


def _tested(lines: Sequence[RankLine]) -> list[str]:
    """What the tests of each model say; of none where most models are told from no other one."""
    told = sum(line.by_test is not None and any(line.by_test[:2]) for line in lines)
    return [line.tested if 2 * told >= len(lines) else "" for line in lines]


def _at(lines: Sequence[RankLine], share: str, length: int) -> list[RankColumn]:
    """The accuracy at a length, and how probably it reaches the threshold."""
    found = [line.right_at.get(length) for line in lines]
    return [
        RankColumn(
            "right",
            f"right at {length:,}, %",
            ["" if one is None else one.text for one in found],
            "how often a model is right there, by the fitted curve, with a 95 % interval. Beyond "
            "the lengths asked it is a bound, since the curve falls.",
            length,
        ),
        RankColumn(
            "sure",
            f"P(≥ {share} at {length:,})",
            ["" if one is None else one.reaches_text for one in found],
            f"the probability that this is {share} or more.",
            length,
        ),
    ]


@dataclass(frozen=True)
class RankTable:
    """A table of models of one task, or of all tasks that have one model each."""

    lines: Sequence[RankLine]
    judging: JudgeSettings
    at: Sequence[int] = ()
    unit: str = ""
    """What a length counts; that of a table of tasks is in its lines."""
    sections: Sequence[Section] = ()
    """That of its task, or of each line; without runs there are none."""

    @cached_property
    def columns(self) -> list[RankColumn]:
        return columns_of(self.lines, self.judging, self.at)

    @property
    def keys(self) -> int:
        """How many columns at the left say what a row is."""
        return sum(column.name in KEYS for column in self.columns)

    @property
    def rows(self) -> list[tuple[str, ...]]:
        """The cells, row by row."""
        return list(zip(*(column.cells for column in self.columns), strict=True))

    @property
    def notes(self) -> list[str]:
        """What the signs behind lengths mean."""
        return noted((line.task or line.model, line.note) for line in self.lines)

    @property
    def dear(self) -> list[Finding]:
        """The models whose reply to a shorter row may cost more."""
        return [*longer_replies({line.model: line.costs for line in self.lines}, "rows")]

    @property
    def is_of_tasks(self) -> bool:
        return any(line.task for line in self.lines)

    @property
    def suited(self) -> list[Finding]:
        """For each length of `at`, which models can be given a row of it."""
        return [
            suited(
                [(line.model, line.right_at.get(length)) for line in self.lines],
                length,
                self.judging.threshold,
                self.unit,
            )
            for length in ([] if self.is_of_tasks else self.at)
        ]

    @property
    def of_tasks(self) -> list[Finding]:
        """In which of several tasks their one model is right furthest, and in which least far. A
        length below the shortest line of a task says nothing of how far it goes, and one beyond the
        longest is not the least far.
        """
        known = {
            line.task: line.length.length
            for line in self.lines
            if line.task and line.length and line.length.length and line.length.length.sign != "<"
        }
        bounds = sorted(known.values(), key=lambda one: one.order)
        is_ordered = len(bounds) > 1 and bounds[0].sign == "=" and bounds[0] != bounds[-1]
        if not is_ordered or len({line.model for line in self.lines}) > 1:
            return []
        found = OF_TASKS(
            model=self.lines[0].model,
            threshold=self.judging.threshold,
            lengths=known,
            units={line.task: line.unit for line in self.lines},
            tasks=len(self.lines),
        )
        return [found]

    @property
    def findings(self) -> list[Finding]:
        """All that its runs show; without runs nothing."""
        found = [
            (section.name, of_standing(section.standing, self.at)) for section in self.sections
        ]
        if self.is_of_tasks:
            return of_several([("", self.of_tasks), *found])
        return [one for _, of in found for one in of]

    @property
    def scale(self) -> Scale:
        """An axis of lengths that all lines lie on."""
        return Scale.over(
            bound.length
            for line in self.lines
            if line.length is not None
            for bound in (line.length.length, *line.length.span)
            if bound is not None
        )


def first_of(at: Sequence[int]) -> int:
    """The length that a page shows first: the one in the middle; 0 of none."""
    return at[len(at) // 2] if at else 0


def rank_tables(of_tasks: Sequence[Section], at: Sequence[int] = ()) -> list[RankTable]:
    """A table for each task with several models, the longest effective length first, with the
    accuracy at each length `at`; and one for all tasks with a single model.
    """
    alone, tables = [], []
    for section in of_tasks:
        standing = section.standing
        lines = [_line(place, at) for place in standing.places]
        if len(lines) == 1:
            condition = "" if standing.default else section.of_standing
            task = ", ".join(filter(None, (section.name, condition)))
            alone.append((section, replace(lines[0], task=task, unit=section.unit)))
            continue
        places = list(zip(lines, standing.places, strict=True))
        if standing.has_ranks:
            lines = [replace(line, ranks=place.ranks_text) for line, place in places]
        else:
            lines = [replace(line, by_test=place.by_test) for line, place in places]
        tables.append(RankTable(lines, section.judging, at, section.unit, [section]))
    if alone:
        of_alone, lines = map(list, zip(*alone, strict=True))
        tables.append(RankTable(lines, of_alone[0].judging, at, "", of_alone))
    return tables


def _line(place: Place, at: Sequence[int]) -> RankLine:
    marks = {"adaptive": place.adaptive, RECORDED: place.run.manifest.recorded is not None}
    of_model = RankLine(model=place.name, marks=[mark for mark, is_so in marks.items() if is_so])
    return line_of(place.run.conditions.get(place.condition), at, of_model)


def line_of(judged: JudgedCondition | None, at: Sequence[int], of: RankLine) -> RankLine:
    """The line `of` a model with what its replies under a condition say."""
    estimate = judged.effective_length() if judged else None
    if judged is None or estimate is None:
        return replace(of, note="no scored sample")
    near, apart = judged.near_length, judged.order and judged.order.apart
    costs = costs_at(judged, at)
    if not costs and judged.cost is not None:
        costs = {0: CostAt(judged.cost.a_reply)}
    return replace(
        of,
        length=LengthEstimate(estimate.length, estimate.length_ci),
        near=LengthEstimate(near.length, near.length_ci) if near and near.length else None,
        apart=LengthEstimate(apart.length, apart.length_ci) if apart and apart.length else None,
        answers=answers_of(judged.scored) if judged.scored and (near or apart) else "",
        note=estimate.note,
        right_at={one: at_length(estimate, one) for one in at},
        costs=costs,
    )
