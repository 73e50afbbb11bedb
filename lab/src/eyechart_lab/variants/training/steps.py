"""The steps of a training, one after the other, or on a GPU recorded once and replayed.

A step of a small model is some hundreds of small kernels. On a GPU it takes longer to start them
one by one than to compute them. So a step is recorded as a CUDA graph: it takes its examples, its
learning rate and the place of its loss from tensors on the GPU, by the number of the step, and one
call replays all of it. Replays of several trainings run beside each other, each in its own stream.

Letters in shape comments: B rows, T tokens of the longest row, R of the longest reply, C width, V
vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeAlias

import torch

from eyechart_lab.variants.mechanisms.losses import extra_loss
from eyechart_lab.variants.study import Training
from eyechart_lab.variants.tokens import EOS
from eyechart_lab.variants.training.data import IGNORED, ExampleBatch, Examples
from eyechart_lab.variants.training.order import TrainingOrder

_BETAS = (0.9, 0.98)
_CLIPPED = 1.0
"""The largest norm of the gradient."""
_REHEARSALS = 2
"""Steps before a step is recorded, whose changes are taken back: PyTorch asks for them."""


def on_device(batch: ExampleBatch, device: str) -> ExampleBatch:
    """The tensors of a batch of arrays."""
    return ExampleBatch(*(torch.from_numpy(array).to(device) for array in batch))


def learning_rate(training: Training, step: int) -> float:
    """The learning rate at a step: a linear rise, and a cosine down to zero."""
    rise = min(1.0, (step + 1) / training.warm_up) if training.warm_up else 1.0
    fall = 0.5 * (1 + math.cos(math.pi * step / training.steps))
    return training.learning_rate * rise * fall


def loss_of(model: Any, given: ExampleBatch, positions: torch.Tensor | None = None) -> torch.Tensor:
    """The mean loss of the tokens of the replies, with the variant's own loss. `positions`
    (B, T - 1) are those that the step drew, if the variant draws any; drawn here if not given.
    """
    has_more = model.config.read.loss.name != "none"
    ids = given.ids[:, :-1]
    if positions is None:
        positions = drawn_of(model, given.ids)
    output = model.model(
        input_ids=ids, position_ids=positions, use_cache=False, output_hidden_states=has_more
    )
    states = output.last_hidden_state
    places = given.places[..., None].expand(-1, -1, states.shape[-1])
    logits = model.lm_head(states.gather(1, places))  # (B, R, V)
    loss = torch.nn.functional.cross_entropy(
        logits.flatten(0, 1), given.wanted.flatten(), ignore_index=IGNORED
    )
    if has_more:
        loss = loss + extra_loss(model.config, output.hidden_states, ids != EOS)
    return loss


def drawn_of(model: Any, ids: torch.Tensor) -> torch.Tensor | None:
    """(B, T - 1): the positions that a step draws for rows of tokens (B, T); `None` if none."""
    found: torch.Tensor | None = model.model.drawn((ids != EOS).sum(dim=1), ids.shape[1])
    return None if found is None else found[:, :-1]


def step_of(model: Any, optimizer: Any, loss_now: Callable[[], torch.Tensor]) -> torch.Tensor:
    """One update of the weights; returns the loss before it."""
    optimizer.zero_grad(set_to_none=True)
    loss = loss_now()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), _CLIPPED)
    optimizer.step()
    return loss.detach()


def new_optimizer(model: Any, training: Training, device: str) -> torch.optim.AdamW:
    """AdamW with a learning rate that each step sets."""
    is_gpu = torch.device(device).type == "cuda"
    return torch.optim.AdamW(
        model.parameters(),
        lr=torch.zeros((), device=device) if is_gpu else 0.0,
        betas=_BETAS,
        weight_decay=training.weight_decay,
        fused=True,
        capturable=is_gpu,
    )


def steps_of(
    model: Any, optimizer: Any, order: TrainingOrder, examples: Examples, device: str
) -> Steps:
    """The steps of a training on the examples of a study: recorded on a GPU."""
    if torch.device(device).type == "cuda":
        return RecordedSteps(model, optimizer, order, examples, device)
    return PlainSteps(
        model,
        optimizer,
        order,
        lambda step: loss_of(model, on_device(examples.batch(step), device)),
    )


class PlainSteps:
    """The steps of a training, which are taken in their order; each is computed from Python."""

    checkpoints = 20
    """Checkpoints of a training, about."""

    def __init__(
        self,
        model: Any,
        optimizer: Any,
        order: TrainingOrder,
        loss_at: Callable[[int], torch.Tensor],
    ) -> None:
        """`loss_at` gives the loss of the examples of a step."""
        self._model, self._optimizer, self._order = model, optimizer, order
        self._loss_at = loss_at
        self._losses: list[torch.Tensor] = []

    def take(self, step: int) -> None:
        """Each step draws what it draws from the seed and its number."""
        torch.manual_seed(seed_of(self._order, step))
        for group in self._optimizer.param_groups:
            group["lr"] = learning_rate(self._order.training, step)
        self._losses.append(step_of(self._model, self._optimizer, lambda: self._loss_at(step)))

    def mean_loss(self) -> float:
        """The mean loss of the steps since it was asked before, when all of them are done."""
        mean = float(torch.stack(self._losses).mean())
        self._losses.clear()
        return mean


def seed_of(order: TrainingOrder, step: int) -> int:
    """What the random numbers of a step follow from."""
    return order.seed << 32 | step


class RecordedSteps:
    """Steps that are one and the same for the device: all rows are padded to the longest of the
    training, and what differs from step to step is looked up by its number.

    On a GPU the first step is recorded and then replayed. On a CPU, where nothing can be recorded,
    it is computed each time, which tests do.
    """

    checkpoints = 4
    """Few: a training takes seconds, and all that share a GPU wait for a checkpoint."""

    def __init__(
        self, model: Any, optimizer: Any, order: TrainingOrder, examples: Examples, device: str
    ) -> None:
        self._model, self._optimizer, self._order = model, optimizer, order
        training = order.training
        steps = range(training.steps)
        whole = examples.between(0, len(examples.ends))
        self._given = ExampleBatch(*(torch.from_numpy(one).int().to(device) for one in whole))
        first = [examples.first(step) for step in steps]
        rates = [learning_rate(training, step) for step in steps]
        self._first = torch.tensor(first, device=device)
        self._rates = torch.tensor(rates, device=device)
        self._losses = torch.zeros(training.steps, device=device)
        self._rows = torch.arange(training.rows, device=device)
        self._at = torch.zeros(1, dtype=torch.long, device=device)
        """The number of the step."""
        self._starts = first
        self._positions = drawn_of(model, self._given.ids[: training.rows])
        """(B, T - 1): those that the step draws, if the variant draws any."""
        self._stream = torch.cuda.Stream(device) if self._at.is_cuda else None
        self._graph: torch.cuda.CUDAGraph | None = None
        self._told = self._done = 0
        """The steps whose loss was asked, and those that are taken."""

    def take(self, step: int) -> None:
        if step != self._done:
            self._at.fill_(step)
            self._told = step
        if self._stream is not None and self._graph is None:
            self._graph = self._recorded(step)
        with self._in_stream():
            if self._positions is not None:
                self._positions.copy_(self._drawn(step))
            if self._graph is None:
                self._whole_step()
            else:
                self._graph.replay()
        self._done = step + 1

    def mean_loss(self) -> float:
        with self._in_stream():
            mean = float(self._losses[self._told : self._done].mean())
        self._told = self._done
        return mean

    def _in_stream(self) -> AbstractContextManager[Any]:
        return nullcontext() if self._stream is None else torch.cuda.stream(self._stream)

    def _drawn(self, step: int) -> torch.Tensor:
        """(B, T - 1): the positions of a step."""
        torch.manual_seed(seed_of(self._order, step))
        begin = self._starts[step]
        rows = self._given.ids[begin : begin + len(self._rows)]
        found = drawn_of(self._model, rows)
        assert found is not None
        return found

    def _whole_step(self) -> None:
        """The step whose number is on the device, and on to the next number."""
        rows = self._first.index_select(0, self._at) + self._rows
        given = ExampleBatch(*(one.index_select(0, rows).long() for one in self._given))
        rate = self._rates.index_select(0, self._at)[0]
        for group in self._optimizer.param_groups:
            if isinstance(group["lr"], torch.Tensor):
                group["lr"].copy_(rate)
            else:
                group["lr"] = float(rate)
        loss = step_of(
            self._model, self._optimizer, lambda: loss_of(self._model, given, self._positions)
        )
        self._losses.index_copy_(0, self._at, loss[None])
        self._at += 1

    def _recorded(self, step: int) -> torch.cuda.CUDAGraph:
        """The graph of a step. The weights and the state of the optimizer stay as they are."""
        assert self._stream is not None
        self._stream.wait_stream(torch.cuda.current_stream(self._stream.device))
        weights = [one.detach().clone() for one in self._model.parameters()]
        states = {
            one: {name: value.clone() for name, value in state.items()}
            for one, state in self._optimizer.state.items()
        }
        with torch.cuda.stream(self._stream):
            for _ in range(_REHEARSALS):
                self._whole_step()
                self._at.fill_(step)
            with torch.no_grad():
                for one, before in zip(self._model.parameters(), weights, strict=True):
                    one.copy_(before)
            for one, state in self._optimizer.state.items():
                for name, value in state.items():
                    value.copy_(states[one][name]) if one in states else value.zero_()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=self._stream):
            self._whole_step()
        return graph


Steps: TypeAlias = PlainSteps | RecordedSteps
