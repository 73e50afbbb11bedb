"""What a probe costs against the bare passes over the same rows, in float32 and in bfloat16.

    python -m lab.benchmarks.probe_cost FOLDER [--lengths 5,50,500,2000] [--before CHECKOUT]

FOLDER is a model of Hugging Face. Measured is `collapse` on one row of `counting/ones` at each
length: the passes over n and n + 1 symbols. Bare passes are the model's own calls in transformers,
one for each prompt and precision, without watching anything. Each is a process of its own with one
thread; what loading the model in both precisions takes is a process too, and is taken off. With
`--before`, the probe of another checkout is measured in the same way. Needs torch and transformers.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.benchmarks.measure import Cost, run, show

LENGTHS = "5,10,20,50,100,200,500,1000,2000"
_THREADS = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
_BARE = """
import sys
import torch
from transformers import AutoModelForCausalLM
from eyechart.harness.plan.plan import make_sample, plan
from eyechart_lab.probe.hf.inside import open_inside
from eyechart.harness.spec import Line
from eyechart.harness.task.catalogue import built_in_files, open_task
from eyechart.providers.base import ModelSettings

folder, lengths = sys.argv[1], [int(one) for one in sys.argv[2].split(",") if one]
inside = open_inside(ModelSettings(folder, device="cpu", api="chat"))
task = open_task("counting/ones", built_in_files()["counting/ones"], trial=False)
axes = {"separator": ["none"], "strategy": ["direct"]}
(condition,) = plan(task, lengths=[5], samples=1, axes=axes).conditions
prompts = [
    inside.tokens(make_sample(task, condition, Line.exact(length + more), 0, 0).prompt).ids
    for length in lengths
    for more in (0, 1)
]
for precision in (torch.float32, torch.bfloat16):
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=precision).eval()
    with torch.inference_mode():
        for ids in prompts:
            model(torch.tensor([list(ids)]), use_cache=False)
"""


def bare(model: Path, lengths: str) -> Cost:
    with tempfile.TemporaryDirectory() as folder:
        return run([sys.executable, "-c", _BARE, model, lengths], Path(folder), **_THREADS)


def probe(model: Path, lengths: str, checkout: Path | None = None) -> Cost:
    with tempfile.TemporaryDirectory() as folder:
        asked = ["--model", f"hf/{model}", "--task", "counting/ones", "--axis", "separator=none"]
        how = ["--lengths", lengths, "--exact", "--samples", "1", "--device", "cpu"]
        command = [sys.executable, "-m", "eyechart.harness", "probe", *asked, *how]
        path = {} if checkout is None else {"PYTHONPATH": str(checkout.resolve())}
        return run(
            [*command, "--measure", "collapse", "--out", "out"],
            Path(folder),
            **_THREADS,
            **path,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path, help="folder of a model of Hugging Face")
    parser.add_argument("--lengths", default=LENGTHS)
    parser.add_argument("--before", type=Path, help="another checkout")
    given = parser.parse_args()
    model = given.model.resolve()
    loaded, passes = bare(model, ""), bare(model, given.lengths)
    costs = {"bare passes": passes, "probe": probe(model, given.lengths)}
    if given.before:
        costs["probe before"] = probe(model, given.lengths, given.before)
    print(f"loading: {loaded.cpu_s:.1f} s of CPU, {loaded.peak_mb:,.0f} MB", flush=True)
    of_passes = passes.cpu_s - loaded.cpu_s
    show(
        ("", "CPU, s", "without loading", "of the bare passes", "peak, MB"),
        [
            (
                name,
                f"{cost.cpu_s:.1f}",
                f"{cost.cpu_s - loaded.cpu_s:.1f}",
                f"{(cost.cpu_s - loaded.cpu_s) / of_passes:.2f}",
                f"{cost.peak_mb:,.0f}",
            )
            for name, cost in costs.items()
        ],
    )


if __name__ == "__main__":
    main()
