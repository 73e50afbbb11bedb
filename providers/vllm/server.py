"""A `vllm serve` of our own: started on a free port, watched, and ended with all its children."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import signal
import socket
import sys
import time
from asyncio.subprocess import Process
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import aiohttp

from providers.base import ModelSettings, SetupError, install
from providers.secrets import redact, scrub

_HOST = "127.0.0.1"
_POLL_S = 0.5
_NEWS_S = 15.0
"""How often the user is told that the server still starts."""
_FAREWELL_S = 15.0
"""How long the server may take to end by itself."""
_DYING_S = 2.0
"""How long after a broken connection the server may take to be seen dead."""
_LAST_LINES = 5
_ERROR = re.compile(
    r"(?:\(\w[^)]*\) |\[rank\d+\]: )*(ERROR [\d-]+ [\d:.,]+ \[[^]]*\] )?"
    r"((?:\w+\.)*\w+(?:Error|Exception)(?:\(\w+\))?: .+)"
)
"""A line of its log that names an error, behind what the logger puts before it."""
_ERROR_CHARS = 400
_SECRET = re.compile(
    r"--(?:[\w.-]*(?:api-key|hf-token|password|passwd|secret|credential)|api-ke?$|hf-t(?:o(?:ke?)?)?$)"
)
"""Options that hold keys, also shortened as vLLM takes them."""
_OURS = re.compile(r"--(?:host|port|ssl-[\w-]+|root-path|served-model-name|uds)(?:=|$)")
_FORWARDED = "VLLM_BATCH_INVARIANT"
_TETHER = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG
os.getppid() == int(sys.argv[1]) or sys.exit("its bench has ended")
os.execv(sys.argv[2], sys.argv[2:])
"""
"""Becomes the command that follows, which Linux then ends when its parent is killed, even by -9."""


class VllmServer:
    """One server process and its log."""

    def __init__(
        self,
        model: str,
        arguments: Sequence[str],
        *,
        command: Sequence[str],
        log: Path,
        notify: Callable[[str], None],
    ) -> None:
        self._model = model
        self._arguments = tuple(arguments)
        self._command = tuple(command)
        self._log = log
        self._notify = notify
        self._process: Process | None = None
        self._log_begins = 0
        """Where this server's part of the log does; an earlier command may have had its own."""

    @classmethod
    def of(cls, settings: ModelSettings) -> VllmServer:
        """The server that the settings ask for, not started yet.

        Raises:
            SetupError: vLLM is not installed, or it would not start like that.
        """
        beside = Path(sys.executable).with_name("vllm")
        found = str(beside) if beside.is_file() else shutil.which("vllm")
        if found is None:
            raise SetupError(
                f"vllm/{settings.model} needs vLLM: {install('vllm')}, or join a server that runs "
                "with --base-url http://HOST:8000/v1"
            )
        if settings.model.startswith(("/", ".", "~")) and not Path(settings.model).exists():
            raise SetupError(
                f"vllm/{settings.model}: no such folder; name one with a model, or a model of the "
                "Hugging Face Hub"
            )
        for argument in settings.server_args:
            name = argument.partition("=")[0].replace("_", "-")  # vLLM takes either
            if _SECRET.match(name):
                raise SetupError(
                    f"--vllm-arg {name}: keys belong into the environment "
                    "(VLLM_API_KEY, HF_TOKEN); arguments are written to the manifest"
                )
            if _OURS.match(name):
                raise SetupError(
                    f"--vllm-arg {name}: bench chooses the address of its own server; "
                    "join one at an address of yours with --base-url"
                )
        if settings.server_log is None:
            raise SetupError("a server of our own needs a place for its log")
        return cls(
            settings.model,
            settings.server_args,
            command=(found, "serve"),
            log=settings.server_log,
            notify=settings.notify,
        )

    def facts(self) -> dict[str, object]:
        """What shapes its answers and what it does not say itself."""
        return {
            "server_args": list(self._arguments),
            "batch_invariant": os.environ.get(_FORWARDED) == "1",
        }

    async def start(self) -> str:
        """Starts the server and waits until it is healthy; its base URL.

        Raises:
            SetupError: it ended before that.
        """
        port = _free_port()
        self._log.parent.mkdir(parents=True, exist_ok=True)
        with self._log.open("ab") as log:
            self._log_begins = log.tell()
            self._process = await asyncio.create_subprocess_exec(
                *(_tethered(self._command) if sys.platform == "linux" else self._command),
                self._model,
                *("--host", _HOST, "--port", str(port), "--served-model-name", self._model),
                *("--enable-prefix-caching", "--disable-uvicorn-access-log"),
                *self._arguments,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._notify(f"vllm serve {self._model} starts on port {port}; its log is {self._log}")
        await self._healthy(f"http://{_HOST}:{port}/health")
        return f"http://{_HOST}:{port}/v1"

    async def _healthy(self, address: str) -> None:
        started_s = told_s = time.monotonic()
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=5)) as session:
            while True:
                if said := await self.last_words(patience_s=0):
                    raise SetupError(said)
                with contextlib.suppress(aiohttp.ClientError, OSError):
                    async with session.get(address) as response:
                        if response.ok:
                            break
                now_s = time.monotonic()
                if now_s - told_s >= _NEWS_S:
                    told_s = now_s
                    last = _shown((list(self._lines()) or ["nothing yet"])[-1])
                    self._notify(f"still starting after {now_s - started_s:.0f} s: {last[:120]}")
                await asyncio.sleep(_POLL_S)
        self._notify(f"the server is up after {time.monotonic() - started_s:.0f} s")

    async def last_words(self, *, patience_s: float = _DYING_S) -> str | None:
        """How the server ended, and of its log the first error, which is where its many processes
        begin to fall, and the last lines; `None` while it runs.
        """
        process = self._process
        if process is None:
            return None
        if process.returncode is None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), patience_s)
        if process.returncode is None:
            return None
        lines = list(self._lines())
        errors = list(filter(None, map(_ERROR.fullmatch, lines)))
        first = next((one for one in errors if one[1]), next(iter(errors), None))
        last = lines[-_LAST_LINES:]
        error = "" if first is None or first[0] in last else f" ({_shown(first[2])[:_ERROR_CHARS]})"
        ended = f"vllm serve ended with code {process.returncode}{error}"
        return f"{ended}; {self._log} ends with: {' | '.join(map(_shown, last)) or 'nothing'}"

    def _lines(self) -> Iterator[str]:
        try:
            with self._log.open("rb") as log:
                log.seek(self._log_begins)
                for line in log:
                    if said := " ".join(line.decode(errors="replace").split()):
                        yield said
        except OSError:
            return

    async def stop(self) -> None:
        """Ends the server and every process of its group, whatever state it is in."""
        process = self._process
        if process is None:
            return
        try:
            if process.returncode is None:
                _signal(process.pid, signal.SIGTERM)
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(process.wait(), _FAREWELL_S)
        finally:
            _signal(process.pid, signal.SIGKILL)
            await process.wait()
            with contextlib.suppress(OSError):  # it had our environment
                scrub(self._log, self._log_begins)


def _shown(line: str) -> str:
    """Without keys; to be cut only after that."""
    return redact(line)


def _tethered(command: Sequence[str]) -> tuple[str, ...]:
    return (sys.executable, "-I", "-c", _TETHER, str(os.getpid()), *command)


def _signal(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((_HOST, 0))
        port: int = probe.getsockname()[1]
        return port
