"""Reads studies: from a user's file, or by the name of a built-in one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeAlias, TypeVar

from pydantic import BaseModel, ValidationError

from eyechart.harness.errors import StudyFileError, UnknownTaskError, UsageError
from eyechart.harness.settings.run_settings import SETTINGS, RunSettings
from eyechart.harness.settings.spelling import as_key
from eyechart.harness.study.spec import MODEL, STUDY, TASK, StudySpec, StudyTask
from eyechart.harness.task.catalogue import find
from eyechart.harness.task.files import SUFFIXES
from eyechart.harness.task.problems import FieldsAt, file_error, problems_of, read_text
from eyechart.harness.task.source import Position, Problem, YamlFile, parse
from eyechart.providers.close_match import did_you_mean
from eyechart.providers.naming import named, settings_in, spelled

BUILT_IN = Path(__file__).with_name("built_in")
"""Folder of the studies that come with the program."""
Spec = TypeVar("Spec")
_PARTS: dict[str, type[BaseModel]] = {"models": MODEL, "tasks": TASK}


@dataclass(frozen=True, slots=True)
class StudyFile(Generic[Spec]):
    """A study and the file that it comes from."""

    spec: Spec
    path: Path
    text: str
    file: YamlFile

    def task_text(self, task: StudyTask) -> str:
        """The name of a task, as a command would have it: a path is relative to the file."""
        is_path = task.task.endswith((*SUFFIXES, "/")) or task.task.startswith(".")
        return str(self.path.parent / task.task) if is_path else task.task

    def error_at(self, path: Sequence[str | int], message: str) -> StudyFileError:
        """An error at a part of the file."""
        return file_error(self.path, [Problem(self.file.position(path), message)], StudyFileError)


Study: TypeAlias = StudyFile[StudySpec]


def built_in() -> list[Path]:
    return sorted(BUILT_IN.glob("*.yaml"))


def find_study(given: str) -> Path:
    """The file of a study, from its path or from the name of a built-in study.

    Raises:
        StudyFileError: the file cannot be read.
        UsageError: there is none, or it is the file of a task.
    """
    names = {path.stem: path for path in built_in()}
    if given in names:
        return names[given]
    path = Path(given)
    if path.is_file():
        if _is_task(path):
            raise UsageError(f"{given!r} is a task's file and no study; use {named('task', given)}")
        return path
    if path.suffix in SUFFIXES or path.exists():
        raise UsageError(f"no study's file {given!r}")
    with suppress(UnknownTaskError):
        find(given)
        raise UsageError(f"{given!r} names tasks and no study; use {named('task', given)}")
    known = did_you_mean(given, names, f"built in: {', '.join(names)}")
    raise UsageError(f"no study {given!r}; name a .yaml file, or a built-in study ({known})")


def _is_task(path: Path) -> bool:
    data = parse(read_text(path, StudyFileError)).data
    return isinstance(data, dict) and "prompt" in data and "tasks" not in data


def read_as(
    path: Path,
    model_of: Callable[..., Spec],
    fields_at: FieldsAt,
    problems_in: Callable[[YamlFile, Spec], Iterable[Problem]],
) -> StudyFile[Spec]:
    """Reads a file as the model that `model_of` makes of its data.

    `fields_at` gives the keys that a place may have, and `problems_in` the mistakes that the model
    does not find.

    Raises:
        StudyFileError: the file has mistakes; the error lists all of them.
    """
    text = read_text(path, StudyFileError)
    file = parse(text)
    problems = list(file.problems)
    spec = None
    if isinstance(file.data, dict):
        try:
            spec = model_of(file.data, strict=True)
        except ValidationError as error:
            problems += problems_of(file, error, fields_at)
    elif not problems:
        problems.append(Problem(Position(1, 1), "a study's file is a mapping of keys to values"))
    if spec is not None:
        problems += problems_in(file, spec)
    if problems or spec is None:
        raise file_error(path, problems, StudyFileError)
    return StudyFile(spec, path, text, file)


def read_study(path: Path) -> Study:
    """Reads a study; raises `StudyFileError`, with a line for each mistake in the file."""
    return read_as(path, STUDY.model_validate, _fields_at, _problems)


def _fields_at(path: Sequence[str | int]) -> list[str]:
    part = _PARTS.get(str(path[0]), STUDY) if path else STUDY
    return list(part.model_fields)


def _problems(file: YamlFile, spec: StudySpec) -> list[Problem]:
    """Problems that types do not show."""
    found = []
    settings = spec.settings
    for number, own in enumerate([model.settings for model in spec.models] or [{}]):
        try:
            RunSettings.read(**settings | own)
        except UsageError as error:
            (line,) = error.lines
            wrong = next(iter(settings_in(line)), "")
            path: list[str | int] = ["models", number] if wrong in own else []
            place = file.position([*path, SETTINGS[wrong].key], of_key=True)
            found.append(Problem(place, spelled(line, as_key)))
    for number, task in enumerate(spec.tasks):
        if task in spec.tasks[:number]:
            found.append(Problem(file.position(["tasks", number]), f"{task.task!r} is here twice"))
    earlier: set[str] = set()  # there may be thousands of models
    for number, model in enumerate(spec.models):
        fields = model.model_dump_json()
        if fields in earlier:
            place = file.position(["models", number])
            found.append(Problem(place, f"{model.name!r} is here twice"))
        earlier.add(fields)
    return found
