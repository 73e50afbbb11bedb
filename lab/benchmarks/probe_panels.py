"""The panels of Barbero et al. 2024's figure 5, for the embedded model and two with random weights.

    python lab/benchmarks/probe_panels.py

The largest difference of the state at the end for n and n + 1 ones, after the final norm, as a
share of its largest number: in float32 and in bfloat16, without separators and with a comma after
every third one. Below 2^-7 = 0.0078 bfloat16 may not tell them apart. Needs torch, transformers.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import tempfile
from collections.abc import Iterator
from pathlib import Path

from eyechart.harness.plan.plan import plan
from eyechart.harness.task.catalogue import built_in_files, open_task
from eyechart.providers.base import ModelSettings
from eyechart_lab.probe.engine import Probe
from eyechart_lab.probe.folder import ProbeFolder, read_measured
from eyechart_lab.probe.inside import Inside
from tests import hf_models

LENGTHS = (1, 5, 20, 50, 100, 200, 500)
SEPARATORS = ("none", "every_third")
WINDOW = {"llama": "max_position_embeddings", "gpt2": "n_positions"}


def models(folder: Path) -> Iterator[tuple[str, Inside]]:
    """The embedded model, a Llama and a GPT-2 with random weights."""
    from eyechart_lab.probe.hf.inside import open_inside, open_tiny

    yield "tiny", open_tiny(ModelSettings("tiny"))
    for name, window in WINDOW.items():
        kind, fields = hf_models.MODELS[name]
        hf_models.MODELS[name] = (kind, fields | {window: 4096})
        (folder / name).mkdir()
        hf_models.write(folder / name, name)
        yield (
            f"{name}, random weights",
            open_inside(ModelSettings(str(folder / name), device="cpu")),
        )


def main() -> None:
    task = open_task("counting/ones", built_in_files()["counting/ones"], trial=False)
    planned = plan(
        task,
        lengths=LENGTHS,
        samples=2,
        exact=True,
        axes={"separator": SEPARATORS, "strategy": ["direct"]},
    )
    with tempfile.TemporaryDirectory() as given:
        folder = Path(given)
        for number, (name, inside) in enumerate(models(folder)):
            with ProbeFolder(folder / str(number)) as writer:
                Probe(planned, inside, writer, ["collapse"]).run(lambda _done, _total: None)
            measured = list(read_measured(folder / str(number)))
            for separator in SEPARATORS:
                for suffix in ("", "_bfloat16"):
                    quantity = f"final_relative_end{suffix}"
                    means = []
                    for length in LENGTHS:
                        values = [
                            value
                            for one in measured
                            if one.length == length and one.condition["separator"] == separator
                            for what, _, _, value in one.found
                            if what == quantity and value is not None
                        ]
                        means.append(f"{sum(values) / len(values):.4f}")
                    precision = suffix.removeprefix("_") or "float32"
                    print(f"{name:22} {separator:12} {precision:9}", *means)


if __name__ == "__main__":
    main()
