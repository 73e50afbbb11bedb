"""The notice where many replies of a run have no answer that can be read."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from eyechart.harness.analysis.judged_run import read_run
from eyechart.harness.analysis.unread import unread_lines
from tests.conftest import right

if TYPE_CHECKING:
    from eyechart.providers.base import Request
    from tests.conftest import Lab

WHY = "two different numbers on the last line"


@pytest.mark.parametrize(
    ("samples", "unread", "noticed"),
    [(10, 7, False), (10, 8, True), (10, 40, True), (4, 4, False), (4, 5, True)],
)
def test_a_fifth_and_five_replies_are_many(
    lab: Lab, *, samples: int, unread: int, noticed: bool
) -> None:
    """Of all replies that are scored."""
    left = iter(["7 or 8"] * unread)
    wanted = lab.wanted(samples=samples)
    lab.asked(wanted, lambda request: next(left, None) or right(request))
    lines = unread_lines(read_run(wanted.folder))
    assert bool(lines) == noticed
    if noticed:
        assert lines[0] == (
            f"{unread} of {4 * samples} replies have no answer that can be read: {unread} {WHY}"
        )
        assert len(lines) == 4


def test_each_common_reason_has_a_reply_that_is_shortened(lab: Lab) -> None:
    """The rarer reasons are counted."""
    said = ["7 or 8"] * 9 + ["x" * 500] * 8 + ["7?"] * 6 + ["at least 7"] * 2
    left = iter(said)
    wanted = lab.wanted(samples=20)
    lab.asked(wanted, lambda request: next(left, None) or right(request))
    first, *replies = unread_lines(read_run(wanted.folder))
    assert first.endswith(
        f"9 {WHY}, 8 no number on the last line, 6 more than a plain number on the last line, "
        "2 for other reasons"
    )
    shown = [line.partition(": ")[2] for line in replies]
    assert shown[0] == "'7 or 8'"
    assert shown[1].startswith("'xxx")
    assert "characters" in shown[1]
    assert shown[2] == "'7?'"


def test_it_stands_before_the_table_of_each_command(lab: Lab) -> None:
    """Of a run that is judged again, of its page, and of replies that are imported."""

    def unread(_: Request) -> str:
        return "7 or 8"

    lab.asked(lab.wanted(samples=4), unread)
    folder = lab.wanted(samples=4).folder
    notice = f"16 of 16 replies have no answer that can be read: 16 {WHY}"
    scored = lab.bench("score", folder)
    assert scored.out.startswith(notice)
    assert notice in lab.bench("report", folder, "-o", lab.folder / "page.html").err
    rows = [{"target": 5, "length": 5, "reply": "7 or 8"} for _ in range(5)]
    (lab.folder / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    wanted = ("--task", lab.plain, "--model", "a/b", "--out", lab.out)
    imported = lab.bench("import", lab.folder / "log.jsonl", *wanted)
    assert imported.out.startswith(f"5 of 5 replies have no answer that can be read: 5 {WHY}")
