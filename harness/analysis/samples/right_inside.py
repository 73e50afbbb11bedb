"""Wrong replies that have the right answer in them: many of them show that they were misread.

A reply may contain the right answer by chance: one that counts aloud names every small number. So
it is looked for in each wrong reply, and with it the targets of other rows, those that are most
like the right answer. Replies of a condition may be right only where so many more have their own
target in them than one of these that nothing else explains it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from eyechart.harness.analysis.length.limits import misread
from eyechart.harness.analysis.samples.verdicts import Judge
from eyechart.harness.journal.record import Record, read_records
from eyechart.harness.score.outcomes import Outcome
from eyechart.harness.score.readings import Recount, has_right_answer
from eyechart.harness.score.verdict import Target
from eyechart.harness.spec import Condition

SHARE, FEWEST = 0.2, 5
"""Replies that are worth a notice: this share, and this many."""
_MOST = 300
"""Wrong replies of a condition that are compared with the targets of other rows."""


def settle(
    judged: npt.NDArray[np.void],
    places: Mapping[Condition, Sequence[int]],
    folder: Path,
    judge: Judge,
) -> None:
    """Leaves the reading `MAY_BE_RIGHT` of wrong replies only to conditions where chance does not
    explain it; `places` are the cells of each condition.
    """
    suspects: dict[int, int] = {}
    rows: list[npt.NDArray[np.int64]] = []
    for of_condition in places.values():
        here = np.flatnonzero(np.isin(judged["cell"], of_condition))
        wrong = here[judged["outcome"][here] == Outcome.INCORRECT.place]
        held = wrong[misread(judged[wrong])]
        numbers = np.unique(judged["record"][wrong])
        count = len(np.unique(judged["record"][held]))
        if count >= max(FEWEST, SHARE * len(numbers)):
            step = -(-len(numbers) // _MOST)
            suspects |= dict.fromkeys(numbers[::step].tolist(), len(rows))
            rows.append(held)
        else:
            judged["reading"][held] = Recount.AS_JUDGED
    if not rows:
        return
    replies: list[list[Record]] = [[] for _ in rows]
    for number, record in enumerate(read_records(folder)):
        if (place := suspects.get(number)) is not None:
            replies[place].append(record)
    for held, records in zip(rows, replies, strict=True):
        if not _is_more_than_chance(records, judge):
            judged["reading"][held] = Recount.AS_JUDGED


def _is_more_than_chance(records: Sequence[Record], judge: Judge) -> bool:
    """Whether clearly more of these wrong replies have their own target in them than have a target
    of another row: the next smaller or larger one, or the texts beside it by length. Without
    another target only several words are no chance.
    """
    targets = sorted({record.target for record in records}, key=_order)
    places = {target: place for place, target in enumerate(targets)}
    if len(targets) == 1:
        return len(str(targets[0]).split()) > 1
    own = others = 0
    for record in records:
        place = places[record.target]
        beside = (*targets[max(0, place - 1) : place], *targets[place + 1 : place + 2])
        verdict = judge.verdict(record)
        reply, form = record.reply or "", judge.answer
        own += has_right_answer(reply, verdict, form, (record.target, *(record.accept or ())))
        others += any(has_right_answer(reply, verdict, form, (target,)) for target in beside)
    return own - others > SHARE * len(records)


def _order(target: Target) -> tuple[float, str]:
    return (len(target), target) if isinstance(target, str) else (target, "")
