"""Trains models one after another: in this process, or in processes of their own.

Such a process is given folders of trainings, and answers with each point of a loss and with each
end. When the process that asks is gone, its next answer cannot be sent, and it ends too; the
training goes on from its last checkpoint another time.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Protocol

from eyechart.providers.model_files import one_line

CONTEXT = multiprocessing.get_context("spawn")
"""A process begins anew: torch does not work in a copy of one that has threads."""


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
        self._running: list[SpawnProcess] = []
        for folder in folders:
            self._waiting.put(folder)

    def feed(self) -> None:
        """Gives one process trainings until none is left; a process that died is replaced."""
        process: _Process | None = None
        while (folder := self._next()) is not None:
            if process is None:
                process = _Process()
                self._running.append(process.process)
            self._watch.begins(folder)
            how = process.train(folder, self._watch)
            if how is None:
                how, process = process.close(), None
            self._watch.ends(folder, how)
        if process is not None:
            process.close()

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


class _Process:
    """A process that trains, and the way to talk to it."""

    def __init__(self) -> None:
        self._ours, theirs = CONTEXT.Pipe()
        self.process = CONTEXT.Process(target=serve, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()

    def train(self, folder: Path, watch: Watch) -> str | None:
        """Has it train one model; returns how that ended, `None` if the process did."""
        with suppress(EOFError, OSError):
            self._ours.send(folder)
            while not isinstance(said := self._ours.recv(), str):
                watch.goes_on(folder, *said)
            return said
        return None

    def close(self) -> str:
        """Ends it; returns what is said of one that has died."""
        self._ours.close()
        self.process.join()
        return f"its process ended with code {self.process.exitcode}"


def serve(asked: Connection) -> None:
    """Trains what comes through a connection, and sends how it goes: the step and the loss of each
    point, and then how it ended.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that asks ends this one
    with suppress(EOFError, BrokenPipeError):
        while True:
            folder = asked.recv()
            asked.send(_ended(folder, lambda step, loss: asked.send((step, loss))))
