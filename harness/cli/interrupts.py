"""Handles Ctrl-C outside the event loop. Inside, `run/event_loop.py` handles it."""

from __future__ import annotations

import os
import signal
from types import FrameType

from eyechart.harness.errors import INTERRUPTED

_LOADING = "<frozen importlib"


def end_at_once() -> None:
    """Makes an interrupt end the process with one line, while no work is under way.

    A `KeyboardInterrupt` while a module is loaded could be printed as that module's error, or
    caught there and lost. Under nohup, where interrupts are ignored, they stay ignored.
    """
    if signal.getsignal(signal.SIGINT) in (signal.default_int_handler, _raise):
        signal.signal(signal.SIGINT, _end)


def raise_in_work() -> None:
    """Makes an interrupt raise `KeyboardInterrupt`, so that open files can be closed; while a
    module is loaded, an interrupt still ends the process.
    """
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, _raise)


def _end(_number: int, _frame: FrameType | None) -> None:
    try:  # noqa: SIM105  one module more to load
        os.write(2, b"interrupted\n")
    except OSError:
        pass
    os._exit(INTERRUPTED)


def _raise(number: int, frame: FrameType | None) -> None:
    caller = frame
    while caller is not None:
        if caller.f_code.co_filename.startswith(_LOADING):
            _end(number, frame)
        caller = caller.f_back
    raise KeyboardInterrupt
