"""The result of a study for each variant and condition, from the rows of `lab.csv` alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, TypeAlias

from eyechart.harness.analysis.curve import SIGNIFICANT, THRESHOLD
from eyechart.harness.analysis.interval import Bound, Sign, Span
from eyechart.harness.analysis.paired import holm
from eyechart.harness.satellites.lab.asking import Cell
from eyechart.harness.satellites.lab.order import TRAINED
from eyechart.harness.satellites.lab.seeds import (
    SeedLength,
    interval,
    mean_length,
    mean_log,
    permutation_p,
    smallest_p,
)

LEARNT = 0.95
"""A model has learned a task if it is right so often at the lengths of its training."""
Where: TypeAlias = tuple[str, str]
"""A task and the label of a condition."""


@dataclass(frozen=True)
class OfSeed:
    """What the model of one seed answered under one condition."""

    cells: Sequence[Cell]

    @property
    def is_trained(self) -> bool:
        """Whether its training came to its end."""
        return self.cells[0].training == TRAINED

    @cached_property
    def accuracy(self) -> float | None:
        """Share of right answers at the trained lengths; `None` if none was scored there."""
        return _share(one for one in self.asked if is_within(one))

    @cached_property
    def beyond(self) -> float | None:
        """Share of right answers to longer rows, in lines that have no others; `None` if none was
        scored.
        """
        return _share(one for one in self.asked if (one.length_low or 0) > one.trained_to)

    @property
    def has_learnt(self) -> bool:
        """Whether it is right often enough at the trained lengths."""
        return self.accuracy is not None and self.accuracy >= LEARNT

    @property
    def asked(self) -> Sequence[Cell]:
        """The lines that it was asked; none where its training diverged."""
        return [one for one in self.cells if one.length is not None]

    def seen(self, shortest: float, longest: float) -> SeedLength | None:
        """The length to which this model sees. `None` where it is not known although some line is
        right often enough: no single threshold describes its curve. A model that is right often
        enough at no line does not see the shortest one.
        """
        one = self.cells[0]
        if one.effective_length is None:
            below = Bound("<", shortest)
            is_right = any((cell.accuracy or 0) >= THRESHOLD for cell in self.asked)
            return None if is_right else SeedLength(below, (below, below))
        sign: Sign = _SIGNS[one.effective_length_bound]
        length = Bound(sign, one.effective_length)
        low, high = one.effective_length_ci_low, one.effective_length_ci_high
        span = (Bound("=", low or shortest), Bound("=", high or longest))
        return SeedLength(length, span)


def is_within(cell: Cell) -> bool:
    """Whether all rows of a line that was asked are of trained lengths."""
    return cell.length_high is not None and cell.length_high <= cell.trained_to


def _share(cells: Iterable[Cell]) -> float | None:
    """Share of right answers in lines; `None` if none was scored."""
    counted = [(one.correct, one.n) for one in cells]
    n = sum(count for _, count in counted)
    return sum(correct for correct, _ in counted) / n if n else None


_SIGNS: Mapping[str, Sign] = {"": "=", "<": "<", ">": ">"}
Verdict: TypeAlias = Literal[
    "",
    "better",
    "worse",
    "no difference",
    "too few seeds",
    "not trained",
    "not known",
    "no reference",
]
"""`not trained`: the training of every model diverged; `not known`: the length of no model is
known; `no reference`: the reference has no known length. The reference itself has none."""


@dataclass(frozen=True)
class Result:
    """What all seeds of a variant say under one condition."""

    variant: str
    task: str
    condition: str
    seeds: Sequence[OfSeed]
    shortest: int
    longest: int
    """The shortest and the longest line that any model was asked under the condition; 0 where none
    was asked."""
    p: float | None = None
    """The p-value against the reference, after Holm's correction over the variants; `None` for the
    reference, and where there is nothing to compare."""
    smallest_p: float | None = None
    """The smallest one that so many seeds can give."""
    verdict: Verdict = ""

    @property
    def where(self) -> Where:
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
        """The shortest and the longest row of the lines that lie within the trained lengths; `None`
        if no such line was asked.
        """
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
    def trained(self) -> Sequence[OfSeed]:
        """The seeds whose training came to its end."""
        return [one for one in self.seeds if one.is_trained]

    @property
    def diverged(self) -> int:
        """Seeds whose training diverged."""
        return len(self.seeds) - len(self.trained)

    @cached_property
    def seen(self) -> list[SeedLength]:
        """How far each trained model sees whose length is known."""
        found = [one.seen(self.shortest, self.longest) for one in self.trained]
        return [one for one in found if one is not None]

    @property
    def unknown(self) -> int:
        """Trained models whose length is not known."""
        return len(self.trained) - len(self.seen)

    @property
    def length(self) -> Bound | None:
        """The geometric mean of the known lengths; `None` if there is none."""
        return mean_length(self.seen, self.shortest, self.longest) if self.seen else None

    @property
    def span(self) -> Span | None:
        """The 95 % interval of `length` over rows and seeds; `None` with too few known lengths."""
        return interval(self.seen, self.shortest, self.longest)

    def curve(self) -> Iterable[tuple[int, float, float, float]]:
        """Of each line: its length, and the mean, the least and the highest accuracy of the seeds
        that were asked.
        """
        by_length: dict[int, list[float]] = {}
        for one in self.seeds:
            for cell in one.asked:
                if cell.accuracy is not None and cell.length is not None:
                    by_length.setdefault(cell.length, []).append(cell.accuracy)
        for length, found in sorted(by_length.items()):
            yield length, sum(found) / len(found), min(found), max(found)


def length_text(one: Result) -> str:
    """How far a variant sees, for a table: `20`, `< 5`, `not known`, or `not trained`."""
    if one.length is None:
        return "not known" if one.trained else "not trained"
    return str(one.length)


def results_of(cells: Sequence[Cell], reference: str) -> list[Result]:
    """A result for each condition and variant, in the order of the rows; each variant is compared
    with `reference`.
    """
    grouped: dict[Where, dict[str, dict[int, list[Cell]]]] = {}
    for cell in cells:
        of_variant = grouped.setdefault((cell.task, cell.condition), {}).setdefault(
            cell.variant, {}
        )
        of_variant.setdefault(cell.seed, []).append(cell)
    found: list[Result] = []
    for where, variants in grouped.items():
        lengths = [
            cell.length
            for seeds in variants.values()
            for of_seed in seeds.values()
            for cell in of_seed
            if cell.length is not None
        ] or [0]
        results = [
            Result(
                name, *where, [OfSeed(one) for one in seeds.values()], min(lengths), max(lengths)
            )
            for name, seeds in variants.items()
        ]
        found += _compared(results, reference)
    return found


def _compared(results: Sequence[Result], reference: str) -> list[Result]:
    """The results of one condition with the p-values against the reference."""
    against = next((one for one in results if one.variant == reference), None)
    others = [one for one in results if one is not against and one.seen]
    compared = {
        one.variant: replace(one, verdict="not known" if one.trained else "not trained")
        for one in results
        if not one.seen
    }
    if against is None or not others:
        return [compared.get(one.variant, one) for one in results]
    if not against.seen:
        compared |= {one.variant: replace(one, verdict="no reference") for one in others}
        return [compared[one.variant] for one in results]
    corrected = holm([permutation_p(one.seen, against.seen) for one in others])
    for one, p in zip(others, corrected, strict=True):
        least = min(1.0, smallest_p(len(one.seen), len(against.seen)) * len(others))
        verdict = _verdict(one.seen, against.seen, p, least)
        compared[one.variant] = replace(one, p=p, smallest_p=least, verdict=verdict)
    return [compared.get(one.variant, one) for one in results]


def _verdict(
    seen: Sequence[SeedLength], against: Sequence[SeedLength], p: float, least: float
) -> Verdict:
    if least > SIGNIFICANT:
        return "too few seeds"
    if p > SIGNIFICANT:
        return "no difference"
    return "better" if mean_log(seen) > mean_log(against) else "worse"
