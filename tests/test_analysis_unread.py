"""The notice where many replies of a run have no answer that can be read, or were misread."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING

import pytest

from eyechart.harness.analysis.findings.of_run import findings
from eyechart.harness.analysis.findings.unread import right_in_wrong, unread
from eyechart.harness.analysis.samples.judged_run import read_run
from tests.conftest import right

if TYPE_CHECKING:
    from eyechart.providers.base import Request
    from tests.conftest import Lab

ROWS = ("tea", "cake", "milk")
WHY = "two different numbers on the last line"


@pytest.mark.parametrize(
    ("samples", "count_of", "noticed"),
    [(10, 7, False), (10, 8, True), (10, 40, True), (4, 4, False), (4, 5, True)],
)
def test_a_fifth_and_five_replies_are_many(
    lab: Lab, *, samples: int, count_of: int, noticed: bool
) -> None:
    """Of all replies that are scored."""
    left = iter(["7 or 8"] * count_of)
    wanted = lab.wanted(samples=samples)
    lab.asked(wanted, lambda request: next(left, None) or right(request))
    found = unread(read_run(wanted.folder))
    assert (found is not None) == noticed
    if found is not None:
        assert found.sentence.startswith(
            f"{count_of} of {4 * samples} replies have no answer that can be read: {count_of} "
            f"{WHY}. For example, "
        )
        assert len(found.facts["examples"]) == 3


def test_each_common_reason_has_a_reply_that_is_shortened(lab: Lab) -> None:
    """The rarer reasons are counted."""
    said = ["7 or 8"] * 9 + ["x" * 500] * 8 + ["7?"] * 6 + ["at least 7"] * 2
    left = iter(said)
    wanted = lab.wanted(samples=20)
    lab.asked(wanted, lambda request: next(left, None) or right(request))
    found = unread(read_run(wanted.folder))
    assert found is not None
    assert (
        f"9 {WHY}, 8 no number on the last line, 6 more than a plain number on the last line, "
        "2 for other reasons. "
    ) in found.sentence
    shown = [line.partition(": ")[2] for line in found.facts["examples"]]
    assert shown[0] == "'7 or 8'"
    assert shown[1].startswith("'xxx")
    assert "characters" in shown[1]
    assert shown[2] == "'7?'"


def test_each_command_says_it(lab: Lab) -> None:
    """Of a run that is judged again, of its page, and of replies that are imported."""
    lab.asked(lab.wanted(samples=4), lambda _: "7 or 8")
    folder = lab.wanted(samples=4).folder
    notice = f"16 of 16 replies have no answer that can be read: 16 {WHY}"
    scored = lab.bench("score", folder)
    assert notice in scored.out
    lab.bench("report", folder, "-o", lab.folder / "page.html")
    assert notice in (lab.folder / "page.html").read_text()
    rows = [{"target": 5, "length": 5, "reply": "7 or 8"} for _ in range(5)]
    (lab.folder / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    wanted = ("--task", lab.plain, "--model", "a/b", "--out", lab.out)
    imported = lab.bench("import", lab.folder / "log.jsonl", *wanted)
    assert f"5 of 5 replies have no answer that can be read: 5 {WHY}" in imported.out


def echoed(request: Request) -> str:
    """The words of the row of `ECHO`."""
    return " ".join(request.prompt.splitlines()[-1].split())


ALL_WORDS = [f"{one} {two} {three}," for one in ROWS for two in ROWS for three in ROWS]
MISREAD: dict[str, Callable[[str, int], str]] = {
    "a label of another language": lambda words, _: f"Вот слова: {words}, и это всё.",
    "another case": lambda words, _: f"Final answer: {words.upper()}",
    "a part of them": lambda words, turn: f"I see: {words} (so)" if turn % 3 else "milk",
    "a quarter": lambda words, turn: "milk" if turn % 4 else f"I see: {words} (so)",
}
SIGHT: dict[str, Callable[[str, int], str]] = {
    "one word more": lambda words, _: f"Final answer: {words} juice",
    "every word": lambda _, __: f"Final answer: {' '.join(ALL_WORDS)}",
    "hardly one": lambda words, turn: "milk" if turn % 8 else f"I see: {words} (so)",
}


@pytest.mark.parametrize("name", [*MISREAD, *SIGHT])
def test_wrong_replies_with_the_right_answer_in_them_limit_by_form(lab: Lab, name: str) -> None:
    """They are counted, some are shown, and no length is claimed; a long row is a failure."""
    said = (MISREAD | SIGHT)[name]
    turns = count()
    wanted = lab.wanted(lab.echo, samples=12, lengths=[3, 4, 5])
    lab.asked(wanted, lambda request: said(echoed(request), next(turns)))
    run = read_run(wanted.folder)
    misread = right_in_wrong(run)
    (judged,) = run.conditions.values()
    found = judged.effective_length()
    assert found is not None
    assert found.limit.by == ("form" if name in MISREAD else "sight")
    if name in SIGHT:
        assert misread is None
        return
    assert misread is not None
    number, wrong = misread.facts["right"], misread.facts["wrong"]
    assert misread.sentence.startswith(f"{number} of {wrong} wrong replies have the right answer")
    assert (number, wrong) == ({"a part of them": 24, "a quarter": 9}.get(name, 36), 36)
    assert "'answer' in the task file" in misread.remedy
    assert len(misread.facts["examples"]) == 3
    of = f"all {wrong}" if number == wrong else f"{number} of {wrong}"
    fact = f"{of} failing replies were wrong with the right answer in them"
    (unknown,) = (one for one in findings(run) if one.kind == "not known")
    assert fact in unknown.sentence
    assert "'answer' in the task file" in unknown.remedy


def test_a_count_aloud_has_the_right_number_by_chance(lab: Lab) -> None:
    """It has those of other rows too; a number that only the right reply has is no chance."""
    for is_chance in (True, False):

        def reply(request: Request, *, is_chance: bool = is_chance) -> str:
            ones = right(request).rpartition(" ")[2]
            return ("I see 1 or 2." if is_chance else f"I see {ones}.") + "\n\n20"

        wanted = lab.wanted(lab.plain, samples=20, lengths=[3], model=f"scripted/{is_chance}")
        lab.asked(wanted, reply)
        assert bool(right_in_wrong(read_run(wanted.folder))) != is_chance


def test_imported_replies_of_one_row_are_misread_too(lab: Lab) -> None:
    """There are no other targets, and several words are no chance; what helps is said at import."""
    said = "The first topic was 'The role of Art', as I remember."
    rows = [{"target": "The role of art", "length": 5, "reply": said} for _ in range(6)]
    (lab.folder / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    wanted = ("--task", lab.echo, "--model", "a/b", "--out", lab.out)
    done = lab.bench("import", lab.folder / "log.jsonl", *wanted)
    said = " ".join(done.out.split())
    assert "6 of 6 wrong replies have the right answer in them. " in said
    assert "all 6 failing replies were wrong with the right answer in them" in said
    assert said.count("Remedy: change 'answer' in the task file") == 2
    board = lab.bench("leaderboard", lab.the_run(), "-o", lab.out / "board.csv").out
    assert "It is not known how far a/b is right" in board
    assert ",form," in (lab.out / "board.csv").read_text()
