"""Checks a task file and reports all mistakes at once, each with its place and a remedy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pydantic import BaseModel, ValidationError

from eyechart.harness.errors import TaskFileError
from eyechart.harness.spec import MAX_LENGTH, Axis, Separator, TaskSpec, taken_by
from eyechart.harness.spec.answer import TYPES, Answer, phrase_of
from eyechart.harness.spec.task_file import NAME_FORM
from eyechart.harness.task import prompt
from eyechart.harness.task.problems import file_error, problems_of, read_text
from eyechart.harness.task.source import Position, Problem, YamlFile, parse
from eyechart.harness.task.trial import trial_problems
from eyechart.providers.close_match import did_you_mean


def read_spec(path: Path, *, trial: bool = True) -> TaskSpec:
    """Reads the task in `path`; with `trial` its items are drawn and its prompts rendered too.

    Raises:
        TaskFileError: the file has mistakes; the error lists all of them.
    """
    file = parse(read_text(path, TaskFileError))
    spec = None
    problems = list(file.problems)
    if isinstance(file.data, dict):
        spec, spec_problems = _validated(file, file.data)
        problems += spec_problems
        problems += _static_problems(file, file.data)
        repaired = spec or _repaired(file.data)
        can_try = not file.problems and not {"generator", "items"} <= set(file.data)
        if trial and can_try and repaired is not None:
            problems += trial_problems(path, file, repaired)
    elif not problems:
        problems.append(Problem(Position(1, 1), "a task file is a mapping of keys to values"))
    if problems or spec is None:
        raise file_error(path, problems, TaskFileError)
    return spec


def _validated(file: YamlFile, data: Mapping[str, object]) -> tuple[TaskSpec | None, list[Problem]]:
    try:
        return TaskSpec.model_validate(data, strict=True), []
    except ValidationError as error:
        return None, problems_of(file, error, _fields_at)


def _repaired(data: Mapping[str, object]) -> TaskSpec | None:
    """The spec without its small mistakes, for a trial that finds others; or `None`."""
    kept = {key: value for key, value in data.items() if key in TaskSpec.model_fields}
    harmless = {"version": 1, "title": "-", "source": None, "samples": 1}
    lengths = kept.get("lengths")
    if isinstance(lengths, list):
        whole = [n for n in lengths if isinstance(n, int) and not isinstance(n, bool)]
        kept["lengths"] = [n for n in whole if 1 <= n <= MAX_LENGTH] or None
    axes = kept.get("axes")
    if isinstance(axes, dict):
        kept["axes"] = {
            name: {**axis, "default": list(axis["values"])[:1]}
            if isinstance(axis, dict) and isinstance(axis.get("values"), dict)
            else axis
            for name, axis in axes.items()
        }
    try:
        return TaskSpec.model_validate(kept | harmless, strict=True)
    except ValidationError:
        return None


def _fields_at(path: Sequence[str | int]) -> list[str]:
    """Names of the keys that are allowed in the mapping at `path`."""
    model: type[BaseModel] = TaskSpec
    if path and path[0] == "axes":
        model = Separator if "separator" in path[3:] else Axis
    elif path and path[0] == "answer":
        model = Answer
    return list(model.model_fields)


def _static_problems(file: YamlFile, data: Mapping[str, object]) -> Iterator[Problem]:
    """Problems that types do not show, in every part that has the right shape."""
    checks = (
        *(_statistic_problems, _source_problems, _length_problems, _axis_problems),
        _prompt_problems,
    )
    for check in checks:
        yield from check(file, data)


def _statistic_problems(file: YamlFile, data: Mapping[str, object]) -> Iterator[Problem]:
    given, answer = data.get("statistics"), data.get("answer")
    kind = answer.get("type") if isinstance(answer, dict) else answer
    whole = [name for name, one in TYPES.items() if one.stored is int]
    if isinstance(given, list) and "capacity" in given and kind not in whole:
        place = file.position(["statistics"])
        yield Problem(place, f"'capacity' needs answers that are integers, not {kind!r}")
    if data.get("scorer") and given:
        place = file.position(["statistics"])
        yield Problem(
            place, "'capacity' needs the answers read, which a scorer of its own does not give"
        )


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
    else:
        if data.get("params"):
            place = file.position(["params"], of_key=True)
            yield Problem(place, "'params' go to a generator; with 'items' there is none")
        if (spread := data.get("spread")) in ("bands", "fifth"):
            place = file.position(["spread"])
            yield Problem(
                place, f"'spread: {spread}' needs a generator; ready items have their lengths"
            )


def _length_problems(file: YamlFile, data: Mapping[str, object]) -> Iterator[Problem]:
    if data.get("lengths") == []:
        yield Problem(file.position(["lengths"]), "lengths: must not be empty")
    yield from _twice(file, ["lengths"], data.get("lengths"))


def _twice(file: YamlFile, path: list[str | int], lengths: object) -> Iterator[Problem]:
    if not isinstance(lengths, list):
        return
    for place, length in enumerate(lengths):
        if length in lengths[:place] and not isinstance(length, bool):
            yield Problem(file.position([*path, place]), f"length {length!r} is here twice")


def _unknown_values(
    file: YamlFile, axis: str, path: list[str | int], given: Sequence[object], known: object
) -> Iterator[Problem]:
    """A problem for each value name at `path` that the axis lacks, or that is given twice."""
    if not isinstance(known, dict):
        return
    names = [str(name) for name in known]
    for place, value in enumerate(given):
        position = file.position([*path, place])
        if not isinstance(value, str):
            continue
        if value not in names:
            remedy = f"; {did_you_mean(value, names)}" if names else ""
            yield Problem(position, f"axis {axis!r} has no value {value!r}{remedy}")
        elif value in given[:place]:
            kind = "default " if path[-1] == "default" else ""
            yield Problem(position, f"{kind}{value!r} is here twice")


def _axis_problems(file: YamlFile, data: Mapping[str, object]) -> Iterator[Problem]:
    axes = data.get("axes")
    for name, axis in axes.items() if isinstance(axes, dict) else ():
        if taken := taken_by(name):
            place = file.position(["axes", name], of_key=True)
            message = f"an axis cannot be called {name!r}: that is {taken}; give it another name"
            yield Problem(place, message)
        if not isinstance(axis, dict):
            continue
        values, default = axis.get("values"), axis.get("default")
        if isinstance(default, list):
            yield from _unknown_values(file, name, ["axes", name, "default"], default, values)
        if isinstance(values, dict):
            yield from _value_problems(file, data, name, values)


def _value_problems(
    file: YamlFile, data: Mapping[str, object], axis: str, values: Mapping[str, object]
) -> Iterator[Problem]:
    phrase = phrase_of(data.get("answer"))
    names: dict[str, str] = {}
    for value, text in values.items():
        place = file.position(["axes", axis, "values", value])
        if (first := names.setdefault(repr(_shown(text)), value)) != value:
            same = f"values {first!r} and {value!r} of axis {axis!r} are the same"
            yield Problem(place, f"{same}, so both ask the same; leave one out")
        if isinstance(value, str) and value.isdecimal() and len(value) == 1:
            place = file.position(["axes", axis, "values", value], of_key=True)
            yield Problem(place, f"name {value!r} must be {NAME_FORM}")
        if not isinstance(text, str):
            continue
        if text.lower().count(phrase.lower()) > 1:
            yield Problem(
                place,
                f"{value!r} has the answer phrase {phrase!r} more than once, so a reply that "
                "follows it would too; leave it out of the examples",
            )
        if "{{" in text or "{%" in text:
            yield Problem(
                place,
                f"{value!r} has braces, but values are shown as they are; put them in the prompt",
            )


def _shown(value: object) -> object:
    """A value of an axis as prompts see it: a mapping with its defaults."""
    try:
        return Separator.model_validate(value) if isinstance(value, dict) else value
    except ValidationError:
        return value


def _prompt_problems(file: YamlFile, data: Mapping[str, object]) -> Iterator[Problem]:
    template = data.get("prompt")
    if not isinstance(template, str) or not template:
        return
    if problem := prompt.syntax_problem(template):
        yield Problem(file.text_position(["prompt"], problem.line), problem.message)
        return
    phrase, axes = phrase_of(data.get("answer")), data.get("axes")
    texts = [template]
    for axis in axes.values() if isinstance(axes, dict) else ():
        values = axis.get("values") if isinstance(axis, dict) else None
        if isinstance(values, dict):
            texts += [text for text in values.values() if isinstance(text, str)]
    if template.lower().count(phrase.lower()) > 1:
        yield Problem(
            file.position(["prompt"], of_key=True),
            f"the prompt has the answer phrase {phrase!r} more than once, so a reply that follows "
            "it would too; leave it out of the examples",
        )
    answer = data.get("answer")
    if isinstance(answer, dict) and answer.get("phrase_asked") is False:
        return
    if "phrase" not in prompt.used_names(template) and not any(phrase in text for text in texts):
        yield Problem(
            file.position(["prompt"], of_key=True),
            "the prompt never asks for the answer phrase; write {{ phrase }} where it should, or "
            "'phrase_asked: false' under 'answer' if the prompts are only recorded",
        )
