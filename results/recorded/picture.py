"""The picture: where the best and the cheapest model of each vendor stop counting."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from eyechart.harness.analysis.length.limit import RANKED
from eyechart.harness.spec.columns import COST_A_REPLY, RECORDED

MODELS = Path(__file__).parents[1] / "models.csv"
"""Where the prices of replies are, by `python -m results.publish`."""
RULE = "Of each vendor the model that sees furthest, and the one whose replies cost least."
_TICKS = (10, 20, 50, 100, 200, 500)
_WIDTH, _LEFT, _RIGHT, _ROW, _TOP = 760, 240, 60, 19, 74
_LEAST, _MOST = 10, 900
_TEXT = 'font-family="system-ui, sans-serif"'


def costs() -> dict[str, float]:
    """Model -> dollars of a reply, where known."""
    with MODELS.open(newline="", encoding="utf-8") as file:
        return {
            row["model"]: float(row[COST_A_REPLY])
            for row in csv.DictReader(file)
            if row["kind"] == RECORDED and row[COST_A_REPLY]
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
    """The effective lengths of the models of `RULE`, with their intervals, as SVG."""
    rows = shown_models(models, cost)
    height = _TOP + _ROW * len(rows) + 78
    title = "Where models stop counting"
    said = (
        "Items of a row of a, a, a, … that a model counts exactly in 85 % of its replies, with "
        "95 % intervals"
    )
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" '
            f'width="{_WIDTH}" height="{height}" role="img" {_TEXT}>'
        ),
        f"<title>{title}</title>",
        f'<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="16" y="26" font-size="17" font-weight="600" fill="#1a1a1a">{title}</text>',
        f'<text x="16" y="46" font-size="12" fill="#555555">{said}</text>',
    ]
    bottom = _TOP + _ROW * len(rows)
    for length in _TICKS:
        x = _across(length)
        parts.append(f'<path d="M{x} {_TOP - 10}V{bottom}" stroke="#e4e4e4"/>')
        parts.append(
            f'<text x="{x}" y="{bottom + 16}" font-size="11" fill="#555555" '
            f'text-anchor="middle">{length}</text>'
        )
    for place, row in enumerate(rows):
        parts += _drawn(row, _TOP + _ROW * place + _ROW / 2 - 4)
    colours = f"{RULE} Blue: closed weights. Orange: open weights."
    signs = "An arrow: beyond the rows that were asked. A bar to the edge: no limit is known there."
    source = "Replies recorded by Dai &amp; Fan in April 2026 (arXiv 2605.02028, MIT licence)"
    notes = (colours, signs, f"{source}, judged by Eyechart.")
    parts += [
        f'<text x="16" y="{height - 40 + 15 * place}" font-size="10" fill="#767676">{note}</text>'
        for place, note in enumerate(notes)
    ]
    return "\n".join([*parts, "</svg>", ""])


def _across(length: float) -> float:
    """Where a length stands, in pixels from the left."""
    share = math.log(length / _LEAST) / math.log(_MOST / _LEAST)
    return round(_LEFT + share * (_WIDTH - _LEFT - _RIGHT), 1)


def _drawn(row: Mapping[str, Any], y: float) -> Iterator[str]:
    sign, length = row["effective_length_bound"], float(row["effective_length"])
    low = float(row["effective_length_ci_low"] or _LEAST)
    high = float(row["effective_length_ci_high"] or _MOST)
    colour = "#0b6bcb" if row["set"] == "closed" else "#b34700"
    name = row["model"].rpartition("/")[2]
    yield (
        f'<text x="{_LEFT - 12}" y="{y + 4}" font-size="12" fill="#1a1a1a" '
        f'text-anchor="end">{name}</text>'
    )
    yield (
        f'<path d="M{_across(low)} {y}H{_across(high)}" stroke="{colour}" stroke-width="3" '
        'stroke-opacity="0.35"/>'
    )
    x = _across(length)
    if sign:
        tip = -9 if sign == "<" else 9
        yield f'<path d="M{x} {y - 5}L{x + tip} {y}L{x} {y + 5}Z" fill="{colour}"/>'
    else:
        yield f'<circle cx="{x}" cy="{y}" r="4.5" fill="{colour}"/>'
    text = f"{'&lt; ' if sign == '<' else '&gt; ' if sign == '>' else ''}{length:.0f}"
    yield (
        f'<text x="{_WIDTH - 14}" y="{y + 4}" font-size="12" fill="#1a1a1a" '
        f'text-anchor="end">{text}</text>'
    )
