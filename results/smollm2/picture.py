"""The picture: what SmolLM2 says, and what it chooses, by the place of the key that is asked.

`python -m results.smollm2.picture` writes it from `lengths.csv`.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from pathlib import Path

from eyechart.harness.analysis.length.interval import wilson
from eyechart.harness.spec import Condition
from eyechart.harness.spec.columns import ACCURACY_AT

FOLDER = Path(__file__).parent
FILE = FOLDER / "known_and_said.svg"
TASK = "memory/key_values"
ROWS = 20
"""Rows at each length under each condition."""
_PLACES = {"start": "the first key", "middle": "a key in the middle", "end": "the last key"}
_READINGS = {
    "hf/smollm2": ("what it says", "#0b6bcb"),
    "hf/smollm2@likelihood": ("what it chooses", "#b34700"),
}
_WIDTH, _HEIGHT, _PANEL, _LEFT, _TOP, _HIGH = 760, 344, 220, 52, 96, 160
_GAP = 20
_TEXT = 'font-family="system-ui, sans-serif"'


def accuracies() -> dict[tuple[str, str], dict[int, float]]:
    """Place of the key and model -> number of keys -> accuracy."""
    found = {}
    with (FOLDER / "lengths.csv").open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["task"] == TASK:
                place = Condition.read(row["condition"])["position"]
                found[place, row["model"]] = {
                    int(name.removeprefix(ACCURACY_AT)): float(value)
                    for name, value in row.items()
                    if name.startswith(ACCURACY_AT) and value
                }
    return found


def picture() -> str:
    """The accuracies of both readings with 95 % intervals, as SVG."""
    title = "A model that knows and does not say"
    said = (
        "SmolLM2-135M-Instruct: the value of one of n keys, in its reply and as the most probable "
        "of up to 11 options"
    )
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
            f'width="{_WIDTH}" height="{_HEIGHT}" role="img" {_TEXT}>'
        ),
        f"<title>{title}</title>",
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#ffffff"/>',
        f'<text x="16" y="26" font-size="17" font-weight="600" fill="#1a1a1a">{title}</text>',
        f'<text x="16" y="46" font-size="12" fill="#555555">{said}</text>',
    ]
    for number, (name, colour) in enumerate(_READINGS.values()):
        x = 16 + 130 * number
        parts.append(f'<circle cx="{x + 5}" cy="64" r="4.5" fill="{colour}"/>')
        parts.append(f'<text x="{x + 16}" y="68" font-size="12" fill="#1a1a1a">{name}</text>')
    found = accuracies()
    lengths = sorted(next(iter(found.values())))
    for number, (place, name) in enumerate(_PLACES.items()):
        parts += _panel(number, name, lengths)
        for lane, (model, (_, colour)) in enumerate(_READINGS.items()):
            parts += _curve(number, found[place, model], lengths, colour, 5 * lane - 2.5)
    notes = (
        (
            f"{ROWS} rows at each number of keys, 95 % intervals. Replies of at most 48 tokens; "
            "those cut off are wrong here."
        ),
        "Right by chance: 50 % of choices at 2 keys, 9 % at 64.",
    )
    for y, note in zip((_HEIGHT - 28, _HEIGHT - 12), notes, strict=True):
        parts.append(f'<text x="16" y="{y}" font-size="11" fill="#5f5f5f">{note}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _panel(number: int, name: str, lengths: list[int]) -> Iterator[str]:
    left, bottom = _LEFT + number * (_PANEL + _GAP), _TOP + _HIGH
    yield f'<text x="{left}" y="{_TOP - 8}" font-size="12" fill="#1a1a1a">{name}</text>'
    for share in (0, 0.5, 1):
        y = _down(share)
        yield f'<path d="M{left} {y}H{left + _PANEL}" stroke="#e4e4e4"/>'
        if not number:
            yield (
                f'<text x="{left - 8}" y="{y + 4}" font-size="11" fill="#555555" '
                f'text-anchor="end">{100 * share:.0f} %</text>'
            )
    for length in lengths:
        yield (
            f'<text x="{_across(number, length, lengths)}" y="{bottom + 18}" font-size="11" '
            f'fill="#555555" text-anchor="middle">{length}</text>'
        )
    yield (
        f'<text x="{left + _PANEL / 2}" y="{bottom + 36}" font-size="11" fill="#555555" '
        'text-anchor="middle">keys</text>'
    )


def _curve(
    number: int, shares: dict[int, float], lengths: list[int], colour: str, aside: float
) -> Iterator[str]:
    places = {
        length: round(_across(number, length, lengths) + aside, 1) for length in sorted(shares)
    }
    line = "L".join(f"{x} {_down(shares[length])}" for length, x in places.items())
    yield f'<path d="M{line}" fill="none" stroke="{colour}" stroke-width="1.5"/>'
    for length, x in places.items():
        low, high = wilson(round(ROWS * shares[length]), ROWS) or (0.0, 1.0)
        yield (
            f'<path d="M{x} {_down(low)}V{_down(high)}" stroke="{colour}" stroke-opacity="0.45"/>'
        )
        yield f'<circle cx="{x}" cy="{_down(shares[length])}" r="3.5" fill="{colour}"/>'


def _across(number: int, length: int, lengths: list[int]) -> float:
    """Where a length stands in a panel, in pixels from the left of the picture."""
    share = math.log(length / lengths[0]) / math.log(lengths[-1] / lengths[0])
    left = _LEFT + number * (_PANEL + _GAP)
    return round(left + 14 + share * (_PANEL - 28), 1)


def _down(share: float) -> float:
    return round(_TOP + (1 - share) * _HIGH, 1)


if __name__ == "__main__":
    FILE.write_text(picture(), encoding="utf-8")
