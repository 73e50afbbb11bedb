"""Copies: how near they are, and whether they are nearer to their row than to another one."""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random

import numpy as np
import pytest

import eyechart
from eyechart.harness.analysis.length.limits import scored_length
from eyechart.harness.analysis.order.copies import order_of_copies
from eyechart.harness.analysis.order.near import near_length
from eyechart.harness.score.answer_type import PlainAnswerForm
from eyechart.harness.score.answers import TYPES
from eyechart.harness.score.copies import NO_COPY, CopyCredit, copied, row_beside, row_of
from eyechart.harness.score.outcomes import Outcome
from eyechart.harness.score.readings import Recount
from eyechart.harness.score.verdict import Verdict, compare_parts, edit_distance
from eyechart.harness.settings.judging import THRESHOLD
from eyechart.harness.task.catalogue import built_in_files
from eyechart.providers.base import Request
from tests.benchmarks.simulation.copies import BLIND, OBSERVERS, simulated
from tests.conftest import Lab

FORM = PlainAnswerForm("text", ("Final answer:",))
ROW = "a b c d e f g h i j"


def judged(reply: str, row: str = ROW, draw: int = 0, form: PlainAnswerForm = FORM) -> CopyCredit:
    words = row.split()
    verdict = compare_parts(reply, reply.split(), words, 0, len(reply))
    return copied(verdict, row, len(words), draw, form)


class TestOff:
    @pytest.mark.parametrize(
        ("reply", "off"),
        [
            (ROW, 0.0),
            ("a b c d e f g h i x", 0.1),
            ("a b c d e f g h i", 0.1),
            ("x b c d e f g h i j", 1.0),  # one slip at the beginning ends what is right
            ("a b c d e", 0.5),
            (f"{ROW} k l", 0.2),
            (f"{ROW} " * 3, 2.0),
        ],
    )
    def test_it_is_the_share_that_is_missing_or_too_much(self, reply: str, off: float) -> None:
        assert judged(reply.strip()).off == pytest.approx(off)

    def test_a_missing_copy_is_off_by_more_than_any_share(self) -> None:
        assert copied(Verdict(Outcome.TRUNCATED), ROW, 10, 0, FORM) == (math.inf, 0.5)


class TestNearer:
    def test_the_other_row_has_two_different_neighbours_exchanged(self) -> None:
        row = list("aaabaa")
        found = {"".join(row_beside(row, draw)) for draw in range(10)}
        assert found == {"aabaaa", "aaaaba"}
        assert row_beside(list("aaa"), 3) == []

    @pytest.mark.parametrize(
        ("reply", "nearer"),
        [
            ("a b c d", 1.0),
            ("b a c d", 0.0),
            ("a x c d", 1.0),
            ("c d", 0.5),
            ("w x y z", 0.5),
            ("a b c", 1.0),
        ],
    )
    def test_it_is_by_edits(self, reply: str, nearer: float) -> None:
        assert judged(reply, "a b c d").nearer == nearer

    def test_a_right_copy_is_nearer_by_its_verdict(self) -> None:
        """Also where it is another text that the task accepts."""
        assert copied(Verdict(Outcome.CORRECT, "z"), "a b", 2, 0, FORM) == (0.0, 1.0)

    def test_a_row_without_another_one_says_nothing(self) -> None:
        assert math.isnan(judged("a a", "a a a").nearer)
        assert math.isnan(copied(Verdict(Outcome.CORRECT, "a"), "a", 1, 0, FORM).nearer)

    def test_case_counts_as_in_the_verdict(self) -> None:
        assert judged("B A c", "a b c").nearer == 0.5
        assert judged("B A c", "a b c", form=replace(FORM, case=False)).nearer == 0.0

    def test_who_does_not_know_the_order_is_right_in_half(self) -> None:
        """Of a row and the one with the same two symbols exchanged, each is as probable."""
        rng = Random(0)
        for _ in range(50):
            row = [rng.choice("abc") for _ in range(8)]
            reply = [rng.choice("abc") for _ in range(8)]
            if not (other := row_beside(row, 3)):
                continue
            to_row, to_other = edit_distance(reply, row), edit_distance(reply, other)
            found = judged(" ".join(reply), " ".join(row), 3)
            expected = 0.5 if to_row == to_other else float(to_row < to_other)
            assert found.nearer == (1.0 if reply == row else expected)


class TestRows:
    @pytest.mark.parametrize(
        ("target", "length", "row"),
        [
            ("a b c", 3, ["a", "b", "c"]),
            ('{"id": 1}\n{"id": 2}', 2, ['{"id": 1}', '{"id": 2}']),
            ("a b c", 2, None),
            ("17", 40, None),
        ],
    )
    def test_they_are_the_lines_or_words_of_the_target(
        self, target: str, length: int, row: list[str] | None
    ) -> None:
        assert row_of(target, length) == row

    def test_other_answers_are_no_copies(self) -> None:
        integer = PlainAnswerForm("integer", ("Final answer:",))
        assert copied(Verdict(Outcome.CORRECT, 3), 3, 3, 0, integer) is NO_COPY
        assert copied(Verdict(Outcome.CORRECT, "x"), "x", 30, 0, FORM) is NO_COPY
        assert "text" in TYPES


class TestLengths:
    def test_a_right_beginning_is_near_and_tells_rows_apart(self) -> None:
        """Copies that begin right for about 20 words."""
        copies = simulated(OBSERVERS["begins right, then other words"], 20, 0)
        exact = scored_length(copies, THRESHOLD)
        near = near_length(copies, exact, THRESHOLD)
        order = order_of_copies(copies)
        assert near is not None
        assert order is not None
        assert order.apart.length is not None
        assert near.length_ci[0].order >= exact.length_ci[0].order
        assert near.length_ci[1].length < order.apart.length.length < 75
        shares = [line.share for line in order.lines.values()]
        assert shares[0] == 1.0
        assert shares[-1] < 0.8

    @pytest.mark.parametrize("name", BLIND)
    def test_who_knows_nothing_of_the_order_has_no_length(self, name: str) -> None:
        for seed in range(5):
            order = order_of_copies(simulated(BLIND[name], 20, seed))
            assert order is not None
            assert order.apart.length_ci[0].sign == "<"
            assert all(line.share_ci[0] <= 0.5 for line in order.lines.values())

    def test_cut_copies_make_it_a_lower_bound(self) -> None:
        """They might have told the rows apart."""
        copies = simulated(OBSERVERS["words changed, steeply"], 20, 0)
        assert copies.copies is not None
        cut = copies.lengths > 15
        limited = replace(
            copies,
            outcomes=np.where(cut, Outcome.TRUNCATED.place, copies.outcomes),
            readings=np.where(cut, Recount.LEFT_OUT, copies.readings),
            copies=replace(copies.copies, nearer=np.where(cut, 0.5, copies.copies.nearer)),
        )
        order = order_of_copies(limited)
        assert order is not None
        assert order.apart.is_limited
        assert order.apart.length_ci[1].sign == ">"


def test_every_door_has_both_lengths(lab: Lab) -> None:
    """A model that swaps the last two words from ten words on."""
    wanted = lab.wanted(
        built_in_files()["copying/verbatim"],
        axes={"content": ["words"]},
        lengths=[2, 5, 10, 22, 33],
        samples=8,
    )

    def answer(request: Request) -> str:
        words = request.prompt.splitlines()[-1].split()
        swapped = [*words[:-2], words[-1], words[-2]] if len(words) > 12 else words
        return f"Final answer: {' '.join(swapped)}"

    lab.asked(wanted, answer)
    run = eyechart.load_run(wanted.folder)
    (exact,), (near,), (order,) = (
        run.effective_length.values(),
        run.near_length.values(),
        run.order.values(),
    )
    assert exact is not None
    assert near is not None
    assert order is not None
    assert exact.length is not None
    assert exact.length.length < 20
    assert order.apart.length is not None
    assert order.apart.length.sign == ">"
    done = lab.bench("score", wanted.folder)
    assert "near (5 %)" in done.out
    assert "apart (exchanged)" in done.out
    said = " ".join((done.out + done.err).split())
    assert (
        "distinguishes a row from one with two neighbours exchanged, beyond 33, the longest tested"
        in said
    )
