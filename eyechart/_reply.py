"""What is wrong with a reply of a provider."""

from __future__ import annotations

import math
from typing import get_args

from providers.base import FinishReason, Reply, Usage


def kind(value: object) -> str:
    return type(value).__name__


def is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def reply_problems(reply: object) -> list[str]:
    """What is wrong with what `complete` returned."""
    if not isinstance(reply, Reply):
        return [f"a {kind(reply)}, not a Reply"]
    problems = []
    if not isinstance(reply.text, str):
        problems.append(f"the text {reply.text!r}; where there is none, it is empty")
    if reply.finish_reason not in get_args(FinishReason):
        known = ", ".join(get_args(FinishReason))
        problems.append(f"the finish reason {reply.finish_reason!r}; there are {known}")
    for name in ("model", "refusal", "reasoning"):
        value = getattr(reply, name)
        if value is not None and not isinstance(value, str):
            problems.append(f"{name} {value!r}, which is no text")
    if not all(isinstance(name, str) for name in reply.dropped_params):
        problems.append(f"dropped_params {reply.dropped_params!r}, which are names")
    if any(not math.isfinite(logprob) or logprob > 0 for _, logprob in reply.logprobs or ()):
        problems.append("a log probability that is above 0 or no number")
    return problems + ([] if reply.usage is None else _usage_problems(reply.usage))


def _usage_problems(usage: Usage) -> list[str]:
    counts = ("prompt_tokens", "output_tokens")
    parts = {
        "cache_read_tokens": "prompt_tokens",
        "cache_write_tokens": "prompt_tokens",
        "thought_tokens": "output_tokens",
    }
    if not isinstance(usage, Usage):
        return [f"usage of the type {kind(usage)}; it is a Usage, or None"]
    values = {name: getattr(usage, name) for name in (*counts, *parts)}
    problems = [
        f"usage with {name} {value!r}; it is a number of tokens" + (", or None" * (name in parts))
        for name, value in values.items()
        if not is_count(value) and not (name in parts and value is None)
    ]
    if problems:
        return problems
    return [
        f"usage with {part} {values[part]}, more than the {whole} {values[whole]} it is a part of"
        for part, whole in parts.items()
        if values[part] is not None and values[part] > values[whole]
    ]
