"""What Ctrl-C does outside the event loop, which has a way of its own."""

from __future__ import annotations

import os
import signal
from types import FrameType

from harness.errors import INTERRUPTED

_LOADING = "<frozen importlib"


def end_at_once() -> None:
    """From now on an interrupt ends the process with one line: nothing is under way.

    An exception would come out of whatever is being loaded, or be taken for one of its own there:
    printed, or forgotten. Under nohup, where interrupts are ignored, they stay so.
    """
    if signal.getsignal(signal.SIGINT) in (signal.default_int_handler, _raise):
        signal.signal(signal.SIGINT, _end)


def raise_in_work() -> None:
    """From now on an interrupt is a `KeyboardInterrupt`, so that what is open can be closed; while
    a module is being loaded it still ends the process.
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
    around = frame
    while around is not None:
        if around.f_code.co_filename.startswith(_LOADING):
            _end(number, frame)
        around = around.f_back
    raise KeyboardInterrupt
