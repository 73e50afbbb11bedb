"""The training of one model: one variant with one seed.

It is the same whether it was stopped or not: each step draws what it draws from the seed and its
number, and a checkpoint, written whole or not at all, has all else. torch is imported here, so this
module is imported late.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import orjson
import torch
from tokenizers import Tokenizer
from transformers.utils import logging

from eyechart.harness.journal.files import replace_file, replacing
from eyechart.harness.satellites.lab.data import IGNORED, Examples, read_examples
from eyechart.harness.satellites.lab.mechanisms.losses import extra_loss
from eyechart.harness.satellites.lab.model import LabForCausalLM, config_of
from eyechart.harness.satellites.lab.order import (
    CHECKPOINT,
    DIVERGED,
    ENDED,
    LOSSES,
    ORDER,
    TRAINED,
    WEIGHTS,
    Ended,
    Order,
    ended,
)
from eyechart.harness.satellites.lab.study import Training
from eyechart.harness.satellites.lab.tokens import BOS, EOS, save

EXPLODED = 3.0
"""A mean loss so many times as high as that of a guess among all tokens ends a training."""
_POINTS = 200
"""Points of the curve of the loss, about."""
_CHECKPOINTS = 20
"""Checkpoints of a training, about."""
_BETAS = (0.9, 0.98)
_CLIPPED = 1.0
"""The largest norm of the gradient."""
Tell: TypeAlias = Callable[[int, float], None]
"""Takes the steps that are done and the mean loss of the last ones."""


def learning_rate(training: Training, step: int) -> float:
    """The learning rate at a step: a linear rise, and a cosine down to zero."""
    rise = min(1.0, (step + 1) / training.warm_up) if training.warm_up else 1.0
    fall = 0.5 * (1 + math.cos(math.pi * step / training.steps))
    return training.learning_rate * rise * fall


def loss_of(model: Any, ids: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """The mean loss of the tokens of the replies, with the variant's own loss.

    `ids` and `labels` have shape (B, T). Only the tokens of replies go through the head.
    """
    has_more = model.config.read.loss.name != "none"
    output = model.model(input_ids=ids[:, :-1], use_cache=False, output_hidden_states=has_more)
    wanted = labels[:, 1:]
    places = wanted != IGNORED
    logits = model.lm_head(output.last_hidden_state[places])  # (N, V)
    loss = torch.nn.functional.cross_entropy(logits, wanted[places])
    if has_more:
        loss = loss + extra_loss(model.config, output.hidden_states, ids[:, :-1] != EOS)
    return loss


def step_of(model: Any, optimizer: Any, ids: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """One update of the weights; returns the loss before it."""
    optimizer.zero_grad(set_to_none=True)
    loss = loss_of(model, ids, labels)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), _CLIPPED)
    optimizer.step()
    return loss.detach()


def new_model(order: Order, vocabulary: int, window: int) -> Any:
    """The untrained model of an order, whose weights follow from its seed."""
    torch.manual_seed(order.seed)
    config = config_of(
        order.variant,
        vocabulary=vocabulary,
        trained_window=window,
        bos=BOS,
        eos=EOS,
        pad=EOS,
    )
    return LabForCausalLM(config).to(order.device).train()


def new_optimizer(model: Any, training: Training) -> torch.optim.AdamW:
    """AdamW without a learning rate, which each step sets."""
    return torch.optim.AdamW(
        model.parameters(), lr=0.0, betas=_BETAS, weight_decay=training.weight_decay, fused=True
    )


def train(folder: Path, tell: Tell) -> Ended:
    """Trains what the order in a folder says, from its last checkpoint on; returns how it ended. A
    training that has ended is left as it is.
    """
    if (before := ended(folder)) is not None:
        return before
    order = Order.model_validate_json((folder / ORDER).read_bytes())
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return _Training(folder, order).run(tell)
    finally:
        torch.set_num_threads(threads)


def write_untrained(folder: Path, out: Path) -> None:
    """Writes the model of a training as it is before the first step, whole or not at all."""
    order = Order.model_validate_json((folder / ORDER).read_bytes())
    _Training(folder, order).write_model(out)


class _Training:
    """A training under way."""

    def __init__(self, folder: Path, order: Order) -> None:
        self._folder, self._order = folder, order
        self._examples: Examples = read_examples(folder / order.examples, order.recipe)
        self._tokenizer = Tokenizer.from_file(str(folder / order.tokenizer))
        self._window = int(np.diff(self._examples.ends, prepend=0).max())
        self._model = new_model(order, self._tokenizer.get_vocab_size(), self._window)
        self._optimizer = new_optimizer(self._model, order.training)
        self._curve: list[tuple[int, float]] = []
        """The last step and the mean loss of each point."""

    def run(self, tell: Tell) -> Ended:
        """Trains to the end."""
        training = self._order.training
        a_point = max(1, training.steps // _POINTS)
        saves = max(1, training.steps // _CHECKPOINTS)
        losses: list[torch.Tensor] = []
        done = self._resume()
        if self._curve:
            tell(*self._curve[-1])
        for step in range(done, training.steps):
            losses.append(self._step(step))
            is_last = step + 1 == training.steps
            if (step + 1) % a_point and not is_last:
                continue
            loss = float(torch.stack(losses).mean())
            losses.clear()
            self._curve.append((step + 1, loss))
            tell(step + 1, loss)
            if not self._goes_on(loss):
                return self._end(DIVERGED)
            if not is_last and self._since_saved(a_point) >= saves:
                self._save(step + 1)
        self.write_model(self._folder / WEIGHTS)
        return self._end(TRAINED)

    def _step(self, step: int) -> torch.Tensor:
        order = self._order
        torch.manual_seed(order.seed << 32 | step)
        for group in self._optimizer.param_groups:
            group["lr"] = learning_rate(order.training, step)
        ids, labels = (
            torch.from_numpy(array).to(order.device) for array in self._examples.batch(step)
        )
        return step_of(self._model, self._optimizer, ids, labels)

    def _goes_on(self, loss: float) -> bool:
        guess = math.log(self._tokenizer.get_vocab_size())
        return math.isfinite(loss) and loss < EXPLODED * guess

    def _since_saved(self, a_point: int) -> int:
        points = len(self._curve) - self._saved_points
        return points * a_point

    _saved_points = 0
    """Points of the curve in the last checkpoint."""

    def _save(self, step: int) -> None:
        state = {
            "step": step,
            "curve": self._curve,
            "model": self._model.state_dict(),
            "optimizer": self._optimizer.state_dict(),
        }
        with replacing(self._folder / CHECKPOINT, durable=True) as file:
            torch.save(state, file)
        self._saved_points = len(self._curve)

    def _resume(self) -> int:
        """Loads the last checkpoint, if there is one; returns the steps that are done."""
        path = self._folder / CHECKPOINT
        if not path.exists():
            return 0
        state = torch.load(path, map_location=self._order.device, weights_only=True)
        self._model.load_state_dict(state["model"])
        self._optimizer.load_state_dict(state["optimizer"])
        self._curve = [(int(step), float(loss)) for step, loss in state["curve"]]
        self._saved_points = len(self._curve)
        return int(state["step"])

    def write_model(self, whole: Path) -> None:
        """Writes the folder of the model, whole or not at all."""
        partial = whole.with_name(f"{whole.name}.tmp")
        for path in (partial, whole):
            shutil.rmtree(path, ignore_errors=True)
        logging.disable_progress_bar()
        self._model.cpu().save_pretrained(partial)
        save(self._tokenizer, partial, self._window)
        partial.rename(whole)

    def _end(self, how: str) -> Ended:
        """Keeps the curve, then says how it ended; a checkpoint is no longer needed."""
        lines = ["step,loss", *(f"{step},{loss:.6g}" for step, loss in self._curve)]
        replace_file(self._folder / LOSSES, ("\n".join(lines) + "\n").encode())
        step, loss = self._curve[-1]
        found = Ended(how=how, step=step, loss=loss if math.isfinite(loss) else None)
        content = orjson.dumps(found.model_dump(), option=orjson.OPT_INDENT_2)
        replace_file(self._folder / ENDED, content + b"\n", durable=True)
        (self._folder / CHECKPOINT).unlink(missing_ok=True)
        return found
