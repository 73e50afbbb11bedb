"""Against a real Ray: a cluster of two workers on this machine, whose processes are killed."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from eyechart.harness.analysis.tables.results import EFFECTIVE_LENGTHS, TABLE
from eyechart.harness.journal.record import SAMPLES, record_of
from eyechart.harness.satellites.ray import rows
from eyechart.harness.satellites.ray.rows import ResultRow, SampleRow, SettledCharges
from eyechart.harness.spec import Condition, Line, Sample
from eyechart.providers.base import AuthError, StopRunError, Usage
from tests.conftest import records
from tests.real_server import (
    ENVIRONMENT,
    MODEL,
    UNCOMPILED,
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
ASKED = ("--task", "counting/ones", "--exact", "--lengths", "20,30,40,50", "--samples", "400")
TINY = ("--model", "tiny")
RAY = ("--engine", "ray,workers=2")
PATIENCE_S = 900


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


def family(root: int) -> dict[int, str]:
    """A process and all that come from it, by their ids, with their command lines."""
    said, parents = {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError):
                stat = (entry / "stat").read_text().rpartition(")")[2].split()
                said[int(entry.name)] = (entry / "cmdline").read_text().replace("\0", " ")
                parents[int(entry.name)] = int(stat[1])
    found = {root}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return {pid: said[pid] for pid in found & said.keys()}


def listening(root: int) -> set[str]:
    """The addresses at which a process and all that come from it listen: hexadecimal, as in
    `/proc/net/tcp`.
    """
    sockets = {}
    for table in ("tcp", "tcp6"):
        for line in Path("/proc/net", table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A":
                sockets[f"socket:[{fields[9]}]"] = fields[1].partition(":")[0]
    found = set()
    for pid in family(root):
        with contextlib.suppress(OSError):
            for file in Path(f"/proc/{pid}/fd").iterdir():
                with contextlib.suppress(OSError):
                    found.add(sockets.get(str(file.readlink()), ""))
    return found - {""}


INTRUDER = {
    "RAY_AUTH_MODE": "token",
    "RAY_AUTH_TOKEN": "0" * 64,
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
}
LOOPBACK = {"0100007F", "0000000000000000FFFF00000100007F", f"{0:024X}01000000"}
"""127.0.0.1, the same as an IPv6 address, and ::1."""


def test_a_cluster_of_our_own_is_for_this_command_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It listens on the loopback address, lets in nobody without its token, has no dashboard, and
    writes no token into the home folder.
    """
    monkeypatch.setitem(ENVIRONMENT, "HOME", str(tmp_path))
    computing: set[int] = set()
    process = start(tmp_path, *ASKED, *TINY, *RAY)
    try:
        wait(lambda: lines(tmp_path) > 200, process)
        found, processes = listening(process.pid), family(process.pid)
        computing = processes.keys() & set(map_workers())
        for pid in computing:  # so the job does not end before the intruder comes
            os.kill(pid, signal.SIGSTOP)
        assert lines(tmp_path) < 3200
        port = re.search(r"--gcs-address=127\.0\.0\.1:(\d+)", " ".join(processes.values()))
        assert port is not None
        intruder = subprocess.run(
            [sys.executable, "-c", f"import ray; ray.init('127.0.0.1:{port[1]}')"],
            env={**os.environ, **INTRUDER},
            capture_output=True,
            timeout=PATIENCE_S,
            check=False,
        )
    finally:
        for pid in computing:
            os.kill(pid, signal.SIGCONT)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE_S)
    assert found
    assert found <= LOOPBACK
    for command in processes.values():
        assert "dashboard.py" not in command or "--disable-frontend" in command
    assert intruder.returncode != 0
    assert b"AuthenticationError" in intruder.stderr
    assert not (tmp_path / ".ray").exists()


def test_tables_of_python_objects_are_not_read() -> None:
    """Ray would unpickle them; a table of ours comes through as it was."""
    import pyarrow as pa

    sample = Sample("x", Condition({"a": "b"}), Line(3, 3, 3), 3, 0, "1 1 1", 3)
    back = [
        ResultRow(
            0, record_of(sample, reply="3"), None, SettledCharges((Usage(1, 2), Usage(3, 4)), 1)
        ),
        ResultRow(1, None, AuthError("no such key")),
    ]
    table = rows.back_table(back)
    again = rows.read_table(table)
    assert again[0] == back[0]
    assert (type(again[1].stop), str(again[1].stop)) == (AuthError, "no such key")
    (asked,) = rows.tables([SampleRow(0, sample, 5)])
    assert rows.read_asked(asked.to_pylist()[0]) == SampleRow(0, sample, 5)
    kind = pa.opaque(pa.binary(), "objects", "ray")  # as the type of Ray's own for them
    objects = pa.ExtensionArray.from_storage(kind, pa.array([b"", b""], pa.binary()))
    for bad in (
        table.set_column(1, "record", objects),
        table.set_column(2, "stop", pa.array([1, 2])),
        table.set_column(3, "charged", objects),
        table.drop_columns(["run"]),
    ):
        with pytest.raises(StopRunError, match="a table without a proper column"):
            rows.read_table(bad)


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
    assert process.returncode == 130, said
    assert b"the same command continues" in said
    assert b"Traceback" not in said
    assert lines(tmp_path) > 200


@pytest.mark.vllm
@pytest.mark.skipif(not VLLM.exists(), reason="no vllm beside this Python; see .ci/vllm")
def test_engines_of_vllm_say_what_the_embedded_runtime_says(tmp_path: Path) -> None:
    """Every sample has the same reply, with the same end and as many tokens."""
    small = ("--exact", "--lengths", "5,10,20,50", "--samples", "4")
    task = ("--task", "counting,copying/first_last")
    model = ("--model", f"vllm/{MODEL}")
    served = ("--dtype=float32", f"--max-model-len={WINDOW}", UNCOMPILED)
    arguments = [f"--model-arg={one}" for one in served]
    tiny, engines = tmp_path / "tiny", tmp_path / "vllm"
    for out in (tiny, engines):
        out.mkdir()
    bench(tiny, *task, *small, *TINY)
    bench(engines, *task, *small, *model, *arguments, "--engine", "ray")
    assert_same(answers(tiny), answers(engines))
    assert len(runs(engines)) == len(runs(tiny)) > 1
