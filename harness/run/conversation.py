"""Samples that are asked over several turns: which message is next, and their records."""

from __future__ import annotations

from dataclasses import dataclass, field

from msgspec.structs import replace

from eyechart.harness.journal.record import Record
from eyechart.harness.run.records import failed
from eyechart.harness.spec import Sample
from eyechart.harness.spec.turns import Turn
from eyechart.providers.base import Request, TransientError


@dataclass(slots=True)
class Conversation:
    """One sample in turns. The model's own replies stand between its messages, as it wrote them."""

    sample: Sample
    turns: list[Turn] = field(init=False)
    """The answered turns, without the last one."""
    attempts: int = 0
    is_whole: bool = False

    def __post_init__(self) -> None:
        self.turns = list(self.sample.said)

    def next(self, request: Request) -> Request:
        messages = self.sample.messages
        replies = [turn.reply for turn in self.turns]
        history = tuple(zip(messages, replies, strict=False))
        return replace(request, prompt=messages[len(replies)], history=history)

    def is_ended_by(self, record: Record) -> bool:
        """Whether no message follows the reply: it was the last, or it was cut off, refused, empty
        or an error. A reply that another message follows becomes a turn.
        """
        is_last = len(self.turns) + 1 == len(self.sample.messages)
        self.is_whole = is_last or not _can_be_followed(record)
        if not self.is_whole:
            self.turns.append(_turn_of(record))
            self.attempts += record.attempts or 0
        return self.is_whole

    def whole(self, record: Record) -> Record:
        """The record of the sample, from that of its last request."""
        record.turns = tuple(self.turns) or None
        record.attempts = (record.attempts or 0) + self.attempts
        return record

    @property
    def is_open(self) -> bool:
        """Whether turns were answered that no record has."""
        return not self.is_whole and len(self.turns) > len(self.sample.said)

    def unfinished(self) -> Record:
        """The record of a sample that the run left between two turns; a later command goes on
        there.
        """
        number, of = len(self.turns), len(self.sample.messages)
        error = TransientError(f"the run ended after turn {number} of {of}")
        return self.whole(failed(self.sample, error, attempts=0))


def _can_be_followed(record: Record) -> bool:
    return (
        record.failure is None
        and record.refusal is None
        and not record.is_cut_off
        and record.finish_reason != "content_filter"
        and bool((record.reply or "").strip())
    )


def _turn_of(record: Record) -> Turn:
    fields = Turn.__struct_fields__
    return Turn(**{name: getattr(record, name) for name in fields})
