"""Replies of a real model are read as a reader would: `results/smollm2/replies.csv`."""

from __future__ import annotations

import csv
import re
from collections import Counter
from pathlib import Path

from eyechart.harness.score.judge import judge
from eyechart.harness.task.catalogue import built_in_files, open_task
from results.smollm2.picture import FILE as PICTURE
from results.smollm2.picture import ROWS, TASK, accuracies, picture

FILE = Path(__file__).parents[1] / "results" / "smollm2" / "replies.csv"


def replies() -> list[dict[str, str]]:
    """360 replies of SmolLM2-135M-Instruct to `memory/key_values`, of at most 48 tokens."""
    with FILE.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def stated(row: dict[str, str]) -> str:
    """Which value the first sentence of a reply states of the key that was asked; or empty."""
    found = re.match(rf"The value of key {row['key']} is (\d+)\.", row["reply"])
    return found[1] if found else ""


def test_they_are_judged_as_the_file_says() -> None:
    """With the built-in task."""
    answer = open_task("memory/key_values", built_in_files()["memory/key_values"]).spec.answer
    rows = replies()
    assert len(rows) == 360
    for row in rows:
        verdict = judge(
            text=row["reply"],
            finish_reason=row["finish_reason"],
            refusal=None,
            failure=None,
            target=row["target"],
            answer=answer,
        )
        assert (verdict.outcome, verdict.answer or "") == (row["outcome"], row["answer"]), row["id"]


def test_the_reading_agrees_with_the_sentence() -> None:
    """A reply that states another value is never correct; one that states the right value and ends
    by itself is, but for those that go on with something else.
    """
    whole = [row for row in replies() if stated(row) and row["finish_reason"] == "stop"]
    found = Counter((stated(row) == row["target"], row["outcome"]) for row in whole)
    right = {outcome: n for (is_right, outcome), n in found.items() if is_right}
    assert found[False, "correct"] == 0
    assert right["correct"] / sum(right.values()) > 0.9


def test_the_picture_is_that_of_the_published_numbers() -> None:
    """Both readings of each place of the key; whole rows at each number of keys."""
    found = accuracies()
    assert len(found) == 6
    assert {(ROWS * share) % 1 for of in found.values() for share in of.values()} == {0}
    assert PICTURE.read_text(encoding="utf-8") == picture()
    answered = Counter(row["id"].split("|")[2] for row in replies() if row["outcome"] == "correct")
    for length in (2, 64):
        shares = (of[length] for (_, model), of in found.items() if "@" not in model)
        assert sum(shares) * ROWS == answered[f"length={length}"], TASK


def test_what_is_said_of_rounded_keys_and_values() -> None:
    """The table with four worked examples, and the pairs, are those of the replies in `kv.csv`."""
    with (FILE.parent / "kv.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    page = (FILE.parent / "README.md").read_text(encoding="utf-8")
    right: dict[str, dict[str, bool]] = {}
    for row in rows:
        is_right = row["finish_reason"] == "stop" and row["reply"].strip() == row["target"]
        right.setdefault(row["model"], {})[row["id"]] = is_right
    plain, rounded = right["hf/smollm2"], right["changed/kv=int4/hf/smollm2"]
    for name, of in (("right, %", plain), ("right with keys and values of 4 bits, %", rounded)):
        shares = [
            100 * sum(of[row["id"]] for row in rows[:100] if row["length"] == length) // 20
            for length in ("5", "8", "11", "14", "20")
        ]
        assert f"| {name} | {' | '.join(map(str, shares))} |" in page
    pairs = Counter((plain[one], rounded[one]) for one in plain)
    assert len(plain) == len(rounded) == 100
    both, only, other = pairs[True, True], pairs[True, False], pairs[False, True]
    said = "both are right in {}, only the model as it is in {}, only the rounded one in {}"
    assert said.format(both, only, other) in page
    begun = Counter(
        row["model"]
        for row in rows
        if not right[row["model"]][row["id"]] and row["reply"].strip().startswith(row["target"])
    )
    beginning = "{} of the replies that are not right begin with the right symbol and go on with"
    assert beginning.format(begun["hf/smollm2"]) in page
    assert f"ones, {begun['changed/kv=int4/hf/smollm2']} with 4 bits" in page
