"""Trains models one after another: in this process, or as a process of its own.

As a process it takes the folder of a training a line, as JSON, and answers with a line for each
point of its loss, and one at its end. When the process that asks is gone, its next line cannot be
written, and it ends; the training goes on from its last checkpoint another time.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Protocol

from eyechart.providers.model_files import one_line


class Watch(Protocol):
    """Is told how trainings go; from several threads."""

    def begins(self, folder: Path) -> None:
        """A training begins, or goes on."""

    def goes_on(self, folder: Path, step: int, loss: float) -> None:
        """It has done so many steps, the last of them with this mean loss."""

    def ends(self, folder: Path, how: str) -> None:
        """It ended: `trained`, `diverged`, or the reason why it could not go on."""


def train_all(folders: Sequence[Path], jobs: int, watch: Watch) -> None:
    """Trains what is in the folders, in `jobs` processes; with one, in this process. What goes
    wrong with a training is told to `watch`, and the others go on. An interrupt stops all.
    """
    if jobs == 1:
        for folder in folders:
            watch.begins(folder)
            watch.ends(folder, _ended(folder, _teller(folder, watch)))
        return
    workers = _Workers(folders, watch)
    with ThreadPoolExecutor(jobs) as pool:
        try:
            for done in [pool.submit(workers.feed) for _ in range(jobs)]:
                done.result()
        except BaseException:
            workers.stop()
            raise


def _teller(folder: Path, watch: Watch) -> Callable[[int, float], None]:
    return lambda step, loss: watch.goes_on(folder, step, loss)


def _ended(folder: Path, tell: Callable[[int, float], None]) -> str:
    """Trains one model; returns how it ended, or why it could not go on."""
    from eyechart.harness.satellites.lab.train import train  # noqa: PLC0415  imports torch

    try:
        return train(folder, tell).how
    except BrokenPipeError:
        raise
    except Exception as error:  # noqa: BLE001  of torch, or of the disk; the others go on
        return one_line(error)


class _Workers:
    """Processes that train what waits."""

    def __init__(self, folders: Sequence[Path], watch: Watch) -> None:
        self._watch = watch
        self._waiting: SimpleQueue[Path] = SimpleQueue()
        self._running: list[subprocess.Popen[str]] = []
        for folder in folders:
            self._waiting.put(folder)

    def feed(self) -> None:
        """Gives one process trainings until none is left; a process that died is replaced."""
        process: subprocess.Popen[str] | None = None
        while (folder := self._next()) is not None:
            if process is None:
                process = self._start()
            self._watch.begins(folder)
            how = _trained_by(process, folder, self._watch)
            self._watch.ends(folder, how or f"its process ended with code {process.wait()}")
            if how is None:
                _close(process)
                process = None
        if process is not None:
            _close(process)

    def stop(self) -> None:
        """Ends all processes; each training goes on from its last checkpoint another time."""
        while self._next() is not None:
            pass
        for process in self._running:
            process.kill()

    def _next(self) -> Path | None:
        try:
            return self._waiting.get_nowait()
        except Empty:
            return None

    def _start(self) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "eyechart.harness.satellites.lab.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._running.append(process)
        return process


def _close(process: subprocess.Popen[str]) -> None:
    """Ends a process, which waits for another training or is gone."""
    for pipe in (process.stdin, process.stdout):
        with suppress(BrokenPipeError):
            if pipe is not None:
                pipe.close()
    process.wait()


def _trained_by(process: subprocess.Popen[str], folder: Path, watch: Watch) -> str | None:
    """Has a process train one model; returns how it ended, `None` if the process did."""
    assert process.stdin is not None
    assert process.stdout is not None
    with suppress(BrokenPipeError):  # it died; there is nothing to read then
        process.stdin.write(json.dumps(str(folder)) + "\n")
        process.stdin.flush()
    for line in process.stdout:
        said = json.loads(line)
        if "ended" in said:
            return str(said["ended"])
        watch.goes_on(folder, said["step"], said["loss"])
    return None


def serve(lines: Iterable[str], write: Callable[[dict[str, Any]], None]) -> None:
    """Trains what each line names, and writes how it goes."""
    for line in lines:
        folder = Path(json.loads(line))
        ended = _ended(folder, lambda step, loss: write({"step": step, "loss": loss}))
        write({"ended": ended})


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that asked ends this one
    serve(sys.stdin, lambda said: print(json.dumps(said), flush=True))  # noqa: T201  the other end
