"""What the first screen of a page of ranks chooses from: each model at each length, at once and in
pieces.

The page's script shows these texts and compares these numbers; it computes none of its own.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from eyechart.harness.analysis.findings.at_lengths import longer_replies
from eyechart.harness.analysis.length.at_length import (
    LIKELY,
    MOST_PIECES,
    VERDICTS,
    AtLength,
    pieces_of,
    required_of,
)
from eyechart.harness.analysis.length.curve import threshold_text
from eyechart.harness.analysis.ranking.cost_at import CostAt
from eyechart.harness.analysis.tables.cells import markdown_text
from eyechart.harness.analysis.tables.paper_text import reached_text
from eyechart.harness.report.page.assets import visible
from eyechart.harness.report.ranking.rank_table import (
    LengthEstimate,
    RankLine,
    RankTable,
)
from eyechart.harness.spec.columns import MANY_REPLIES
from eyechart.harness.spec.dollars import as_shown
from eyechart.harness.spec.unit import counted

MOST_LISTED = 5
"""Models in the answer."""
_PASSES, _OPEN = VERDICTS[:2]
PIECES = (
    "A row in pieces is right where all of its pieces are. The misses of the pieces are added up, "
    "which is the worst case; the price is that of all pieces. Below the rows that were asked, one "
    "row at once is judged by the shortest of them, since accuracy falls with the length. Pieces "
    "so short are not judged: each needs so high an accuracy that the assumption about short rows "
    "would decide, and not the replies."
)


class Way(NamedTuple):
    """A row of some length, asked in so many pieces of the same length."""

    length: int
    pieces: int

    @property
    def piece(self) -> int:
        """Symbols of a piece."""
        return self.length // self.pieces

    @property
    def text(self) -> str:
        """`4 × 50`; `at once` of one piece."""
        return f"{self.pieces} × {self.piece:,}" if self.pieces > 1 else "at once"


class Chance(NamedTuple):
    """A model, asked in one way."""

    line: RankLine
    found: AtLength | None
    """How surely it is right at least so often as the threshold says."""
    cost: CostAt | None
    """Dollars of the replies to all pieces of one row."""

    @property
    def verdict(self) -> str:
        """See `AtLength.verdict`."""
        return "" if self.found is None else self.found.verdict

    @property
    def order(self) -> tuple[int, float, float]:
        """Sort key of an answer: what passes by its price, what is open by how sure it is."""
        places = {_PASSES: 0, _OPEN: 1}
        dollars = math.inf if self.cost is None else self.cost.dollars
        sure = 0.0 if self.found is None else self.found.order[0]
        passes = self.verdict == _PASSES
        return places.get(self.verdict, 2), dollars if passes else sure, sure


def ways_of(table: RankTable) -> list[Way]:
    """Every length at once, and in those pieces among the lengths that a model was asked."""
    known = {way for line in table.lines for way in line.in_pieces}
    pieces = (Way(*one) for one in pieces_of(table.at) if one in known)
    return [*(Way(length, 1) for length in table.at), *pieces]


def unanswered(table: RankTable) -> list[tuple[Way, str]]:
    """The other pieces among these lengths, and why nothing is known of them."""
    known = ways_of(table)
    ways = (Way(*one) for one in pieces_of(table.at))
    return [(way, _why(table, way)) for way in ways if way not in known]


def _needs(table: RankTable, way: Way) -> str:
    """The accuracy that a piece needs, in percent."""
    return f"{100 * required_of(table.judging.threshold, way.pieces):.4g} %"


def _why(table: RankTable, way: Way) -> str:
    """Below the rows asked, so high an accuracy would be the curve's guess, see `at_length`."""
    right = [found for line in table.lines if (found := line.right_at.get(way.piece)) is not None]
    if all(found.bound == ">" for found in right):
        needs = _needs(table, way)
        return f"no row as short as {way.piece:,} was asked, and each piece needs {needs}"
    return "no probability is known"


def chances(table: RankTable, way: Way) -> list[Chance]:
    """Each model of a table, asked in one way: those that surely pass first, the cheapest first."""
    found = [
        Chance(
            line,
            line.right_at.get(way.length) if way.pieces == 1 else line.in_pieces.get(way),
            None
            if (cost := line.costs.get(way.piece)) is None
            else CostAt(way.pieces * cost.dollars, cost.sign),
        )
        for line in table.lines
    ]
    return sorted(found, key=lambda one: one.order)


def listed(found: Sequence[Chance]) -> list[Chance]:
    """The answer: what surely passes."""
    return [one for one in found if one.verdict == _PASSES]


def opened(found: Sequence[Chance]) -> list[Chance]:
    """What may pass or not."""
    return [one for one in found if one.verdict == _OPEN]


def passing_text(threshold: float, rows: str) -> str:
    """What surely passing is."""
    return (
        f"A model passes if it is right in {threshold_text(threshold)} of {rows} or more; surely: "
        f"with a probability P of {LIKELY} or more"
    )


def _price_head() -> str:
    return f"price of {MANY_REPLIES:,}"


def _sure_head(threshold: float) -> str:
    return f"P(≥ {threshold_text(threshold)})"


def answer_markdown(table: RankTable, first: int, rows: str, beside: str) -> list[str]:
    """The answer at one length, and a table of all ways to ask, as lines of Markdown. `rows` is
    what rows are called, and `beside` a note on names and prices.
    """
    found = chances(table, Way(first, 1))
    passing = listed(found)
    of_length = counted(f"{first:,}", table.unit, is_one=first == 1)

    def name(one: Chance) -> str:
        return markdown_text(one.line.name)

    def price(one: Chance) -> str:
        return "–" if one.cost is None else markdown_text(one.cost.text())

    def cells(way: Way) -> str:
        at = chances(table, way)
        best, pieces = listed(at)[:1], way.text
        cheapest = f"{name(best[0])}, {price(best[0])}" if best else "–"
        return f"| {way.length:,} | {pieces} | {len(listed(at))} | {len(opened(at))} | {cheapest} |"

    count = f"{len(passing) or 'None'} of {len(found)} models"
    said = (
        f"With {of_length} at once, {count} surely {'pass' if len(passing) > 1 else 'passes'}, and "
        f"for {len(opened(found))} it is open. {passing_text(table.judging.threshold, rows)}."
    )
    return [
        said,
        "",
        f"| the cheapest | {_price_head()} | {_sure_head(table.judging.threshold)} |",
        "| --- | --- | --- |",
        *(
            f"| {name(one)} | {price(one)} | {markdown_text(one.found.reaches_text)} |"
            for one in passing[:MOST_LISTED]
            if one.found is not None
        ),
        "",
        *([beside, ""] if beside else []),
        f"| length | asked | surely pass | open | the cheapest, {_price_head()} |",
        "| --- | --- | --- | --- | --- |",
        *(cells(way) for way in sorted(ways_of(table))),
        "",
        " ".join([PIECES, *_not_asked(unanswered(table))]),
        "",
    ]


def _not_asked(ways: Iterable[tuple[Way, str]]) -> Iterator[str]:
    """A sentence for each reason: `5 × 20 is not known: no row as short as 20 was asked.`."""
    by_reason: dict[str, list[str]] = {}
    for way, why in ways:
        by_reason.setdefault(why, []).append(way.text)
    for why, texts in by_reason.items():
        yield f"{' and '.join(texts)} {'is' if len(texts) == 1 else 'are'} not known: {why}."


def is_chooser(table: RankTable) -> bool:
    """Whether a table answers which model: several models of one task, at a named length."""
    return bool(table.at) and len(table.lines) > 1 and not table.is_of_tasks


def data_of(
    tables: Sequence[tuple[str, RankTable]],
    title: Sequence[str],
    rows: str,
) -> str:
    """The data of the script, as JSON in which no text can end the HTML element. `tables` are named
    by their task, `title` has the texts around the length, and `rows` is what rows are called here.
    """
    content = {
        "title": [*map(visible, title)],
        "most": MOST_LISTED,
        "pieces": MOST_PIECES,
        "rows": rows,
        "many": f"{MANY_REPLIES:,} {rows}",
        "groups": [
            {"task": task, "unit": table.unit, **_group(table, rows)} for task, table in tables
        ],
    }
    text = json.dumps(content, separators=(",", ":"), allow_nan=False, ensure_ascii=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _group(table: RankTable, rows: str) -> dict[str, Any]:
    ways = ways_of(table)
    of_ways = [chances(table, way) for way in ways]
    places = {id(line): place for place, line in enumerate(table.lines)}
    models = [_model(line, rows) for line in table.lines]
    heads = {column.name: column.head for column in table.columns if column.at is None}
    return {
        "at": list(table.at),
        "means": passing_text(table.judging.threshold, rows),
        "heads": {
            "price": _price_head(),
            "sure": _sure_head(table.judging.threshold),
            **{name: heads[name] for name in ("length", "near", "apart") if name in heads},
        },
        "unanswered": [
            {"length": way.length, "pieces": way.pieces, "text": way.text, "why": why}
            for way, why in unanswered(table)
        ],
        "ways": [
            {
                "length": way.length,
                "pieces": way.pieces,
                "text": way.text,
                "rows": counted(f"{way.piece:,}", table.unit, is_one=way.piece == 1),
                "needs": _needs(table, way),
                "order": [places[id(one.line)] for one in found],
                "models": [_chance(one, way) for one in sorted(found, key=_place(places))],
            }
            for way, found in zip(ways, of_ways, strict=True)
        ],
        "models": models,
        "ticks": table.scale.ticks,
    }


def _place(places: Mapping[int, int]) -> Any:
    return lambda one: places[id(one.line)]


def _chance(one: Chance, way: Way) -> list[str | float | None]:
    """Verdict, probability, accuracy of a piece, dollars of many rows as shown, and their text."""
    right = one.line.right_at.get(way.piece)
    return [
        one.verdict,
        "–" if one.found is None else one.found.reaches_text,
        "–" if right is None else right.text,
        None if one.cost is None else as_shown(MANY_REPLIES * one.cost.dollars),
        "–" if one.cost is None else one.cost.text(),
    ]


def _model(line: RankLine, rows: str) -> dict[str, Any]:
    texts = {
        "name": line.name,
        "vendor": line.vendor,
        "known": line.known,
        "open": line.open_weights,
        "length": line.length_text,
        "dear": "".join(map(str, longer_replies({line.name: line.costs}, rows))),
    }
    shown = {name: visible(text) for name, text in texts.items()}
    reached = {name: _reached(one) for name, one in (("near", line.near), ("apart", line.apart))}
    return {**shown, **reached, "span": None if line.length is None else [*_span(line.length)]}


def _reached(one: LengthEstimate | None) -> str:
    return "–" if one is None else reached_text(*one)


def _span(one: LengthEstimate) -> Iterator[float | str | None]:
    """The lower end, the length and the upper end; `None` where it is open. Last the sign."""
    low, high = one.span
    yield None if low.sign == "<" else low.length
    yield None if one.length is None else one.length.length
    yield None if high.sign == ">" else high.length
    yield "" if one.length is None or one.length.sign == "=" else one.length.sign
