"""Starts `vllm serve` on a free port, watches it, and ends it with all its child processes."""

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
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import aiohttp

from eyechart.providers.base import ModelSettings, SetupError, install
from eyechart.providers.naming import named
from eyechart.providers.secrets import redact, scrub
from eyechart.providers.vllm.descriptor import VLLM_KEY, server_arguments

_HOST = "127.0.0.1"
_POLL_S = 0.5
"""Seconds between two health checks while the server starts."""
_NEWS_S = 15.0
"""Seconds between two messages while the server starts."""
_FAREWELL_S = 15.0
"""Seconds that the server may take to end after SIGTERM; then it gets SIGKILL."""
_DYING_S = 2.0
"""Seconds to wait, after a broken connection, for the end of the server's process."""
_LAST_LINES = 5
"""Last lines of the log in the message about a server that ended."""
_ERROR = re.compile(
    r"(?:\(\w[^)]*\) |\[rank\d+\]: )*(ERROR [\d-]+ [\d:.,]+ \[[^]]*\] )?"
    r"((?:\w+\.)*\w+(?:Error|Exception)(?:\(\w+\))?: .+)"
)
"""A line of the log with an error; group 1 is the logger's prefix, group 2 the error."""
_ERROR_CHARS = 400
"""Most characters of that error in a message."""
_SECRET = re.compile(
    r"--(?:[\w.-]*(?:api-key|hf-token|password|passwd|secret|credential)|api-ke?$|hf-t(?:o(?:ke?)?)?$)"
)
"""Options whose value is a key, also in the short forms that vLLM accepts."""
_OURS = re.compile(r"--(?:host|port|ssl-[\w-]+|root-path|served-model-name|uds)(?:=|$)")
"""Options that set the server's address or name; `VllmServer` sets them itself."""
_BATCH_INVARIANT = "VLLM_BATCH_INVARIANT"
"""Environment variable of vLLM: 1 if a reply does not depend on the rest of its batch."""
_TETHER = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG
os.getppid() == int(sys.argv[1]) or sys.exit("bench has ended")
os.execv(sys.argv[2], sys.argv[2:])
"""
"""Python program: asks Linux to send it SIGTERM when its parent ends, even by SIGKILL, and becomes
the command in its arguments. The first argument is the id of the parent."""


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
        """Byte at which this server's part of the log begins, after those of earlier commands."""

    @classmethod
    def of(cls, settings: ModelSettings) -> VllmServer:
        """The server for the model in `settings`, not started yet.

        Raises:
            SetupError: vLLM is not installed, the model's folder does not exist, or an argument of
                the server is not allowed.
        """
        next_to_python = Path(sys.executable).with_name("vllm")
        program = str(next_to_python) if next_to_python.is_file() else shutil.which("vllm")
        if program is None:
            raise SetupError(
                f"vllm/{settings.model} needs vLLM: {install('vllm')}, or use a running server "
                f"with {named('base_url', 'http://HOST:8000/v1')}"
            )
        check_folder(settings.model)
        arguments = read_arguments(settings.model_args)
        if settings.server_log is None:
            raise SetupError("vllm serve needs a file for its log")
        return cls(
            settings.model,
            arguments,
            command=(program, "serve"),
            log=settings.server_log,
            notify=settings.notify,
        )

    def facts(self) -> dict[str, object]:
        """Settings that may change the replies and that the server's API does not report."""
        return {
            "server_args": list(self._arguments),
            "batch_invariant": os.environ.get(_BATCH_INVARIANT) == "1",
        }

    async def start(self) -> str:
        """Starts the server, waits until it is healthy, and returns its base URL.

        Raises:
            SetupError: the server ended before it was healthy.
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
        """Waits until a GET of `address` succeeds; raises `SetupError` if the server ends first."""
        started_s = notified_s = time.monotonic()
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=5)) as session:
            while True:
                if end := await self.last_words(patience_s=0):
                    raise SetupError(end)
                with contextlib.suppress(aiohttp.ClientError, OSError):
                    async with session.get(address) as response:
                        if response.ok:
                            break
                now_s = time.monotonic()
                if now_s - notified_s >= _NEWS_S:
                    notified_s = now_s
                    last = redact((list(self._lines()) or ["nothing yet"])[-1])
                    self._notify(f"still starting after {now_s - started_s:.0f} s: {last[:120]}")
                await asyncio.sleep(_POLL_S)
        self._notify(f"the server is up after {time.monotonic() - started_s:.0f} s")

    async def last_words(self, *, patience_s: float = _DYING_S) -> str | None:
        """One line about how the server ended; `None` while it runs.

        It has the exit code, the first error in the log and its last lines. The first error is that
        of the process that failed first, and often the cause of the others. Waits at most
        `patience_s` seconds for the end of the process.
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
        first = first_error(lines)
        last = lines[-_LAST_LINES:]
        is_last = first is None or any(first in line for line in last)
        error = "" if is_last else f" ({redact(first or '')[:_ERROR_CHARS]})"
        ended = f"vllm serve ended with code {process.returncode}{error}"
        return f"{ended}; {self._log} ends with: {' | '.join(map(redact, last)) or 'nothing'}"

    def _lines(self) -> Iterator[str]:
        """The lines of this server in the log that are not blank, with single spaces."""
        try:
            with self._log.open("rb") as log:
                log.seek(self._log_begins)
                for line in log:
                    if text := " ".join(line.decode(errors="replace").split()):
                        yield text
        except OSError:
            return

    async def stop(self) -> None:
        """Ends the server and all processes of its group, also while it starts."""
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
            with contextlib.suppress(OSError):  # its environment has keys
                scrub(self._log, self._log_begins)


def first_error(lines: Iterable[str]) -> str | None:
    """The first error in a log of vLLM; `None` if there is none. It is that of the process that
    failed first, and often the cause of the others.
    """
    errors = list(filter(None, map(_ERROR.fullmatch, lines)))
    logged = (error for error in errors if error[1])
    first = next(logged, next(iter(errors), None))
    return None if first is None else first[2]


def check_folder(model: str) -> None:
    """Raises `SetupError` where the model is a folder that does not exist."""
    if model.startswith(("/", ".", "~")) and not Path(model).exists():
        raise SetupError(
            f"vllm/{model}: no such folder; give the folder of a model, or the name "
            "of a model on the Hugging Face Hub"
        )


def read_arguments(model_args: Sequence[str]) -> tuple[str, ...]:
    """See `server_arguments`; raises `SetupError` for one that the user may not set."""
    arguments = server_arguments(model_args)
    for argument in arguments:
        name = argument.partition("=")[0].replace("_", "-")  # vLLM accepts both
        if _SECRET.match(name):
            raise SetupError(
                f"{named('model_args')} {name}: set keys in the environment "
                f"({VLLM_KEY}, HF_TOKEN), because arguments are written to the manifest"
            )
        if _OURS.match(name):
            raise SetupError(
                f"{named('model_args')} {name}: bench chooses the address and the name of the "
                "server that it starts; to choose them, start it yourself and give "
                f"{named('base_url')}"
            )
    return arguments


def _tethered(command: Sequence[str]) -> tuple[str, ...]:
    """A command that ends when our process ends."""
    return (sys.executable, "-I", "-c", _TETHER, str(os.getpid()), *command)


def _signal(group: int, number: signal.Signals) -> None:
    """Sends a signal to a group of processes; does nothing if the group has ended."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((_HOST, 0))
        port: int = probe.getsockname()[1]
        return port
