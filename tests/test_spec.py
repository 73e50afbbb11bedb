"""Values that the whole house shares."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eyechart.harness.spec import MAX_LENGTH, Cell, Condition, Line, Sample, line_start, lines_of
from eyechart.harness.spec.dollars import at_most_text, dollars_text
from eyechart.harness.spec.duration import duration

NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,5}", fullmatch=True)
VALUES = st.dictionaries(NAMES, NAMES, max_size=4)


@settings(deadline=None)
@given(VALUES)
def test_a_condition_is_a_value(values: dict[str, str]) -> None:
    """Equal where its values are, in whatever order; of no other type than a mapping."""
    condition = Condition(values)
    turned = Condition(reversed(values.items()))
    assert condition == turned == Condition(condition)
    assert hash(condition) == hash(turned)
    assert {condition: 1}[turned] == 1
    assert condition == values
    assert condition != values | {"another_axis": "x"}
    assert condition != condition.label
    assert dict(condition) == values
    assert (len(condition), list(condition)) == (len(values), list(values))


@given(VALUES)
def test_a_label_of_a_file_is_read(values: dict[str, str]) -> None:
    """It says the values in the order of the axes."""
    condition = Condition(values)
    again = Condition.read(condition.label)
    assert (again, again.label) == (condition, condition.label)


def test_labels() -> None:
    """As they stand in files."""
    assert Condition().label == "-"
    assert Condition({"separator": "comma", "hint": "on"}).label == "separator=comma,hint=on"


def test_conditions_beside_a_condition() -> None:
    """With another value, without an axis, on some axes alone; the condition stays what it is."""
    condition = Condition({"separator": "comma", "hint": "on"})
    assert condition.with_value("hint", "off") == {"separator": "comma", "hint": "off"}
    assert condition.without("hint") == {"separator": "comma"}
    assert condition.only(["hint"]) == {"hint": "on"}
    assert condition == {"separator": "comma", "hint": "on"}
    assert repr(condition) == "Condition({'separator': 'comma', 'hint': 'on'})"


def test_a_cell_has_the_key_of_its_samples() -> None:
    """Condition and line."""
    condition, line = Condition({"hint": "on"}), Line(5, 4, 6)
    assert Cell(condition, line, 3).key == (condition, line)
    assert Sample("id", condition, line, 6, 0, "prompt", 1).key == (condition, line)
    assert Cell(condition, line, 3).length == 5


STARTS = st.integers(0, 2**64 - 1)
LENGTHS = st.lists(st.integers(1, MAX_LENGTH), min_size=1, max_size=20)


@given(LENGTHS)
def test_bands_meet_and_leave_no_length_out(lengths: list[int]) -> None:
    """Each begins after the one before, contains its nominal length, and is where neighbours are
    nearest by ratio.
    """
    lines = lines_of(lengths, "bands")
    assert [line.length for line in lines] == sorted(set(lengths))
    assert lines == sorted(lines)
    assert (lines[0].low, lines[-1].high) == (min(lengths), max(lengths))
    assert all(line.low <= line.length <= line.high for line in lines)
    for shorter, longer in pairwise(lines):
        assert longer.low == shorter.high + 1
        product = shorter.length * longer.length
        assert shorter.high**2 <= product < longer.low**2


def test_bands_by_hand() -> None:
    """Neighbours without a length between them are exact lines, and so is a line alone."""
    assert [str(line) for line in lines_of([500, 5, 50, 5], "bands")] == [
        *("5 (5–15)", "50 (16–158)", "500 (159–500)")
    ]
    assert lines_of([7, 5, 6], "bands") == lines_of([5, 6, 7], "none")
    assert lines_of([5, 6, 7], "none") == [Line.exact(5), Line.exact(6), Line.exact(7)]
    assert lines_of([50], "bands") == [Line.exact(50)]
    assert lines_of([], "bands") == []
    assert (str(Line.exact(50)), Line.exact(50).is_exact) == ("50", True)
    assert (str(Line(50, 41, 61)), Line(50, 41, 61).is_exact) == ("50 (41–61)", False)


@given(STARTS, st.integers(1, 300), st.integers(1, 400), st.data())
def test_lengths_are_spread_evenly(start: int, width: int, n: int, data: st.DataObject) -> None:
    """Of the first n samples, every part of the band has its share, give or take three."""
    line = Line(1000, 1000, 1000 + width - 1)
    lengths = [line.length_of(index, start) for index in range(n)]
    assert all(line.low <= length <= line.high for length in lengths)
    first = data.draw(st.integers(0, width - 1))
    last = data.draw(st.integers(first, width - 1))
    inside = sum(first <= length - line.low <= last for length in lengths)
    assert abs(inside - n * (last - first + 1) / width) < 3


@given(STARTS, st.integers(0, 10**6), st.integers(1, MAX_LENGTH))
def test_a_length_is_computed_exactly(start: int, index: int, width: int) -> None:
    """It is the rule of the golden ratio in whole numbers, unless a border is nearer than the
    rounding of the ratio to 2^-64.
    """
    golden = Fraction(math.isqrt(5 * 10**80) - 10**40, 2 * 10**40)
    place = (Fraction(start, 2**64) + index * golden) % 1 * width
    rounding = Fraction((index + 1) * width, 2**63)
    if rounding < place % 1 < 1 - rounding:
        assert Line(width, 1, width).length_of(index, start) == 1 + math.floor(place)


def test_lengths_are_the_same_in_every_process() -> None:
    """They follow from seed and task alone."""
    line = Line(50, 41, 61)
    start = line_start(0, "counting/ones")
    assert [line.length_of(index, start) for index in range(8)] == [48, 61, 53, 45, 58, 49, 41, 54]
    assert start not in (line_start(1, "counting/ones"), line_start(0, "counting/sum"))
    assert {Line.exact(7).length_of(index, start) for index in range(99)} == {7}


@pytest.mark.parametrize(
    ("dollars", "text"),
    [
        *((0, "$0.00"), (0.000012, "$0.000012"), (0.00123, "$0.0012"), (0.065, "$0.065")),
        *((0.0996, "$0.10"), (0.1, "$0.10"), (2.4, "$2.40"), (9, "$9.00"), (12.345, "$12.35")),
        *((13, "$13"), (1234.5, "$1,234.50"), (600, "$600")),
    ],
)
def test_money_is_written_in_one_way(dollars: float, text: str) -> None:
    """With cents, and two digits of less than ten of them."""
    assert dollars_text(dollars) == text


def test_a_limit_in_dollars_is_rounded_up() -> None:
    """To cents; an error of computation does not count."""
    assert [at_most_text(one) for one in (0.001, 0.011, 0.07, 3.0)] == [
        *("$0.01", "$0.02", "$0.07", "$3.00"),
    ]


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (7.6, "8 s"),
        (200, "3 min"),
        (9_000, "2.5 h"),
        (99_999, "27.8 h"),
        (345_600, "4 days"),
        (2_300_521_744, "73 years"),
    ],
)
def test_durations_are_said_in_a_readable_unit(seconds: float, said: str) -> None:
    """The unit in which the number is small."""
    assert duration(seconds) == said
