"""What a model knows and does not say: its replies against its likelihoods on the same samples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from eyechart.harness.analysis.comparison.comparison import Comparison, ConditionComparison
from eyechart.harness.analysis.comparison.paired_curves import holm
from eyechart.harness.analysis.findings.finding import Finding, Kind
from eyechart.harness.analysis.length.curve import SIGNIFICANT
from eyechart.harness.analysis.length.interval import Bound


class ReplyAndChoice(NamedTuple):
    """Pairs of a reply and a forced choice, by which of them is right."""

    length: int
    both: int
    only_said: int
    only_known: int
    neither: int
    guesses: float
    """Pairs of `not_said` that guesses among the options would have right, in the mean."""

    @property
    def not_said(self) -> int:
        """Pairs whose reply is not right: wrong, cut off or unreadable."""
        return self.only_known + self.neither

    @property
    def p(self) -> float:
        """Probability that guesses have as many of `not_said` right: the exact binomial test."""
        if not self.not_said:
            return 1.0
        n, chance = self.not_said, self.guesses / self.not_said
        return math.fsum(
            math.comb(n, right) * chance**right * (1 - chance) ** (n - right)
            for right in range(self.only_known, n + 1)
        )


def known(comparison: Comparison) -> list[ReplyAndChoice]:
    """A row for each length, the lines of all conditions together; empty unless one side is the
    replies and the other the likelihoods of one model, on the same rows.
    """
    if not comparison.readings_of or not comparison.is_paired:
        return []
    rows = [row for compared in comparison.conditions for row in _of_condition(compared)]
    return [
        _sum([row for row in rows if row.length == length], length)
        for length in sorted({row.length for row in rows})
    ]


def _of_condition(compared: ConditionComparison) -> list[ReplyAndChoice]:
    swapped = compared.paired.pair[0].guessed is not None
    paired = compared.paired.swapped if swapped else compared.paired
    rows = []
    for line, chance in zip(paired.lengths, paired.pair[1].chance, strict=True):
        assert line.only_first is not None  # they are pairs
        assert line.only_second is not None
        said = round(line.first * line.n)
        neither = line.n - said - line.only_second
        rows.append(
            ReplyAndChoice(
                line.length,
                said - line.only_first,
                line.only_first,
                line.only_second,
                neither,
                float(chance) * (line.only_second + neither),
            )
        )
    return rows


def _sum(rows: Sequence[ReplyAndChoice], length: int = 0) -> ReplyAndChoice:
    return ReplyAndChoice(length, *map(sum, zip(*(row[1:] for row in rows), strict=True)))


def known_and_not_said(comparison: Comparison) -> Finding | None:
    """Where a model's likelihoods have the right answer and its reply does not, with the number of
    pairs for each case and both effective lengths; `None` for any other comparison. A length is
    named if guesses would hardly have as many, with Holm's correction for all lengths.
    """
    rows = known(comparison)
    if not rows:
        return None
    corrected = zip(rows, holm([row.p for row in rows]), strict=True)
    shown = [row for row, p in corrected if p < SIGNIFICANT]
    return KNOWN(
        model=comparison.readings_of,
        lengths=[row.length for row in shown],
        there=_sum(shown or rows),
        whole=_sum(rows),
        right_to=_lengths(comparison),
        unit=comparison.unit,
    )


def _words(
    *,
    model: str,
    lengths: Sequence[int],
    there: ReplyAndChoice,
    whole: ReplyAndChoice,
    right_to: Sequence[Bound],
    unit: str,
) -> str:
    said = f"It is not shown that {model} knows what it does not say: "
    if lengths:
        at = f"length{'s' * (len(lengths) > 1)} {', '.join(map(str, lengths))}"
        said = f"{model} knows what it does not say at {at}: "
    cases = (
        f"of {whole.both + whole.only_said + whole.not_said:,} pairs both readings are right in "
        f"{whole.both:,}, only the reply in {whole.only_said:,}, only the likelihood in "
        f"{whole.only_known:,}, neither in {whole.neither:,}"
    )
    lengths_of = ""
    if right_to:
        by_replies, by_likelihoods = right_to
        lengths_of = (
            f"; it is right to {by_replies.counted(unit)} by its replies and to "
            f"{by_likelihoods.words} by its likelihoods"
        )
    return f"{said}{_wrong(there, ' there' if lengths else '')}; {cases}{lengths_of}."


KNOWN = Kind(
    "known and not said",
    "result",
    "where the likelihoods of a model have the right answer and its replies do not",
    _words,
)


def _wrong(there: ReplyAndChoice, where: str) -> str:
    """How many of the replies that are not right the likelihood has right, and guesses."""
    if not there.not_said:
        return "all replies are right"
    replies = "the one reply" if there.not_said == 1 else f"the {there.not_said:,} replies"
    verb = "is" if there.not_said == 1 else "are"
    return (
        f"of {replies}{where} that {verb} not right the likelihood has "
        f"{there.only_known:,} right, and guessing would have {there.guesses:.0f} right"
    )


def _lengths(comparison: Comparison) -> list[Bound]:
    """The effective lengths by replies and by likelihoods; empty over several conditions, or where
    one is not known.
    """
    if len(comparison.conditions) > 1 or comparison.length.is_limited:
        return []
    (compared,) = comparison.conditions
    sides = [compared.length.first, compared.length.second]
    if compared.paired.pair[0].guessed is not None:
        sides.reverse()
    found = [one for one in sides if one is not None]
    return found if len(found) == len(sides) else []
