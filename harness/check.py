"""What is wrong with a task file: all of it at once, each mistake with its place and a remedy."""

from __future__ import annotations

import difflib
import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import jinja2
from pydantic import BaseModel, ValidationError

from harness import prompt
from harness.generator import (
    Generator,
    ItemError,
    describe,
    item_problem,
    load_generator,
    load_items,
)
from harness.spec import Answer, Axis, Item, Separator, TaskSpec
from harness.yamlfile import Position, Problem, YamlFile, parse

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

RESERVED_AXES = frozenset(
    {
        *("model", "task", "task_version", "condition", "length", "index", "n", "rng"),
        *("correct", "incorrect", "unparsed", "refused", "truncated", "overflow", "error"),
        *("not_run", "accuracy", "ci_low", "ci_high", "accuracy_of_answered", "mean_abs_error"),
        *("mean_signed_error", "off_by_one", "prompt_tokens", "output_tokens"),
        *("sequence", "symbols", "phrase"),
    }
)
"""Names that columns of `table.csv` or a prompt's own variables already have."""

_TRIAL_SEED = "trial"


class TaskFileError(Exception):
    """A task file with mistakes; its text has one line for each."""

    def __init__(self, path: Path, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__(
            "\n".join(
                f"{problem.file or path}:{problem.position.line}:{problem.position.column}: "
                f"{problem.message}"
                for problem in self.problems
            )
        )


def read_spec(path: Path, *, trial: bool = True) -> TaskSpec:
    """The task in `path`; with `trial` its generator is loaded and drawn from too.

    Raises:
        TaskFileError: says everything that is wrong.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        line = path.read_bytes()[: error.start].count(b"\n") + 1
        problem = Problem(Position(line, 1), "not UTF-8; save the file as UTF-8")
        raise TaskFileError(path, [problem]) from None
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise TaskFileError(path, [Problem(Position(1, 1), f"cannot be read: {reason}")]) from None
    file = parse(text)
    spec = None
    found = list(file.problems)
    if file.data is not None or not found:
        spec, wrong = _validated(file)
        found += wrong
        if isinstance(file.data, dict):
            found += _static_problems(file, file.data)
    if spec is not None and trial and not found:
        found += _Trial(path, file, spec).problems()
    if found or spec is None:
        raise TaskFileError(path, sorted(dict.fromkeys(found), key=_by_place))
    return spec


def _by_place(problem: Problem) -> tuple[str, Position]:
    return (problem.file or "", problem.position)


def _validated(file: YamlFile) -> tuple[TaskSpec | None, list[Problem]]:
    if not isinstance(file.data, dict):
        return None, [Problem(Position(1, 1), "a task file is a mapping of keys to values")]
    try:
        return TaskSpec.model_validate(file.data, strict=True), []
    except ValidationError as error:
        return None, [_from_pydantic(file, detail) for detail in error.errors(include_url=False)]


def _from_pydantic(file: YamlFile, detail: ErrorDetails) -> Problem:
    path, kind, given = detail["loc"], detail["type"], detail["input"]
    context: Mapping[str, object] = detail.get("ctx") or {}
    last = str(path[-1]) if path else ""
    if kind == "extra_forbidden":
        known = _fields_at(path[:-1])
        place = file.position(path, of_key=True)
        return Problem(place, f"unknown key {last!r}; {_did_you_mean(last, known)}")
    if kind == "missing":
        inside = f" in {'.'.join(map(str, path[:-1]))!r}" if len(path) > 1 else ""
        return Problem(file.position(path[:-1]), f"missing key {last!r}{inside}")
    if last == "[key]":
        place = file.position(path[:-1], of_key=True)
        return Problem(place, f"name {given!r} must be lower case letters, digits and _")
    name = next((str(part) for part in reversed(path) if isinstance(part, str)), "")
    return Problem(
        file.position(path), f"{name}: {_demand(kind, context, detail)}, not {_show(given)}"
    )


def _demand(kind: str, context: Mapping[str, object], detail: ErrorDetails) -> str:
    """What pydantic wanted, in words of a task file."""
    simple = {
        "int_type": "must be a whole number",
        "int_from_float": "must be a whole number",
        "string_type": "must be text (quote it if it looks like a number)",
        "bool_type": "must be true or false",
        "list_type": "must be a list",
        "dict_type": "must be a mapping",
        "model_type": "must be a mapping",
        "string_too_short": "must not be empty",
        "too_short": "must not be empty",
        "finite_number": "must be a finite number",
    }
    if kind in simple:
        return simple[kind]
    if kind == "greater_than":
        return f"must be greater than {context.get('gt')}"
    if kind == "greater_than_equal":
        return f"must be at least {context.get('ge')}"
    if kind == "literal_error":
        return f"must be one of {str(context.get('expected')).replace(' or ', ', ')}"
    if kind == "string_pattern_mismatch" and detail["loc"][-1:] == ("generator",):
        return "must be 'file.py:function'"
    if kind == "string_pattern_mismatch" and detail["loc"][-1:] == ("items",):
        return "must be a .jsonl file"
    if kind == "value_error":
        return str(context.get("error"))
    return detail["msg"].removeprefix("Input ").replace("should", "must")


def _show(given: object) -> str:
    shown = repr(given)
    return shown if len(shown) <= 60 else f"{shown[:57]}…"  # noqa: PLR2004  # a line's worth


def _fields_at(path: Sequence[str | int]) -> list[str]:
    """Names of the keys that may stand in the mapping at `path`."""
    model: type[BaseModel] = TaskSpec
    if path and path[0] == "axes":
        model = Separator if "separator" in path[3:] else Axis
    elif path and path[0] == "answer":
        model = Answer
    return list(model.model_fields)


def _did_you_mean(wrong: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(wrong, known, n=1, cutoff=0.6)
    return f"did you mean {close[0]!r}?" if close else f"known are {', '.join(known)}"


def _static_problems(file: YamlFile, data: Mapping[str, object]) -> Iterator[Problem]:
    """What the types alone do not say; looks at every part that has the right shape, so that a
    mistake elsewhere does not hide it.
    """
    for check in (_source_problems, _length_problems, _axis_problems, _prompt_problems):
        yield from check(file, data)


def _source_problems(file: YamlFile, data: Mapping[str, object]) -> Iterator[Problem]:
    if "generator" in data and "items" in data:
        place = file.position(["items"], of_key=True)
        yield Problem(place, "'generator' and 'items' are both given; keep one")
    elif "generator" not in data and "items" not in data:
        yield Problem(Position(1, 1), "missing key 'generator' (or 'items' for ready items)")
    elif "generator" in data:
        for name in ("lengths", "samples"):
            if data.get(name) is None:
                yield Problem(Position(1, 1), f"missing key {name!r}, which a generator needs")
    elif data.get("params"):
        place = file.position(["params"], of_key=True)
        yield Problem(place, "'params' go to a generator; with 'items' there is none")


def _length_problems(file: YamlFile, data: Mapping[str, object]) -> Iterator[Problem]:
    lengths = data.get("lengths")
    if not isinstance(lengths, list):
        return
    if not lengths:
        yield Problem(file.position(["lengths"]), "lengths: must not be empty")
    for place, length in enumerate(lengths):
        if length in lengths[:place]:
            yield Problem(file.position(["lengths", place]), f"length {length!r} is here twice")


def _axis_problems(file: YamlFile, data: Mapping[str, object]) -> Iterator[Problem]:
    axes = data.get("axes")
    for name, axis in axes.items() if isinstance(axes, dict) else ():
        if name in RESERVED_AXES:
            place = file.position(["axes", name], of_key=True)
            yield Problem(place, f"an axis cannot be called {name!r}: that name is taken")
        if not isinstance(axis, dict):
            continue
        values, default = axis.get("values"), axis.get("default")
        if isinstance(values, dict) and isinstance(default, list):
            known = [str(value) for value in values]
            for index, value in enumerate(default):
                at = file.position(["axes", name, "default", index])
                if not isinstance(value, str):
                    continue
                if value not in known:
                    guess = _did_you_mean(value, known)
                    yield Problem(at, f"axis {name!r} has no value {value!r}; {guess}")
                elif value in default[:index]:
                    yield Problem(at, f"default {value!r} is here twice")
        if isinstance(values, dict):
            yield from _phrase_problems(file, data, name, values)


def _phrase_problems(
    file: YamlFile, data: Mapping[str, object], axis: str, values: Mapping[str, object]
) -> Iterator[Problem]:
    phrase = _phrase(data)
    for value, text in values.items():
        if isinstance(text, str) and text.lower().count(phrase.lower()) > 1:
            yield Problem(
                file.position(["axes", axis, "values", value]),
                f"{value!r} has the answer phrase {phrase!r} more than once, so a reply that "
                "follows it would too; leave it out of the examples",
            )


def _phrase(data: Mapping[str, object]) -> str:
    answer = data.get("answer")
    given = answer.get("phrase") if isinstance(answer, dict) else None
    default: str = Answer.model_fields["phrase"].default
    return given if isinstance(given, str) and given else default


def _prompt_problems(file: YamlFile, data: Mapping[str, object]) -> Iterator[Problem]:
    template = data.get("prompt")
    if not isinstance(template, str) or not template:
        return
    if wrong := prompt.syntax_problem(template):
        yield Problem(file.text_position(["prompt"], wrong.line), wrong.message)
        return
    phrase, axes = _phrase(data), data.get("axes")
    texts = [template]
    for axis in axes.values() if isinstance(axes, dict) else ():
        values = axis.get("values") if isinstance(axis, dict) else None
        texts += [text for text in (values or {}).values() if isinstance(text, str)]
    if "phrase" not in prompt.used_names(template) and not any(phrase in text for text in texts):
        yield Problem(
            file.position(["prompt"], of_key=True),
            "the prompt never asks for the answer phrase; write {{ phrase }} where it should",
        )


class _Trial:
    """Loads a task's generator or items and makes samples, to see whether that goes well."""

    def __init__(self, path: Path, file: YamlFile, spec: TaskSpec) -> None:
        self.path = path
        self.file = file
        self.spec = spec

    def problems(self) -> list[Problem]:
        try:
            if self.spec.items is not None:
                return list(self._items_problems(self.spec.items))
            assert self.spec.generator is not None
            generator = load_generator(self.path, self.spec.generator)
        except ItemError as error:
            key = "generator" if self.spec.items is None else "items"
            if error.line is not None:
                file = str(self.path.parent / str(self.spec.items))
                return [Problem(Position(error.line, 1), str(error), file)]
            return [Problem(self.file.position([key]), str(error))]
        wrong = list(self._parameter_problems(generator))
        return wrong or list(self._draw_problems(generator))

    def _items_problems(self, file_name: str) -> Iterator[Problem]:
        by_length = load_items(self.path, file_name, self.spec.answer)
        for length in self.spec.lengths or ():
            if length not in by_length:
                place = self.file.position(["lengths"])
                yield Problem(place, f"{file_name} has no item of length {length}")
        items = [item for of_length in by_length.values() for item in of_length]
        shared = set(items[0].variables).intersection(*(item.variables for item in items))
        yield from self._name_problems(shared, generator=None)
        yield from self._render_problems(items[0], self._values())

    def _parameter_problems(self, generator: Generator) -> Iterator[Problem]:
        function = str(self.spec.generator).rpartition(":")[2]
        for name in self.spec.params:
            if name not in generator.keywords:
                place = self.file.position(["params", name], of_key=True)
                guess = _did_you_mean(name, sorted(generator.keywords) or ["no parameters"])
                yield Problem(place, f"{function}() takes no {name!r}; {guess}")
            elif name in self.spec.axes:
                place = self.file.position(["params", name], of_key=True)
                yield Problem(place, f"{name!r} is a parameter and an axis; keep one")
        for name in sorted(generator.required - set(self.spec.params) - set(self.spec.axes)):
            place = self.file.position(["generator"])
            yield Problem(place, f"{function}() needs {name!r}; give it in params or as an axis")

    def _draw_problems(self, generator: Generator) -> Iterator[Problem]:
        lengths = self.spec.lengths or ()
        usual = self._values()
        drawn: Item | None = None
        for length, values in [(length, usual) for length in lengths] + [
            (min(lengths), {**usual, axis: value})
            for axis, known in self.spec.axes.items()
            for value in known.values.values()
            if axis in generator.keywords
        ]:
            names = {**self.spec.params, **values}
            try:
                drawn = generator.draw(random.Random(_TRIAL_SEED), length, names)
                again = generator.draw(random.Random(_TRIAL_SEED), length, names)
            except Exception as error:  # noqa: BLE001  # the author's code may raise anything
                said = f"at length {length} the generator raised {describe(error)}"
                yield Problem(self.file.position(["generator"]), said)
                return
            problem = item_problem(drawn, length, self.spec.answer)
            if problem is None and drawn != again:
                problem = "the generator drew differently from the same rng; draw only from it"
            if problem is not None:
                place = self.file.position(["generator"])
                yield Problem(place, f"at length {length}: {problem}")
                return
        assert drawn is not None
        yield from self._name_problems(set(drawn.variables), generator)
        yield from self._render_problems(drawn, usual)

    def _values(self) -> dict[str, object]:
        return {name: axis.values[axis.default[0]] for name, axis in self.spec.axes.items()}

    def _name_problems(self, variables: set[str], generator: Generator | None) -> Iterator[Problem]:
        axes, template = set(self.spec.axes), self.spec.prompt
        for name in sorted(variables & (axes | set(prompt.BUILT_IN_NAMES) - {"sequence"})):
            place = self.file.position(["generator" if generator else "items"])
            yield Problem(place, f"the items' variable {name!r} hides the prompt's own {name!r}")
        known = {*prompt.BUILT_IN_NAMES, *axes, *variables}
        for undefined in prompt.undefined_names(template, known):
            place = self.file.text_position(["prompt"], undefined.line, undefined.near)
            guess = _did_you_mean(undefined.message, sorted(known))
            yield Problem(place, f"undefined variable {undefined.message!r}; {guess}")
        keywords = generator.keywords if generator else frozenset()
        shown = prompt.used_names(template) | keywords
        if "sequence" in shown:
            shown |= {"separator"}
        for axis in self.spec.axes:
            if axis not in shown:
                place = self.file.position(["axes", axis], of_key=True)
                takes = " nor the generator" if generator else ""
                yield Problem(
                    place,
                    f"axis {axis!r} changes nothing: the prompt{takes} has no use "
                    f"for it; write {{{{ {axis} }}}} in the prompt",
                )

    def _render_problems(self, item: Item, values: Mapping[str, object]) -> Iterator[Problem]:
        names = prompt.names(self.spec.answer, item, len(item.symbols), values)
        try:
            prompt.render(self.spec.prompt, names)
        except jinja2.UndefinedError:
            return  # said already, with its place
        except Exception as error:  # noqa: BLE001  # its expressions may raise anything
            place = self.file.position(["prompt"], of_key=True)
            yield Problem(place, f"the prompt fails: {describe(error)}")
