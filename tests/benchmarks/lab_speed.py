"""How fast the laboratory trains, beside a bare PyTorch loop of the same model on the same batches.

    python -m tests.benchmarks.lab_speed [--steps N] [--rounds N]

The loop has its batches as tensors and does nothing but forward, loss, backward, clip and step. The
laboratory reads its examples, sets its learning rate and its random numbers, keeps the curve and
writes checkpoints. Both take turns, so that whatever else the machine does meets both.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from unittest import mock

import torch

from eyechart.harness.satellites.lab import lab_command
from eyechart.harness.satellites.lab.data import IGNORED, read_examples
from eyechart.harness.satellites.lab.folders import LabFolder
from eyechart.harness.satellites.lab.lab_command import Wanted, lab
from eyechart.harness.satellites.lab.order import ENDED, ORDER, WEIGHTS, Order
from eyechart.harness.satellites.lab.reading import read_lab
from eyechart.harness.satellites.lab.train import new_model, new_optimizer, train

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
    options = Wanted(out=folder, jobs=1, device="cpu", dry_run=False, trusts=False, as_json=False)
    with mock.patch.object(lab_command, "train_all"):
        lab(path, options)
    (model,) = LabFolder.of(read_lab(path), folder).models()
    return model.training


def of_lab(folder: Path) -> float:
    """Seconds of a training of the laboratory, from its start to the written model."""
    for name in (ENDED, WEIGHTS):
        path = folder / name
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    begun = time.perf_counter()
    train(folder, lambda _step, _loss: None)
    return time.perf_counter() - begun


def of_loop(order: Order, batches: list[tuple[torch.Tensor, torch.Tensor]], size: Any) -> float:
    """Seconds of the bare loop, from the new model to the last step."""
    begun = time.perf_counter()
    model = new_model(order, *size)
    optimizer = new_optimizer(model, order.training)
    for group in optimizer.param_groups:
        group["lr"] = order.training.learning_rate / 2
    for ids, labels in batches:
        optimizer.zero_grad(set_to_none=True)
        states = model.model(input_ids=ids[:, :-1], use_cache=False).last_hidden_state
        wanted = labels[:, 1:]
        places = wanted != IGNORED
        logits = model.lm_head(states[places])
        torch.nn.functional.cross_entropy(logits, wanted[places]).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return time.perf_counter() - begun


def main() -> None:
    """Prints steps and tokens a second of both, their ratio, and the most memory."""
    parser = argparse.ArgumentParser(description="measure the speed of training")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        folder = prepare(Path(name), given.steps)
        order = Order.model_validate_json((folder / ORDER).read_bytes())
        examples = read_examples(folder / order.examples, order.recipe)
        arrays = [examples.batch(step) for step in range(given.steps)]
        batches = [tuple(map(torch.from_numpy, one)) for one in arrays]
        tokens = sum(int(one[0].size) for one in arrays)
        size = int(examples.ids.max()) + 1, max(one[0].shape[1] for one in arrays)
        of_lab(folder)
        of_loop(order, batches, size)
        pairs = [(of_lab(folder), of_loop(order, batches, size)) for _ in range(given.rounds)]
    for title, seconds in zip(("laboratory", "bare loop"), zip(*pairs, strict=True), strict=True):
        best = min(seconds)
        print(f"{title:<12}{given.steps / best:>8.1f} steps/s{tokens / best:>10,.0f} tokens/s")
    ratios = [loop / mine for mine, loop in pairs]
    print(f"speed of the laboratory / of the loop, median of {given.rounds} rounds: ", end="")
    print(f"{statistics.median(ratios):.2f} (wanted: at least 0.9)")
    unit = 1 << (20 if sys.platform == "darwin" else 10)
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
    print(f"most memory of the process: {most:,.0f} MiB")


if __name__ == "__main__":
    main()
