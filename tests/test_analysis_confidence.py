"""Confidence in forced choices: probabilities, intervals, calibration, and what every door says."""

from __future__ import annotations

import csv
import json
import math
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pytest

import eyechart
from eyechart.harness.analysis.findings.confidence import sure_and_blind
from eyechart.harness.analysis.findings.of_run import findings
from eyechart.harness.analysis.samples.judged_run import JudgedRun, read_run
from eyechart.harness.analysis.tables.confidence import (
    ForcedChoices,
    brier_interval,
    calibration,
    overconfidence_interval,
)
from eyechart.harness.score.forced_choice import belief
from eyechart.providers import descriptors
from eyechart.providers.likelihood import scored_reply
from tests.benchmarks.simulation import confidence as simulation
from tests.benchmarks.simulation.table import Row
from tests.pages import text_of
from tests.sentences import said

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from eyechart.providers.base import Api, Request
    from tests.conftest import Lab

MASS = 7.0
"""What is added to all log-probabilities: probabilities are those among the options."""


@cache
def measured(shape: str) -> Row:
    """The intervals of a hundred simulated conditions with 20 samples each."""
    return simulation.measure((shape, 20), 100)


@dataclass
class One:
    text: str
    logprob: float


@pytest.mark.parametrize(
    ("probabilities", "confidence", "brier"),
    [
        ((0.7, 0.2, 0.1), 0.7, 0.09 + 0.04 + 0.01),
        ((0.1, 0.9), 0.9, 0.81 + 0.81),
        ((0.25, 0.25, 0.25, 0.25), 0.25, 0.75),
    ],
)
def test_confidence_and_the_score_of_brier(
    probabilities: tuple[float, ...], confidence: float, brier: float
) -> None:
    """The right option is the first; only differences of log-probabilities count."""
    for shift in (0, -MASS, -2000):
        found = belief([One("", math.log(one) + shift) for one in probabilities])
        assert (found.confidence, found.brier) == pytest.approx((confidence, brier))


def chosen(confidence: list[float], right: list[bool]) -> ForcedChoices:
    n = len(right)
    none = np.zeros(n)
    return ForcedChoices(
        none.astype(int), np.array(right), np.array(confidence), none, none > 0, np.arange(n)
    )


def error_of(samples: ForcedChoices) -> float:
    found = calibration(samples)
    assert found is not None
    assert found.low <= found.error <= found.high
    return found.error


class TestIntervals:
    def test_all_wrong_has_the_width_of_a_share_of_none(self) -> None:
        """Wilson's interval ends at 16 % for 0 of 20, so that much confidence may be right."""
        low, high = overconfidence_interval(np.full(20, 0.9), np.zeros(20, bool))
        assert (low, high) == pytest.approx((0.9 - 0.1611, 0.9), abs=1e-3)

    def test_confidence_that_goes_against_verdicts_widens_it(self) -> None:
        right = np.array([True, False] * 10)
        along, against = (
            overconfidence_interval(np.where(right, high, 0.9 - high), right) for high in (0.8, 0.1)
        )
        assert against[1] - against[0] > along[1] - along[0] + 0.1

    def test_one_sample_has_none(self) -> None:
        assert all(map(math.isnan, overconfidence_interval(np.ones(1), np.ones(1, bool))))
        assert all(map(math.isnan, brier_interval(np.ones(1))))

    def test_a_brier_score_that_is_a_share_has_the_interval_of_agresti_and_coull(self) -> None:
        """Of 3 in 20: 5 of 24, plus or minus 1.96 standard errors; on the scale to 2."""
        low, high = brier_interval(np.array([2.0] * 3 + [0.0] * 17))
        half = 1.96 * math.sqrt(5 / 24 * 19 / 24 / 24)
        assert (low, high) == pytest.approx((2 * (5 / 24 - half), 2 * (5 / 24 + half)), abs=1e-4)

    def test_all_cover_in_simulation(self) -> None:
        """Also where nearly all samples are wrong, or right."""
        for shape in ("sure and blind", "right and unsure", "calibrated"):
            row = measured(shape)
            assert float(row["held"] or 0) > 0.92, shape
            assert float(row["brier_held"] or 0) > 0.92, shape
            assert float(row["line_held"] or 0) > 0.9, shape
            assert float(row["lines_held"] or 0) > 0.9, shape


class TestCalibrationError:
    def test_it_is_the_distance_where_there_are_many_samples(self) -> None:
        found = error_of(chosen([0.9] * 4000, [True, False] * 2000))
        assert found == pytest.approx(0.4, abs=0.002)

    def test_opposite_errors_do_not_cancel(self) -> None:
        """Too sure in one half, not sure enough in the other."""
        found = error_of(
            chosen(
                [0.8] * 2000 + [0.4] * 2000, [True, False] * 1000 + [True] * 1400 + [False] * 600
            )
        )
        assert found == pytest.approx(0.3, abs=0.01)

    def test_the_order_of_samples_says_nothing(self) -> None:
        """Of one confidence, half of the samples are right."""
        sorted_, mixed = [True] * 20 + [False] * 20, [True, False] * 20
        errors = {
            round(error_of(chosen([0.5] * 40, right)), 9)
            for right in (sorted_, sorted_[::-1], mixed)
        }
        assert errors == {0.0}

    def test_the_excess_of_few_samples_is_less(self) -> None:
        row = measured("calibrated")
        assert 0 < float(row["corrected"] or 0) < 0.7 * float(row["usual"] or 0)

    def test_its_interval_is_wider_where_samples_of_a_row_go_together(self) -> None:
        """Four rows with ten equal verdicts each say less than forty rows."""
        rng = np.random.default_rng(0)
        sure, right = rng.uniform(0.5, 1, 40).tolist(), [True] * 20 + [False] * 20
        apart = chosen(sure, right)
        alike = apart._replace(rows=np.repeat(np.arange(4), 10))
        widths = [one.high - one.low for one in map(calibration, (apart, alike)) if one]
        assert widths[1] > 1.5 * widths[0]

    def test_a_calibrated_model_may_have_none(self) -> None:
        """The interval begins at 0 where the gaps may be chance."""
        found = calibration(chosen([0.8] * 20, [True] * 15 + [False] * 5))
        assert found is not None
        assert found.low == 0

    def test_there_is_none_without_samples(self) -> None:
        assert calibration(chosen([], [])) is None


def answers(short: float, long: float) -> Callable[[Request], Any]:
    """Right at length 3; wrong at other lengths, with this probability of the first choice."""

    def of(request: Request) -> Any:
        wrong = len(request.options) - 1
        sees = "length=3" in request.sample_id
        first = short if sees else long
        rest = math.log((1 - first) / wrong) - MASS
        best = math.log(first) - MASS
        values = [best, *[rest] * wrong] if sees else [rest, best, *[rest] * (wrong - 1)]
        return scored_reply(request, [[value] for value in values])

    return of


@pytest.fixture
def asked(lab: Lab) -> Callable[..., Any]:
    """Asks by likelihood; what was printed."""

    def ask(script: Callable[[Request], Any], *arguments: str) -> Any:
        name = lab.fake(script)
        apis: tuple[Api, ...] = ("chat",)
        able = replace(descriptors.BUILT_IN["fake"], likelihood=lambda _addresses: apis)
        lab.monkeypatch.setitem(descriptors.BUILT_IN, "fake", able)
        return lab.bench_run("--model", name, "--read", "likelihood", *arguments)

    return ask


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


BELOW = "On 1 of 2 lines (5 symbols) it is right less often than by guessing (0 % "
BLIND = (
    "It is sure where it is blind: at 5 symbols (10 choices) it is 93 % sure of its first choice "
    "on average, and right in 0 %."
)


def sure_text(run: JudgedRun) -> str:
    """What is said of forced choices, in the order in which it is shown."""
    kinds = ("confidence", "sure and blind", "below chance", "tied choices")
    return said(findings(run), *kinds)


def test_every_door_says_where_a_model_is_sure_and_blind(
    lab: Lab, asked: Callable[..., Any]
) -> None:
    """The terminal, JSON, Python and the page have one sentence; files have the numbers."""
    done = asked(answers(0.99, 0.93), "--samples", "10", "--axis", "separator=none")
    run = lab.the_run()
    text = sure_text(read_run(run))
    assert BLIND in text
    assert " is 96 % sure of its first choice on average, and right in 50 %" in text
    assert "(expected calibration error 0.4" in text
    assert text in " ".join(done.out.split())
    document = lab.bench("score", run, "--task", lab.ones, "--json")
    kinds = ("confidence", "sure and blind")
    of_json = json.loads(document.out)["runs"][0]["findings"]
    assert " ".join(one["sentence"] for one in of_json if one["kind"] in kinds) == text
    loaded = eyechart.load_run(run, tasks=lab.ones)
    assert " ".join(one.sentence for one in loaded.findings if one.kind in kinds) == text
    page = lab.folder / "page.html"
    lab.bench("report", run, "--task", lab.ones, "-o", page)
    text = text_of(page)
    assert BLIND in text
    assert "overconfidence_ci_low" in text
    (short, long) = rows(run / "diagnosis.csv")
    frame = loaded.diagnosis
    for place, row in enumerate((short, long)):
        for name in ("confidence", "overconfidence", "overconfidence_ci_low", "brier_ci_high"):
            assert float(row[name]) == frame[name][place], name
    assert (float(short["confidence"]), float(long["overconfidence"])) == (0.99, 0.93)
    assert 0.6 < float(long["overconfidence_ci_low"]) < 0.9
    assert float(long["brier"]) > 1.8
    assert float(short["brier"]) < 0.01
    (estimate,) = rows(run / "effective_length.csv")
    assert 0.4 < float(estimate["calibration_error"]) < 0.5


def test_the_worst_of_several_conditions_is_named(lab: Lab, asked: Callable[..., Any]) -> None:
    """With its own numbers, and how many are so."""
    asked(answers(0.99, 0.93), "--samples", "10", "--axis", "separator=all")
    text = sure_text(read_run(lab.the_run()))
    assert "at 5 symbols with separator=none (10 choices) it is 93 % sure" in text
    assert text.endswith(
        "It is so under 3 of 3 conditions; these numbers are those of the largest difference."
    )


def test_lengths_that_were_not_asked_are_not_claimed(lab: Lab, asked: Callable[..., Any]) -> None:
    """The sentence names the shortest and the longest row, and the number of choices."""
    wanted = ("--samples", "5", "--axis", "separator=none", "--lengths", "3,5,9")
    asked(answers(0.99, 0.93), *wanted)
    text = sure_text(read_run(lab.the_run()))
    assert "from 5 to 9 symbols (10 choices) it is 93 % sure" in text
    assert "beyond" not in text


@pytest.mark.parametrize(("long", "samples"), [(0.4, 10), (0.93, 1)])
def test_a_model_that_is_not_sure_or_hardly_asked_is_not_called_so(
    lab: Lab, asked: Callable[..., Any], long: float, samples: int
) -> None:
    """Its confidence is below half-way to certainty, or it has no interval."""
    asked(answers(0.99, long), "--samples", str(samples), "--axis", "separator=none")
    judged = read_run(lab.the_run())
    assert [sure_and_blind(one) for one in judged.conditions.values()] == [None]
    assert "blind" not in sure_text(judged)
    assert "expected calibration error" in sure_text(judged)


def test_a_model_that_is_right_more_often_than_guesses_is_not_blind(
    lab: Lab, asked: Callable[..., Any]
) -> None:
    """However sure it is: here in half of the samples, at length 5."""
    right, wrong = answers(0.99, 0.99), answers(0.99, 0.93)

    def half(request: Request) -> Any:
        even = int(request.sample_id.rpartition("=")[2]) % 2 == 0
        known = msgspec.structs.replace(request, sample_id="length=3") if even else request
        return (right if even else wrong)(known)

    asked(half, "--samples", "20", "--axis", "separator=none")
    (judged,) = read_run(lab.the_run()).conditions.values()
    assert judged.run.diagnosis["overconfidence_ci_low"].iloc[-1] > 0.1
    assert sure_and_blind(judged) is None


def test_a_model_that_prefers_wrong_options_is_said_to(lab: Lab, asked: Callable[..., Any]) -> None:
    """Where it is right less often than guesses would be, it follows a rule of its own."""
    asked(answers(0.99, 0.5), "--samples", "60", "--axis", "separator=none")
    text = sure_text(read_run(lab.the_run()))
    assert BELOW in text
    assert "prefers wrong options by a rule of its own" in text
    assert "the same probability" not in text


def test_options_of_the_same_probability_are_no_rule(lab: Lab, asked: Callable[..., Any]) -> None:
    """The sentence has their number: they are why guesses would be right more often."""
    asked(answers(0.99, 0.01), "--samples", "60", "--axis", "separator=none")
    text = sure_text(read_run(lab.the_run()))
    assert BELOW in text
    assert "rule of its own" not in text
    assert "In 60 of 120 choices the right option has the same probability as the best" in text
    assert "options of the same probability, which count as not right, can explain that" in text


def test_a_server_that_tells_no_options_apart_is_asked_no_more(
    lab: Lab, asked: Callable[..., Any]
) -> None:
    """Whatever its log-probabilities are, all options have the same one."""
    done = asked(lambda request: scored_reply(request, [[-5.0]] * len(request.options)))
    assert done.code == 1
    assert "in each of the first 6 forced choices all options have the same prob" in done.err
    assert read_run(lab.the_run()).samples["tied"].sum() == 6


def test_replies_have_no_confidence(lab: Lab) -> None:
    """The sentence and the columns are empty."""
    wanted = lab.wanted()
    lab.asked(wanted)
    judged = read_run(wanted.folder)
    assert sure_text(judged) == ""
    assert judged.diagnosis["confidence"].isna().all()
    assert {one.calibration for one in judged.conditions.values()} == {None}
