"""A margin as a difference of areas and as a factor of length."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

import eyechart
from eyechart.harness.analysis.comparison.comparison import compare_runs
from eyechart.harness.analysis.comparison.comparison_text import margin_text, verdict_text
from eyechart.harness.analysis.length.curve import Curve, areas_under
from eyechart.harness.analysis.length.margin import as_factor, as_points, is_at_floor
from eyechart.harness.settings.judging import JUDGING, Margin
from eyechart.harness.spec import Line
from eyechart.providers.base import Request
from tests.conftest import Lab
from tests.curves import LENGTHS, shares
from tests.test_analysis_family import right_to, run

WHOLE = shares(*[100] * len(LENGTHS))
"""Right from 5 to 500."""


def test_five_points_are_a_factor_of_the_lines() -> None:
    """Over lines from 5 to 500, and over fewer octaves less."""
    assert as_factor(0.05, [WHOLE]) == pytest.approx(100**0.05)
    assert as_factor(0.05, [shares(100, 100)]) == pytest.approx(2**0.05)
    assert as_points("1.2x", [shares(100, 100, 100)]) == pytest.approx(math.log(1.2, 4))
    assert (as_factor("1.2x", [WHOLE]), as_points(0.05, [WHOLE])) == (1.2, 0.05)


@pytest.mark.parametrize("chance", [0.0, 0.5])
def test_a_model_that_is_right_less_far_has_an_area_less_by_the_points(chance: float) -> None:
    """Also beside guesses, which take a part of the area from both."""
    exact = np.arange(5, 501)
    one = np.ones((1, len(exact)))
    guesses = np.full(len(exact), chance)
    grid = Curve(tuple(map(Line.exact, exact.tolist())), one, one, one, guesses)
    curves = [chance + (1 - chance) / (1 + (exact / end) ** 8) for end in (60, 60 / 1.3)]
    first, second = areas_under(grid.lengths, np.array(curves))
    assert as_points("1.3x", [grid]) == pytest.approx(first - second, abs=1e-3)
    assert as_factor(float(first - second), [grid]) == pytest.approx(1.3, abs=1e-2)


def test_conditions_have_the_mean() -> None:
    """The mean of their areas is what is compared."""
    curves = [shares(100, 100), shares(100, 100, 100)]
    points = as_points("1.2x", curves)
    assert points == pytest.approx(np.mean([as_points("1.2x", [one]) for one in curves]))
    assert as_factor(points, curves) == pytest.approx(1.2)


def test_lines_of_one_length_have_no_factor() -> None:
    """So a factor is no margin there, and nothing is equivalent by it."""
    one = shares(100)
    assert (as_points("1.2x", [one]), as_factor(0.05, [one])) == (math.inf, None)
    assert (is_at_floor([one], "1.2x"), is_at_floor([one], 0.05)) == (True, False)


def test_a_factor_is_held_against_the_lengths(lab: Lab) -> None:
    """By the whole interval of the factor between them, however near the areas are."""
    first, second = (run(lab, name, right_to(8), samples=40) for name in "ab")
    compared = compare_runs(first, second)
    assert compared.length.high == -compared.length.low
    just = 2**compared.length.high
    assert compared.change(f"{just * 1.01:g}x") == "equivalent"
    assert compared.change(f"{just / 1.01:g}x") == "undecided"
    low, high = compared.area.equivalence_ci if compared.area else (-1, 1)
    assert -compared.points("1.2x") < low < high < compared.points("1.2x")
    assert compared.change("1.2x") == "undecided"
    said = verdict_text(compared, "1.2x")
    assert "The factor of length is not shown to lie within the margin of 1.2." in said
    said = verdict_text(compared, "2x")
    assert said.endswith("The factor of length lies within the margin of 2.")


def test_lengths_within_a_factor_excuse_no_other_difference(lab: Lab) -> None:
    """One line that differs significantly by more than the factor is over the lines."""

    def later(request: Request) -> str:
        """Right to 8, and beyond it in 7 of 10 rows, which is below the threshold."""
        script = right_to(16 if int(request.sample_id[-1]) in range(7) else 8)
        return script(request)

    first, second = run(lab, "a", right_to(8), samples=40), run(lab, "b", later, samples=40)
    compared = compare_runs(first, second)
    assert max(map(abs, compared.in_margins("3x"))) < 1
    assert compared.change("3x") == "better"


def test_a_margin_is_said_as_it_is_held(lab: Lab) -> None:
    """A share with the factor that it is over the lines, and a factor alone."""
    compared = compare_runs(run(lab, "a", right_to(8)), run(lab, "b", right_to(8)))
    assert margin_text("2x", compared) == "a factor of 2 in length"
    assert margin_text(0.05, compared).startswith("5 points, a factor of 1.11 in length over")


def test_a_factor_over_one_length_is_said_to_test_nothing(lab: Lab) -> None:
    """With the remedy, by a gate that does not pass."""
    folder = run(lab, "a", right_to(8), lengths=[8]).folder
    path = lab.folder / "base.json"
    assert lab.bench("gate", "--save", path, folder).code == 0
    done = lab.bench("gate", path, folder, "--margin", "1.2x")
    said = " ".join(done.out.split())
    assert (done.code, "equivalent is not tested: give a share as --margin" in said) == (4, True)
    assert "no factor of length is known" in said


def test_each_door_takes_a_factor(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """Command line, file, environment and Python; JSON and files have the points beside it."""
    lab.monkeypatch.chdir(lab.folder)
    folders = [str(run(lab, name, right_to(8)).folder) for name in "ab"]
    expected = pytest.approx(math.log2(1.2) / 3, abs=1e-5)

    def found(*more: str) -> None:
        document = json.loads(lab.bench("compare", *folders, "--json", *more).out)
        assert document["margin"] == "1.2x"
        rows = [row for row in document["pairs"][0]["rows"] if row["condition"] == "all"]
        assert [row["margin"] for row in rows] == [expected] * 2
        assert [row["margin_factor"] for row in rows] == [1.2] * 2

    found("--margin", "1.2x")
    Path("bench.toml").write_text('margin = "1.2x"\n')
    found()
    Path("bench.toml").unlink()
    monkeypatch.setenv("EYECHART_MARGIN", "1.20x")
    found()
    monkeypatch.delenv("EYECHART_MARGIN")
    compared = eyechart.compare(*folders, margin="1.2x")
    assert compared.table["margin_factor"].dropna().tolist() == [1.2] * 2


@pytest.mark.parametrize("given", ["1x", "0.5x", "x", "nanx", "1.2", "1.2 x ", "101x", "-2x", 2])
def test_no_other_text_is_a_margin(given: Margin) -> None:
    """The line says both forms."""
    both = "must be a number from 0.001 to 0.999, or a factor of length from 1.01x to 100x, not"
    with pytest.raises(eyechart.EyechartError, match=both):
        JUDGING["margin"].read(given)
