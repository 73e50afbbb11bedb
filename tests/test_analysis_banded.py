"""Bands of lengths in tables and charts, where lines have few rows each."""

from __future__ import annotations

from itertools import pairwise

import pytest

from eyechart.harness.analysis.length.bands import are_sparse, band_of, shown_lines
from eyechart.harness.analysis.samples.judged_run import read_run
from eyechart.harness.spec import Cell, Condition, Line
from tests.conftest import Lab
from tests.pages import data_of
from tests.test_recorded import take
from tests.test_recorded_items import letters, said


def test_bands_meet_and_hold_each_length_once() -> None:
    """Whatever lengths a run has, its bands have the same ends."""
    bands = sorted({band_of(length) for length in range(2000)})
    assert bands[0] == Line.exact(0)
    assert all(after.low == before.high + 1 for before, after in pairwise(bands))
    assert all(band_of(length).low <= length <= band_of(length).high for length in range(2000))
    assert [str(band_of(length)) for length in (1, 2, 3, 45, 46)] == [
        *("1", "2", "3", "37 (32–45)", "53 (46–63)")
    ]


@pytest.mark.parametrize(
    ("lines", "rows", "banded"), [(12, 1, False), (13, 1, True), (13, 4, True), (13, 5, False)]
)
def test_many_lines_with_few_rows_are_shown_in_bands(
    lines: int, rows: int, *, banded: bool
) -> None:
    """And no others."""
    exact = [Cell(Condition(), Line.exact(length), rows) for length in range(1, lines + 1)]
    assert are_sparse(exact) is banded
    spread = [Cell(Condition(), Line(length, length, length + 1), rows) for length in range(1, 40)]
    assert not are_sparse(spread)


def test_items_of_different_lengths_are_shown_in_bands(lab: Lab) -> None:
    """In the terminal and on the page; `table.csv` has each length, and estimates use it."""
    lengths = [0, *range(5, 65)]
    task = letters(lab, lengths)
    rows = [
        {"id": f"q{place}", "reply": str(length if length < 40 or length % 2 else 1)}
        for place, length in enumerate(lengths)
    ]
    done = take(lab, said(lab, rows), task)
    cells = [
        [" ".join(cell.split()) for cell in line.split("|")[1:-1]] for line in done.out.splitlines()
    ]
    assert [row[0] for row in cells if len(row) == 2][1:9] == [
        *(
            "0",
            "4 (4–5)",
            "6 (6–7)",
            "9 (8–11)",
            "13 (12–15)",
            "18 (16–22)",
            "26 (23–31)",
            "37 (32–45)",
        )
    ]
    assert ["53 (46–63)", "50 (29–71) 18"] in cells
    assert "bands of half an octave; table.csv has each length." in done.out
    run = read_run(lab.the_run())
    assert len(run.cells) == len(lengths)
    (judged,) = run.conditions.values()
    (bands,) = shown_lines([judged])
    assert sum(row["n"] for row in bands.values()) == len(lengths)
    page = lab.folder / "page.html"
    lab.bench("report", lab.the_run(), "-o", page)
    data = data_of(page.read_text(encoding="utf-8"))
    curve = data["figures"][0]["panels"][0]["curve"]
    assert {"length": 53, "n": 18, "y": 0.5}.items() <= curve[-2].items()
    outcomes = next(
        one["panels"][0]["outcomes"] for one in data["figures"] if "outcomes" in one["panels"][0]
    )
    assert (53, "correct", 9) in [(one["length"], one["outcome"], one["n"]) for one in outcomes]
