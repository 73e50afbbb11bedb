"""The waves of an adaptive evaluation over a data set in a fixed order."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

from eyechart.harness.analysis.adaptive import FIRST_LINES, FIRST_SAMPLES, Aim
from eyechart.harness.analysis.curve import Floats
from eyechart.harness.satellites.export.inspect_ai.waves import Place, Waves
from eyechart.harness.spec import Line, line_start, lines_of
from tests.simulated import LINES, logistic

Key = tuple[Line, int]


def places(samples: int, lines: list[Line] | None = None) -> dict[Key, Place]:
    """A data set, index by index with the lines ascending."""
    start = line_start(0, "waves")
    return {
        (line, index): Place(line, index, line.length_of(index, start))
        for index in range(samples)
        for line in lines or LINES
    }


def evaluated(
    waves: Waves[Key], samples: dict[Key, Place], accuracy: Callable[[Floats], Floats], at_once: int
) -> list[Key]:
    """What is asked where `at_once` samples run or wait at the same time, and the rest come up in
    their order as there is room.
    """
    draws = np.random.default_rng(0).random(len(samples))
    right = dict(zip(samples, draws, strict=True))
    ahead, waiting, running, asked = list(samples), list[Key](), list[Key](), list[Key]()
    while ahead or waiting or running:
        due, waiting = waiting, []
        while due or (ahead and len(running) + len(waiting) < at_once):
            key = due.pop(0) if due else ahead.pop(0)
            match waves.turn(key):
                case "ask":
                    running.append(key)
                    asked.append(key)
                case "wait":
                    waiting.append(key)
                case "pass":
                    assert waves.why_passed
        assert running or not waiting, "all places wait, and for nothing"
        if running:
            key = running.pop(0)
            likely = float(accuracy(np.array([samples[key].length], float))[0])
            waves.ended(key, correct=bool(right[key] < likely))
    return asked


def test_the_first_wave_is_the_shortest_lines() -> None:
    """Two samples of each of three lines; those of longer lines are passed over meanwhile, and
    then all wait.
    """
    samples = places(4)
    waves = Waves(samples, Aim(0.75))
    turns = {key: waves.turn(key) for key in samples}
    first = {key for key in samples if key[0] in LINES[:FIRST_LINES] and key[1] < FIRST_SAMPLES}
    assert {key for key, turn in turns.items() if turn == "ask"} == first
    last = list(samples).index((LINES[FIRST_LINES - 1], FIRST_SAMPLES - 1))
    assert {turn for key, turn in turns.items() if key not in first} == {"pass", "wait"}
    for place, (key, turn) in enumerate(turns.items()):
        if key not in first:
            assert turn == ("pass" if place < last else "wait")


def known_to(why: str) -> float:
    """The octaves in what an evaluation says at its end."""
    known = r"its effective length is known to (\S+) octaves \(\d+ to \d+\)"
    found = re.fullmatch(known + r"(; no length between \d+ and \d+ is asked)?", why)
    assert found is not None, why
    return float(found[1])


@pytest.mark.parametrize("at_once", [1, 10, 200])
@pytest.mark.parametrize("crossing", [20, 120])
def test_it_asks_near_the_crossing_and_stops(crossing: float, at_once: int) -> None:
    """However many samples run at once, one included."""
    samples = places(400)
    waves = Waves(samples, Aim(0.75))
    accuracy = logistic(crossing, slope=4)
    asked = evaluated(waves, samples, accuracy, at_once)
    assert 0 < known_to(waves.why_ended()) <= 0.75
    assert waves.why_passed == waves.why_ended()
    assert len(asked) == len(set(asked)) == waves.asked < 0.1 * len(samples)
    truth = crossing * (1 / 0.85 - 1) ** (1 / 4)
    near = [line for line, _ in asked if truth / 3 < line.length < truth * 3]
    assert len(near) > 0.5 * len(asked)


def test_a_model_that_always_fails_is_asked_little() -> None:
    """And nothing on long lines."""
    samples = places(50)
    waves = Waves(samples, Aim(0.75))
    asked = evaluated(waves, samples, np.zeros_like, 10)
    assert waves.why_ended() == "it does not reach 85 % at 5"
    assert len(asked) < 40
    assert max(line.length for line, _ in asked) < 50


def test_a_model_that_never_fails_is_asked_all_lines() -> None:
    """Few samples of each."""
    samples = places(100)
    waves = Waves(samples, Aim(0.75))
    asked = evaluated(waves, samples, np.ones_like, 10)
    assert waves.why_ended() == "its effective length is 466 to > 500; no longer length was asked"
    assert {line for line, _ in asked} == set(LINES)
    assert len(asked) < 10 * len(LINES)


@pytest.mark.parametrize("samples", [1, 3, 12])
def test_a_small_data_set_ends(samples: int) -> None:
    """Where its samples do not suffice, that is said, and nothing waits for more."""
    some = places(samples)
    waves = Waves(some, Aim(0.4))
    asked = evaluated(waves, some, logistic(60, slope=2), 10)
    assert 0 < len(asked) <= len(some)
    assert "came" in waves.why_ended() or f"has {samples} sample" in waves.why_ended()


def test_gaps_between_exact_lengths_widen_the_precision() -> None:
    """As in `bench run --adaptive`: nothing can be known within a gap."""
    lines = lines_of([10, 40, 160, 640], "none")
    samples = places(200, lines)
    waves = Waves(samples, Aim(0.75))
    evaluated(waves, samples, logistic(100, slope=6), 10)
    assert 0.75 < known_to(waves.why_ended()) <= 0.75 + math.log2(160 / 40)


def test_what_has_no_reply_is_no_answer() -> None:
    """Where the first wave has none at all, nothing can be chosen."""
    samples = places(10)
    waves = Waves(samples, Aim(0.75))
    asked = [key for key in samples if waves.turn(key) == "ask"]
    for key in asked:
        waves.ended(key, correct=None)
    assert waves.why_ended().endswith("; nothing could be scored")


def test_a_retried_sample_is_asked_again_and_counts_once() -> None:
    """Others do not wait while it has no place; once it has one, they do."""
    samples = places(10)
    waves = Waves(samples, Aim(0.75))
    turns = {key: waves.turn(key) for key in samples}
    retried, *others = (key for key, turn in turns.items() if turn == "ask")
    waiting = [key for key, turn in turns.items() if turn == "wait"]
    for key in others:
        waves.ended(key, correct=True)
    assert waves.turn(retried) == "ask"
    assert {waves.turn(key) for key in waiting} == {"wait"}
    waves.ended(retried, correct=None)
    assert "wait" not in {waves.turn(key) for key in waiting[:8]}
    asked = waves.asked
    assert waves.turn(retried) == "ask"
    waves.ended(retried, correct=True)
    assert waves.asked == asked


def test_answers_of_an_earlier_evaluation_count() -> None:
    """They come in without having come up, and are not asked again."""
    samples = places(40)
    earlier = [(line, index) for line in LINES for index in range(12)]
    waves = Waves(samples, Aim(0.75))
    for key in earlier:
        waves.ended(key, correct=samples[key].length < 40)
    assert waves.turn((LINES[0], 20)) == "pass"
    assert 0 < known_to(waves.why_passed) <= 0.75
    assert waves.asked == len(earlier)


def test_replies_choose_the_same_in_any_order() -> None:
    """The next wave depends on the replies, not on which came first."""
    chosen = []
    for backwards in (False, True):
        samples = places(60)
        waves = Waves(samples, Aim(0.75))
        ahead, asked = list(samples), list[Key]()
        while ahead:
            turns = {key: waves.turn(key) for key in ahead}
            wave = [key for key, turn in turns.items() if turn == "ask"]
            asked += wave
            for key in reversed(wave) if backwards else wave:
                waves.ended(key, correct=samples[key].length < 60)
            ahead = [key for key, turn in turns.items() if turn == "wait"]
        chosen.append(Counter(asked))
    assert chosen[0] == chosen[1]
    assert chosen[0].total() > 40
