"""The only module that prints: results to stdout, messages to stderr. It also knows the width of
the terminal.

Text from servers, files and other people's code can contain control characters. On a terminal they
clear the screen, rename the window, or make a line look like one of ours. So all control characters
in printed text are escaped, and line breaks within a line too. A text of several lines is passed as
several arguments.
"""

from __future__ import annotations

import io
import os
import sys
import textwrap
from collections.abc import Iterable
from contextlib import AbstractContextManager, redirect_stdout, suppress
from typing import TYPE_CHECKING, TextIO, cast

from eyechart.providers.naming import spelled

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult

_C0, _C1 = range(0x20), range(0x7F, 0xA0)
_BIDI = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
"""Characters that change the order in which a line is shown."""
_SEPARATORS = (0x2028, 0x2029)
_ESCAPED = {
    code: chr(code).encode("unicode_escape").decode()
    for code in (*_C0, *_C1, *_BIDI, *_SEPARATORS)
    if chr(code) not in "\n\t"
}
_STANDARD = ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w"))
NARROWEST = 80
"""Columns that a line may take in any case."""
_UNLIMITED = 10_000
"""The width that rich is given. Tables fit already, so rich must neither wrap nor cut them."""
_write_errors: list[Exception] = []
"""The first error of a write to stdout since `open_streams`."""


def clean(text: str) -> str:
    r"""`text` with its control characters escaped, U+001B as `\x1b`; line breaks and tabs stay."""
    return text.translate(_ESCAPED)


def one_line(text: str) -> str:
    """`text` cleaned, its line breaks escaped too, with settings as options."""
    from eyechart.harness.settings.spelling import as_option

    return clean(spelled(text, as_option)).replace("\n", "\\n")


def echo(*lines: str) -> None:
    """Prints results on stdout, each of `lines` as one line, with known keys masked."""
    from eyechart.providers.secrets import mask

    _print(sys.stdout, _joined(map(mask, lines)))


def say(*lines: str) -> None:
    """Prints messages on stderr, each of `lines` as one line, with all keys masked."""
    from eyechart.providers.secrets import redact

    _print(sys.stderr, _joined(map(redact, lines)))


def warn(text: str) -> None:
    """Prints a warning on stderr."""
    say(f"bench: {text}")


def show(*parts: RenderableType) -> None:
    """Prints results that rich lays out on stdout, which are never wrapped or cut."""
    from rich.console import Console

    stream = cast("TextIO", _SafeStream(sys.stdout))
    console = Console(file=stream, width=_UNLIMITED, markup=False, emoji=False, highlight=False)
    for part in parts:
        console.print(_Clean(part))


def width(stream: TextIO | None = None) -> int | None:
    """Columns of the terminal on `stream`, at least 80; without a terminal, the value of the
    variable `COLUMNS`. `None` if neither is known: text is then not wrapped. `stream` is stdout by
    default.
    """
    stream = stream or sys.stdout
    given = os.environ.get("COLUMNS", "")
    if given.isascii() and given.isdigit() and int(given[:9]):
        return max(int(given[:9]), NARROWEST)
    if not stream.isatty():
        return None
    try:
        columns = os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):  # a stream without a descriptor
        return NARROWEST
    return max(columns, NARROWEST)


def tell(text: str) -> None:
    """Prints a sentence on stdout, wrapped between words where the width is known."""
    echo(*wrapped(text, width()))


def tell_apart(text: str) -> None:
    """Prints a sentence on stderr, wrapped as by `tell`, its later lines indented."""
    say(*wrapped(text, width(sys.stderr), later="  "))


def wrapped(text: str, limit: int | None, first: str = "", later: str = "") -> list[str]:
    """`text` in lines that end between words; `first` and `later` are before its lines."""
    if limit is None:
        return [text]
    return textwrap.wrap(
        one_line(text),
        limit,
        initial_indent=first,
        subsequent_indent=later,
        break_long_words=False,
        break_on_hyphens=False,
    )


def live_console() -> Console:
    """The console on stderr for progress; texts drawn on it must be passed through `one_line`."""
    from rich.console import Console

    return Console(file=cast("TextIO", _SafeStream(sys.stderr)))


class _SafeStream(io.TextIOBase):
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


def prints_elsewhere() -> AbstractContextManager[object]:
    """What a model of the user's own prints meanwhile goes to stderr: stdout has the results."""
    return redirect_stdout(cast("TextIO", _SafeStream(sys.stderr)))


class _Clean:
    """Something that rich prints. Its texts are cleaned after rich has laid it out."""

    def __init__(self, part: RenderableType) -> None:
        self._part = part

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from eyechart.providers.secrets import mask

        for segment in console.render(self._part, options):
            yield segment._replace(text=clean(mask(segment.text)))


def take_logs() -> None:
    """Prints what libraries log without a handler; Python itself would print it unescaped."""
    import logging

    class Printer(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            say(*self.format(record).split("\n"))

    logging.lastResort = Printer(logging.WARNING)


def _joined(lines: Iterable[str]) -> str:
    return "".join(f"{one_line(line)}\n" for line in lines)


def _print(stream: TextIO, text: str) -> None:
    """Writes `text`; if that fails, `text` and all later output on `stream` is dropped.

    A command must not end because its output cannot be written: the run goes on, and its tables are
    written to their files. A reader who went away, as `head` does, has what it wanted: that is no
    error.
    """
    try:
        stream.write(text)
        stream.flush()
    except BrokenPipeError:
        drop_output(stream)
    except (OSError, ValueError) as error:  # disk full, or closed by a generator
        drop_output(stream)
        if stream is sys.stdout and not _write_errors:
            _write_errors.append(error)
            warn(f"{getattr(error, 'strerror', None) or error}: output")


def drop_output(stream: TextIO) -> None:
    """Redirects `stream` to the null device, together with the text it has not flushed."""
    with suppress(OSError, ValueError):  # a stream without a descriptor
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)


def is_output_lost() -> bool:
    """Whether a write to stdout failed."""
    return bool(_write_errors)


def open_streams() -> None:
    """Prepares the standard streams so that printing always works.

    Descriptors 0 to 2 that the parent process closed are opened on the null device: otherwise the
    next files to be opened would get their numbers, and some libraries would abort the process.
    Characters that the encoding of a stream lacks are escaped.
    """
    _write_errors.clear()
    for number, name, mode in _STANDARD:
        try:
            os.fstat(number)
        except OSError:
            descriptor = os.open(os.devnull, os.O_RDWR)
            if descriptor != number:
                os.dup2(descriptor, number)
                os.close(descriptor)
            os.set_inheritable(number, True)  # noqa: FBT003  takes no keyword
        if getattr(sys, name) is None:
            null = os.open(os.devnull, os.O_RDWR)
            setattr(sys, name, os.fdopen(null, mode, encoding="utf-8", closefd=False))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
