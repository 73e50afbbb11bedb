"""The result of a study for each variant and condition, from the rows of `lab.csv` alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import takewhile
from typing import Literal, TypeAlias

from eyechart.harness.analysis import SIGNIFICANT, Bound, Span, holm, span_text
from eyechart.harness.settings.judging import THRESHOLD
from eyechart_lab.variants.asking import LabCell
from eyechart_lab.variants.results.seeds import (
    SeedLength,
    SeedValue,
    interval,
    length_interval,
    mean,
    mean_length,
    permutation_p,
    share_of,
    smallest_p,
)
from eyechart_lab.variants.training.order import TRAINED

LEARNT = 0.95
"""A model has learned a task if it is right so often at the lengths of its training."""
RowFilter: TypeAlias = tuple[str, str]
"""A task and the label of a condition."""


@dataclass(frozen=True)
class SeedAnswers:
    """What the model of one seed answered under one condition."""

    cells: Sequence[LabCell]

    @property
    def is_trained(self) -> bool:
        """Whether its training came to its end."""
        return self.cells[0].training == TRAINED

    @cached_property
    def within(self) -> SeedValue | None:
        """Share of right answers at the trained lengths; `None` if none was scored there."""
        lines = [one for one in self.asked if is_within(one)]
        return _share(sum(one.correct for one in lines), sum(one.n for one in lines))

    @property
    def accuracy(self) -> float | None:
        """The value of `within`."""
        return None if self.within is None else self.within.value

    @cached_property
    def beyond(self) -> SeedValue | None:
        """Share of right answers in lines of only longer rows, among the rows whose answer the
        training had; `None` if there is none.
        """
        lines = [(one.correct, known_rows(one)) for one in self.asked if is_beyond(one)]
        return _share(sum(min(line) for line in lines), sum(known for _, known in lines))

    @property
    def has_learnt(self) -> bool:
        """Whether it is right often enough at the trained lengths."""
        return self.accuracy is not None and self.accuracy >= LEARNT

    @property
    def asked(self) -> Sequence[LabCell]:
        """The lines that it was asked; none where its training diverged."""
        return [one for one in self.cells if one.length is not None]

    def seen(self, shortest: float, longest: float, limit: float) -> SeedLength | None:
        """The length to which this model sees, among lines from `shortest` to `longest`. A model
        that is right often enough at no line does not see the shortest one.

        `limit` is the end of the lines that tell, see `Result.limit`. Where it is not the longest
        line, a model that is right often enough at all of them sees to there at least: what ends
        its curve farther on may be the answers.

        `None` where no line tells, or the length is not known although some line is right often
        enough: no single threshold describes the curve, or the length lies above a line that is not
        the longest, since something else than sight, such as the form of replies, ends the curve
        there.
        """
        one = self.cells[0]
        if limit < shortest <= longest:
            return None
        if limit < longest:
            told = [cell for cell in self.asked if (cell.length_high or 0) <= limit]
            if all((cell.accuracy or 0) >= THRESHOLD for cell in told):
                least = min(one.effective_length_ci_low or shortest, limit)
                return SeedLength(Bound(">", limit), (Bound("=", least), Bound("=", limit)))
        if one.effective_length is None:
            below = Bound("<", shortest)
            is_right = any((cell.accuracy or 0) >= THRESHOLD for cell in self.asked)
            return None if is_right else SeedLength(below, (below, below))
        sign = _SIGNS[one.effective_length_bound]
        if sign == ">" and one.effective_length < longest:
            return None
        length = Bound(sign, min(one.effective_length, limit))
        low, high = one.effective_length_ci_low, one.effective_length_ci_high
        span = (Bound("=", min(low or shortest, limit)), Bound("=", min(high or longest, limit)))
        return SeedLength(length, span)


def is_within(cell: LabCell) -> bool:
    """Whether all rows of a line that was asked are of trained lengths."""
    return cell.length_high is not None and cell.length_high <= cell.trained_to


def is_beyond(cell: LabCell) -> bool:
    """Whether all rows of a line that was asked are longer than those of the training."""
    return cell.length_low is not None and cell.length_low > cell.trained_to


def allows(cell: LabCell) -> bool:
    """Whether so many rows of a line have an answer of the training that a model can reach the
    threshold without any other.
    """
    return cell.ceiling is None or cell.ceiling >= THRESHOLD


def known_rows(cell: LabCell) -> int:
    """How many scored rows of a line have an answer that the training had."""
    return cell.n if cell.ceiling is None else round(cell.ceiling * cell.n)


def _share(correct: int, n: int) -> SeedValue | None:
    """A share of right answers; `None` if none was scored."""
    return share_of(correct, n) if n else None


_SIGNS: Mapping[str, Literal["<", "=", ">"]] = {"": "=", "<": "<", ">": ">"}
Verdict: TypeAlias = Literal[
    "",
    "better",
    "worse",
    "no difference",
    "too few seeds",
    "not trained",
    "not known",
    "no reference",
    "answers end",
]
"""`not trained`: the training of every model diverged; `not known`: what is compared is known of no
model; `no reference`: it is known of no model of the reference; `answers end`: all models of both
are right to where the answers of the training end. The reference itself has none."""


@dataclass(frozen=True)
class VariantComparison:
    """The models of a variant and those of the reference."""

    p: float | None = None
    """The p-value after Holm's correction over the variants; `None` for the reference, and where
    there is nothing to compare."""
    smallest_p: float | None = None
    """The smallest one that so many seeds can give: Holm's correction of the smallest p-values of
    all variants.
    """
    verdict: Verdict = ""


@dataclass(frozen=True)
class Result:
    """What all seeds of a variant say under one condition."""

    variant: str
    task: str
    condition: str
    seeds: Sequence[SeedAnswers]
    shortest: int
    longest: int
    """The shortest and the longest line that any model was asked under the condition; 0 where none
    was asked."""
    limit: int
    """The longest row of the lines that tell how far models are right: those from the shortest on
    that `allows`, up to the first that does not. 0 without any."""
    by_length: VariantComparison = VariantComparison()
    """How far the models are right, against the reference."""
    by_within: VariantComparison = VariantComparison()
    """Their shares of right answers at the trained lengths, against the reference."""
    by_beyond: VariantComparison = VariantComparison()
    """Their shares of right answers to rows longer than trained, against the reference."""

    @property
    def where(self) -> RowFilter:
        """The task and the condition."""
        return self.task, self.condition

    @property
    def read(self) -> str:
        """How the models were asked, see `LabSpec.read`."""
        return self.seeds[0].cells[0].read

    @property
    def trained_to(self) -> int:
        """The longest row of the training."""
        return self.seeds[0].cells[0].trained_to

    @cached_property
    def asked_within(self) -> tuple[int, int] | None:
        """The shortest and the longest row of the lines of trained lengths; `None` without any."""
        lines = [cell for one in self.seeds for cell in one.asked if is_within(cell)]
        if not lines:
            return None
        return (
            min(cell.length_low or 0 for cell in lines),
            max(cell.length_high or 0 for cell in lines),
        )

    @property
    def learnt(self) -> int:
        """Seeds whose model has learned the task."""
        return sum(one.has_learnt for one in self.seeds)

    @property
    def trained(self) -> Sequence[SeedAnswers]:
        """The seeds whose training came to its end."""
        return [one for one in self.seeds if one.is_trained]

    @property
    def diverged(self) -> int:
        """Seeds whose training diverged."""
        return len(self.seeds) - len(self.trained)

    @cached_property
    def seen(self) -> list[SeedLength]:
        """How far each trained model is right whose length is known."""
        found = [one.seen(self.shortest, self.longest, self.limit) for one in self.trained]
        return [one for one in found if one is not None]

    @property
    def unknown(self) -> int:
        """Trained models whose length is not known."""
        return len(self.trained) - len(self.seen)

    @property
    def length(self) -> Bound | None:
        """The geometric mean of the known lengths, see `mean_length`."""
        return mean_length(self.seen, self.shortest, self.limit)

    @property
    def span(self) -> Span | None:
        """The 95 % interval of `length`; `None` where `length_interval` gives none."""
        return length_interval(self.seen, self.shortest, self.limit)

    @property
    def answers_end(self) -> bool:
        """Whether the answers of the training end before the lines that were asked."""
        return self.limit < self.longest

    @property
    def is_open(self) -> bool:
        """Whether every model of known length is right to where the answers of the training end."""
        signs = {one.length.sign for one in self.seen}
        return self.answers_end and signs == {">"}

    @cached_property
    def lines(self) -> list[LabCell]:
        """A row of each line that was asked, the shortest first."""
        cells = {cell.length or 0: cell for one in self.seeds for cell in one.asked}
        return [cells[length] for length in sorted(cells)]

    @cached_property
    def within(self) -> list[SeedValue]:
        """The share of right answers at the trained lengths of each trained model."""
        return [one.within for one in self.trained if one.within is not None]

    @cached_property
    def beyond(self) -> list[SeedValue]:
        """The share of right answers to longer rows whose answer the training had, of each trained
        model that was asked some.
        """
        return [one.beyond for one in self.trained if one.beyond is not None]

    def curve(self) -> Iterable[tuple[int, float, float, float]]:
        """Of each line: its length, and the mean, least and highest accuracy of the seeds."""
        by_length: dict[int, list[float]] = {}
        for one in self.seeds:
            for cell in one.asked:
                if cell.accuracy is not None and cell.length is not None:
                    by_length.setdefault(cell.length, []).append(cell.accuracy)
        for length, found in sorted(by_length.items()):
            yield length, sum(found) / len(found), min(found), max(found)


def share_text(models: Sequence[SeedValue]) -> str:
    """The mean share of right answers of models, for a table; empty where there is none."""
    return f"{100 * mean(models):.0f} %" if models else ""


def share_span(models: Sequence[SeedValue]) -> tuple[float, float] | None:
    """Its 95 % interval over rows and seeds; `None` with fewer than three models."""
    found = interval(models)
    return None if found is None else (max(0.0, found[0]), min(1.0, found[1]))


def share_span_text(models: Sequence[SeedValue]) -> str:
    """The interval, for a table: `12 to 20 %`; empty where there is none."""
    span = share_span(models)
    return "" if span is None else f"{100 * span[0]:.0f} to {100 * span[1]:.0f} %"


def p_text(p: float | None) -> str:
    """A p-value, for tables and sentences; empty where there is none."""
    return "" if p is None else f"{p:.2g}"


def interval_text(one: Result) -> str:
    """The interval of the length as a table shows it: `17 to 24`; empty if it is not known."""
    return "" if one.span is None else span_text(one.span)


def length_text(one: Result) -> str:
    """How far a variant is right, for a table: `20`, `< 5`, `not known`, or `not trained`."""
    if one.length is None:
        return "not known" if one.trained else "not trained"
    return str(one.length)


def results_of(cells: Sequence[LabCell], reference: str) -> list[Result]:
    """A result for each condition and variant, in the order of the rows, against `reference`."""
    grouped: dict[RowFilter, dict[str, dict[int, list[LabCell]]]] = defaultdict(
        lambda: defaultdict(lambda: defaultdict(list))
    )
    for cell in cells:
        grouped[cell.task, cell.condition][cell.variant][cell.seed].append(cell)
    found: list[Result] = []
    for where, variants in grouped.items():
        lines = [cell for cell in cells if (cell.task, cell.condition) == where and cell.length]
        asked = [cell.length or 0 for cell in lines] or [0]
        ends = min(asked), max(asked), min(max(asked), _limit(lines))
        results = [
            Result(name, *where, [SeedAnswers(one) for one in seeds.values()], *ends)
            for name, seeds in variants.items()
        ]
        found += _compared(results, reference)
    return found


def _limit(lines: Sequence[LabCell]) -> int:
    """See `Result.limit`."""
    by_length = sorted(lines, key=lambda cell: cell.length or 0)
    return max((cell.length_high or 0 for cell in takewhile(allows, by_length)), default=0)


def _compared(results: Sequence[Result], reference: str) -> list[Result]:
    """The results of one condition, compared with the reference."""
    by_length, by_within, by_beyond = (
        _comparisons(results, of, reference)
        for of in (
            [[seen.log for seen in one.seen] for one in results],
            [one.within for one in results],
            [one.beyond for one in results],
        )
    )
    against = next((one for one in results if one.variant == reference), None)
    if against and against.is_open:
        by_length = [
            VariantComparison(verdict="answers end") if one.is_open and of.p is not None else of
            for one, of in zip(results, by_length, strict=True)
        ]
    return [
        replace(one, by_length=length, by_within=within, by_beyond=beyond)
        for one, length, within, beyond in zip(
            results, by_length, by_within, by_beyond, strict=True
        )
    ]


def _comparisons(
    results: Sequence[Result], values: Sequence[Sequence[SeedValue]], reference: str
) -> list[VariantComparison]:
    """The comparison of each variant, whose models have these values, with the reference."""
    found = [
        VariantComparison(verdict="" if of else "not known" if one.trained else "not trained")
        for one, of in zip(results, values, strict=True)
    ]
    at = next((at for at, one in enumerate(results) if one.variant == reference), None)
    if at is None:
        return found
    against = values[at]
    others = [other for other, of in enumerate(values) if other != at and of]
    if not against:
        for other in others:
            found[other] = VariantComparison(verdict="no reference")
        return found
    corrected = holm([permutation_p(values[other], against) for other in others])
    smallest = holm([smallest_p(len(values[other]), len(against)) for other in others])
    for other, p, least in zip(others, corrected, smallest, strict=True):
        found[other] = VariantComparison(p, least, _verdict(values[other], against, p, least))
    return found


def _verdict(
    mine: Sequence[SeedValue], against: Sequence[SeedValue], p: float, least: float
) -> Verdict:
    if least > SIGNIFICANT:
        return "too few seeds"
    if p > SIGNIFICANT:
        return "no difference"
    return "better" if mean(mine) > mean(against) else "worse"
