"""The text or blank space around a row: its amount, its place, and that nothing else changes."""

from __future__ import annotations

import re

import pytest

from eyechart.harness.errors import TaskError
from eyechart.harness.plan.cost import estimate_tokens
from eyechart.harness.plan.plan import make_sample
from eyechart.harness.spec import Condition, Line
from eyechart.harness.task.catalogue import Task, built_in_files, open_task
from eyechart.harness.task.filler import amid

ROW = "Row ABC: 0110"
PARTS = "Row ABC: 01\nRow ABC: 10\nRow ABC: 11\n"
DEPTHS = {"start": 0.0, "quarter": 0.25, "middle": 0.5, "three_quarters": 0.75, "end": 1.0}


def opened(name: str) -> Task:
    return open_task(name, built_in_files()[name], trial=False)


def prompt_of(name: str, **chosen: str) -> str:
    task = opened(name)
    usual = {axis: values[0] for axis, values in task.spec.default_conditions().items()}
    return make_sample(task, Condition({**usual, **chosen}), Line.exact(40), 3, 0).prompt


@pytest.mark.parametrize("filler", ["text", "blank"])
@pytest.mark.parametrize("depth", [*DEPTHS.values(), "between"])
def test_nothing_around_a_row_is_the_row(filler: str, depth: float | str) -> None:
    """With 0 tokens, at every depth and for rows of several lines."""
    assert amid(f"{ROW}\n", 0, depth, filler, "ABC") == f"{ROW}\n"
    assert amid(PARTS, 0, depth, filler, "ABC") == PARTS


@pytest.mark.parametrize("filler", ["text", "blank"])
@pytest.mark.parametrize("tokens", [1_000, 8_000, 300_000])
@pytest.mark.parametrize("share", DEPTHS.values())
def test_a_depth_splits_the_tokens(filler: str, tokens: int, share: float) -> None:
    """So many are before the row, and the rest is after it; the row is on a line of its own."""
    before, row, after = amid(ROW, tokens, share, filler, "ABC").partition(ROW)
    assert row == ROW
    assert not before or before.endswith("\n")
    assert after.startswith("\n")
    assert estimate_tokens(before) == pytest.approx(share * tokens, abs=6)
    assert estimate_tokens(after) == pytest.approx((1 - share) * tokens, abs=6)


@pytest.mark.parametrize("filler", ["text", "blank"])
def test_between_the_lines_of_a_row(filler: str) -> None:
    """Equal parts of the filler are between neighbours, and nothing is before or after."""
    made = amid(PARTS, 2_000, "between", filler, "ABC")
    first, second, third = PARTS.splitlines()
    assert made.startswith(f"{first}\n")
    assert made.endswith(f"\n{third}\n")
    for line, following in ((first, second), (second, third)):
        gap = made.partition(line)[2].partition(following)[0]
        assert estimate_tokens(gap) == pytest.approx(1_000, abs=6)
    assert amid(ROW, 2_000, "between", filler, "A") == amid(ROW, 2_000, 0.5, filler, "A")


def test_more_text_continues_less_and_a_depth_only_splits_it() -> None:
    """It follows from the key alone, whatever was made before."""
    less, more, other = (
        amid(ROW, tokens, 1.0, "text", key).removesuffix(f"\n{ROW}\n")
        for tokens, key in ((1_000, "ABC"), (32_000, "ABC"), (1_000, "ABD"))
    )
    assert more.startswith(less)
    assert other != less
    assert amid(ROW, 1_000, 0.25, "text", "ABC").replace(f"\n{ROW}\n", " ").strip() == less


def test_the_text_has_nothing_that_could_be_part_of_a_row() -> None:
    """Neither digits nor row names, but sentences of nine words that are hardly ever the same."""
    text = amid(ROW, 32_000, 1.0, "text", "ABC").removesuffix(f"\n{ROW}\n")
    sentences = [f"{sentence.strip()}." for sentence in text.split(".") if sentence]
    assert not any(letter.isdigit() or letter in ":\n" for letter in text)
    assert {len(sentence.split()) for sentence in sentences} == {9}
    assert {estimate_tokens(sentence) for sentence in sentences} == {10}
    assert len({*sentences}) > 0.99 * len(sentences)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ((-1, 0.5, "text"), "tokens go from 0 to 4,000,000, not -1"),
        ((4_000_001, 0.5, "text"), "tokens go from 0 to 4,000,000, not 4000001"),
        ((10, 1.5, "text"), "a depth is 'between' or a number from 0 to 1, not 1.5"),
        ((10, "betwen", "text"), "a depth is 'between' or a number from 0 to 1, not 'betwen'"),
        ((10, 0.5, "noise"), "a filler is 'text' or 'blank', not 'noise'"),
    ],
)
def test_what_cannot_be_is_an_error(given: tuple[int, float | str, str], words: str) -> None:
    """It names what is wrong, and what may be."""
    with pytest.raises(ValueError, match=f"^{re.escape(words)}$"):
        amid(ROW, *given, "ABC")


@pytest.mark.parametrize("name", ["context/first_last", "context/ones"])
@pytest.mark.parametrize("filler", ["text", "blank"])
def test_a_task_shows_the_same_row_in_every_context(name: str, filler: str) -> None:
    """Without the lines of the filler every prompt is the one that has none."""
    alone = prompt_of(name)
    words = ("Row", "How", "Which", "Answer", "Write")
    for depth in DEPTHS:
        within = prompt_of(name, context="tokens_8k", depth=depth, filler=filler)
        kept = [line for line in within.splitlines() if line.startswith(words)]
        assert "\n".join(kept) == alone
        assert estimate_tokens(within) == pytest.approx(8_000 + estimate_tokens(alone), abs=6)
    parted = prompt_of(name, context="tokens_8k", depth="between", filler=filler)
    rows = [line for line in parted.splitlines() if line.startswith("Row ")]
    (whole,) = (line for line in alone.splitlines() if line.startswith("Row "))
    assert len(rows) == 4
    assert (
        rows[0] + "".join(row.removeprefix(whole[: len("Row ABC: ")]) for row in rows[1:]) == whole
    )


def test_a_task_of_ones_own_may_use_it(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Around any line of its prompt; a mistake is said with the line of the prompt."""
    folder = tmp_path_factory.mktemp("mine")
    file = folder / "own.yaml"
    (folder / "own.jsonl").write_text('{"variables": {"pin": "77"}, "target": "77", "length": 1}\n')
    text = (
        "version: 1\ntitle: x\nitems: own.jsonl\naxes:\n"
        "  context: {default: [some], values: {none: 0, some: 100, wrong: -5}}\n"
        "prompt: |\n  Which PIN is it?\n  {% filter amid(context, 0.5, 'text', pin) %}\n"
        "  PIN: {{ pin }}\n  {% endfilter %}\n  {{ phrase }}\nanswer: code\n"
    )
    file.write_text(text)
    task = open_task("mine/own", file, trial=False)
    shown = make_sample(task, Condition({"context": "some"}), Line.exact(1), 0, 0).prompt
    assert estimate_tokens(shown.partition("PIN: ")[0]) == pytest.approx(55, abs=6)
    with pytest.raises(TaskError, match=r"line 2 of the prompt: .*tokens go from 0"):
        make_sample(task, Condition({"context": "wrong"}), Line.exact(1), 0, 0)
