"""The sandbox in which prompts are rendered.

A prompt must come out the same each time and come out at all, whoever wrote its template. So
nothing in here draws, nothing is shown that has no text of its own, and one rendering has an
allowance of loop turns, calls, characters and seconds.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from typing import Any

import jinja2
from jinja2 import nodes, pass_context
from jinja2.exceptions import SecurityError
from jinja2.runtime import Context, Undefined
from jinja2.sandbox import ImmutableSandboxedEnvironment

REMOVED = ("random", "lipsum")
"""Names of Jinja's that draw anew each time."""
MAX_TURNS = 3_000_000
"""Turns of loops, calls and filters in one prompt."""
MAX_CHARS = 50_000_000
"""Characters that one prompt may write, and that one text in it may have."""
MAX_SECONDS = 30.0
_LARGEST_OPERAND = 10**9
_LARGEST_POWER = 20
_WIDE = re.compile(r"\d{5}|\*|\{[^{}]*\{")
"""In a format: a width of five digits, or one that comes from elsewhere."""


class PromptLimitError(SecurityError):
    """A prompt that takes more than its allowance."""


class _Allowance:
    """What is left for the prompt that is being rendered."""

    def __init__(self) -> None:
        self.start()

    def start(self) -> None:
        self.turns = MAX_TURNS
        self.chars = MAX_CHARS
        self.ends_s = time.monotonic() + MAX_SECONDS

    def turn(self, chars: int = 0) -> None:
        """Raises `PromptLimitError` where a turn that writes `chars` is one too many."""
        self.turns -= 1
        if self.turns < 0:
            raise PromptLimitError(f"more than {MAX_TURNS:,} turns of loops, calls and filters")
        if time.monotonic() > self.ends_s:
            raise PromptLimitError(f"it takes more than {MAX_SECONDS:.0f} s")
        self.write(chars)

    def write(self, chars: int) -> None:
        """Raises it where so many characters are too many."""
        self.chars -= chars
        if self.chars < 0:
            raise PromptLimitError(f"it writes more than {MAX_CHARS:,} characters")


_LEFT = _Allowance()
start = _LEFT.start
"""Gives a new allowance to the prompt that is rendered next."""


def _size(value: object) -> int:
    """Characters of a text, items of a list; 1 of anything else."""
    return len(value) if isinstance(value, str | list | tuple | dict) else 1


def _joined_size(parts: Any, separator: object = "", *_: object) -> int:
    if isinstance(parts, str):
        parts, separator = separator, parts
    known = parts if isinstance(parts, list | tuple | str) else ()
    return sum(map(_size, known)) + len(known) * _size(separator)


def _replaced_size(text: Any, old: Any = "", new: Any = "", *_: object) -> int:
    text, old = str(text), str(old)
    return len(text) + (text.count(old) if old else len(text) + 1) * len(str(new))


def _wide(text: Any, width: Any = 80, *_: object) -> int:
    return _size(text) + (abs(width) if isinstance(width, int) else MAX_CHARS)


def _lines_times(text: Any, width: Any = 4, *_: object) -> int:
    number = width if isinstance(width, int) else _size(width)
    return (str(text).count("\n") + 1) * number + _size(text)


def _formatted(text: Any, *values: object) -> int:
    return MAX_CHARS + 1 if _WIDE.search(str(text)) else sum(map(_size, (text, *values)))


_GROWING: Mapping[str, Callable[..., int]] = {
    **dict.fromkeys(("center", "ljust", "rjust", "zfill", "batch", "slice"), _wide),
    **dict.fromkeys(("format", "format_map"), _formatted),
    "join": _joined_size,
    "replace": _replaced_size,
    "indent": _lines_times,
    "expandtabs": lambda text, size=8: _size(text) + str(text).count("\t") * abs(size),
    "wordwrap": lambda text, *given: _replaced_size(text, "", given[2] if given[2:] else ""),
    "tojson": lambda value, indent=0: _lines_times(str(value).replace(",", "\n"), indent or 0),
}
"""Filters and methods whose result may be much larger than what they are given -> its size."""


def _check_size(name: str, given: tuple[Any, ...], named: Mapping[str, Any]) -> None:
    """Raises `PromptLimitError` where the filter or method `name` would make too much."""
    _LEFT.turn()
    if (size := _GROWING.get(name)) is None:
        return
    try:
        made = size(*given, *named.values())
    except TypeError:  # what it is given does not fit, which it says itself
        return
    if made > MAX_CHARS:
        raise PromptLimitError(f"{name!r} would make a text that is too long, or a format too wide")


@pass_context
def _turn(_context: Context, value: Any, chars: int) -> Any:
    """A filter that each turn of a loop passes; `chars` is what the turn writes of the template."""
    _LEFT.turn(chars)
    return value


@pass_context
def _joined(_context: Context, parts: list[Any]) -> str:
    """What `~` does."""
    texts = [str(part) for part in parts]
    if sum(map(len, texts)) > MAX_CHARS:
        raise PromptLimitError("'~' would make a text that is too long")
    return "".join(texts)


def _shown(value: Any) -> Any:
    """A value that is printed."""
    if callable(value) or hasattr(value, "__next__"):
        if isinstance(value, Undefined):
            return value  # which says itself what is missing
        raise SecurityError(
            "a function, or a row that is made on the way, has no text: add '|list'"
        )
    _LEFT.write(len(value) if isinstance(value, str) else len(str(value)))
    return value


class Sandbox(ImmutableSandboxedEnvironment):
    """Jinja's sandbox, in which all that loops or grows is counted."""

    intercepted_binops = frozenset({"+", "%", "*", "**"})

    def __init__(self) -> None:
        super().__init__(
            undefined=jinja2.StrictUndefined,
            autoescape=False,  # prompts are not HTML
            trim_blocks=True,
            lstrip_blocks=True,
            finalize=_shown,
        )
        for name in REMOVED:
            self.filters.pop(name, None)
            self.globals.pop(name, None)
        for name, function in self.filters.items():
            self.filters[name] = _counted(name, function)
        self.filters |= {"_turn": _turn, "_joined": _joined}

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """Raises `SecurityError` where the result may fill the memory."""
        numbers = isinstance(left, int | float) and isinstance(right, int | float)
        if operator == "%" and isinstance(left, str):
            _check_size("format", (left, right), {})
        elif operator == "+" and not numbers:
            if _size(left) + _size(right) > MAX_CHARS:
                raise PromptLimitError("'+' would make a text that is too long")
        elif operator in ("*", "**"):
            small = numbers and max(abs(left), abs(right)) <= _LARGEST_OPERAND
            if not small or (operator == "**" and abs(right) > _LARGEST_POWER):
                raise SecurityError(f"{operator} is for small numbers here")
        return super().call_binop(context, operator, left, right)

    def call(self, context: Context, obj: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Counts calls; a method of a text must not make too much."""
        text = getattr(obj, "__self__", None)
        given = (text, *args) if isinstance(text, str) else args
        _check_size(getattr(obj, "__name__", ""), given, kwargs)
        return super().call(context, obj, *args, **kwargs)

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        """The template, with a count in every turn of a loop and in every macro."""
        template = super()._parse(source, name, filename)
        for node in list(template.find_all((nodes.For, nodes.Macro, nodes.CallBlock))):
            assert isinstance(node, nodes.For | nodes.Macro | nodes.CallBlock)
            chars = sum(len(part.data) for part in node.find_all(nodes.TemplateData))
            count = _filtered("_turn", nodes.Const(True), nodes.Const(chars), line=node.lineno)  # noqa: FBT003
            if isinstance(node, nodes.For) and node.test is not None:
                node.test = nodes.And(count, node.test, lineno=node.lineno)
            node.body.insert(0, nodes.ExprStmt(count, lineno=node.lineno))
        return _Joins().visit(template)  # type: ignore[no-any-return]  # Jinja's visitors have no types


class _Joins(jinja2.visitor.NodeTransformer):
    """Puts a filter in the place of each `~`."""

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:  # noqa: N802  Jinja's name
        self.generic_visit(node)
        return _filtered("_joined", nodes.List(node.nodes, lineno=node.lineno), line=node.lineno)


def _filtered(name: str, value: nodes.Expr, *given: nodes.Expr, line: int) -> nodes.Filter:
    return nodes.Filter(value, name, list(given), [], None, None, lineno=line)


def _counted(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A filter that checks first how large its result may be."""
    passed = hasattr(function, "jinja_pass_arg")

    def filtered(*given: Any, **named: Any) -> Any:
        _check_size(name, given[1:] if passed else given, named)
        return function(*given, **named)

    for mark in ("jinja_pass_arg", "jinja_async_variant"):
        if hasattr(function, mark):
            setattr(filtered, mark, getattr(function, mark))
    return filtered
