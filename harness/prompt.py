"""Prompt templates: sandboxed Jinja2 in which an undefined name is an error."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

import jinja2
from jinja2 import meta, nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment

from harness.spec import Answer, Item, write_row

BUILT_IN_NAMES = ("length", "phrase", "sequence", "symbols")
"""What every prompt sees besides its axes and the item's own variables."""


@dataclass(frozen=True, slots=True)
class TemplateProblem:
    """What is wrong with a template, and in which of its lines (from 1)."""

    line: int
    message: str
    near: str = ""
    """Text of that line to point at."""


@cache
def environment() -> jinja2.Environment:
    """The one environment; made on first use."""
    env = ImmutableSandboxedEnvironment(
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # prompts are not HTML
        trim_blocks=True,
        lstrip_blocks=True,
    )
    env.filters["separated"] = write_row
    return env


@cache
def compiled(template: str) -> jinja2.Template:
    """`template`, ready to render; compiled once."""
    return environment().from_string(template)


def names(
    answer: Answer, item: Item, length: int, shown: Mapping[str, object]
) -> dict[str, object]:
    """All that a template may use; `shown` is axis -> value. An item's own variables win."""
    return {
        "length": length,
        "phrase": answer.phrase,
        "symbols": item.symbols,
        "sequence": write_row(item.symbols, shown.get("separator", "")),
        **shown,
        **item.variables,
    }


def render(template: str, names: Mapping[str, object]) -> str:
    """The prompt; raises `jinja2.TemplateError` and whatever its expressions raise."""
    return compiled(template).render(names).rstrip("\n")


def syntax_problem(template: str) -> TemplateProblem | None:
    """What stops the template from compiling; `None` if nothing does."""
    try:
        environment().from_string(template)
    except jinja2.TemplateSyntaxError as error:
        return TemplateProblem(error.lineno, f"bad Jinja: {error.message}")
    except (RecursionError, MemoryError, OverflowError):
        return TemplateProblem(1, "bad Jinja: nested too deeply")
    return None


def undefined_names(template: str, known: set[str]) -> Iterator[TemplateProblem]:
    """One problem for each name that the template uses and nobody gives."""
    tree = environment().parse(template)
    for name in sorted(meta.find_undeclared_variables(tree) - known):
        lines = [node.lineno for node in tree.find_all(nodes.Name) if node.name == name]
        yield TemplateProblem(min(lines, default=1), name, near=name)


def used_names(template: str) -> set[str]:
    """Names from outside that the template reads."""
    return meta.find_undeclared_variables(environment().parse(template))
