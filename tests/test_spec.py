"""Values that the whole house shares."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from harness.spec import Cell, Condition, Line, Sample

NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,5}", fullmatch=True)
VALUES = st.dictionaries(NAMES, NAMES, max_size=4)


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
