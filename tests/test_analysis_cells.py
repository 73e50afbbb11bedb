"""Texts of others in cells: they come back as they were, and do nothing on the way."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eyechart.harness.analysis.tables.cells import csv_text, from_csv, markdown_text

HOSTILE = st.text(st.sampled_from("=+-@＝＋－＠';\\\t\r\n\x00\x1b\u202e\udcff\U000e0041,\"nxu0 a"))


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("tiny", "tiny"),
        ("=cmd|' /C calc'!A0", "'=cmd|' /C calc'!A0"),
        ("-1+1", "'-1+1"),
        ("@SUM(1)", "'@SUM(1)"),
        ("＋1", "'＋1"),
        ("'=1", "''=1"),
        ("it's", "it's"),
        ("a;=1", "a;'=1"),
        ("position=first,hint=off", "position=first,hint=off"),
        ("-", "-"),
        ("\t=1", "\\t=1"),
        ("a\r\nb\x1b[2J", "a\\r\\nb\\x1b[2J"),
        ("\\n", "\\\\n"),
    ],
)
def test_a_cell_by_hand(text: str, cell: str) -> None:
    """What begins a formula has an apostrophe, what is no sign to be seen is an escape."""
    assert csv_text(text) == cell
    assert from_csv(cell) == text


@given(st.one_of(HOSTILE, st.text()))
def test_every_text_comes_back(text: str) -> None:
    """So no two texts have one cell."""
    assert from_csv(csv_text(text)) == text


@given(st.one_of(HOSTILE, st.text()), st.sampled_from(",;\t"))
@example(",;=", ";")
@example(';"=', ";")
def test_no_cell_is_a_formula(text: str, delimiter: str) -> None:
    """Whatever sign the spreadsheet thinks is between cells."""
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerow(["first", csv_text(text)])
    for row in csv.reader(file.getvalue().splitlines(), delimiter=delimiter):
        for cell in row[1:]:
            assert len(cell) < 2 or cell[0] not in "=+-@＝＋－＠\t\r"


@given(st.text())
def test_a_cell_of_markdown_is_one_line(text: str) -> None:
    """With no sign that could end the cell, the line or a comment."""
    shown = markdown_text(text)
    assert len(f"a{shown}a".splitlines()) == 1
    assert "<" not in shown
    assert ">" not in shown
