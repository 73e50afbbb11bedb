"""How often a model is right at a length that the user names."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import eyechart
from eyechart.harness.analysis.findings.at_lengths import suited
from eyechart.harness.analysis.length.at_length import AtLength, at_length
from eyechart.harness.analysis.length.effective_length import effective_length
from eyechart.harness.analysis.length.falling_curve import accuracy_interval
from eyechart.harness.analysis.length.interval import Bound, Sign
from eyechart.harness.analysis.ranking.leaderboard_file import read_rows
from eyechart.harness.analysis.samples.judged_run import read_run
from eyechart.harness.report.ranking.readme import BEGIN, END
from eyechart.harness.spec import lines_of
from tests.conftest import Lab
from tests.curves import answers
from tests.simulated import logistic, simulated


def test_it_is_read_from_the_fitted_curve() -> None:
    """With an interval around it, and the probability that the effective length goes by."""
    estimate = effective_length(simulated(logistic(60), 100))
    for length, true in ((20, 0.96), (60, 0.5), (300, 0.01)):
        found = at_length(estimate, length)
        assert found.accuracy == pytest.approx(true, abs=0.08)
        low, high = found.accuracy_ci
        assert low is not None
        assert high is not None
        assert low <= true <= high
        assert found.reaches == pytest.approx(float(estimate.fit.reaches(np.array(float(length)))))


def test_a_row_in_pieces_needs_more_of_each_piece() -> None:
    """One piece is the row itself; the more pieces of one length, the more of them may miss."""
    estimate = effective_length(simulated(logistic(60), 100))
    one, *more = (at_length(estimate, 20, pieces) for pieces in (1, 2, 4, 10))
    assert one == at_length(estimate, 20)
    sure = [found.reaches or 0 for found in (one, *more)]
    assert sure == sorted(sure, reverse=True)
    assert sure[0] > 0.9 > sure[-1]
    assert {found.accuracy for found in more} == {one.accuracy}


def test_a_probability_holds_for_any_accuracy() -> None:
    """At the one required it is that of the curve, and it falls as more is required."""
    fitted = effective_length(simulated(logistic(60), 100)).fit
    for length in (20.0, 43.0, 90.0):
        at_required = fitted.reaches_at(length, fitted.required)
        assert at_required == pytest.approx(float(fitted.reaches(np.array(length))), abs=1e-9)
        found = [fitted.reaches_at(length, accuracy) for accuracy in (0.2, 0.5, 0.85, 0.96, 0.999)]
        assert found == sorted(found, reverse=True)


def test_beyond_the_lengths_asked_there_are_bounds() -> None:
    """Above them those of the longest, below them those of the shortest; none without a falling
    curve.
    """
    estimate = effective_length(simulated(logistic(60), 20))
    longest, above = at_length(estimate, 500), at_length(estimate, 501)
    assert (above.accuracy, above.bound) == (None, "<")
    assert above.accuracy_ci == (None, longest.accuracy_ci[1])
    assert (above.reaches, above.verdict) == (longest.reaches, "no")
    assert above.text == f"< {100 * (longest.accuracy_ci[1] or 0):.0f}"
    assert above.reaches_text == "< 0.01"
    shortest, below = at_length(estimate, 5), at_length(estimate, 4)
    assert (below.accuracy, below.bound) == (None, ">")
    assert below.accuracy_ci == (shortest.accuracy_ci[0], None)
    assert below.text == f"> {100 * (shortest.accuracy_ci[0] or 0):.0f}"
    assert (below.verdict, below.reaches_text) == ("yes", "> 0.99")


def test_without_a_single_threshold_only_what_the_lines_certify_has_a_number() -> None:
    """The fitted curve falls, so it passes over a dip: beyond that length it says nothing."""
    estimate = effective_length(simulated(logistic(60), 20))
    dip = replace(estimate, one_threshold=False, length=Bound("=", 20))
    assert at_length(dip, 20) == at_length(estimate, 20)
    bounds: dict[int, Sign] = {21: "=", 501: "<"}
    for length, bound in bounds.items():
        found = at_length(dip, length)
        assert found == AtLength(length, None, (None, None), None, "", bound)
        assert (found.text, found.reaches_text, found.verdict) == ("–", "–", "")
    blind = replace(dip, length=Bound("<", 5))
    assert at_length(blind, 5).accuracy is None


def test_the_bounds_hold() -> None:
    """Of a model asked to 80, at 200: the true accuracy is above the bound in 2.5 % at most, and a
    model is said to reach or to miss the threshold there only where it does.
    """
    lines = tuple(lines_of((10, 20, 40, 80), "bands"))
    above, wrong = 0, 0
    for seed in range(60):
        curve = logistic(60)
        estimate = effective_length(simulated(curve, 20, seed, lines))
        found = at_length(estimate, 200)
        true = float(curve(np.array([200.0]))[0])
        high = found.accuracy_ci[1]
        above += high is not None and high < true
        wrong += found.verdict == "yes"
    assert above <= 4
    assert wrong == 0


@pytest.mark.parametrize(
    ("reaches", "bound", "verdict", "text"),
    [
        (0.99, "<", "open", "< 0.99"),
        (0.999, "<", "open", "–"),
        (0.02, ">", "open", "> 0.02"),
        (0.96, "=", "yes", "0.96"),
        (0.5, "=", "open", "0.50"),
        (0.04, "<", "no", "< 0.04"),
    ],
)
def test_a_bound_says_only_what_it_can(
    reaches: float, bound: Sign, verdict: str, text: str
) -> None:
    """An upper bound cannot say that a threshold is reached, a lower one not that it is missed."""
    found = AtLength(9, None, (None, 0.9), reaches, "", bound)
    assert (found.verdict, found.reaches_text) == (verdict, text)


def test_one_sentence_says_which_models_can_be_given_a_row() -> None:
    """Named where they are few; what is open and what is not known is said."""
    sure, unsure, unable = (AtLength(200, 0.5, (0.4, 0.6), share) for share in (0.97, 0.5, 0.01))
    named = [("a", sure), ("b", unsure), ("c", unable), ("d", None)]
    assert str(suited(named, 200, 0.85, "items")) == (
        "With 200 items, 1 of 4 models surely passes (right on at least 85 % of rows, with a "
        "probability of 0.95 or more): a. For 1 it is open: b; 1 surely does not pass; for 1 it is "
        "not known."
    )
    many = [(str(number), sure) for number in range(9)]
    assert str(suited(many, 1, 0.85, "items")) == (
        "With 1 item, 9 of 9 models surely pass (right on at least 85 % of rows, with a "
        "probability of 0.95 or more)."
    )


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


@pytest.mark.parametrize(
    ("reaches", "verdict", "text"),
    [
        (0.945, "open", "0.94"),
        (0.949999, "open", "0.94"),
        (0.95, "yes", "0.95"),
        (0.05, "no", "0.05"),
        (0.050001, "open", "0.06"),
        (0.054, "open", "0.06"),
    ],
)
def test_no_probability_is_rounded_to_another_verdict(
    reaches: float, verdict: str, text: str
) -> None:
    """0.946 is open, and does not look as if it were the 0.95 of what surely passes."""
    found = AtLength(9, 0.5, (0.4, 0.6), reaches)
    assert (found.verdict, found.reaches_text) == (verdict, text)


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
    assert (rows[1]["bound"], rows[1]["ci_high"]) == ("<", table.iloc[1]["ci_high"])
    board = lab.folder / "board.csv"
    ranked = json.loads(lab.bench("leaderboard", folder, "--at", "3", "-o", board, "--json").out)
    (found,) = ranked["ranks"][0]["models"][0]["right_at"]
    assert found["accuracy"] == pytest.approx(first["accuracy"], abs=1e-6)
    readme = lab.folder / "README.md"
    readme.write_text(f"{BEGIN}\n{END}\n")
    done = lab.bench("leaderboard", folder, "--at", "3,900", "-o", board, "--readme", readme)
    assert text in done.out
    (row,) = [row for row in read_rows(board) if row["condition"] == first_label(folder)]
    assert float(row["right_at_3"]) == pytest.approx(first["accuracy"], abs=1e-6)
    assert float(row["reaches_at_3"]) == pytest.approx(first["p_reaches_threshold"], abs=1e-6)
    assert (row["right_at_900"], row["reaches_at_900_bound"]) == ("", "<")
    on_page = f'data-at="3" data-head="right at 3, %">{text}</td>'
    assert on_page in board.with_suffix(".html").read_text().replace(" hidden", "")
    assert f"| {text} |" in readme.read_text()
    assert "right at 3, %" in readme.read_text()
    lab.bench("leaderboard", folder, "--at", "3,900", "-o", board, "--ranks-only")
    assert on_page in board.with_suffix(".html").read_text().replace(" hidden", "")


def first_label(folder: Path) -> str:
    """The label of the first condition of a run."""
    return next(iter(read_run(folder).conditions)).label


def test_a_wrong_length_is_one_line(lab: Lab) -> None:
    """With what it must be."""
    done = lab.bench("score", lab.folder, "--at", "20,x")
    assert done.code == 2
    assert "'--at': it must be a whole number" in done.err


def test_one_line_that_leaves_the_length_open_has_no_numbers() -> None:
    """The curve would say 99 % of eight right replies, and mean its assumptions."""
    eight, twenty = (at_length(effective_length(answers([[1]] * n, (4,))), 4) for n in (8, 20))
    assert (eight.accuracy, eight.accuracy_ci, eight.reaches) == (None, (None, None), None)
    assert (twenty.verdict, eight.verdict) == ("yes", "")
