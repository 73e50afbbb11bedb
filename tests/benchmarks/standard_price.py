"""What the study `standard` asks of models that see to different lengths, and its price.

    python tests/benchmarks/standard_price.py [--price 2]

Each model is an oracle, right up to a length; requests and tokens are those of the samples that the
adaptive study really asked it. Tokens are estimated as in `bench run --dry-run`: a token a digit or
sign, one per five letters. A reply is taken to be as long as the right one.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from pathlib import Path

from eyechart.harness.journal.manifest import find_runs
from eyechart.harness.journal.record import read_records
from eyechart.harness.plan.cost import estimate_tokens
from eyechart.harness.plan.plan import make_sample
from eyechart.harness.spec import Line
from eyechart.harness.task.catalogue import open_task
from tests.benchmarks.measure import bench, show

SEES = (5, 10, 30, 100, 300, 1000)


def tokens(out: Path) -> tuple[int, int, int]:
    """Requests, tokens of prompts and tokens of replies of all runs in `out`."""
    requests = prompts = replies = 0
    for folder in find_runs(out):
        name = "/".join(folder.parts[-2:]).partition("@")[0]
        task = open_task(name, Path("tasks") / f"{name}.yaml", trial=False)
        for record in read_records(folder):
            line = Line.exact(record.length)
            sample = make_sample(task, record.condition, line, record.index, 0)
            requests += 1
            prompts += estimate_tokens(sample.prompt)
            replies += estimate_tokens(record.reply or "")
    return requests, prompts, replies


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--price", type=float, default=2.0, help="dollars a million tokens")
    given = parser.parse_args()
    rows = []
    for sees in SEES:
        with tempfile.TemporaryDirectory() as temporary:
            out = Path(temporary) / "results"
            command = bench("run", "standard", "--model", f"oracle:{sees}", "--out", out)
            ended = subprocess.run(list(map(str, command)), capture_output=True, check=False)
            assert ended.returncode in (0, 1), ended.stderr  # 1: a length is not known well enough
            requests, prompts, replies = tokens(out)
        dollars = (prompts + replies) * given.price / 1e6
        rows.append(
            [f"{sees:,}", f"{requests:,}", f"{prompts:,}", f"{replies:,}", f"{dollars:.2f}"]
        )
    show(["sees to", "requests", "tokens of prompts", "of replies", "dollars"], rows)


if __name__ == "__main__":
    main()
