"""Trains the tiny model: `python -m eyechart.harness.satellites.lab.embedded.train --out .train`.

One seed determines weights, examples and their order. Each step draws its batch from a random
stream of its own, so a stopped training continues from its last checkpoint with the same result.
The loss has two parts: the reply, and the count so far, which is read from inner layers at each
symbol. The lengths of rows grow from 8 symbols to `--longest`.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

import torch
from tokenizers import Tokenizer
from transformers import LlamaConfig, LlamaForCausalLM

from eyechart.harness.satellites.lab.embedded import tokenizer as tokenizers_
from eyechart.harness.satellites.lab.embedded.examples import Example, batch, example_of, tasks
from eyechart.harness.spec import Condition

WINDOW = 4096
"""Most tokens of prompt and reply together."""
IGNORED = -100
"""Label of tokens without a loss, as in PyTorch."""
PART = 16
"""Examples in one forward pass."""


@dataclass(frozen=True)
class Recipe:
    """All settings of the training, apart from the task files."""

    seed: int = 1
    steps: int = 4000
    rows: int = 64
    longest: int = 40
    """Symbols in the longest training row."""
    growth: int = 1600
    """Steps over which the longest row grows from 8 to `longest`."""
    learning_rate: float = 2e-3
    warm_up: int = 200
    count_loss: float = 0.5
    """Weight of the loss of the count so far; the loss of the reply has weight 1."""
    layers: int = 4
    width: int = 128
    heads: int = 4
    inner: int = 352
    weight_decay: float = 0.01


def new_probes(recipe: Recipe) -> torch.nn.ModuleList:
    """Two linear probes of inner layers at each symbol: is it counted, and the count so far.

    They are used only in the training. Without them the model learns to count from only one number
    for each row, and it never learns to count words in a sentence.
    """
    return torch.nn.ModuleList(
        [torch.nn.Linear(recipe.width, 2), torch.nn.Linear(recipe.width, recipe.longest + 1)]
    )


def probe_loss(
    probes: torch.nn.ModuleList, hidden: Sequence[torch.Tensor], batch: Batch
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


class Batch(NamedTuple):
    """Examples as tensors: [B, T], padded on the right, and [M] for the marks of all rows."""

    ids: torch.Tensor
    labels: torch.Tensor
    """The reply and <eos>; `IGNORED` elsewhere."""
    weights: torch.Tensor
    """1 / sqrt(n) for each of the n labels of a row; 0 elsewhere."""
    marked: tuple[torch.Tensor, torch.Tensor]
    """Row and place of the token of each mark."""
    counted: torch.Tensor
    so_far: torch.Tensor


def new_model(recipe: Recipe, vocabulary: int) -> LlamaForCausalLM:
    """An untrained model with the recipe's shape and seed; `vocabulary` is its number of tokens."""
    torch.manual_seed(recipe.seed)
    config = LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=recipe.width,
        intermediate_size=recipe.inner,
        num_hidden_layers=recipe.layers,
        num_attention_heads=recipe.heads,
        num_key_value_heads=recipe.heads,
        max_position_embeddings=WINDOW,
        tie_word_embeddings=True,
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=2,
    )
    return LlamaForCausalLM(config)


def encode(tokenizer: Tokenizer, examples: Sequence[Example]) -> Batch:
    """Tokenizes `examples` as one batch."""
    opening = "<bos><user>"
    rows, labels, weights, marks = [], [], [], []
    for number, example in enumerate(examples):
        prompt = tokenizer.encode(f"{opening}{example.prompt}<assistant>")
        reply = tokenizer.encode(f"{example.reply}<eos>").ids
        rows.append(prompt.ids + reply)
        labels.append([IGNORED] * len(prompt.ids) + reply)
        weights.append([0.0] * len(prompt.ids) + [len(reply) ** -0.5] * len(reply))
        marks += [
            (number, prompt.char_to_token(len(opening) + mark.place), mark.counted, mark.so_far)
            for mark in example.marks
        ]
    longest = max(map(len, rows))

    def padded(lists: Sequence[Sequence[float]], filler: float) -> torch.Tensor:
        return torch.tensor([[*row, *[filler] * (longest - len(row))] for row in lists])

    row, token, counted, so_far = torch.tensor(marks, dtype=torch.long).reshape(-1, 4).T
    return Batch(
        padded(rows, 2),
        padded(labels, IGNORED),
        padded(weights, 0.0),
        (row, token),
        counted,
        so_far,
    )


def backward(
    model: LlamaForCausalLM,
    probes: torch.nn.ModuleList,
    tokenizer: Tokenizer,
    examples: Sequence[Example],
    count_loss: float,
) -> float:
    """Adds the gradients of the mean loss of `examples`; returns the mean loss of the replies.

    Examples of similar length go through the model together, which saves padding.
    """
    by_size = sorted(examples, key=lambda example: len(example.prompt) + len(example.reply))
    groups = [by_size[at : at + PART] for at in range(0, len(by_size), PART)]
    parts = [encode(tokenizer, group) for group in groups]
    replies = sum(float(part.weights.sum()) for part in parts)
    marks = max(1, sum(len(part.counted) for part in parts))
    mean = 0.0
    for part in parts:
        out = model.model(input_ids=part.ids[:, :-1], use_cache=False, output_hidden_states=True)
        places = part.labels[:, 1:] != IGNORED
        logits = model.lm_head(out.last_hidden_state[places])  # [N, V]
        losses = torch.nn.functional.cross_entropy(
            logits, part.labels[:, 1:][places], reduction="none"
        )
        reply = (losses * part.weights[:, 1:][places]).sum() / replies
        (reply + count_loss * probe_loss(probes, out.hidden_states, part) / marks).backward()
        mean += reply.item()
    return mean


@torch.no_grad()
def exact(model: LlamaForCausalLM, tokenizer: Tokenizer, examples: Sequence[Example]) -> float:
    """Share of examples whose reply greedy decoding reproduces token by token."""
    encoded = encode(tokenizer, examples)
    hidden = model.model(input_ids=encoded.ids[:, :-1], use_cache=False).last_hidden_state
    best = model.lm_head(hidden).argmax(-1)
    expected = encoded.labels[:, 1:]
    right = ((best == expected) | (expected == IGNORED)).all(1)
    return float(right.float().mean())


def curve(
    model: LlamaForCausalLM, tokenizer: Tokenizer, lengths: Sequence[int]
) -> dict[str, float]:
    """`task length` -> accuracy under default conditions, on other examples than the training's."""
    accuracies = {}
    for name, task in tasks().items():
        usual = task.spec.default_conditions()
        for length in lengths:
            rng = random.Random(f"curve|{name}|{length}")
            drawn = [
                example_of(
                    rng,
                    task,
                    Condition((axis, rng.choice(names)) for axis, names in usual.items()),
                    length,
                )
                for _ in range(64)
            ]
            accuracies[f"{name} {length}"] = exact(model, tokenizer, drawn)
    return accuracies


def learning_rate(recipe: Recipe, step: int) -> float:
    """The learning rate at `step`: linear warm-up, and a cosine down to zero."""
    warm = min(1.0, (step + 1) / recipe.warm_up)
    return recipe.learning_rate * warm * 0.5 * (1 + math.cos(math.pi * step / recipe.steps))


def longest_row(recipe: Recipe, step: int) -> int:
    """Most symbols of a row at `step`: the curriculum."""
    return round(8 + (recipe.longest - 8) * min(1.0, step / recipe.growth))


def train(recipe: Recipe, out: Path, *, stop_at: int | None = None, log_every: int = 500) -> Path:
    """Trains a model in `out`, or continues its training; returns the folder of the model.

    `out` gets `checkpoint.pt`, `log.jsonl` and `model/` in Hugging Face form. The training ends
    before step `stop_at`, if given.

    Raises:
        SystemExit: the checkpoint in `out` has another recipe.
    """
    out.mkdir(parents=True, exist_ok=True)
    tokenizer = tokenizers_.save(out / "model", WINDOW)
    model = new_model(recipe, tokenizer.get_vocab_size())
    probes = new_probes(recipe)
    learned = torch.nn.ModuleList([model, probes])
    optimizer = torch.optim.AdamW(
        learned.parameters(), lr=0.0, betas=(0.9, 0.98), weight_decay=recipe.weight_decay
    )
    first = _resume(out / "checkpoint.pt", recipe, learned, optimizer)
    last = recipe.steps if stop_at is None else min(stop_at, recipe.steps)
    started, losses = time.monotonic(), []
    for step in range(first, last):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(recipe, step)
        rng = random.Random(f"train|{recipe.seed}|{step}")
        optimizer.zero_grad(set_to_none=True)
        drawn = batch(rng, recipe.rows, longest_row(recipe, step))
        losses.append(backward(model, probes, tokenizer, drawn, recipe.count_loss))
        torch.nn.utils.clip_grad_norm_(learned.parameters(), 1.0)
        optimizer.step()
        if (step + 1) % log_every == 0 or step + 1 == last:
            line = {
                "step": step + 1,
                "loss": sum(losses) / len(losses),
                "steps_per_s": len(losses) / (time.monotonic() - started),
                **curve(model, tokenizer, (5, 10, 20, 30, 40, 60)),
            }
            print(json.dumps(line), flush=True)
            with (out / "log.jsonl").open("a", encoding="utf-8") as log:
                log.write(json.dumps(line) + "\n")
            _save(out, recipe, step + 1, learned, optimizer)
            model.save_pretrained(out / "model")
            started, losses = time.monotonic(), []
    model.save_pretrained(out / "model")
    return out / "model"


def _save(
    out: Path, recipe: Recipe, step: int, learned: torch.nn.Module, optimizer: torch.optim.AdamW
) -> None:
    """Writes a checkpoint after `step` steps."""
    state = {
        "recipe": asdict(recipe),
        "step": step,
        "learned": learned.state_dict(),
        "optimizer": optimizer.state_dict(),
    }
    torch.save(state, out / "checkpoint.tmp")
    (out / "checkpoint.tmp").replace(out / "checkpoint.pt")


def _resume(
    path: Path, recipe: Recipe, learned: torch.nn.Module, optimizer: torch.optim.AdamW
) -> int:
    """Loads the checkpoint at `path`, if there is one; returns the number of steps done."""
    if not path.exists():
        return 0
    state = torch.load(path)
    if state["recipe"] != asdict(recipe):
        msg = f"{path} has another recipe: {state['recipe']}; train in another folder"
        raise SystemExit(msg)
    learned.load_state_dict(state["learned"])
    optimizer.load_state_dict(state["optimizer"])
    return int(state["step"])


def main() -> None:
    """Trains with the settings on the command line."""
    parser = argparse.ArgumentParser(description="train the tiny model")
    parser.add_argument("--out", type=Path, default=Path(".train"))
    for name, value in asdict(Recipe()).items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=type(value), default=value)
    given = vars(parser.parse_args())
    out = given.pop("out")
    print(train(Recipe(**given), out))


if __name__ == "__main__":
    main()
