"""The training of one model: one variant with one seed.

It is the same whether it was stopped or not: each step draws what it draws from the seed and its
number, and a checkpoint, written whole or not at all, has all else. torch is imported here, so this
module is imported late.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeAlias

import orjson
import torch
from tokenizers import Tokenizer
from transformers.utils import logging

from eyechart.harness.errors import JournalError
from eyechart.harness.journal import replace_file, replacing
from eyechart.providers.in_process.model_files import one_line
from eyechart_lab.variants.config import config_of
from eyechart_lab.variants.embedded.training import EmbeddedTraining
from eyechart_lab.variants.model import LabForCausalLM
from eyechart_lab.variants.study import Training
from eyechart_lab.variants.tokens import ids_of, save, widened
from eyechart_lab.variants.training.data import Examples, read_examples
from eyechart_lab.variants.training.order import (
    CHECKPOINT,
    DIVERGED,
    ENDED,
    LOSSES,
    ORDER,
    TRAINED,
    WEIGHTS,
    TrainingEnd,
    TrainingOrder,
    ended,
)
from eyechart_lab.variants.training.steps import Steps, new_optimizer, steps_of

EXPLODED = 3.0
"""A mean loss so many times as high as that of a guess among all tokens ends a training."""
_POINTS = 200
"""Points of the curve of the loss, about."""
Point: TypeAlias = tuple[int, float]
"""The steps that are done and the mean loss of the last ones."""


def new_model(order: TrainingOrder, vocabulary: int, window: int, device: str) -> Any:
    """The untrained model of an order, whose weights follow from its seed."""
    torch.manual_seed(order.seed)
    config = config_of(order.variant, vocabulary=vocabulary, trained_window=window)
    return LabForCausalLM(config).to(device).train()


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread for each computation: small ones are not faster with more."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def steps_in(folder: Path, device: str) -> Generator[Point | None, None, TrainingEnd]:
    """Trains what the order in a folder says, a step at a time, from its last checkpoint on. Yields
    a point of the curve of the loss, or `None` between two points; returns how it ended. A training
    that has ended is left as it is.
    """
    if (before := ended(folder)) is not None:
        return before
    order = TrainingOrder.model_validate_json((folder / ORDER).read_bytes())
    return (yield from _Training(folder, order, device).run())


def steps_left(folder: Path, training: Training) -> int:
    """The steps that the training in a folder lacks: all, those after its last checkpoint, or none
    if it has ended. A checkpoint that cannot be read counts for nothing.
    """
    if ended(folder) is not None:
        return 0
    with suppress(Exception):  # of torch, which raises all kinds; a training says it
        state = torch.load(folder / CHECKPOINT, map_location="cpu", weights_only=True, mmap=True)
        return training.steps - int(state["step"])
    return training.steps


def write_untrained(folder: Path, out: Path) -> None:
    """Writes the model of a training as it is before the first step, whole or not at all."""
    order = TrainingOrder.model_validate_json((folder / ORDER).read_bytes())
    _Training(folder, order, "cpu").write_model(out)


class StudyTraining:
    """What is trained, and on what: a variant of a study, on the examples of its seed. `model` is
    written, `learned` is all that is learned, and `window` is the most tokens of a text.
    """

    def __init__(
        self, folder: Path, order: TrainingOrder, tokenizer: Tokenizer, device: str
    ) -> None:
        self._order, self._device = order, device
        tokens = order.variant.tokens
        self._examples: Examples = read_examples(
            folder / order.examples, order.training
        ).with_tokens(tokens, ids_of(tokenizer, tokens))
        self.window = int(self._examples.sizes.max())
        self.model = new_model(order, tokenizer.get_vocab_size(), self.window, device)
        self.learned = self.model

    def steps(self, optimizer: Any) -> Steps:
        """The steps of the training."""
        return steps_of(self.model, optimizer, self._order, self._examples, self._device)


class _Training:
    """A training under way."""

    def __init__(self, folder: Path, order: TrainingOrder, device: str) -> None:
        self._folder, self._order, self._device = folder, order, device
        self._tokenizer = widened(
            Tokenizer.from_file(str(folder / order.tokenizer)), order.variant.tokens
        )
        self._of: StudyTraining | EmbeddedTraining = (
            StudyTraining(folder, order, self._tokenizer, device)
            if order.of == "study"
            else EmbeddedTraining(order, self._tokenizer, device)
        )
        self._optimizer = new_optimizer(self._of.learned, order.training, device)
        self._curve: list[Point] = []
        """The last step and the mean loss of each point."""

    def run(self) -> Generator[Point | None, None, TrainingEnd]:
        """Trains to the end."""
        training = self._order.training
        steps = self._of.steps(self._optimizer)
        a_point = max(1, training.steps // _POINTS)
        saves = max(1, training.steps // steps.checkpoints)
        done = self._resume()
        if self._curve:
            yield self._curve[-1]
        for step in range(done, training.steps):
            steps.take(step)
            is_last = step + 1 == training.steps
            if (step + 1) % a_point and not is_last:
                yield None
                continue
            loss = steps.mean_loss()
            self._curve.append((step + 1, loss))
            yield self._curve[-1]
            if not self._goes_on(loss):
                return self._end(DIVERGED)
            if not is_last and self._since_saved(a_point) >= saves:
                self._save(step + 1)
        self.write_model(self._folder / WEIGHTS)
        return self._end(TRAINED)

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
            "model": self._of.learned.state_dict(),
            "optimizer": self._optimizer.state_dict()["state"],
        }
        with replacing(self._folder / CHECKPOINT, durable=True) as file:
            torch.save(state, file)
        self._saved_points = len(self._curve)

    def _resume(self) -> int:
        """Loads the last checkpoint, if there is one; returns the steps that are done."""
        path = self._folder / CHECKPOINT
        if not path.exists():
            return 0
        try:
            return self._load(torch.load(path, map_location=self._device, weights_only=True))
        except Exception as error:  # of torch, which raises all kinds
            raise JournalError(
                f"{path} cannot be gone on from: {type(error).__name__}: {one_line(error)}; remove "
                "it, and the same command trains from the first step"
            ) from error

    def _load(self, state: dict[str, Any]) -> int:
        """Takes over the state of a checkpoint; returns the steps that are done."""
        self._of.learned.load_state_dict(state["model"])
        groups = self._optimizer.state_dict()["param_groups"]  # of this device
        self._optimizer.load_state_dict({"state": state["optimizer"], "param_groups": groups})
        self._curve = [(int(step), float(loss)) for step, loss in state["curve"]]
        self._saved_points = len(self._curve)
        return int(state["step"])

    def write_model(self, whole: Path) -> None:
        """Writes the folder of the model, whole or not at all."""
        partial = whole.with_name(f"{whole.name}.tmp")
        for path in (partial, whole):
            shutil.rmtree(path, ignore_errors=True)
        logging.disable_progress_bar()
        self._of.model.cpu().save_pretrained(partial)
        save(self._tokenizer, partial, self._of.window, self._order.variant.tokens)
        partial.rename(whole)

    def _end(self, how: str) -> TrainingEnd:
        """Keeps the curve, then says how it ended; a checkpoint is no longer needed."""
        lines = ["step,loss", *(f"{step},{loss:.6g}" for step, loss in self._curve)]
        replace_file(self._folder / LOSSES, ("\n".join(lines) + "\n").encode())
        step, loss = self._curve[-1]
        finite = loss if math.isfinite(loss) else None
        found = TrainingEnd(how=how, step=step, loss=finite, device=name_of(self._device))
        content = orjson.dumps(found.model_dump(), option=orjson.OPT_INDENT_2)
        replace_file(self._folder / ENDED, content + b"\n", durable=True)
        (self._folder / CHECKPOINT).unlink(missing_ok=True)
        return found


def name_of(device: str) -> str:
    """The name of a device: `cpu`, or that of the GPU."""
    return torch.cuda.get_device_name(device) if device.startswith("cuda") else device
