"""Tables that fit the width of the terminal: columns in blocks, letters for long names.

No cell is ever cut or wrapped: a column that does not fit beside the others goes into a block
below.
"""

from __future__ import annotations

import string
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from rich import box
from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from eyechart.harness.cli.terminal import NARROWEST, one_line, show, width

_AROUND = 3
"""Extra columns of a cell: a space on both sides, and a border."""
CellText: TypeAlias = str | Text


@dataclass(frozen=True)
class Column:
    """A column of a table: its header, which may have several lines, and its cells."""

    header: Sequence[str]
    cells: Sequence[CellText]
    justify: Literal["left", "right"] = "right"

    @property
    def width(self) -> int:
        """Width of the widest cell, header included."""
        texts = [
            *self.header,
            *(cell if isinstance(cell, str) else cell.plain for cell in self.cells),
        ]
        return max((cell_len(one_line(text)) for text in texts), default=0)


def table_width() -> int:
    """Most columns of a table: those of the terminal, or 80 if there is none."""
    return width() or NARROWEST


def fits(columns: Sequence[Column]) -> bool:
    return 1 + sum(column.width + _AROUND for column in columns) <= table_width()


def blocks(keys: Sequence[Column], columns: Sequence[Column]) -> Iterator[list[Column]]:
    """The columns in blocks that fit, each with `keys` first. A column that does not fit beside the
    keys has a block of its own.
    """
    block = [*keys]
    for column in columns:
        if len(block) > len(keys) and not fits([*block, column]):
            yield block
            block = [*keys]
        block.append(column)
    yield block


def table(columns: Sequence[Column], sections: Sequence[int] = ()) -> Table:
    """A table of `columns`, with a line before each of the rows in `sections`; in plain characters
    where stdout is no terminal.
    """
    drawn = Table(box=box.SIMPLE_HEAD if sys.stdout.isatty() else box.ASCII2)
    lines = max(len(column.header) for column in columns)
    for column in columns:
        header = [*map(one_line, column.header), *[""] * (lines - len(column.header))]
        drawn.add_column(Text("\n".join(header)), justify=column.justify, no_wrap=True)
    for place, row in enumerate(zip(*(column.cells for column in columns), strict=True)):
        if place in sections:
            drawn.add_section()
        drawn.add_row(*(Text(one_line(cell)) if isinstance(cell, str) else cell for cell in row))
    return drawn


def show_blocks(keys: Sequence[Column], columns: Sequence[Column]) -> None:
    """Prints `blocks`, each as a table. Where a column does not fit beside the keys, letters stand
    for the rows, and the keys are columns like others.
    """
    rows = Column([""], letters(len(columns[0].cells) if columns else 0), "left")
    if any(fits([rows, column]) and not fits([*keys, column]) for column in columns):
        keys, columns = [rows], [*keys, *columns]
    show(*map(table, blocks(keys, columns)))


def show_title(parts: Sequence[str], gap: str = "  ") -> None:
    """Prints the line above a table, in several lines where it does not fit."""
    show(*(Text(line, "bold") for line in joined(parts, gap)))


def letters(count: int) -> list[str]:
    """A to Z, then AA to ZZ, and so on."""
    names: list[str] = []
    for place in range(count):
        name, rest = "", place + 1
        while rest:
            rest, digit = divmod(rest - 1, len(string.ascii_uppercase))
            name = string.ascii_uppercase[digit] + name
        names.append(name)
    return names


def joined(parts: Sequence[str], gap: str = "  ") -> list[str]:
    """`parts` joined in lines that fit; no part is broken."""
    lines: list[str] = []
    for part in map(one_line, parts):
        longer = f"{lines[-1]}{gap}{part}" if lines else part
        if lines and cell_len(longer) <= table_width():
            lines[-1] = longer
        else:
            lines.append(f"  {part}" if lines else part)
    return lines
