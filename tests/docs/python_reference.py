"""The reference of the Python face, `docs/api.md`, made from its source and its docstrings."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import eyechart

_HEAD = """\
# Reference of the Python face

A reference of the public names of `import eyechart`, with their arguments and docstrings.
[Eyechart in Python](python.md) shows them at work.
"""
_NAMES = (
    *("run", "load_run", "list_runs", "compare", "figures", "load_task"),
    *("Run", "RunComparison", "RunRanking", "Task", "Item"),
    *("Target", "ScorerResult", "EyechartError", "ProviderError"),
)
"""The order of the page."""
_TESTING = ("check_provider", "ProviderCheckError")

_LONGEST = 90
"""Characters of a signature on one line."""

_Function = ast.FunctionDef | ast.AsyncFunctionDef


def python_page() -> str:
    """The whole page."""
    assert set(_NAMES) == set(eyechart.__all__)
    names = [("eyechart", name, eyechart._PLACES[name]) for name in _NAMES]
    names += [("eyechart.testing", name, "eyechart.testing") for name in _TESTING]
    return _HEAD + "".join(part for name in names for part in _section(*name))


class _Values(ast.NodeTransformer):
    """Puts the values of constants in place of their names: `= 0.85` for `= THRESHOLD`."""

    def __init__(self, names: dict[str, object]) -> None:
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """A name in capitals, where it is read and stands for a number or a text."""
        value = self.names.get(node.id)
        is_read = isinstance(node.ctx, ast.Load) and node.id.isupper()
        return ast.Constant(value) if is_read and isinstance(value, float | int | str) else node


def _section(home: str, name: str, module: str) -> Iterator[str]:
    """A name: its signature or value, its docstring, and its public members."""
    place = import_module(module)
    tree = ast.parse(Path(inspect.getfile(place)).read_text(encoding="utf-8"))
    tree = _Values(vars(place)).visit(tree)
    for node, doc in _documented(tree.body):
        if isinstance(node, _Function) and node.name == name and not _is_overload(node):
            _spell_out(node, getattr(place, name))
            yield f"\n## {home}.{name}\n\n"
            yield f"<!-- not run: needs arguments -->\n```python\n{_signature(node)}\n```\n\n"
            yield f"{_prose(ast.get_docstring(node) or '')}\n"
        elif isinstance(node, ast.ClassDef) and node.name == name:
            yield f"\n## class {home}.{name}\n\n"  # `run` and `Run` have anchors of their own
            yield f"{_prose(ast.get_docstring(node) or '')}"
            yield from (f" It is a kind of `{ast.unparse(base)}`." for base in node.bases)
            if rows := list(_members(node)):
                yield "\n\n| member | what |\n| --- | --- |"
                yield from rows
            yield "\n"
        elif isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == name and node.value:
            yield f"\n## type {home}.{name}\n\n`{ast.unparse(node.value)}`\n"
            yield f"\n{_prose(doc)}\n" if doc else ""


def _spell_out(node: _Function, function: Any) -> None:
    """Adds the arguments that stand for `**judging`, as help shows them."""
    if node.args.kwarg is None:
        return
    named = {one.arg for one in (*node.args.args, *node.args.kwonlyargs)}
    for name, one in inspect.signature(function).parameters.items():
        if name not in named:
            node.args.kwonlyargs.append(ast.arg(name, ast.Name(one.annotation)))
            node.args.kw_defaults.append(ast.Constant(one.default))


def _is_overload(node: _Function) -> bool:
    """Whether a function is there for type checkers alone."""
    return any(ast.unparse(one) == "overload" for one in node.decorator_list)


def _documented(body: list[ast.stmt]) -> Iterator[tuple[ast.stmt, str]]:
    """Each statement with the string below it, which documents a field; "" without one."""
    for node, after in zip(body, [*body[1:], None], strict=True):
        is_text = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
        text = after.value.value if is_text else ""  # type: ignore[union-attr]
        yield node, inspect.cleandoc(text) if isinstance(text, str) else ""


def _members(node: ast.ClassDef) -> Iterator[str]:
    """A row for each public field, property and method."""
    for statement, doc in _documented(node.body):
        if isinstance(statement, ast.AnnAssign):
            yield from _row(ast.unparse(statement.target), statement.annotation, doc)
        elif isinstance(statement, _Function) and statement.name == "__init__":
            for inner, text in _documented(statement.body):
                if text and isinstance(inner, ast.Assign | ast.AnnAssign):
                    target = inner.targets[0] if isinstance(inner, ast.Assign) else inner.target
                    yield from _row(ast.unparse(target).removeprefix("self."), None, text)
        elif isinstance(statement, _Function):
            kinds = {ast.unparse(one) for one in statement.decorator_list}
            text = ast.get_docstring(statement) or ""
            if kinds & {"property", "cached_property"}:
                yield from _row(statement.name, statement.returns, text)
            else:
                given = ", ".join(_arguments(statement))
                yield from _row(f"{statement.name}({given})", statement.returns, text)


def _row(name: str, annotation: ast.expr | None, doc: str) -> Iterator[str]:
    if name.startswith("_"):
        return
    arrow = " ->" if "(" in name else ":"
    shown = f"{name}{arrow} {ast.unparse(annotation)}" if annotation else name
    text = " ".join(_prose(doc).replace("Raises:\n\n-", "Raises").split())
    yield "\n| `{}` | {} |".format(*(one.replace("|", "\\|") for one in (shown, text)))


def _signature(node: _Function) -> str:
    """A function's head, one argument a line where there are many."""
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    given = _arguments(node)
    short = f"{node.name}({', '.join(given)}){returns}"
    if len(short) <= _LONGEST:
        return short
    return "\n".join([f"{node.name}(", *(f"    {one}," for one in given), f"){returns}"])


def _arguments(node: _Function) -> list[str]:
    """The arguments of a function or a method, with types and defaults."""
    given = node.args
    defaults = [None] * (len(given.args) - len(given.defaults)) + [*given.defaults]
    shown = [_argument(*pair) for pair in zip(given.args, defaults, strict=True)]
    shown += ["*"] if given.kwonlyargs else []
    shown += [_argument(*pair) for pair in zip(given.kwonlyargs, given.kw_defaults, strict=True)]
    return [one for one in shown if one != "self"]


def _argument(argument: ast.arg, default: ast.expr | None) -> str:
    kind = f": {ast.unparse(argument.annotation)}" if argument.annotation else ""
    return f"{argument.arg}{kind}" + (f" = {ast.unparse(default)}" if default else "")


def _prose(doc: str) -> str:
    """A docstring as Markdown: paragraphs unwrapped, the errors as a list."""
    text, _, raised = doc.partition("\nRaises:\n")
    paragraphs = [" ".join(one.split()) for one in text.strip().split("\n\n")]
    errors = re.findall(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", raised, re.MULTILINE)
    listed = [f"- `{name}`: {' '.join(why.split())}" for name, why in errors]
    if listed:
        paragraphs += ["Raises:", "\n".join(listed)]
    return "\n\n".join(paragraphs)
