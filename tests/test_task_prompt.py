"""Templates render exactly what they say, and what they cannot is an error."""

from __future__ import annotations

from pathlib import Path

import jinja2
import pytest
from jinja2.exceptions import SecurityError

from eyechart.harness.spec import Item, Separator
from eyechart.harness.spec.answer import Answer
from eyechart.harness.task import prompt

ANSWER = Answer(type="integer")


def rendered(template: str, *, separator: object = "", **variables: object) -> str:
    item = Item(["1", "0", "1"], 2, variables)
    return prompt.render(template, prompt.names(ANSWER, item, 3, {"separator": separator}))


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{{ sequence }}", "101"),
        ("{{ symbols | separated('+') }}", "1+0+1"),
        ("{{ length }} {{ phrase }}", "3 Final answer:"),
        ("<{{ name }}> & é", "<a & b> & é"),
        ("a\n{% if separator %}\nb\n{% endif %}\nc\n\n", "a\nc"),
        ("  {% if not separator %}\n  b\n  {% endif %}\nc", "  b\nc"),
    ],
)
def test_a_template_sees_its_names(template: str, text: str) -> None:
    """Nothing is escaped, a block's own line leaves no trace, and no line end is at the end."""
    assert rendered(template, name="a & b") == text


@pytest.mark.parametrize(
    ("separator", "row"),
    [
        ("", "101"),
        (", ", "1, 0, 1"),
        (Separator(inside=",", between=";", every=2), "1,0;1"),
        (Separator(inside=", ", open="[", close="]", quote="'"), "['1', '0', '1']"),
        (Separator(between=" ", every=3), "101"),
    ],
)
def test_a_row_is_written_with_its_separator(separator: object, row: str) -> None:
    """A separator is a text between neighbours, or groups, quotes and brackets."""
    assert rendered("{{ sequence }}", separator=separator) == row


def test_an_items_own_variables_win() -> None:
    """An item may bring its own written row."""
    assert rendered("{{ sequence }}", sequence="one zero one") == "one zero one"


@pytest.mark.parametrize("template", ["{{ nobody }}", "{{ sequence.nothing }}", "{{ symbols[9] }}"])
def test_an_undefined_name_is_an_error(template: str) -> None:
    """What is not there is never shown as nothing."""
    with pytest.raises(jinja2.UndefinedError):
        rendered(template)


@pytest.mark.parametrize(
    "template",
    ["{{ ''.__class__.__mro__ }}", "{{ rendered.__globals__ }}", "{{ symbols.append('1') }}"],
)
def test_a_template_cannot_leave_its_sandbox(template: str) -> None:
    """Python's innards are out of reach, and the item cannot be changed."""
    with pytest.raises(SecurityError):
        rendered(template, rendered=rendered)


def test_syntax_problems_have_their_line() -> None:
    """A template that cannot be compiled says at which line; one that can says nothing."""
    wrong = prompt.syntax_problem("a\nb {{ c\nd")
    assert wrong is not None
    assert wrong.line in {2, 3}
    assert wrong.message.startswith("bad Jinja: ")
    assert prompt.syntax_problem("{{ a }}{# b #}{% if c %}d{% endif %}") is None
    assert prompt.syntax_problem("{{ " + "(" * 5000 + ")" * 5000 + " }}") is not None


def test_names_from_outside_are_told_from_a_templates_own() -> None:
    """A name set or looped over inside, or one of Jinja's, is not undefined."""
    template = "{% set a = b %}{% for c in range(3) %}{{ a }}{{ c }}{{ d }}\n{{ d }}{% endfor %}"
    assert prompt.used_names(template) == {"b", "d"}
    assert prompt.undefined_names(template, {"b"}) == ["d"]


def test_no_file_is_read_by_a_template() -> None:
    """A template cannot include another."""
    with pytest.raises(TypeError, match="no loader"):
        rendered(f"{{% include {str(Path(__file__))!r} %}}")
