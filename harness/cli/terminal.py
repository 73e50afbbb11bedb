"""The one place that prints: results to stdout, talk to stderr.

Servers, files, names and other people's code say things that end up on a terminal, and a terminal
obeys control characters: they clear the screen, name the window, or make a line look like one of
ours. So every text is printed with its control characters escaped, and a line break within a line
too. A text of several lines is printed by giving them one by one.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, TextIO, cast

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult

_C0, _C1 = range(0x20), range(0x7F, 0xA0)
_BIDI = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
"""They change the order in which a line is shown."""
_SEPARATORS = (0x2028, 0x2029)
_ESCAPED = {
    code: chr(code).encode("unicode_escape").decode()
    for code in (*_C0, *_C1, *_BIDI, *_SEPARATORS)
    if chr(code) not in "\n\t"
}
_STANDARD = ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w"))
_PLAIN_WIDTH = 10_000
"""Columns of a table that no terminal shows."""
_lost: list[Exception] = []
"""Why stdout does not take what is printed, since `open_streams`."""


def clean(text: str) -> str:
    r"""`text` with its control characters escaped, U+001B as `\x1b`; line breaks and tabs stay."""
    return text.translate(_ESCAPED)


def one_line(text: str) -> str:
    """`text` cleaned, its line breaks escaped too."""
    return clean(text).replace("\n", "\\n")


def echo(*lines: str) -> None:
    """Results, on stdout: each of `lines` is one line there, and has no known key in it."""
    from providers.secrets import mask

    _print(sys.stdout, _joined(map(mask, lines)))


def say(*lines: str) -> None:
    """Talk, on stderr: each of `lines` is one line there, and has no key in it."""
    from providers.secrets import redact

    _print(sys.stderr, _joined(map(redact, lines)))


def warn(text: str) -> None:
    """A warning, on stderr."""
    say(f"bench: {text}")


def show(*parts: RenderableType) -> None:
    """Results laid out by rich, on stdout: as wide as the terminal is, or as they are."""
    from rich.console import Console

    width = None if sys.stdout.isatty() else _PLAIN_WIDTH
    drawn = cast("TextIO", _Drawn(sys.stdout))
    console = Console(file=drawn, width=width, markup=False, emoji=False, highlight=False)
    for part in parts:
        console.print(_Clean(part))


def live_console() -> Console:
    """Where progress is drawn, on stderr; what is drawn must be `one_line`."""
    from rich.console import Console

    return Console(file=cast("TextIO", _Drawn(sys.stderr)))


class _Drawn(io.TextIOBase):
    """A stream for rich, on which writing never fails."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        _print(self._stream, text)
        return len(text)

    def isatty(self) -> bool:
        return self._stream.isatty()

    def fileno(self) -> int:
        return self._stream.fileno()

    @property
    def encoding(self) -> str:  # type: ignore[override]  # which typeshed has as a variable
        return self._stream.encoding


class _Clean:
    """A part of a table's page whose texts are cleaned after it is laid out."""

    def __init__(self, part: RenderableType) -> None:
        self._part = part

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from providers.secrets import mask

        for segment in console.render(self._part, options):
            yield segment._replace(text=clean(mask(segment.text)))


def take_logs() -> None:
    """What libraries log and nobody handles is said here; Python itself would print it raw."""
    import logging

    class Said(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            say(*self.format(record).split("\n"))

    logging.lastResort = Said(logging.WARNING)


def _joined(lines: Iterable[str]) -> str:
    return "".join(f"{one_line(line)}\n" for line in lines)


def _print(stream: TextIO, text: str) -> None:
    """Writes `text`; once `stream` does not take it, it and all that follows is dropped.

    What a command does is worth more than what it says: a run goes on, its tables are written.
    """
    try:
        stream.write(text)
        stream.flush()
    except (OSError, ValueError) as error:  # full, gone; or closed by somebody's generator
        drop_output(stream)
        if stream is sys.stdout and not _lost:
            _lost.append(error)
            warn(f"{getattr(error, 'strerror', None) or error}: output")


def drop_output(stream: TextIO) -> None:
    """Sends what is printed on `stream` from now on, and what it still holds, nowhere."""
    with suppress(OSError, ValueError):  # a stream without a descriptor
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def is_output_lost() -> bool:
    """Whether stdout did not take something."""
    return bool(_lost)


def open_streams() -> None:
    """Makes the standard streams such that printing always works.

    Descriptors 0 to 2 that the parent closed are opened on the null device: else the next files
    that are opened would get their numbers, and libraries abort the process over that. What an
    encoding does not have is escaped.
    """
    _lost.clear()
    for number, name, mode in _STANDARD:
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
            os.set_inheritable(number, True)  # noqa: FBT003  takes no keyword
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_RDWR)
            setattr(sys, name, os.fdopen(nowhere, mode, encoding="utf-8", closefd=False))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
