"""Prompts that a server cut without an error, seen in the tokens that it counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import pytest

from eyechart.harness.analysis.findings.of_run import findings
from eyechart.harness.analysis.samples.cut_prompts import Cut, OneCount, cut_prompts, one_count
from eyechart.harness.analysis.samples.judged_run import read_run
from eyechart.harness.analysis.tables.tables import effective_length_table
from eyechart.harness.score.outcomes import OUTCOMES
from eyechart.providers.base import Reply, Request, Usage
from tests.conftest import right
from tests.sentences import headline, said

if TYPE_CHECKING:
    from tests.conftest import Lab

Count = Callable[[int], float]
LENGTHS = [5, 7, 10, 15, 22, 33, 50, 75, 110, 160, 240, 350, 500]
WINDOW = 300


def found(
    count: Count, lengths: list[int], *, cached: float = 0, given: bool = False
) -> Cut | None:
    """What is cut of prompts of 200 characters and their row, four to each length."""
    chars = np.array([200 + length for length in lengths for _ in range(4)], float)
    tokens = np.array([count(length) for length in lengths for _ in range(4)], float)
    return cut_prompts(chars, tokens, np.full(len(chars), cached), given=given)


def whole(length: int) -> int:
    return 60 + length


def runs_of_64(length: int) -> int:
    """Tokens of a row that a tokenizer writes in powers of two."""
    return 60 + length // 64 + (length % 64).bit_count()


def of_groups(length: int) -> int:
    return 60 + -(-length // 3)


def from_no_cache(length: int) -> int:
    """Tokens that are counted where those of the next shorter row came from a cache."""
    shorter = [one for one in LENGTHS if one < length]
    return 60 + length - (shorter[-1] if shorter else 0)


def slower(length: int) -> float:
    """A row whose later symbols are joined."""
    return 60 + min(length, 30) + 0.3 * max(0, length - 30)


@pytest.mark.parametrize(
    "cut",
    [
        lambda tokens: min(tokens, WINDOW),
        lambda tokens: tokens if tokens <= WINDOW else WINDOW - 3,
        lambda tokens: tokens if tokens <= WINDOW else WINDOW // 2 + 5,
        lambda tokens: tokens if tokens <= WINDOW else 150 + tokens % 150,
    ],
)
@pytest.mark.parametrize(
    "lengths", [LENGTHS, [10, 100, 200, 500], [8, 32, 64, 128, 256, 512, 1024]]
)
def test_a_window_is_seen_in_the_counts(cut: Count, lengths: list[int]) -> None:
    """The counts stay at the window, or fall below it, once or in blocks."""
    one = found(lambda length: cut(whole(length)), lengths)
    assert one is not None
    for length in lengths:
        is_longer = whole(length) > WINDOW
        assert one.holds(200 + length, cut(whole(length)), 0) == is_longer


def test_a_window_that_is_not_cut_at_the_same_token_is_seen() -> None:
    """Its counts differ by a few tokens, and do not go with the characters."""
    uneven = [298, 290, 295, 292, 297, 291]
    one = found(lambda length: whole(length) if length <= 150 else uneven[length % 6], LENGTHS)
    assert one is not None
    assert one.shortest <= 200 + 240


def test_prompts_without_a_count_are_cut_where_all_longer_ones_are() -> None:
    """Some servers send usage with a part of the replies only; without any, nothing is known."""
    one = found(lambda length: min(whole(length), WINDOW) * (length % 2), [*range(5, 900, 13)])
    assert one is not None
    assert one.holds(200 + 800, 0, 0)
    assert not one.holds(200 + 100, 0, 0)
    assert found(lambda _length: 0, LENGTHS) is None


@pytest.mark.parametrize(
    "count", [whole, of_groups, runs_of_64, from_no_cache, slower, lambda _: 50]
)
@pytest.mark.parametrize("lengths", [LENGTHS, [10, 100, 200, 500], [5, 50, 500], [10, 20], [10]])
def test_whole_prompts_are_not_called_cut(count: Count, lengths: list[int]) -> None:
    """Whatever joins symbols, and where the usage is no count at all."""
    assert found(count, lengths) is None


def test_tokens_that_came_from_a_cache_are_not_missing() -> None:
    """A vendor that leaves them out of the prompt's tokens says how many they are."""
    lengths = [10, 100, 200, 400]
    assert found(lambda length: min(whole(length), WINDOW), lengths) is not None
    assert found(lambda length: min(whole(length), WINDOW), lengths, cached=160) is None


def test_texts_of_others_need_equal_counts() -> None:
    """A longer text in another language may have fewer tokens."""
    lengths = [10, 100, 200, 300, 400, 500]
    texts = {400: 220, 500: 250}
    assert found(lambda length: texts.get(length, whole(length)), lengths) is not None
    assert found(lambda length: texts.get(length, whole(length)), lengths, given=True) is None
    assert found(lambda length: min(whole(length), WINDOW), lengths, given=True) is not None


def cutting(request: Request) -> Reply:
    """A server with a window of so many characters, each a token, that says nothing of it."""
    kept = request.prompt[-WINDOW:]
    text = right(request) if kept == request.prompt else "Final answer: 3"
    return Reply(text, usage=Usage(len(kept), 3))


def test_such_samples_are_too_long_for_the_window(lab: Lab) -> None:
    """Their answers are to other rows, so no length is claimed, at no door."""
    lengths = "10,40,160,320,640"
    wanted = ("--axis", "separator=none", "--lengths", lengths, "--samples", "8")
    done = lab.bench_run("--model", lab.fake(cutting), *wanted)
    run = read_run(lab.the_run())
    (judged,) = run.conditions.values()
    by_length = judged.cells.set_index("length")
    assert by_length["overflow"].to_dict() == {10: 0, 40: 0, 160: 0, 320: 8, 640: 8}
    assert by_length["incorrect"].sum() == 0
    assert judged.tokens_a_symbol is None
    assert effective_length_table(run)["limited_by"].tolist() == ["window"]
    assert "It is not known how far" in headline(run)
    note = said(findings(run), "cut prompts")
    assert note.startswith("The server cut 16 prompts without an error")
    assert "num_ctx" in done.out
    assert note in done.out
    shown = lab.bench("samples", lab.the_run(), "--outcome", "overflow").out
    assert "the server cut the prompt to 300 of about" in shown
    page = lab.folder / "page.html"
    assert lab.bench("report", lab.the_run(), "-o", page).code == 0
    assert "The server cut 16 prompts" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("count", "longest", "cached", "is_one"),
    [
        (lambda _: 50, 700, 0, True),
        (lambda length: 50 + length % 3, 900, 0, True),
        (lambda _: 50, 200, 0, False),
        (lambda _: 50, 700, 30, False),
        (lambda length: 50 + length // 128, 700, 0, False),
        (whole, 700, 0, False),
    ],
)
def test_one_count_for_all_prompts(
    count: Count, longest: int, cached: float, *, is_one: bool
) -> None:
    """Of which no tokenizer has so few tokens, and none came from a cache."""
    lengths = np.linspace(10, longest, 12).astype(int)
    tokens = np.array([count(length) for length in lengths], float)
    same = one_count(lengths + 200.0, tokens, np.full(12, cached))
    assert same == (OneCount(int(tokens.max()), 210, 200 + longest) if is_one else None)


def test_usage_that_is_no_count_changes_no_outcome(lab: Lab) -> None:
    """It is said, since the server may have cut the prompts; there are no tokens a symbol of it."""
    wanted = lab.wanted(samples=8, lengths=[2, 50, 800])
    lab.asked(wanted, lambda request: Reply(right(request), usage=Usage(50, 3)))
    run = read_run(wanted.folder)
    assert run.outcomes[:, OUTCOMES.index("overflow")].sum() == 0
    assert all(one.tokens_a_symbol is None for one in run.conditions.values())
    note = said(findings(run), "one count")
    assert "The server counts 50 tokens in prompts of" in note
    assert note in lab.bench("score", wanted.folder).out


def test_one_count_stands_before_other_warnings(lab: Lab) -> None:
    """Directly below the sentence about the length, since cut prompts may be the cause of all."""
    wanted = lab.wanted(samples=8, lengths=[2, 50, 800])

    def reply(request: Request) -> Reply:
        text = right(request) if len(request.prompt) < WINDOW else "I see no row."
        return Reply(text, usage=Usage(50, 3))

    lab.asked(wanted, reply)
    kinds = [one.kind for one in findings(read_run(wanted.folder))]
    assert kinds[:3] == ["not known", "one count", "unread replies"]
