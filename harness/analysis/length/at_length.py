"""How often a model is right at a length that the user names, from the fitted curve."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from eyechart.harness.analysis.length.effective_length import FEW_REPLIES, EffectiveLength
from eyechart.harness.analysis.length.interval import Sign

AT_COLUMNS = ("at", "accuracy", "ci_low", "ci_high", "p_reaches_threshold", "bound", "limited_by")
_SURE = 0.99
"""A probability that is not told from 1."""
LIKELY = 0.95
"""From this probability on a model is said to reach the threshold, or to miss it."""
_HIGH, _OPEN, _LOW = VERDICTS = ("yes", "open", "no")
"""Whether a model reaches the threshold at a length."""
_DIGITS = 6
"""Decimals of a probability: those behind them depend on the processor."""


@dataclass(frozen=True, slots=True)
class AtLength:
    """The accuracy at one length under one condition."""

    length: int
    """Symbols, in the task's unit."""
    accuracy: float | None
    """Mean of the posterior: 0 to 1. `None` outside the lengths asked, beyond the length that the
    lines certify where no falling curve fits, and where one line leaves the length open."""
    accuracy_ci: tuple[float | None, float | None]
    """The 95 % interval. Outside the lengths asked only one end is known: above them the accuracy
    is at most the upper end at the longest one, below them at least the lower end at the shortest
    one, since the curve falls. Both are `None` where no falling curve fits."""
    reaches: float | None
    """Probability that the accuracy is at least the threshold: 0 to 1; with `bound` a bound of it.
    `None` also where something else than sight limits the effective length."""
    limited_by: str = ""
    """What limits it then."""
    bound: Sign = "="
    """`<` above the lengths asked: at most the values of the longest one; `>` below them."""

    @property
    def columns(self) -> dict[str, float | int | str | None]:
        """Names and values, as in JSON."""
        sign = "" if self.bound == "=" else self.bound
        values = (
            *(self.length, self.accuracy, *self.accuracy_ci, self.reaches),
            *(sign, self.limited_by),
        )
        return dict(zip(AT_COLUMNS, values, strict=True))

    @property
    def text(self) -> str:
        """`93 (81–98)`, in percent; `< 25` or `> 81` outside the lengths asked; or a dash."""
        low, high = (None if end is None else f"{100 * end:.0f}" for end in self.accuracy_ci)
        if self.accuracy is not None:
            return f"{100 * self.accuracy:.0f} ({low}–{high})"
        if high is not None and high != "100":
            return f"< {high}"
        return f"> {low}" if low is not None and low != "0" else "–"

    @property
    def reaches_text(self) -> str:
        """`0.97`, `> 0.99`, `< 0.12`, or a dash."""
        if self.reaches is None:
            return "–"
        text = probability_text(self.reaches)
        if self.bound == "=":
            return text
        if text[0] in "<>":
            return text if text[0] == self.bound else "–"
        whole = math.floor if self.bound == ">" else math.ceil
        return f"{self.bound} {whole(100 * self.reaches) / 100:.2f}"

    @property
    def order(self) -> tuple[float, float]:
        """Sort key, best first: how surely it reaches the threshold, then the accuracy."""
        low, high = self.accuracy_ci
        accuracy = next((one for one in (self.accuracy, high, low) if one is not None), -1.0)
        return 1.0 if self.reaches is None else -self.reaches, -accuracy

    @property
    def verdict(self) -> str:
        """`yes` or `no` with a probability of 0.95, `open` between; empty where it is unknown."""
        if self.reaches is None:
            return ""
        if self.reaches >= LIKELY and self.bound != "<":
            return _HIGH
        if self.reaches <= 1 - LIKELY and self.bound != ">":
            return _LOW
        return _OPEN


def probability_text(probability: float | None) -> str:
    """`0.97`, `> 0.99`, `< 0.01`, or a dash where it is not known. What is open is not rounded to
    the 0.95 or 0.05 of a verdict: 0.946 is `0.94`.
    """
    if probability is None:
        return "–"
    if probability > _SURE:
        return f"> {_SURE}"
    if probability < 1 - _SURE:
        return f"< {1 - _SURE:.2f}"
    shown = round(probability, 2)
    if probability < LIKELY <= shown:
        shown = LIKELY - 0.01
    if shown <= 1 - LIKELY < probability:
        shown = 1 - LIKELY + 0.01
    return f"{shown:.2f}"


MOST_PIECES = 10


def pieces_of(at: Sequence[int]) -> list[tuple[int, int]]:
    """Each length of `at` that is a multiple of another one, with how many of the other it takes:
    2 to `MOST_PIECES`, the longest pieces first. Of 20, 50 and 200: 200 in 4, and 200 in 10.
    """
    return [
        (length, length // piece)
        for length in at
        for piece in sorted(at, reverse=True)
        if length % piece == 0 and 1 < length // piece <= MOST_PIECES
    ]


def required_of(threshold: float, pieces: int) -> float:
    """The accuracy that each piece needs, so that a row of so many pieces reaches the threshold."""
    return 1 - (1 - threshold) / pieces


def at_length(estimate: EffectiveLength, length: int, pieces: int = 1) -> AtLength:
    """The accuracy at a length, from the posterior that the effective length is taken from.

    A row that is given in several `pieces` of this length is right where each of them is. So it is
    right at least so often as is left after the misses of all pieces are added up: this holds
    whether they miss together or not (Boole's inequality). The accuracy that `reaches` is of is
    then the one that leaves the threshold, and is not known below the rows asked: so high an
    accuracy of shorter rows would be the curve's guess.

    Replies that fail for another cause than sight count as failures here, as they do in all
    accuracies. Where the answers agree with no falling curve, only lengths that the lines certify
    have numbers: the curve passes over a dip. Neither has one line that leaves the length open.
    Outside the lengths asked there are bounds.
    """
    fitted, limit = estimate.fit, estimate.limit
    by = "" if limit.is_ranked else limit.by
    nearest = min(max(float(length), fitted.bins.shortest), fitted.bins.longest)
    bound: Sign = "=" if nearest == length else "<" if nearest < length else ">"
    if not is_described(estimate, nearest):
        return AtLength(length, None, (None, None), None, by, bound)
    mean, low, high = fitted.accuracy_at(nearest)
    required = required_of(fitted.required, pieces)
    reaches = round(fitted.reaches_at(nearest, required), _DIGITS) if limit.is_ranked else None
    if pieces > 1 and bound == ">":
        reaches = None
    if bound == "=":
        return AtLength(length, mean, (low, high), reaches, by)
    ends = (None, high) if bound == "<" else (low, None)
    return AtLength(length, None, ends, reaches, by, bound)


def is_described(estimate: EffectiveLength, length: float) -> bool:
    """Whether the fitted curve describes the accuracy at a length: with a single threshold at every
    length, else up to the length that the lines certify. A single line that leaves the effective
    length open says nothing but its own accuracy: the curve there is an assumption. So is that of
    too few replies for a length.
    """
    certified = estimate.length
    if certified is None and (estimate.lines == 1 or estimate.scored < FEW_REPLIES):
        return False
    if estimate.one_threshold or certified is None:
        return estimate.one_threshold
    return certified.sign != "<" and length <= certified.length
