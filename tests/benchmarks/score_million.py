"""`bench score` of a long journal: its time and its peak memory.

    python tests/benchmarks/score_million.py [--samples 1000000]

The journal is of a model that is right on short rows and off on long ones, in sentences of several
shapes, steps before some of them. The yardstick is reading the same lines as JSON alone.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from pathlib import Path

from eyechart.harness.journal.manifest import Manifest, write_manifest
from eyechart.harness.journal.record import SAMPLES, encode
from eyechart.harness.plan.plan import Plan
from eyechart.harness.run.records import answered
from eyechart.harness.spec import Cell, Sample, Settings
from eyechart.providers.base import Reply, Usage
from tests.benchmarks.measure import CELLS, bench, run, samples_plan, show

READ = "import orjson, sys; print(sum(len(orjson.loads(line)) for line in open(sys.argv[1], 'rb')))"


def reply(sample: Sample, rng: random.Random) -> str:
    """An answer in one of several shapes; wrong more often with length."""
    target = int(sample.target)
    said = target if rng.randrange(200) > sample.length else round(target * rng.uniform(0.8, 1.1))
    shape = rng.randrange(10)
    if shape == 0:
        return f"Let me count: {', '.join(map(str, range(1, 12)))} …\nFinal answer: {said}"
    if shape == 1:
        return f"**Final answer:** {said}"
    return "I cannot tell." if shape == 2 else f"Final answer: {said}"


def write_run(folder: Path, planned: Plan) -> None:
    """A complete run's folder, written at once."""
    rng = random.Random(0)
    with (folder / SAMPLES).open("wb") as file:
        for sample in planned:
            said = Reply(reply(sample, rng), usage=Usage(sample.length + 60, 4), model="fake")
            record = answered(sample, said, attempts=1, latency_s=0.0123)
            file.write(encode(record) + b"\n")
    task = planned.task
    write_manifest(
        folder,
        Manifest(
            model="scripted/million",
            task=task.name,
            task_version=task.spec.version,
            task_digest=task.spec.digest(),
            spec=task.spec.model_dump(mode="json"),
            settings=Settings(),
            cells=[
                Cell(condition, line, size) for (condition, line), size in planned.sizes.items()
            ],
        ),
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--samples", type=int, default=1_000_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_run(folder, samples_plan(given.samples // CELLS))
        size_mb = (folder / SAMPLES).stat().st_size / 1e6
        alone = run([sys.executable, "-c", READ, folder / SAMPLES], folder)
        rows = []
        for name in ("first time", "again"):
            cost = run(bench("score", folder), folder)
            ratio = cost.wall_s / alone.wall_s
            rows.append([name, f"{cost.wall_s:.1f}", f"{ratio:.1f}", f"{cost.peak_mb:.0f}"])
    print(f"{given.samples:,} journal lines, {size_mb:.0f} MB; JSON alone {alone.wall_s:.1f} s\n")
    show(["bench score", "s", "of JSON alone", "peak MB"], rows)


if __name__ == "__main__":
    main()
