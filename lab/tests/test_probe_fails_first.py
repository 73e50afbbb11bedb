"""What fails first, from rows whose answers, order and readings are known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import eyechart
from eyechart.harness.analysis.length.interval import Bound
from eyechart.harness.analysis.samples.judged_run import JudgedCondition
from eyechart_lab.probe.fails_first import (
    APART,
    ORDERED,
    READ,
    RIGHT,
    FallingShare,
    falling_shares,
    first_to_fail,
)
from tests.conftest import Lab
from tests.test_report_paper import charts
from tests.vega_lite import check_valid

LENGTHS = (5, 10, 20, 40, 80)


def share(name: str, low: str, high: str) -> FallingShare:
    """A share that holds to the middle of an interval."""
    ends = []
    for end in (low, high):
        sign = end[0] if end[0] in "<>" else "="
        ends.append(Bound(sign, float(end.lstrip("<>"))))  # type: ignore[arg-type]
    return FallingShare(name, (), ends[0] if ends[0].sign == "=" else None, (ends[0], ends[1]))


@pytest.mark.parametrize(
    ("answers", "read", "first"),
    [
        (("10", "20"), ("21", "40"), RIGHT),
        (("10", "20"), (">80", ">80"), RIGHT),
        (("30", "50"), ("<5", "12"), READ),
        (("10", "20"), ("20", "40"), ""),
        (("<5", "20"), ("<5", "10"), ""),
        ((">80", ">80"), (">80", ">80"), ""),
    ],
)
def test_one_fails_before_another_where_intervals_do_not_meet(
    answers: tuple[str, str], read: tuple[str, str], first: str
) -> None:
    said = first_to_fail([share(RIGHT, *answers), share(READ, *read)])
    if first:
        assert said.startswith(f"'{first}' fails first")
    else:
        assert said.startswith(f"Not known which fails first, '{RIGHT}' or '{READ}'")


def test_what_surely_fails_later_is_no_candidate() -> None:
    said = first_to_fail(
        [share(RIGHT, "10", "20"), share(READ, "15", "30"), share(APART, "60", "70")]
    )
    assert said.startswith(f"Not known which fails first, '{RIGHT}' or '{READ}'. ")
    assert f"{APART} 60 (60 to 70)" in said
    assert first_to_fail([share(RIGHT, "10", "20")]) == ""


def rows(measure: str, quantity: str, values: dict[int, float], **more: float) -> pd.DataFrame:
    """The rows of a probe: so great a share of 30 rows has a 1 at each length."""
    frame = [
        {
            "measure": measure,
            "quantity": quantity,
            **dict.fromkeys(("length", "length_low", "length_high", "symbols"), length),
            "index": index,
            "one": float(index < value * 30),
            "rounding": np.nan,
            **more,
        }
        for length, value in values.items()
        for index in range(30)
    ]
    return pd.DataFrame(frame)


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> JudgedCondition:
    """Thirty replies of the embedded model at each length, right to between 20 and 40 symbols."""
    run = eyechart.run(
        "counting/density",
        "tiny",
        lengths=LENGTHS,
        samples=30,
        axes={"separator": ["none"], "zeros": ["among"], "strategy": ["direct"]},
        out=tmp_path_factory.mktemp("runs"),
    )
    (condition,) = run.judged.conditions.values()
    return condition


def test_shares_of_a_run_and_a_probe(judged: JudgedCondition) -> None:
    """The answer and its order are those of the run; the distance counts beyond rounding."""
    falls = dict(zip(LENGTHS, (1.0, 1.0, 1.0, 0.5, 0.0), strict=True))
    always = dict.fromkeys(LENGTHS, 1.0)
    apart = rows("collapse", "final_relative_end", always)
    apart["one"], apart["rounding"] = 0.02, np.where(apart["length"] < 40, 0.01, 0.03)
    frame = pd.concat(
        [
            rows("readout", "best_readable", falls),
            rows("readout", "best_control", always),
            apart,
        ]
    )
    right, ordered, read, distance = falling_shares(judged, frame)
    assert [one.name for one in (right, ordered, read, distance)] == [RIGHT, ORDERED, READ, APART]
    assert right.length == judged.effective_length().length  # type: ignore[union-attr]
    assert [line.value for line in read.lines] == list(falls.values())
    assert read.length is not None
    assert 20 <= read.length.length <= 40
    assert read.unknown_from is None
    assert [line.value for line in distance.lines] == [1, 1, 1, 0, 0]
    assert ordered.ends[0].length > 20


def test_too_few_rows_leave_the_length_open(judged: JudgedCondition) -> None:
    """Where what is drawn cannot be read either, no reading is a failure of the states."""
    falls = dict(zip(LENGTHS, (1.0, 1.0, 1.0, 0.0, 0.0), strict=True))
    frame = pd.concat(
        [rows("readout", "best_readable", falls), rows("readout", "best_control", falls)]
    )
    *_, read = falling_shares(judged, frame)
    assert read.name == READ
    assert read.unknown_from == 40
    assert [line.length for line in read.lines] == [5, 10, 20]
    assert read.length == Bound(">", 20)
    assert "read at the end > 20 (too few rows to tell from 40 on)" in read.words


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore")
def test_the_picture(lab: Lab) -> None:
    """Four curves of one condition, below its accuracy, with the sentence in the note."""
    few = ("--lengths", "10,20", "--samples", "10", "--out", lab.out)
    axes = ("--axis", "separator=none", "--axis", "zeros=among", "--axis", "strategy=direct")
    asked = ("--task", "counting/density", "--model", "tiny", *axes)
    assert lab.bench("run", *asked, *few).code == 0
    assert lab.bench("probe", *asked, *few, "--measure", "readout,collapse").code == 0
    (run,) = (lab.out / "runs" / "tiny" / "counting").iterdir()
    (probe,) = (lab.out / "probes" / "tiny" / "counting").iterdir()
    found = charts("probe", Path(run), Path(probe))
    spec = found["counting/density: tiny, What fails first"]
    check_valid(spec)
    assert {row["colour"] for row in spec["datasets"]["inside"]} >= {RIGHT, READ, APART}
    assert "To which length each holds: answer right" in spec["usermeta"]["notes"][0]
    assert charts("first", Path(run), Path(probe)) == {
        title: one for title, one in found.items() if title.endswith("What fails first")
    }
    page = lab.folder / "page.html"
    assert lab.bench("report", run, probe, "-o", page).code == 0
    text = page.read_text(encoding="utf-8")
    assert "What fails first" in text
    assert text.count("Bars are 95 % intervals;") == 1  # elsewhere: smallest and largest value
