"""Finds task files by name or path, and opens them."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from pathlib import Path

import orjson
from pydantic import JsonValue

from eyechart.harness.errors import AbsentTaskError, ChangedTaskError, TaskError, UnknownTaskError
from eyechart.harness.spec import EXAMPLES, Condition, Item, TaskSpec
from eyechart.harness.spec.turns import NAME
from eyechart.harness.spec.worked_examples import has_examples, with_examples
from eyechart.harness.task import prompt
from eyechart.harness.task.check import read_spec
from eyechart.harness.task.examples import WorkedExamples
from eyechart.harness.task.files import SUFFIXES, named_files
from eyechart.harness.task.functions import ItemError
from eyechart.harness.task.generator import Generator, item_lines, load_generator, load_items
from eyechart.harness.task.plugins import PluginTasks, files_of_group, plugin_of, tasks_of_plugins
from eyechart.harness.task.scorer import Scorer, load_scorer
from eyechart.providers.close_match import closest
from eyechart.providers.naming import named
from eyechart.providers.plugins.contract import PluginError, described
from eyechart.providers.plugins.plugins import Plugin

_PACKAGE = Path(str(files("eyechart")))


@dataclass(frozen=True)
class Task:
    """One task file with its spec and its source of items."""

    name: str
    """Its path under the tasks folder without the suffix: `counting/bernoulli`."""
    path: Path
    spec: TaskSpec

    def __reduce__(self) -> tuple[type[Task], tuple[str, Path, TaskSpec]]:
        """Without what is loaded from its files, which is loaded again when it is needed."""
        return Task, (self.name, self.path, self.spec)

    @cached_property
    def _generator(self) -> Generator | None:
        if self.spec.generator is None:
            return None
        return load_generator(self.path, self.spec.generator)

    @cached_property
    def _items(self) -> dict[int, list[Item]]:
        assert self.spec.items is not None
        return load_items(self.path, self.spec.items, self.spec.answer)

    @cached_property
    def scorer(self) -> Scorer | None:
        """The task's own scorer, if it has one; raises `TaskError`."""
        if self.spec.scorer is None:
            return None
        try:
            return load_scorer(self.path, self.spec.scorer)
        except ItemError as error:
            raise TaskError(f"task {self.name!r}: {error}") from error

    @property
    def source(self) -> Path:
        """The file that the items come from: the generator's file, or the items file."""
        spec = self.spec
        name = spec.items or (spec.generator or "").rpartition(":")[0]
        return (self.path.parent / name).resolve()

    @cached_property
    def plugin(self) -> Plugin | None:
        """The plugin that adds the task; `None` for a built-in task and a user's own file."""
        return None if self._is_built_in else plugin_of(self.name, self.path)

    @property
    def is_installed(self) -> bool:
        """Whether the task is built in or a plugin adds it; else its file is the user's own."""
        return self._is_built_in or self.plugin is not None

    @cached_property
    def _is_built_in(self) -> bool:
        return built_in_files().get(self.name) == self.path

    @property
    def lengths(self) -> Sequence[int]:
        """The nominal lengths that run by default."""
        return self.spec.lengths or sorted(self._items)

    @property
    def samples(self) -> int:
        """Samples per cell that run by default."""
        return self.spec.samples or max(len(items) for items in self._items.values())

    def items_at(self, length: int) -> int | None:
        """Number of items of `length`; `None`, for no limit, if they are generated."""
        return None if self.spec.items is None else len(self._items.get(length, ()))

    @cached_property
    def places(self) -> list[tuple[int, int]]:
        """Length and index of each item of the items file, in its order."""
        if self.spec.items is None:
            return []
        numbers: Counter[int] = Counter()
        places = []
        for _, length in item_lines(self.path, self.spec.items):
            places.append((length, numbers[length]))
            numbers[length] += 1
        return places

    @cached_property
    def item_lines(self) -> list[int]:
        """The line of each item in the items file, from 1; of the same order as `places`."""
        if self.spec.items is None:
            return []
        return [line for line, _ in item_lines(self.path, self.spec.items)]

    def item_at(self, length: int, index: int) -> Item | None:
        """An item of the items file; `None` where items are generated."""
        return None if self.spec.items is None else self._items[length][index]

    def draw(self, rng: random.Random, condition: Condition, length: int, index: int) -> Item:
        """The item of one sample: the one in the items file, else one generated from `rng`.

        Raises:
            TaskError: the generator fails or returns an invalid item, or the items file has none.
        """
        try:
            if self._generator is None:
                return self._items[length][index]
            names = {**self._params(), **self._shown(condition)}
            return self._generator.draw(rng, length, names, self.spec.answer)
        except (LookupError, ItemError) as error:
            problem = "no such item" if isinstance(error, LookupError) else error
            raise TaskError(f"{self._place(length, index)}: {problem}") from error

    @cached_property
    def in_turns(self) -> bool:
        """Whether its prompts are sent message by message."""
        return NAME in prompt.used_names(self.spec.prompt)

    @cached_property
    def paired(self) -> bool:
        """Whether all conditions show the same item: no axis is a parameter of the generator."""
        return not self.row_axes

    @cached_property
    def row_axes(self) -> frozenset[str]:
        """The axes that are parameters of the generator."""
        keywords = frozenset() if self._generator is None else self._generator.keywords
        return keywords & self._own_axes

    @cached_property
    def _own_axes(self) -> frozenset[str]:
        """The axes of the task's file."""
        taken = {EXAMPLES} if has_examples(self.spec) else set()
        return frozenset(self.spec.axes) - taken

    @property
    def axes(self) -> tuple[str, ...]:
        """The axes that a run can have: those of its file, and `examples`."""
        return tuple(dict.fromkeys((*self.spec.axes, EXAMPLES)))

    def with_examples(self) -> Task:
        """The task with the axis `examples`, unless its file has one of this name."""
        if EXAMPLES in self.spec.axes:
            return self
        return Task(self.name, self.path, with_examples(self.spec))

    @cached_property
    def examples(self) -> WorkedExamples:
        """The worked examples that can stand before its questions."""
        return WorkedExamples(self)

    def _params(self) -> dict[str, JsonValue]:
        """A copy of the params, so that a generator cannot change those of the next draw."""
        if self._params_json is None:
            return deepcopy(self.spec.params)
        params: dict[str, JsonValue] = orjson.loads(self._params_json)
        return params

    @cached_property
    def _params_json(self) -> bytes | None:
        """The params as JSON, a faster copy than `deepcopy`; `None` if a number exceeds 64 bits."""
        try:
            return orjson.dumps(self.spec.params)
        except TypeError:
            return None

    def prompt(
        self,
        item: Item,
        condition: Condition,
        length: int,
        index: int | None = None,
        *,
        around: bool = True,
    ) -> str:
        """The prompt that shows `item` under `condition`, without worked examples and, without
        `around`, with no text around its row; errors name the sample `index`.

        Raises:
            TaskError: the template fails for this item, or the prompt is not valid UTF-8.
        """
        shown = self._shown(condition)
        names = prompt.names(self.spec.answer, item, length, shown)
        try:
            text = prompt.render(self.spec.prompt, names, around=around)
        except Exception as error:  # a template's expressions may raise anything
            where = f"{self._place(length, index)}, line {prompt.failing_line(error)} of the prompt"
            raise TaskError(f"{where}: {described(error)}") from error
        problem = prompt.utf8_problem("the prompt", text)
        if problem := problem or (prompt.empty_turn(text) if self.in_turns else None):
            raise TaskError(f"{self._place(length, index)}: {problem}")
        return text

    def _place(self, length: int, index: int | None) -> str:
        """Which sample a message is about."""
        sample = "" if index is None else f", sample {index}"
        return f"task {self.name!r} at length {length}{sample}"

    def _shown(self, condition: Condition) -> Mapping[str, object]:
        """Axis of the file -> value, which is the same for each sample."""
        if condition not in self._values:
            axes = self.spec.axes
            self._values[condition] = {
                axis: axes[axis].values[name]
                for axis, name in condition.items()
                if axis in self._own_axes
            }
        return self._values[condition]

    @cached_property
    def _values(self) -> dict[Condition, dict[str, object]]:
        return {}


def tasks_root() -> Path:
    """The folder of the built-in tasks: inside the package in a wheel, else beside it."""
    packaged = _PACKAGE / "tasks"
    return packaged if packaged.is_dir() else _PACKAGE.parent / "tasks"


def built_in_files() -> dict[str, Path]:
    """Name -> file of every built-in task, sorted by name. Each process reads the folder once."""
    return dict(_files_below(tasks_root()))


@cache
def _files_below(root: Path) -> list[tuple[str, Path]]:
    return sorted(named_files(root, root))


def _groups(names: Collection[str]) -> set[str]:
    return {name.partition("/")[0] for name in names}


def plugin_tasks() -> PluginTasks:
    """The tasks that plugins add, without groups that are built in."""
    return tasks_of_plugins(_groups(built_in_files()))


def installed_files() -> dict[str, Path]:
    """Name -> file of every built-in task, and then of those that plugins add."""
    return built_in_files() | plugin_tasks().files


def installed_file(name: str) -> Path | None:
    """The file of the built-in task of this name, or of the one that a plugin adds.

    Raises:
        PluginError: the plugin that adds its group cannot be used.
    """
    return built_in_files().get(name) or _files_of_plugin(name).get(name)


def code_files(name: str) -> list[Path]:
    """The code of the built-in tasks, and of the task `name` if a plugin adds its group."""
    folders = {tasks_root()}
    with suppress(PluginError):
        folders |= {file.parent for file in _files_of_plugin(name).values()}
    return sorted({file for folder in folders for file in folder.rglob("*.py")})


def _files_of_plugin(part: str) -> dict[str, Path]:
    """The files of the group in `part`, a task or a group, if a plugin adds it."""
    group = part.partition("/")[0]
    return {} if group in _groups(built_in_files()) else files_of_group(group)


def find(asked: str) -> dict[str, Path]:
    """Name -> file of the tasks in `asked`: tasks, groups, and the user's own files or folders,
    separated by commas. Built-in tasks come first, then those that plugins add.

    The name of a user's file is its folder and stem, `mine/ones` for `…/mine/ones.yaml`, whether
    `asked` has the file or its folder.

    Raises:
        UnknownTaskError: a part names no task file, or two different files have the same name.
    """
    files: dict[str, Path] = {}
    for part in filter(None, (part.strip() for part in asked.split(","))):
        for name, file in _find_part(part):
            if prompt.utf8_problem("", name):
                raise UnknownTaskError(
                    f"the name of task {name!r} is not UTF-8, and it is in every sample's id; "
                    "rename the file or its folder"
                )
            if files.setdefault(name, file) != file:
                raise UnknownTaskError(
                    f"two different files have the name {name!r}: {files[name]} and {file}; "
                    "rename one or run them apart"
                )
    if not files:
        raise UnknownTaskError("no task named; 'bench tasks' lists them")
    return files


def reopen(name: str, digest: str, *, others: str = "") -> Task:
    """The task of a run, by its `name` and the `digest` of its spec.

    Searches the files that `others` names, then the installed tasks. A file of
    `others` that was renamed is recognised by its digest.

    Raises:
        AbsentTaskError: there is no file for the task.
        ChangedTaskError: the file has changed since the run.
        UnknownTaskError: `others` names no task file.
        TaskFileError: the file has mistakes.
    """
    files = find(others) if others else {}
    file, why = files.get(name), f"the task file of {name} is not at hand"
    try:
        file = file or installed_file(name)
    except PluginError as error:
        why = str(error)
    if file is None or not file.is_file():
        for path in files.values():  # it may have been renamed
            if (task := of_digest(open_task(name, path, trial=False), digest)) is not None:
                return task
        raise AbsentTaskError(f"{why}; name it with {named('tasks')}")
    task = of_digest(open_task(name, file, trial=False), digest)
    if task is None:
        raise ChangedTaskError(f"{name} has changed since this run; name the file as it was")
    return task


def of_digest(task: Task, digest: str) -> Task | None:
    """The task with or without the axis `examples`, whichever has this `digest` of its spec."""
    both = (task, task.with_examples())
    return next((one for one in both if one.spec.digest() == digest), None)


def _find_part(part: str) -> Iterator[tuple[str, Path]]:
    if files := _installed_part(part):
        yield from files.items()
    elif _is(Path(part), "dir"):
        folder = Path(os.path.abspath(part))  # noqa: PTH100  # keeps links, unlike resolve()
        own = list(named_files(folder, folder.parent))
        if not own:
            raise UnknownTaskError(f"no task file (*.yaml) in folder {part!r}")
        yield from own
    elif _is(Path(part), "file"):
        file = Path(os.path.abspath(part))  # noqa: PTH100
        yield (Path(file.parent.name) / file.stem).as_posix(), file.resolve()
    elif part.endswith(SUFFIXES):
        raise UnknownTaskError(f"no file {part!r}")
    elif part.startswith((".", "/", "~")) or part.endswith("/"):
        raise UnknownTaskError(f"no folder {part!r}")
    else:
        raise UnknownTaskError(f"unknown task {part!r}; {_suggestion(part, installed_files())}")


def _installed_part(part: str) -> dict[str, Path]:
    """The files of the built-in task or group `part`, or of the one that a plugin adds; empty if
    there is none.

    Raises:
        UnknownTaskError: the plugin cannot be used, and the user has no such file.
    """
    files = _part_of(built_in_files(), part)
    try:
        return files or _part_of(_files_of_plugin(part), part)
    except PluginError as error:
        if _is(Path(part), "dir") or _is(Path(part), "file"):
            return {}
        raise UnknownTaskError(str(error)) from error


def _part_of(files: Mapping[str, Path], part: str) -> dict[str, Path]:
    """The files of the task `part`, or else of the group `part`."""
    if part in files:
        return {part: files[part]}
    return {name: file for name, file in files.items() if name.startswith(f"{part}/")}


def _suggestion(part: str, known: Collection[str]) -> str:
    for suffix in SUFFIXES:
        if _is(Path(f"{part}{suffix}"), "file"):
            return f"did you mean the file '{part}{suffix}'?"
    short = {name.rpartition("/")[2]: name for name in known}
    close = closest(part.lower(), [*known, *_groups(known), *short], likeness=0.5)
    return (
        "'bench tasks' lists them"
        if close is None
        else f"did you mean {short.get(close, close)!r}?"
    )


def _is(path: Path, kind: str) -> bool:
    """Whether `path` is a folder (`kind` "dir") or a file; an impossible file name is neither."""
    try:
        return path.is_dir() if kind == "dir" else path.is_file()
    except (OSError, ValueError):
        return False


def open_task(name: str, path: Path, *, trial: bool = True) -> Task:
    """Opens the task in `path`; with `trial` its items are drawn and its prompts rendered too.

    Raises:
        TaskFileError: the file has mistakes; the error lists all of them.
    """
    return Task(name, path, read_spec(path, trial=trial))
