"""Checks what other people's code returns and raises: replies, facts, token counts, errors."""

from __future__ import annotations

import json
import math
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from reprlib import repr as shown
from typing import Any, TypeGuard, get_args

from msgspec.structs import replace

from eyechart.providers.base import FinishReason, Reply, SetupError, Usage

REMEDY = "report it to the plugin's authors"
"""What users can do about a plugin that breaks rules."""
_COUNTS = ("prompt_tokens", "output_tokens")
_PARTS = {
    "cache_read_tokens": "prompt_tokens",
    "cache_write_tokens": "prompt_tokens",
    "thought_tokens": "output_tokens",
}
"""Field of a `Usage` -> the field that it is a part of."""
_TEXTS = ("finish_word", "model", "refusal", "reasoning")
_USAGE = "usage."


class PluginError(SetupError):
    """A plugin that cannot be used. The message names the distribution and the entry point."""


def described(error: BaseException, file: str | Path = "") -> str:
    """An exception of other people's code, in one line, with its last line number in `file`."""
    said = ": ".join(filter(None, (type(error).__name__, " ".join(str(error).split()))))
    frames = traceback.extract_tb(error.__traceback__) if file else ()
    lines = [frame.lineno for frame in frames if frame.filename == str(file)]
    return f"{said} (line {lines[-1]})" if lines and not isinstance(error, SyntaxError) else said


def kind(value: object) -> str:
    """The name of a value's type."""
    return type(value).__name__


def a_kind(value: object) -> str:
    """The same after its article: `a str`, `an int`."""
    name = kind(value)
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


def is_count(value: object) -> TypeGuard[int]:
    """Whether a value is a number of tokens or requests."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def reply_problems(reply: object) -> dict[str, str]:
    """The problems of a value that `complete` returned: field -> problem. The field is empty if the
    value is no `Reply`, and `usage.FIELD` for a part of the usage.
    """
    if not isinstance(reply, Reply):
        return {"": f"{a_kind(reply)}, not a Reply"}
    problems = {}
    if not isinstance(reply.text, str):
        problems["text"] = f"the text {shown(reply.text)}; where there is none, it is empty"
    if reply.finish_reason not in (None, *get_args(FinishReason)):
        known = ", ".join(get_args(FinishReason))
        problems["finish_reason"] = (
            f"the finish reason {shown(reply.finish_reason)}; there are {known}"
        )
    for name in _TEXTS:
        value = getattr(reply, name)
        if value is not None and not isinstance(value, str):
            problems[name] = f"{name} {shown(value)}, which is no text"
    dropped = reply.dropped_params
    if not isinstance(dropped, tuple) or not all(isinstance(name, str) for name in dropped):
        problems["dropped_params"] = f"dropped_params {shown(dropped)}, which are names in a tuple"
    if reply.sent is not None and not _is_document(reply.sent):
        problems["sent"] = f"sent {shown(reply.sent)}, which is no mapping that JSON can have"
    if reply.logprobs is not None and not _are_logprobs(reply.logprobs):
        problems["logprobs"] = "a log probability that is above 0 or no number"
    if reply.top_logprobs is not None and not _are_top_logprobs(reply):
        problems["top_logprobs"] = (
            "top_logprobs that are not tokens with log probabilities for each token of logprobs"
        )
    return problems | ({} if reply.usage is None else _usage_problems(reply.usage))


def _is_document(given: Any) -> bool:
    try:
        json.dumps(given, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return False
    return isinstance(given, Mapping)


def _are_top_logprobs(reply: Reply) -> bool:
    given: Any = reply.top_logprobs
    try:
        return len(given) == len(reply.logprobs or ()) and all(map(_are_logprobs, given))
    except TypeError:
        return False


def _are_logprobs(given: Any) -> bool:
    try:
        return all(
            isinstance(token, str) and math.isfinite(logprob) and logprob <= 0
            for token, logprob in given
        )
    except (TypeError, ValueError):
        return False


def _usage_problems(usage: Usage) -> dict[str, str]:
    if not isinstance(usage, Usage):
        return {"usage": f"usage of the type {kind(usage)}; it is a Usage, or None"}
    values = {name: getattr(usage, name) for name in (*_COUNTS, *_PARTS)}
    problems = {
        ("usage" if name in _COUNTS else f"{_USAGE}{name}"): (
            f"usage with {name} {shown(value)}; it is a number of tokens"
            + (", or None" * (name in _PARTS))
        )
        for name, value in values.items()
        if not is_count(value) and not (name in _PARTS and value is None)
    }
    if usage.tier is not None and not isinstance(usage.tier, str):
        problems[f"{_USAGE}tier"] = f"usage with tier {shown(usage.tier)}, which is no text"
    if problems:
        return problems
    return {
        f"{_USAGE}{part}": f"usage with {part} {values[part]}, more than the {whole} "
        f"{values[whole]} it is a part of"
        for part, whole in _PARTS.items()
        if values[part] is not None and values[part] > values[whole]
    }


def without(reply: Reply, wrong: Mapping[str, str]) -> Reply:
    """The reply without its `wrong` fields, which `reply_problems` names."""
    usual = Reply("", finish_reason="other")
    parts: dict[str, Any] = {
        name.removeprefix(_USAGE): None for name in wrong if name.startswith(_USAGE)
    }
    fields: dict[str, Any] = {name: getattr(usual, name) for name in wrong if "." not in name}
    if parts and reply.usage is not None and "usage" not in fields:
        fields["usage"] = replace(reply.usage, **parts)
    return replace(reply, **fields)


def facts_problem(facts: object) -> str | None:
    """Why a value that `facts` returned cannot be stored with a run; `None` if it can."""
    if not isinstance(facts, Mapping) or not all(isinstance(name, str) for name in facts):
        return f"returned {shown(facts)}, not a mapping from names"
    try:
        json.dumps(dict(facts), allow_nan=False)
    except (TypeError, ValueError) as error:
        return f"cannot be written as JSON: {error}"
    except RecursionError:
        return "cannot be written as JSON: it is nested too deep"
    window = facts.get("max_model_len")
    if window is not None and (not is_count(window) or window == 0):
        return f"says max_model_len {shown(window)}; it is a number of tokens, or left out"
    return None


def counts_problem(counts: object, prompts: Sequence[str]) -> str | None:
    """Why a value of `count_tokens` cannot be the counts of the prompts; `None` if it can."""
    if counts is None or (
        isinstance(counts, list) and len(counts) == len(prompts) and all(map(is_count, counts))
    ):
        return None
    return f"of {len(prompts)} prompts returned {shown(counts)}"
