"""A prompt comes out the same each time; else it is a mistake."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest
from jinja2.exceptions import SecurityError, UndefinedError

from eyechart.harness.spec import Item
from eyechart.harness.spec.answer import Answer
from eyechart.harness.task import prompt, sandbox
from eyechart.harness.task.generator import item_problem

if TYPE_CHECKING:
    from tests.conftest import Lab

SYMBOLS = ["a", "b"] * 50


def render(template: str, **names: Any) -> str:
    return prompt.render(template, {"symbols": SYMBOLS, "length": 100, **names})


@pytest.mark.parametrize(
    "template", ["{{ range }}", "{{ [range] }}", "{{ symbols|map('upper') }}", "{{ {'a': odd} }}"]
)
def test_what_has_no_fixed_text_is_an_error(template: str) -> None:
    """Such as what would show where the memory keeps a thing."""
    with pytest.raises(SecurityError):
        render(template, odd={"a", "b"})


@pytest.mark.parametrize(
    "template", ["{{ symbols.__class__ }}", "{{ render.__globals__ }}", "{{ symbols.append('c') }}"]
)
def test_a_template_reaches_no_python(template: str) -> None:
    """Neither the classes behind its values, nor the rows of others."""
    with pytest.raises((SecurityError, UndefinedError)):
        render(template, render=render)


def test_a_filter_that_is_not_reached_is_a_mistake_too(lab: Lab) -> None:
    """In a branch that no trial takes."""
    for use, said in (("random", "draws anew"), ("randum", "No filter named")):
        branch = f"{{% if length > 1000 %}}{{{{ symbols|{use} }}}}{{% endif %}}"
        text = lab.plain.read_text().replace("{{ sequence }}", f"{{{{ sequence }}}}{branch}")
        path = lab.plain.with_name(f"{use}.yaml")
        path.write_text(text)
        lab.bench("tasks", "check", path).one_line(2, f"{path}:8:", said)


@pytest.mark.parametrize("value", [{"a", "b"}, frozenset("a"), random.Random(1)])
def test_no_variable_is_another_each_time(value: object) -> None:
    """A set has no order, and a source of chance is none of the prompt's."""
    item = Item(["a"], 1, {"x": value})
    assert "differs each time" in str(item_problem(item, 1, Answer(type="integer")))


@pytest.mark.parametrize("name", sandbox.REMOVED)
def test_nothing_draws(lab: Lab, name: str) -> None:
    """A filter or function that does is a mistake at its line, in 'check' and in 'run'."""
    use = {"random": "{{ symbols|random }}", "lipsum": "{{ lipsum() }}"}[name]
    lab.ones.write_text(lab.ones.read_text().replace("{{ sequence }}", f"{{{{ sequence }}}} {use}"))
    lab.bench("tasks", "check", lab.ones).one_line(2, f"{lab.ones}:12:", repr(name))
    done = lab.bench_run()
    assert (done.code, done.out) == (2, "")
    assert ":12:" in done.err


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{% for a in symbols %}{{ a }}{{ loop.index }}{{ loop.last }} {% endfor %}", None),
        ("{{ symbols|join(',') }}", ",".join(SYMBOLS)),
        ("{{ 'a' ~ 1 ~ 'b' }}", "a1b"),
        ("{{ 'a' + 'b' }}{{ 1 + 2 }}{{ 7 % 4 }}", "ab33"),
        ("{{ '%03d' % 7 }} {{ '%s-%s'|format(1, 2) }} {{ '{:>5}'.format(7) }}", "007 1-2     7"),
        ("{{ 'a'|center(5) }}|{{ 'a'.ljust(3) }}|{{ '7'.zfill(3) }}", "  a  |a  |007"),
        ("{{ 'a b'|replace(' ', '_') }}{{ 'x'|upper }}{{ symbols|length }}", "a_bX100"),
        ("{% macro m(a) %}<{{ a }}>{% endmacro %}{{ m(1) }}{{ m(2) }}", "<1><2>"),
        ("{% for a in symbols if loop is defined %}x{% endfor %}", ""),
        ("{% for a in [1, 2, 3] if a > 1 %}{{ a }}{% else %}no{% endfor %}", "23"),
        ("{{ symbols|map('upper')|list|first }}{{ [1, 2]|tojson }}", "A[1, 2]"),
    ],
)
def test_what_templates_do_goes_on(template: str, text: str | None) -> None:
    """Loops, filters, methods, formats and macros of ordinary size."""
    said = render(template)
    if text is None:
        text = "".join(f"{a}{n}{n == 100} " for n, a in enumerate(SYMBOLS, start=1)).rstrip("\n")
    assert said == text


def test_a_million_symbols_fit() -> None:
    """The longest row there is, in a loop and as a text."""
    row = ["ab"] * 1_000_000
    assert len(render("{% for a in symbols %}{{ a }},{% endfor %}", symbols=row)) == 3_000_000
    assert len(render("{{ symbols|join(', ') }}", symbols=row)) == 3_999_998
