"""Sentences about lengths that replies leave open, and the places of such models beside others."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pytest

from eyechart.harness.analysis.findings.not_known import where_not_known
from eyechart.harness.analysis.length.curve import curve
from eyechart.harness.analysis.length.effective_length import EffectiveLength, effective_length
from eyechart.harness.analysis.ranking.leaderboard import merge, run_rows
from eyechart.harness.analysis.ranking.standing import standing
from eyechart.harness.analysis.samples.judged_run import read_run
from eyechart.harness.journal.manifest import MANIFEST

if TYPE_CHECKING:
    from tests.conftest import Lab

ROWS = 60
SHORTEST = 24


def spread(accuracy: Callable[[int], float]) -> list[bool]:
    """Verdicts on rows of 24 to 83 symbols, a row each: the right ones spread evenly."""
    sums = np.cumsum([accuracy(place) for place in range(ROWS)]) + 1e-9
    return [bool(one) for one in np.diff(np.floor(sums), prepend=0) > 0]


def estimate(accuracy: Callable[[int], float]) -> EffectiveLength:
    """The effective length of such rows of somebody's data."""
    lengths = np.arange(SHORTEST, SHORTEST + ROWS)
    return effective_length(curve(lengths, np.zeros(ROWS, int), spread(accuracy), own_rows=True))


def rises(place: int) -> float:
    return 0.3 if place < ROWS / 2 else 0.9


def rises_through_it(place: int) -> float:
    """To 100 %, and 83 % in the mean."""
    return 0.66 if place < ROWS / 2 else 1.0


@pytest.mark.parametrize(
    ("accuracy", "why"),
    [
        (lambda _: 0.85, "the accuracy is near the threshold at all lengths"),
        (lambda _: 0.8, "the accuracy is near the threshold at all lengths"),
        (lambda _: 0.74, "the accuracy over all lengths is 73 %"),
        (rises, "the accuracy rises with the length"),
        (rises_through_it, "the accuracy rises with the length"),
    ],
)
def test_why_a_length_is_open_is_true(accuracy: Callable[[int], float], why: str) -> None:
    """Near the threshold is an accuracy whose interval over all replies holds the threshold; one
    that rises is said to rise, whatever its mean, and is no dip.
    """
    found = estimate(accuracy)
    assert found.length is None
    sentence = where_not_known({"": found}, "symbols", 1)
    assert sentence.startswith(f": {why}, and the 95 % interval is < 24")


@pytest.mark.parametrize("share", [0.36, 0.6, 0.67])
def test_below_the_threshold_everywhere_is_less_than_the_shortest(share: float) -> None:
    assert estimate(lambda _: share).length_text == "< 24"


@pytest.mark.parametrize("best", [lambda _: 0.67, lambda _: 0.74, rises])
def test_no_model_of_lower_accuracy_stands_above_one_whose_length_is_open(
    lab: Lab, best: Callable[[int], float]
) -> None:
    """In the leaderboard and its file, and in the standing."""
    items = [
        {"variables": {"q": str(place)}, "target": 7, "length": SHORTEST + place}
        for place in range(ROWS)
    ]
    task = lab.folder / "scattered.yaml"
    task.write_text(
        "version: 1\ntitle: scattered\nitems: scattered.jsonl\nprompt: '{{ q }}'\n"
        "answer: {type: integer, phrase_asked: false}\n"
    )
    (lab.folder / "scattered.jsonl").write_text(_lines(items))
    models: dict[str, Callable[[int], float]] = {
        "third": lambda _: 0.36,
        "more": lambda _: 0.42,
        "best": best,
    }
    for name, accuracy in models.items():
        replies = lab.folder / f"{name}.log.jsonl"
        replies.write_text(
            _lines(
                [
                    {"item": place, "target": 7, "reply": "7" if is_right else "8"}
                    for place, is_right in enumerate(spread(accuracy))
                ]
            )
        )
        lab.bench("import", replies, "--task", task, "--model", name, "--out", lab.out)
    folders = [path.parent for path in lab.out.rglob(MANIFEST)]
    runs = [(one.manifest.model, one) for one in map(read_run, folders)]
    assert [place.name for place in standing(runs).places] == ["best", "more", "third"]
    rows = [row for _, run in runs for row in run_rows(run)[0]]
    assert [row["model"] for row in merge(rows).rows] == ["best", "more", "third"]


def _lines(rows: Sequence[object]) -> str:
    return "".join(f"{json.dumps(row)}\n" for row in rows)
