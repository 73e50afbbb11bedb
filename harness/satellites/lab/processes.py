"""Calls a function for many things, in processes of their own."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import TypeVar

from eyechart.harness.satellites.lab.worker import CONTEXT

Thing = TypeVar("Thing")
Found = TypeVar("Found")


def in_processes(
    function: Callable[[Thing], Found], things: Sequence[Thing], jobs: int
) -> Iterator[Found]:
    """What the function returns for each thing, in their order, from `jobs` processes, but no more
    than there are cores; with one, from this process. An interrupt ends all.
    """
    cores = os.cpu_count() or 1
    jobs = min(jobs, len(things), cores)
    if jobs <= 1:
        yield from map(function, things)
        return
    pool = ProcessPoolExecutor(
        jobs, mp_context=CONTEXT, initializer=_begin, initargs=(cores // jobs,)
    )
    try:
        yield from pool.map(function, things)
    except BaseException:
        for process in multiprocessing.active_children():
            process.kill()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _begin(threads: int) -> None:
    """Leaves interrupts to the process that asks, and gives torch its share of the cores."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ["OMP_NUM_THREADS"] = str(threads)  # read when torch is imported
