"""A prompt comes out the same each time, and within what one may take; else it is a mistake."""

from __future__ import annotations

import random
import tracemalloc
from typing import TYPE_CHECKING, Any

import pytest
from jinja2.exceptions import SecurityError

from eyechart.harness.spec import Item
from eyechart.harness.spec.answer import Answer
from eyechart.harness.task import prompt, sandbox
from eyechart.harness.task.generator import item_problem
from eyechart.harness.task.sandbox import PromptLimitError

if TYPE_CHECKING:
    from tests.conftest import Lab

SYMBOLS = ["a", "b"] * 50


def render(template: str, **names: Any) -> str:
    return prompt.render(template, {"symbols": SYMBOLS, "length": 100, **names})


DOUBLED = (
    "{{% set n = namespace(s={first}) %}}{{% for a in range(60) %}}{{% set n.s = {next} %}}"
    "{{% endfor %}}"
)
MACRO = "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(60) }}"
LOOPS = "{% for a in range(100000) %}" * 3 + "{body}" + "{% endfor %}" * 3


@pytest.mark.parametrize(
    "template",
    [
        LOOPS.replace("{body}", "{{ a }}"),
        LOOPS.replace("{body}", ""),
        LOOPS.replace("{body}", "{% set x = 1 %}"),
        "{% for a in range(100000) %}{% for b in range(100000) if b < 0 %}{% endfor %}{% endfor %}",
        MACRO,
        "{% for a in symbols recursive %}{{ loop(symbols) }}{% endfor %}",
        DOUBLED.format(first="'ab'", next="n.s ~ n.s"),
        DOUBLED.format(first="'ab'", next="n.s + n.s"),
        DOUBLED.format(first="[1]", next="n.s + n.s"),
        DOUBLED.format(first="'ab'", next="n.s|replace('a', n.s)"),
        DOUBLED.format(first="['ab']", next="[n.s, n.s]") + "{{ n.s }}",
        DOUBLED.format(first="['ab']", next="[n.s, n.s]") + "{{ n.s|upper }}",
        DOUBLED.format(first="['ab']", next="[n.s, n.s]") + "{{ 'a' ~ n.s }}",
        DOUBLED.format(first="['ab']", next="[n.s, n.s]") + "{{ '%s' % n.s }}",
        "{{ 'a\nb'|indent(999999999, true) }}",
        "{{ ('a b ' ~ length)|wordwrap(1, wrapstring=symbols|join('" + "y" * 900_000 + "')) }}",
        "{{ symbols|map('center', 1000000)|join }}{{ symbols|map('center', 1000000)|join }}",
        "{% set f = range(20000)|join('{0:9999}') %}{{ f.format(7) }}",
        "{% for a in symbols %}{% filter center(9000000) %}x{% endfilter %}{% endfor %}",
        "{% for a in symbols %}{{ 'x'|center(9000000) }}{% endfor %}",
        "{% set texts = symbols|map('amid', 1000000, 0.5, 'text', 'key')|list %}",
        "{{ 15|round(-999999999) }}",
        "{{ (1).to_bytes(9999999999) }}",
        "{{ 'a'.translate({97: 'x'}) }}",
        "{{ [[1], [2]]|sum(start=[]) }}",
        "{{ [symbols|map('upper')] }}",
        "{{ [range] }}",
        "{% set x %}{% for a in range(100000) %}" + "x" * 1000 + "{% endfor %}{% endset %}{{ x }}",
        "{{ 'a'|center(999999999) }}",
        "{{ 'a'.center(999999999) }}",
        "{{ 'a'.ljust(999999999) }}",
        "{{ '7'.zfill(999999999) }}",
        "{{ '%999999999d' % 7 }}",
        "{{ '%*d' % (999999999, 7) }}",
        "{{ '%999999999d'|format(7) }}",
        "{{ '{:>999999999}'.format(7) }}",
        "{{ '{:>{}}'.format(7, 999999999) }}",
        "{{ 'a\nb'|indent(999999999) }}",
        "{{ symbols|tojson(indent=999999999) }}",
        "{{ symbols|batch(999999999, 'x')|list }}",
        "{{ symbols|slice(999999999)|list }}",
        "{{ 'a\t'.expandtabs(999999999) }}",
        "{{ 'ab'|replace('', 'x' ~ symbols|join('"
        + "y" * 1000
        + "'))|replace('', symbols|join('"
        + "z" * 9000
        + "')) }}",
    ],
)
def test_what_takes_too_much_is_an_error(template: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Soon, and without the memory that it would take."""
    monkeypatch.setattr(sandbox, "MAX_TURNS", 100_000)
    with pytest.raises((SecurityError, RecursionError)):
        render(template)


@pytest.mark.parametrize(
    "template",
    [
        "{{ 'a'.center(99999999) }}",
        "{{ '{:>99999999}'.format(7) }}",
        "{{ '{:>{}}'.format(7, 99999999) }}",
        "{{ '{a:>99999999}'.format_map({'a': 7}) }}",
    ],
)
def test_what_takes_too_much_is_not_made_first(template: str) -> None:
    """The error comes before the hundred megabytes."""
    tracemalloc.start()
    try:
        with pytest.raises(SecurityError):
            render(template)
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()


def test_a_prompt_that_takes_long_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where its turns are few."""
    monkeypatch.setattr(sandbox, "MAX_SECONDS", -1.0)
    with pytest.raises(PromptLimitError, match="takes more than"):
        render("{% for a in symbols %}{% endfor %}")


@pytest.mark.parametrize("template", ["{{ 2 * 'a' }}", "{{ 10 ** 999 }}", "{{ range }}"])
def test_what_is_no_text_or_number_is_an_error(template: str) -> None:
    """As is what would show where the memory keeps a thing."""
    with pytest.raises(SecurityError):
        render(template)
    with pytest.raises(SecurityError):
        render("{{ symbols|map('upper') }}")


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


def test_a_template_that_takes_too_much_is_a_mistake_at_its_line(lab: Lab) -> None:
    """Said by 'check' and 'run' with its place."""
    use = "{{ '%999999999d' % length }}"
    lab.ones.write_text(lab.ones.read_text().replace("{{ sequence }}", f"{{{{ sequence }}}} {use}"))
    lab.bench("tasks", "check", lab.ones).one_line(2, f"{lab.ones}:12:", "too wide")
    assert ":12:" in lab.bench_run().err


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


def test_each_prompt_has_its_own_allowance(monkeypatch: pytest.MonkeyPatch) -> None:
    """What one takes is not missing from the next."""
    monkeypatch.setattr(sandbox, "MAX_TURNS", 150)
    for _ in range(3):
        render("{% for a in symbols %}{% endfor %}")
    with pytest.raises(PromptLimitError):
        render("{% for a in symbols %}{% endfor %}" * 2)
