"""Runs of recorded replies beside each other: what is said of them, and how they are compared."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path

from eyechart.harness.face.python.compare import compare
from eyechart.harness.report.ranking.readme import BEGIN, END
from tests.conftest import Lab
from tests.test_cli_comparing import cells_of

FIELDS = "line=centre,index=trial,target=expected,length=expected"


def recorded(lab: Lab, model: str, sees: int, centres: Sequence[int], *, first: int = 0) -> Path:
    """A run of a model that counts right to `sees`: eight rows on each line, whose lengths begin
    `first` symbols further.
    """
    rows = [
        {
            "item": "a",
            "delimiter": ", ",
            "centre": centre,
            "trial": trial,
            "expected": (count := centre + first + trial % 3),
            "reply": f"Final answer: {count if count <= sees else 1}",
        }
        for centre in centres
        for trial in range(8)
    ]
    file = lab.folder / f"{model}.jsonl"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    by = ("--recorded-by", "A & B", "--recorded-at", "2026-04")
    task = ("--task", "capacity/items", "--model", model, "--field", FIELDS)
    done = lab.bench("import", file, *task, *by, "--out", lab.out, "--json")
    return Path(json.loads(done.out)["runs"][0]["folder"])


def test_recorded_replies_are_named_as_such(lab: Lab) -> None:
    """By whom, in a comparison, in a leaderboard and in their JSON."""
    folders = [recorded(lab, name, sees, (32, 64)) for name, sees in (("a", 50), ("b", 33))]
    note = "a and b: The replies were recorded by A & B in 2026-04, and not asked here."
    assert note in lab.bench("compare", *folders, "--all-findings").out.splitlines()
    done = lab.bench("leaderboard", "--out", lab.out, "--all-findings")
    assert note in done.out.splitlines()
    assert "| a, recorded |" in done.out
    models = json.loads(lab.bench("leaderboard", "--out", lab.out, "--json").out)["ranks"][0]
    assert [one["kind"] for one in models["models"]] == ["recorded", "recorded"]


def test_replies_to_other_rows_are_compared_unpaired(lab: Lab) -> None:
    """In the sentence, the table, the file and JSON; without areas, and exact by Fisher's test."""
    far = recorded(lab, "far", 99, (16, 32, 64))
    near = recorded(lab, "near", 20, (16, 32), first=1)
    done = lab.bench("compare", far, near, "-o", lab.folder / "c.csv")
    assert done.code == 0
    assert "far counts exactly further than near" in done.out
    assert "Unpaired: the replies are to different rows." in done.out
    assert "Accuracy differs at length 32 (p < 0.001, exact Fisher with Holm's" in done.out
    cells = cells_of(done.out)
    assert [row[1] for row in cells[:3]] == ["n", "8, 8", "8, 8"]
    with (lab.folder / "c.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["length"], row["n"], row["n_second"]) for row in rows[:2]] == [
        ("16", "8", "8"),
        ("32", "8", "8"),
    ]
    assert {row["measure"] for row in rows} == {
        *("accuracy", "effective_length", "near_length", "apart_length")
    }
    (pair,) = json.loads(lab.bench("compare", far, near, "--json").out)["pairs"]
    assert (pair["paired"], pair["area"]) == (False, None)
    assert pair["further"] == "far"
    in_python = compare(far, near)
    assert "unpaired" in {one.kind for one in in_python.findings}
    assert in_python.change == pair["second_is"] == "worse"


def test_without_a_common_line_the_lengths_are_compared(lab: Lab) -> None:
    """And the same rows of recorded runs are pairs."""
    far = recorded(lab, "far", 99, (64, 90))
    near = recorded(lab, "near", 20, (16, 32))
    same = recorded(lab, "same", 20, (16, 32))
    done = lab.bench("compare", far, near)
    assert (done.code, "No line is in both." in done.out) == (0, True)
    assert "Unpaired: the replies are to different rows." in done.out
    assert "unpaired" not in lab.bench("compare", near, same).out
    several = lab.bench("compare", far, near, same).out
    title = "of each pair, p with Holm's correction for 3 pairs and intervals without, 2 unpaired, "
    assert title in " ".join(several.split())
    assert "(unpaired: other rows in 2 of 3 pairs, Holm's correction for 3 pairs)" in several


def test_recorded_runs_of_any_lines_are_ranked_by_effective_length(lab: Lab) -> None:
    """And asked rows of other lines are left out as before."""
    recorded(lab, "near", 20, (16, 32))
    recorded(lab, "far", 99, (16, 32, 64), first=1)
    recorded(lab, "b", 34, (32,), first=2)
    readme = lab.folder / "R.md"
    readme.write_text(f"{BEGIN}\n{END}\n")
    done = lab.bench("leaderboard", "--out", lab.out, "--readme", readme)
    assert (done.code, done.err) == (0, "")
    assert "3 rows" in done.out
    names = [row[1] for row in cells_of(done.out)]
    assert names == ["model", "far, recorded", "b, recorded", "near, recorded"]
    assert "(unpaired: other rows, Holm's correction for 3 pairs)" in done.out
    table = readme.read_text().splitlines()[3:6]
    assert [line.split(" | ")[1] for line in table] == [
        *("far, recorded", "b, recorded", "near, recorded"),
    ]
    assert {line.strip("| ").split(" | ")[4] for line in table} == {"–"}
