"""Figures that others reported, as rows of a leaderboard: accuracies and capacities of models.

Errors without an accuracy (Barbero et al.'s counting), bounds and sweeps have no such row.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path

from eyechart.harness.analysis.ranking.leaderboard_file import Row
from eyechart.harness.spec.columns import ACCURACY_AT, LEADERBOARD, REPORTED

FOLDER = Path(__file__).parent / "reported"
DAI = "Dai & Fan 2026, arXiv 2605.02028"
_ONES = 314
_SEPARATORS = {
    "none": "none",
    "comma": "comma",
    "groups of five: comma inside, semicolon between": "groups_of_five",
}
_POSITIONS = {
    "first token": "position=first,hint=off,layout=plain",
    "last token": "position=last,hint=off,layout=plain",
    "last token, hint": "position=last,hint=on,layout=plain",
    "last token, interleaved": "position=last,hint=off,layout=interleaved",
}


def reported_rows() -> list[Row]:
    """A row for each model, task and condition with an accuracy or a capacity."""
    return [*_capacities(), *_letters(), *_copying(), *_ones()]


def _file(name: str) -> list[dict[str, str]]:
    with (FOLDER / f"{name}.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _row(task: str, condition: str, model: str, source: str, more: Mapping[str, str]) -> Row:
    known = {
        "task": task,
        "condition": condition,
        "model": model,
        "kind": REPORTED,
        "source": source,
    }
    return {**dict.fromkeys(LEADERBOARD, ""), **known, **more}


def _capacities() -> Iterator[Row]:
    for row in _file("dai2026_counting_capacity"):
        more = {
            "vendor": row["family"],
            "parameters_billion": row["parameters_billion"],
            "default": "yes",
            "capacity": f"{float(row['capacity']):g}",
            "collected": "2026-04",
        }
        yield _row("capacity/items", "item=a,delimiter=comma", row["model"], DAI, more)


def _letters() -> Iterator[Row]:
    """Of strings of 10 to 20, 20 to 30 and 30 to 40 letters; each range stands at its middle."""
    of: dict[tuple[str, str], Row] = {}
    for row in _file("zhang2024_letter_counting"):
        condition = f"format={row['format']},letter={row['letter']},strategy={row['strategy']}"
        low, high = map(int, row["length_range"].split("-"))
        made = of.setdefault(
            (row["model"], condition),
            _row(
                "separators/letters",
                condition,
                row["model"],
                "Zhang et al. 2024, arXiv 2410.19730",
                {"collected": "2024", "settings": "lengths are the middles of ranges of 10"},
            ),
        )
        made["default"] = "yes" if condition == "format=pure,letter=a,strategy=direct" else ""
        share = float(row["accuracy_percent"]) / 100
        made[f"{ACCURACY_AT}{(low + high) // 2}"] = f"{share:.6g}"
    yield from of.values()


def _copying() -> Iterator[Row]:
    """One try at each length, which was right or not."""
    of: dict[tuple[str, str], Row] = {}
    for row in _file("barbero2024_copying"):
        condition = _POSITIONS[row["condition"]]
        made = of.setdefault(
            (row["model"], condition),
            _row(
                "copying/first_last",
                condition,
                row["model"],
                "Barbero et al. 2024, arXiv 2406.04267",
                {"collected": "2024", "vendor": "Google", "settings": "one try at each length"},
            ),
        )
        made["default"] = "yes" if row["condition"] == "last token" else ""
        made[f"{ACCURACY_AT}{row['length']}"] = row["correct"]
    yield from of.values()


def _ones() -> Iterator[Row]:
    for row in _file("mtandhj2025_314_ones"):
        if row["answer"]:
            separator = _SEPARATORS[row["separator"]]
            yield _row(
                "separators/ones_314",
                f"separator={separator}",
                row["model"],
                "mtandhj 2025, the notes this project started from",
                {
                    "collected": "2025",
                    "default": "yes" if separator == "none" else "",
                    "n": "1",
                    "settings": f"the answer was {row['answer']}",
                    f"{ACCURACY_AT}{_ONES}": str(int(row["answer"] == str(_ONES))),
                },
            )
