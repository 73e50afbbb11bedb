"""What the near and the apart length mean, in words: by what the answers are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from eyechart.harness.analysis.length.limits import ScoredSamples
from eyechart.harness.analysis.order.resolution import SHARE

_PAIRS = f"at least {100 * SHARE:g} %"


@dataclass(frozen=True, slots=True)
class OrderWords:
    """The words of one kind of answers; `{share}` is how far a near answer may be off, in percent,
    `{threshold}` how many must be near.
    """

    near: str
    """What a near answer is: `within 5 %`."""
    near_meaning: str
    apart: str
    """What the model does that tells rows apart: `distinguishes rows that differ by a fifth`."""
    apart_meaning: str
    apart_head: str = "apart"
    longest: str = "the longest tested"
    """What stands at the end of the range in which rows are told apart."""


COUNTS = OrderWords(
    "within {share} %",
    "the length up to which its answers are at most {share} % off in at least {threshold} of its "
    "replies.",
    "distinguishes rows that differ by a fifth",
    "the length up to which its answers order two rows that differ by a fifth rightly, in "
    f"{_PAIRS} of pairs.",
    "apart (20 %)",
    "the longest pair tested",
)
COPIES = OrderWords(
    "right but for {share} % at the end",
    "the length up to which all of a copy but {share} % at its end is right in at least "
    "{threshold} of its replies.",
    "distinguishes a row from one with two neighbours exchanged",
    "the length up to which its copies are nearer to their row than to one with two neighbouring "
    f"symbols exchanged, in {_PAIRS} of them.",
    "apart (exchanged)",
)
CONTROL = OrderWords(
    "",
    "",
    "distinguishes, by probabilities, a row from its control",
    "the length up to which it gives the odd symbol a higher probability where it stands than in "
    f"the control, in {_PAIRS} of pairs.",
    "apart (control)",
)
ANY = OrderWords(
    COUNTS.near,
    "the length up to which an answer is at most {share} % off, or all of a copy but {share} % at "
    "its end is right, in at least {threshold} of its replies.",
    "distinguishes rows",
    f"the length up to which its answers tell rows apart in {_PAIRS} of pairs: counts rows that "
    "differ by a fifth, copies rows with two symbols exchanged, choices a row and its control.",
)
"""Of a table with answers of several kinds, or that does not know them."""


WORDS = {"counts": COUNTS, "copies": COPIES, "choices": CONTROL}
"""What the answers are -> the words for them."""


def answers_of(samples: ScoredSamples) -> str:
    """Which of `WORDS` the answers of these samples are; empty if they are none of them."""
    if samples.choices is not None:
        return "choices"
    if samples.copies is not None:
        return "copies"
    return "counts" if samples.counts else ""


def words_of(answers: Iterable[str]) -> OrderWords:
    """The words for all of these `answers_of` several conditions together."""
    found = {one for one in answers if one}
    return WORDS[found.pop()] if len(found) == 1 else ANY
