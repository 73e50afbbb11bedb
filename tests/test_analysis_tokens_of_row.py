"""Tokens a symbol: the slope of prompt tokens over the length of the row, with its interval."""

from __future__ import annotations

import math

import numpy as np
import pytest

from eyechart.harness.analysis.length.interval import Bound, student
from eyechart.harness.analysis.length.tokens_of_row import (
    PairTokens,
    TokensASymbol,
    differ,
    fitted,
    of_prompts,
    writes_rows,
)
from eyechart.harness.spec.token_counts import CountedPrompt, read, written
from eyechart.harness.task.catalogue import built_in_files, open_task
from tests.conftest import Lab
from tests.tokens import asked


def slope(points: list[tuple[int, float]], rows: list[int] | None = None) -> TokensASymbol | None:
    """Of (length, tokens), each in a row of its own unless given."""
    lengths, tokens = np.array(points, float).T
    return fitted(lengths, tokens, np.array(rows or range(len(points))), "usage")


def known(value: float, low: float | None = None, high: float | None = None) -> TokensASymbol:
    return TokensASymbol(value, low or value, high or value, "usage")


def test_instructions_and_template_are_in_the_intercept() -> None:
    """Two tokens a symbol stay two, whatever all prompts share."""
    found = slope([(length, 1000 + 2 * length) for length in (5, 10, 20, 40, 80)])
    assert found is not None
    assert (found.value, found.low, found.high) == pytest.approx((2, 2, 2))
    assert found.source == "usage"


def test_lumps_of_three_are_a_third_of_a_token() -> None:
    """A tokenizer that takes three digits at a time; the rest of a row is one token."""
    lengths = range(5, 240, 7)
    found = slope([(length, 50 + math.ceil(length / 3)) for length in lengths])
    assert found is not None
    assert found.low < 1 / 3 < found.high
    assert found.high - found.low < 0.01
    assert found.is_merged
    assert not known(1).is_merged


def test_unknown_tokens_are_left_out() -> None:
    """An error and a server without usage have none."""
    points = [(length, 7 + 3.0 * length) for length in (2, 4, 8, 16, 32)]
    assert slope([*points, (64, math.nan)]) == slope(points)


@pytest.mark.parametrize(
    "points",
    [
        [(5, 20), (10, 30), (20, 50), (40, 90)],
        [(5, 20)] * 30,
        [(5, 50), (10, 50), (20, 50), (40, 50), (80, 50)],
        [(5, 90), (10, 80), (20, 60), (40, 20), (80, 10)],
        [(5, 50), (10, 500), (20, 10), (40, 400), (80, 300)],
        [(length, 50 + 1e-12 * length) for length in (5, 10, 20, 40, 80)],
        [(5, math.nan), (10, math.nan), (20, math.nan), (40, math.nan), (80, math.nan)],
    ],
    ids=["few", "one length", "constant", "falling", "noise", "rounding", "no usage"],
)
def test_what_gives_no_slope(points: list[tuple[int, float]]) -> None:
    """Nothing is better than a number that may be anything."""
    assert slope(points) is None


def test_the_interval_holds_where_rows_are_nested() -> None:
    """Words of one or two tokens, and the words of a row at all lengths: their tokens go together,
    and the usual interval would be too narrow.
    """
    lengths, rows = [10, 20, 40, 80, 160], 20
    covered = usual = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        tokens = 30 + np.cumsum(rng.integers(1, 3, (rows, lengths[-1])), axis=1)
        places = np.array(lengths) - 1
        x, y = np.tile(lengths, rows).astype(float), tokens[:, places].ravel().astype(float)
        found = fitted(x, y, np.repeat(np.arange(rows), len(lengths)), "usage")
        alone = fitted(x, y, np.arange(len(x)), "usage")
        assert found is not None
        assert alone is not None
        covered += found.low <= 1.5 <= found.high
        usual += alone.low <= 1.5 <= alone.high
    assert covered >= 0.93 * 300
    assert usual < covered


@pytest.mark.parametrize(
    ("free", "level", "known"),
    [
        (1, 0.05, 12.706),
        (2, 0.05, 4.303),
        (7, 0.05, 2.365),
        (10, 0.01, 3.169),
        (29, 0.01, 2.756),
        (1000, 0.05, 1.962),
    ],
)
def test_student_of_the_tables(free: int, level: float, known: float) -> None:
    assert student(free, level) == pytest.approx(known, abs=6e-4)


def test_lengths_in_tokens_have_the_ends_of_both_intervals() -> None:
    """A sign stays, and each end is multiplied by its own end."""
    tokens = known(2, 1.9, 2.2)
    assert tokens.of(Bound(">", 40)) == Bound(">", 80)
    assert tokens.of_span((Bound("=", 10), Bound("=", 20))) == (Bound("=", 19), Bound("=", 44))
    assert tokens.of_span((Bound("<", 10), Bound(">", 20))) == (Bound("<", 20), Bound(">", 40))


def test_a_tenth_makes_a_difference() -> None:
    """Unknown ones do not differ from anything."""
    assert differ([known(1), known(1.2)])
    assert not differ([known(1), known(1.05), None])
    assert not differ([None, known(3)])
    assert not differ([])


def test_a_pair_is_exchanged_with_its_sides() -> None:
    """And is known where both are."""
    pair = PairTokens(known(1), known(2), "separator")
    assert pair.swapped == PairTokens(known(2), known(1), "separator")
    assert pair.is_known
    assert not PairTokens(known(1), None).is_known


@pytest.mark.parametrize(
    ("task", "axis", "writes"),
    [
        ("counting/ones", "separator", True),
        ("separators/letters", "format", True),
        ("counting/ones", "strategy", False),
        ("counting/ones", "", False),
    ],
)
def test_axes_that_say_how_rows_are_written(task: str, axis: str, *, writes: bool) -> None:
    """By the name, or since a value has groups or quotes."""
    assert writes_rows(open_task(task, built_in_files()[task]).spec, axis) == writes


def test_prompts_that_a_tokenizer_counted_are_read_back() -> None:
    """The text of a manifest gives the same prompts, and their slope."""
    prompts = [
        CountedPrompt(row, length, 9 + 2 * length) for row in (0, 1) for length in (5, 10, 20)
    ]
    assert read(written(prompts)) == prompts
    assert written(prompts).startswith("0:5:19 0:10:29 ")
    found = of_prompts(prompts)
    assert found is not None
    assert found.value == pytest.approx(2)
    assert found.source == "tokenizer"
    assert of_prompts([]) is None
    assert read("") == []


def test_a_run_has_the_slope_of_its_usage(lab: Lab) -> None:
    """A comma is one token more, and the server says so in the usage of each reply."""
    run = asked(lab, "a", {"none": 1, "comma": 2})
    found = [judged.tokens_a_symbol for judged in run.conditions.values()]
    assert [one and round(one.value, 6) for one in found] == [1, 2]


def test_texts_of_their_own_do_not_count() -> None:
    """Worked examples of 20 to 90 tokens, other ones for each row, leave 2 tokens a symbol."""
    rows = np.repeat(np.arange(8), 3)
    lengths = np.array([5.0 + row % 3 for row in rows]) * np.tile([1, 4, 9], 8)
    tokens = 2 * lengths + 10 * (rows + 2)
    found = fitted(lengths, tokens, rows, "usage", own_texts=True)
    assert found is not None
    assert (found.value, found.low, found.high) == (2, 2, 2)
    plain = fitted(lengths, tokens, rows, "usage")
    assert plain is None or plain.low < plain.high
    alone = np.arange(8)
    assert fitted(lengths[:8], tokens[:8], alone, "usage", own_texts=True) is None
