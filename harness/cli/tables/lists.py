"""Lists that the verbs print: a record on each line, or on several lines of a narrow terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

from eyechart.harness.cli.terminal import width, wrapped
from eyechart.providers.plugins.plugins import BUILT_IN


def aligned(rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> list[str]:
    """Rows with their columns aligned, two spaces between; a row a line, unless the terminal is
    too narrow: then the last columns go below, each on an indented line after its name, and what is
    too long there is wrapped between words.

    The first row has the names.
    """
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    limit, beside = width(), len(widths)
    while limit and beside > 1 and sum(widths[:beside]) + 2 * (beside - 1) > limit:
        beside -= 1
    names, *_ = rows
    lines = []
    for number, row in enumerate(rows):
        cells = [
            " " * (size - cell_len(cell)) + cell
            if place in right
            else cell + " " * (size - cell_len(cell))
            for place, (cell, size) in enumerate(zip(row[:beside], widths, strict=False))
        ]
        lines.append("  ".join(cells).rstrip())
        if number:
            for name, cell in zip(names[beside:], row[beside:], strict=True):
                if cell not in ("", "-"):
                    lines += wrapped(f"{name}: {cell}", limit, "    ", "      ")
    return lines


def with_origins(names: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """A list below the names of its columns, without the column `from` if all is built in."""
    if any(row[1] != BUILT_IN for row in rows):
        return [names, *rows]
    return [(row[0], *row[2:]) for row in (names, *rows)]
