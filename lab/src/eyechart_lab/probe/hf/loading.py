"""Loads a model whose attention can be watched and changed."""

from __future__ import annotations

from typing import Any

import torch
from transformers import AutoModelForCausalLM

from eyechart.providers.base import ModelSettings, SetupError
from eyechart.providers.hf.files import ModelFiles
from eyechart.providers.hf.loading import (
    device_of,
    load_config,
    load_tokenizer,
    not_loaded,
    options_of,
    whole,
)
from eyechart_lab.probe.hf import attention
from eyechart_lab.probe.intervention import Intervention


def load(files: ModelFiles, settings: ModelSettings) -> tuple[Any, Any, bool]:
    """Model, tokenizer, and whether the model's attention can be watched.

    Raises:
        SetupError: transformers cannot load them; its reason in one line.
    """
    attention.register()
    config = load_config(files, settings)
    tokenizer = load_tokenizer(files, settings)
    try:
        model, is_watched = _open(files, config, options_of(files, settings))
        model = model.to(device_of(settings))
    except SetupError:
        raise
    except Exception as error:  # transformers raises all kinds
        raise not_loaded(files, error) from error
    if not getattr(tokenizer, "is_fast", False):
        raise SetupError(
            f"the tokenizer of {str(files.place)!r} does not say which characters its tokens stand "
            "for; save it as a fast tokenizer (tokenizer.json)"
        )
    return model.eval(), tokenizer, is_watched


def _open(files: ModelFiles, config: Any, options: dict[str, Any]) -> tuple[Any, bool]:
    """The model in float32, with our attention where its architecture can have it."""
    options = options | {"config": config, "dtype": torch.float32}
    try:
        model = whole(files, options | {"attn_implementation": attention.NAME})
    except (ValueError, TypeError):
        return whole(files, options), False
    current = attention.AttentionPass(Intervention())
    token = attention.CURRENT.set(current)
    try:
        with torch.no_grad():
            model(torch.zeros((1, 2), dtype=torch.long), use_cache=False)
    finally:
        attention.CURRENT.reset(token)
    if current.ignored or len(current.called) < config.get_text_config().num_hidden_layers:
        return whole(files, options), False
    return model, True


def rounded(files: ModelFiles, settings: ModelSettings, *, is_watched: bool) -> Any:
    """The model in bfloat16 as transformers loads it; rotary frequencies stay in float32."""
    options = options_of(files, settings) | {"dtype": torch.bfloat16}
    if not files.gguf:
        options["use_safetensors"] = True
    if is_watched:
        options["attn_implementation"] = attention.NAME
    model = AutoModelForCausalLM.from_pretrained(files.folder, **options)
    return model.to(device_of(settings)).eval()
