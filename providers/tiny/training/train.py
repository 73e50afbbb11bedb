"""Trains the tiny model from scratch: `python -m providers.tiny.training.train --out .train`.

One seed decides everything: weights, rows, order. Step N's batch is drawn from a stream of its
own, so a run that was stopped goes on from its last checkpoint as if nothing had happened. The
loss is on the reply. Lengths grow from short to `--longest`, in two stages: all tasks, then mostly
those that are hard to learn. Two more stages are for words, the hardest.
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

import torch
from tokenizers import Tokenizer
from transformers import LlamaConfig, LlamaForCausalLM

from providers.tiny.training import tokenizer as tokenizers_
from providers.tiny.training.examples import (
    FIRST,
    FOURTH,
    SECOND,
    THIRD,
    Example,
    Stage,
    batch,
    example_of,
    tasks,
)

WINDOW = 4096
"""Most tokens of prompt and reply together."""
IGNORED = -100
PART = 16
"""Rows that go through the model at once."""


@dataclass(frozen=True)
class Recipe:
    """All that makes the model, beside the task files."""

    seed: int = 1
    steps: int = 5900
    second_from: int = 2000
    """Step of the second stage; lengths begin to grow anew there."""
    third_from: int = 4000
    third_rate: float = 1e-3
    """Learning rate at its beginning."""
    fourth_from: int = 4500
    fourth_rate: float = 1.2e-3
    rows: int = 64
    longest: int = 40
    """Symbols in the longest row the model is trained on."""
    learning_rate: float = 2e-3
    warm_up: int = 200
    sentences_from: int = 3000
    """Step from which on the sentences of `counting/words` are learned as well as the replies:
    their next word depends on the word asked for, which teaches the model to keep it in mind."""
    sentence_loss: float = 0.5
    growth: int = 2080
    """Steps over which the longest row grows from 8 to `longest`."""
    cosine_end: int = 5200
    """Step at which the first stage's cosine would reach zero."""
    line_end: int = 5800
    """The same for the second stage's straight line."""
    third_end: int = 6300
    """And for the third's."""
    layers: int = 4
    width: int = 128
    heads: int = 4
    inner: int = 352
    weight_decay: float = 0.01


def new_model(recipe: Recipe, vocabulary: int) -> LlamaForCausalLM:
    """An untrained model of the recipe's shape."""
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


def encode(
    tokenizer: Tokenizer, examples: Sequence[Example], sentence_loss: float = 0.0
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Token ids, labels and each label's weight, all [B, T], padded on the right.

    Labels are the reply and <eos>; n of them weigh 1 / sqrt(n) each. With `sentence_loss` they are
    the words of the sentence too where words are counted, and weigh that much together.
    """
    rows, labels, weights = [], [], []
    for one in examples:
        asked = tokenizer.encode(f"<bos><user>{one.prompt}<assistant>").ids
        said = tokenizer.encode(f"{one.reply}<eos>").ids
        learned = 0
        if sentence_loss and one.task == "counting/words":
            before = one.prompt[: one.prompt.rindex("Sentence:")]
            learned = len(asked) - 1 - len(tokenizer.encode(f"<bos><user>{before}").ids)
        silent = len(asked) - 1 - learned
        sentence = asked[silent:-1]
        rows.append(asked + said)
        labels.append([IGNORED] * silent + sentence + [IGNORED] + said)
        weights.append(
            [0.0] * silent
            + [sentence_loss / max(1, learned)] * learned
            + [0.0]
            + [len(said) ** -0.5] * len(said)
        )
    longest = max(map(len, rows))

    def padded(lists: Sequence[Sequence[float]], filler: float) -> torch.Tensor:
        return torch.tensor([[*one, *[filler] * (longest - len(one))] for one in lists])

    return padded(rows, 2), padded(labels, IGNORED), padded(weights, 0.0)


def loss_of(
    model: LlamaForCausalLM, ids: torch.Tensor, labels: torch.Tensor, weights: torch.Tensor
) -> torch.Tensor:
    """Summed cross-entropy over the labels, by their weights."""
    hidden = model.model(input_ids=ids[:, :-1], use_cache=False).last_hidden_state  # [B, T-1, D]
    places = labels[:, 1:] != IGNORED
    logits = model.lm_head(hidden[places])  # [N, V]
    each = torch.nn.functional.cross_entropy(logits, labels[:, 1:][places], reduction="none")
    return (each * weights[:, 1:][places]).sum()


def backward(
    model: LlamaForCausalLM,
    tokenizer: Tokenizer,
    examples: Sequence[Example],
    sentence_loss: float = 0.0,
) -> float:
    """Gradients of the batch's mean loss, in parts of similar token count to save on padding."""
    by_size = sorted(examples, key=lambda one: len(one.prompt) + len(one.reply))
    groups = [by_size[at : at + PART] for at in range(0, len(by_size), PART)]
    parts = [encode(tokenizer, group, sentence_loss) for group in groups]
    total = sum(len(tokenizer.encode(f"{one.reply}<eos>").ids) ** 0.5 for one in examples)
    mean = 0.0
    for part in parts:
        loss = loss_of(model, *part) / total
        loss.backward()
        mean += loss.item()
    return mean


@torch.no_grad()
def exact(model: LlamaForCausalLM, tokenizer: Tokenizer, examples: Sequence[Example]) -> float:
    """Share of replies that greedy decoding would reproduce to the token."""
    ids, labels, _ = encode(tokenizer, examples)
    hidden = model.model(input_ids=ids[:, :-1], use_cache=False).last_hidden_state
    best = model.lm_head(hidden).argmax(-1)
    wanted = labels[:, 1:]
    right = ((best == wanted) | (wanted == IGNORED)).all(1)
    return float(right.float().mean())


def curve(
    model: LlamaForCausalLM, tokenizer: Tokenizer, lengths: Sequence[int]
) -> dict[str, float]:
    """`task length` -> accuracy under the default conditions, on rows of a stream of their own."""
    found = {}
    for name, task in tasks().items():
        usual = task.spec.default_conditions()
        for length in lengths:
            rng = random.Random(f"curve|{name}|{length}")
            drawn = [
                example_of(
                    rng, task, {axis: rng.choice(names) for axis, names in usual.items()}, length
                )
                for _ in range(64)
            ]
            found[f"{name} {length}"] = exact(model, tokenizer, drawn)
    return found


def stage_of(recipe: Recipe, step: int) -> Stage:
    """What the rows of `step` are about."""
    if step < recipe.second_from:
        return FIRST
    if step < recipe.third_from:
        return SECOND
    return THIRD if step < recipe.fourth_from else FOURTH


def learning_rate(recipe: Recipe, step: int) -> float:
    """Linear warm-up and a cosine, then in each stage a straight line down."""
    if step >= recipe.fourth_from:
        left = (recipe.steps - step) / max(1, recipe.steps - recipe.fourth_from)
        return recipe.fourth_rate * left
    if step >= recipe.third_from:
        left = (recipe.third_end - step) / (recipe.third_end - recipe.third_from)
        return recipe.third_rate * left
    start = min(step, recipe.second_from)
    warm = min(1.0, (start + 1) / recipe.warm_up)
    rate = recipe.learning_rate * warm * 0.5 * (1 + math.cos(math.pi * start / recipe.cosine_end))
    return rate * min(1.0, (recipe.line_end - step) / (recipe.line_end - recipe.second_from))


def longest_row(recipe: Recipe, step: int) -> int:
    """The curriculum: how long rows may be at `step`."""
    since = step if step < recipe.second_from else step - recipe.second_from
    return round(8 + (recipe.longest - 8) * min(1.0, since / recipe.growth))


def train(recipe: Recipe, out: Path, *, stop_at: int | None = None, log_every: int = 500) -> Path:
    """Trains (or goes on training) in `out`; returns the folder of the model as it stands.

    `out` holds `checkpoint.pt`, `log.jsonl` and `model/` in Hugging Face form.
    """
    out.mkdir(parents=True, exist_ok=True)
    tokenizer = tokenizers_.save(out / "model", WINDOW)
    model = new_model(recipe, tokenizer.get_vocab_size())
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=0.0, betas=(0.9, 0.98), weight_decay=recipe.weight_decay
    )
    first = _resume(out / "checkpoint.pt", recipe, model, optimizer)
    last = recipe.steps if stop_at is None else min(stop_at, recipe.steps)
    started, losses = time.monotonic(), []
    for step in range(first, last):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(recipe, step)
        rng = random.Random(f"train|{recipe.seed}|{step}")
        optimizer.zero_grad(set_to_none=True)
        drawn = batch(rng, recipe.rows, longest_row(recipe, step), stage_of(recipe, step))
        sentence_loss = recipe.sentence_loss if step >= recipe.sentences_from else 0.0
        losses.append(backward(model, tokenizer, drawn, sentence_loss))
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
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
            _save(out, recipe, step + 1, model, optimizer)
            started, losses = time.monotonic(), []
    model.save_pretrained(out / "model")
    return out / "model"


def _save(
    out: Path, recipe: Recipe, step: int, model: LlamaForCausalLM, optimizer: torch.optim.AdamW
) -> None:
    state = {
        "recipe": asdict(recipe),
        "step": step,
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
    }
    torch.save(state, out / "checkpoint.tmp")
    (out / "checkpoint.tmp").replace(out / "checkpoint.pt")
    model.save_pretrained(out / "model")


def _resume(
    path: Path, recipe: Recipe, model: LlamaForCausalLM, optimizer: torch.optim.AdamW
) -> int:
    if not path.exists():
        return 0
    state = torch.load(path)
    if state["recipe"] != asdict(recipe):
        msg = f"{path} was made by another recipe: {state['recipe']}; train in another folder"
        raise SystemExit(msg)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    return int(state["step"])


def main() -> None:
    parser = argparse.ArgumentParser(description="train the tiny model")
    parser.add_argument("--out", type=Path, default=Path(".train"))
    for name, value in asdict(Recipe()).items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=type(value), default=value)
    given = vars(parser.parse_args())
    out = given.pop("out")
    print(train(Recipe(**given), out))


if __name__ == "__main__":
    main()
