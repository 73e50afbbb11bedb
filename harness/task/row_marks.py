"""Finds separators that cannot be told from the symbols between which they stand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from jinja2 import nodes

from eyechart.harness.spec import Item, Separator, TaskSpec, write_row
from eyechart.harness.task import prompt
from eyechart.harness.task.source import Position, Problem, YamlFile


def row_problems(
    file: YamlFile, spec: TaskSpec, items: Iterable[Item], shown: Sequence[Mapping[str, object]]
) -> Iterator[Problem]:
    """One problem for each separator with which the prompt shows more symbols than a row has, at
    the first of the `items` where it does. `shown` has combinations of values that are tried, each
    axis -> value; the first one has the defaults.
    """
    left = [one for one in _written_with(file, spec) if any(_marks(one[1]))]
    for item in items:
        symbols = sorted(set(item.symbols) - {""}) if len(item.symbols) > 1 else []
        for one in tuple(left):
            place, separator, axis = one
            clash = _clash(separator, symbols)
            tried = [{**shown[0], axis: separator}] if axis else shown
            if clash and any(_is_shown(spec, item, separator, values) for values in tried):
                left.remove(one)
                yield Problem(place, clash)


def _written_with(file: YamlFile, spec: TaskSpec) -> Iterator[tuple[Position, object, str]]:
    """What rows may be written with: its place, the separator, and its axis if it has one."""
    axes = {"separator"} if "sequence" in prompt.used_names(spec.prompt) else set()
    for one in prompt.environment().parse(spec.prompt).find_all(nodes.Filter):
        for format_ in _ends(one.args[0]) if one.name == "separated" and one.args else ():
            if isinstance(format_, nodes.Name):
                axes.add(format_.name)
            elif isinstance(format_, nodes.Const):
                yield file.text_position(["prompt"], one.lineno), format_.value, ""
    for axis in sorted(axes.intersection(spec.axes)):
        for name, value in spec.axes[axis].values.items():
            yield file.position(["axes", axis, "values", name]), value, axis


def _ends(expression: nodes.Node) -> Iterator[nodes.Node]:
    """What an expression may be: both sides of `x if … else y`."""
    if isinstance(expression, nodes.CondExpr):
        for end in filter(None, (expression.expr1, expression.expr2)):
            yield from _ends(end)
    else:
        yield expression


def _is_shown(spec: TaskSpec, item: Item, separator: object, values: Mapping[str, object]) -> bool:
    """Whether the prompt has the row written in this way; a value may also be shown otherwise."""
    names = prompt.names(spec.answer, item, len(item.symbols), values)
    try:
        text = prompt.render(spec.prompt, names)
    except Exception:  # noqa: BLE001  a template may raise anything; the trial says what fails
        return False
    return write_row(item.symbols, separator) in text


def _marks(separator: object) -> tuple[list[str], list[str]]:
    """The texts between neighbours, and those around symbols and the row."""
    if not isinstance(separator, Separator):
        return [str(separator)] if separator != "" else [], []
    between, around = (
        (separator.inside, separator.between),
        (separator.quote, separator.open, separator.close),
    )
    return list(filter(None, between)), list(filter(None, around))


def _clash(separator: object, symbols: Iterable[str]) -> str | None:
    """Which part of a separator cannot be told from which symbol; `None` if all can."""
    between, around = _marks(separator)
    for symbol in symbols:
        for mark in (*between, *around):
            if mark in between and mark in symbol.strip() and mark != symbol:
                why = f"the separator {mark!r} is in the symbol {symbol!r}"
            elif _shows(mark, symbol, alone=mark in around):
                kind = "the separator" if mark in between else "the text"
                why = f"{kind} {mark!r} " + (
                    "is also a symbol" if mark == symbol else f"has the symbol {symbol!r} in it"
                )
            else:
                continue
            return f"{why}, so rows show more symbols than they have; choose another"
    return None


def _shows(mark: str, symbol: str, *, alone: bool) -> bool:
    """Whether a mark looks as if it had the symbol; as a word of its own only if `alone`, or if
    the mark has words.
    """
    word = symbol.strip()
    if word and (alone or any(map(str.isspace, mark))):
        return word in mark.split()
    return symbol in mark
