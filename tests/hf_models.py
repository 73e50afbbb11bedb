"""Small models of transformers with random weights, as folders."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from eyechart.providers.tiny.folder import SHIPPED

SHAPE: dict[str, Any] = {
    "vocab_size": 346,
    "hidden_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "max_position_embeddings": 256,
}
GPT2 = {"vocab_size": 346, "n_embd": 48, "n_layer": 3, "n_head": 4, "n_positions": 256}
SPECIAL = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 2}
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("Llama", SHAPE | {"num_key_value_heads": 2, "intermediate_size": 64}),
    "mistral": (
        "Mistral",
        SHAPE | {"num_key_value_heads": 2, "sliding_window": 16, "head_dim": 12},
    ),
    "qwen3": ("Qwen3", SHAPE | {"num_key_value_heads": 2, "head_dim": 16}),
    "gemma2": (  # soft caps, and a window in every other layer
        "Gemma2",
        SHAPE | {"num_key_value_heads": 2, "head_dim": 16, "sliding_window": 16},
    ),
    "gptneox": ("GPTNeoX", SHAPE | {"rotary_pct": 0.5}),
    "gpt2": ("GPT2", GPT2),
    "bloom": ("Bloom", {"vocab_size": 346, "hidden_size": 48, "n_layer": 3, "n_head": 4}),
    "mamba": ("Mamba", {"vocab_size": 346, "hidden_size": 48, "num_hidden_layers": 3}),
}


def write(folder: Path, name: str) -> Path:
    """A model with random weights that are large enough for a wrong detail to show."""
    import torch
    import transformers

    kind, fields = MODELS[name]
    config = getattr(transformers, f"{kind}Config")(**fields, **SPECIAL)
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(config)
    for weights in model.parameters():
        if weights.dim() > 1:
            weights.data *= 4
    model.save_pretrained(folder)
    for file in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
        if (SHIPPED / file).exists():
            (folder / file).write_bytes((SHIPPED / file).read_bytes())
    return folder


def edit(path: Path, **changes: Any) -> None:
    content = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    path.write_text(json.dumps(content | changes), encoding="utf-8")
