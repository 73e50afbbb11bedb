"""The accuracy of a condition over all of its lengths."""

from __future__ import annotations

import json

import pytest

from eyechart.harness.analysis.length.interval import wilson
from eyechart.harness.analysis.length.overall import overall
from eyechart.harness.analysis.samples.judged_run import read_run
from tests.conftest import Lab
from tests.pages import text_of
from tests.test_recorded import lines, take
from tests.test_recorded_items import letters, said


def test_items_are_rows_of_their_own(lab: Lab) -> None:
    """The interval is Wilson's of all scored replies; failed requests and missing rows are left
    out, and an empty row counts. Table, CSV, JSON and page have it.
    """
    task = letters(lab, [0, 2, 2, 4, 8, 9])
    rows = [
        *({"id": f"q{place}", "reply": str(n)} for place, n in enumerate((0, 2, 3, 4))),
        {"id": "q4", "error": "503"},
    ]
    take(lab, said(lab, rows), task)
    (judged,) = read_run(lab.the_run()).conditions.values()
    total = overall(judged)
    assert total is not None
    assert (total.accuracy, total.low, total.high) == (0.75, *(wilson(3, 4) or ()))
    scored = lab.bench("score", lab.the_run())
    assert ["overall, %", "75 (30–95)"] in [
        [cell.strip() for cell in line.split("|")[1:-1]] for line in scored.out.splitlines()
    ]
    document = json.loads(lab.bench("score", lab.the_run(), "--json").out)
    (row,) = document["runs"][0]["conditions"]
    assert row["overall_accuracy"] == 0.75
    page = lab.folder / "page.html"
    lab.bench("report", lab.the_run(), "-o", page)
    assert "0.301 to 0.954" in text_of(page)


@pytest.mark.parametrize(("together", "n"), [(True, 4), (False, 16)])
def test_rows_that_go_together_count_less(lab: Lab, together: bool, n: int) -> None:
    """Four rows at four lengths: wrong on two whole rows, or on half of each row."""
    rows = [
        {
            "reply": str(length if (index if together else index + place) % 2 else 1),
            "target": length,
            "length": length,
            "line": length,
            "index": index,
        }
        for place, length in enumerate((2, 3, 4, 5))
        for index in range(4)
    ]
    take(lab, lines(lab.folder / "them.jsonl", rows), lab.plain)
    (judged,) = read_run(lab.the_run()).conditions.values()
    total = overall(judged)
    assert total is not None
    expected = wilson(n / 2, n)
    assert expected is not None
    assert (total.accuracy, total.low, total.high) == pytest.approx((0.5, *expected))
