"""A command in a copy of the test's process: what the test has imported is not imported again."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path

_PATIENCE_S = 60.0


class Forked:
    """A forked process that runs `command` in `folder`; what it prints goes to files there, or to
    the descriptors `stdout` and `stderr`. Its methods are those of `subprocess.Popen`.
    """

    def __init__(
        self,
        command: Callable[[], object],
        folder: Path,
        *,
        stdout: int | None = None,
        stderr: int | None = None,
    ) -> None:
        self._said = tuple(folder / f"forked.{name}" for name in ("out", "err"))
        self.returncode: int | None = None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of threads, which stay behind
            self.pid = os.fork()
        if not self.pid:
            code = 1
            try:
                code = _ended(command, folder, self._said, (stdout, stderr))
            finally:
                os._exit(code)

    def poll(self) -> int | None:
        """The exit code, negative for a signal; `None` while it runs."""
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.returncode = os.waitstatus_to_exitcode(status) if pid else None
        return self.returncode

    def wait(self, timeout: float = _PATIENCE_S) -> int:
        """The exit code; raises `subprocess.TimeoutExpired` after `timeout` seconds."""
        end_s = time.monotonic() + timeout
        while (code := self.poll()) is None:
            if time.monotonic() > end_s:
                raise subprocess.TimeoutExpired("forked", timeout)
            time.sleep(0.002)
        return code

    def communicate(self, timeout: float = _PATIENCE_S) -> tuple[bytes, bytes]:
        """What it printed on stdout and stderr, once it has ended; killed after `timeout`. A stream
        with a descriptor of its own is empty here.
        """
        try:
            self.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            self.wait()
            raise
        out, err = (path.read_bytes() for path in self._said)
        return out, err

    def send_signal(self, number: int) -> None:
        """Sends a signal, if it has not ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Sends SIGKILL, if it has not ended."""
        self.send_signal(signal.SIGKILL)


def _ended(
    command: Callable[[], object],
    folder: Path,
    said: tuple[Path, ...],
    given: tuple[int | None, ...],
) -> int:
    """Runs the command in the child and gives its exit code; at the end, as an interpreter does, it
    waits for threads and writes what is in a buffer.
    """
    try:
        opened = [os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) for path in said]
        for number, (own, theirs) in enumerate(zip(opened, given, strict=True), start=1):
            os.dup2(own if theirs is None else theirs, number)
        for descriptor in {*opened, *(one for one in given if one is not None)} - {1, 2}:
            os.close(descriptor)
        sys.stdout, sys.stderr = (
            io.TextIOWrapper(os.fdopen(number, "wb"), encoding="utf-8", write_through=True)
            for number in (1, 2)
        )
        os.chdir(folder)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        command()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001  the test sees it on stderr
        traceback.print_exc()
        return 1
    finally:
        threading._shutdown()  # type: ignore[attr-defined]
        if sys.stdout is not None:
            sys.stdout.flush()
    return 0
