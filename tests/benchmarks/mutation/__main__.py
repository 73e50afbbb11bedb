"""How many small errors in the code the tests notice: mutants, killed and survived.

    python -m tests.benchmarks.mutation [--sample 160] [--seed 0] [--package score] [--jobs 2]

A mutant is the code with one small change: `<` for `<=`, `and` for `or`, `+` for `-`, a condition
negated, a number one more or one less, True for False, `min` for `max`, `None` returned, a
statement left out. It is killed if a test fails, or if the tests take far longer than without it;
else it survives. Then a test is missing, or the change has no effect that a test should see
(`REASONS`).

Not changed: texts, f-strings, regular expressions, annotations, decorators, assertions, and what is
raised (only whether). So the figures do not measure how well patterns are tested.

Mutants are drawn at random, from each package as its share of all is. The rate is that of a sample,
so it has a Wilson interval. The row `without those of REASONS` leaves out survivors that have a
reason there.

Nothing is written to the checkout: each job has a copy of it. The tests run once without a mutant,
and all must pass; that run notes the functions that each test calls. A mutant then meets only the
tests of its package (`test_files`) that call the function it is in, the quickest first, until one
fails, and last those that start processes; a mutant outside of functions meets all of them. Tests
beyond `--test-seconds` are not run, so the share killed is a lower bound.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import random
import signal
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from tests.benchmarks.mutation.baseline import OTHERS
from tests.benchmarks.mutation.jobs import Jobs, copy_checkout
from tests.benchmarks.mutation.mutants import draw, find
from tests.benchmarks.mutation.report import print_report
from tests.benchmarks.mutation.runner import read_baselines, run_baselines, run_mutants

LIBRARIES = (
    *("numpy", "pandas", "pydantic", "hypothesis", "orjson", "msgspec", "aiohttp", "httpx2"),
    *("openai", "jinja2", "rich", "typer", "yaml", "filelock", "uvloop", "altair"),
)
"""Libraries that are imported once, before a process is forked for each mutant."""


def arguments() -> argparse.Namespace:
    """The arguments of the command."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.mutation",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--sample", type=int, default=160, help="mutants drawn (160)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--package", choices=tuple(OTHERS), action="append")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=60, help="no mutant begins later (60)")
    parser.add_argument(
        "--test-seconds", type=float, default=60, help="tests of one mutant, the quickest ones (60)"
    )
    parser.add_argument(
        "--baseline",
        type=Path,
        help="file that keeps what the tests do without a mutant, for later runs of equal tests",
    )
    parser.add_argument("--list", action="store_true", help="only list the mutants")
    return parser.parse_args()


def import_libraries() -> None:
    """Imports `LIBRARIES`, so that no forked process has to, and makes hypothesis quick."""
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    for name in LIBRARIES:
        with suppress(ImportError):
            importlib.import_module(name)
    hypothesis = importlib.import_module("hypothesis")
    hypothesis.settings.register_profile(
        "mutants",
        deadline=None,
        derandomize=True,
        phases=[hypothesis.Phase.generate],  # no time for the smallest example
    )
    hypothesis.settings.load_profile("mutants")


def main() -> None:
    """Runs the command."""
    options = arguments()
    packages = options.package or list(OTHERS)
    mutants = {package: find(package) for package in packages}
    drawn = draw(mutants, options.sample, random.Random(options.seed))
    if options.list:
        print("\n".join(map(str, drawn)))
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that `jobs.stop` runs
    started_s = time.monotonic()
    import_libraries()
    with tempfile.TemporaryDirectory() as folder:
        jobs = Jobs([copy_checkout(Path(folder) / str(job)) for job in range(options.jobs)])
        try:
            baselines = read_baselines(options.baseline, packages) or run_baselines(packages, jobs)
            if options.baseline:
                kept = {package: vars(baseline) for package, baseline in baselines.items()}
                options.baseline.write_text(json.dumps(kept))
            print(f"without a mutant: {time.monotonic() - started_s:.0f} s", file=sys.stderr)
            outcomes = run_mutants(
                drawn,
                baselines,
                jobs,
                test_limit_s=options.test_seconds,
                end_s=started_s + 60 * options.minutes,
            )
        finally:
            jobs.stop()
    print_report(outcomes, mutants)
    print(f"\n{time.monotonic() - started_s:.0f} s")


if __name__ == "__main__":
    main()
