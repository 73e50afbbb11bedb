"""The counting capacity of Dai & Fan 2026, as a statistic that a task of integers asks for."""

from __future__ import annotations

import csv
import json

import pytest

from eyechart.harness.analysis.length.capacity import Capacity, capacity, capacity_columns
from eyechart.harness.analysis.length.interval import Bound
from eyechart.harness.analysis.samples.judged_run import read_run
from eyechart.harness.errors import TaskFileError
from eyechart.harness.spec import TaskSpec, lines_of
from eyechart.harness.task.catalogue import built_in_files, open_task
from eyechart.harness.task.source import parse
from tests.conftest import Lab
from tests.pages import text_of

REPEATED = built_in_files()["capacity/items"]
COLUMNS = "reply=r,target=n,length=n,line=c,item=i,delimiter=d,cut_off=cut,error=e"


def found(lab: Lab, *cells: tuple[int, list[str | None]]) -> Capacity | None:
    """The capacity of a run with these replies to rows of 100 or 200 items, line by line."""
    rows = [
        {"r": reply, "n": length, "c": length, "i": "a", "d": ", ", "cut": reply == "cut", "e": ""}
        if reply is not None
        else {"r": "", "n": length, "c": length, "i": "a", "d": ", ", "cut": "", "e": "503"}
        for length, replies in cells
        for reply in replies
    ]
    path = lab.folder / "them.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    command = ("import", path, "--task", "capacity/items", "--model", "them", "--out", lab.out)
    lab.bench(*command, "--field", COLUMNS)
    (judged,) = read_run(lab.the_run()).conditions.values()
    return capacity(judged)


@pytest.mark.parametrize(
    ("shorter", "longer", "expected"),
    [
        (["100", "90"], ["1"], Capacity(Bound("=", 100), 200)),  # 5 % exactly
        (["100", "89"], ["1"], Capacity(Bound("<", 100), 100)),
        (["100", "dunno"], ["1"], Capacity(Bound("<", 100), 100)),
        (["100", "cut"], ["1"], Capacity(Bound("<", 100), 100)),
        (["100", None], ["1"], Capacity(Bound("<", 100), 100)),
        (["100"], ["205"], Capacity(Bound(">", 200), None)),
        (["1"], ["200"], Capacity(Bound(">", 200), None)),  # the longest that passes
    ],
)
def test_capacity(
    lab: Lab, shorter: list[str | None], longer: list[str | None], expected: Capacity
) -> None:
    """Every reply must be read, and the mean relative error be at most 5 %."""
    assert found(lab, (100, shorter), (200, longer)) == expected


def test_capacity_is_shown_where_a_task_asks_for_it(lab: Lab) -> None:
    """In effective_length.csv, the terminal, the document and the page; nowhere else."""
    found(lab, (100, ["100"]), (200, ["1"]))
    folder = lab.the_run()
    scored = lab.bench("score", folder)
    assert "        capacity | " in scored.out
    with (folder / "effective_length.csv").open() as file:
        (row,) = csv.DictReader(file)
    assert (row["capacity"], row["capacity_bound"], row["capacity_fails_at"]) == (
        *("100.0", ""),
        "200.0",
    )
    (document,) = json.loads(lab.bench("score", folder, "--json").out)["runs"]
    assert document["conditions"][0]["capacity"] == 100
    assert lab.bench("report", folder, "-o", lab.folder / "page.html").code == 0
    assert '"capacity"' in text_of(lab.folder / "page.html")
    (judged,) = read_run(folder).conditions.values()
    assert capacity_columns(judged)["capacity_fails_at"] == 200
    lab.bench_run("--model", "oracle:9", "--out", lab.folder / "other")
    other = next((lab.folder / "other").rglob("effective_length.csv"))
    assert "capacity" not in other.read_text()


def test_only_tasks_of_integers_ask_for_it(lab: Lab) -> None:
    """Texts have no relative error; the statistic is no part of what a run is made with."""
    text = lab.plain.read_text()
    wrong = text.replace("answer: integer", "answer: text") + "statistics: [capacity]\n"
    lab.plain.write_text(wrong)
    with pytest.raises(TaskFileError, match="'capacity' needs answers that are integers"):
        open_task("lab/plain", lab.plain)
    plain = TaskSpec.model_validate(parse(text).data)
    asked = TaskSpec.model_validate(parse(text + "statistics: [capacity]\n").data)
    assert plain.digest() == asked.digest()


def test_the_lines_are_those_of_the_paper() -> None:
    """0.8 to 1.2 times the centre, rounded outwards."""
    spec = open_task("capacity/items", REPEATED).spec
    lines = lines_of(spec.lengths or (), spec.usual_spread)
    assert [(line.low, line.length, line.high) for line in lines[:2]] == [
        (25, 32, 39),
        (51, 64, 77),
    ]
    assert [(line.low, line.high) for line in lines_of([36, 8], "fifth")] == [(6, 10), (28, 44)]
