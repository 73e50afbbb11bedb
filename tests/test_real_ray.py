"""Against a real Ray: a cluster of two workers on this machine, whose processes are killed."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.analysis.results import EFFECTIVE_LENGTHS, TABLE
from harness.journal.record import SAMPLES
from tests.conftest import records
from tests.real_server import (
    ENVIRONMENT,
    MODEL,
    VLLM,
    WINDOW,
    answers,
    assert_same,
    bench,
    runs,
    start,
    the_run,
)

pytestmark = [
    pytest.mark.ray,
    pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="no Ray; see .ci/vllm"),
]
ASKED = ("--task", "counting/ones", "--lengths", "20,30,40,50", "--samples", "400")
TINY = ("--model", "tiny")
RAY = ("--engine", "ray", "--ray-workers", "2")
PATIENCE_S = 120.0


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run without a cluster."""
    out = tmp_path_factory.mktemp("alone")
    bench(out, *ASKED, *TINY)
    return the_run(out)


def lines(out: Path) -> int:
    """Records that are written so far."""
    return sum(path.read_bytes().count(b"\n") for path in out.rglob(SAMPLES))


def wait(condition: Callable[[], object], process: subprocess.Popen[bytes]) -> None:
    """Waits until `condition` holds, while the process runs."""
    end_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end_s
        time.sleep(0.05)


def map_workers() -> list[int]:
    """The processes of Ray Data that have a worker of a job."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError):
                if (entry / "cmdline").read_bytes().startswith(b"ray::MapWorker"):
                    found.append(int(entry.name))
    return found


def same(one: Path, other: Path) -> None:
    """Two runs have the same tables."""
    for name in (TABLE, EFFECTIVE_LENGTHS):
        assert (one / name).read_bytes() == (other / name).read_bytes()


def test_a_killed_worker_costs_nothing(alone: Path, tmp_path: Path) -> None:
    """Its block is asked again by another; the table is that without a cluster."""
    before = set(map_workers())
    process = start(tmp_path, *ASKED, *TINY, *RAY)
    wait(lambda: lines(tmp_path) > 200, process)
    mine = [pid for pid in map_workers() if pid not in before]
    assert mine
    os.kill(mine[0], signal.SIGKILL)
    _, said = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, said
    same(alone, the_run(tmp_path))
    assert len(records(the_run(tmp_path))) == 3200


def test_a_killed_driver_goes_on(alone: Path, tmp_path: Path) -> None:
    """The same command asks what has no answer, and no more; the cluster ended with the driver."""
    before = set(map_workers())
    process = start(tmp_path, *ASKED, *TINY, *RAY)
    wait(lambda: lines(tmp_path) > 200, process)
    mine = [pid for pid in map_workers() if pid not in before]
    process.kill()
    process.communicate()
    kept = lines(tmp_path)
    end_s = time.monotonic() + PATIENCE_S
    while any(Path(f"/proc/{pid}").exists() for pid in mine):
        assert time.monotonic() < end_s
        time.sleep(0.1)
    assert 200 < kept < 3200
    done = bench(tmp_path, *ASKED, *TINY, *RAY)
    assert f"{3200 - kept:,} samples go to 2 workers" in done.err
    same(alone, the_run(tmp_path))
    assert len(records(the_run(tmp_path))) == 3200


def test_an_interrupt_saves_what_came(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And ends the command with the code of an interrupt, without a second cluster: Ray starts one
    when a job that is ended calls a function of it.
    """
    with tempfile.TemporaryDirectory(prefix="ray") as folder:  # short, for the names of sockets
        monkeypatch.setitem(ENVIRONMENT, "RAY_TMPDIR", folder)
        process = start(tmp_path, *ASKED, *TINY, *RAY)
        wait(lambda: lines(tmp_path) > 200, process)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=PATIENCE_S)
        assert len(list(Path(folder, "ray").glob("session_2*"))) == 1
    assert process.returncode == 130
    assert b"the same command continues" in said
    assert b"Traceback" not in said
    assert lines(tmp_path) > 200


@pytest.mark.vllm
@pytest.mark.skipif(not VLLM.exists(), reason="no vllm beside this Python; see .ci/vllm")
@pytest.mark.parametrize("way", [(), ("--api", "completions")], ids=["chat", "completions"])
def test_engines_of_vllm_say_what_the_embedded_runtime_says(
    tmp_path: Path, way: tuple[str, ...]
) -> None:
    """Every sample has the same reply, with the same end and as many tokens."""
    small = ("--lengths", "5,10,20,50", "--samples", "4", *way)
    task = ("--task", "counting,copying/first_last")
    model = ("--model", f"vllm/{MODEL}")
    arguments = ("--vllm-arg=--dtype=float32", f"--vllm-arg=--max-model-len={WINDOW}")
    tiny, engines = tmp_path / "tiny", tmp_path / "vllm"
    for out in (tiny, engines):
        out.mkdir()
    bench(tiny, *task, *small, *TINY)
    bench(engines, *task, *small, *model, *arguments, "--engine", "ray")
    assert_same(answers(tiny), answers(engines))
    assert len(runs(engines)) == len(runs(tiny)) > 1
