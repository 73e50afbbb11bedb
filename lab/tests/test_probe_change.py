"""The verdict on a measure over its lengths: beyond rounding, the spread of rows, the interval."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from eyechart.harness.errors import COMPLETE
from eyechart_lab.probe.change import (
    MeasureAtLength,
    MeasureChange,
    change_with_length,
)
from tests.conftest import Lab

LENGTHS = (5, 20, 50, 100, 500, 1000)


def said(
    means: list[float],
    *,
    rounding: float | None = 0.0,
    spread: float = 0.02,
    rows: int = 5,
    is_ratio: bool = True,
) -> MeasureChange:
    """Of rows around these means; `spread` is the standard deviation of their logarithms."""
    draw = np.random.default_rng(4)
    lengths = [
        MeasureAtLength(
            length,
            {row: float(mean * math.exp(spread * draw.normal())) for row in range(rows)},
            rounding,
        )
        for length, mean in zip(LENGTHS, means, strict=False)
    ]
    return change_with_length(lengths, is_ratio=is_ratio)


FALLS = [0.3, 0.1, 0.05, 0.02, 0.01, 0.0104]


def test_a_fall_is_said_with_its_factor_and_interval() -> None:
    found = said(FALLS)
    (leg,) = found.legs
    assert (leg.start.length, leg.end.length) == (5, 500)
    assert leg.low < 1 / 30 < leg.high
    assert found.words.startswith("falls 30-fold (")
    assert found.words.endswith(") from 5 to 500")
    assert found.largest == leg


def test_a_rise_behind_it_is_a_leg_of_its_own() -> None:
    found = said([*FALLS[:5], 0.04])
    assert [(one.start.length, one.end.length) for one in found.legs] == [(5, 500), (500, 1000)]
    assert "; rises 3.9-fold (" in found.words


def test_what_rounding_does_is_no_change() -> None:
    """As the distance at the end of SmolLM2: 0.015, 0.011, 0.008 where rounding moves it 0.01."""
    found = said([0.015, 0.011, 0.008], rounding=0.01)
    assert found.words == "no change beyond rounding"
    assert said([0.015, 0.011, 0.008]).legs
    assert said(FALLS, rounding=0.02).words.endswith("where rounding alone is as large")


def test_what_rows_do_is_no_change() -> None:
    found = said([0.015, 0.011, 0.014], spread=0.5)
    assert found.words == "no change beyond the spread of rows"
    assert not found.legs


def test_too_little_is_said_to_be_too_little() -> None:
    assert said(FALLS, rows=1).words == "one row: no verdict"
    assert said([0.3]).words == "one length: no change can be seen"
    assert said(FALLS, rows=2, spread=0.3).words == "no change beyond the spread of rows"


def test_shares_are_compared_by_their_difference() -> None:
    found = said([0.9, 0.6, 0.2], is_ratio=False)
    assert found.words == "falls by 0.7 from 5 to 50"
    zero = [MeasureAtLength(length, dict.fromkeys(range(4), 0.0), 0.0) for length in (5, 9)]
    assert change_with_length(zero, is_ratio=True).words == "no change beyond the spread of rows"


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore")
def test_one_verdict_for_terminal_files_json_and_page(lab: Lab) -> None:
    asked = ("--model", "tiny", "--task", "counting/ones", "--axis", "separator=none")
    lengths = ("--lengths", "6,40,90", "--samples", "4")
    what = ("--measure", "collapse,answer,squashing")
    done = lab.bench("probe", "--out", lab.out, *asked, *lengths, *what)
    assert done.code == COMPLETE
    assert "one row" not in done.err
    (folder,) = (lab.out / "probes").glob("tiny/counting/*")
    changes = pd.read_csv(folder / "changes.csv")
    of_answer = changes[changes["quantity"] == "probability"].iloc[0]
    assert of_answer["said"] == "falls by 1 from 6 to 90"
    assert (of_answer["rows"], of_answer["is_ratio"]) == (4, "no")
    assert "right answer: falls by 1 from 6 to 90" in done.out
    again = lab.bench("probe", "--out", lab.out, *asked, *lengths, *what, "--json")
    (document,) = json.loads(again.out)["probes"]
    assert [row["said"] for row in document["changes"]] == list(changes["said"])
    table = pd.read_csv(folder / "probe.csv")
    assert not table["quantity"].str.contains("rounding").any()
    end = table[table["quantity"] == "final_relative_end"]
    assert (end["rounding"] > 0).all()
    assert (end["between_rows"] > 0).all()
    assert ((end["ci_low"] < end["value"]) & (end["value"] < end["ci_high"])).all()
    assert table.loc[table["measure"] == "squashing", "rounding"].isna().all()
    lab.bench("run", "--out", lab.out, *asked, *lengths)
    (run,) = (lab.out / "runs").glob("tiny/counting/*")
    page = lab.folder / "page.html"
    assert lab.bench("report", run, folder, "-o", page).code == COMPLETE
    text = page.read_text(encoding="utf-8")
    for words in changes["said"]:
        assert words in text


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore")
def test_one_row_and_rows_of_one_length_are_said(lab: Lab, tmp_path: Path) -> None:
    asked = ("--model", "tiny", "--task", "counting/ones", "--axis", "separator=none")
    exact = (*asked, "--lengths", "6,9", "--exact", "--measure", "collapse")
    alone = lab.bench("probe", "--out", tmp_path, *exact, "--samples", "1")
    assert alone.err.count("one row a length gives no interval and no verdict") == 1
    assert "one row: no verdict: n, n+1 at end" in alone.out
    (folder,) = (tmp_path / "probes").glob("tiny/counting/*")
    table = pd.read_csv(folder / "probe.csv")
    assert table[["ci_low", "ci_high", "between_rows"]].isna().all(axis=None)
    more = lab.bench("probe", "--out", tmp_path, *exact, "--samples", "2")
    assert "all rows of a line have the same length" in more.err
    assert "two or more --lengths without --exact vary it" in more.err
