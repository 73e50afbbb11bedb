"""Forked processes, each with a copy of the checkout, and the tests that run in them."""

from __future__ import annotations

import compileall
import os
import py_compile
import resource
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

from tests.benchmarks.mutation.mutants import ROOT

COPIED = (
    *("eyechart", "harness", "providers", "tasks", "tests", "results"),
    *("pyproject.toml", "README.md"),
)
LEFT_OUT = ("test_time_is_linear",)
"""Tests that measure time: other load on the machine would make them fail."""
MAX_MEMORY = 8 << 30


def copy_checkout(folder: Path) -> Path:
    """Copies the checkout to `folder`."""
    folder.mkdir(parents=True)
    for name in COPIED:
        source, target = ROOT / name, folder / name
        if source.is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(source, target, symlinks=True, ignore=ignored)
        elif source.exists():
            shutil.copy(source, target)
    # Compiled files are checked by hash: a mutant can have the size and the time of the original.
    by_hash = py_compile.PycInvalidationMode.CHECKED_HASH
    for name in ("harness", "providers"):
        compileall.compile_dir(folder / name, quiet=2, invalidation_mode=by_hash)
    return folder


def run_pytest(folder: Path, tests: Sequence[str], plugin: object, output: Path) -> int:
    """Runs pytest in the copy `folder` until one test fails; returns pytest's exit code.

    The process must be forked for this: its folder, its output and its limits are changed.
    """
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.chdir(folder)
    resource.setrlimit(resource.RLIMIT_DATA, (MAX_MEMORY, MAX_MEMORY))
    with output.open("wb") as file:
        for descriptor in (1, 2):
            os.dup2(file.fileno(), descriptor)
    sys.path[0] = str(folder)
    os.environ["PYTHONPATH"] = str(folder)
    options = ["-x", "-q", "-n", "0", "-p", "no:cacheprovider", "--tb=short"]
    # The command has imported libraries before pytest could rewrite their assertions.
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
    options += ["-k", f"not {' and not '.join(LEFT_OUT)}"]
    return int(pytest.main([*options, *tests], plugins=[plugin]))


def fork(work: Callable[[], int]) -> int:
    """Forks a process that does `work` and exits with its result; returns the process id."""
    sys.stdout.flush()
    child = os.fork()
    if child:
        return child
    code = 99
    try:
        code = work()
    except BaseException:  # noqa: BLE001  the forked process must end here, whatever was raised
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


@dataclass
class Job:
    """A forked process that runs tests in a copy."""

    folder: Path
    end_s: float
    done: Callable[[Path, int | None], None]


@dataclass
class Jobs:
    """All forked processes, at most one for each copy of the checkout."""

    free_copies: list[Path]
    running: dict[int, Job] = field(default_factory=dict)

    def start(
        self,
        work: Callable[[Path], int],
        limit_s: float,
        done: Callable[[Path, int | None], None],
    ) -> None:
        """Starts `work` in the next free copy.

        `done` gets the copy and the exit code; `None` if the process was killed after `limit_s`.
        """
        while not self.free_copies:
            self.wait()
        folder = self.free_copies.pop()
        process = fork(partial(work, folder))
        self.running[process] = Job(folder, time.monotonic() + limit_s, done)

    def wait(self) -> None:
        """Waits 0.02 s, then kills the processes whose time is up and reports those that ended."""
        time.sleep(0.02)
        for process, job in list(self.running.items()):
            code: int | None = None
            ended, status = os.waitpid(process, os.WNOHANG)
            if ended:
                code = os.waitstatus_to_exitcode(status)
            elif time.monotonic() < job.end_s:
                continue
            with suppress(ProcessLookupError):  # the group: also processes that the tests started
                os.killpg(process, signal.SIGKILL)
            if not ended:
                os.waitpid(process, 0)
            del self.running[process]
            self.free_copies.append(job.folder)
            job.done(job.folder, code)

    def finish(self) -> None:
        """Waits until all processes have ended."""
        while self.running:
            self.wait()

    def stop(self) -> None:
        """Kills all processes."""
        for process in self.running:
            with suppress(ProcessLookupError):
                os.killpg(process, signal.SIGKILL)
