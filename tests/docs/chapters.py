"""Renews what the commands of a chapter print: `python -m tests.docs --write`.

A chapter is a Markdown file. A comment on a line of its own says what the block after it is:

    <!-- printed -->               text that the commands before it print
    <!-- printed by: COMMAND -->   text that this command prints
    <!-- run: COMMAND -->          a command that the reader does not see
    <!-- file: NAME -->            a file that the commands after it read
    <!-- part of: NAME -->         a part of such a file; a test of its own checks it
    <!-- not run: needs … -->      a block that is not executed, and why

Every other block of `bash` or `python` is executed, with the embedded model, in an empty folder of
the chapter. Of `bench` commands that are not executed the arguments are parsed. Some chapters and
tables are written by code, see `tests.docs.generated`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from tests.docs.generated import GENERATED, with_tables
from tests.docs.scratch import ChapterError, Scratch, parse, wrapped

ROOT = Path(__file__).parents[2]
PAGES = ("README.md", "CONTRIBUTING.md", "results/README.md")
"""Markdown files outside docs/ that have commands."""

_BLOCK = re.compile(
    r"^(?P<comments>(?:<!-- [^\n]* -->\n+)*)```(?P<language>\w*)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_COMMENT = re.compile(r"<!-- ([a-z ]+?)(?:: (.*))? -->")
_KINDS = ("printed", "printed by", "run", "file", "part of", "not run")


@dataclass(frozen=True)
class Block:
    """A fenced block with the comments before it."""

    language: str
    text: str
    comments: list[tuple[str, str]]
    """Kind and argument of each comment."""
    line: int
    span: tuple[int, int]
    """Where `text` begins and ends in the chapter."""

    def argument(self, kind: str) -> str | None:
        """The argument of a comment, empty if it has none; None without such a comment."""
        return next((argument for name, argument in self.comments if name == kind), None)

    @property
    def commands(self) -> list[str]:
        """The lines of a `bash` block; a line that ends in a backslash continues."""
        lines = self.text.replace("\\\n", " ").splitlines()
        return [line for line in lines if line.strip() and not line.startswith("#")]


def chapters() -> list[Path]:
    """Every Markdown file whose commands are run."""
    return [*(ROOT / page for page in PAGES), *sorted((ROOT / "docs").glob("*.md"))]


def read_blocks(text: str) -> Iterator[Block]:
    """The fenced blocks of a chapter."""
    for found in _BLOCK.finditer(text):
        comments = [
            (kind, argument or "") for kind, argument in _COMMENT.findall(found["comments"])
        ]
        line = text.count("\n", 0, found.start("language")) + 1
        yield Block(found["language"], found["text"], comments, line, found.span("text"))


def check(block: Block) -> None:
    """Raises `ChapterError` if the comments before a block do not say what it is."""
    kinds = {kind for kind, _ in block.comments}
    if unknown := kinds - set(_KINDS):
        raise ChapterError(f"unknown comments {unknown}; there are {_KINDS}")
    if not (why := block.argument("not run") or "needs ").startswith("needs "):
        raise ChapterError(f"a block is not run because it needs something, not {why!r}")
    allowed = {
        "bash": {"not run", "run"},
        "python": {"file", "not run", "part of", "run"},
        "text": {"not run", "printed", "printed by", "run"},
    }.get(block.language, {"file", "not run", "part of", "run"})
    if kinds - allowed:
        raise ChapterError(f"{block.language!r} cannot be {kinds - allowed}")
    if block.language not in {"bash", "python"} and not kinds - {"run"}:
        raise ChapterError(f"{block.language!r} needs a comment that says what it is")


def renew(path: Path, folder: Path) -> str:
    """The text of a chapter with what its commands print today, in a folder `mine` in `folder`.

    Raises:
        ChapterError: a command failed, or a block has a wrong comment.
    """
    written = GENERATED.get(path.name) if path.parent == ROOT / "docs" else None
    text = written() if written else with_tables(path.read_text(encoding="utf-8"))
    scratch, parts, end, line = Scratch(folder / "mine"), [], 0, 0
    scratch.folder.mkdir()  # its name is a part of the names of tasks in it
    try:
        with mock.patch.object(sys, "path", [*sys.path]):  # a chapter may install packages
            for block in read_blocks(text):
                (start, stop), line = block.span, block.line
                check(block)
                parts += [text[end:start], _renewed(block, scratch)]
                end = stop
    except ChapterError as error:
        raise ChapterError(f"{path.name}, line {line}: {error}") from None
    return "".join([*parts, text[end:]])


def _renewed(block: Block, scratch: Scratch) -> str:
    """The text of a block after it was executed."""
    for kind, argument in block.comments:
        if kind == "run":
            scratch.command(argument)
    if block.argument("not run") is not None:
        for command in block.commands if block.language == "bash" else ():
            parse(command)
    elif name := block.argument("file"):
        scratch.write(name, block.text)
    elif block.language == "text":
        return _printed(block, scratch)
    elif block.argument("part of") is None:
        scratch.printed.clear()
        _execute(block, scratch)
    return block.text


def _printed(block: Block, scratch: Scratch) -> str:
    """The output that a block shows."""
    if command := block.argument("printed by"):
        scratch.printed.clear()
        scratch.command(command)
    if not (text := wrapped(scratch.taken())):
        raise ChapterError("nothing is printed here")
    return text


def _execute(block: Block, scratch: Scratch) -> None:
    if block.language == "python":
        scratch.python(block.text, block.line)
        return
    for command in block.commands:
        scratch.command(command)
