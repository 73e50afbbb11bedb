"""Rows and their controls: d' of replies, and the area under the curve of probabilities."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

import eyechart
from eyechart.harness.analysis.findings.of_run import findings
from eyechart.harness.analysis.order.d_prime import d_prime
from eyechart.harness.analysis.order.order import REVERSED, Order, order_of_control
from eyechart.harness.plan.forced_choice import ForcedChoice
from eyechart.harness.plan.plan import make_sample
from eyechart.harness.spec import Condition, Line
from eyechart.harness.task.catalogue import built_in_files, open_task
from tests.benchmarks.simulation.control import BLIND, OBSERVERS, simulated

Z = NormalDist().inv_cdf


class TestDPrime:
    def test_it_is_the_difference_of_normal_quantiles(self) -> None:
        found = d_prime(14, 19, 4, 19)
        assert found is not None
        assert found.value == pytest.approx(Z(14.5 / 20) - Z(4.5 / 20))
        assert found.low is not None
        assert found.high is not None
        assert found.low < found.value < found.high

    def test_who_says_the_same_to_both_has_none(self) -> None:
        found = d_prime(5, 20, 5, 20)
        assert found is not None
        assert found.value == 0
        assert found.low == pytest.approx(-(found.high or 0))

    def test_it_changes_sign_where_both_change_places(self) -> None:
        one, other = d_prime(15, 20, 3, 20), d_prime(3, 20, 15, 20)
        assert one is not None
        assert other is not None
        assert one.value == pytest.approx(-other.value)
        assert one.low == pytest.approx(-(other.high or 0))

    @pytest.mark.parametrize(
        ("hits", "false_alarms", "is_open"),
        [
            (20, 3, (False, True)),
            (9, 0, (False, True)),
            (20, 0, (False, True)),
            (0, 3, (True, False)),
            (0, 0, (True, True)),
            (20, 20, (True, True)),
        ],
    )
    def test_an_end_is_open_where_it_may_be_anything(
        self, hits: int, false_alarms: int, is_open: tuple[bool, bool]
    ) -> None:
        """Who says the same to all rows may still tell them apart, by less than it takes."""
        found = d_prime(hits, 20, false_alarms, 20)
        assert found is not None
        assert (found.low is None, found.high is None) == is_open

    def test_without_rows_there_is_none(self) -> None:
        assert d_prime(0, 0, 3, 20) is None


def order_of(observer: Any, seed: int = 0) -> Order:
    found = order_of_control(*simulated(observer, 20, seed))
    assert found is not None
    return found


class TestArea:
    def test_it_is_the_share_of_pairs_with_the_control(self) -> None:
        samples, control = simulated(OBSERVERS["falls at 60"], 20, 0)
        found = order_of_control(samples, control)
        assert found is not None
        assert samples.choices is not None
        assert control.choices is not None
        for place, line in found.lines.items():
            odd = samples.choices.margins[samples.places == place]
            not_odd = -control.choices.margins[control.places == place]
            assert line.share == pytest.approx((odd[:, None] > not_odd).mean())
            assert line.pairs == 400

    def test_a_preference_does_not_move_it(self) -> None:
        """Nearly all choices are the repeated symbol, and the margins tell the same."""
        one, other = (
            order_of(OBSERVERS[name])
            for name in ("falls at 60", "falls at 60, prefers the repeated one")
        )
        assert one.apart == other.apart
        assert [line.share for line in one.lines.values()] == [
            line.share for line in other.lines.values()
        ]

    def test_both_tails_are_told(self) -> None:
        """An odd symbol that moves its option in the wrong direction is seen."""
        found = order_of(OBSERVERS["reverses at 60"])
        patterns = [line.pattern for line in found.lines.values()]
        assert patterns[0] == ""
        assert patterns[-1] == REVERSED
        assert list(found.lines.values())[-1].share_ci[1] < 0.5

    @pytest.mark.parametrize("name", BLIND)
    def test_who_ignores_the_odd_symbol_has_no_length(self, name: str) -> None:
        for seed in range(5):
            found = order_of(BLIND[name], seed)
            assert found.apart.length_ci[0].sign == "<"
            assert not any(line.pattern for line in found.lines.values())

    def test_other_options_do_not_compare(self) -> None:
        """A margin of 7 over 1 says nothing about one of 0 over 1."""
        samples, control = simulated(OBSERVERS["falls at 60"], 20, 0)
        assert control.choices is not None
        for offered in (2, 0):
            others = replace(
                control.choices, offered=np.full_like(control.choices.offered, offered)
            )
            assert order_of_control(samples, replace(control, choices=others)) is None


def test_a_control_offers_what_its_condition_offers() -> None:
    """So that both margins are those of the same two options."""
    task = open_task("copying/first_last", built_in_files()["copying/first_last"])
    choice = ForcedChoice(task, 0)
    default = {axis: about.default[0] for axis, about in task.spec.axes.items()}
    offered = []
    for odd in ("zero", "absent"):
        condition = Condition({**default, "odd": odd})
        sample = make_sample(task, condition, Line.exact(9), 0, 0)
        offered.append(choice.options(sample))
    assert offered == [("0", "1"), ("1", "0")]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """`tiny` on both controls' conditions, by replies and by likelihood."""
    asked: dict[str, Any] = {
        "axes": {"position": ["last"], "odd": ["zero", "absent"]},
        "samples": 12,
        "lengths": [10, 40, 100, 160],
        "out": tmp_path_factory.mktemp("control"),
    }
    return {
        reading: eyechart.run("copying/first_last", "tiny", reading=reading, **asked).folder
        for reading in ("reply", "likelihood")
    }


def lines(folder: Path) -> list[dict[str, str]]:
    with (folder / "diagnosis.csv").open(encoding="utf-8") as file:
        return [row for row in csv.DictReader(file) if row["odd"] == "zero"]


def test_replies_have_d_prime_and_no_area(runs: dict[str, Path]) -> None:
    """By hits and false alarms; where all answers are the repeated symbol both ends are open."""
    first, *_, last = lines(runs["reply"])
    expected = d_prime(12, 12, 0, 12)
    assert expected is not None
    assert float(first["d_prime"]) == pytest.approx(expected.value)
    assert first["d_prime_ci_high"] == ""
    assert first["ordered"] == ""
    assert (last["d_prime_ci_low"], last["d_prime_ci_high"]) == ("", "")
    run = eyechart.load_run(runs["reply"])
    assert set(run.order.values()) == {None}


def test_probabilities_have_the_area_and_a_length(runs: dict[str, Path]) -> None:
    """The embedded model chooses the repeated symbol beyond 132 symbols, and its probabilities
    still tell the row from its control.
    """
    rows = lines(runs["likelihood"])
    assert all(float(row["ordered"]) > 0.75 for row in rows)
    run = eyechart.load_run(runs["likelihood"])
    (order,) = [one for one in run.order.values() if one is not None]
    (exact,) = [one for label, one in run.effective_length.items() if one and "odd=zero" in label]
    assert order.apart.length is not None
    assert exact.length is not None
    assert order.apart.length.length > exact.length.length
    found = " ".join(one.sentence for one in findings(run.judged))
    assert "distinguishes, by probabilities, a row from its control" in found
    assert "its probabilities still tell the row from its control" in found
