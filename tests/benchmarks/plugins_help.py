"""How long `bench --help` takes with ten plugins installed, and without.

    python -m tests.benchmarks.plugins_help --runs 100

The two commands run in turn. Prints the ratio of the mean times with its 95 % interval from a
bootstrap over the pairs, and the same of `bench tasks`, which reads the plugins.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from eyechart.providers.plugins.plugins import PROVIDERS, TASKS
from tests.plugged import EXAMPLES, plug

ROOT = Path(__file__).parents[2]
PLUGINS = 10


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=60, help="pairs of runs (default: 60)")
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as empty, tempfile.TemporaryDirectory() as site:
        for number in range(PLUGINS):
            points = {
                PROVIDERS: {f"command{number}": "eyechart_command:open_provider"},
                TASKS: {f"brackets{number}": "eyechart_brackets"},
            }
            plug(Path(site), f"eyechart-plugin-{number}", points)
        for arguments in (["--help"], ["tasks"]):
            _compare(arguments, [empty, site], runs)


def _compare(arguments: list[str], sites: list[str], runs: int) -> None:
    code = map(str, sorted(EXAMPLES.iterdir()))
    rest = [str(ROOT), *code]  # as many folders for Python's imports, with plugins and without
    paths = [os.pathsep.join([site, *rest]) for site in sites]
    for path in paths:  # files are read once before the clock runs
        _seconds(arguments, path)
    pairs = np.array([[_seconds(arguments, path) for path in paths] for _ in range(runs)])
    drawn = np.random.default_rng(0).integers(runs, size=(10_000, runs))
    ratios = pairs[drawn, 1].sum(axis=1) / pairs[drawn, 0].sum(axis=1)
    low, high = np.quantile(ratios, [0.025, 0.975])
    without, with_them = pairs.mean(axis=0) * 1000
    print(
        f"bench {' '.join(arguments)}: {without:.1f} ms without, {with_them:.1f} ms with {PLUGINS} "
        f"plugins, ratio {with_them / without:.3f} ({low:.3f}-{high:.3f}), {runs} pairs"
    )


def _seconds(arguments: list[str], path: str) -> float:
    begun = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "eyechart.harness", *arguments],
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.DEVNULL,
        check=True,
    )
    return time.perf_counter() - begun


if __name__ == "__main__":
    main()
