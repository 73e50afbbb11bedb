"""Tables of simulations: on the screen as they grow, as CSV, and in the documentation."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Protocol, TypeAlias, TypeVar

Value: TypeAlias = str | int | float | None
Row: TypeAlias = Mapping[str, Value]
_Case = TypeVar("_Case")
_Result = TypeVar("_Result")
END = "<!-- end -->"


class Spread(Protocol):
    """A `map` that may work in several processes; results come in order."""

    def __call__(
        self, measure: Callable[[_Case], _Result], cases: Iterable[_Case], /
    ) -> Iterable[_Result]: ...


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table."""

    name: str
    """In the CSV file."""
    header: str
    form: str = ""
    """Format of its values."""

    def text(self, row: Row) -> str:
        """The cell of `row`."""
        value = row.get(self.name)
        return "–" if value is None else format(value, self.form)


SETTING = (
    Column("shape", "shape"),
    Column("rows", "rows go together", ".1f"),
    Column("samples", "samples of a line"),
)
"""Columns of most tables: what was simulated."""
KEYS = ("shape", "curve", "options", "alike", "rows", "draws", "lines", "sides")
"""Columns that may say it, besides the number of samples."""


@dataclass(frozen=True, slots=True)
class Simulation:
    """One subcommand."""

    about: str
    columns: Sequence[Column]
    rows: Callable[[Sequence[str], int, Spread], Iterator[Row]]
    """Rows of the table, from shapes, the number of runs of each row, and a `map`."""


def lines(columns: Sequence[Column], rows: Iterable[Row]) -> Iterator[str]:
    """The lines of a Markdown table, one by one."""
    head = [column.header for column in columns]
    return markdown(chain([head], ([column.text(row) for column in columns] for row in rows)))


def markdown(rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """The lines of a Markdown table, one by one; the first row has the heads."""
    for number, row in enumerate(rows):
        yield f"| {' | '.join(row)} |"
        if not number:
            yield "| --- |" + " ---: |" * (len(row) - 1)


def folded(columns: Sequence[Column], rows: Sequence[Row]) -> Iterator[Sequence[str]]:
    """The cells of a table in which rows that differ only in their number of samples are one row,
    whose cells have one value for each number; the first row has the heads.
    """
    keys = [column for column in columns if column.name in KEYS]
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(column.text(row) for column in keys), []).append(row)
    rest = [column for column in columns if column not in keys and column.name != "samples"]
    yield [column.header for column in (*keys, *rest)]
    for key, group in groups.items():
        cells = ([column.text(row) or "–" for row in group] for column in rest)
        yield [*key, *map(_joined, cells)]


def _joined(values: Sequence[str]) -> str:
    """The values of one cell, or one dash where all are missing."""
    return "–" if set(values) == {"–"} else " / ".join(values)


def write_csv(path: Path, columns: Sequence[Column], rows: Sequence[Row]) -> None:
    """All rows, with unrounded values."""
    names = [column.name for column in columns]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, names, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)


def write_cells(path: Path, rows: Iterable[Sequence[str]]) -> None:
    """The cells of a table as they are printed."""
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)


def renew(page: Path, name: str, content: str) -> None:
    """Replaces what stands between `<!-- name -->` and the next `<!-- end -->` in a page.

    Raises:
        SystemExit: the page has no such place.
    """
    text = page.read_text(encoding="utf-8")
    before, begin, after = text.partition(f"<!-- {name} -->\n")
    _, end, behind = after.partition(END)
    if not begin or not end:
        raise SystemExit(f"{page} has no place between '<!-- {name} -->' and '{END}'")
    page.write_text(f"{before}{begin}{content}{end}{behind}", encoding="utf-8")
