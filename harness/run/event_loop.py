"""The event loop of a command: uvloop if it is installed. Signals end it between two callbacks."""

from __future__ import annotations

import asyncio
import gc
import signal
import sys
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

_Result = TypeVar("_Result")
MAX_INTERRUPTS = 2
"""Interrupts that cancel; the next one is raised."""
_ENDING = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
"""Signals besides Ctrl-C that end a command; Windows has no SIGHUP."""


def run_in_loop(main: Coroutine[Any, Any, _Result]) -> _Result:
    """Runs `main` on uvloop, or on asyncio's own loop where uvloop is not installed.

    Objects that exist now live until the end, so the garbage collector skips them.

    Raises:
        KeyboardInterrupt: a signal ended `main`.
    """
    gc.freeze()
    before = {number: signal.getsignal(number) for number in _ENDING}
    try:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            return runner.run(_until_ended(main))
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    finally:
        for number, handler in before.items():  # uvloop leaves its own, which do nothing any more
            signal.signal(number, handler)


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """A factory of uvloop's loops; `None`, for asyncio's own loop, if uvloop is not installed."""
    if sys.platform != "win32":
        with suppress(ImportError):
            import uvloop  # noqa: PLC0415  not on every platform

            return uvloop.new_event_loop
    return None


async def _until_ended(main: Coroutine[Any, Any, _Result]) -> _Result:
    """Cancels `main` on Ctrl-C, on SIGTERM, and when the terminal is closed.

    The cancellation arrives between two callbacks, because an exception of a signal handler could
    be raised inside the event loop's own code. Only the third Ctrl-C raises one, in case `main`
    does not end. A signal that was ignored before, as under nohup, is still ignored.
    """
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    interrupts = 0

    def interrupt(_number: int, _frame: object) -> None:
        nonlocal interrupts
        interrupts += 1
        if interrupts > MAX_INTERRUPTS:
            raise KeyboardInterrupt
        loop.call_soon_threadsafe(task.cancel)

    def hang_up() -> None:
        if not task.cancelling():  # a terminal that closes may send the signal twice
            task.cancel()

    for number in _ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            with suppress(NotImplementedError):  # on Windows
                loop.add_signal_handler(
                    number, task.cancel if number == signal.SIGTERM else hang_up
                )
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, interrupt)
    try:
        return await main
    finally:
        signal.signal(signal.SIGINT, before)
