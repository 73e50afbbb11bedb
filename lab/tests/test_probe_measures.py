"""Measures of a model's inside, against what theory says of models that were made for it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from eyechart.harness.errors import UsageError
from eyechart_lab.probe.inside import Event
from eyechart_lab.probe.measures.attention import Attention
from eyechart_lab.probe.measures.catalogue import (
    MEASURES,
    QUANTITIES,
    VARIANTS,
    check_measures,
    unit_of,
)
from eyechart_lab.probe.measures.collapse import (
    LINE,
    ROUNDED,
    distances,
    weights_apart,
)
from eyechart_lab.probe.measures.counter import counter_readings, position_readings
from eyechart_lab.probe.measures.residual import (
    Residual,
    effective_rank,
    rank_one_distance,
    spectral_norm,
)
from eyechart_lab.probe.measures.rotary import RotaryWatcher
from eyechart_lab.probe.measures.squashing import along_the_row, largest_slope
from eyechart_lab.probe.measures.states import States, WatcherGroup
from eyechart_lab.probe.reading import SampleReading

Floats = NDArray[Any]
_QUANTITY = re.compile(
    r"- `(?P<name>\S+)`"
    r"(?: \((?:(?P<per>layer(?:, head|, pair)?)(?:; )?)?(?:unit (?P<unit>\w+))?\))?: .+: `.+`"
)
"""A quantity in the chapter: its name, what it has a value for, its unit, what it is: formula."""
EVENTS: frozenset[Event] = frozenset(["residual", "final", "heads", "attention"])
DRAW = np.random.default_rng(11)


def values(readings: Iterable[SampleReading]) -> dict[tuple[str, int | None, int | None], float]:
    return {(one.quantity, one.layer, one.head): one.value for one in readings}


def softmax(scores: Floats) -> Floats:
    """Causal attention weights (T, T) of scores (T, T)."""
    scores = np.where(np.tri(len(scores), dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    shares: Floats = weights / weights.sum(axis=1, keepdims=True)
    return shares


def attention_of(scores: Floats, row: Iterable[int]) -> dict[Any, float]:
    """Readings of one head, in blocks of seven positions."""
    weights = softmax(scores).astype(np.float32)[None]
    watcher = Attention(list(row), len(scores))
    for first in range(0, len(scores), 7):
        at = np.arange(first, min(first + 7, len(scores)))
        watcher.attention(0, at, weights[:, at])
    return values(watcher.readings())


def averaged(symbols: int) -> States:
    """A head without positions on a row of ones and a zero at its end: a weighted mean."""
    kept = States([symbols, symbols], frozenset())
    one, zero = np.array([1.0, 0.5]), np.array([-1.0, 2.0])
    mixed = (symbols * math.e * one + zero) / (symbols * math.e + 1)
    kept.outputs[0] = np.tile(mixed, (2, 1, 1)).astype(np.float32)
    kept.streams[1] = kept.ended = np.tile(mixed, (2, 1)).astype(np.float32)
    return kept


def test_without_positions_states_collapse() -> None:
    """Theorem 4.2: the distance falls to zero, here as 1/n², and in bfloat16 states are equal."""
    apart = [
        values(distances(averaged(n), averaged(n + 1)))["heads_linf_end", 0, 0]
        for n in (10, 100, 1000)
    ]
    assert apart[0] / apart[1] == pytest.approx(100, rel=0.15)
    assert apart[1] / apart[2] == pytest.approx(100, rel=0.15)
    found = values(distances(averaged(100), averaged(101)))
    assert 0 < found["final_relative_end", None, None] < LINE
    assert found["heads_l1_symbol", 0, 0] >= found["heads_linf_symbol", 0, 0]


def test_alternating_weights_stay_apart() -> None:
    """Proposition B.4: scores that alternate from the end keep a distance of 2(e − 1)/(e + 1)."""

    def alternating(count: int) -> States:
        scores = np.arange(count)[::-1] % 2
        kept = States([0, 0], frozenset())
        kept.attention(
            0, np.array([count - 1]), (np.exp(scores) / np.exp(scores).sum())[None, None]
        )
        return kept

    limit = 2 * (math.e - 1) / (math.e + 1)
    found = [
        values(weights_apart(alternating(n), alternating(n + 1), n))["weights_l1_end", 0, 0]
        for n in (10, 1000, 100_000)
    ]
    assert found[2] == pytest.approx(limit, abs=1e-4)
    assert abs(found[0] - limit) > abs(found[1] - limit) > abs(found[2] - limit)


def test_tokens_behind_the_row_stand_in_for_each_other() -> None:
    shorter, longer = States([0, 0], frozenset()), States([0, 0], frozenset())
    shorter.attention(0, np.array([2]), np.array([[[0.2, 0.3, 0.5]]], np.float32))
    longer.attention(0, np.array([3]), np.array([[[0.2, 0.3, 0.1, 0.4]]], np.float32))
    found = values(weights_apart(shorter, longer, 2))
    assert found["weights_l1_end", 0, 0] == pytest.approx(0.2)


@pytest.mark.parametrize("layers", [1, 2, 5])
def test_slopes_of_a_causal_average(layers: int) -> None:
    """A model that only averages has the powers of its averaging matrix as derivatives: the first
    symbol weighs most, the more layers the more.
    """
    count = 40
    average = softmax(np.zeros((count, count)))
    paths = np.linalg.matrix_power(average, layers)[-1]
    slopes = (paths[:, None] * np.array([3.0, 4.0])).astype(np.float32)
    found = values(along_the_row(slopes, range(count)))
    assert found["first_tenth", None, None] == pytest.approx(paths[:4].sum(), rel=1e-5)
    assert found["last_tenth", None, None] == pytest.approx(paths[-4:].sum(), rel=1e-5)
    assert found["tenth_01", None, None] == pytest.approx(paths[:4].mean() * count, rel=1e-5)
    assert found["slope", None, None] == pytest.approx(5 * np.linalg.norm(paths), rel=1e-5)
    # in the first layer all weigh alike; each further one favours the beginning
    assert (found["first_to_last", None, None] > 1.5) == (layers > 1)


@pytest.mark.parametrize("count", [1, 2, 6, 11, 51, 100])
def test_equal_slopes_give_equal_tenths_at_any_length(count: int) -> None:
    found = values(along_the_row(np.ones((count, 3), np.float32), range(count)))
    assert found["first_tenth", None, None] == pytest.approx(0.1)
    assert found["last_tenth", None, None] == pytest.approx(0.1)
    assert [found[f"tenth_{n:02}", None, None] for n in range(1, 11)] == pytest.approx([1] * 10)


def test_a_symbol_in_two_tenths_is_shared() -> None:
    slopes = np.array([[1.0], [1.0], [4.0], [0.0]], np.float32)  # 2.5 tenths a symbol
    found = values(along_the_row(slopes, range(4)))
    assert found["tenth_05", None, None] == pytest.approx(10 * 0.4 / 6)
    assert found["tenth_08", None, None] == pytest.approx(10 * 0.8 / 6)
    assert found["last_tenth", None, None] == 0
    assert ("first_to_last", None, None) not in found


def test_largest_slope_is_the_largest_singular_value() -> None:
    jacobian: Floats = DRAW.normal(size=(30, 60)).astype(np.float32)

    def gradients(weights: Floats) -> Floats:
        return (weights @ jacobian).reshape(6, 10)

    found = largest_slope(
        np.ones((6, 10), np.float32), lambda x: jacobian @ x.ravel(), gradients, rounds=200
    )
    assert found == pytest.approx(np.linalg.svd(jacobian)[1][0], rel=1e-3)


def test_heads_with_known_attention() -> None:
    count, row = 30, range(5, 25)
    previous = attention_of(20.0 * np.eye(count, k=-1), row)
    assert previous["previous", 0, 0] > 0.99
    assert previous["entropy", 0, 0] < 0.01
    diagonal = attention_of(20.0 * np.eye(count), row)
    assert diagonal["diagonal", 0, 0] > 0.99
    assert diagonal["largest_end", 0, 0] > 0.99
    sink = attention_of(20.0 * np.eye(count)[:, :1] * 0 + 20.0 * (np.arange(count) == 0), row)
    assert sink["first_token", 0, 0] > 0.99
    assert [sink["sinks_0.3", None, None], sink["sinks_0.8", None, None]] == [1, 1]
    half = attention_of(math.log(count / 2) * (np.arange(count) == 0), row)
    assert [half["sinks_0.3", None, None], half["sinks_0.8", None, None]] == [1, 0]
    even = attention_of(np.zeros((count, count)), row)
    assert even["entropy_share", 0, 0] == pytest.approx(1)
    assert even["entropy_end", 0, 0] == pytest.approx(math.log(count))
    assert even["attended_end", 0, 0] == pytest.approx(count, rel=1e-5)
    assert even["row_weight_end", 0, 0] == pytest.approx(20 / 30)
    assert even["largest", 0, 0] == pytest.approx(np.mean([1 / (t + 1) for t in row]), rel=1e-5)


def test_a_row_from_the_first_token_on_leaves_that_token_out() -> None:
    """It has no token before it, and its weight on itself says nothing of a head."""
    count = 6
    found = attention_of(50.0 * np.eye(count, k=-1), range(count))
    assert found["previous", 0, 0] == pytest.approx(1)
    assert found["diagonal", 0, 0] == pytest.approx(0)
    even = attention_of(np.zeros((count, count)), range(count))
    assert even["entropy_share", 0, 0] == pytest.approx(1)
    alone = attention_of(np.zeros((1, 1)), [0])
    assert {name for name, _, _ in alone} == {
        *("largest_end", "entropy_end", "attended_end", "row_weight_end")
    }


def test_without_positions_no_head_is_diagonal_on_equal_tokens() -> None:
    """Equal keys get equal scores, whatever the query."""
    count = 40
    for _ in range(5):
        scores = np.repeat(DRAW.normal(0, 5, (count, 1)), count, axis=1)
        found = attention_of(scores, range(20, 40))
        assert found["diagonal", 0, 0] < 1 / 20


def test_ranks_of_known_matrices() -> None:
    left, right = (np.linalg.qr(DRAW.normal(size=(50, 20)))[0] for _ in range(2))
    equal = left[:, :7] @ right[:, :7].T
    assert effective_rank(equal) == pytest.approx(7, rel=1e-6)
    assert effective_rank(equal.T) == pytest.approx(7, rel=1e-6)
    shares = np.array([0.5, 0.25, 0.25])
    known = left[:, :3] @ np.diag(shares) @ right[:, :3].T
    assert effective_rank(known) == pytest.approx(2**1.5)
    assert effective_rank(np.zeros((4, 3))) == 0
    assert rank_one_distance(np.ones((9, 4))) == 0
    assert rank_one_distance(np.vstack([np.ones((5, 4)), -np.ones((5, 4))])) == pytest.approx(1)
    spectrum = left[:, :3] @ np.diag([9.0, 8.9, 1]) @ right[:, :3].T
    assert spectral_norm(spectrum.astype(np.float32)) == pytest.approx(9, rel=1e-5)
    assert spectral_norm(np.zeros((3, 2), np.float32)) == 0


def test_residual_reads_the_row_only() -> None:
    states = np.vstack([np.full((3, 4), 100.0), np.eye(4)]).astype(np.float32)
    watcher = Residual([3, 4, 5, 6])
    seen = WatcherGroup([watcher])
    for at in (np.arange(5), np.arange(5, 7)):  # in two passes
        seen.residual(2, at, states[at])
    found = values(watcher.readings())
    assert found["norm", 2, None] == pytest.approx(1)
    assert found["effective_rank", 2, None] == pytest.approx(4)


def test_rotary_pairs() -> None:
    """Pair i is at i and i + width / 2; what is not turned is left out."""
    queries = np.zeros((5, 2, 6), np.float32)
    queries[2, :, 1], queries[2, :, 3] = 3, 4  # a pair of a width of 4
    queries[2, :, 5] = 100
    watcher = RotaryWatcher([2], 4)
    WatcherGroup([watcher]).projections(1, np.arange(5), queries, 2 * queries, queries)
    found = values(watcher.readings())
    assert found["query_norm", 1, 1] == pytest.approx(5)
    assert found["query_norm", 1, 0] == 0
    assert found["key_norm", 1, 1] == pytest.approx(10)
    assert found["query_norm_fast", 1, None] == 0


def test_equal_rotary_pairs_give_the_faster_half_a_half() -> None:
    for pairs in (1, 5, 8):
        watcher = RotaryWatcher([0], 2 * pairs)
        equal = np.ones((1, 3, 2 * pairs), np.float32)
        watcher.projections(0, np.zeros(1, int), equal, equal, equal)
        assert values(watcher.readings())["key_norm_fast", 0, None] == pytest.approx(0.5)
    queries = np.ones((1, 1, 8), np.float32)
    queries[:, :, [0, 4]] = 9  # the fastest of 4 pairs
    watcher = RotaryWatcher([0], 8)
    watcher.projections(0, np.zeros(1, int), queries, queries, queries)
    assert values(watcher.readings())["query_norm_fast", 0, None] == pytest.approx(10 / 12)


def row_of(counts: Floats, width: int = 64, noise: float = 0.01) -> Floats:
    """States in which `counts` stand in one direction, among noise."""
    direction = DRAW.normal(size=width)
    states: Floats = counts[:, None] / 100 * direction + DRAW.normal(0, noise, (len(counts), width))
    return states


def three_rows(length: int = 150) -> tuple[Floats, Floats]:
    """Positions and counts of three rows of random symbols."""
    symbols = DRAW.random((3, length)) < 0.7
    positions = np.tile(np.arange(length, dtype=float), 3)
    return positions, symbols.cumsum(axis=1).ravel().astype(float)


@pytest.mark.parametrize("width", [64, 600])
def test_a_linear_counter_is_found(width: int) -> None:
    """Among states that are narrower and wider than there are symbols."""
    positions, counts = three_rows()
    found = values(counter_readings(row_of(counts, width), counts, positions, 0))
    assert found["r2", 0, None] > 0.99
    assert found["within_half", 0, None] > 0.8
    alone = values(position_readings(counts, positions))
    assert found["error", 0, None] < 0.5 * alone["position_error", None, None]


def test_a_counter_that_stops_is_read_to_its_end() -> None:
    positions, counts = three_rows()
    states = row_of(np.minimum(counts, 40), noise=0.002)

    def share(limit: int) -> float:
        near = positions < limit
        found = values(counter_readings(states[near], counts[near], positions[near], 0))
        return found["within_half", 0, None]

    assert share(50) > 0.95
    assert share(150) < 0.3


def test_no_counter_is_found_in_noise() -> None:
    positions, counts = three_rows()
    found = values(counter_readings(DRAW.normal(size=(450, 64)), counts, positions, 0))
    assert found["r2", 0, None] < 0.1
    assert found["within_half", 0, None] < 0.1


def test_too_few_states_give_nothing() -> None:
    positions = np.arange(10.0)
    assert not list(counter_readings(row_of(positions), positions, positions, 0))


def test_measures_are_named_in_any_order() -> None:
    """The usual ones without a name; a wrong name is answered with the right one."""
    assert check_measures(["residual", "answer"]) == ("answer", "residual")
    assert set(check_measures(["all"])) == set(MEASURES)
    assert set(MEASURES) - set(check_measures([])) == {"lipschitz", "readout"}
    with pytest.raises(UsageError, match="no measure 'colapse'; did you mean 'collapse'"):
        check_measures(["colapse"])


def in_the_chapter() -> dict[tuple[str, str], tuple[str, str]]:
    """(measure, quantity) -> its unit, and what it has a value for, in `docs/measures.md`."""
    chapter = Path(__file__).parents[2] / "docs" / "measures.md"
    listed = chapter.read_text(encoding="utf-8").partition("<!-- measures -->\n")[2]
    found = {}
    for section in listed.partition("<!-- end of measures -->")[0].split("### ")[1:]:
        measure, source, rows = section.strip().split("\n\n")
        assert source.endswith(".")
        for row in rows.splitlines():
            one = _QUANTITY.fullmatch(row)
            assert one, row
            found[measure, one["name"]] = (one["unit"] or "1", one["per"] or "")
    return found


def test_the_chapter_has_every_quantity_with_its_unit() -> None:
    """In the order of the catalogue."""
    chapter = in_the_chapter()
    assert list(chapter) == [(of, name) for of, names in QUANTITIES.items() for name in names]
    first = {place: names[0] for place, names in VARIANTS.items()} | {"map": "q_proj"}
    for (measure, name), (unit, _) in chapter.items():
        assert unit_of(measure, name.format(**first)) == unit
    assert unit_of("collapse", "heads_linf_end_bfloat16") == "1"
    assert unit_of("collapse", "tenth_01") == ""


def every_reading() -> dict[str, list[SampleReading]]:
    """What each measure of a sample gives, of a model of two layers and two heads."""
    count, width = 30, 8
    states = DRAW.normal(size=(count, width)).astype(np.float32)
    heads = states.reshape(count, 2, 4)
    weights = np.stack([softmax(DRAW.normal(size=(count, count)))] * 2).astype(np.float32)
    measures: dict[str, Attention | Residual | RotaryWatcher] = {
        "attention": Attention(range(5, 25), count),
        "residual": Residual(range(5, 25)),
        "rotary": RotaryWatcher(range(5, 25), 4),
    }
    one, other = (States([24, 29], EVENTS) for _ in range(2))
    watching = WatcherGroup([*measures.values(), one, other])
    at = np.arange(count)
    for layer in range(2):
        watching.residual(layer, at, states)
        watching.projections(layer, at, heads, heads, heads)
        watching.attention(layer, at, weights)
        watching.heads(layer, at, heads)
    watching.final(at, states)
    found = {name: list(watcher.readings()) for name, watcher in measures.items()}
    found["collapse"] = [
        reading
        for suffix in ("", ROUNDED)
        for readings in (distances(one, other, suffix), weights_apart(one, other, 25, suffix))
        for reading in readings
    ]
    found["squashing"] = list(along_the_row(states, range(5, 25)))
    positions, counts = three_rows()
    found["counter"] = [
        *counter_readings(row_of(counts), counts, positions, 1),
        *position_readings(counts, positions),
    ]
    return found


def test_every_reading_is_of_a_quantity_in_the_catalogue() -> None:
    """And has a layer and a head where the chapter says so."""
    every = [dict(zip(VARIANTS, values, strict=True)) for values in product(*VARIANTS.values())]
    quantities = {
        (measure, name.format(**each, map="")): (name, per)
        for (measure, name), (_, per) in in_the_chapter().items()
        for each in every
    }
    for measure, readings in every_reading().items():
        missing = set(QUANTITIES[measure])
        for reading in readings:
            name, per = quantities[measure, reading.quantity]
            assert (reading.layer is not None) == per.startswith("layer"), reading
            assert (reading.head is not None) == (", " in per), reading
            missing.discard(name)
        assert not missing
