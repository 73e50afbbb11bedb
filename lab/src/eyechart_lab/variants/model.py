"""The model of the laboratory, as a model of transformers: one class for all variants.

The parts that a variant does not change are those of Llama, under the same names: with rotary
positions and softmax a folder has the weights of a `LlamaForCausalLM`.

Letters in shape comments: B rows, S tokens of this pass, T tokens with those that are kept, H
heads, D width of a head, C width, V vocabulary.
"""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

import torch
from torch import nn
from transformers import AutoConfig, AutoModelForCausalLM, DynamicCache
from transformers.cache_utils import DynamicLayer
from transformers.generation import GenerationMixin
from transformers.modeling_outputs import BaseModelOutputWithPast, CausalLMOutputWithPast
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS, PreTrainedModel

from eyechart_lab.variants.choices import (
    GatedHeads,
    Randomised,
    Relative,
    Strided,
    Window,
)
from eyechart_lab.variants.config import MODEL_TYPE, LabConfig
from eyechart_lab.variants.mechanisms.attention import (
    Difference,
    Pass,
    Weigher,
    beyond_sinks,
    in_stride,
    in_window,
    is_plain,
    times_of,
)
from eyechart_lab.variants.mechanisms.biases import KerpleBias, bias_of
from eyechart_lab.variants.mechanisms.draws import are_drawn, asked, drawn_for
from eyechart_lab.variants.mechanisms.places import Move, RowPositions
from eyechart_lab.variants.mechanisms.positions import (
    AddedPositions,
    RelativeScores,
    Rotary,
    added_of,
    rotary_of,
    turned,
)
from eyechart_lab.variants.mechanisms.stretch import distances_of, grows, moves_of
from eyechart_lab.variants.variant import encoding_of

_EPSILON = 1e-6


class LabAttention(nn.Module):
    """Attention of one layer."""

    is_causal = True

    def __init__(self, config: LabConfig, layer_idx: int) -> None:
        super().__init__()
        self.config, self.layer_idx = config, layer_idx
        self.head_dim = config.head_dim
        self._is_plain = is_plain(config.read)
        self.weigher = Weigher(config.read, layer_idx)
        width, inner = config.hidden_size, config.num_attention_heads * self.head_dim
        self.q_proj = nn.Linear(width, inner, bias=False)
        self.k_proj = nn.Linear(width, inner, bias=False)
        self.v_proj = nn.Linear(width, inner, bias=False)
        self.o_proj = nn.Linear(inner, width, bias=False)
        gate = config.read.gate
        self.gate: nn.Linear | None = None
        if isinstance(gate, GatedHeads):
            gates = inner if gate.of == "numbers" else config.num_attention_heads
            self.gate = nn.Linear(width, gates, bias=False)

    def forward(self, states: torch.Tensor, now: Pass) -> torch.Tensor:
        """(B, S, C)."""
        shape = (*states.shape[:-1], -1, self.head_dim)
        query, key, value = (
            project(states).view(shape).transpose(1, 2)
            for project in (self.q_proj, self.k_proj, self.v_proj)
        )
        if now.angles is not None:
            query, key = (turned(one, now.angles) for one in (query, key))
        if now.times is not None:
            query = query * now.times.to(query.dtype)
        if self.weigher.delta is not None:
            query, key = self.weigher.delta.with_strength(states, query, key)
        if now.past is not None:
            key, value = now.past.update(key, value, self.layer_idx)
        mixed = self.weigher.scaled(self._mixed(query, key, value, now))
        if self.gate is not None:  # Qiu et al. 2025, arXiv 2505.06708
            heads = mixed.shape[2]
            mixed = mixed * torch.sigmoid(self.gate(states)).unflatten(-1, (heads, -1))
        output: torch.Tensor = self.o_proj(mixed.reshape(*states.shape[:-1], -1))
        return output

    def _mixed(self, query: Any, key: Any, value: Any, now: Pass) -> torch.Tensor:
        """(B, S, H, D): weighted values. Weights that are no plain softmax are computed here, or by
        an attention of others that takes `weigh` and watches them.
        """
        name = self.config._attn_implementation  # noqa: SLF001  transformers' own way
        is_plain = self._is_plain and not now.farther
        is_ours = name in (None, "eager") or (name == "sdpa" and not is_plain)
        if is_ours or now.weights is not None:
            weights = self.weigher(query, key, now)
            if now.weights is not None:
                now.weights.append(weights)
            return (weights @ value).transpose(1, 2)
        given: dict[str, Any] = {"scaling": self.weigher.scaling}
        if not is_plain:
            given["weigh"] = partial(self.weigher.forward, now=now)
            given["shares"] = self.weigher.are_shares
        mask = now.mask if is_plain else None
        computed = ALL_ATTENTION_FUNCTIONS[name](self, query, key, value, mask, **given)
        mixed: torch.Tensor = computed[0]
        return mixed


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
        if isinstance(module, Rotary | KerpleBias | Difference | AddedPositions | RelativeScores):
            module.reset()


class LabModel(LabPreTrainedModel):
    """The layers between the embeddings and the logits."""

    def __init__(self, config: LabConfig) -> None:
        super().__init__(config)
        self._variant = config.read
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(
            [LabLayer(config, number) for number in range(config.num_hidden_layers)]
        )
        self.norm = nn.RMSNorm(config.hidden_size, eps=_EPSILON)
        self.rotary_emb = rotary_of(self._variant, config.trained_window)
        self.bias = bias_of(self._variant)
        self.added = added_of(self._variant)
        self._distances = distances_of(self._variant.stretch, config.trained_window)
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
        prompt_tokens: torch.Tensor | None = None,
        **_others: Any,
    ) -> BaseModelOutputWithPast:
        """`attention_mask` (B, T) is 1 for a token and 0 for padding, wherever it stands.
        `position_ids` (B, S) are the places of tokens in their rows, from 0; those of the mask if
        not given. In the training they are what `draws` draws, if the variant has drawn positions,
        and are drawn if not given. `prompt_tokens` (B,) are the tokens of a prompt, from which
        randomised positions follow when the model is asked; those of this pass if not given.
        """
        states = self.embed_tokens(input_ids) if inputs_embeds is None else inputs_embeds
        if use_cache and past_key_values is None:
            past_key_values = DynamicCache()
        kept = 0 if past_key_values is None else int(past_key_values.get_seq_length())
        places = RowPositions.of(states.shape[1], kept, attention_mask, states.device)
        numbers = self._numbers(len(states), places, position_ids, prompt_tokens, past_key_values)
        if numbers is not None or position_ids is None:
            position_ids = places.queries
        if self.added is not None:
            states = self.added(states, _chosen(numbers, position_ids))
        now = self._pass(numbers, position_ids, places)
        now.past = past_key_values
        now.weights = [] if output_attentions else None
        every = [states]
        for layer in self.layers:
            states = layer(states, now)
            every.append(states)
        states = every[-1] = self.norm(states)
        return BaseModelOutputWithPast(
            last_hidden_state=states,
            past_key_values=past_key_values,
            hidden_states=tuple(every) if output_hidden_states else None,
            attentions=None if now.weights is None else tuple(now.weights),
        )

    def drawn(self, tokens: torch.Tensor, count: int) -> torch.Tensor | None:
        """(B, count): what a step of the training draws for rows of `tokens` (B,) tokens; `None` if
        this variant has no drawn positions.
        """
        positions = self._variant.positions
        if not are_drawn(positions):
            return None
        return drawn_for(positions, tokens, count, self.config.trained_window)

    def _numbers(
        self, rows: int, places: RowPositions, given: Any, prompt: Any, past: Any
    ) -> torch.Tensor | None:
        """(B, L): the positions of the places 0, 1, …, or the distances of so many places, where
        the variant draws them; `None` elsewhere. When it is asked they depend on the length of the
        prompt, which is kept with its keys and values.
        """
        positions, count = self._variant.positions, places.queries.shape[1]
        if self.training:
            is_given = given is not None and are_drawn(positions)
            return given if is_given else self.drawn(places.tokens.expand(rows), count)
        if not isinstance(positions, Randomised):
            return None
        kept = self._kept_tokens(past)
        if kept is None:
            kept = (places.tokens if prompt is None else prompt).expand(rows)
        if past is not None:
            of_tokens = kept.float()[:, None, None, None].expand(-1, 1, count, 1)
            past.update(of_tokens, of_tokens, self.config.num_hidden_layers)
        return asked(positions, kept, int(places.keys.max()) + 1)

    def _kept_tokens(self, past: Any) -> torch.Tensor | None:
        """(B,): the tokens of the prompt of each row, kept behind the layers."""
        if past is None:
            return None
        while len(past.layers) <= self.config.num_hidden_layers:
            past.layers.append(DynamicLayer())
        keys = past.layers[-1].keys
        return None if keys is None else keys[:, 0, -1, 0].round().long()

    def _pass(self, numbers: torch.Tensor | None, own: torch.Tensor, places: RowPositions) -> Pass:
        """What the layers of this pass share; `own` (B, S) are the places of its tokens."""
        variant = self._variant
        attention, seen = variant.attention, places.seen
        moves: list[Move] = []
        if isinstance(attention, Window):
            seen = seen & in_window(attention, places.queries, places.keys)
            moves = beyond_sinks(attention, places.queries, places.keys)
        elif isinstance(attention, Strided):
            seen = seen & in_stride(attention, places.queries, places.keys)
        is_causal = places.is_causal and not isinstance(attention, Window | Strided)
        now = Pass(seen, is_causal, places.is_token)
        if self.rotary_emb is not None:
            now.angles = self.rotary_emb(_chosen(numbers, own))
            moves += moves_of(self._distances, places)
            now.farther = [self.rotary_emb.farther(move) for move in moves]
            if grows(variant.stretch):
                now.farther += self.rotary_emb.grown(places)
        if self.bias is not None or encoding_of(variant.positions) == Relative.name:
            offsets = places.offsets
            for move in moves:
                offsets = offsets + move.queries[:, :, None] * move.where[:, 0]
            offsets = offsets.clamp(min=0)
            if self.bias is not None:
                now.bias = self.bias(_chosen(numbers, offsets)).to(self.dtype)
            else:
                every = torch.arange(offsets.shape[-1], device=offsets.device)[None]
                now.distances = every if numbers is None else numbers
                now.offsets = offsets
        now.times = times_of(variant, seen, self.config.trained_window)
        return now


def _chosen(numbers: torch.Tensor | None, index: torch.Tensor) -> torch.Tensor:
    """The numbers (B, L) at an index (B, …); the index itself without numbers."""
    if numbers is None:
        return index
    rows = max(len(numbers), len(index))
    flat = index.flatten(1).expand(rows, -1)
    return numbers.expand(rows, -1).gather(1, flat).unflatten(1, index.shape[1:])


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
