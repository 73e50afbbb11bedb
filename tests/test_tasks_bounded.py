"""Tasks whose answers do not grow with the row: no answer is likelier, and guesses see nothing."""

from __future__ import annotations

import random
import re
from collections import Counter
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest

import eyechart
from eyechart.harness.errors import TaskError
from eyechart.harness.plan.plan import sample_from_id
from eyechart.harness.task.catalogue import Task, built_in_files, open_task
from tests.test_tasks import drawn, usual

if TYPE_CHECKING:
    from collections.abc import Callable

    from eyechart.harness.spec import Item
    from eyechart.providers.base import Request
    from tests.conftest import Lab

ROWS = 1_000
ANSWERS: dict[str, set[Any]] = {
    "bounded/parity": {"even", "odd"},
    "bounded/majority": {"x", "y"},
    "bounded/modulo": {*range(10)},
    "bounded/selective": {*"0123456789"},
    "bounded/neighbors_match": {*"ABCDEFGH"},
    "memory/flip_flop": {*"01"},
}
SEES = 40


def opened(name: str) -> Task:
    return open_task(name, built_in_files()[name], trial=False)


@pytest.mark.parametrize("length", [9, 10, 49, 159])
@pytest.mark.parametrize("name", ANSWERS)
def test_every_answer_is_as_likely_at_every_length(name: str, length: int) -> None:
    """So a constant answer is right as often as a guess: within five standard errors, and for a
    remainder within what the number of counts, one more than symbols, allows.
    """
    answers = ANSWERS[name]
    found = Counter(drawn(name, length, index).target for index in range(ROWS))
    assert found.keys() == answers
    share = 1 / len(answers)
    error = 5 * (share * (1 - share) / ROWS) ** 0.5
    uneven = 1 / (length + 1) if name == "bounded/modulo" else 0
    for count in found.values():
        assert count / ROWS == pytest.approx(share, abs=error + uneven)


def test_a_parity_is_that_of_the_ones() -> None:
    for index in range(20):
        item = drawn("bounded/parity", 33, index)
        assert item.target == ("even", "odd")["".join(item.symbols).count("1") % 2]


@pytest.mark.parametrize(("divisor", "by"), [("three", 3), ("ten", 10)])
def test_a_remainder_is_that_of_the_ones(divisor: str, by: int) -> None:
    """The same rows under every divisor, with all counts."""
    counts = set()
    for index in range(400):
        item = drawn("bounded/modulo", 20, index, divisor=divisor)
        counts.add(count := item.symbols.count("1"))
        assert item.target == count % by
    assert counts == {*range(21)}


LEADS = {"least": 0.0, "twentieth": 0.05, "tenth": 0.1, "fifth": 0.2, "half": 0.5}


@pytest.mark.parametrize(("lead", "share"), LEADS.items())
@pytest.mark.parametrize("length", [1, 2, 5, 20, 21, 500])
def test_a_majority_leads_by_what_the_axis_says(lead: str, share: float, length: int) -> None:
    """Rounded up to the next number that a row of so many symbols can have; never a tie."""
    for index in range(10):
        item = drawn("bounded/majority", length, index, lead=lead)
        counts = Counter(item.symbols)
        ahead = 2 * counts[str(item.target)] - length
        least = max(1, share * length)
        assert least <= ahead < least + 2 or ahead == length
        assert (ahead - length) % 2 == 0


def test_the_first_symbol_is_no_majority() -> None:
    """Who names a symbol of a fixed place is right as often as that symbol is there."""
    items = [drawn("bounded/majority", 20, index, lead="fifth") for index in range(ROWS)]
    for place in (0, 10, 19):
        share = sum(item.symbols[place] == item.target for item in items) / ROWS
        assert share == pytest.approx(0.6, abs=0.05)


PLACES = {"last": 1, "second_to_last": 2, "third_to_last": 3}


@pytest.mark.parametrize(("asked", "number"), PLACES.items())
def test_a_selected_digit_is_counted_from_the_end(asked: str, number: int) -> None:
    """Whatever stands between; rows of every length have it."""
    for between in ("letters", "dots"):
        for length in (3, 10, 300):
            item = drawn("bounded/selective", length, asked=asked, between=between)
            assert item.target == [one for one in item.symbols if one.isdigit()][-number]


def test_the_last_digits_of_a_long_row_stand_as_deep_in_it() -> None:
    """Digits become rarer: the last one stands at the same share of a row, 3/4 of it on average."""

    def depth(item: Item) -> float:
        place = max(place for place, symbol in enumerate(item.symbols, 1) if symbol.isdigit())
        return place / len(item.symbols)

    for length in (50, 500):
        depths = [depth(drawn("bounded/selective", length, index)) for index in range(ROWS)]
        assert sum(depths) / ROWS == pytest.approx(0.75, abs=0.02)


NODE = re.compile(r"(?:node|root) (\w+)(?: below (\w+)|: (\d+) blue neighbors)")
LEAF = re.compile(r"leaf below (\w+): (\d+) blue neighbors, value ([A-H])")
BREADTHS = {"two": 2, "four": 4, "eight": 8}


class Trees:
    """The trees of a row, read from its lines."""

    def __init__(self, item: Item) -> None:
        lines = item.variables["nodes"]
        assert isinstance(lines, list)
        found = [NODE.fullmatch(str(line)) for line in lines]
        self.above = {one[1]: one[2] for one in found if one}
        self.blue = {one[1]: one[3] for one in found if one and one[3]}
        assert len(self.above) == len(lines)
        matched = [LEAF.fullmatch(line) for line in item.symbols]
        self.leaves = [one.groups() for one in matched if one]
        assert len(self.leaves) == len(item.symbols)
        self.children = Counter([*self.above.values(), *(parent for parent, _, _ in self.leaves)])

    def path(self, node: str) -> list[str]:
        """The node and those above it, up to its root."""
        return [node, *self.path(self.above[node])] if self.above[node] else [node]


@pytest.mark.parametrize(("breadth", "most"), BREADTHS.items())
@pytest.mark.parametrize(("named", "trees"), [("one", 1), ("two", 2)])
def test_a_root_asks_the_leaf_of_its_tree_with_as_many_neighbors(
    named: str, trees: int, breadth: str, most: int
) -> None:
    """Each tree has one such leaf, and as many levels as its breadth needs for its leaves."""
    for index, length in product(range(20), (2, 4, 8, 64, 250)):
        item = drawn("bounded/neighbors_match", length, index, trees=named, breadth=breadth)
        row = Trees(item)
        root = str(item.variables["root"])
        matching = {
            row.path(parent)[-1]: value
            for parent, count, value in row.leaves
            if count == row.blue[root]
        }
        assert len(row.blue) == trees
        assert matching.keys() == row.blue.keys()
        assert matching[root] == item.target
        assert max(count for node, count in row.children.items() if node) <= most
        levels = next(k for k in range(1, 9) if most**k * trees >= length)
        assert {len(row.path(parent)) for parent, _, _ in row.leaves} == {levels}


def test_a_leaf_of_whichever_tree_is_right_in_9_of_16_rows() -> None:
    """Who takes one of the two such leaves without following the parents sees a half, and an eighth
    of the rest.
    """
    right = 0
    for index in range(ROWS):
        item = drawn("bounded/neighbors_match", 32, index, trees="two")
        row = Trees(item)
        blue = row.blue[str(item.variables["root"])]
        right += next(value for _, count, value in row.leaves if count == blue) == item.target
    assert right / ROWS == pytest.approx(9 / 16, abs=0.05)


def test_leaves_are_the_same_whatever_the_breadth() -> None:
    """Only the parents differ."""
    rows = [
        [
            leaf[1:]
            for leaf in Trees(drawn("bounded/neighbors_match", 50, 3, breadth=breadth)).leaves
        ]
        for breadth in BREADTHS
    ]
    assert rows[0] == rows[1] == rows[2]


def test_every_tree_has_a_leaf() -> None:
    with pytest.raises(TaskError, match="2 trees have at least 2 leaves"):
        drawn("bounded/neighbors_match", 1, trees="two")


def target(name: str, request: Request) -> tuple[str, int]:
    """The right answer of a request, and the symbols of its row."""
    sample = sample_from_id(opened(name), request.sample_id)
    return str(sample.target), sample.length


@pytest.mark.parametrize("name", ["bounded/parity", "bounded/majority"])
class TestGuessing:
    """One of two answers is right by chance; the length is where 85 % are right all the same."""

    def asked(self, lab: Lab, name: str, answer: Callable[[Request], str]) -> eyechart.Run:
        axes = {axis: [value] for axis, value in usual(opened(name)).items()}
        return eyechart.run(
            name,
            lab.fake(lambda request: f"Final answer: {answer(request)}"),
            axes=axes,
            out=lab.out,
            warn=lambda _line: None,
        )

    def test_a_constant_answer_sees_nothing(self, lab: Lab, name: str) -> None:
        """A constant answer is right for half of the rows, and no length is reached."""
        constant = min(ANSWERS[name])
        run = self.asked(lab, name, lambda _request: constant)
        cells = run.cells
        assert cells["correct"].sum() / cells["n"].sum() == pytest.approx(0.5, abs=0.1)
        (seen,) = run.effective_length.values()
        assert seen is not None
        assert seen.length is not None
        assert seen.length.sign == "<"

    def test_guesses_beyond_a_length_do_not_move_it(self, lab: Lab, name: str) -> None:
        """A model that is right to 40 symbols and guesses beyond them sees to 40."""

        def answer(request: Request) -> str:
            right, length = target(name, request)
            guess = random.Random(request.sample_id).choice(sorted(ANSWERS[name]))
            return right if length <= SEES else guess

        run = self.asked(lab, name, answer)
        (seen,) = run.effective_length.values()
        assert seen is not None
        assert seen.length is not None
        assert seen.length_ci[0].length <= SEES <= seen.length_ci[1].length
        assert seen.length.length == pytest.approx(SEES, rel=0.25)
        longer = run.cells[run.cells["length_low"] > SEES]
        assert longer["accuracy"].mean() == pytest.approx(0.5, abs=0.12)
