"""Small Llama models with random weights."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

BASE: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "attention_bias": False,
    "attention_dropout": 0.0,
    "bos_token_id": 1,
    "dtype": "float32",
    "eos_token_id": None,
    "head_dim": 8,
    "hidden_act": "silu",
    "hidden_size": 32,
    "initializer_range": 0.02,
    "intermediate_size": 48,
    "max_position_embeddings": 1024,
    "mlp_bias": False,
    "model_type": "llama",
    "num_attention_heads": 4,
    "num_hidden_layers": 3,
    "num_key_value_heads": 2,
    "pad_token_id": None,
    "pretraining_tp": 1,
    "rms_norm_eps": 1e-5,
    "rope_parameters": {"rope_theta": 5000.0, "rope_type": "default"},
    "tie_word_embeddings": True,
    "transformers_version": "5.0.0",
    "use_cache": True,
    "vocab_size": 60,
}


def shapes(config: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    width, forward, head = config["hidden_size"], config["intermediate_size"], config["head_dim"]
    queries = config["num_attention_heads"] * head
    keys = config["num_key_value_heads"] * head
    found: dict[str, tuple[int, ...]] = {
        "model.embed_tokens.weight": (config["vocab_size"], width),
        "model.norm.weight": (width,),
    }
    if not config["tie_word_embeddings"]:
        found["lm_head.weight"] = (config["vocab_size"], width)
    for layer in range(config["num_hidden_layers"]):
        for name, shape in {
            "input_layernorm": (width,),
            "post_attention_layernorm": (width,),
            "self_attn.q_proj": (queries, width),
            "self_attn.k_proj": (keys, width),
            "self_attn.v_proj": (keys, width),
            "self_attn.o_proj": (width, queries),
            "mlp.gate_proj": (forward, width),
            "mlp.up_proj": (forward, width),
            "mlp.down_proj": (width, forward),
        }.items():
            found[f"model.layers.{layer}.{name}.weight"] = shape
    return found


def write_model(folder: Path, seed: int = 0, dtype: str = "float32", **changes: Any) -> Path:
    """Writes a model folder: weights large enough that a wrong detail shows in the logits."""
    config = {key: value for key, value in (BASE | changes).items() if value != "drop"}
    draw = np.random.default_rng(seed)
    tensors = {
        name: (
            draw.uniform(0.5, 1.5, shape)
            if len(shape) == 1
            else draw.normal(0, 2.0 / shape[1] ** 0.5, shape)
        ).astype(dtype)
        for name, shape in shapes(BASE | changes).items()
    }
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps(config))
    return folder
