"""The tests of a package without a mutant: how long each takes, and which functions it calls."""

from __future__ import annotations

import sys
import threading
import time
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest

from tests.benchmarks.mutation.mutants import Mutant

OTHERS = {
    "score": ("export_lm_eval", "task_scorer"),
    "analysis": ("columns", "doors", "report_page"),
    "run": ("cli_interrupts", "cli_draws", "cli_adaptive", "cli_app"),
    "journal": ("run_batch_files", "run_task_run"),
}
"""Package of `harness` -> further test files, without `test_` and `.py`."""


def test_files(package: str) -> list[str]:
    """Paths of the test files of a package: those that are named by it, and `OTHERS`."""
    root = Path(__file__).resolve().parents[2]
    named = {
        path.name for pattern in ("", "_*") for path in root.glob(f"test_{package}{pattern}.py")
    }
    return [f"tests/{name}" for name in sorted(named)] + [
        f"tests/test_{name}.py" for name in OTHERS[package]
    ]


@dataclass
class Baseline:
    """What the tests of a package did without a mutant."""

    seconds: dict[str, float] = field(default_factory=dict)
    """Test -> its duration."""
    calls: dict[str, list[tuple[str, int]]] = field(default_factory=dict)
    """Test -> file and first line of each function that it called."""
    processes: list[str] = field(default_factory=list)
    """Tests that start processes; calls in these processes are not noted."""

    def tests(self, mutant: Mutant, limit_s: float) -> list[str]:
        """The tests that may kill `mutant`, the quickest first, as many as `limit_s` allows."""
        lines = range(mutant.first_line, mutant.last_line + 1)
        calling = [
            test
            for test, calls in self.calls.items()
            if not mutant.first_line
            or any(path == mutant.path and line in lines for path, line in calls)
        ]
        others = [test for test in self.processes if test not in calling]
        ordered = [
            *sorted(calling, key=lambda test: self.seconds[test]),
            *sorted(others, key=lambda test: self.seconds[test]),
        ]
        ends_s = accumulate(self.seconds[test] for test in ordered)
        return [test for test, end_s in zip(ordered, ends_s, strict=True) if end_s <= limit_s]


class BaselineRecorder:
    """A plugin of pytest: fills a baseline with the calls and the duration of each test."""

    def __init__(self, folder: Path) -> None:
        self.root = f"{folder}/eyechart/"
        self.baseline = Baseline()
        self.calls: set[tuple[str, int]] = set()
        self.fixture_calls: dict[object, set[tuple[str, int]]] = {}
        self.starts_processes = False

    def trace(self, frame: Any, event: str, _: object) -> None:
        """Python calls this when a function begins."""
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(f"{self.root}harness/"):
            self.calls.add((code.co_filename[len(self.root) :], code.co_firstlineno))
        elif code.co_name == "__init__" and code.co_qualname == "Popen.__init__":
            self.starts_processes = True

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Any:
        """Notes the calls of a fixture that several tests share: they count for all of them."""
        if fixturedef.scope == "function":
            return (yield)
        calls_before, self.calls = self.calls, set()
        try:
            return (yield)
        finally:
            self.fixture_calls[fixturedef] = self.calls
            self.calls = calls_before

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Any:
        """Traces one test."""
        self.calls, self.starts_processes = set(), False
        started_s = time.perf_counter()
        threading.settrace(self.trace)
        sys.settrace(self.trace)
        try:
            return (yield)
        finally:
            sys.settrace(None)
            threading.settrace(None)
            for fixtures in item._fixtureinfo.name2fixturedefs.values():
                for fixture in fixtures:
                    self.calls |= self.fixture_calls.get(fixture, set())
            self.baseline.seconds[item.nodeid] = time.perf_counter() - started_s
            self.baseline.calls[item.nodeid] = sorted(self.calls)
            if self.starts_processes:
                self.baseline.processes.append(item.nodeid)
