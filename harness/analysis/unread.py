"""What is said where many replies of a run have no answer that can be read."""

from __future__ import annotations

from collections import Counter

import numpy as np

from eyechart.harness.analysis.judged_run import JudgedRun, each_counted
from eyechart.harness.analysis.shortened import shortened
from eyechart.harness.journal.record import Record
from eyechart.harness.score.outcomes import SCORED_PLACES, Outcome

_SHARE, _FEWEST = 0.2, 5
"""Unread replies that are worth a notice: this share of all, and this many."""
SHOWN = 3
"""Most reasons and replies that a notice shows."""
_CHARS = 120
"""Characters of a reply in a notice."""


def unread_lines(run: JudgedRun) -> list[str]:
    """How many replies are unread, why, and some for each common reason; nothing if few are."""
    records, outcomes = (run.samples[name].to_numpy() for name in ("record", "outcome"))
    once = np.sort(np.unique(records, return_index=True)[1])
    unread = once[outcomes[once] == Outcome.UNPARSED.place]
    total = int(np.isin(outcomes[once], SCORED_PLACES).sum())
    if len(unread) < max(_FEWEST, _SHARE * total):
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
