"""Finds task files by name or path, and opens them."""

from __future__ import annotations

import difflib
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from harness import prompt
from harness.check import TaskFileError, read_spec
from harness.generator import (
    Generator,
    describe,
    item_problem,
    load_generator,
    load_items,
)
from harness.spec import Condition, Item, TaskSpec

SUFFIXES = (".yaml", ".yml")


class UnknownTaskError(Exception):
    """No task by that name or path."""


class TaskError(Exception):
    """A task that fails while its samples are made."""


@dataclass(frozen=True)
class Task:
    """One task file, opened."""

    name: str
    """Its path under the tasks folder without the suffix: `counting/bernoulli`."""
    path: Path
    spec: TaskSpec

    @cached_property
    def _generator(self) -> Generator | None:
        if self.spec.generator is None:
            return None
        return load_generator(self.path, self.spec.generator)

    @cached_property
    def _items(self) -> dict[int, list[Item]]:
        assert self.spec.items is not None
        return load_items(self.path, self.spec.items, self.spec.answer)

    @property
    def lengths(self) -> Sequence[int]:
        """The lengths that run by default."""
        return self.spec.lengths or sorted(self._items)

    @property
    def samples(self) -> int:
        """Samples per cell that run by default."""
        return self.spec.samples or max(len(items) for items in self._items.values())

    def items_at(self, length: int) -> int | None:
        """How many items of `length` there are; `None` if they are generated, so no end of them."""
        return None if self.spec.items is None else len(self._items.get(length, ()))

    def draw(self, rng: random.Random, condition: Condition, length: int, index: int) -> Item:
        """The item of one sample; an items file's ready one, else whatever `rng` gives.

        Raises:
            TaskError: the generator fails or returns the wrong thing.
        """
        where = f"task {self.name!r} at length {length}, sample {index}"
        try:
            if self._generator is None:
                return self._items[length][index]
            item = self._generator.draw(rng, length, {**self.spec.params, **self._shown(condition)})
        except (KeyboardInterrupt, MemoryError):
            raise
        except Exception as error:  # the task author's code may raise anything
            raise TaskError(f"{where}: {describe(error)}") from error
        if problem := item_problem(item, length, self.spec.answer):
            raise TaskError(f"{where}: {problem}")
        return item

    def prompt(self, item: Item, condition: Condition, length: int) -> str:
        """What the model is shown of `item` under `condition`.

        Raises:
            TaskError: the template fails for this item.
        """
        shown = self._shown(condition)
        names = prompt.names(self.spec.answer, item, length, shown)
        try:
            return prompt.render(self.spec.prompt, names)
        except (KeyboardInterrupt, MemoryError):
            raise
        except Exception as error:  # a template's expressions may raise anything
            where = f"task {self.name!r} at length {length}"
            raise TaskError(f"{where}: the prompt fails: {describe(error)}") from error

    def _shown(self, condition: Condition) -> dict[str, object]:
        axes = self.spec.axes
        return {axis: axes[axis].values[name] for axis, name in condition.items()}


def tasks_root() -> Path:
    """The folder of the built-in tasks: in the wheel, else beside the package."""
    inside = Path(__file__).parent / "_tasks"
    return inside if inside.is_dir() else Path(__file__).parent.parent / "tasks"


def built_in_files() -> dict[str, Path]:
    """Name -> file of every built-in task, sorted by name."""
    root = tasks_root()
    return dict(sorted(_named(_task_files(root), root)))


def find(asked: str) -> dict[str, Path]:
    """The task files that `asked` names: a task, a group, a file or folder of the user's, or
    several of them with commas between.

    A user's file is named by its folder and stem, `mine/ones` for `…/mine/ones.yaml`, whether the
    file or its folder was asked for.

    Raises:
        UnknownTaskError: nothing goes by that name.
    """
    found: dict[str, Path] = {}
    for part in filter(None, (part.strip() for part in asked.split(","))):
        for name, file in _find_one(part):
            if found.setdefault(name, file) != file:
                raise UnknownTaskError(
                    f"two different files go by the name {name!r}: {found[name]} and {file}; "
                    "rename one or run them apart"
                )
    if not found:
        raise UnknownTaskError("no task named; 'bench tasks' lists them")
    return found


def _find_one(part: str) -> Iterator[tuple[str, Path]]:
    built_in = built_in_files()
    group = [(name, file) for name, file in built_in.items() if name.startswith(f"{part}/")]
    if part in built_in:
        yield part, built_in[part]
    elif group:
        yield from group
    elif Path(part).is_dir():
        files = list(_task_files(Path(part)))
        if not files:
            raise UnknownTaskError(f"no task file (*.yaml) in folder {part!r}")
        yield from _named(files, Path(part).resolve().parent)
    elif Path(part).is_file():
        file = Path(part).resolve()
        yield f"{file.parent.name}/{file.stem}", file
    elif part.endswith(SUFFIXES):
        raise UnknownTaskError(f"no file {part!r}")
    else:
        groups = {name.partition("/")[0] for name in built_in}
        short = {name.rpartition("/")[2]: name for name in built_in}
        close = difflib.get_close_matches(part, [*built_in, *groups, *short], n=1, cutoff=0.5)
        guess = f"did you mean {short.get(close[0], close[0])!r}?" if close else ""
        raise UnknownTaskError(
            f"unknown task {part!r}; {guess or chr(39) + 'bench tasks' + chr(39) + ' lists them'}"
        )


def _task_files(folder: Path) -> Iterator[Path]:
    yield from sorted(file for file in folder.rglob("*") if file.suffix in SUFFIXES)


def _named(files: Iterator[Path] | list[Path], root: Path) -> Iterator[tuple[str, Path]]:
    for file in files:
        resolved = file.resolve()
        yield resolved.relative_to(root.resolve()).with_suffix("").as_posix(), resolved


def open_task(name: str, path: Path, *, trial: bool = True) -> Task:
    """The task in `path`, with its generator tried unless `trial` is false.

    Raises:
        TaskFileError: the file is wrong; says everything that is.
    """
    return Task(name, path, read_spec(path, trial=trial))


__all__ = [
    "Task",
    "TaskError",
    "TaskFileError",
    "UnknownTaskError",
    "built_in_files",
    "find",
    "open_task",
    "tasks_root",
]
