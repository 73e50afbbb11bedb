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

ROWS = 2_000
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


NODE = re.compile(r"node (\d+): (?:root|parent (\d+))(?:, (\d+) blue)?(?:, value (.))?")
BREADTHS = {"two": 2, "four": 4, "eight": 8}


class Tree:
    """The nodes of a row, read from its lines."""

    def __init__(self, item: Item) -> None:
        found = [NODE.fullmatch(line) for line in item.symbols]
        self.parents = {one[1]: one[2] for one in found if one}
        self.blue = {one[1]: one[3] for one in found if one}
        self.values = {one[1]: one[4] for one in found if one and one[4]}
        self.children = Counter(parent for parent in self.parents.values() if parent)
        self.lines = [one for one in found if one]

    def path(self, node: str) -> list[str]:
        """The node and those above it, up to its root."""
        above = self.parents[node]
        return [node, *self.path(above)] if above else [node]

    def matches(self, root: str) -> list[str]:
        """The leaves of any tree with as many blue neighbors as a root."""
        return [node for node in self.values if self.blue[node] == self.blue[root]]


@pytest.mark.parametrize(("breadth", "most"), BREADTHS.items())
@pytest.mark.parametrize("trees", ["one", "two"])
def test_a_root_asks_the_leaf_of_its_tree_with_as_many_neighbors(
    trees: str, breadth: str, most: int
) -> None:
    """Each tree has one such leaf, and its levels are filled from the root."""
    for index, length in product(range(20), (4, 6, 7, 62, 255)):
        item = drawn("bounded/neighbors_match", length, index, trees=trees, breadth=breadth)
        tree = Tree(item)
        assert len(tree.lines) == length == len(tree.parents)
        roots = [node for node, parent in tree.parents.items() if not parent]
        assert len(roots) == ("one", "two").index(trees) + 1
        root = str(item.variables["root"])
        matching = {tree.path(node)[-1]: node for node in tree.matches(root)}
        assert matching.keys() == {*roots}
        assert tree.values[matching[root]] == item.target
        assert tree.values.keys() == tree.parents.keys() - tree.children.keys()
        assert max(tree.children.values()) <= most
        for one in roots:
            depths = {len(tree.path(node)) for node in tree.values if tree.path(node)[-1] == one}
            assert max(depths) - min(depths) <= 1


def test_a_leaf_with_the_number_of_another_tree_is_right_in_9_of_16_rows() -> None:
    """Who takes one of the two such leaves without following the parents sees a half, and an eighth
    of the rest.
    """
    right = 0
    for index in range(ROWS):
        item = drawn("bounded/neighbors_match", 30, index, trees="two")
        tree = Tree(item)
        first = next(
            node for node in tree.parents if node in tree.matches(str(item.variables["root"]))
        )
        right += tree.values[first] == item.target
    assert right / ROWS == pytest.approx(9 / 16, abs=0.05)


def test_a_tree_has_a_root_and_a_leaf() -> None:
    with pytest.raises(TaskError, match="2 trees have at least 4 nodes"):
        drawn("bounded/neighbors_match", 3, trees="two")


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
