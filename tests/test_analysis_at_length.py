"""How often a model is right at a length that the user names."""

from __future__ import annotations

import json

import numpy as np
import pytest

import eyechart
from eyechart.harness.analysis.at_length import AtLength, at_length
from eyechart.harness.analysis.effective_length import effective_length
from eyechart.harness.analysis.falling_curve import accuracy_interval
from tests.conftest import Lab
from tests.simulated import logistic, simulated


def test_it_is_read_from_the_fitted_curve() -> None:
    """With an interval around it, and the probability that the effective length goes by."""
    estimate = effective_length(simulated(logistic(60), 100))
    for length, true in ((20, 0.96), (60, 0.5), (300, 0.01)):
        found = at_length(estimate, length)
        assert found.accuracy == pytest.approx(true, abs=0.08)
        assert found.accuracy_ci is not None
        assert found.accuracy_ci[0] <= true <= found.accuracy_ci[1]
        assert found.reaches == pytest.approx(float(estimate.fit.reaches(np.array(float(length)))))


def test_nothing_is_said_beyond_the_lengths_asked() -> None:
    """Neither above nor below them."""
    estimate = effective_length(simulated(logistic(60), 20))
    for length in (4, 501):
        found = at_length(estimate, length)
        assert found == AtLength(length, None, None, None)
        assert (found.text, found.reaches_text) == ("–", "–")


def test_an_interval_reaches_to_its_outer_levels() -> None:
    """The highest level stands for all accuracies up to 1, the lowest for those down to 0."""
    accuracies = 1 / (1 + np.exp([1.0, 0.5, 0.0, -0.5, -1.0]))
    lowest, middle, highest = (
        accuracy_interval(levels, accuracies, (0.025, 0.975)) for levels in np.eye(5)[[0, 2, 4]]
    )
    assert lowest[0] == 0.0
    assert middle == pytest.approx((0.38, 0.62), abs=0.02)
    assert highest[1] == 1.0


@pytest.mark.parametrize(
    ("reaches", "text"), [(0.999, "> 0.99"), (0.5, "0.50"), (0.001, "< 0.01"), (0.99, "0.99")]
)
def test_probabilities_as_texts(reaches: float, text: str) -> None:
    """A probability is never shown as certain."""
    assert AtLength(9, 0.5, (0.4, 0.6), reaches).reaches_text == text


def test_all_doors_have_the_same_numbers(lab: Lab) -> None:
    """Terminal, JSON, leaderboard and Python."""
    folder = lab.wanted().folder
    lab.run(lab.wanted())
    table = eyechart.load_run(folder).right_at(3, 900)
    first = table.iloc[0]
    percent, low, high = (round(100 * first[name]) for name in ("accuracy", "ci_low", "ci_high"))
    text = f"{percent} ({low}–{high})"
    shown = " ".join(lab.bench("score", folder, "--at", "3,900").out.split())
    assert "right at 3, %" in shown
    assert text in shown
    document = json.loads(lab.bench("score", folder, "--at", "3,900", "--json").out)
    rows = document["runs"][0]["right_at"]
    assert [row["at"] for row in rows] == [*table["at"]]
    assert rows[0]["accuracy"] == first["accuracy"]
    assert rows[1]["accuracy"] is None
    board = lab.folder / "board.csv"
    ranked = json.loads(lab.bench("leaderboard", folder, "--at", "3", "-o", board, "--json").out)
    (found,) = ranked["ranks"][0]["models"][0]["right_at"]
    assert found["accuracy"] == pytest.approx(first["accuracy"], abs=1e-6)
    assert text in lab.bench("leaderboard", folder, "--at", "3", "-o", board).out


def test_a_wrong_length_is_one_line(lab: Lab) -> None:
    """With what it must be."""
    done = lab.bench("score", lab.folder, "--at", "20,x")
    assert done.code == 2
    assert "'--at': it must be a whole number" in done.err
