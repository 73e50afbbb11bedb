"""The sandbox in which prompts are rendered.

Rendering must give the same prompt each time, and must end, for any template. So the sandbox has no
random functions, refuses values without a fixed text, and limits the loop turns, calls, characters
and seconds of each prompt.
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
"""Random functions and filters of Jinja."""
MAX_TURNS = 3_000_000
"""Most loop turns, calls and filters in one prompt, together."""
MAX_CHARS = 50_000_000
"""Most characters of one prompt, and of one text in it."""
MAX_SECONDS = 30.0
_LARGEST_OPERAND = 10**9
_LARGEST_POWER = 20
_WIDE = re.compile(r"\d{5}|\*|\{[^{}]*\{")
"""In a format string: a width of five digits, or a width taken from an argument."""


class PromptLimitError(SecurityError):
    """A prompt that exceeds a limit of the sandbox."""


class _Allowance:
    """The turns, characters and seconds that remain for the prompt being rendered."""

    def __init__(self) -> None:
        self.start()

    def start(self) -> None:
        self.turns = MAX_TURNS
        self.chars = MAX_CHARS
        self.ends_s = time.monotonic() + MAX_SECONDS

    def turn(self, chars: int = 0) -> None:
        """Counts one turn that writes `chars`; raises `PromptLimitError` beyond a limit."""
        self.turns -= 1
        if self.turns < 0:
            raise PromptLimitError(f"more than {MAX_TURNS:,} loop steps, calls and filters")
        if time.monotonic() > self.ends_s:
            raise PromptLimitError(f"it takes more than {MAX_SECONDS:.0f} s")
        self.write(chars)

    def write(self, chars: int) -> None:
        """Counts `chars` characters; raises `PromptLimitError` beyond the limit."""
        self.chars -= chars
        if self.chars < 0:
            raise PromptLimitError(f"it writes more than {MAX_CHARS:,} characters")


_LEFT = _Allowance()
start = _LEFT.start
"""Resets the allowance; called before each prompt."""
write = _LEFT.write
"""Counts characters that a filter of ours makes."""


def _text_size(value: object) -> int:
    """Approximate number of characters of a value as text.

    Raises:
        PromptLimitError: the text would be longer than a prompt may be.
        SecurityError: the value has a part without a fixed text: a set, function or iterator.
    """
    if isinstance(value, str):
        return len(value)
    size, parts = 0, [value]
    for _ in range(MAX_TURNS):
        if not parts:
            return size
        part = parts.pop()
        if isinstance(part, dict):
            parts += [*part, *part.values()]
        elif isinstance(part, list | tuple):
            parts += part
        elif isinstance(part, set | frozenset):
            raise SecurityError("a set has no order of its own: add '|sort'")
        elif (callable(part) or hasattr(part, "__next__")) and not isinstance(part, Undefined):
            raise SecurityError(
                "a function, or a row that is not made yet, has no text: add '|list'"
            )
        size += len(part) if isinstance(part, str) else part.bit_length() if _is_whole(part) else 4
        if size > MAX_CHARS or len(parts) > MAX_CHARS:
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
    values = (*given, *named.values())
    numbers = [value for value in values if _is_whole(value)]
    fill = [len(value) for value in values if isinstance(value, str)]
    return _text_size(text) + max(map(abs, numbers), default=80) * max(fill, default=1)


def _indented_size(text: Any, *given: Any, **named: Any) -> int:
    values = (*given, *named.values())
    widths = [abs(value) if _is_whole(value) else len(str(value)) for value in values]
    return _text_size(text) + (str(text).count("\n") + 1) * max(widths, default=4)


def _json_size(value: Any, *given: Any, **named: Any) -> int:
    indents = [abs(indent) if _is_whole(indent) else 0 for indent in (*given, *named.values())]
    return 8 * _text_size(value) * (1 + max(indents, default=0))


def _formatted_size(text: Any, *values: Any, **named: Any) -> int:
    sizes = [_text_size(value) for value in (*values, *named.values())]
    if _WIDE.search(str(text)):
        return MAX_CHARS + 1
    fields = str(text).count("{") + str(text).count("%")
    return len(str(text)) + fields * (_WIDEST + max(sizes, default=0))


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
"""Filter or method whose result may be much larger than its arguments -> that result's size."""
_NO_TEXT = frozenset(
    {
        *("length", "count", "first", "last", "list", "map", "select", "reject", "selectattr"),
        *("rejectattr", "sum", "min", "max", "sort", "unique", "reverse", "groupby", "items"),
        *("dictsort", "attr", "default", "d", "abs", "int", "float", "round"),
    }
)
"""Filters that do not turn their arguments into text."""
_REFUSED = frozenset({"translate", "maketrans", "encode"})
"""Methods of texts that prompts do not need."""


def _check_size(name: str, given: Sequence[Any], named: Mapping[str, Any]) -> None:
    """Raises `PromptLimitError` if the result of the filter or method `name` would be too large."""
    _LEFT.turn()
    if name in _GROWING:
        try:
            size = _GROWING[name](*given, **named)
        except TypeError as error:
            raise SecurityError(f"{name!r} got arguments that it does not take") from error
        if size > MAX_CHARS:
            raise PromptLimitError(f"{name!r} would make a text too long, or has too wide a format")
    elif name == "round" and any(
        abs(value) > _MOST_PLACES for value in (*given[1:], *named.values()) if _is_whole(value)
    ):
        raise PromptLimitError("'round' takes at most 100 places")
    elif name == "sum" and not all(
        isinstance(value, int | float | str) for value in (*given[1:], *named.values())
    ):
        raise SecurityError("'sum' adds numbers")
    elif name not in _NO_TEXT and given:
        _text_size(given[0])


_MOST_PLACES = 100


@pass_context
def _turn(_context: Context, value: Any, chars: int) -> Any:
    """Filter inserted into each loop turn; `chars` is the length of the template text in it."""
    _LEFT.turn(chars)
    return value


@pass_context
def _joined(_context: Context, parts: list[Any]) -> str:
    """The operator `~`, with a limit on the size of its result."""
    _text_size(parts)
    return "".join(map(str, parts))


@pass_context  # or Jinja would call it for a constant once, at compile time
def _shown(_context: Context, value: Any) -> Any:
    """Counts the characters of a printed value, and returns the value."""
    if type(value) is str:
        _LEFT.write(len(value))
    elif not isinstance(value, Undefined):  # which raises an error with the missing name
        _LEFT.write(_text_size(value))
    return value


class Sandbox(ImmutableSandboxedEnvironment):
    """Jinja's sandbox with limits on loops, calls and the sizes of texts."""

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
        self.filters |= {"_turn": _turn, "_joined": _joined, "_shown": _shown}

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """Raises `SecurityError` if the result may be too large for memory."""
        numbers = isinstance(left, int | float) and isinstance(right, int | float)
        if operator == "%" and isinstance(left, str):
            _check_size("format", (left, right), {})
        elif operator == "+" and isinstance(left, str | list | tuple):
            if len(left) + (len(right) if isinstance(right, type(left)) else 0) > MAX_CHARS:
                raise PromptLimitError("'+' would make a text or a list that is too long")
        elif operator in ("*", "**"):
            small = numbers and max(abs(left), abs(right)) <= _LARGEST_OPERAND
            if not small or (operator == "**" and abs(right) > _LARGEST_POWER):
                raise SecurityError(
                    f"{operator!r} takes numbers up to {_LARGEST_OPERAND:,} only, and '**' "
                    f"exponents up to {_LARGEST_POWER}"
                )
        return super().call_binop(context, operator, left, right)

    def call(self, context: Context, obj: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Counts calls, limits the results of text methods, and refuses random functions."""
        method = getattr(obj, "__wrapped__", obj)  # Jinja wraps `format` of texts
        owner, name = getattr(method, "__self__", None), getattr(obj, "__name__", "")
        if isinstance(owner, int | float | bytes | random.Random) or name in _REFUSED:
            raise SecurityError(f"{name!r} is not for prompts")
        values = [_as_list(value) for value in args]
        _check_size(name, [owner, *values] if isinstance(owner, str) else values, kwargs)
        return super().call(context, obj, *values, **kwargs)

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        """The template, with a counter in every loop turn, every macro and every filtered block."""
        template = super()._parse(source, name, filename)
        for node in list(template.find_all((nodes.For, nodes.Macro, nodes.CallBlock))):
            assert isinstance(node, nodes.For | nodes.Macro | nodes.CallBlock)
            chars = sum(len(part.data) for part in node.find_all(nodes.TemplateData))
            count = _filtered("_turn", nodes.Const(True), nodes.Const(chars), line=node.lineno)  # noqa: FBT003
            if isinstance(node, nodes.For) and node.test is not None:
                node.test = nodes.And(count, node.test, lineno=node.lineno)
            node.body.insert(0, nodes.ExprStmt(count, lineno=node.lineno))
        for block in template.find_all(nodes.FilterBlock):
            block.filter = _filtered("_shown", block.filter, line=block.lineno)
        return _Joins().visit(template)  # type: ignore[no-any-return]  # Jinja's visitors have no types


class _Joins(jinja2.visitor.NodeTransformer):
    """Replaces each `~` by a filter."""

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:  # noqa: N802  Jinja's name
        self.generic_visit(node)
        return _filtered("_joined", nodes.List(node.nodes, lineno=node.lineno), line=node.lineno)


def _filtered(name: str, value: nodes.Expr, *given: nodes.Expr, line: int) -> nodes.Filter:
    return nodes.Filter(value, name, list(given), [], None, None, lineno=line)


def _as_list(value: Any) -> Any:
    """An iterator as a list; any other value as it is."""
    return list(value) if hasattr(value, "__next__") else value


def _counted(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The filter `function` with a check of the size of its result."""
    passed = hasattr(function, "jinja_pass_arg")

    def filtered(*given: Any, **named: Any) -> Any:
        values = [_as_list(value) for value in given]
        _check_size(name, values[1:] if passed else values, named)
        return function(*values, **named)

    for mark in ("jinja_pass_arg", "jinja_async_variant"):
        if hasattr(function, mark):
            setattr(filtered, mark, getattr(function, mark))
    return filtered
