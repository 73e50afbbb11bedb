"""Sentences about wrong answers that are nearly all alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from eyechart.harness.analysis.findings.of_run import findings
from eyechart.harness.analysis.findings.same_mistake import same_mistake
from eyechart.harness.analysis.order.order import CONSTANT
from eyechart.harness.analysis.samples.judged_run import read_run
from eyechart.providers.base import Request
from tests.conftest import Lab, right


def shifted(by: int, until: int = 100) -> Callable[[Request], Any]:
    """Answers that are off by so much in the first samples."""

    def reply(request: Request) -> str:
        index = int(request.sample_id.rpartition("=")[2])
        head, _, number = str(right(request)).rpartition(" ")
        return f"{head} {int(number) + by * (index < until)}"

    return reply


def always(_request: Request) -> str:
    return "Final answer: 70"


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (shifted(1), "80 of its 80 wrong answers are 1 too large."),
        (shifted(-2), "80 of its 80 wrong answers are 2 too small."),
        (always, "80 of its 80 answers are 70."),
        (lambda _: "Final answer: 2", "80 of its 80 answers are 2."),
        (shifted(1, until=4), None),
        (right, None),
    ],
)
def test_wrong_answers_that_are_alike(
    lab: Lab, script: Callable[[Request], Any], said: str | None
) -> None:
    """Fewer than twenty are not looked at."""
    wanted = lab.wanted(samples=20)
    lab.asked(wanted, script)
    found = same_mistake(read_run(wanted.folder))
    assert (found and found.sentence) == said


def test_errors_of_many_sizes_are_no_single_mistake(lab: Lab) -> None:
    """Neither are answers that differ."""

    def uneven(request: Request) -> Any:
        return shifted(int(request.sample_id.rpartition("=")[2]) % 9 + 1)(request)

    wanted = lab.wanted(samples=20)
    lab.asked(wanted, uneven)
    assert same_mistake(read_run(wanted.folder)) is None


def test_one_number_is_said_once(lab: Lab) -> None:
    """The pattern of single lines is left out where all lines have it."""
    wanted = lab.wanted(samples=20)
    lab.asked(wanted, always)
    run = read_run(wanted.folder)
    orders = [one.order for one in run.conditions.values()]
    assert CONSTANT in {line.pattern for one in orders if one for line in one.lines.values()}
    said = [one.sentence for one in findings(run) if one.level == "warning"]
    assert said == ["80 of its 80 answers are 70."]


def test_every_door_says_it(lab: Lab) -> None:
    """The terminal and the page."""
    done = lab.bench_run("--model", lab.fake(shifted(1)), "--samples", "20")
    said = "80 of its 80 wrong answers are 1 too large."
    assert said in done.out
    page = lab.folder / "page.html"
    assert lab.bench("report", lab.the_run(), "-o", page).code == 0
    assert said in page.read_text(encoding="utf-8")
