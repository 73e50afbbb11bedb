"""The list of models, `GET /models`, of servers with OpenAI's API.

What identifies a model there: its `id`, `root` (vLLM, SGLang: where its weights are from),
`max_model_len`, `owned_by` (mostly the software of the server), and `meta` (llama.cpp: sizes of the
model, its quantisation, and `n_ctx`, the window). `created` does not: for most servers it is the
time of the request or of their start.
"""

from __future__ import annotations

from typing import Any

from eyechart.providers.contract import is_count

_SIZES = ("n_params", "size", "n_vocab", "n_embd", "n_ctx_train")
_QUANTISED = "ftype"
_MOST_CHARACTERS = 300
_MOST = 2**63
"""A larger number is ignored as an error."""


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
    window = _count(meta.get("n_ctx"))  # of each slot
    facts = {
        "model": name,
        "root": _text(entry.get("root")),
        "max_model_len": _count(entry.get("max_model_len")) or window,
        "owned_by": _text(entry.get("owned_by")),
        "meta": {size: value for size, value in sizes.items() if value is not None},
    }
    return {fact: value for fact, value in facts.items() if value}


def _text(given: object) -> str | None:
    return given[:_MOST_CHARACTERS] if isinstance(given, str) and given else None


def _count(given: object) -> int | None:
    return given if is_count(given) and given < _MOST else None
