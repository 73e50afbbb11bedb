"""Findings about a run of which many replies could not be read, or may have been misread."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from eyechart.harness.analysis.findings.finding import Finding, Kind
from eyechart.harness.analysis.length.limit import OF_MISREAD
from eyechart.harness.analysis.length.limits import misread
from eyechart.harness.analysis.samples.judged_run import JudgedRun, each_counted
from eyechart.harness.analysis.samples.right_inside import FEWEST, SHARE
from eyechart.harness.analysis.samples.shortening import shortened
from eyechart.harness.journal.record import Record
from eyechart.harness.score.outcomes import SCORED_PLACES, Outcome

SHOWN = 3
"""Most reasons and replies that a finding shows."""
_CHARS = 120
"""Characters of a reply in a finding."""


def unread(run: JudgedRun) -> Finding | None:
    """How many replies are unread, why, and some for each common reason; `None` if few are."""
    once, outcomes = _once(run)
    found = once[outcomes == Outcome.UNPARSED.place]
    total = int(np.isin(outcomes, SCORED_PLACES).sum())
    if len(found) < max(FEWEST, SHARE * total):
        return None
    reasons: Counter[str] = Counter()
    first: dict[str, list[Record]] = {}
    for _, record in each_counted(run, found.tolist()):
        why = run.judge.verdict(record).why
        reasons[why] += 1
        if len(kept := first.setdefault(why, [])) < SHOWN:
            kept.append(record)
    counts = dict(sorted(reasons.items(), key=lambda pair: (-pair[1], pair[0])))
    common = list(counts)[:SHOWN]
    in_turn = [first[why][turn] for turn in range(SHOWN) for why in common if first[why][turn:]]
    examples = [reply_text(record) for record in in_turn[:SHOWN]]
    return UNREAD(unread=len(found), replies=total, reasons=counts, examples=examples)


def _unread(
    *, unread: int, replies: int, reasons: Mapping[str, int], examples: Sequence[str]
) -> str:
    causes = [f"{count:,} {why}" for why, count in reasons.items()]
    if others := sum(list(reasons.values())[SHOWN:]):
        causes[SHOWN:] = [f"{others:,} for other reasons"]
    return (
        f"{unread:,} of {replies:,} replies have no answer that can be read: {', '.join(causes)}. "
        f"For example, {'; '.join(examples)}."
    )


UNREAD = Kind(
    "unread replies",
    "warning",
    "many replies have no answer that can be read",
    _unread,
)


def right_in_wrong(run: JudgedRun) -> Finding | None:
    """How many of all wrong replies have the right answer in them, under the conditions where
    `right_inside` finds some.
    """
    once, outcomes = _once(run)
    cells, readings = (run.samples[name].to_numpy()[once] for name in ("cell", "reading"))
    places = np.flatnonzero(misread({"outcome": outcomes, "reading": readings}))
    if not len(places):
        return None
    in_found = [
        place
        for one in run.conditions.values()
        if not set(one.places).isdisjoint(cells[places].tolist())
        for place in one.places
    ]
    wrong = int((outcomes[np.isin(cells, in_found)] == Outcome.INCORRECT.place).sum())
    shown = each_counted(run, once[places[:SHOWN]].tolist())
    examples = [reply_text(record) for _, record in shown]
    return RIGHT_IN_WRONG(OF_MISREAD, right=len(places), wrong=wrong, examples=examples)


def _right_in_wrong(*, right: int, wrong: int, examples: Sequence[str]) -> str:
    return (
        f"{right:,} of {wrong:,} wrong replies have the right answer in them. For example, "
        f"{'; '.join(examples)}."
    )


RIGHT_IN_WRONG = Kind(
    "right answers in wrong replies",
    "warning",
    "replies that count as wrong have the right answer in them, so they may be misread",
    _right_in_wrong,
)


def _once(run: JudgedRun) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The places of the samples, those of one record once, and their outcomes."""
    records, outcomes = (run.samples[name].to_numpy() for name in ("record", "outcome"))
    once = np.sort(np.unique(records, return_index=True)[1])
    return once, outcomes[once]


def reply_text(record: Record) -> str:
    """A reply after its condition and length; its thoughts, or why there is none."""
    return f"{record.condition.label} at length {record.length}: {_text(record)}"


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
