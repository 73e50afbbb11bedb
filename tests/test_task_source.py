"""YAML is read by a few plain rules, and every part of it knows its place."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eyechart.harness.task.source import Position, parse


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5", 5),
        ("-5", -5),
        ("007", 7),
        ("5.0", 5.0),
        ("1e3", 1000.0),
        ("true", True),
        ("False", False),
        ("null", None),
        ("~", None),
        ("", None),
        ('""', ""),
        ('"5"', "5"),
        ("'true'", "true"),
        ("on", "on"),
        ("Off", "Off"),
        ("no", "no"),
        ("tRue", "tRue"),
        ("1:30", "1:30"),
        ("2024-01-01", "2024-01-01"),
        ("0x10", "0x10"),
        ("1_000", "1_000"),
        (".inf", ".inf"),
        ("[a, 1]", ["a", 1]),
        ("{a: {b: [c]}}", {"a": {"b": ["c"]}}),
        ("|\n  a\n   b\n", "a\n b\n"),
        (">-\n  a\n  b\n", "a b"),
        ("&x [1]", [1]),
    ],
)
def test_plain_values_are_read_by_the_core_rules(text: str, value: object) -> None:
    """Numbers, true, false and null are what YAML 1.2 says; anything else is text."""
    file = parse(f"key: {text}\n")
    assert file.problems == []
    assert file.data == {"key": value}
    assert isinstance(file.data, dict)
    assert type(file.data["key"]) is type(value)


def test_a_tag_is_heeded_or_refused() -> None:
    """What is tagged as text is no number."""
    file = parse("key: !!str 5\n")
    assert file.problems or file.data == {"key": "5"}


def test_places_are_counted_as_editors_do() -> None:
    """A value's place, its key's, and the nearest parent's where it is missing."""
    file = parse("a: 1\nb:\n  c: [x, y]\n")
    assert file.position(["a"]) == Position(1, 4)
    assert file.position(["b"], of_key=True) == Position(2, 1)
    assert file.position(["b", "c", 1]) == Position(3, 10)
    assert file.position(["b", "c", 7]) == Position(3, 6)
    assert file.position(["b", "zzz"]) == Position(3, 3)
    assert file.position([]) == Position(1, 1)
    assert file.position(["b", "str", "c", "int", 0]) == Position(3, 7)


def test_a_line_of_a_block_has_its_place() -> None:
    """Lines of a block are counted from the one after its mark."""
    file = parse("a: 1\ntext: |\n\n  one\n    two {{ x }}\n")
    assert file.text_position(["text"], 2) == Position(4, 3)


def test_a_key_that_comes_twice_keeps_its_first_value() -> None:
    """The second one is a problem at its own place, at any depth."""
    file = parse("a: 1\nb: {c: 2, c: 3}\na: 4\n")
    assert file.data == {"a": 1, "b": {"c": 2}}
    assert [(p.position, p.message) for p in file.problems] == [
        (Position(2, 11), "key 'c' is here twice (first on line 2)"),
        (Position(3, 1), "key 'a' is here twice (first on line 1)"),
    ]


@settings(max_examples=100, deadline=None)
@given(
    st.text(alphabet=st.sampled_from("ab:-|>[]{}&*!%@#'\"\\\n\t ,?~<é\x00\u2028😀"), max_size=40)
)
def test_any_text_is_data_or_a_problem_within_it(text: str) -> None:
    """Nothing is raised, nothing passes in silence, and each problem is at a line that is there."""
    file = parse(text)
    assert file.problems or file.data is not None or file.root is not None
    lines = len(text.splitlines())
    for problem in file.problems:
        assert 1 <= problem.position.line <= lines + 1
        assert problem.position.column >= 1
        assert "\n" not in problem.message
