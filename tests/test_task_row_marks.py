"""Separators that cannot be told from the symbols of a row."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from eyechart.harness.errors import TaskFileError
from eyechart.harness.task.catalogue import open_task

if TYPE_CHECKING:
    from pathlib import Path

TASK = """version: 1
title: Rows
items: rows.jsonl
axes:
  separator:
    default: [a]
    values: {a: "", b: SEPARATOR}
prompt: |
  Count them. Write "{{ phrase }}" and the number.
  PROMPT
answer: integer
"""


def problems(
    folder: Path, separator: object, symbols: list[str], shown: str = "{{ sequence }}"
) -> list[str]:
    """What a check says of a task with rows of these symbols, without file names."""
    text = TASK.replace("SEPARATOR", json.dumps(separator)).replace("PROMPT", shown)
    (folder / "task.yaml").write_text(text)
    rows = (["x"], ["u", "v"], [*symbols, *symbols])
    items = (
        {"variables": {"symbols": row}, "target": len(row), "length": len(row)} for row in rows
    )
    (folder / "rows.jsonl").write_text("".join(f"{json.dumps(item)}\n" for item in items))
    try:
        open_task("x/task", folder / "task.yaml")
    except TaskFileError as error:
        return [line.partition("task.yaml:")[2] for line in error.lines]
    return []


@pytest.mark.parametrize(
    ("separator", "symbols", "said"),
    [
        (1, ["0", "1"], "the separator '1' is also a symbol"),
        ("-1-", ["0", "1"], "the separator '-1-' has the symbol '1' in it"),
        (" 1 ", ["0", "1"], "the separator ' 1 ' has the symbol '1' in it"),
        (", ", ["a", ","], "the separator ', ' has the symbol ',' in it"),
        (",", ["0", "1,1"], "the separator ',' is in the symbol '1,1'"),
        (" ", ["Rome", "New York"], "the separator ' ' is in the symbol 'New York'"),
        (" and ", ["and", "or"], "the separator ' and ' has the symbol 'and' in it"),
        ({"between": ";", "every": 2}, ["a;b", "c"], "the separator ';' is in the symbol 'a;b'"),
        ({"inside": ",", "open": "["}, ["[", "x"], "the text '[' is also a symbol"),
        ({"quote": "'"}, ["'", "x"], 'the text "\'" is also a symbol'),
        ({"open": "Row 1 : "}, ["0", "1"], "the text 'Row 1 : ' has the symbol '1' in it"),
    ],
)
def test_what_cannot_be_told_from_a_symbol(
    separator: object, symbols: list[str], said: str, tmp_path: Path
) -> None:
    """It is said once, with the separator and the symbol, at the separator."""
    (line,) = problems(tmp_path, separator, symbols)
    assert line == f"7:24: {said}, so rows show more symbols than they have; choose another"


@pytest.mark.parametrize(
    ("separator", "symbols"),
    [
        (" ", ["tree", "a"]),
        (" and ", ["a", "d"]),
        (" and", [" a", " d"]),
        (" ,", [" x", " y"]),
        (" ", [" x", " y"]),
        (", ", ["1", "0"]),
        ("\n", ["a: 1", "b: 2"]),
        ({"quote": "'"}, ["don't", "can't"]),
        ({"inside": ",", "open": "<row>", "close": "</row>"}, ["r", "o"]),
        ({"inside": ",", "between": "; ", "every": 2}, ["10", "11"]),
    ],
)
def test_what_can(separator: object, symbols: list[str], tmp_path: Path) -> None:
    """A mark of several words or around the row may have letters that are symbols."""
    assert problems(tmp_path, separator, symbols) == []


def test_separators_of_the_filter(tmp_path: Path) -> None:
    """As an axis, in either case of a condition, or in the prompt itself."""
    said = "the separator '1' is also a symbol"
    shown = "{{ symbols | separated(separator) }}"
    (line,) = problems(tmp_path, "1", ["0", "1"], shown)
    assert line.startswith(f"7:24: {said}")
    shown = '{{ symbols | separated("1" if separator else "; ") }}'
    (line,) = problems(tmp_path, ",", ["0", "1"], shown)
    assert line.startswith(f"10:3: {said}")


def test_a_value_that_no_row_is_written_with(tmp_path: Path) -> None:
    """It may be the name of a layout."""
    shown = "{{ symbols | join if separator == '1' else sequence }}"
    assert problems(tmp_path, "1", ["0", "1"], shown) == []
