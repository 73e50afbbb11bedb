"""The sandbox in which prompts are rendered.

A prompt must come out the same each time and come out at all, whoever wrote its template. So
nothing in here draws, nothing is shown that has no text of its own, and one rendering has an
allowance of loop turns, calls, characters and seconds.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeGuard

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


def _text_size(value: object) -> int:
    """Characters of a value as text, roughly.

    Raises:
        PromptLimitError: it has more than a prompt may have.
        SecurityError: it holds what has no text of its own.
    """
    if isinstance(value, str):
        return len(value)
    size, ahead = 0, [value]
    for _ in range(MAX_TURNS):
        if not ahead:
            return size
        part = ahead.pop()
        if isinstance(part, dict):
            ahead += [*part, *part.values()]
        elif isinstance(part, list | tuple):
            ahead += part
        elif isinstance(part, set | frozenset):
            raise SecurityError("a set has no order of its own: add '|sort'")
        elif (callable(part) or hasattr(part, "__next__")) and not isinstance(part, Undefined):
            raise SecurityError(
                "a function, or a row that is not made yet, has no text: add '|list'"
            )
        size += len(part) if isinstance(part, str) else part.bit_length() if _is_whole(part) else 4
        if size > MAX_CHARS or len(ahead) > MAX_CHARS:
            break
    raise PromptLimitError(f"a text of more than {MAX_CHARS:,} characters")


def _is_whole(value: object) -> TypeGuard[int]:
    return isinstance(value, int)


def _joined_size(parts: Any, separator: Any = "", *_: Any, **named: Any) -> int:
    if isinstance(parts, str) and not isinstance(separator, str):  # the method, not the filter
        parts, separator = separator, parts
    return _text_size(parts) + len(parts) * _text_size(named.get("d", separator))


def _replaced_size(text: Any, old: Any = "", new: Any = "", *_: Any, **named: Any) -> int:
    text, old = str(text), str(named.get("old", old))
    number = text.count(old) if old else len(text) + 1
    return len(text) + number * _text_size(str(named.get("new", new)))


def _wrapped_size(text: Any, *given: Any, **named: Any) -> int:
    end = named.get("wrapstring", given[2] if given[2:] else None) or ""
    return _replaced_size(text, "", end)


def _wide(text: Any, *given: Any, **named: Any) -> int:
    numbers = [one for one in (*given, *named.values()) if _is_whole(one)]
    fill = [len(one) for one in (*given, *named.values()) if isinstance(one, str)]
    return _text_size(text) + max(map(abs, numbers), default=80) * max(fill, default=1)


def _indented_size(text: Any, *given: Any, **named: Any) -> int:
    by = [abs(one) if _is_whole(one) else len(str(one)) for one in (*given, *named.values())]
    return _text_size(text) + (str(text).count("\n") + 1) * max(by, default=4)


def _json_size(value: Any, *given: Any, **named: Any) -> int:
    by = [abs(one) if _is_whole(one) else 0 for one in (*given, *named.values())]
    return 8 * _text_size(value) * (1 + max(by, default=0))


def _formatted_size(text: Any, *values: Any, **named: Any) -> int:
    given = [_text_size(value) for value in (*values, *named.values())]
    if _WIDE.search(str(text)):
        return MAX_CHARS + 1
    fields = str(text).count("{") + str(text).count("%")
    return len(str(text)) + fields * (_WIDEST + max(given, default=0))


_WIDEST = 9_999
_GROWING: Mapping[str, Callable[..., int]] = {
    **dict.fromkeys(("center", "ljust", "rjust", "zfill", "expandtabs", "batch", "slice"), _wide),
    **dict.fromkeys(("format", "format_map"), _formatted_size),
    "join": _joined_size,
    "replace": _replaced_size,
    "wordwrap": _wrapped_size,
    "indent": _indented_size,
    "tojson": _json_size,
}
"""Filters and methods whose result may be much larger than what they are given -> its size."""
_NO_TEXT = frozenset(
    {
        *("length", "count", "first", "last", "list", "map", "select", "reject", "selectattr"),
        *("rejectattr", "sum", "min", "max", "sort", "unique", "reverse", "groupby", "items"),
        *("dictsort", "attr", "default", "d", "abs", "int", "float", "round"),
    }
)
"""Filters that make no text of what they are given."""
_REFUSED = frozenset({"translate", "maketrans", "encode"})
"""Methods of texts that no prompt needs."""


def _check_size(name: str, given: Sequence[Any], named: Mapping[str, Any]) -> None:
    """Raises `PromptLimitError` where the filter or method `name` would make too much."""
    _LEFT.turn()
    if name in _GROWING:
        try:
            made = _GROWING[name](*given, **named)
        except TypeError as error:
            raise SecurityError(f"{name!r} is given what it does not take") from error
        if made > MAX_CHARS:
            raise PromptLimitError(f"{name!r} would make a text too long, or has too wide a format")
    elif name == "round" and any(
        abs(one) > _MOST_PLACES for one in (*given[1:], *named.values()) if _is_whole(one)
    ):
        raise PromptLimitError("'round' is for a hundred places at most")
    elif name == "sum" and not all(
        isinstance(one, int | float | str) for one in (*given[1:], *named.values())
    ):
        raise SecurityError("'sum' adds numbers")
    elif name not in _NO_TEXT and given:
        _text_size(given[0])


_MOST_PLACES = 100


@pass_context
def _turn(_context: Context, value: Any, chars: int) -> Any:
    """A filter that each turn of a loop passes; `chars` is what the turn writes of the template."""
    _LEFT.turn(chars)
    return value


@pass_context
def _joined(_context: Context, parts: list[Any]) -> str:
    """What `~` does."""
    _text_size(parts)
    return "".join(map(str, parts))


def _shown(value: Any) -> Any:
    """A value that is printed."""
    if not isinstance(value, Undefined):  # which says itself what is missing
        _LEFT.write(_text_size(value))
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
        elif operator == "+" and isinstance(left, str | list | tuple):
            if len(left) + (len(right) if isinstance(right, type(left)) else 0) > MAX_CHARS:
                raise PromptLimitError("'+' would make a text or a list that is too long")
        elif operator in ("*", "**"):
            small = numbers and max(abs(left), abs(right)) <= _LARGEST_OPERAND
            if not small or (operator == "**" and abs(right) > _LARGEST_POWER):
                raise SecurityError(f"{operator} is for small numbers here")
        return super().call_binop(context, operator, left, right)

    def call(self, context: Context, obj: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Counts calls; a method of a text must not make too much, and none draws."""
        method = getattr(obj, "__wrapped__", obj)  # Jinja wraps `format` of texts
        owner, name = getattr(method, "__self__", None), getattr(obj, "__name__", "")
        if isinstance(owner, int | float | bytes | random.Random) or name in _REFUSED:
            raise SecurityError(f"{name!r} is not for prompts")
        given = [_made(one) for one in args]
        _check_size(name, [owner, *given] if isinstance(owner, str) else given, kwargs)
        return super().call(context, obj, *given, **kwargs)

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


def _made(value: Any) -> Any:
    """A row that is made on the way, as the list that it makes."""
    return list(value) if hasattr(value, "__next__") else value


def _counted(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A filter that checks first how large its result may be."""
    passed = hasattr(function, "jinja_pass_arg")

    def filtered(*given: Any, **named: Any) -> Any:
        values = [_made(one) for one in given]
        _check_size(name, values[1:] if passed else values, named)
        return function(*values, **named)

    for mark in ("jinja_pass_arg", "jinja_async_variant"):
        if hasattr(function, mark):
            setattr(filtered, mark, getattr(function, mark))
    return filtered
