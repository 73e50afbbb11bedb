"""Reads the folder of a Llama-style model, and refuses what this runtime does not implement.

Letters in shape comments are those of `providers.tiny.runtime`.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, deserialize

from providers.base import SetupError
from providers.intervention import Intervention

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

Array: TypeAlias = NDArray[np.float32]
Indices: TypeAlias = NDArray[np.intp]

_FIXED: Mapping[str, object] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_act": "silu",
    "pretraining_tp": 1,
    "rope_type": "default",
    "type": "default",
}
"""Settings of which this runtime implements only one value."""
_READ = """
    num_hidden_layers hidden_size num_attention_heads num_key_value_heads head_dim vocab_size
    intermediate_size max_position_embeddings rms_norm_eps rope_theta rope_parameters rope_scaling
    tie_word_embeddings eos_token_id
"""
_WITHOUT_EFFECT = """
    attention_dropout bos_token_id dtype initializer_range pad_token_id torch_dtype
    transformers_version use_cache _name_or_path
"""
_KNOWN = frozenset((_READ + _WITHOUT_EFFECT).split())
"""Settings that are read, or that do not change a reply. Others are refused unless they are off."""


@dataclass(frozen=True, slots=True)
class Config:
    """The shape of a model, and the tokens that end a reply."""

    layers: int
    hidden: int
    heads: int
    key_heads: int
    head_width: int
    feed_forward: int
    vocabulary: int
    window: int
    """Most tokens of prompt and reply together."""
    norm_eps: float
    rope_theta: float
    tied: bool
    """Whether the output head is the embedding table."""
    eos_ids: frozenset[int]

    @property
    def cache_bytes_per_token(self) -> int:
        """Bytes of keys and values of one token, in float32."""
        return 2 * 4 * self.layers * self.key_heads * self.head_width


def read_config(folder: Path) -> Config:
    """The model's shape.

    Raises:
        SetupError: `config.json` is missing or damaged, or has a setting that is not implemented.
    """
    raw = _read_json(folder / "config.json")
    rope = raw.get("rope_parameters") or raw.get("rope_scaling") or {}
    for key, value in (raw | rope).items():
        if key in _KNOWN or value in (None, False):
            continue
        if value != _FIXED.get(key):
            raise SetupError(_not_implemented(key, value))
    try:
        config = Config(
            layers=raw["num_hidden_layers"],
            hidden=raw["hidden_size"],
            heads=raw["num_attention_heads"],
            key_heads=raw.get("num_key_value_heads") or raw["num_attention_heads"],
            head_width=raw.get("head_dim") or raw["hidden_size"] // raw["num_attention_heads"],
            feed_forward=raw["intermediate_size"],
            vocabulary=raw["vocab_size"],
            window=raw["max_position_embeddings"],
            norm_eps=raw.get("rms_norm_eps", 1e-6),
            rope_theta=rope.get("rope_theta") or raw.get("rope_theta") or 10_000.0,
            tied=raw.get("tie_word_embeddings", False),
            eos_ids=_eos_ids(folder, raw),
        )
    except KeyError as exc:
        raise SetupError(
            f"config.json in {str(folder)!r} has no {exc}; save the model again"
        ) from exc
    if config.head_width % 2 or config.heads % config.key_heads:
        raise SetupError(_not_implemented("num_key_value_heads", config.key_heads))
    return config


def _eos_ids(folder: Path, config: Mapping[str, Any]) -> frozenset[int]:
    """End tokens: those of `generation_config.json`, as in transformers, else of `config`."""
    path = folder / "generation_config.json"
    token = _read_json(path).get("eos_token_id") if path.exists() else None
    if token is None:
        token = config.get("eos_token_id")
    if token is None:
        return frozenset()
    return frozenset(token if isinstance(token, list) else [token])


def _read_json(path: Path) -> dict[str, Any]:
    """The JSON object in a file; raises `SetupError` if there is none."""
    try:
        content = json.loads(path.read_bytes())
    except FileNotFoundError as exc:
        raise SetupError(
            f"no {path.name} in {str(path.parent)!r}; give the folder of a saved model"
        ) from exc
    except ValueError as exc:
        raise SetupError(f"{str(path)!r} is not JSON ({exc}); save the model again") from exc
    if not isinstance(content, dict):
        raise SetupError(f"{str(path)!r} holds no JSON object; save the model again")
    return content


def _not_implemented(key: str, value: object) -> str:
    return (
        f"config.json sets {key} to {value!r}, which the embedded runtime does not implement;"
        " serve this model with vLLM and use the provider vllm"
    )


class Tensors:
    """The tensors of a safetensors file, as float32."""

    def __init__(self, path: Path) -> None:
        try:
            content = path.read_bytes()
            self._tensors = dict(deserialize(content))  # type: ignore[no-untyped-call]  # has no types
        except FileNotFoundError as exc:
            raise SetupError(
                f"no {path.name} in {str(path.parent)!r}; give the folder of a saved model"
            ) from exc
        except SafetensorError as exc:
            raise SetupError(f"{str(path)!r} is damaged ({exc}); save the model again") from exc
        self.sha256 = hashlib.sha256(content).hexdigest()
        self.parameters = 0
        """Number of parameters in the tensors that were taken."""
        self.unread = {name for name in self._tensors if not name.endswith("rotary_emb.inv_freq")}
        """Names of the tensors that were not taken yet."""

    def take(self, name: str, *shape: int) -> Array:
        """The tensor `name`; raises `SetupError` if it is missing or does not have `shape`."""
        if name not in self._tensors:
            raise SetupError(f"model.safetensors has no {name!r}; is this a Llama model?")
        tensor = self._tensors[name]
        if tuple(tensor["shape"]) != shape:
            raise SetupError(
                f"{name!r} has shape {tuple(tensor['shape'])}, but config.json says {shape};"
                " save both files again"
            )
        values: Array
        match tensor["dtype"]:
            case "F32":
                values = np.frombuffer(tensor["data"], "<f4")
            case "F16":
                values = np.frombuffer(tensor["data"], "<f2").astype(np.float32)
            case "BF16":
                upper = np.frombuffer(tensor["data"], "<u2").astype(np.uint32)
                values = (upper << 16).view(np.float32)
            case dtype:
                raise SetupError(f"{name!r} is {dtype}; save the model as F32, F16 or BF16")
        self.parameters += values.size
        self.unread.discard(name)
        return values.reshape(shape)


@dataclass(frozen=True, slots=True)
class Layer:
    """The matrices of one layer, input dimension first.

    The weights of each norm are multiplied into the matrix that follows it.
    """

    qkv: Array  # (C, (H + 2K) * D)
    out: Array  # (H * D, C)
    gate_up: Array  # (C, 2F)
    down: Array  # (F, C)


def read_layer(tensors: Tensors, config: Config, index: int) -> Layer:
    """The matrices of layer `index`; raises `SetupError` if a tensor is missing or does not fit."""

    def take(name: str, *shape: int) -> Array:
        return tensors.take(f"model.layers.{index}.{name}.weight", *shape)

    def paired(weights: Array) -> Array:
        """Places rows i and i + D/2 of each head side by side, as parts of one complex number."""
        halves = weights.reshape(-1, 2, config.head_width // 2, config.hidden)
        return halves.swapaxes(1, 2).reshape(weights.shape)

    width, keys = config.hidden, config.key_heads * config.head_width
    queries = config.heads * config.head_width
    scale = np.float32(config.head_width**-0.5)
    q = paired(take("self_attn.q_proj", queries, width)) * scale
    k = paired(take("self_attn.k_proj", keys, width))
    v = take("self_attn.v_proj", keys, width)
    gate = take("mlp.gate_proj", config.feed_forward, width)
    up = take("mlp.up_proj", config.feed_forward, width)
    before_attention = take("input_layernorm", width)
    before_feed_forward = take("post_attention_layernorm", width)
    return Layer(
        qkv=input_first(np.concatenate([q, k, v]) * before_attention),
        out=input_first(take("self_attn.o_proj", width, queries)),
        gate_up=input_first(np.concatenate([gate, up]) * before_feed_forward),
        down=input_first(take("mlp.down_proj", width, config.feed_forward)),
    )


def input_first(weights: Array) -> Array:
    """The transpose, copied in row-major order."""
    return np.ascontiguousarray(weights.T)


def rotations(config: Config, intervention: Intervention) -> NDArray[np.complex64]:
    """(window, D/2): the rotary embedding of each position, as complex factors of pairs.

    Angles are computed in float32, as in training.
    """
    frequencies = intervention.frequencies(config.rope_theta, config.head_width, config.window)
    angles = np.arange(config.window, dtype=np.float32)[:, None] * frequencies
    factors: NDArray[np.complex64] = np.empty(angles.shape, np.complex64)
    factors.real, factors.imag = np.cos(angles), np.sin(angles)
    if intervention.rotary_size != 1:
        factors *= np.float32(intervention.rotary_size)
    return factors
