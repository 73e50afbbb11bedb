"""The probabilities of a record: the rank of the right option, and lines of text."""

from __future__ import annotations

from collections.abc import Sequence

from eyechart.harness.journal.record import Record
from eyechart.harness.score.forced_choice import RightRank, ranked


def rank_of(record: Record) -> RightRank | None:
    """Where the right option stands; `None` for a record without options."""
    return None if record.options is None else ranked(record.options)


def options_text(record: Record) -> str:
    """A line for each option with its log-probability, the most probable one first; of equal ones
    the right one last. "" where the record has no options.
    """
    if record.options is None:
        return ""
    right = record.options[0]
    ordered = sorted(record.options, key=lambda one: (-one.logprob, one is right))
    return "\n".join(
        f"{one.logprob:8.2f}  {one.text}{'  (right)' * (one is right)}" for one in ordered
    )


def logprobs_text(record: Record) -> str:
    """A line for each token of the reply with its log-probability, and the most probable tokens
    there, where they are kept; "" where no log-probability is.
    """
    tops = record.top_logprobs or ()
    return "\n".join(
        f"{_line(token, value)}{_beside(tops[place]) if place < len(tops) else ''}"
        for place, (token, value) in enumerate(record.logprobs or ())
    )


def _line(token: str, value: float | None) -> str:
    return f"{'':8}  {token!r}" if value is None else f"{value:8.2f}  {token!r}"


def _beside(top: Sequence[tuple[str, float | None]]) -> str:
    """`   of -0.02 'a', -4.10 'b'`: the most probable tokens at a place."""
    return "   of " + ", ".join(_line(token, value).strip() for token, value in top)
