"""How near a copy is to its row, and whether it is nearer to it than to a row beside it.

The row beside it has two neighbouring symbols exchanged. Who does not know which of the two comes
first is as often nearer to the one as to the other, whatever else he knows or prefers to write; a
row with a symbol replaced has not this property, see `results/simulations`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from .answers import TYPES
from .normal_form import tidy
from .outcomes import Outcome
from .verdict import edit_distance

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .answer_type import AnswerForm
    from .verdict import Target, Verdict


class CopyCredit(NamedTuple):
    """What a reply to "copy this row" is worth if it is not right."""

    off: float
    """The smallest share of the words of the row such that all before them are right, and the reply
    is not longer by more: 0 for a right copy, infinite where none was read, NaN where the target is
    not the row."""
    nearer: float
    """1 where the copy is nearer to its row than to the one beside it, by edits of words, 0 where
    it is nearer to that, 1/2 for a tie or a missing copy; NaN where there is no row beside it."""


NO_COPY = CopyCredit(math.nan, math.nan)


def copied(
    verdict: Verdict, target: Target, length: int, draw: int, form: AnswerForm
) -> CopyCredit:
    """How near the reply of a verdict is to the row of `length` symbols that is its target. `draw`
    chooses which neighbours are exchanged.
    """
    if form.type != "text" or (row := row_of(str(target), length)) is None:
        return NO_COPY
    right = verdict.outcome is Outcome.CORRECT
    beside = row_beside(row, draw)
    if right or verdict.answer is None:
        known = 1.0 if right else 0.5
        return CopyCredit(0.0 if right else math.inf, known if beside else math.nan)

    def words(text: str) -> list[str]:
        return TYPES[form.type].compared(tidy(text), form).split()

    said, wanted = words(str(verdict.answer)), words(str(target))
    missing = len(wanted) - (verdict.first_divergence or 0)
    longer = len(said) - len(wanted)
    off = max(missing, longer, 0) / max(len(wanted), 1)
    if not beside:
        return CopyCredit(off, math.nan)
    own, other = edit_distance(said, wanted), edit_distance(said, words(" ".join(beside)))
    return CopyCredit(off, 0.5 if own == other else float(own < other))


def row_of(target: str, length: int) -> Sequence[str] | None:
    """The symbols of a row of `length`, which are the lines of the target or its words; `None`
    where the target is not the row.
    """
    found = (target.splitlines(), target.split())
    return next((parts for parts in found if len(parts) == length), None)


def row_beside(row: Sequence[str], draw: int) -> list[str]:
    """The row with two neighbours exchanged, at one of the places where a symbol differs from the
    one before it; empty where all symbols are equal.
    """
    places = [place for place in range(1, len(row)) if row[place] != row[place - 1]]
    if not places:
        return []
    place = places[draw % len(places)]
    return [*row[: place - 1], row[place], row[place - 1], *row[place + 1 :]]
