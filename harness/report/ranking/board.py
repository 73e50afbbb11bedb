"""What the rows of a leaderboard's file say: lines of a ranking, and cells of a Markdown table.

Rows of one task, condition and kind are a group; different groups are never ranked together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import cast

from eyechart.harness.analysis.length.at_length import AtLength, pieces_of
from eyechart.harness.analysis.length.effective_length import (
    NO_SINGLE_THRESHOLD,
    few,
    limited_by,
)
from eyechart.harness.analysis.length.interval import Bound, Sign, Span
from eyechart.harness.analysis.length.limit import RANKED
from eyechart.harness.analysis.ranking.cost_at import CostAt
from eyechart.harness.analysis.ranking.leaderboard_file import Row, lengths_of
from eyechart.harness.report.ranking.rank_table import LengthEstimate, RankLine, RankTable
from eyechart.harness.settings.judging import OF_RUNS, JudgeSettings
from eyechart.harness.spec.columns import (
    ACCURACY_AT,
    COST_A_REPLY,
    COST_AT,
    REACHES_IN,
    REPORTED,
    RIGHT_AT,
)


@dataclass(frozen=True)
class Group:
    """Rows that may be ranked together; or, of a task with one model each, all such tasks."""

    task: str
    condition: str
    kind: str
    source: str
    rows: tuple[Row, ...]

    @property
    def is_of_tasks(self) -> bool:
        """Whether each row is another task."""
        return self.task == ""


def groups_of(rows: Iterable[Row]) -> list[Group]:
    """The rows of a page, by kind and source, the largest group first: of each task those
    under its most common default condition, or under the most common one if none is a default.
    Controls and other conditions are only in the file.
    """
    by_key: dict[tuple[str, str, str, str], list[Row]] = {}
    for row in rows:
        if not row["control"]:
            source = row["source"] if row["kind"] == REPORTED else ""
            by_key.setdefault((row["task"], row["kind"], row["adaptive"], source), []).append(row)
    groups, alone = [], []
    for (task, kind, _, source), of_task in by_key.items():
        defaults = [row for row in of_task if row["default"]] or of_task
        condition = Counter(row["condition"] for row in defaults).most_common(1)[0][0]
        shown = tuple(row for row in of_task if row["condition"] == condition)
        if len(shown) == 1 and kind != REPORTED:
            alone.append(shown[0])
        else:
            sources = {row["source"] for row in shown}
            of = sources.pop() if len(sources) == 1 else source
            groups.append(Group(task, condition, kind, of, shown))
    groups.sort(key=lambda group: (group.kind == REPORTED, -len(group.rows)))
    of_tasks = [
        Group("", "", kind, "", tuple(row for row in alone if row["kind"] == kind))
        for kind in dict.fromkeys(row["kind"] for row in alone)
    ]
    return [*groups, *of_tasks]


EXACT, NEAR, APART = "effective_length", "near_length", "apart_length"
"""The columns of a row's three lengths."""


def length_of(row: Row, name: str = EXACT) -> Bound | None:
    """A length of a row; `None` where it is not known."""
    return Bound(cast("Sign", row[f"{name}_bound"] or "="), float(row[name])) if row[name] else None


def interval_of(row: Row, name: str = EXACT) -> Span:
    """The interval of a length of a row.

    If it lies wholly below the shortest length asked, the row has that length as the upper end of
    the interval; if wholly above the longest, as the lower one. An open end is not on the other
    side of the length, which may lie in the band of the first or the last line. Which pairs of
    rows were asked is not in the file, so such an end of the length apart is what is known of it.
    """
    length, low, high = length_of(row, name), row[f"{name}_ci_low"], row[f"{name}_ci_high"]
    tested = lengths_of([row]) if name != APART else [float(one) for one in (low, high) if one]
    sign = "" if length is None else length.sign
    is_limited = row["limited_by"] not in RANKED
    found = [] if length is None else [length.length]
    shortest = length if length and sign == "<" else Bound("<", min([*tested[:1], *found]))
    longest = Bound(">", max([*tested[-1:], *found]))
    if length and sign == ">" and not is_limited:
        longest = length
    is_above = sign == ">" and low == row[name] and not is_limited
    is_below = sign == "<" and high == row[name]
    return (
        longest if is_above else Bound("=", float(low)) if low else shortest,
        shortest if is_below else Bound("=", float(high)) if high else longest,
    )


def notes_of(row: Row) -> list[str]:
    """What limits an effective length, no single threshold, and few rows."""
    uneven = NO_SINGLE_THRESHOLD if row["one_threshold"] == "no" else ""
    of_few = few(int(row["n"]), int(row["rows"]) if row["rows"] else None)
    return [*filter(None, (limited_by(row["limited_by"]), uneven, of_few))]


def right_at(row: Row, length: int) -> AtLength | None:
    """The accuracy of a row at a length in `at`; `None` where the row does not have it."""
    accuracy, low, high, reaches, bound = (row.get(name.format(length), "") for name in RIGHT_AT)
    if not any((accuracy, low, high, reaches)):
        return None
    numbers = [float(text) if text else None for text in (accuracy, low, high, reaches)]
    return AtLength(
        length,
        numbers[0],
        (numbers[1], numbers[2]),
        numbers[3],
        "" if row["limited_by"] in RANKED else row["limited_by"],
        cast("Sign", bound or "="),
    )


def in_pieces(row: Row, at: Sequence[int]) -> dict[tuple[int, int], AtLength]:
    """Length of a row and number of pieces -> how surely a row's model passes with them."""
    found = {}
    for length, pieces in pieces_of(at):
        reaches, of_piece = (
            row.get(REACHES_IN.format(length, pieces)),
            right_at(row, length // pieces),
        )
        if reaches and of_piece is not None:
            found[length, pieces] = replace(of_piece, reaches=float(reaches))
    return found


def costs_of(row: Row, at: Sequence[int]) -> dict[int, CostAt]:
    """Length -> what a reply of a row costs there; of 0 the mean of its own rows, without any."""
    found = {}
    for length in at:
        dollars, sign = (row.get(name.format(length), "") for name in COST_AT)
        if dollars:
            found[length] = CostAt(float(dollars), cast("Sign", sign or "="))
    mean = {0: CostAt(float(row[COST_A_REPLY]))} if row[COST_A_REPLY] else {}
    return found or mean


def by_test_of(row: Row) -> tuple[int, int, int] | None:
    """How many models a row is shown to be ahead of, how many are ahead of it, of how many."""
    if not row["tested_against"]:
        return None
    further, less, others = (
        int(row[name]) for name in ("further_than", "less_far_than", "tested_against")
    )
    return further, less, others


def published_figures(row: Row) -> str:
    """The figures of a reported row: `capacity 144`, or the accuracy at each length in percent."""
    parts = [f"capacity {float(row['capacity']):.0f}"] if row["capacity"] else []
    parts += [
        f"{100 * float(row[f'{ACCURACY_AT}{length}']):.0f} % at {length:,}"
        for length in lengths_of([row])
    ]
    return ", ".join(parts)


def table_of(group: Group, at: Sequence[int], unit: str) -> RankTable:
    """The table of a group, in the order of the file."""
    given = next((row for row in group.rows if row[OF_RUNS[0]]), None)
    read = {} if given is None else {name: float(given[name]) for name in OF_RUNS}
    judging = JudgeSettings.read(**read)
    lines = [_line(row, at, is_of_tasks=group.is_of_tasks) for row in group.rows]
    return RankTable(lines, judging, at if any(one.right_at for one in lines) else (), unit)


def _reached(row: Row, name: str) -> LengthEstimate | None:
    return LengthEstimate(length_of(row, name), interval_of(row, name)) if row[name] else None


def _line(row: Row, at: Sequence[int], *, is_of_tasks: bool) -> RankLine:
    is_reported = row["kind"] == REPORTED
    right = {length: found for length in at if (found := right_at(row, length))}
    known = row["parameters_billion"]
    return RankLine(
        model=row["model"],
        task=row["task"] if is_of_tasks else "",
        marks=["adaptive"] if row["adaptive"] else [],
        vendor=row["vendor"],
        parameters=f"{float(known):g}" if known else "",
        open_weights=row["open_weights"],
        length=None if is_reported else LengthEstimate(length_of(row), interval_of(row)),
        near=_reached(row, NEAR),
        apart=_reached(row, APART),
        note="" if is_reported else ", ".join(notes_of(row)),
        right_at=right,
        in_pieces=in_pieces(row, at),
        by_test=by_test_of(row),
        costs=costs_of(row, at),
        collected=row["collected"],
        published=published_figures(row) if is_reported else "",
    )
