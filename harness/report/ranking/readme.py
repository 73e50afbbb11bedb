"""The leaderboard as a table in a Markdown file, between two markers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from eyechart.harness.analysis.length.effective_length import length_text
from eyechart.harness.analysis.length.interval import span_text
from eyechart.harness.analysis.length.limit import RANKED
from eyechart.harness.analysis.ranking.leaderboard_file import (
    Leaderboard,
    Row,
    lengths_of,
    right_at_lengths,
)
from eyechart.harness.analysis.ranking.standing import median_length
from eyechart.harness.analysis.tables.cells import markdown_text
from eyechart.harness.errors import LeaderboardError
from eyechart.harness.journal.files import replace_file
from eyechart.harness.report.ranking.board import interval_of, length_of, notes_of, right_at
from eyechart.harness.spec import Condition
from eyechart.harness.spec.columns import ASKED, REPORTED
from eyechart.harness.spec.dollars import dollars_text

BEGIN, END = "<!-- bench leaderboard -->", "<!-- end -->"
_MARKER = re.compile(r"^[ \t]*(<!-- (?:bench [a-z ]+|end) -->)[ \t]*\r?$", re.MULTILINE)
_COMMENT = re.compile(r"^[ \t]*<!--.*-->[ \t]*\r?$", re.MULTILINE)


def markdown(leaderboard: Leaderboard) -> str:
    """A table for a README: a row for each task and model, with how far it is right under the
    task's default condition (under the first one, if it was not asked that), the median and the
    range over all conditions, and the mean area over the conditions that all models of the task
    have.

    Adaptive runs and recorded replies have rows of their own, which say so. Figures that others
    reported are left out. Each length in `at` has a column, with the accuracy in percent. The
    ends of the range do not name their conditions: without a test, the first and the last of
    several equal conditions differ by chance. Controls are left out. Areas over different lengths
    have no mean, and adaptive and recorded rows have none either; these are sorted by how far they
    are right. If any cost is known, the last column has the cost of the condition that is shown.
    """
    ranked = [row for row in leaderboard.rows if not row["control"] and row["kind"] != REPORTED]
    some_costs = any(row["cost_usd"] for row in ranked)
    at = right_at_lengths(ranked)
    heads = [f"right at {length:,}, %" for length in at] + ["cost"] * some_costs
    rules = ["---:"] * len(at) + ["---"] * some_costs
    more = ["".join(f" {text} |" for text in texts) for texts in (heads, rules)]
    table = [
        "| task | model | right to (95 % interval) | median over conditions | mean area |"
        + more[0],
        f"| --- | --- | --- | --- | ---: |{more[1]}",
    ]
    for task in sorted({row["task"] for row in ranked}):
        rows = [row for row in ranked if row["task"] == task]
        by_entrant: dict[tuple[str, ...], list[Row]] = {}
        for row in rows:
            entrant = tuple(row[name] for name in ("model", "settings", "adaptive", "kind"))
            by_entrant.setdefault(entrant, []).append(row)
        conditions = [
            {row["condition"] for row in entrant_rows}
            for (_, _, adaptive, kind), entrant_rows in by_entrant.items()
            if not adaptive and kind == ASKED
        ]
        common = set.intersection(*conditions) if conditions else set()
        varied = _varied([row["condition"] for row in rows])

        def mean(entrant_rows: Sequence[Row], common: set[str] = common) -> float:
            """The mean area over the common conditions; -1 if there is no such mean."""
            common_rows = [
                row for row in entrant_rows if row["condition"] in common and row["kind"] == ASKED
            ]
            lengths = {tuple(lengths_of([row])) for row in common_rows}
            if len(lengths) != 1 or not all(row["area"] for row in common_rows):
                return -1.0
            return sum(float(row["area"]) for row in common_rows) / len(common_rows)

        def rank(rows: Sequence[Row]) -> tuple[bool, float, float, int]:
            shown = _shown(rows)
            length = length_of(shown)
            if length is None or shown["limited_by"] not in RANKED:
                return True, 0.0, 0.0, 0
            return False, -mean(rows), -length.length, -length.order[1]

        ranking = sorted(by_entrant.items(), key=lambda item: rank(item[1]))
        for (model, _, adaptive, kind), entrant_rows in ranking:
            shown = _shown(entrant_rows)
            area = f"{mean(entrant_rows):.2f}" if mean(entrant_rows) >= 0 else "–"
            names = f"{markdown_text(task)} | {markdown_text(model)}"
            names += ", adaptive" if adaptive else ""
            names += f", {kind}" if kind != ASKED else ""
            cells = [names, _sees(shown, varied), _median(entrant_rows), area]
            right = (right_at(shown, length) for length in at)
            cells += ["–" if found is None else found.text for found in right]
            cells += [_cost(shown)] if some_costs else []
            table.append(f"| {' | '.join(cells)} |")
    return "\n".join(table)


def _cost(row: Row) -> str:
    """`$1.23 (prices of 2026-11-03)`: what the row's effective length cost; a dash if unknown."""
    if not row["cost_usd"]:
        return "–"
    day = markdown_text(row["prices_of"].partition(" ")[0])
    return f"{dollars_text(float(row['cost_usd']))} (prices of {day})"


def _shown(rows: Sequence[Row]) -> Row:
    """The row of the task's default condition, else the first one."""
    return next((row for row in rows if row["default"]), rows[0])


def _varied(labels: Iterable[str]) -> set[str]:
    values: dict[str, set[str]] = {}
    for label in labels:
        for axis, value in Condition.read(label).items():
            values.setdefault(axis, set()).add(value)
    return {axis for axis, names in values.items() if len(names) > 1}


def _sees(row: Row, axes: set[str]) -> str:
    """`20 (18 to 23), separator=comma`; with the values of `axes` only. A note inside the
    parentheses says if there is no single threshold, or if the replies are few.
    """
    condition = Condition.read(row["condition"]).items()
    pairs = [markdown_text(f"{axis}={value}") for axis, value in condition if axis in axes]
    inside = ", ".join(filter(None, (span_text(interval_of(row)), *notes_of(row))))
    return ", ".join([f"{length_text(length_of(row))} ({inside})", *pairs])


def _median(rows: Sequence[Row]) -> str:
    """`20, range over 4 conditions 5 to > 500`; a dash where fewer than two lengths are ranked.

    See `median_length`.
    """
    lengths = sorted(
        [length for row in rows if row["limited_by"] in RANKED and (length := length_of(row))],
        key=lambda length: length.order,
    )
    middle = median_length(lengths)
    if middle is None:
        return "–"
    some = f"{len(lengths)} of " if len(lengths) < len(rows) else ""
    span = span_text((lengths[0], lengths[-1]))
    return f"{middle}, range over {some}{len(rows)} conditions {span}"


def around(path: Path) -> tuple[str, str]:
    """The text before and after the table in a Markdown file, markers included.

    Raises:
        LeaderboardError: the file does not have exactly one place for a table, or cannot be read.
    """
    try:
        with path.open(encoding="utf-8", newline="") as file:
            text = file.read()
    except OSError as error:
        raise LeaderboardError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise LeaderboardError(f"{path} is no text in UTF-8 ({error})") from None
    markers = list(_MARKER.finditer(text))
    begins = [place for place, marker in enumerate(markers) if marker[1] == BEGIN]
    if not begins or all(marker[1] != END for marker in markers):
        raise LeaderboardError(
            f"{path} has no place for the table: put {BEGIN!r} and {END!r} on lines of their own"
        )
    if len(begins) > 1:
        lines = " and ".join(_line(text, markers[place]) for place in begins)
        raise LeaderboardError(f"{path} has {BEGIN!r} on lines {lines}; leave one of them")
    begin, following = markers[begins[0]], markers[begins[0] + 1 :]
    if not following or following[0][1] != END:
        raise LeaderboardError(
            f"{path}:{_line(text, begin)}: {BEGIN!r} is not followed by its own {END!r}; put that "
            "on a line of its own after the table"
        )
    end = following[0]
    later = _COMMENT.search(text, end.end())
    if later is not None and later[0].strip() == END:
        raise LeaderboardError(
            f"{path} has {END!r} on lines {_line(text, end)} and {_line(text, later)} after one "
            f"{BEGIN!r}; leave the one that ends the table"
        )
    return text[: begin.end(1)], text[end.start(1) :]


def _line(text: str, place: re.Match[str]) -> str:
    return str(text.count("\n", 0, place.end(0)) + 1)


def put_into(path: Path, table: str) -> None:
    """Replaces the text between the markers, in the file that a link is to; raises as `around`."""
    before, after = around(path)
    end = "\r\n" if "\r\n" in before + after else "\n"
    text = end.join([before, *table.split("\n"), after])
    replace_file(path.resolve(), text.encode())
