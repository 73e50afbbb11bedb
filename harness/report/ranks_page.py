"""The page of a leaderboard's file alone: small, for the web and for phones.

It has no charts, samples or prompts, and is a pure function of the rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from markupsafe import Markup

from eyechart.harness.analysis.at_length import suited
from eyechart.harness.analysis.cells import markdown_text
from eyechart.harness.analysis.curve import threshold_text
from eyechart.harness.analysis.leaderboard_file import Row, right_at_lengths
from eyechart.harness.errors import JournalError
from eyechart.harness.journal.files import replace_file
from eyechart.harness.report.board import Group, groups_of, lines_of, scale_of_rows
from eyechart.harness.report.page import environment, policy, read_asset, style
from eyechart.harness.report.standings import (
    FURTHEST,
    TESTED_HEADS,
    StandingLine,
    first_of,
)
from eyechart.harness.spec.columns import ASKED, COST_A_REPLY, COST_AT, MANY_REPLIES, REPORTED
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
    answers: Sequence[str]
    lines: Sequence[tuple[StandingLine, Mapping[str, int]]]
    """Each line with its place in every order of the rows."""
    view: Mapping[str, Any]

    @property
    def is_reported(self) -> bool:
        """Whether the rows are figures that somebody else published."""
        return self.group.kind == REPORTED


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
    first = first_of(at, words.first)
    shown = [_shown(group, at, first, units) for group in groups_of(rows)]
    models = {row["model"] for row in rows}
    script = read_asset(_SCRIPT)
    return (
        environment()
        .get_template("ranks.html.j2")
        .render(
            policy=policy(script),
            css=Markup(style()),  # noqa: S704  our own files
            script=Markup(script),  # noqa: S704  our own file
            title=words.title or f"How far do {len(models)} models see?",
            lede=words.lede,
            words=words.more,
            groups=shown,
            at=at,
            first=first,
            vendors=sorted({row["vendor"] for row in rows} - {""}),
            sized=any(row["parameters_billion"] for row in rows),
            kinds=list(dict.fromkeys(one.group.kind for one in shown)),
            reading=reading(rows),
        )
    )


def _cost_at(rows: Sequence[Row]) -> str:
    """The length at which all costs of `rows` are; empty where they are of rows of several."""
    lengths = {row[COST_AT] for row in rows if row[COST_A_REPLY]}
    return lengths.pop() if len(lengths) == 1 else ""


def reading(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """What the columns of the tables say: name and text of each."""
    threshold = _threshold(rows)
    said = {
        "Sees to": (
            f"the length up to which a model is right in at least {threshold} of its replies, by "
            "the fitted curve, with a 95 % interval. < and > (an open mark) are bounds beyond "
            "the lengths that were asked."
        ),
        "Right at N": (
            "how often it is right there, by the fitted curve, with a 95 % interval. Beyond the "
            "lengths asked it is a bound, since the curve falls."
        ),
        f"P(≥ {threshold})": f"the probability that this is {threshold} or more.",
        FURTHEST: (
            "the probability that no other model of the table sees further. Each counts as seeing "
            "no further than the longest row that it was asked; where it may see further, with a "
            "probability of 0.01 or more, there is a dash. The models are taken as independent."
        ),
        "Ahead, open, behind": (
            "how many other models of the table a model is shown to see further than, cannot be "
            "told from, and is shown to see less far than: tests with Holm’s correction for all "
            "pairs. With thousands of pairs and few rows a model such a test shows little: open "
            "does not mean equal, also where two intervals lie apart."
        ),
    }
    if at := _cost_at([row for row in rows if row["kind"] != REPORTED]):
        said[f"{MANY_REPLIES:,} replies at {at}"] = (
            f"dollars of so many replies to rows of {at} items, at catalog prices: by the straight "
            "line through the costs of a model’s replies to rows near that length. Not known "
            "where there are no such rows, no tokens or no prices."
        )
    said["Kinds"] = (
        "asked are replies to us, recorded are replies that somebody else collected, reported are "
        "figures that somebody else published. They are never ranked together."
    )
    return list(said.items())


def _threshold(rows: Sequence[Row]) -> str:
    """`85 %`: the threshold of the first row that has one."""
    return next((threshold_text(float(row["threshold"])) for row in rows if row["threshold"]), "")


def _shown(group: Group, at: Sequence[int], first: int, units: Mapping[str, str]) -> _Shown:
    scale = scale_of_rows(group.rows)
    lines = lines_of(group, scale, at)
    places = _places(lines, at)
    has_right = any(found for line in lines for found in line.right_at)
    heading = f"{group.task or 'Tasks with one model'}, {group.kind}"
    if group.kind != ASKED and group.source:
        heading += f" by {group.source}"
    collected = sorted({line.collected for line in lines} - {""})
    origin = [group.condition.replace(",", ", ")]
    if collected:
        origin.append("replies of " + " to ".join(dict.fromkeys((collected[0], collected[-1]))))
    if group.is_of_tasks:
        origin.append(", ".join(sorted({row["model"] for row in group.rows})))
    answers = []
    if has_right and not group.is_of_tasks:
        answers = suited_of(group, lines, at, units)
    view = {
        "scale": scale,
        "at": at if has_right else [],
        "first": first,
        "threshold": _threshold(group.rows),
        "ranked": False,
        "tested": any(line.by_test and line.by_test[2] for line in lines),
        "priced": [],
        "costs": any(line.cost for line in lines),
        "cost_at": _cost_at(group.rows),
        "medians": False,
        "dated": len(collected) > 1,
        "filtered": True,
    }
    named = list(zip(lines, places, strict=True))
    if not has_right:
        named = [(replace(line, right_at=()), place) for line, place in named]
    return _Shown(group, heading, "; ".join(filter(None, origin)), answers, named, view)


def suited_of(
    group: Group, lines: Sequence[StandingLine], at: Sequence[int], units: Mapping[str, str]
) -> list[str]:
    """For each length of `at`, which models of a group can be given a row of it."""
    unit = units.get(group.task, SYMBOLS)
    return [
        suited(
            [(line.name, line.right_at[number]) for line in lines],
            length,
            _threshold(group.rows),
            unit,
        )
        for number, length in enumerate(at)
    ]


def _places(lines: Sequence[StandingLine], at: Sequence[int]) -> list[dict[str, int]]:
    """The place of each line in every order: how far, by name, size, cost, and at each length."""
    orders: dict[str, list[Any]] = {
        "far": list(range(len(lines))),
        "name": [line.name.lower() for line in lines],
        "parameters": [float(line.parameters or "inf") for line in lines],
        "cost": [math.inf if line.cost_a_reply is None else line.cost_a_reply for line in lines],
    }
    for number, length in enumerate(at):
        found = [line.right_at[number] for line in lines]
        orders[f"right{length}"] = [(2.0, 2.0) if one is None else one.order for one in found]
    places: list[dict[str, int]] = [{} for _ in lines]
    for name, keys in orders.items():
        for place, line in enumerate(sorted(range(len(lines)), key=keys.__getitem__)):
            places[line][name] = place
    return places


def ranks_markdown(rows: Sequence[Row], units: Mapping[str, str], wanted: int | None = None) -> str:
    """The page as Markdown: for each group a heading, the answer at one length, and a table."""
    at = right_at_lengths(rows)
    first = first_of(at, wanted)
    parts: list[str] = []
    for group in groups_of(rows):
        shown = _shown(group, at, first, units)
        parts += [f"## {markdown_text(shown.heading)}", "", markdown_text(shown.origin) + ".", ""]
        if shown.answers:
            parts += [markdown_text(shown.answers[at.index(first)]), ""]
        parts += [*_table(shown, first), ""]
    return "\n".join(parts)


def _table(shown: _Shown, first: int) -> list[str]:
    lines, view = [line for line, _ in shown.lines], shown.view
    columns: dict[str, list[str]] = {
        "task" if shown.group.is_of_tasks else "model": [line.name for line in lines]
    }
    for name, texts in (
        ("vendor", [line.vendor for line in lines]),
        ("size, B", [line.parameters for line in lines]),
    ):
        if any(texts):
            columns[name] = [text or "not known" for text in texts]
    if shown.is_reported:
        columns["published"] = [line.length for line in lines]
    else:
        columns[f"sees to ({view['threshold']})"] = [
            f"{line.length} ({', '.join(filter(None, (line.interval, line.note)))})"
            for line in lines
        ]
    for number, length in enumerate(view["at"]):
        found = [line.right_at[number] for line in lines]
        columns[f"right at {length:,}, %"] = ["–" if one is None else one.text for one in found]
        if length == first:
            columns[f"P(≥ {view['threshold']} at {length:,})"] = [
                "–" if one is None else one.reaches_text for one in found
            ]
    if view["tested"]:
        columns[FURTHEST] = [line.furthest for line in lines]
        tested = [line.tested for line in lines]
        for place, head in enumerate(TESTED_HEADS):
            columns[head] = ["–" if one is None else str(one[place]) for one in tested]
    if view["costs"]:
        head = f"{MANY_REPLIES:,} replies"
        head += f" at {view['cost_at']}" if view["cost_at"] else ""
        columns[head] = [line.cost or "not known" for line in lines]
    if view["dated"]:
        columns["replies of"] = [line.collected for line in lines]
    cells = [[markdown_text(cell) for cell in column] for column in columns.values()]
    return [
        f"| {' | '.join(columns)} |",
        f"|{' --- |' * len(columns)}",
        *(f"| {' | '.join(row)} |" for row in zip(*cells, strict=True)),
    ]
