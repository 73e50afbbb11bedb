"""How fast the laboratory trains, beside a bare PyTorch loop of the same model on the same batches.

    python -m lab.benchmarks.lab_speed [--steps N] [--rounds N] [--device cuda]

The loop has its batches as tensors and does nothing but forward, loss, backward, clip and step. The
laboratory reads its examples, sets its learning rate and its random numbers, keeps the curve and
writes checkpoints. Both take turns. On a machine that does other work too the seconds of CPU are
compared, which that work changes least.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import torch

from eyechart_lab.variants import lab_command
from eyechart_lab.variants.folders import LabFolder
from eyechart_lab.variants.lab_command import LabOptions, lab
from eyechart_lab.variants.reading import read_lab
from eyechart_lab.variants.training.data import IGNORED, ExampleBatch, read_examples
from eyechart_lab.variants.training.order import ENDED, ORDER, WEIGHTS, TrainingOrder
from eyechart_lab.variants.training.steps import new_optimizer, on_device
from eyechart_lab.variants.training.train import new_model, steps_in

STUDY = """\
name: speed
title: How fast
seeds: 1
training: {{steps: {steps}, rows: 32, learning_rate: 0.003}}
tasks:
  - task: counting/bernoulli
    trained: [1, 32]
    lengths: [5]
    samples: 1
    axes: {{separator: [none]}}
variants:
  rope: {{layers: 2, width: 64, heads: 4}}
"""
"""The small configuration: two layers, width 64, one task, rows to 32."""


def prepare(folder: Path, steps: int) -> Path:
    """Draws the examples; returns the folder of the only training."""
    path = folder / "study.yaml"
    path.write_text(STUDY.format(steps=steps), encoding="utf-8")
    options = LabOptions(
        out=folder, jobs=1, device="cpu", dry_run=False, trusts=False, as_json=False
    )
    with mock.patch.object(lab_command, "train_all"):
        lab(path, options)
    (model,) = LabFolder.of(read_lab(path), folder).models()
    return model.training


class Took(NamedTuple):
    """How long something took."""

    wall_s: float
    cpu_s: float


@contextmanager
def timed(took: list[Took]) -> Iterator[None]:
    """Adds how long the context took."""
    wall, cpu = time.perf_counter(), time.process_time()
    yield
    took.append(Took(time.perf_counter() - wall, time.process_time() - cpu))


def of_lab(folder: Path, device: str, took: list[Took]) -> None:
    """A training of the laboratory, from its start to the written model."""
    for name in (ENDED, WEIGHTS):
        path = folder / name
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    with timed(took):
        for _ in steps_in(folder, device):
            pass


def of_loop(
    order: TrainingOrder,
    batches: Sequence[ExampleBatch],
    size: tuple[int, int],
    device: str,
    took: list[Took],
) -> None:
    """The bare loop, from the new model to the last step."""
    with timed(took):
        model = new_model(order, *size, device)
        optimizer = new_optimizer(model, order.training, device)
        for group in optimizer.param_groups:
            group["lr"] = group["lr"] + order.training.learning_rate / 2
        for ids, places, wanted in batches:
            optimizer.zero_grad(set_to_none=True)
            states = model.model(input_ids=ids[:, :-1], use_cache=False).last_hidden_state
            is_reply = wanted != IGNORED
            rows, at = is_reply.nonzero(as_tuple=True)
            logits = model.lm_head(states[rows, places[rows, at]])
            torch.nn.functional.cross_entropy(logits, wanted[is_reply]).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        model.lm_head.weight.cpu()  # when all is computed


def main() -> None:
    """Prints steps and tokens a second of both, their ratio, and the most memory."""
    parser = argparse.ArgumentParser(description="measure the speed of training")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--device", default="cpu")
    given = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        folder = prepare(Path(name), given.steps)
        order = TrainingOrder.model_validate_json((folder / ORDER).read_bytes())
        examples = read_examples(folder / order.examples, order.training)
        batches = [on_device(examples.batch(step), given.device) for step in range(given.steps)]
        tokens = sum(one.ids.numel() for one in batches)
        size = int(examples.ids.max()) + 1, int(examples.sizes.max())
        mine: list[Took] = []
        bare: list[Took] = []
        for _ in range(given.rounds + 1):
            of_lab(folder, given.device, mine)
            of_loop(order, batches, size, given.device, bare)
    for title, took in (("laboratory", mine[1:]), ("bare loop", bare[1:])):
        best = min(one.wall_s for one in took)
        cpu = min(one.cpu_s for one in took)
        print(
            f"{title:<12}{given.steps / best:>8.1f} steps/s{tokens / best:>10,.0f} tokens/s"
            f"{1000 * cpu / given.steps:>8.1f} ms of CPU a step"
        )
    ratios = [loop.cpu_s / lab_.cpu_s for lab_, loop in zip(mine[1:], bare[1:], strict=True)]
    print(f"speed of the laboratory / of the loop, median of {given.rounds} rounds: ", end="")
    print(f"{statistics.median(ratios):.2f} (wanted: at least 0.9)")
    unit = 1 << (20 if sys.platform == "darwin" else 10)
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
    print(f"most memory of the process: {most:,.0f} MiB")


if __name__ == "__main__":
    main()
