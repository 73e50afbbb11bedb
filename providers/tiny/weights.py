"""Reads the folder of a Llama-style model, and refuses what this runtime does not implement.

Letters in shape comments are those of `providers.tiny.runtime`.
"""

from __future__ import annotations

import hashlib
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, deserialize

from eyechart.providers.base import SetupError
from eyechart.providers.in_process.model_files import is_there, one_line, read_object

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

_HEADER = 1 << 27
"""Bytes of a safetensors header, which may be 100 MB, and of tensors that are not read."""
_LARGEST = (1 << 31) - 1
"""Largest size in a `config.json`."""


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

    @property
    def most_bytes(self) -> int:
        """Bytes of a file of such weights, at most: in float32, with its header."""
        heads = 2 * (self.heads + self.key_heads) * self.head_width
        layer = (heads + 3 * self.feed_forward + 2) * self.hidden
        return 4 * (self.layers * layer + (2 * self.vocabulary + 1) * self.hidden) + _HEADER


def read_config(folder: Path) -> Config:
    """The model's shape.

    Raises:
        SetupError: `config.json` is missing or damaged, or has a setting that is not implemented.
    """
    raw = read_object(folder / "config.json")
    rope = raw.get("rope_parameters") or raw.get("rope_scaling") or {}
    if not isinstance(rope, dict):
        raise SetupError(_not_implemented("rope_parameters", rope))
    for key, value in (raw | rope).items():
        if key in _KNOWN or value in (None, False):
            continue
        if value != _FIXED.get(key):
            raise SetupError(_not_implemented(key, value))

    def whole(name: str, default: int | None = None) -> int:
        value = raw.get(name)
        return _whole(folder, name, default if value is None else value)

    tied = raw.get("tie_word_embeddings") or False
    if not isinstance(tied, bool):
        raise SetupError(_not_implemented("tie_word_embeddings", tied))
    hidden, heads = whole("hidden_size"), whole("num_attention_heads")
    theta = rope.get("rope_theta") or raw.get("rope_theta") or 10_000.0
    config = Config(
        layers=whole("num_hidden_layers"),
        hidden=hidden,
        heads=heads,
        key_heads=whole("num_key_value_heads", heads),
        head_width=whole("head_dim", hidden // heads),
        feed_forward=whole("intermediate_size"),
        vocabulary=whole("vocab_size"),
        window=whole("max_position_embeddings"),
        norm_eps=_number(folder, "rms_norm_eps", raw.get("rms_norm_eps", 1e-6), 0),
        rope_theta=_number(folder, "rope_theta", theta, 1),
        tied=tied,
        eos_ids=_eos_ids(folder, raw),
    )
    if config.head_width % 2:
        raise SetupError(_not_implemented("head_dim", config.head_width))
    if config.heads % config.key_heads:
        raise SetupError(_not_implemented("num_key_value_heads", config.key_heads))
    return config


def _whole(folder: Path, name: str, value: object) -> int:
    """A size in `config.json`; raises `SetupError` if it is missing or is none."""
    if value is None:
        raise SetupError(f"config.json in {str(folder)!r} has no {name!r}; save the model again")
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= _LARGEST:
        raise SetupError(
            f"config.json in {str(folder)!r}: {name} must be a whole number from 1 to "
            f"{_LARGEST:,}, not {one_line(repr(value))}; save the model again"
        )
    return value


def _number(folder: Path, name: str, value: object, low: float) -> float:
    """A setting in `config.json`; raises `SetupError` if it is no finite number above `low`."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not low < value <= sys.float_info.max:  # type: ignore[operator]
        raise SetupError(
            f"config.json in {str(folder)!r}: {name} must be a finite number above {low:g}, "
            f"not {one_line(repr(value))}; save the model again"
        )
    return float(value)  # type: ignore[arg-type]


def _eos_ids(folder: Path, config: Mapping[str, Any]) -> frozenset[int]:
    """End tokens: those of `generation_config.json`, as in transformers, else of `config`."""
    path = folder / "generation_config.json"
    token = read_object(path).get("eos_token_id") if is_there(path) else None
    if token is None:
        path = folder / "config.json"
        token = config.get("eos_token_id")
    if token is None:
        return frozenset()
    ids = token if isinstance(token, list) else [token]
    if not all(isinstance(one, int) and not isinstance(one, bool) for one in ids):
        raise SetupError(
            f"{path.name} in {str(folder)!r}: eos_token_id must be a whole number or a list of "
            f"such, not {one_line(repr(token))}; save the model again"
        )
    return frozenset(ids)


def _not_implemented(key: str, value: object) -> str:
    return (
        f"config.json sets {one_line(key)} to {one_line(repr(value))}, which the embedded runtime"
        " does not implement; serve this model with vLLM and use the provider vllm"
    )


class Tensors:
    """The tensors of a safetensors file, as float32."""

    def __init__(self, path: Path, config: Config | None = None) -> None:
        """Refuses a file that is larger than weights of `config` can be before it is read."""
        try:
            size = path.stat().st_size
            if config is not None and size > config.most_bytes:
                raise SetupError(
                    f"{str(path)!r} has {size:,} bytes, but weights of the shape in config.json "
                    f"have at most {config.most_bytes:,}; save both files again"
                )
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
        if not np.isfinite(values).all():
            raise SetupError(f"{name!r} has numbers that are not finite; save the model again")
        self.parameters += values.size
        self.unread.discard(name)
        return values.reshape(shape)

    def check_all_read(self) -> None:
        """Raises `SetupError` if the model has a tensor that was not taken."""
        if unread := self.unread - {"lm_head.weight"}:
            raise SetupError(
                f"model.safetensors holds {one_line(repr(min(unread)))}, which the embedded runtime"
                " does not implement; serve this model with vLLM and use the provider vllm"
            )


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


def rotations(config: Config, count: int) -> NDArray[np.complex64]:
    """(count, D/2): the rotary embedding of each position, as complex factors of pairs.

    Angles are computed in float32, as in training.
    """
    exponents = np.arange(0, config.head_width, 2, dtype=np.float32) / config.head_width
    frequencies: Array = (1.0 / config.rope_theta**exponents).astype(np.float32)
    angles = np.arange(count, dtype=np.float32)[:, None] * frequencies
    factors: NDArray[np.complex64] = np.empty(angles.shape, np.complex64)
    factors.real, factors.imag = np.cos(angles), np.sin(angles)
    return factors
