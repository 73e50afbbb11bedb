"""Prompt templates: sandboxed Jinja2 in which an undefined name is an error."""

from __future__ import annotations

import re
import traceback
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import jinja2
from jinja2 import meta, nodes

from eyechart.harness.spec import Item, write_row
from eyechart.harness.spec.answer import Answer
from eyechart.harness.spec.turns import NAME, NEXT_TURN, messages_of
from eyechart.harness.task import sandbox
from eyechart.harness.task.filler import amid

BUILT_IN_NAMES = ("length", NAME, "options", "phrase", "sequence", "symbols")
"""Names that every prompt can use, besides its axes and the variables of the item; `options` is
empty unless the answer is a choice."""


@dataclass(frozen=True, slots=True)
class TemplateProblem:
    """A mistake in a template."""

    line: int
    """Line of the template, from 1."""
    message: str


@cache
def environment(*, around: bool = True) -> jinja2.Environment:
    """The Jinja environment of prompts; without `around`, `amid` leaves rows as they are."""
    env = sandbox.Sandbox()
    env.filters |= {"separated": write_row, "amid": amid if around else _alone}
    return env


def _alone(rows: str, _tokens: int, depth: float | str, filler: str, key: str) -> str:
    """The filter `amid` with nothing around the rows."""
    return amid(rows, 0, depth, filler, key)


@cache
def compiled(template: str, *, around: bool = True) -> jinja2.Template:
    """The compiled `template`; each is compiled once."""
    return environment(around=around).from_string(template)


def names(
    answer: Answer, item: Item, length: int, shown: Mapping[str, object]
) -> dict[str, object]:
    """Name -> value for a template. `shown` is axis -> value. The item's variables come first."""
    return {
        "length": length,
        NAME: NEXT_TURN,
        "options": answer.shown_options,
        "phrase": answer.first_phrase,
        "symbols": item.symbols,
        "sequence": write_row(item.symbols, shown.get("separator", "")),
        **shown,
        **item.variables,
    }


def render(template: str, names: Mapping[str, object], *, around: bool = True) -> str:
    """The prompt, without `around` with no text around its rows. Raises `jinja2.TemplateError`, or
    any error of the template's expressions.
    """
    ready = compiled(template, around=around)
    env = ready.environment
    try:
        # as `Template.render`, but without merging globals: half of the time of a short prompt
        context = env.context_class(env, {**_globals(), **names}, ready.name, ready.blocks)
        return "".join(ready.root_render_func(context)).rstrip("\n")
    except Exception:  # noqa: BLE001  raised again, with the template's own lines in its traceback
        env.handle_exception()


_LABEL = re.compile(r"[A-Z]\w*(?: \w+)?:")
_WORDS = 3


def question_starts(template: str, phrase: str) -> tuple[str, ...]:
    """Beginnings of lines with which a model begins another question: the first words and the
    labels of the prompt, and what others call a question. The answer phrase is none.
    """
    lines = template.strip().split("\n")
    words = lines[0].partition("{")[0].split()[:_WORDS]
    starts = [" ".join(words)] if len(words) == _WORDS else []
    starts += [label[0] for line in lines if (label := _LABEL.match(line))]
    starts += ["Question:", "Q:"]
    return tuple(f"\n{start}" for start in dict.fromkeys(starts) if not phrase.startswith(start))


def first_line(template: str) -> re.Pattern[str] | None:
    """Finds a line break and the first line of the prompt, up to its first variable; `None` if it
    has fewer than four words of its own.
    """
    line = template.strip().partition("\n")[0].strip()
    own = line.partition("{")[0]
    if len(own.split()) <= _WORDS:
        return None
    return re.compile(
        rf"\n[ ]{{0,3}}{re.escape(own)}" + ("" if own != line else r"(?=\s*?(?:\n|\Z))")
    )


def before_question(reply: str, starts: Collection[str]) -> str:
    """`reply` up to the first of the `starts` of another question, if there is text before it."""
    text = len(reply) - len(reply.lstrip()) if starts else 0
    places = [place for start in starts if (place := reply.find(start, text)) >= 0]
    return reply[: min(places)] if places else reply


def empty_turn(text: str) -> str | None:
    """Why a prompt in turns cannot be sent; `None` if it can."""
    for number, message in enumerate(messages_of(text), start=1):
        if not message.strip():
            return f"message {number} of the prompt is empty; write something before {NAME!r}"
    return None


def utf8_problem(part: str, text: str) -> str | None:
    """Why `text` cannot be encoded, `None` if it can; `part` names the text in the message."""
    if text.isascii():
        return None
    try:
        text.encode()
    except UnicodeEncodeError as error:
        surrogate = text[error.start]
        return (
            f"{part} has the lone surrogate {surrogate!r}, which no request can hold; leave it out"
        )
    return None


@cache
def _globals() -> dict[str, Any]:
    return dict(environment().globals)


@cache
def syntax_problem(template: str) -> TemplateProblem | None:
    """Why the template does not compile; `None` if it does."""
    env = environment()
    try:
        for node in env.parse(template).find_all((nodes.Filter, nodes.Test)):
            assert isinstance(node, nodes.Filter | nodes.Test)
            if node.name in sandbox.REMOVED:
                message = f"{node.name!r} draws anew each time; draw in the generator from its rng"
                return TemplateProblem(node.lineno, message)
            known = env.filters if isinstance(node, nodes.Filter) else env.tests
            if node.name not in known:  # Jinja reports it only when it renders the node
                kind = type(node).__name__.lower()
                return TemplateProblem(node.lineno, f"bad Jinja: No {kind} named {node.name!r}.")
        compiled(template)
    except jinja2.TemplateSyntaxError as error:
        return TemplateProblem(error.lineno, f"bad Jinja: {error.message}")
    except (RecursionError, MemoryError, OverflowError):
        return TemplateProblem(1, "bad Jinja: nested too deeply")
    return None


def failing_line(error: BaseException) -> int:
    """Line of the template, from 1, at which rendering failed with `error`."""
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == "<template>" and frame.lineno
    ]
    return lines[-1] if lines else 1


def undefined_names(template: str, known: Collection[str]) -> list[str]:
    """The names that the template uses and that are not in `known`, sorted."""
    return sorted(used_names(template).difference(known))


@cache
def used_names(template: str) -> frozenset[str]:
    """Names read and not defined. Checks of a task ask for them with each item that they render."""
    return frozenset(meta.find_undeclared_variables(environment().parse(template)))
