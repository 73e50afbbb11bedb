"""`bench score --by`: accuracy by the metadata of the items."""

from __future__ import annotations

import csv
import shutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Lab

TASK = """\
version: 1
title: Echo
items: echo.jsonl
axes:
  how:
    default: [plain, loud]
    values: {plain: "", loud: " loudly"}
prompt: |
  Say {{ n }}{{ how }}. End with "{{ phrase }}" and it.
answer: text
"""
ITEMS = """\
{"variables": {"n": 3}, "target": "3", "length": 1, "metadata": {"topic": "small", "rank": 2}}
{"variables": {"n": 4}, "target": "4", "length": 1, "metadata": {"topic": "=big", "rank": 10}}
{"variables": {"n": 9}, "target": "9", "length": 1, "metadata": {"topic": "=big"}}
"""


def ran(lab: Lab) -> Path:
    """The folder of a run."""
    (lab.folder / "echo.yaml").write_text(TASK)
    (lab.folder / "echo.jsonl").write_text(ITEMS)
    out = lab.folder / "results"
    done = lab.bench("run", "--task", lab.folder / "echo.yaml", "--model", "tiny", "--out", out)
    assert done.code == 0
    (folder,) = (out / "runs" / "tiny").glob("*/echo@1-*")
    return folder


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_a_row_for_each_condition_and_value(lab: Lab) -> None:
    """Every recorded sample is in one row; numbers ascend, samples without the name are counted."""
    folder = ran(lab)
    done = lab.bench("score", "--by", "topic", folder)
    assert (done.code, done.err) == (0, "")
    table = rows(folder / "by_topic.csv")
    assert [(row["how"], row["metadata_value"], row["n"]) for row in table] == [
        *(("plain", "'=big", "2"), ("plain", "small", "1")),
        *(("loud", "'=big", "2"), ("loud", "small", "1")),
    ]
    whole = rows(folder / "table.csv")
    for how in ("plain", "loud"):
        right = sum(int(row["correct"]) for row in table if row["how"] == how)
        assert right == sum(int(row["correct"]) for row in whole if row["how"] == how)
    assert "=big" in done.out
    done = lab.bench("score", "--by", "rank", folder)
    assert "2 samples are in no row: their items have no 'rank'" in done.err
    assert [row["metadata_value"] for row in rows(folder / "by_rank.csv")] == ["2", "10"] * 2


def test_what_cannot_be_grouped_is_one_line(lab: Lab) -> None:
    """A name that no item has, items that changed, and a task of which nothing is left."""
    folder = ran(lab)
    done = lab.bench("score", "--by", "colour", folder)
    assert done.code == 2
    assert done.err.endswith("has the metadata 'colour'; they have rank, topic\n")
    file = lab.folder / "echo.yaml"
    file.rename(lab.folder / "moved.yaml")
    done = lab.bench("score", "--by", "topic", folder)
    assert (done.code, done.err) == (0, "")  # the run kept the items
    shutil.rmtree(folder / "kept")
    done = lab.bench("score", "--by", "topic", folder)
    assert (done.code, len(done.err.splitlines())) == (2, 1)
    assert "is not at hand; name its file with --task" in done.err
    done = lab.bench("score", "--by", "topic", "--task", lab.folder / "moved.yaml", folder)
    assert (done.code, done.err) == (0, "")
    moved = lab.folder / "moved.yaml"
    moved.write_text(moved.read_text().replace("Say", "Tell"))
    done = lab.bench("score", "--by", "topic", "--task", moved, folder)
    assert (done.code, len(done.err.splitlines())) == (2, 1)
