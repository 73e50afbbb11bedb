"""What is said where many replies of a run have no answer that can be read, or were misread."""

from __future__ import annotations

from collections import Counter

import numpy as np
import numpy.typing as npt

from eyechart.harness.analysis.judged_run import JudgedRun, each_counted
from eyechart.harness.analysis.limit import OF_MISREAD
from eyechart.harness.analysis.right_inside import FEWEST, SHARE, misread
from eyechart.harness.analysis.shortened import shortened
from eyechart.harness.journal.record import Record
from eyechart.harness.score.outcomes import SCORED_PLACES, Outcome

SHOWN = 3
"""Most reasons and replies that a notice shows."""
_CHARS = 120
"""Characters of a reply in a notice."""


def unread_lines(run: JudgedRun) -> list[str]:
    """How many replies are unread, why, and some for each common reason; nothing if few are. Then
    how many wrong ones have the right answer in them.
    """
    records, outcomes = (run.samples[name].to_numpy() for name in ("record", "outcome"))
    once = np.sort(np.unique(records, return_index=True)[1])
    return [*_unread_lines(run, once, outcomes), *_misread_lines(run, once, outcomes)]


def _unread_lines(
    run: JudgedRun, once: npt.NDArray[np.int64], outcomes: npt.NDArray[np.int64]
) -> list[str]:
    unread = once[outcomes[once] == Outcome.UNPARSED.place]
    total = int(np.isin(outcomes[once], SCORED_PLACES).sum())
    if len(unread) < max(FEWEST, SHARE * total):
        return []
    reasons: Counter[str] = Counter()
    first: dict[str, list[Record]] = {}
    for _, record in each_counted(run, unread.tolist()):
        why = run.judge.verdict(record).why
        reasons[why] += 1
        if len(kept := first.setdefault(why, [])) < SHOWN:
            kept.append(record)
    common = [why for why, _ in reasons.most_common(SHOWN)]
    in_turn = [first[why][turn] for turn in range(SHOWN) for why in common if first[why][turn:]]
    causes = ", ".join(f"{reasons[why]:,} {why}" for why in common)
    others = len(unread) - sum(reasons[why] for why in common)
    more = f", {others:,} for other reasons" if others else ""
    return [
        f"{len(unread):,} of {total:,} replies have no answer that can be read: {causes}{more}",
        *(reply_line(record) for record in in_turn[:SHOWN]),
    ]


def _misread_lines(
    run: JudgedRun, once: npt.NDArray[np.int64], outcomes: npt.NDArray[np.int64]
) -> list[str]:
    """Of all wrong replies of the conditions where `right_inside` finds some."""
    cells, readings = (run.samples[name].to_numpy() for name in ("cell", "reading"))
    found = once[misread({"outcome": outcomes[once], "reading": readings[once]})]
    if not len(found):
        return []
    in_found = [
        place
        for one in run.conditions.values()
        if not set(one.places).isdisjoint(cells[found].tolist())
        for place in one.places
    ]
    here = once[np.isin(cells[once], in_found)]
    wrong = int((outcomes[here] == Outcome.INCORRECT.place).sum())
    shown = each_counted(run, found[:SHOWN].tolist())
    return [
        f"{len(found):,} of {wrong:,} wrong replies have the right answer in them; {OF_MISREAD}",
        *(reply_line(record) for _, record in shown),
    ]


def reply_line(record: Record) -> str:
    """A reply in one line, after its condition and length; its thoughts, or why there is none."""
    return f"  {record.condition.label} at length {record.length}: {_text(record)}"


def _text(record: Record) -> str:
    if record.failure is not None:
        return record.failure.message
    thoughts = " ".join((record.reasoning or "").split())
    text = " ".join((record.reply or "").split())
    if not text and thoughts:
        return f"no text after thoughts that begin {_short(thoughts)}"
    return _short(text) if text else "an empty reply"


def _short(text: str) -> str:
    return repr(shortened(text, _CHARS))
