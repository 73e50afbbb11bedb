"""A real `vllm serve` of the embedded model's folder, and the processes that such a server has."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from fcntl import LOCK_EX, LOCK_SH, LOCK_UN, flock
from http import HTTPStatus
from http.client import HTTPException
from pathlib import Path
from typing import TypeAlias
from urllib.request import urlopen

import httpx2

from eyechart.harness.journal.manifest import MANIFEST
from tests.conftest import Done, records

ROOT = Path(__file__).parent.parent
MODEL = ROOT / "providers" / "tiny" / "model"
VLLM = Path(sys.executable).with_name("vllm")
USUAL = {
    **os.environ,
    "HF_HUB_OFFLINE": "1",
    "PYTHONPATH": str(ROOT),
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",  # else all servers compute on the same core
    "VLLM_NO_USAGE_STATS": "1",
}
"""The environment in which vLLM starts its usual processes: a server, and one that computes."""
ENVIRONMENT = {
    **USUAL,
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",  # the engine computes itself, without a worker
}
"""The environment of most servers and commands. Starting a worker takes eight seconds of processor
time. Later the worker takes more than half of the processor time of each request, because it waits
in a loop.
"""
UNCOMPILED = "--enforce-eager"
"""An argument of vLLM, which else compiles the model for a third of the time that it starts in.
`test_real_batch.py` leaves it out.
"""
WINDOW = 4096
Answers: TypeAlias = dict[str, tuple[object, ...]]
"""Sample id -> reply, finish reason, tokens of prompt and reply."""
STARTED_S = 900.0
"""How long a server may take to answer on a busy machine."""
GONE_S = 15.0
"""How long a server may take to end, and killed processes to vanish."""


def patiently(condition: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    """Waits until `condition` holds; fails once `process` has ended."""
    end_s = time.monotonic() + STARTED_S
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end_s
        time.sleep(0.02)


@dataclass(frozen=True)
class Server:
    """One that runs, with the model under the names `tiny` and `my-name`."""

    address: str

    @property
    def base_url(self) -> str:
        """What goes after --base-url."""
        return f"{self.address}/v1"

    def get(self, path: str) -> str:
        """What the server says at `path`."""
        return httpx2.get(f"{self.address}{path}", timeout=30.0).text

    def healthy(self) -> bool:
        """Whether it answers. Who waits asks again and again, and a client of httpx2 takes 20 ms of
        a processor, which a server that starts needs itself.
        """
        try:
            with urlopen(f"{self.address}/health", timeout=5.0) as answer:  # noqa: S310  loopback
                return bool(answer.status == HTTPStatus.OK)
        except (OSError, HTTPException):
            return False

    def counter(self, name: str) -> float:
        """The value of one of vLLM's counters in `/metrics`."""
        found = re.search(rf"^vllm:{name}{{.*}} (\S+)$", self.get("/metrics"), re.MULTILINE)
        assert found is not None, name
        return float(found[1])


@contextmanager
def serving(folder: Path, *arguments: str, model: Path = MODEL) -> Iterator[Server]:
    """Serves a model until the block ends, then ends the whole process group; the log is in
    `folder`.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    place = ("--host", "127.0.0.1", "--port", str(port))
    names = ("--served-model-name", "tiny", "my-name")
    how = ("--dtype", "float32", UNCOMPILED)
    with (folder / "serving.log").open("wb") as log:
        process = subprocess.Popen(
            [str(VLLM), "serve", str(model), *place, *names, *how, *arguments],
            env=ENVIRONMENT,
            cwd=folder,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    server = Server(f"http://127.0.0.1:{port}")
    try:
        patiently(server.healthy, process)
        yield server
    finally:
        with contextlib.suppress(ProcessLookupError, subprocess.TimeoutExpired):
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(GONE_S)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@contextmanager
def shared(folder: Path, *arguments: str) -> Iterator[Server]:
    """One server for all workers of pytest that name the same folder. The first worker starts it,
    and ends it when no other worker uses it. A worker that comes later starts a new one.
    """
    address = folder / "address"
    with (folder / "starting").open("w") as starting, (folder / "using").open("w") as using:
        flock(starting, LOCK_EX)
        flock(using, LOCK_SH)
        if address.exists():
            flock(starting, LOCK_UN)
            yield Server(address.read_text())
            return
        with serving(folder, *arguments) as ours:
            address.write_text(ours.address)
            flock(starting, LOCK_UN)
            yield ours
            flock(using, LOCK_EX)
            address.unlink()


def at_work(folder: Path) -> dict[int, str]:
    """Id and command line of processes whose working folder is `folder`, in whatever group.

    vLLM's processes give themselves names and groups, but stay in the folder they began in.
    """
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError):
                if (entry / "cwd").readlink() == folder:
                    found[int(entry.name)] = (entry / "cmdline").read_text(errors="replace")
    return found


def engines(folder: Path) -> list[int]:
    """The processes in `folder` that compute: the server's children, of which one has the model."""
    return [pid for pid, command in at_work(folder).items() if "EngineCore" in command]


def children(folder: Path, parent: int) -> list[int]:
    """The processes in `folder` that `parent` started itself."""
    return [
        pid
        for pid in at_work(folder)
        if int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]) == parent
    ]


def assert_nobody_left(folder: Path) -> None:
    """Fails if one of the processes in `folder` is still there after a moment."""
    end_s = time.monotonic() + GONE_S
    while at_work(folder) and time.monotonic() < end_s:
        time.sleep(0.05)
    assert at_work(folder) == {}


def runs(out: Path) -> list[Path]:
    """The folders of all runs in `out`."""
    return [manifest.parent for manifest in (out / "runs").rglob(MANIFEST)]


def answers(out: Path) -> Answers:
    """What was answered in all runs in `out`."""
    names = ("reply", "finish_reason", "prompt_tokens", "output_tokens")
    return {
        record["id"]: tuple(record[name] for name in names)
        for folder in runs(out)
        for record in records(folder)
    }


def assert_same(expected: Answers, got: Answers) -> None:
    """Fails with every sample whose answer differs."""
    assert expected
    assert expected.keys() == got.keys()
    differing = [f"{key}: {expected[key]} {got[key]}" for key in got if expected[key] != got[key]]
    share = f"{len(differing)} of {len(got)} answers differ"
    assert not differing, "\n".join([share, *differing])


def start(
    out: Path, *arguments: str, environment: Mapping[str, str] = ENVIRONMENT
) -> subprocess.Popen[bytes]:
    """`bench run` with `out` as its working folder, where all that it starts works too."""
    return subprocess.Popen(
        [sys.executable, "-m", "eyechart.harness", "run", *arguments, "--out", str(out)],
        env=environment,
        cwd=out,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def end(process: subprocess.Popen[bytes]) -> Done:
    """What the command left behind; a traceback is never right."""
    out, err = process.communicate(timeout=STARTED_S)
    done = Done(process.returncode, out.decode(), err.decode())
    assert "Traceback" not in done.err, done.err
    return done


def bench(out: Path, *arguments: str, environment: Mapping[str, str] = ENVIRONMENT) -> Done:
    """`bench run` from start to end, which must be a good one."""
    done = end(start(out, *arguments, environment=environment))
    assert done.code == 0, done
    return done


def the_run(out: Path) -> Path:
    """The folder of the only run there is."""
    (folder,) = runs(out)
    return folder
