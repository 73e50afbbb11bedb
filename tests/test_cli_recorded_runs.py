"""Runs of recorded replies beside each other: what is said of them, and how they are compared."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from harness.analysis.judged_run import read_run
from harness.analysis.run_text import recorded_note
from tests.conftest import Lab

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
            "expected": (count := centre + first + trial),
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
    note = "Recorded, and not asked here: both runs (by A & B in 2026-04)."
    assert note in lab.bench("compare", *folders).out.splitlines()
    done = lab.bench("leaderboard", "--out", lab.out)
    assert note in done.out.splitlines()
    assert "| a, recorded |" in done.out
    models = json.loads(lab.bench("leaderboard", "--out", lab.out, "--json").out)["ranks"][0]
    assert [one["recorded"] for one in models["models"]] == [True, True]


def test_of_asked_and_recorded_runs_the_recorded_ones_are_named(lab: Lab) -> None:
    """And of asked ones alone nothing is said."""
    wanted = lab.wanted()
    lab.asked(wanted)
    asked = "asked", read_run(wanted.folder)
    them = "a", read_run(recorded(lab, "a", 50, (32, 64)))
    said = "Recorded, and not asked here: a (by A & B in 2026-04)."
    assert [recorded_note(runs) for runs in ([asked], [asked, them], [them])] == ["", said, said]
