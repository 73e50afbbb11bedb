"""The server of our own, with a stand-in for `vllm`: it starts a child, and dies when told to."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from eyechart.providers.base import ModelSettings, Request, SetupError, StopRunError
from eyechart.providers.vllm.client import VllmProvider, open_provider
from eyechart.providers.vllm.server import VllmServer
from tests.conftest import PATIENCE_S

STAND_IN = """
import http.server, json, os, subprocess, sys
port = int(sys.argv[sys.argv.index("--port") + 1])
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print("pids", os.getpid(), child.pid, *sys.argv[1:], flush=True)
print("my environment:", os.environ.get("VLLM_API_KEY"), flush=True)
if "--no-memory" in sys.argv:
    print("WARNING 11-21 15:17:26 [x.py:1] limits can cause fd errors like `OSError: too many`")
    print("(Worker-0 pid=3) ERROR 11-21 15:17:27 [a.py:9] ValueError: too little memory")
    print(*(f"(APIServer pid=2) line {number}" for number in range(9)), sep=os.linesep)
    sys.exit("RuntimeError: Engine core initialization failed. See root cause above.")
if "--fail" in sys.argv:
    sys.exit("ValueError: no such model")
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()
    def do_POST(self):
        print("the GPU fell off", flush=True)
        os._exit(7)
http.server.HTTPServer(("127.0.0.1", port), Handler).serve_forever()
"""


ROOT = Path(__file__).resolve().parents[1]


class Started:
    """A provider with a server of its own, and what is known of it."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        (folder / "stand_in.py").write_text(STAND_IN, encoding="utf-8")
        self.log = folder / "run" / "server.log"
        self.said: list[str] = []
        self.server = VllmServer(
            "some/model",
            arguments,
            command=(sys.executable, str(folder / "stand_in.py"), "serve"),
            log=self.log,
            notify=self.said.append,
        )
        self.provider = VllmProvider(ModelSettings("some/model"), self.server)

    def run(self, work: Callable[[], Awaitable[None]]) -> None:
        """Does `work` and closes the provider, whatever happens."""

        async def main() -> None:
            try:
                await work()
            finally:
                await self.provider.aclose()

        asyncio.run(main())

    @property
    def pids(self) -> list[int]:
        line = next(line for line in self.log.read_text().splitlines() if line.startswith("pids"))
        return list(map(int, line.split()[1:3]))


def alive(pid: int) -> bool:
    """Whether the process runs; a killed one that its new parent has yet to bury does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def all_gone(pids: list[int]) -> bool:
    deadline = time.monotonic() + PATIENCE_S
    while any(map(alive, pids)) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not any(map(alive, pids))


pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def test_it_starts_waits_and_ends_with_its_children(tmp_path: Path) -> None:
    """Arguments are passed through, the log is kept, nobody stays behind."""
    started = Started(tmp_path, "--tensor-parallel-size=2")

    async def work() -> None:
        assert (await started.server.start()).startswith("http://127.0.0.1:")
        assert all(map(alive, started.pids))

    started.run(work)
    assert all_gone(started.pids)
    said = started.log.read_text()
    assert "serve some/model --host 127.0.0.1" in said
    assert "--tensor-parallel-size=2" in said
    assert "--enable-prefix-caching" in said
    assert any("is up after" in line for line in started.said)


def test_its_log_keeps_no_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has our environment, and may print it; an earlier command's part stays."""
    monkeypatch.setenv("VLLM_API_KEY", "planted-0123456789")
    started = Started(tmp_path)
    started.log.parent.mkdir()
    started.log.write_text("an earlier server\n")

    async def work() -> None:
        await started.server.start()
        assert "my environment: planted-0123456789" in started.log.read_text()

    started.run(work)
    said = started.log.read_text()
    assert said.startswith("an earlier server\n")
    assert "my environment: ***" in said
    assert "planted" not in said


def test_one_that_cannot_start_says_why(tmp_path: Path) -> None:
    """The last lines of its log in one line, and no child left."""
    started = Started(tmp_path, "--fail")

    async def work() -> None:
        with pytest.raises(SetupError, match=r"ended with code 1.*no such model"):
            await started.provider.facts()

    started.run(work)
    assert all_gone(started.pids)


def test_the_first_error_is_said_too(tmp_path: Path) -> None:
    """That of the process that failed first; not one that an earlier server left in the log."""
    started = Started(tmp_path, "--no-memory")
    started.log.parent.mkdir()
    started.log.write_text("ValueError: of yesterday\n")

    async def work() -> None:
        said = r"code 1 \(ValueError: too little memory\); .* ends with: .*See root cause above\.$"
        with pytest.raises(SetupError, match=said):
            await started.provider.facts()

    started.run(work)


@pytest.mark.parametrize("number", [None, signal.SIGKILL])
def test_one_that_dies_stops_the_run(tmp_path: Path, number: signal.Signals | None) -> None:
    """By itself or killed: one clear line, and no child left."""
    started = Started(tmp_path)

    async def work() -> None:
        await started.provider.count_tokens([])
        if number is not None:
            os.kill(started.pids[0], number)
        with pytest.raises(StopRunError, match="vllm serve ended with code") as caught:
            await started.provider.complete(Request("1", 1))
        assert "\n" not in str(caught.value)
        assert ("the GPU fell off" in str(caught.value)) is (number is None)

    started.run(work)
    assert all_gone(started.pids)


def test_being_cancelled_while_it_starts_leaves_nobody(tmp_path: Path) -> None:
    """Ctrl-C during the long wait for health."""
    started = Started(tmp_path)

    async def work() -> None:
        starting = asyncio.create_task(started.server.start())
        while not started.log.exists() or "pids" not in started.log.read_text():  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting

    started.run(work)
    assert all_gone(started.pids)


KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from tests.test_providers_vllm_server import Started
started = Started(Path(sys.argv[2]))
async def work():
    await started.server.start()
    os.kill(os.getpid(), signal.SIGKILL)
started.run(work)
"""


def test_killed_with_its_bench(tmp_path: Path) -> None:
    """Nobody could end it, and it does not keep the GPU."""
    command = (sys.executable, "-c", KILLED, str(ROOT), str(tmp_path))
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    server, its_child = Started(tmp_path).pids
    try:
        assert all_gone([server])
    finally:
        os.kill(its_child, signal.SIGKILL)  # the real one ends its children at SIGTERM


@pytest.mark.parametrize(
    "argument",
    [
        "--api-key=sk-1",
        "--api_key=sk-1",
        "--api-k=sk-1",
        "--hf-token",
        "--hf-tok=sk-1",
        "--kv-transfer-config.password=sk-1",
        "--port=1",
        "--host",
        "--served_model_name=m",
    ],
)
def test_arguments_that_are_ours_or_secret_are_refused(argument: str, tmp_path: Path) -> None:
    """Keys belong into the environment, and the address is chosen here."""
    (tmp_path / "vllm").touch(mode=0o755)
    settings = ModelSettings("m", model_args=(argument,), server_log=tmp_path / "server.log")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "executable", str(tmp_path / "python"))
        with pytest.raises(
            SetupError, match=argument.partition("=")[0].replace("_", "-")
        ) as caught:
            open_provider(settings)
    assert "sk-1" not in str(caught.value)


def test_a_folder_that_is_not_there_is_said_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not after half a minute, as a name that the Hub does not know."""
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    (tmp_path / "vllm").touch()
    with pytest.raises(SetupError, match="vllm//no/model: no such folder"):
        open_provider(ModelSettings("/no/model", server_log=tmp_path / "server.log"))


def test_without_vllm_it_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The extra to install, and the way around."""
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SetupError, match=r"pip install -e '\.\[vllm\]'.*base_url"):
        open_provider(ModelSettings("m", server_log=tmp_path / "server.log"))
