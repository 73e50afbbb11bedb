"""The training of the embedded model, in the steps of the laboratory.

Each step draws its examples from a random stream of its own. The loss has two parts: the reply, and
the count so far, which is read from inner layers at each symbol. The lengths of rows grow from 8
symbols to 40.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from tokenizers import Tokenizer
from torch.nn.utils.rnn import pad_sequence
from transformers import LlamaConfig, LlamaForCausalLM

from eyechart_lab.variants.embedded.examples import Example, batch
from eyechart_lab.variants.tokens import BOS, EOS, opened
from eyechart_lab.variants.training.data import IGNORED
from eyechart_lab.variants.training.order import TrainingOrder
from eyechart_lab.variants.training.steps import PlainSteps
from eyechart_lab.variants.variant import Variant

WINDOW = 4096
"""Most tokens of prompt and reply together."""
SHORTEST, LONGEST = 8, 40
"""Symbols in the longest row of the first examples, and of the last ones."""
_PART = 16
"""Examples in one forward pass."""
_COUNT_LOSS = 0.5
"""Weight of the loss of the count so far; the loss of the reply has weight 1."""


class EmbeddedTraining:
    """The embedded model in training, with its examples; see `train.StudyTraining`."""

    window = WINDOW

    def __init__(self, order: TrainingOrder, tokenizer: Tokenizer, device: str) -> None:
        self._order, self._tokenizer, self._device = order, tokenizer, device
        torch.manual_seed(order.seed)
        self.model = new_model(order.variant, tokenizer.get_vocab_size()).to(device)
        self._probes = new_probes(order.variant.width).to(device)
        self.learned = torch.nn.ModuleList([self.model, self._probes])

    def steps(self, optimizer: Any) -> PlainSteps:
        """The steps of the training."""
        return PlainSteps(self.learned, optimizer, self._order, self.loss_at)

    def loss_at(self, step: int) -> torch.Tensor:
        """The mean loss of a step; examples of similar length go together, which saves padding."""
        training = self._order.training
        rng = random.Random(f"train|{self._order.seed}|{step}")
        grown = min(1.0, step / (training.growth * training.steps))
        longest = round(SHORTEST + (LONGEST - SHORTEST) * grown)
        drawn = batch(rng, training.rows, longest)
        drawn.sort(key=lambda example: len(example.prompt) + len(example.reply))
        parts = [drawn[at : at + _PART] for at in range(0, len(drawn), _PART)]
        batches = [encode(self._tokenizer, part, self._device) for part in parts]
        return loss_of(self.model, self._probes, batches)


def new_probes(width: int) -> torch.nn.ModuleList:
    """Two linear probes of inner layers at each symbol: is it counted, and the count so far.

    They are used only in the training. Without them the model learns to count from only one number
    for each row, and it never learns to count words in a sentence.
    """
    return torch.nn.ModuleList([torch.nn.Linear(width, 2), torch.nn.Linear(width, LONGEST + 1)])


def probe_loss(
    probes: torch.nn.ModuleList, hidden: Sequence[torch.Tensor], batch: TrainingBatch
) -> torch.Tensor:
    """Sum of the probes' cross-entropy over all marks.

    `hidden` has one tensor [B, T, D] for each layer, after that of the embeddings. Whether a symbol
    is counted is read two layers before the last one; the count so far, one layer before it.
    """
    row, place = batch.marked
    layers = len(hidden) - 1
    loss = torch.nn.functional.cross_entropy
    counted = probes[0](hidden[max(1, layers - 2)][row, place])  # [M, 2]
    so_far = probes[1](hidden[max(1, layers - 1)][row, place])  # [M, longest + 1]
    total = loss(counted, batch.counted, reduction="sum")
    return total + loss(so_far, batch.so_far, reduction="sum")


class TrainingBatch(NamedTuple):
    """Examples as tensors: [B, T], padded on the right, and [M] for the marks of all rows."""

    ids: torch.Tensor
    labels: torch.Tensor
    """The reply and <eos>; `IGNORED` elsewhere."""
    marked: tuple[torch.Tensor, torch.Tensor]
    """Row and place of the token of each mark."""
    counted: torch.Tensor
    so_far: torch.Tensor

    @property
    def weights(self) -> torch.Tensor:
        """1 / sqrt(n) for each of the n labels of a row; 0 elsewhere."""
        is_reply = self.labels != IGNORED
        return is_reply / is_reply.sum(dim=1, keepdim=True).sqrt()


def new_model(variant: Variant, vocabulary: int) -> LlamaForCausalLM:
    """An untrained model of this size; `vocabulary` is its number of tokens."""
    config = LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=variant.width,
        intermediate_size=variant.inner,
        num_hidden_layers=variant.layers,
        num_attention_heads=variant.heads,
        num_key_value_heads=variant.heads,
        max_position_embeddings=WINDOW,
        tie_word_embeddings=True,
        bos_token_id=BOS,
        eos_token_id=EOS,
        pad_token_id=EOS,
    )
    return LlamaForCausalLM(config)


def encode(tokenizer: Tokenizer, examples: Sequence[Example], device: str) -> TrainingBatch:
    """Tokenizes `examples` as one batch."""
    before = opened("").removesuffix("<assistant>")
    rows, labels, marks = [], [], []
    for number, example in enumerate(examples):
        prompt = tokenizer.encode(opened(example.prompt))
        reply = tokenizer.encode(f"{example.reply}<eos>").ids
        rows.append(torch.tensor(prompt.ids + reply))
        labels.append(torch.tensor([IGNORED] * len(prompt.ids) + reply))
        marks += [
            (number, prompt.char_to_token(len(before) + mark.place), mark.counted, mark.so_far)
            for mark in example.marks
        ]
    row, token, counted, so_far = torch.tensor(marks, device=device).long().reshape(-1, 4).T
    return TrainingBatch(
        pad_sequence(rows, batch_first=True, padding_value=EOS).to(device),
        pad_sequence(labels, batch_first=True, padding_value=IGNORED).to(device),
        (row, token),
        counted,
        so_far,
    )


def loss_of(
    model: LlamaForCausalLM, probes: torch.nn.ModuleList, parts: Sequence[TrainingBatch]
) -> torch.Tensor:
    """The mean loss of all labels by their weights, and that of the marks, times its weight."""
    replies = sum(float(part.weights.sum()) for part in parts)
    marks = max(1, sum(len(part.counted) for part in parts))
    total = torch.zeros((), device=model.device)
    for part in parts:
        out = model.model(input_ids=part.ids[:, :-1], use_cache=False, output_hidden_states=True)
        places = part.labels[:, 1:] != IGNORED
        logits = model.lm_head(out.last_hidden_state[places])  # [N, V]
        losses = torch.nn.functional.cross_entropy(
            logits, part.labels[:, 1:][places], reduction="none"
        )
        reply = (losses * part.weights[:, 1:][places]).sum() / replies
        total = total + reply + _COUNT_LOSS * probe_loss(probes, out.hidden_states, part) / marks
    return total
