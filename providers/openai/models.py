"""The list of models, `GET /models`, of servers with OpenAI's API.

What identifies a model there: its `id`, `root` (vLLM, SGLang: where its weights are from),
the window (vLLM's `max_model_len`, `context_length`, `context_window` and the like, or `n_ctx` in
`meta`), `owned_by` (mostly the software of the server), and `meta` (llama.cpp: sizes of the model
and its quantisation). `created` does not: for most servers it is the time of the request or of
their start.
"""

from __future__ import annotations

import re
from typing import Any

from eyechart.providers.close_match import did_you_mean
from eyechart.providers.plugins.contract import is_count

_SIZES = ("n_params", "size", "n_vocab", "n_embd", "n_ctx_train")
_QUANTISED = "ftype"
_WINDOW = re.compile(
    r"n_ctx|max_model_len|max_(?:context|prompt|input)(?:_window)?_tokens"
    r"|(?:max_|loaded_)?(?:context|ctx|seq|sequence)_?(?:len|length|size|window)"
)
"""The names of a window. Of several the smallest holds: LM Studio has `max_context_length`, of the
model, and `loaded_context_length`, of the server."""
_MOST_CHARACTERS = 300
_MOST_NAMES = 8
_MOST = 2**63
"""A larger number is ignored as an error."""


def served_names(read: Any, model: str) -> str:
    """What a list of models has in place of `model`, for a message; empty where it has the model,
    or is none.
    """
    entries = read.get("data") if isinstance(read, dict) else None
    listed = entries if isinstance(entries, list) else []
    names = [_text(one.get("id")) for one in listed if isinstance(one, dict)]
    known = [name for name in names if name is not None]
    if not known or model in known:
        return ""
    shown = ", ".join(map(repr, known[:_MOST_NAMES]))
    more = len(known) - _MOST_NAMES
    guess = did_you_mean(model, known, "")
    served = f"the server has {shown}{f' and {more} more' if more > 0 else ''}"
    return f"{guess} {served}" if guess else served


def said_of_model(read: Any, model: str) -> dict[str, object]:
    """The facts about `model` in the list `read`; empty if the list lacks it.

    If the list has only one model, its facts are taken for any name: llama.cpp answers to all
    names.
    """
    entries = read.get("data") if isinstance(read, dict) else None
    listed = [one for one in entries if isinstance(one, dict)] if isinstance(entries, list) else []
    wanted = [one for one in listed if one.get("id") in (model, f"{model}:latest")]  # Ollama's
    entry = next(iter(wanted or (listed if len(listed) == 1 else ())), {})
    name = _text(entry.get("id"))
    if name is None:
        return {}
    meta = entry.get("meta")
    meta = meta if isinstance(meta, dict) else {}
    sizes: dict[str, object] = {size: _count(meta.get(size)) for size in _SIZES}
    sizes[_QUANTISED] = _text(meta.get(_QUANTISED))
    facts = {
        "model": name,
        "root": _text(entry.get("root")),
        "max_model_len": _window(entry),
        "owned_by": _text(entry.get("owned_by")),
        "meta": {size: value for size, value in sizes.items() if value is not None},
    }
    return {fact: value for fact, value in facts.items() if value}


def _window(entry: dict[str, Any]) -> int | None:
    """The smallest window that the entry names itself or in a mapping in it."""
    inner = (value for value in entry.values() if isinstance(value, dict))
    named = (pair for one in (entry, *inner) for pair in one.items())
    counts = (_count(value) for name, value in named if _WINDOW.fullmatch(name.lower()))
    return min(filter(None, counts), default=None)


def _text(given: object) -> str | None:
    return given[:_MOST_CHARACTERS] if isinstance(given, str) and given else None


def _count(given: object) -> int | None:
    return given if is_count(given) and given < _MOST else None
