"""Tries a task: loads its generator or items, makes samples, and reports what fails."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import jinja2

from eyechart.harness.spec import Item, TaskSpec, lines_of, taken_by
from eyechart.harness.spec.turns import NAME
from eyechart.harness.task import prompt
from eyechart.harness.task.functions import ItemError
from eyechart.harness.task.generator import (
    Generator,
    ItemsFileError,
    item_lines,
    load_generator,
    load_items,
)
from eyechart.harness.task.row_marks import row_problems
from eyechart.harness.task.scorer import load_scorer
from eyechart.harness.task.source import Position, Problem, YamlFile
from eyechart.providers.close_match import closest, did_you_mean
from eyechart.providers.plugins.contract import described

_SEED = "trial"

Values = Mapping[str, object]


def trial_problems(path: Path, file: YamlFile, spec: TaskSpec) -> list[Problem]:
    """The problems in making samples of `spec`; `file` is the parsed task file at `path`."""
    return [*_scorer_problems(path, file, spec), *_source_problems(path, file, spec)]


def _scorer_problems(path: Path, file: YamlFile, spec: TaskSpec) -> Iterator[Problem]:
    if spec.scorer is not None:
        try:
            load_scorer(path, spec.scorer)
        except ItemError as error:
            yield Problem(file.position(["scorer"]), str(error))


def _source_problems(path: Path, file: YamlFile, spec: TaskSpec) -> list[Problem]:
    template_ok = prompt.syntax_problem(spec.prompt) is None
    try:
        if spec.items is not None:
            return list(_items_problems(path, file, spec, spec.items)) if template_ok else []
        if spec.generator is None:
            return []
        generator = load_generator(path, spec.generator)
    except ItemsFileError as error:
        return list(_item_mistakes(error))
    except ItemError as error:
        key = "generator" if spec.items is None else "items"
        return [Problem(file.position([key]), str(error))]
    problems = list(_parameter_problems(file, spec, generator))
    return problems or (list(_draw_problems(file, spec, generator)) if template_ok else [])


def _item_mistakes(error: ItemsFileError) -> Iterator[Problem]:
    """Each mistake at the first line that has it, with the number of further lines that have it."""
    times = Counter(message for _, _, message in error.mistakes)
    for line, column, message in error.mistakes:
        if more := times.pop(message, 0):
            lines = "line" if more == 2 else "lines"  # noqa: PLR2004  one more
            same = f" (and {more - 1:,} more {lines} with the same mistake)" if more > 1 else ""
            yield Problem(Position(line, column), f"{message}{same}", str(error.path))


def _items_problems(
    path: Path, file: YamlFile, spec: TaskSpec, file_name: str
) -> Iterator[Problem]:
    by_length = load_items(path, file_name, spec.answer)
    for index, length in enumerate(spec.lengths or ()):
        if length not in by_length:
            place = file.position(["lengths", index])
            yield Problem(place, f"{file_name} has no item of length {length}")
    rest = {length: iter(items) for length, items in by_length.items()}
    of_line = {line: next(rest[length]) for line, length in item_lines(path, file_name)}
    items = list(of_line.values())
    given = set[str]().union(*(item.variables for item in items))
    if not all(item.symbols for item in items):
        for name in sorted({"sequence", "symbols"} & prompt.used_names(spec.prompt) - given):
            place = file.name_position(["prompt"], name)
            yield Problem(place, f"{name!r} needs 'symbols' in the variables of every item")
    if absent := list(_absent_names(spec, of_line, given)):
        yield from _item_mistakes(ItemsFileError(path.parent / file_name, absent))
    yield from _name_problems(file, spec, given, generator=None)
    usual, *others = _every_value(spec)
    for item, values in [(item, usual) for item in items] + [(items[0], v) for v in others]:
        if problem := _render_problem(file, spec, item, values):
            yield problem
            return
    yield from row_problems(file, spec, items, [usual, *others])


def _absent_names(
    spec: TaskSpec, of_line: Mapping[int, Item], given: set[str]
) -> Iterator[tuple[int, int, str]]:
    """Line and column of each item without a variable that the prompt shows and others have."""
    shown = (prompt.used_names(spec.prompt) & given) - {*prompt.BUILT_IN_NAMES, *spec.axes}
    for line, item in of_line.items():
        for name in sorted(shown.difference(item.variables)):
            close = closest(name, [one for one in item.variables if one not in shown])
            has = "" if close is None else f"; it has {close!r}"
            yield line, 1, f"the item has no {name!r}, which the prompt shows{has}"


def _parameter_problems(file: YamlFile, spec: TaskSpec, generator: Generator) -> Iterator[Problem]:
    function = str(spec.generator).rpartition(":")[2]
    for name in spec.params:
        place = file.position(["params", name], of_key=True)
        if name not in generator.keywords:
            known = sorted(generator.keywords)
            remedy = did_you_mean(name, known) if known else "it takes rng and length alone"
            yield Problem(place, f"{function}() takes no {name!r}; {remedy}")
        elif name in spec.axes:
            yield Problem(place, f"{name!r} is a parameter and an axis; keep one")
    for name in sorted(generator.required - set(spec.params) - set(spec.axes)):
        place = file.position(["generator"])
        yield Problem(place, f"{function}() needs {name!r}; give it in params or as an axis")


def _draw_problems(file: YamlFile, spec: TaskSpec, generator: Generator) -> Iterator[Problem]:
    """The first problem at all lengths and ends of bands; at the shortest, of all axis values."""
    lines = lines_of(spec.lengths or (), spec.usual_spread)
    lengths = sorted({length for line in lines for length in (line.low, line.length, line.high)})
    usual, *others = _every_value(spec)
    variables: set[str] | None = None
    drawn = []
    for length, values in [(n, usual) for n in lengths] + [
        (n, v) for n in lengths[:1] for v in others
    ]:
        try:
            item = _draw(spec, generator, length, values)
        except ItemError as error:
            yield Problem(file.position(["generator"]), f"at length {length}: {error}")
            return
        drawn.append(item)
        if variables is None:
            variables = set(item.variables)
            yield from _name_problems(file, spec, variables, generator)
        if problem := _render_problem(file, spec, item, values):
            yield problem
            return
    yield from row_problems(file, spec, drawn, [usual, *others])


def _draw(spec: TaskSpec, generator: Generator, length: int, values: Values) -> Item:
    names = {**spec.params, **values}
    item, second_draw = (
        generator.draw(random.Random(_SEED), length, names, spec.answer) for _ in range(2)
    )
    if item != second_draw:
        raise ItemError(
            "two calls with the same rng gave different items; draw random values only from rng"
        )
    return item


def _every_value(spec: TaskSpec) -> list[dict[str, object]]:
    """The first defaults, then each value of each axis with the others at their default."""
    usual: dict[str, object] = {
        name: axis.values[axis.default[0]]
        for name, axis in spec.axes.items()
        if axis.default[0] in axis.values
    }
    return [usual] + [
        {**usual, name: value} for name, axis in spec.axes.items() for value in axis.values.values()
    ]


def _name_problems(
    file: YamlFile, spec: TaskSpec, variables: set[str], generator: Generator | None
) -> Iterator[Problem]:
    axes, template = set(spec.axes), spec.prompt
    for name in sorted(variables & (axes | set(prompt.BUILT_IN_NAMES) - {"sequence"})):
        place = file.position(["generator" if generator else "items"])
        yield Problem(place, f"the items' variable {name!r} hides the prompt's own {name!r}")
    known = {*prompt.BUILT_IN_NAMES, *axes, *variables}
    undefined = prompt.undefined_names(template, known)
    for name in undefined:
        remedy = did_you_mean(name, sorted(known))
        place = file.name_position(["prompt"], name)
        yield Problem(place, f"undefined variable {name!r}; {remedy}")
    used = prompt.used_names(template) | (generator.keywords if generator else set())
    is_own_row = "sequence" in variables
    used |= {"separator"} if "sequence" in used and not is_own_row else set()
    unused = () if undefined else sorted(axes - used)
    for axis in (name for name in unused if taken_by(name) is None):
        place = file.position(["axes", axis], of_key=True)
        reason = (
            "neither the prompt nor the generator uses it" if generator else "no prompt uses it"
        )
        remedy = f"write {{{{ {axis} }}}} in the prompt"
        if axis == "separator" and "sequence" in used and is_own_row:
            reason = "the items' variable 'sequence' stands in place of the row that it writes"
            remedy = "give the variable another name"
        yield Problem(place, f"axis {axis!r} changes nothing: {reason}; {remedy}")


def _render_problem(file: YamlFile, spec: TaskSpec, item: Item, values: Values) -> Problem | None:
    names = prompt.names(spec.answer, item, len(item.symbols), values)
    try:
        text = prompt.render(spec.prompt, names)
    except jinja2.UndefinedError as error:
        if prompt.undefined_names(spec.prompt, names):
            return None  # `_name_problems` reports it
        message = str(error)
        failure: BaseException = error
    except Exception as error:  # noqa: BLE001  # a template's expressions may raise anything
        message = described(error)
        failure = error
    else:
        problem = prompt.utf8_problem("the prompt", text)
        if problem is None and NAME in prompt.used_names(spec.prompt):
            problem = prompt.empty_turn(text)
        return None if problem is None else Problem(file.position(["prompt"]), problem)
    place = file.text_position(["prompt"], prompt.failing_line(failure))
    return Problem(place, f"the prompt fails: {message}")
