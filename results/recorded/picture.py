"""The picture: three lengths of the best and the cheapest model of each vendor."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from eyechart.harness.analysis.length.limit import RANKED
from eyechart.harness.spec.columns import COST_AT, RECORDED

MODELS = Path(__file__).parents[1] / "models.csv"
"""Where the prices of replies are, by `python -m results.publish`."""
RULE = (
    "Of each vendor the model that counts furthest exactly, and the one whose replies cost least."
)
LENGTHS = {
    "effective_length": "exactly (circle)",
    "near_length": "within 5 % (diamond)",
    "apart_length": "well enough to tell apart rows that differ by a fifth (square)",
}
"""Column of a length -> to it a model counts so."""
_COST, _BOUND = (name.format(50) for name in COST_AT)
_TICKS = (10, 20, 50, 100, 200, 500, 1000, 2000)
_WIDTH, _LEFT, _RIGHT, _ROW, _TOP, _APART = 760, 230, 140, 27, 88, 7
_LEAST, _MOST = 10, 2500
_TEXT = 'font-family="system-ui, sans-serif"'


def costs() -> dict[str, float]:
    """Model -> dollars of a reply to a row of 50 items, where it is known that it costs no more."""
    with MODELS.open(newline="", encoding="utf-8") as file:
        return {
            row["model"]: float(row[_COST])
            for row in csv.DictReader(file)
            if row["kind"] == RECORDED and row[_COST] and row[_BOUND] != ">"
        }


def shown_models(
    models: Sequence[Mapping[str, Any]], cost: Mapping[str, float]
) -> list[Mapping[str, Any]]:
    """The rows that `RULE` names, in the order of `models`, which is by effective length."""
    known = [row for row in models if row["limited_by"] in RANKED and row["effective_length"] != ""]
    by_vendor: dict[str, list[Mapping[str, Any]]] = {}
    for row in known:
        by_vendor.setdefault(row["family"], []).append(row)
    chosen = set()
    for of in by_vendor.values():
        chosen.add(of[0]["model"])
        priced = [row["model"] for row in of if cost.get(row["model"])]
        chosen |= {min(priced, key=cost.__getitem__)} if priced else set()
    return [row for row in known if row["model"] in chosen]


def picture(models: Sequence[Mapping[str, Any]], cost: Mapping[str, float]) -> str:
    """The three lengths of the models of `RULE`, with their intervals, as SVG."""
    rows = shown_models(models, cost)
    height = _TOP + _ROW * len(rows) + 92
    title = "Where models stop counting exactly, they do not start guessing"
    exact, near, apart = LENGTHS.values()
    said = (
        f"To how many items of a row of a, a, a, … a model counts {exact}, {near},",
        f"and {apart}; with 95 % intervals",
    )
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" '
            f'width="{_WIDTH}" height="{height}" role="img" {_TEXT}>'
        ),
        f"<title>{title}</title>",
        f'<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="16" y="26" font-size="17" font-weight="600" fill="#1a1a1a">{title}</text>',
        *(
            f'<text x="16" y="{46 + 16 * place}" font-size="12" fill="#555555">{text}</text>'
            for place, text in enumerate(said)
        ),
    ]
    bottom = _TOP + _ROW * len(rows)
    for length in _TICKS:
        x = _across(length)
        parts.append(f'<path d="M{x} {_TOP - 10}V{bottom}" stroke="#e4e4e4"/>')
        parts.append(
            f'<text x="{x}" y="{bottom + 16}" font-size="11" fill="#555555" '
            f'text-anchor="middle">{length:,}</text>'
        )
    for place, row in enumerate(rows):
        parts += _drawn(row, _TOP + _ROW * place + _ROW / 2 - 4)
    notes = (
        f"{RULE} Blue: closed weights. Orange: open weights.",
        (
            "An arrow: beyond the rows that were asked, which end where the model failed. A bar to "
            "the edge: no limit is known there."
        ),
        "In such rows a longer prompt has the larger count, so order may be told by either.",
        (
            "Replies recorded by Dai &amp; Fan in April 2026 (arXiv 2605.02028, MIT licence), "
            "judged by Eyechart."
        ),
    )
    parts += [
        f'<text x="16" y="{height - 54 + 15 * place}" font-size="10" fill="#767676">{note}</text>'
        for place, note in enumerate(notes)
    ]
    return "\n".join([*parts, "</svg>", ""])


def _across(length: float) -> float:
    """Where a length stands, in pixels from the left."""
    share = math.log(length / _LEAST) / math.log(_MOST / _LEAST)
    return round(_LEFT + share * (_WIDTH - _LEFT - _RIGHT), 1)


def length_text(row: Mapping[str, Any], name: str) -> str:
    """`> 1,141`; a dash where it is not known."""
    if row[name] == "":
        return "–"
    return f"{row[f'{name}_bound']} {float(row[name]):,.0f}".strip()


def _drawn(row: Mapping[str, Any], y: float) -> Iterator[str]:
    colour = "#0b6bcb" if row["set"] == "closed" else "#b34700"
    name = row["model"].rpartition("/")[2]
    texts = " · ".join(length_text(row, of) for of in LENGTHS)
    for x, text in ((_LEFT - 12, name), (_WIDTH - 14, texts.replace("<", "&lt;"))):
        yield (
            f'<text x="{x}" y="{y + 4}" font-size="12" fill="#1a1a1a" '
            f'text-anchor="end">{text.replace("> ", "&gt; ")}</text>'
        )
    for place, of in enumerate(LENGTHS):
        yield from _length(row, of, y + _APART * (place - 1), colour)


def _length(row: Mapping[str, Any], name: str, y: float, colour: str) -> Iterator[str]:
    low = float(row[f"{name}_ci_low"] or _LEAST)
    high = float(row[f"{name}_ci_high"] or _MOST)
    yield (
        f'<path d="M{_across(low)} {y}H{_across(high)}" stroke="{colour}" stroke-width="2.5" '
        'stroke-opacity="0.35"/>'
    )
    if row[name] == "":
        return
    x, sign = _across(float(row[name])), row[f"{name}_bound"]
    if sign:
        tip = -8 if sign == "<" else 8
        yield f'<path d="M{x} {y - 4}L{x + tip} {y}L{x} {y + 4}Z" fill="{colour}"/>'
    elif name == "effective_length":
        yield f'<circle cx="{x}" cy="{y}" r="3.5" fill="{colour}"/>'
    elif name == "near_length":
        yield f'<path d="M{x - 4} {y}l4 -4l4 4l-4 4Z" fill="#ffffff" stroke="{colour}"/>'
    else:
        yield f'<path d="M{x - 3} {y - 3}h6v6h-6Z" fill="#ffffff" stroke="{colour}"/>'
