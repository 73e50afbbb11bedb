"""The thoughts of a model in the record of its reply."""

from __future__ import annotations

import re

from eyechart.harness.journal.record import Record
from eyechart.harness.score.markup import without_thoughts

_SPACE = re.compile(r"\s")


def shows_thinking(record: Record) -> bool:
    """Whether a reply shows that its model thinks before it answers. The reply has thoughts, in its
    text or beside it; or it has tokens of thinking; or it has no text and used all its tokens.
    """
    reply = record.reply
    if reply is None:
        return False
    if record.reasoning or record.thought_tokens or without_thoughts(reply) != reply:
        return True
    return record.is_cut_off and not reply.strip()


def thinking_characters(record: Record) -> int:
    """Characters of the thoughts, with their tags where they are in the reply's text."""
    reply, beside = record.reply or "", len(record.reasoning or "")
    if without_thoughts(reply) == reply:
        return beside
    return without_thoughts(_SPACE.sub("_", reply)).count(" ") + beside


def thinking_tokens(record: Record) -> int | None:
    """Tokens of the thoughts as the provider counts them; `None` if it does not. Some servers say 0
    of whatever they do not count, as vLLM does with most of its parsers.
    """
    return record.thought_tokens or (None if thinking_characters(record) else record.thought_tokens)


def thinking_text(record: Record) -> str:
    """How long the thoughts are: `1,900 tokens` if that is known, else `7,600 characters`; "" where
    there are none.
    """
    if record.thought_tokens:
        return f"{record.thought_tokens:,} tokens"
    characters = thinking_characters(record)
    return f"{characters:,} characters" if characters else ""
