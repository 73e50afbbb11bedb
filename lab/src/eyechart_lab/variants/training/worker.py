"""Trains models: in this process, or in processes of their own, each on one device.

A process takes its trainings in turn, a step of each, so that on a GPU the steps of several run
beside each other. A process of its own is given folders of trainings, and answers with each point
of a loss and with each end. When the process that asks is gone, its next answer cannot be sent, and
it ends too; the training goes on from its last checkpoint another time.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from eyechart.providers.in_process.model_files import one_line

CONTEXT = multiprocessing.get_context("spawn")
"""A process begins anew: torch does not work in a copy of one that has threads."""


CPU = "cpu"
TOGETHER = 16
"""Trainings that a GPU has at a time, unless given: one alone leaves most of it idle."""


class Watch(Protocol):
    """Is told how trainings go; from several threads."""

    def begins(self, folder: Path) -> None:
        """A training begins, or goes on."""

    def goes_on(self, folder: Path, step: int, loss: float) -> None:
        """It has done so many steps, the last of them with this mean loss."""

    def ends(self, folder: Path, how: str) -> None:
        """It ended: `trained`, `diverged`, or the reason why it could not go on."""


@dataclass(frozen=True)
class Slot:
    """A process that trains."""

    device: str
    most: int = 1
    """Trainings that it has at a time."""


def slots(devices: Sequence[str], jobs: int | None) -> list[Slot]:
    """The processes of `jobs` trainings at a time: one for each on a CPU, or one for each GPU."""
    if devices == [CPU]:
        return [Slot(CPU)] * (jobs or 1)
    jobs = jobs or TOGETHER * len(devices)
    taken = devices[:jobs]
    return [Slot(device, -(-(jobs - at) // len(taken))) for at, device in enumerate(taken)]


def train_all(folders: Sequence[Path], places: Sequence[Slot], watch: Watch) -> None:
    """Trains what is in the folders; with one slot, in this process. What goes wrong with a
    training is told to `watch`, and the others go on. An interrupt stops all.
    """
    places = places[: len(folders)]
    if len(places) == 1:
        waiting = deque(folders)
        in_turn(places[0], lambda _: waiting.popleft() if waiting else None, watch)
        return
    workers = _Workers(folders, watch)
    with ThreadPoolExecutor(len(places)) as pool:
        try:
            for done in [pool.submit(workers.feed, slot) for slot in places]:
                done.result()
        except BaseException:
            workers.stop()
            raise


Training: TypeAlias = Generator[tuple[int, float] | None, None, Any]


def in_turn(slot: Slot, take: Callable[[bool], Path | None], watch: Watch) -> None:
    """Trains what `take` gives, a step of each training in turn, until it gives nothing more and
    all have ended. It is told whether there is nothing else to do, so that it may wait.
    """
    from eyechart_lab.variants.training.train import (  # noqa: PLC0415  imports torch
        one_thread,
        steps_in,
    )

    going: dict[Path, Training] = {}
    with one_thread():
        while True:
            while len(going) < slot.most and (folder := take(not going)) is not None:
                watch.begins(folder)
                going[folder] = steps_in(folder, slot.device)
            if not going:
                return
            for folder, training in list(going.items()):
                if (how := _a_step(folder, training, watch)) is not None:
                    del going[folder]
                    watch.ends(folder, how)


def _a_step(folder: Path, training: Training, watch: Watch) -> str | None:
    """Takes one step of a training. Returns `None` if the training goes on. If it is over, returns
    how it ended, or why it could not go on.
    """
    try:
        point = next(training)
    except StopIteration as end:
        return str(end.value.how)
    except Exception as error:  # noqa: BLE001  of torch, or of the disk; the others go on
        return one_line(error)
    if point is not None:
        watch.goes_on(folder, *point)
    return None


class _Workers:
    """Processes that train what waits."""

    def __init__(self, folders: Sequence[Path], watch: Watch) -> None:
        self._watch = watch
        self._waiting = deque(folders)
        self._running: list[SpawnProcess] = []
        self._is_stopped = False

    def feed(self, slot: Slot) -> None:
        """Gives one process trainings until none is left; a process that died is replaced."""
        while self._waiting:
            ours, theirs = CONTEXT.Pipe()
            process = CONTEXT.Process(target=serve, args=(theirs, slot), daemon=True)
            process.start()
            theirs.close()
            self._running.append(process)
            given: set[Path] = set()
            with suppress(EOFError, OSError):
                self._converse(ours, slot, given)
            ours.close()
            process.join()
            for folder in () if self._is_stopped else given:
                self._watch.ends(folder, f"its process ended with code {process.exitcode}")

    def _converse(self, asked: Connection, slot: Slot, given: set[Path]) -> None:
        """Sends a process what waits, as much at a time as its slot has, and hears how it goes.
        `given` has what it was sent and has not ended.
        """
        while True:
            while len(given) < slot.most and (folder := self._next()) is not None:
                given.add(folder)
                self._watch.begins(folder)
                asked.send(folder)
            if not given:
                return
            folder, said = asked.recv()
            if isinstance(said, str):
                given.remove(folder)
                self._watch.ends(folder, said)
            else:
                self._watch.goes_on(folder, *said)

    def stop(self) -> None:
        """Ends all processes; each training goes on from its last checkpoint another time."""
        self._is_stopped = True
        self._waiting.clear()
        for process in self._running:
            process.kill()

    def _next(self) -> Path | None:
        with suppress(IndexError):
            return self._waiting.popleft()
        return None


class _Sender:
    """Sends what a watch is told through a connection."""

    def __init__(self, asked: Connection) -> None:
        self._asked = asked

    def begins(self, folder: Path) -> None:
        """The process that asked knows it."""

    def goes_on(self, folder: Path, step: int, loss: float) -> None:
        self._asked.send((folder, (step, loss)))

    def ends(self, folder: Path, how: str) -> None:
        self._asked.send((folder, how))


def serve(asked: Connection, slot: Slot) -> None:
    """Trains the folders that come through a connection, and sends how they go."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that asks ends this one

    def take(has_time: bool) -> Path | None:  # noqa: FBT001  of `in_turn`
        return asked.recv() if has_time or asked.poll() else None

    with suppress(EOFError, BrokenPipeError):
        in_turn(slot, take, _Sender(asked))
