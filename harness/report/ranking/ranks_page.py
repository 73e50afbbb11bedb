"""The page of a leaderboard's file alone: small, for the web and for phones.

It has no charts, samples or prompts, and is a pure function of the rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from eyechart.harness.analysis.length.at_length import LIKELY
from eyechart.harness.analysis.ranking.leaderboard_file import Row, right_at_lengths
from eyechart.harness.analysis.tables.cells import markdown_text
from eyechart.harness.errors import JournalError
from eyechart.harness.journal.files import replace_file
from eyechart.harness.report.page.assets import environment, policy, read_asset, style
from eyechart.harness.report.ranking.board import Group, groups_of, table_of
from eyechart.harness.report.ranking.chooser import PIECES, answer_markdown, data_of, is_chooser
from eyechart.harness.report.ranking.rank_table import RankColumn, RankTable, first_of
from eyechart.harness.spec.columns import ASKED, MANY_REPLIES
from eyechart.harness.spec.unit import SYMBOLS

_SCRIPT, _STYLE = "choose.js", "ranks.css"


@dataclass(frozen=True)
class Words:
    """What a page says besides its tables."""

    title: str = ""
    """`{}` in it stands for the length that the reader chooses. Empty: a title from the rows."""
    lede: Sequence[str] = ()
    """Paragraphs under the title."""
    more: Sequence[tuple[str, Sequence[str]]] = ()
    """Headings with their paragraphs, below the tables."""
    first: int | None = None
    """The length in `at` that is shown first; `None`: the one in the middle."""
    rows: str = "rows"
    """The word for rows in the answer: `rows` or `lists`."""
    beside: str = ""
    """A note on the names and prices of the answer."""


@dataclass(frozen=True)
class _PageTable:
    """One table of the page."""

    group: Group
    heading: str
    origin: str
    table: RankTable


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
    shown = _all_shown(rows, units)
    choosers = {one.group.task: one.table for one in shown if is_chooser(one.table)}
    at = sorted({length for table in choosers.values() for length in table.at})
    title = _title(words.title, rows, next(iter(choosers.values()), None))
    script = read_asset(_SCRIPT)
    lines = [line for table in choosers.values() for line in table.lines]
    return (
        environment()
        .get_template("ranks.html.j2")
        .render(
            policy=policy(script),
            css=Markup(style() + read_asset(_STYLE)),  # noqa: S704  our own files
            script=Markup(script),  # noqa: S704  our own file
            data=Markup(data_of([*choosers.items()], title, words.rows)),  # noqa: S704  escaped there
            title=title,
            lede=words.lede or ("",),
            words=words.more,
            choosers=list(choosers),
            groups=[one for one in shown if one.table not in choosers.values()],
            at=at,
            first=words.first if words.first in at else first_of(at),
            many=f"{MANY_REPLIES:,} {words.rows}",
            vendors=sorted({line.vendor for line in lines} - {""}),
            beside=words.beside,
            weights=any(line.open_weights == "yes" for line in lines),
            reading=reading(rows),
        )
    )


def _title(given: str, rows: Sequence[Row], table: RankTable | None) -> list[str]:
    """The texts around the length that is chosen; one text without such a choice."""
    models = len({row["model"] for row in rows})
    if table is None:
        return [given or f"How far do {models} models see?"]
    return (given or f"Which model for rows of {{}} {table.unit}?").split("{}")


def reading(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """What the columns of the tables say: name and text of each."""
    shown = _all_shown(rows, {})
    columns = [column for one in shown for column in _columns(one.table)]
    said = {
        column.head.replace(f" at {column.at:,}", " at N") if column.at else column.head: (
            column.meaning
        )
        for column in columns
        if column.meaning
    }
    if any(is_chooser(one.table) for one in shown):
        said["surely, open"] = (
            f"a model surely passes where P is {LIKELY} or more; it is open where P lies between "
            f"{1 - LIKELY:.2f} and that. P follows from all replies of a model, by a fitted curve "
            "that only falls with the length. Right replies to longer rows raise P; so does the "
            "assumption that short rows are seldom failed. From the replies near a length alone P "
            "may be less. A model can surely pass where one of its intervals begins lower: P may "
            "leave 5 % below the threshold, an interval leaves 2.5 % at each end, and a wide "
            "interval of a length also holds every length that the replies alone allow."
        )
        said["in pieces"] = PIECES
    said["kinds"] = (
        "asked are replies to us, recorded are replies that somebody else collected, reported are "
        "figures that somebody else published. They are never ranked together."
    )
    return list(said.items())


def _columns(table: RankTable) -> list[RankColumn]:
    """The columns of a table; of a chooser without those that count other models."""
    left_out = ("furthest", "tested") if is_chooser(table) else ()
    return [column for column in table.columns if column.name not in left_out]


def _all_shown(rows: Sequence[Row], units: Mapping[str, str]) -> list[_PageTable]:
    at = right_at_lengths(rows)
    return [
        _shown(group, table_of(group, at, units.get(group.task, SYMBOLS)))
        for group in groups_of(rows)
    ]


def _shown(group: Group, table: RankTable) -> _PageTable:
    heading = f"{group.task or 'Tasks with one model'}, {group.kind}"
    if group.kind != ASKED and group.source:
        heading += f" by {group.source}"
    collected = sorted({row["collected"] for row in group.rows} - {""})
    origin = [group.condition.replace(",", ", ")]
    if collected:
        origin.append("replies of " + " to ".join(dict.fromkeys((collected[0], collected[-1]))))
    return _PageTable(group, heading, "; ".join(filter(None, origin)), table)


def ranks_markdown(
    rows: Sequence[Row], units: Mapping[str, str], first: int, words: Words = Words()
) -> str:
    """The page as Markdown: for each group a heading, the answer at one length, and a table."""
    parts: list[str] = []
    for shown in _all_shown(rows, units):
        table = shown.table
        parts += [f"## {markdown_text(shown.heading)}", "", markdown_text(shown.origin) + ".", ""]
        if is_chooser(table):
            parts += answer_markdown(table, first, words.rows, words.beside)
        columns = [one for one in _columns(table) if one.at in (None, first)]
        parts += [
            f"| {' | '.join(column.head for column in columns)} |",
            f"|{' --- |' * len(columns)}",
            *(
                f"| {' | '.join(map(markdown_text, row))} |"
                for row in zip(*(column.cells for column in columns), strict=True)
            ),
            "",
        ]
        parts += [f"{markdown_text(note)}\n" for note in (*table.notes, *map(str, table.dear))]
    return "\n".join(parts)
