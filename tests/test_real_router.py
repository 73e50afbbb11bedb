"""Two real vLLM servers, behind a router and as two addresses; one is killed meanwhile."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from eyechart.harness.analysis.tables.results import EFFECTIVE_LENGTHS, TABLE
from eyechart.harness.journal.record import SAMPLES
from tests.conftest import records
from tests.real_server import (
    ENVIRONMENT,
    VLLM,
    WINDOW,
    Server,
    at_work,
    bench,
    end,
    patiently,
    serving,
    start,
    the_run,
)

ROUTER = Path(sys.executable).with_name("vllm-router")
pytestmark = [
    pytest.mark.vllm,
    pytest.mark.skipif(
        not (VLLM.exists() and ROUTER.exists()), reason="no vllm and vllm-router; see .ci/vllm"
    ),
]
ASKED = ("--task", "counting/ones", "--exact", "--lengths", "20,30,40,50", "--samples", "100")
MODEL = ("--model", "vllm/tiny", "--max-connections", "8")


@contextmanager
def routing(folder: Path, *servers: Server) -> Iterator[Server]:
    """A router before the servers, until the block ends."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    urls = [server.address for server in servers]
    place = ("--host", "127.0.0.1", "--port", str(port), "--prometheus-port", str(port + 1))
    with (folder / "router.log").open("wb") as log:
        process = subprocess.Popen(
            [ROUTER, *place, "--policy", "cache_aware", "--worker-urls", *urls],
            env=ENVIRONMENT,
            cwd=folder,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    router = Server(f"http://127.0.0.1:{port}")
    try:
        patiently(router.healthy, process)
        yield router
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def lines(out: Path) -> int:
    """Records that are written so far."""
    return sum(path.read_bytes().count(b"\n") for path in out.rglob(SAMPLES))


def stop_at(records_written: int, out: Path, run: subprocess.Popen[bytes]) -> None:
    """Stops the process of the run as soon as it has written so many records."""
    patiently(lambda: lines(out) > records_written, run)
    run.send_signal(signal.SIGSTOP)


def test_one_server_of_two_is_killed(server: Server, tmp_path: Path) -> None:
    """Through a router and with two addresses nothing is lost, and the table is that of one engine
    that was never disturbed. The one that is not killed is that of the other tests.
    """
    folders = [tmp_path / name for name in ("first", "alone", "router", "addresses")]
    for folder in folders:
        folder.mkdir()
    first_folder, alone, by_router, by_addresses = folders
    bench(alone, *ASKED, "--model", "tiny")
    with (
        serving(first_folder, "--max-model-len", str(WINDOW)) as first,
        routing(by_router, first, server) as router,
    ):
        both = ("--base-url", first.base_url, "--base-url", server.base_url)
        # each stops in the middle, so that both are in the middle when the server is killed
        one = start(by_router, *ASKED, *MODEL, "--base-url", router.base_url)
        stop_at(50, by_router, one)
        other = start(by_addresses, *ASKED, *MODEL, *both)
        stop_at(50, by_addresses, other)
        for pid in at_work(first_folder):
            os.kill(pid, signal.SIGKILL)
        assert max(lines(by_router), lines(by_addresses)) < 800
        for process in (one, other):
            process.send_signal(signal.SIGCONT)
        for process, out in ((one, by_router), (other, by_addresses)):
            done = end(process)
            assert done.code == 0, done
            run = the_run(out)
            assert len(records(run)) == 800
            for name in (TABLE, EFFECTIVE_LENGTHS):
                table = (run / name).read_bytes().replace(b"vllm/tiny,", b"tiny,")
                assert table == (the_run(alone) / name).read_bytes()
