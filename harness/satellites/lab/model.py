"""The model of the laboratory, as a model of transformers: one class for all variants.

The parts that a variant does not change are those of Llama, under the same names: with rotary
positions and softmax a folder has the weights of a `LlamaForCausalLM`.

Letters in shape comments: B rows, S tokens of this pass, T tokens with those that are kept, H
heads, D width of a head, C width, V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import nn
from transformers import AutoConfig, AutoModelForCausalLM, DynamicCache, PretrainedConfig
from transformers.generation import GenerationMixin
from transformers.modeling_outputs import BaseModelOutputWithPast, CausalLMOutputWithPast
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS, PreTrainedModel

from eyechart.harness.satellites.lab.mechanisms.positions import Rotary, turned
from eyechart.harness.satellites.lab.variant import Variant

MODEL_TYPE = "eyechart_lab"
_EPSILON = 1e-6
_INNER = 8 / 3
"""Width of the feed-forward block by the width of the model, as in Llama."""


class LabConfig(PretrainedConfig):
    """The `config.json` of a trained variant."""

    model_type = MODEL_TYPE
    keys_to_ignore_at_inference: ClassVar[list[str]] = ["past_key_values"]

    def __init__(
        self,
        variant: dict[str, Any] | None = None,
        vocab_size: int = 1,
        trained_window: int = 2,
        **others: Any,
    ) -> None:
        """`variant` is as in a study's file; `trained_window` is the number of tokens of the
        longest text of the training.
        """
        read = Variant.model_validate(variant or {})
        self.variant = read.model_dump(mode="json")
        self.vocab_size = vocab_size
        self.trained_window = trained_window
        self.hidden_size = read.width
        self.num_hidden_layers = read.layers
        self.num_attention_heads = read.heads
        self.num_key_value_heads = read.heads
        self.head_dim = read.width // read.heads
        self.intermediate_size = read.inner or round(read.width * _INNER)
        self.initializer_range = 0.02
        self.use_cache = True
        others.setdefault("tie_word_embeddings", True)
        super().__init__(**others)

    @property
    def read(self) -> Variant:
        """The variant."""
        return Variant.model_validate(self.variant)


def config_of(
    variant: Variant, *, vocabulary: int, trained_window: int, bos: int, eos: int, pad: int
) -> LabConfig:
    """The config of a variant; `trained_window` is the number of tokens of the longest text of the
    training. A stretched variant has the weights of the one that was trained, and this config.
    """
    return LabConfig(
        variant.model_dump(mode="json"),
        vocab_size=vocabulary,
        trained_window=trained_window,
        bos_token_id=bos,
        eos_token_id=eos,
        pad_token_id=pad,
        architectures=[LabForCausalLM.__name__],
    )


@dataclass(slots=True)
class Pass:
    """What all layers of one pass share."""

    positions: torch.Tensor
    """(B, S): positions of the tokens of this pass."""
    mask: torch.Tensor | None
    """(B, 1, S, T): what may be attended to, or what is added to the scores; `None` for all that
    is not later."""
    angles: tuple[torch.Tensor, torch.Tensor] | None
    """(B, S, D) cosines and sines of rotary positions."""
    past: Any
    weights: list[torch.Tensor] | None
    """Gets the weights (B, H, S, T) of each layer; `None` if nobody wants them."""


class LabAttention(nn.Module):
    """Attention of one layer."""

    is_causal = True

    def __init__(self, config: LabConfig, layer_idx: int) -> None:
        super().__init__()
        self.config, self.layer_idx = config, layer_idx
        self.head_dim = config.head_dim
        self.scaling = self.head_dim**-0.5
        width, inner = config.hidden_size, config.num_attention_heads * self.head_dim
        self.q_proj = nn.Linear(width, inner, bias=False)
        self.k_proj = nn.Linear(width, inner, bias=False)
        self.v_proj = nn.Linear(width, inner, bias=False)
        self.o_proj = nn.Linear(inner, width, bias=False)

    def forward(self, states: torch.Tensor, now: Pass) -> torch.Tensor:
        """(B, S, C)."""
        shape = (*states.shape[:-1], -1, self.head_dim)
        query, key, value = (
            project(states).view(shape).transpose(1, 2)
            for project in (self.q_proj, self.k_proj, self.v_proj)
        )
        if now.angles is not None:
            query, key = (turned(one, now.angles) for one in (query, key))
        if now.past is not None:
            key, value = now.past.update(key, value, self.layer_idx)
        name = self.config._attn_implementation  # noqa: SLF001  transformers' own way
        interface = ALL_ATTENTION_FUNCTIONS.get_interface(name, _eager)
        if now.weights is not None:
            interface = _eager
        mixed, weights = interface(self, query, key, value, now.mask, scaling=self.scaling)
        if now.weights is not None:
            now.weights.append(weights)
        output: torch.Tensor = self.o_proj(mixed.reshape(*states.shape[:-1], -1))
        return output


def _eager(
    _module: Any, query: Any, key: Any, value: Any, mask: Any, scaling: float, **_others: Any
) -> tuple[torch.Tensor, torch.Tensor]:
    """(B, S, H, D) weighted values and (B, H, S, T) weights."""
    scores = query @ key.transpose(2, 3) * scaling
    if mask is None:
        mask = _causal(query.shape[2], key.shape[2], query.device)
    scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    weights = torch.softmax(scores.float(), dim=-1).to(value.dtype)
    return (weights @ value).transpose(1, 2), weights


def _causal(count: int, end: int, device: Any) -> torch.Tensor:
    """(1, 1, count, end): which of the tokens each of the last ones may attend to."""
    places = torch.arange(end, device=device)
    return (places[end - count :, None] >= places)[None, None]


class LabMLP(nn.Module):
    """The feed-forward block of Llama."""

    def __init__(self, config: LabConfig) -> None:
        super().__init__()
        width, inner = config.hidden_size, config.intermediate_size
        self.gate_proj = nn.Linear(width, inner, bias=False)
        self.up_proj = nn.Linear(width, inner, bias=False)
        self.down_proj = nn.Linear(inner, width, bias=False)

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """(B, S, C)."""
        inner = nn.functional.silu(self.gate_proj(states)) * self.up_proj(states)
        output: torch.Tensor = self.down_proj(inner)
        return output


class LabLayer(nn.Module):
    """Attention and the feed-forward block, each after a norm."""

    def __init__(self, config: LabConfig, layer_idx: int) -> None:
        super().__init__()
        self.self_attn = LabAttention(config, layer_idx)
        self.mlp = LabMLP(config)
        self.input_layernorm = nn.RMSNorm(config.hidden_size, eps=_EPSILON)
        self.post_attention_layernorm = nn.RMSNorm(config.hidden_size, eps=_EPSILON)

    def forward(self, hidden_states: torch.Tensor, now: Pass) -> torch.Tensor:
        """(B, S, C)."""
        hidden_states = hidden_states + self.self_attn(self.input_layernorm(hidden_states), now)
        return hidden_states + self.mlp(self.post_attention_layernorm(hidden_states))


class LabPreTrainedModel(PreTrainedModel):
    """What transformers must know of these models."""

    config_class = LabConfig
    base_model_prefix = "model"
    _supports_sdpa = True
    _supports_attention_backend = True

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        super()._init_weights(module)
        if isinstance(module, Rotary):
            module.reset()


class LabModel(LabPreTrainedModel):
    """The layers between the embeddings and the logits."""

    def __init__(self, config: LabConfig) -> None:
        super().__init__(config)
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(
            [LabLayer(config, number) for number in range(config.num_hidden_layers)]
        )
        self.norm = nn.RMSNorm(config.hidden_size, eps=_EPSILON)
        self.rotary_emb = Rotary.of(config)
        self.post_init()

    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        *,
        attention_mask: torch.Tensor | None = None,
        position_ids: torch.Tensor | None = None,
        past_key_values: Any = None,
        inputs_embeds: torch.Tensor | None = None,
        use_cache: bool | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        **_others: Any,
    ) -> BaseModelOutputWithPast:
        """`attention_mask` (B, T) is 1 for a token and 0 for padding, wherever it stands."""
        states = self.embed_tokens(input_ids) if inputs_embeds is None else inputs_embeds
        if use_cache and past_key_values is None:
            past_key_values = DynamicCache()
        kept = 0 if past_key_values is None else int(past_key_values.get_seq_length())
        count, device = states.shape[1], states.device
        if position_ids is None:
            position_ids = torch.arange(kept, kept + count, device=device)[None]
            if attention_mask is not None:
                position_ids = (attention_mask.long().cumsum(-1) - 1).clamp(min=0)[:, -count:]
        mask = None
        if attention_mask is not None and not bool(attention_mask.all()):
            mask = _causal(count, kept + count, device) & (attention_mask != 0)[:, None, None]
        elif kept and count > 1:
            mask = _causal(count, kept + count, device)
        angles = None if self.rotary_emb is None else self.rotary_emb(position_ids)
        weights: list[torch.Tensor] | None = [] if output_attentions else None
        now = Pass(position_ids, mask, angles, past_key_values, weights)
        every = [states]
        for layer in self.layers:
            states = layer(states, now)
            every.append(states)
        states = every[-1] = self.norm(states)
        return BaseModelOutputWithPast(
            last_hidden_state=states,
            past_key_values=past_key_values,
            hidden_states=tuple(every) if output_hidden_states else None,
            attentions=None if weights is None else tuple(weights),
        )


class LabForCausalLM(LabPreTrainedModel, GenerationMixin):
    """A model of the laboratory, ready to be trained, asked and probed."""

    _tied_weights_keys: ClassVar[dict[str, str]] = {"lm_head.weight": "model.embed_tokens.weight"}

    def __init__(self, config: LabConfig) -> None:
        super().__init__(config)
        self.model = LabModel(config)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        self.post_init()

    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        *,
        attention_mask: torch.Tensor | None = None,
        position_ids: torch.Tensor | None = None,
        past_key_values: Any = None,
        inputs_embeds: torch.Tensor | None = None,
        labels: torch.Tensor | None = None,
        use_cache: bool | None = None,
        logits_to_keep: int = 0,
        **others: Any,
    ) -> CausalLMOutputWithPast:
        """Logits (B, S, V), or of the last `logits_to_keep` tokens; with `labels` (B, S) the mean
        loss of the next tokens, -100 left out.
        """
        output = self.model(
            input_ids,
            attention_mask=attention_mask,
            position_ids=position_ids,
            past_key_values=past_key_values,
            inputs_embeds=inputs_embeds,
            use_cache=use_cache,
            **others,
        )
        logits = self.lm_head(output.last_hidden_state[:, -logits_to_keep:])
        loss = None
        if labels is not None:
            loss = nn.functional.cross_entropy(
                logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten()
            )
        return CausalLMOutputWithPast(
            loss=loss,
            logits=logits,
            past_key_values=output.past_key_values,
            hidden_states=output.hidden_states,
            attentions=output.attentions,
        )


def register() -> None:
    """Makes transformers know the architecture."""
    AutoConfig.register(MODEL_TYPE, LabConfig, exist_ok=True)
    AutoModelForCausalLM.register(LabConfig, LabForCausalLM, exist_ok=True)
