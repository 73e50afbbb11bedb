"""The two steps of the command: the tests without a mutant, then the tests on each mutant."""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tests.benchmarks.mutation.baseline import Baseline, BaselineRecorder, test_files
from tests.benchmarks.mutation.jobs import Jobs, run_pytest
from tests.benchmarks.mutation.mutants import Mutant

BASELINE_LIMIT_S = 1800


@dataclass
class Outcome:
    """Whether a mutant was killed, and by what."""

    mutant: Mutant
    killer: str
    """The test that failed, or how else the tests ended; empty if the mutant survived."""


class ChosenTests:
    """A plugin of pytest: runs only these tests, in this order, and notes the one that fails."""

    def __init__(self, tests: Sequence[str]) -> None:
        self.order = {test: place for place, test in enumerate(tests)}
        self.failed = ""

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Chooses and sorts the tests."""
        items[:] = sorted(
            (item for item in items if item.nodeid in self.order),
            key=lambda item: self.order[item.nodeid],
        )

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Notes which test failed first."""
        if report.failed:
            self.failed = self.failed or report.nodeid


def run_baselines(packages: Sequence[str], jobs: Jobs) -> dict[str, Baseline]:
    """Runs the tests of each package without a mutant.

    Raises:
        SystemExit: a test fails.
    """
    baselines: dict[str, Baseline] = {}

    def work(package: str, folder: Path) -> int:
        recorder = BaselineRecorder(folder)
        code = run_pytest(folder, test_files(package), recorder, folder / "output.txt")
        (folder / f"{package}.json").write_text(json.dumps(vars(recorder.baseline)))
        return code

    def done(package: str, folder: Path, code: int | None) -> None:
        if code != 0:
            output = (folder / "output.txt").read_text(errors="replace")
            raise SystemExit(f"the tests of {package} end with {code}\n{output[-3000:]}")
        baselines[package] = Baseline(**json.loads((folder / f"{package}.json").read_text()))

    for package in packages:
        jobs.start(partial(work, package), BASELINE_LIMIT_S, partial(done, package))
    jobs.finish()
    return baselines


def read_baselines(path: Path | None, packages: Sequence[str]) -> dict[str, Baseline]:
    """The baselines in file `path`; empty unless an earlier run kept all `packages` there."""
    kept = json.loads(path.read_text()) if path is not None and path.exists() else {}
    return {name: Baseline(**kept[name]) for name in packages} if {*packages} <= {*kept} else {}


def run_mutant(mutant: Mutant, tests: Sequence[str], folder: Path) -> int:
    """Runs `tests` on the mutant in the copy `folder`; returns pytest's exit code."""
    (folder / mutant.path).write_bytes(mutant.changed_source)
    chosen = ChosenTests(tests)
    paths = list(dict.fromkeys(test.split("::")[0] for test in tests))
    code = run_pytest(folder, paths, chosen, folder / "output.txt")
    (folder / "failed.txt").write_text(chosen.failed)
    return code


def run_mutants(
    mutants: Sequence[Mutant],
    baselines: dict[str, Baseline],
    jobs: Jobs,
    *,
    test_limit_s: float,
    end_s: float,
) -> list[Outcome]:
    """Runs the tests on each mutant; none begins after `end_s`. Prints each outcome to stderr."""
    outcomes: list[Outcome] = []

    def add(mutant: Mutant, killer: str) -> None:
        outcomes.append(Outcome(mutant, killer))
        print(f"{len(outcomes)} {mutant}  [{killer or 'SURVIVED'}]", file=sys.stderr)

    def done(mutant: Mutant, folder: Path, code: int | None) -> None:
        (folder / mutant.path).write_bytes(mutant.source)
        shutil.rmtree(folder / ".hypothesis", ignore_errors=True)
        failed_file = folder / "failed.txt"
        failed = failed_file.read_text() if failed_file.exists() else ""
        failed_file.unlink(missing_ok=True)
        if code is None:
            add(mutant, "time")
        else:
            add(mutant, (failed or f"exit code {code}") if code else "")

    for mutant in mutants:
        if time.monotonic() > end_s:
            break
        baseline = baselines[mutant.package]
        tests = baseline.tests(mutant, test_limit_s)
        if not tests:
            add(mutant, "")
            continue
        limit_s = 30 + 4 * sum(baseline.seconds[test] for test in tests)
        jobs.start(partial(run_mutant, mutant, tests), limit_s, partial(done, mutant))
    jobs.finish()
    return outcomes
