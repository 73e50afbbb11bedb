"""The event loop of a command, and the signals that end it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys

import pytest

from eyechart.harness.run.event_loop import run_in_loop

DEAF = """
import asyncio, os, signal, sys
from eyechart.harness.run.event_loop import run_in_loop

async def deaf():
    for place in range({signals}):
        os.kill(os.getpid(), signal.SIGINT)
        try:
            await asyncio.sleep(5)
        except asyncio.CancelledError:
            print("cancelled", place, flush=True)
    return "ended"

try:
    print(run_in_loop(deaf()))
except KeyboardInterrupt:
    print("interrupt")
"""
"""A coroutine that takes no notice of being cancelled."""


@pytest.mark.parametrize(
    ("signals", "lines"),
    [
        (1, ["cancelled 0", "ended"]),
        (2, ["cancelled 0", "cancelled 1", "ended"]),
        (3, ["cancelled 0", "cancelled 1", "interrupt"]),
    ],
)
def test_the_third_interrupt_ends_what_does_not_end(signals: int, lines: list[str]) -> None:
    """The first two cancel it."""
    done = subprocess.run(
        [sys.executable, "-c", DEAF.format(signals=signals)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        env=dict(os.environ),
    )
    assert done.stdout.splitlines()[: len(lines)] == lines, done


def test_a_result_comes_back() -> None:
    """Of whatever type."""

    async def seven() -> int:
        await asyncio.sleep(0)
        return 7

    assert run_in_loop(seven()) == 7


def test_signals_have_the_handlers_of_before() -> None:
    """SIGTERM then also ends a command that makes its tables after its loop has ended."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.getsignal(number) for number in numbers]
    during: list[object] = []

    async def look() -> None:
        during.extend(signal.getsignal(number) for number in numbers)

    run_in_loop(look())
    assert [signal.getsignal(number) for number in numbers] == before
    assert all(one != other for one, other in zip(during, before, strict=True))


def test_an_interrupt_in_a_task_leaves_no_handler() -> None:
    """Two interrupts close the loop before `main` has ended; SIGTERM has its old handler again."""

    async def interrupted() -> None:
        raise KeyboardInterrupt

    async def interrupted_again() -> None:
        try:
            await asyncio.sleep(5)
        except asyncio.CancelledError:
            raise KeyboardInterrupt from None

    async def both() -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(interrupted())
            tasks.create_task(interrupted_again())

    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt):
        run_in_loop(both())
    assert signal.getsignal(signal.SIGTERM) == before
