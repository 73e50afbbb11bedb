"""The picture: where models that people know stop counting."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

SHOWN = {
    "claude-opus-4-6": "Claude Opus 4.6",
    "claude-opus-4-20250514": "Claude Opus 4",
    "claude-sonnet-4-5-20250929": "Claude Sonnet 4.5",
    "claude-sonnet-4-6": "Claude Sonnet 4.6",
    "claude-haiku-4-5-20251001": "Claude Haiku 4.5",
    "gemini-3.1-pro-preview": "Gemini 3.1 Pro",
    "gemini-3-flash-preview": "Gemini 3 Flash",
    "gemini-2.5-pro": "Gemini 2.5 Pro",
    "gemini-2.5-flash": "Gemini 2.5 Flash",
    "gpt-5.4": "GPT-5.4",
    "gpt-5.2": "GPT-5.2",
    "gpt-5": "GPT-5",
    "gpt-4.1": "GPT-4.1",
    "gpt-4o": "GPT-4o",
    "gpt-4o-mini": "GPT-4o mini",
    "o3": "o3",
    "deepseek/deepseek-r1-0528": "DeepSeek R1 (0528)",
    "deepseek/deepseek-v3.2": "DeepSeek V3.2",
    "meta-llama/llama-4-maverick": "Llama 4 Maverick",
    "meta-llama/llama-3.3-70b-instruct": "Llama 3.3 70B",
    "qwen/qwen3.5-397b-a17b": "Qwen3.5 397B",
    "qwen/qwen3-32b": "Qwen3 32B",
    "moonshotai/kimi-k2.5": "Kimi K2.5",
    "z-ai/glm-5.1": "GLM 5.1",
    "google/gemma-3-27b-it": "Gemma 3 27B",
    "mistralai/mixtral-8x22b-instruct": "Mixtral 8x22B",
}
"""Models of the picture, with the names that people know."""
_WIDTH, _LEFT, _RIGHT, _ROW, _TOP = 760, 170, 60, 19, 74
_LEAST, _MOST = 16, 1024
_TEXT = 'font-family="system-ui, sans-serif"'


def picture(models: Sequence[Mapping[str, Any]]) -> str:
    """The effective lengths of models that people know, with their intervals, as SVG."""
    rows = [row for row in models if row["model"] in SHOWN and row["effective_length"] != ""]
    height = _TOP + _ROW * len(rows) + 62
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
    for length in (16, 32, 64, 128, 256, 512, 1024):
        x = _across(length)
        parts.append(f'<path d="M{x} {_TOP - 10}V{bottom}" stroke="#e4e4e4"/>')
        parts.append(
            f'<text x="{x}" y="{bottom + 16}" font-size="11" fill="#555555" '
            f'text-anchor="middle">{length}</text>'
        )
    for place, row in enumerate(rows):
        parts += _drawn(row, _TOP + _ROW * place + _ROW / 2 - 4)
    colours = "Blue: closed weights. Orange: open weights."
    signs = "An arrow: beyond the rows that were asked. A bar to the edge: no limit is known there."
    source = "Replies recorded by Dai &amp; Fan in April 2026 (arXiv 2605.02028, MIT licence)"
    notes = (f"{colours} {signs}", f"{source}, judged by Eyechart.")
    parts += [
        f'<text x="16" y="{height - 24 + 15 * place}" font-size="10" fill="#767676">{note}</text>'
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
    name = SHOWN[row["model"]]
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
