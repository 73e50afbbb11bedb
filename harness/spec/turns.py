"""Samples that are asked over several turns: how a prompt is cut into messages, and the turns that
were answered.

A prompt that writes `{{ next_turn }}` is sent message by message, each after the reply to the one
before, as in Sinha et al. 2025 (arXiv 2509.09677).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

import msgspec

from eyechart.harness.spec.token_counts import token_count

NAME = "next_turn"
"""The name under which prompts see `NEXT_TURN`."""
NEXT_TURN = "\n\n[the model replies]\n\n"
"""What stands in a prompt where a message ends and the model replies."""


class Turn(msgspec.Struct, kw_only=True, omit_defaults=True, gc=False):
    """An earlier turn of a sample: the reply, and the tokens of its own request."""

    reply: str
    reasoning: str | None = None
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    thought_tokens: int | None = None
    tier: str | None = None
    cut_prompt_tokens: int | None = None
    cut_output_tokens: int | None = None
    """These fields mean what they mean in a record of the journal."""

    def __post_init__(self) -> None:
        """Leaves out token counts that cannot be true."""
        for name in self.__struct_fields__:
            if name.endswith("_tokens"):
                setattr(self, name, token_count(getattr(self, name)))


def messages_of(prompt: str) -> tuple[str, ...]:
    """The messages of a prompt that is sent in turns."""
    return tuple(part.strip("\n") for part in f"{prompt}\n\n".split(NEXT_TURN))


def conversation(prompt: str, turns: Sequence[Turn]) -> str:
    """The prompt with each reply after its message, for people; as it is if they do not fit."""
    messages = messages_of(prompt)
    if not turns or len(messages) <= len(turns):
        return prompt
    replies = (f"[the model replies]\n{turn.reply}" for turn in turns)
    parts = [part for pair in zip_longest(messages, replies) for part in pair if part is not None]
    return "\n\n".join(parts)
