"""The page of a leaderboard's file alone: small, for the web and for phones.

It has no charts, samples or prompts, and is a pure function of the rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from eyechart.harness.analysis.ranking.leaderboard_file import Row, right_at_lengths
from eyechart.harness.analysis.tables.cells import markdown_text
from eyechart.harness.errors import JournalError
from eyechart.harness.journal.files import replace_file
from eyechart.harness.report.page.page import environment, policy, read_asset, style
from eyechart.harness.report.ranking.board import Group, groups_of, table_of
from eyechart.harness.report.ranking.rank_table import RankLine, RankTable, first_of
from eyechart.harness.spec.columns import ASKED
from eyechart.harness.spec.unit import SYMBOLS

_SCRIPT = "board.js"


@dataclass(frozen=True)
class Words:
    """What a page says besides its tables."""

    title: str = ""
    """Empty: how many models there are."""
    lede: Sequence[str] = ()
    """Paragraphs under the title."""
    more: Sequence[tuple[str, Sequence[str]]] = ()
    """Headings with their paragraphs, below the tables."""
    first: int | None = None
    """The length in `at` that is shown first; `None`: the one in the middle."""


@dataclass(frozen=True)
class _Shown:
    """One table of the page."""

    group: Group
    heading: str
    origin: str
    table: RankTable
    places: Sequence[Mapping[str, int]]
    """The place of each line in every order of the rows."""


def write_ranks(
    rows: Sequence[Row], out: Path, units: Mapping[str, str], words: Words = Words()
) -> None:
    """Writes the page of `rows`. `units` has what a length counts, by task.

    Raises:
        JournalError: the file cannot be written.
    """
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        replace_file(out, ranks_page(rows, units, words).encode("utf-8", "replace"))
    except OSError as error:
        raise JournalError(f"cannot write {error.filename}: {error.strerror}") from error


def ranks_page(rows: Sequence[Row], units: Mapping[str, str], words: Words = Words()) -> str:
    """The page as HTML, see `write_ranks`."""
    at = right_at_lengths(rows)
    shown = _all_shown(rows, units)
    models = {row["model"] for row in rows}
    script = read_asset(_SCRIPT)
    return (
        environment()
        .get_template("ranks.html.j2")
        .render(
            policy=policy(script),
            css=Markup(style()),  # noqa: S704  our own files
            script=Markup(script),  # noqa: S704  our own file
            title=words.title or f"How far are {len(models)} models right?",
            lede=words.lede,
            words=words.more,
            groups=shown,
            at=at,
            first=words.first if words.first in at else first_of(at),
            vendors=sorted({row["vendor"] for row in rows} - {""}),
            sized=any(row["parameters_billion"] for row in rows),
            kinds=list(dict.fromkeys(one.group.kind for one in shown)),
            reading=reading(rows),
        )
    )


def reading(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """What the columns of the tables say: name and text of each."""
    columns = [column for one in _all_shown(rows, {}) for column in one.table.columns]
    said = {
        column.head.replace(f" at {column.at:,}", " at N") if column.at else column.head: (
            column.meaning
        )
        for column in columns
        if column.meaning
    }
    said["kinds"] = (
        "asked are replies to us, recorded are replies that somebody else collected, reported are "
        "figures that somebody else published. They are never ranked together."
    )
    return list(said.items())


def _all_shown(rows: Sequence[Row], units: Mapping[str, str]) -> list[_Shown]:
    at = right_at_lengths(rows)
    return [
        _shown(group, table_of(group, at, units.get(group.task, SYMBOLS)))
        for group in groups_of(rows)
    ]


def _shown(group: Group, table: RankTable) -> _Shown:
    heading = f"{group.task or 'Tasks with one model'}, {group.kind}"
    if group.kind != ASKED and group.source:
        heading += f" by {group.source}"
    collected = sorted({row["collected"] for row in group.rows} - {""})
    origin = [group.condition.replace(",", ", ")]
    if collected:
        origin.append("replies of " + " to ".join(dict.fromkeys((collected[0], collected[-1]))))
    said = "; ".join(filter(None, origin))
    return _Shown(group, heading, said, table, _places(table.lines, table.at))


def _places(lines: Sequence[RankLine], at: Sequence[int]) -> list[dict[str, int]]:
    """The place of each line in every order: how far, by name, size, cost, and at each length."""
    orders: dict[str, list[Any]] = {
        "far": list(range(len(lines))),
        "name": [line.model.lower() for line in lines],
        "parameters": [float(line.parameters or "inf") for line in lines],
        "cost": [next(iter(line.costs.values()), math.inf) for line in lines],
    }
    for length in at:
        found = [line.right_at.get(length) for line in lines]
        orders[f"right{length}"] = [(2.0, 2.0) if one is None else one.order for one in found]
    places: list[dict[str, int]] = [{} for _ in lines]
    for name, keys in orders.items():
        for place, line in enumerate(sorted(range(len(lines)), key=keys.__getitem__)):
            places[line][name] = place
    return places


def ranks_markdown(rows: Sequence[Row], units: Mapping[str, str], first: int) -> str:
    """The page as Markdown: for each group a heading, the answer at one length, and a table."""
    parts: list[str] = []
    for shown in _all_shown(rows, units):
        table = shown.table
        parts += [f"## {markdown_text(shown.heading)}", "", markdown_text(shown.origin) + ".", ""]
        if table.suited:
            parts += [markdown_text(table.suited[table.at.index(first)]), ""]
        columns = [one for one in table.columns if one.name != "sure" or one.at == first]
        parts += [
            f"| {' | '.join(column.head for column in columns)} |",
            f"|{' --- |' * len(columns)}",
            *(
                f"| {' | '.join(map(markdown_text, row))} |"
                for row in zip(*(column.cells for column in columns), strict=True)
            ),
            "",
        ]
        parts += [f"{markdown_text(note)}\n" for note in table.notes]
    return "\n".join(parts)
