"""The same samples through lm-evaluation-harness and through `bench run`, end to end.

    python tests/benchmarks/against_lm_eval.py --lm-eval-python ENV/bin/python [--samples 20000]

Both ask the same zero-latency server over 64 connections and keep and score every reply: lm-eval as
`local-chat-completions` on a task made of our samples, with `--log_samples`; `bench run` on the
task itself. Whole processes are timed, start-up and all. ENV is an environment with
`pip install 'lm-eval[api]'`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from pathlib import Path

from tests.benchmarks.measure import (
    CELLS,
    Cost,
    bench_run,
    cheapest,
    local_server,
    run,
    samples_plan,
    show,
)

TASK = """\
task: eyechart_rows
dataset_path: json
dataset_kwargs: {data_files: {test: %s}}
test_split: test
output_type: generate_until
doc_to_text: "{{prompt}}"
doc_to_target: "{{target}}"
generation_kwargs: {until: [], max_gen_toks: 288, temperature: 0.0}
filter_list:
  - name: phrase
    filter:
      - {function: regex, regex_pattern: "Final answer: (-?[0-9]+)"}
      - {function: take_first}
metric_list:
  - {metric: exact_match, aggregation: mean, higher_is_better: true}
metadata: {version: 1}
"""


def write_task(folder: Path, samples: int) -> None:
    """Our samples as a task of lm-eval's."""
    rows = folder / "rows.jsonl"
    with rows.open("w", encoding="utf-8") as file:
        for sample in samples_plan(samples):
            file.write(json.dumps({"prompt": sample.prompt, "target": str(sample.target)}) + "\n")
    (folder / "eyechart_rows.yaml").write_text(TASK % json.dumps(str(rows)))


def lm_eval(python: Path, url: str, folder: Path, connections: int) -> Cost:
    """One run of lm-eval's, with its caches in `folder`."""
    model = {
        "model": "fake",
        "base_url": f"{url}/chat/completions",
        "num_concurrent": connections,
        "tokenized_requests": False,
        "max_retries": 1,
    }
    said = ",".join(f"{name}={value}" for name, value in model.items())
    command: list[str | Path] = [
        *(python, "-m", "lm_eval", "--model", "local-chat-completions", "--model_args", said),
        *("--tasks", "eyechart_rows", "--include_path", folder, "--apply_chat_template"),
        *("--output_path", folder / "out", "--log_samples"),
    ]
    return run(command, folder, HF_HOME=str(folder / "hf"), HF_HUB_OFFLINE="1")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--lm-eval-python", type=Path, required=True)
    parser.add_argument("--samples", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--model", default="vllm/fake")
    given = parser.parse_args()
    found = subprocess.run(
        [given.lm_eval_python, "-c", "import lm_eval"], capture_output=True, check=False
    )
    if found.returncode:
        raise SystemExit(
            f"{given.lm_eval_python} cannot import lm_eval: pip install 'lm-eval[api]'"
        )
    ours: list[Cost] = []
    theirs: list[Cost] = []
    with tempfile.TemporaryDirectory() as temporary, local_server() as url:
        folder = Path(temporary)
        write_task(folder, given.samples // CELLS)
        for number in range(given.rounds):
            theirs.append(lm_eval(given.lm_eval_python, url, folder, given.connections))
            out = folder / f"ours-{number}"
            ours.append(bench_run(given.model, url, given.samples // CELLS, given.connections, out))
    slow, fast = cheapest(theirs), cheapest(ours)
    print(f"{given.samples:,} samples, {given.connections} connections, best of {given.rounds}\n")
    show(
        ["", "seconds", "samples/s", "CPU s", "peak MB"],
        [
            [
                name,
                f"{cost.wall_s:.1f}",
                f"{given.samples / cost.wall_s:,.0f}",
                f"{cost.cpu_s:.1f}",
                f"{cost.peak_mb:.0f}",
            ]
            for name, cost in (("lm-eval", slow), ("bench run", fast))
        ],
    )
    print(
        f"bench run: {slow.wall_s / fast.wall_s:.1f} times as fast, "
        f"{slow.cpu_s / fast.cpu_s:.1f} times less CPU, "
        f"{slow.peak_mb / fast.peak_mb:.1f} times less memory"
    )


if __name__ == "__main__":
    main()
