"""Runs the commands and the Python code of a chapter in a folder of its own."""

from __future__ import annotations

import contextlib
import glob
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import pandas as pd
import typer

from eyechart.harness.cli import app
from eyechart.harness.cli.parsing.options import settings_of
from eyechart.harness.cli.parsing.settings import AskingVerb
from eyechart.harness.errors import UsageError
from tests.docs.batch_replies import answer
from tests.plugged import EXAMPLES, plug_example
from tests.remembered import remembered

_SHELL = ("cat", "cp", "echo", "head", "ls", "mkdir", "rm", "tail")
"""Commands besides `bench` that chapters run."""
_VARIABLES = ("AZURE_", "BENCH_", "EYECHART_", "OPENAI_", "COLUMNS")
"""Beginnings of the names of variables that change what `bench` prints; so do keys."""
_WIDTH = 100
"""Sentences that are longer are wrapped."""
_PRICES = re.compile(r"\d{4}-\d\d-\d\d \(genai-prices[^)]*\)")
_DATE = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(?::\d\d)?(?:\.\d+)?)")
_UUID = re.compile(r"(?<![0-9a-f])[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?![0-9a-f])")


class ChapterError(Exception):
    """A command failed, or a block has a wrong comment; the message has its file and line."""


@dataclass
class Scratch:
    """The folder of a chapter, what its commands have printed, and the names of its Python code."""

    folder: Path
    printed: list[str] = field(default_factory=list)
    names: dict[str, Any] = field(default_factory=dict)

    def taken(self) -> str:
        """What was printed since the last time, see `same_text`."""
        text = same_text("".join(self.printed), self.folder)
        self.printed.clear()
        return text

    def write(self, name: str, text: str) -> None:
        """Writes a file of the chapter."""
        target = self.folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")

    def command(self, command: str) -> None:
        """Runs one line. `| head -N` and `| tail -N` leave out lines, `> FILE` writes a file."""
        command, *pipes = command.split(" | ")
        command, _, file = command.partition(" > ")
        words = [
            name
            for word in shlex.split(command, comments=True)
            for name in (self._matching(word) if "*" in word else [word])
        ]
        with self._inside():
            code, text = _HERE.get(words[0], _shell)(words)
        if code:
            raise ChapterError(f"{command!r} exits with {code}:\n{text}")
        for pipe in pipes:
            text = _cut(text, pipe)
        if file:
            self.write(file.strip(), text)
        else:
            self.printed.append(text)

    def python(self, code: str, line: int) -> None:
        """Executes a block; all blocks of a chapter share their names."""
        with self.code():
            exec(compile("\n" * line + code, "chapter", "exec"), self.names)  # noqa: S102

    def _matching(self, pattern: str) -> list[str]:
        """The paths that a shell would put in the place of a pattern."""
        found = sorted(glob.glob(pattern, root_dir=self.folder))  # noqa: PTH207  as a shell does
        if not found:
            raise ChapterError(f"nothing matches {pattern!r}")
        return found

    @contextlib.contextmanager
    def code(self) -> Iterator[None]:
        """For Python code of the chapter: keeps what it prints, and turns its errors into one."""
        output = io.StringIO()
        with (
            self._inside(),
            contextlib.redirect_stdout(output),
            pd.option_context("display.max_columns", 20),  # as in a notebook
        ):
            try:
                yield
            except Exception as error:  # whatever the code of a chapter raises
                raise ChapterError(f"{type(error).__name__}: {error}") from error
        self.printed.append(output.getvalue())

    @contextlib.contextmanager
    def _inside(self) -> Iterator[None]:
        """In the folder, without the variables that a user may have set."""
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(_VARIABLES) and not name.endswith("_API_KEY")
        }
        kept["COLUMNS"] = "80"  # pandas asks for the width of the terminal
        with contextlib.chdir(self.folder), mock.patch.dict(os.environ, kept, clear=True):
            yield


def _bench(words: list[str]) -> tuple[object, str]:
    """Exit code and all output of a `bench` command in this process."""
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="utf-8", write_through=True)
    code: object = 0
    with (
        remembered(),
        mock.patch.object(sys, "argv", words),
        contextlib.redirect_stdout(stream),
        contextlib.redirect_stderr(stream),
    ):
        try:
            app.main()
        except SystemExit as end:
            code = end.code or 0
    return code, raw.getvalue().decode()


def _shell(words: list[str]) -> tuple[object, str]:
    """Exit code and output of one of a few other commands."""
    if words[0] not in _SHELL:
        raise ChapterError(f"{words[0]!r} is not run here; say '<!-- not run: needs … -->'")
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def same_text(text: str, folder: Path) -> str:
    """A text without what differs from run to run: dates, random names, the name of the folder,
    and the version of the list of prices.
    """
    text = text.replace(str(folder) + os.sep, "")
    text = _PRICES.sub("2026-11-03 (genai-prices 0.2.3)", text)
    return _UUID.sub("00000000-0000-0000-0000-000000000000", _DATE.sub(_same_date, text))


def _same_date(found: re.Match[str]) -> str:
    """The first instant of 2026, written as this date with its time is."""
    return "2026-01-01" + re.sub(r"\d", "0", found[1])


def wrapped(text: str) -> str:
    """A text without empty lines around it, in lines that are not too long."""
    lines = [short for line in text.strip("\n").splitlines() for short in _wrapped(line)]
    return "".join(f"{line}\n" for line in lines)


def _wrapped(line: str) -> list[str]:
    """A sentence in lines of `_WIDTH` columns; lines of tables and prompts stay as they are."""
    line = line.rstrip()
    if len(line) <= _WIDTH or line.startswith((" ", "|", "+")) or "  " in line:
        return [line]
    return textwrap.wrap(line, _WIDTH, break_long_words=False, break_on_hyphens=False)


def _answer(words: list[str]) -> tuple[object, str]:
    """Answers a file of requests with the embedded model; no command of the reader."""
    answer(Path(words[1]), Path(words[2]))
    return 0, ""


def _install(words: list[str]) -> tuple[object, str]:
    """Copies a project of `examples/` here and makes it look installed; no command of the reader.
    Whoever calls this restores `sys.path`.
    """
    shutil.copytree(EXAMPLES / words[1], Path("examples", words[1]))
    sys.path[:] = plug_example(words[1], Path("site").resolve())
    return 0, ""


_HERE = {"bench": _bench, "answer": _answer, "install": _install}
"""Commands that are executed in this process."""


def _cut(text: str, pipe: str) -> str:
    """The first or the last lines of a text, with `…` for the others."""
    name, count = pipe.split()
    lines, number = text.strip("\n").splitlines(), int(count.removeprefix("-"))
    if name not in {"head", "tail"}:
        raise ChapterError(f"{name!r} after '|' is neither head nor tail")
    if len(lines) <= number:
        raise ChapterError(f"'| {pipe}' leaves out nothing")
    kept = [*lines[:number], "…"] if name == "head" else ["…", *lines[-number:]]
    return "\n".join(kept) + "\n"


@cache
def _program() -> Any:
    """The command `bench` as a parser."""
    return typer.main.get_command(app.app)


def parse(line: str) -> None:
    """Parses a `bench` command without executing it; another command passes.

    Raises:
        ChapterError: `bench` would not take these arguments.
    """
    words = shlex.split(line.replace("…", ""), comments=True)
    if words[0] != "bench":
        return
    command = _program()
    context, rest = command.make_context("bench", ["--debug"]), words[1:]
    try:
        while hasattr(command, "resolve_command"):
            name, command, rest = command.resolve_command(context, rest)
            if not hasattr(command, "resolve_command"):
                given = command.make_context(name, rest, parent=context).params
                if isinstance(command, AskingVerb):
                    settings_of(given)
    except UsageError as error:
        raise ChapterError(f"{line!r}: {error}") from None
    except Exception as error:  # of the parser, from whichever click typer uses
        if not hasattr(error, "format_message"):
            raise
        raise ChapterError(f"{line!r}: {error.format_message()}") from None
