"""Replies recorded elsewhere to items of one's own: what is shown of them, and what is missing."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import eyechart
from eyechart.harness.analysis.samples.judged_run import read_run
from eyechart.harness.analysis.tables.tables import cells_table
from eyechart.harness.journal.manifest import find_runs, read_manifest
from eyechart.harness.journal.record import read_records
from tests.conftest import Lab
from tests.test_recorded import lines, outcomes, take

TASK = """\
version: 1
title: Letters
unit: words
items: letters.jsonl
prompt: "{{ question }}"
answer: {type: integer, phrase_asked: false}
"""


def letters(lab: Lab, lengths: Sequence[int], text: str = TASK) -> Path:
    """A task of recorded questions, an item of each length."""
    items = [
        {
            "variables": {"question": f"How many a are in {'a' * length!r}, question {place}?"},
            "target": length,
            "length": length,
            "metadata": {"id": f"q{place}", "source": "web"},
        }
        for place, length in enumerate(lengths)
    ]
    (lab.folder / "letters.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in items))
    path = lab.folder / "letters.yaml"
    path.write_text(text)
    return path


def said(lab: Lab, rows: Sequence[Mapping[str, Any]]) -> Path:
    """The file of replies."""
    return lines(lab.folder / "them.jsonl", rows)


def test_a_prompt_without_the_phrase_is_shown_as_it_was(lab: Lab) -> None:
    """Nobody asked for the phrase, so no prompt has it; a task that forgets it is still told."""
    task = letters(lab, [2, 4])
    assert lab.bench("tasks", "check", task).code == 0
    forgotten = letters(
        lab, [2, 4], TASK.replace("{type: integer, phrase_asked: false}", "integer")
    )
    assert "phrase_asked: false" in lab.bench("tasks", "check", forgotten).err
    task = letters(lab, [2, 4])
    other = "You are kind. How many a are in 'aaaa', question 1?"
    rows = [{"id": "q0", "reply": "There are 2."}, {"id": "q1", "reply": "4", "prompt": other}]
    assert take(lab, said(lab, rows), task).code == 0
    assert outcomes(lab) == {"correct": 2}
    shown = lab.bench("samples", lab.the_run(), "--task", task, "--json", "--limit", "0")
    prompts = [json.loads(line)["prompt"] for line in shown.out.splitlines()]
    assert prompts == ["How many a are in 'aa', question 0?", other]


def test_an_empty_row_is_judged_and_has_no_place_on_a_logarithmic_axis(lab: Lab) -> None:
    """Length 0 is a line of every table, and no part of the effective length or of a chart."""
    lengths, replies = [0, *[2] * 3, *[4] * 3, *[8] * 3], [5, *[2] * 3, *[4] * 3, *[9] * 3]
    task = letters(lab, lengths)
    rows = [{"id": f"q{place}", "reply": str(n)} for place, n in enumerate(replies)]
    done = take(lab, said(lab, rows), task)
    assert (done.code, done.err) == (
        0,
        "10 new replies, 0 known before, 0 rows that cannot be used\n",
    )
    run = read_run(lab.the_run())
    assert run.cells["length"].tolist() == [0, 2, 4, 8]
    assert run.cells["correct"].tolist() == [0, 3, 3, 0]
    (judged,) = run.conditions.values()
    assert judged.curve is not None
    assert judged.curve.lengths.tolist() == [2, 4, 8]
    assert cells_table(run)["reaches"].isna().tolist() == [True, False, False, False]
    page = lab.folder / "page.html"
    assert lab.bench("report", lab.the_run(), "-o", page, "--format", "html,svg").code == 0
    shown = lab.bench("samples", lab.the_run(), "--length", "0", "--json").out
    assert json.loads(shown)["true_length"] == 0


def test_a_run_of_empty_rows_alone(lab: Lab) -> None:
    """It has an accuracy and no effective length; its page is written."""
    task = letters(lab, [0, 0])
    rows = [{"id": f"q{place}", "reply": "0"} for place in range(2)]
    done = take(lab, said(lab, rows), task)
    assert done.code == 0
    assert lab.bench("report", lab.the_run(), "-o", lab.folder / "page.html").code == 0


def test_the_id_and_the_metadata_of_an_item_are_shown(lab: Lab) -> None:
    """By `bench samples`, in its JSON, and in Python."""
    task = letters(lab, [2, 4])
    rows = [{"id": f"q{place}", "reply": "2"} for place in range(2)]
    take(lab, said(lab, rows), task)
    command = ("samples", lab.the_run(), "--task", task, "--outcome", "incorrect")
    assert "  item     id=q1, source=web" in lab.bench(*command).out
    facts = {"id": "q1", "source": "web"}
    assert json.loads(lab.bench(*command, "--json").out)["metadata"] == facts
    frame = eyechart.load_run(lab.the_run(), tasks=str(task)).samples
    assert frame["metadata"].tolist()[1] == facts


def test_items_without_a_row_are_missing(lab: Lab) -> None:
    """All of them, also those of lengths that no row has, and those behind the last row."""
    task = letters(lab, [2, 2, 2, 2, 4, 4, 8])
    rows = [{"id": name, "reply": "2"} for name in ("q1", "q2", "q4")]
    done = take(lab, said(lab, rows), task)
    assert done.code == 1
    assert "4 of 7 samples are not scored: not run 4." in done.out
    assert outcomes(lab) == {"correct": 2, "incorrect": 1, "not_run": 4}
    rest = [{"id": name, "reply": "2"} for name in ("q0", "q3", "q5", "q6")]
    done = take(lab, lines(lab.folder / "rest.jsonl", rest), task)
    assert done.code == 0
    assert outcomes(lab) == {"correct": 4, "incorrect": 3}


def test_all_models_of_a_file_are_imported_at_once(lab: Lab) -> None:
    """A run of each, in one command; a row that cannot be read is named once."""
    task = letters(lab, [2, 4])
    rows = [
        {"id": f"q{place}", "reply": reply, "who": who}
        for who, replies in (("vendor/b", "24"), ("a", "25"))
        for place, reply in enumerate(replies)
    ]
    path = said(lab, [*rows, {"id": "q0", "reply": "2"}])
    command = ("import", path, "--task", task, "--out", lab.out, "--field", "model=who")
    done = lab.bench(*command, "--json")
    assert done.code == 1
    assert done.err.count("names no model in the column 'who'") == 1
    runs = json.loads(done.out)["runs"]
    assert [Path(run["folder"]).parts[-3] for run in runs] == ["a", "b"]
    assert [sum(row["correct"] for row in run["cells"]) for run in runs] == [1, 2]
    lab.bench("import", path, "--task", task, "--out", lab.out, "--recorded-by", "us").one_line(
        2, "--field model=COLUMN"
    )
    lab.bench("import", path, "--task", task, "--field", "model=").one_line(2, "--model is empty")


def test_the_verdicts_of_the_rows_are_compared(lab: Lab) -> None:
    """A table of agreement, the replies that are judged otherwise, and both beside a sample."""
    task = letters(lab, [2, 4, 8, 9])
    rows: list[dict[str, Any]] = [
        {"id": "q0", "reply": "2", "score": 1.0},
        {"id": "q1", "reply": "5", "score": True},
        {"id": "q2", "reply": "9", "score": "incorrect"},
        {"id": "q3", "reply": "9", "score": None},
    ]
    done = take(lab, said(lab, rows), task, "--field", "verdict=score")
    table = [line for line in done.out.splitlines() if line.startswith(("| correct", "| incorr"))]
    assert [line.split() for line in table] == [
        ["|", "correct", "|", "1", "|", "1", "|"],
        ["|", "incorrect", "|", "0", "|", "1", "|"],
    ]
    assert "2 of 3 verdicts agree with those of the rows (66.7 %)." in done.out
    assert (
        "length=4|seed=0|index=0: correct by its row, incorrect here (reads 5, target 4)"
        in done.out
    )
    shown = lab.bench("samples", lab.the_run(), "--length", "4")
    assert "  by row   correct" in shown.out
    bad = take(lab, said(lab, [{"id": "q0", "reply": "2", "verdict": 0.5}]), task, model="other")
    assert "verdict is 0.5, neither right nor wrong, which are true, 1, correct or pass" in bad.err
    words = [{"id": "q0", "reply": "2", "verdict": "PASS"}, {"id": "q1", "verdict": "FAILED"}]
    passed = take(lab, said(lab, [{"reply": "5", **row} for row in words]), task, model="words")
    assert "2 of 2 verdicts agree" in passed.out


def test_a_row_without_a_target_is_checked_by_its_prompt(lab: Lab) -> None:
    """A prompt of another item, or with nothing of its own, is refused; one around it is not."""
    task = letters(lab, [2, 4, 8])
    rows = [
        {"item": 0, "reply": "2", "prompt": "Hi.  how many a ARE in 'aa', question 0? Thanks"},
        {"item": 1, "reply": "4", "prompt": "What is the capital of France?"},
        {"item": 2, "reply": "8", "prompt": "How many a are in 'aaaa', question 1?"},
    ]
    done = take(lab, said(lab, rows), task)
    assert [line.split(":")[2] for line in done.err.splitlines() if ".jsonl:" in line] == ["2", "3"]
    assert done.err.count("the row's prompt has nothing of sample") == 2
    assert take(lab, said(lab, rows), task, "--field", "prompt=", model="blind").code == 0
    numbers = [{"item": place, "reply": "2"} for place in range(3)]
    done = take(lab, said(lab, numbers), task, model="numbers")
    assert "by number alone" in done.err
    targets = [{**row, "target": n} for row, n in zip(numbers, (2, 4, 8), strict=True)]
    assert "by number alone" not in take(lab, said(lab, targets), task, model="proven").err


def test_several_replies_to_one_prompt_are_draws_of_one_row(lab: Lab) -> None:
    """All are in one run, also where they are equal. The same file again changes nothing."""
    task = letters(lab, [2, 4])
    rows = [
        {"id": f"q{place}", "reply": reply, "try": number}
        for number, replies in ((10, "94"), (1, "24"), (2, "24"))
        for place, reply in enumerate(replies)
    ]
    path = said(lab, rows)
    done = take(lab, path, task, "--field", "draw=try")
    assert done.code == 0
    assert "6 new replies, 0 known before, 0 rows" in done.err
    (folder,) = find_runs(lab.out)
    run = read_run(folder)
    assert run.cells["correct"].sum() == 5
    assert run.cells["draws"].tolist() == [3, 3]
    marks = [(one.draw, one.id.partition("|draw=")[2]) for one in read_records(folder)]
    assert marks == [(3, "3"), (3, "3"), (1, ""), (1, ""), (2, "2"), (2, "2")]
    assert run.drawn is not None
    assert (run.drawn.prompts, run.drawn.same_text, run.drawn.majority) == (2, 1, 1.0)
    before = (folder / "samples.jsonl").read_bytes(), read_manifest(folder).cells
    again = take(lab, path, task, "--field", "draw=try")
    assert "0 new replies, 6 known before" in again.err
    assert ((folder / "samples.jsonl").read_bytes(), read_manifest(folder).cells) == before
    unnumbered = take(lab, path, task, model="mixed")
    assert "number them with --field draw=try" in unnumbered.err
    assert "no column 'nix'" in take(lab, path, task, "--field", "draw=nix", model="none").err
