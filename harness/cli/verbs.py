"""The work of the verbs `tasks` and `models`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from eyechart.harness.cli.lists import aligned
from eyechart.harness.cli.terminal import echo, say, warn
from eyechart.harness.errors import (
    COMPLETE,
    USAGE,
    EyechartError,
    TaskError,
    TaskFileError,
    UsageError,
)
from eyechart.harness.plan.plan import plan
from eyechart.harness.plan.selection import open_tasks
from eyechart.harness.spec import Sample
from eyechart.harness.task.catalogue import Task, built_in_files, find, open_task, plugin_tasks
from eyechart.harness.task.functions import ItemError
from eyechart.harness.task.generator import ItemsFileError
from eyechart.providers.base import install
from eyechart.providers.plugins import BUILT_IN

DRAWN = ("pdf", "png", "svg")
"""Forms of charts that an extra draws."""


def check_output(option: str, path: Path | None) -> None:
    """Raises `UsageError` if `path` is a folder or a device, which no file may replace."""
    if path is None:
        return
    if path.is_dir():
        raise UsageError(f"{option} {str(path)!r} is a folder; name a file")
    if path.exists() and not path.is_file():
        raise UsageError(f"{option} {str(path)!r} is no file that can be replaced; name another")


def check_drawing(option: str, form: str) -> None:
    """Raises `UsageError` where charts are to be drawn in this form without the extra for it."""
    if form in DRAWN and find_spec("vl_convert") is None:
        raise UsageError(
            f"{option} {form} needs the package vl-convert-python: {install('charts')}"
        )


def list_tasks() -> None:
    """Prints a line for each task: name, title, axes, lengths, requests by default."""
    names = ("task", "from", "lengths", "requests", "title", "axes")
    rows = []
    for origin, task in installed_tasks():
        lengths = task.lengths
        span = f"{lengths[0]}-{lengths[-1]}" if len(lengths) > 1 else str(lengths[0])
        axes = " ".join(task.spec.axes) or "-"
        rows.append((task.name, origin, span, f"{plan(task).size:,}", task.spec.title, axes))
    shown = with_origins(names, rows)
    numbers = [shown[0].index(name) for name in ("lengths", "requests")]
    echo(*aligned(shown, right=numbers))


def installed_tasks() -> Iterator[tuple[str, Task]]:
    """Each task that is built in or that a plugin adds, with its origin.

    Warns of plugins that cannot be used, and of mistakes in their files.
    """
    for name, path in built_in_files().items():
        yield BUILT_IN, open_task(name, path, trial=False)
    added = plugin_tasks()
    for name, path in added.files.items():
        plugin = added.plugins[name.partition("/")[0]]
        try:
            task = open_task(name, path, trial=False)
            _ = plan(task)
        except (EyechartError, ItemError, ItemsFileError) as error:
            for line in getattr(error, "lines", [str(error)]):
                warn(f"{plugin}: {line}")
        else:
            yield str(plugin), task
    for problem in added.errors:
        warn(str(problem))


def show_tasks(names: str) -> None:
    """Prints each task file, and a prompt for each of its default conditions."""
    for task in open_tasks(names):
        echo(f"# {task.name}: {task.path}", "")
        echo(*task.path.read_text(encoding="utf-8").split("\n"))
        echo(f"# lines: {', '.join(map(str, plan(task).lines))}")
        if task.spec.answer.read == "first":
            echo("# read: first; the answer with which a reply begins")
        for name, preset in task.spec.presets.items():
            echo(f"# --preset {name}, {plan(task, preset=name).size:,} requests: {preset.title}")
        echo("")
        _echo_prompts(task)


_SHOWN_LENGTH = 10


def shown_samples(task: Task) -> list[Sample]:
    """A sample of each default condition, of a length that can be read."""
    planned = plan(task, samples=1)
    line = min(planned.lines, key=lambda line: abs(line.length - _SHOWN_LENGTH))
    return [planned.sample(condition, line, 0) for condition in planned.conditions]


def _echo_prompts(task: Task) -> None:
    """Prints a prompt for each default condition, with the system prompt before it if any."""
    for sample in shown_samples(task):
        also = f", also {', '.join(map(repr, sample.accept))}" if sample.accept else ""
        echo(f"# {sample.id}, target {sample.target!r}{also}")
        if task.spec.system is not None:
            echo(*(f"| system: {text}" for text in task.spec.system.split("\n")))
        echo(*(f"| {text}" for text in sample.prompt.split("\n")), "")


@dataclass(frozen=True, slots=True)
class Checked:
    task: Task | None
    """`None` if the file cannot be opened."""
    problems: list[str]
    unusual: list[str]


def check_task(name: str, path: Path) -> Checked:
    """Checks a task file and proves the task."""
    from eyechart.harness.plan.proof import failures, repetition
    from eyechart.harness.plan.warnings import warnings

    task: Task | None = None
    problems: list[str] = []
    unusual: list[str] = []
    try:
        task = open_task(name, path)
        problems += [*map(str, failures(task)), *filter(None, [repetition(task)])]
        unusual += warnings(task)
    except (TaskFileError, TaskError) as error:
        problems = [*error.lines]
    return Checked(task, problems, unusual)


def check_tasks(names: str) -> int:
    """Checks task files and proves the tasks; prints a line for each, and the prompts where there
    is only one; returns the exit code.
    """
    from eyechart.harness.plan.oracles import PERFECT

    code = COMPLETE
    files = find(names)
    for name, path in files.items():
        checked = check_task(name, path)
        for line in checked.unusual:
            warn(line)
        if checked.problems or checked.task is None:
            code = USAGE
            say(*checked.problems)
            continue
        cells = plan(checked.task, samples=1).size
        ways = f"{len(PERFECT)} ways to be right in each"
        if checked.task.scorer is not None:
            ways = f"judged by its own scorer, which takes {len(PERFECT)} forms of a reply"
        echo(f"{name}: sound ({cells} cells, {ways})")
        if len(files) == 1:
            echo("")
            _echo_prompts(checked.task)
    return code


@dataclass(frozen=True, slots=True)
class Written:
    """A new task of the user's."""

    files: list[Path]
    """The task's file first."""
    problems: list[str]
    """Why the task cannot be used yet, where its generator was there before."""

    @property
    def commands(self) -> list[str]:
        """What can be done with it next."""
        name = self.files[0]
        return [f"bench tasks check {name}", f"bench run --task {name} --model tiny"]


def write_task(name: str, generator: str) -> Written:
    """Writes a new task into the current folder, and opens it."""
    from eyechart.harness.task.new_task import new_task

    files = new_task(name, generator=generator, folder=Path())
    ((full_name, path),) = find(str(files[0])).items()
    try:
        open_task(full_name, path)
    except TaskFileError as error:
        return Written(files, [*error.lines])
    return Written(files, [])


def new_task(name: str, generator: str) -> int:
    """Writes a new task; prints its files and what can be done next; returns the exit code."""
    written = write_task(name, generator)
    echo(*map(str, written.files), "")
    if written.problems:
        warn(f"{written.files[0]} is written, and {generator} needs changes in it:")
        say(*written.problems)
        return USAGE
    echo(*(f"next: {command}" for command in written.commands))
    return COMPLETE


def update_prices() -> None:
    """Fetches the newest list of prices, and prints where it is stored.

    Raises:
        UpdateError: there is no network, or what came is no list.
    """
    from datetime import UTC, datetime

    from eyechart.providers.catalog.price_list import update

    path, models = update(datetime.now(UTC).date())
    say(f"today's prices, {models:,} models, are in {path}; all commands use them")


def list_models() -> None:
    """Prints a line for each provider: what it is, what it needs and, if there are plugins, where
    it comes from. Raises `SetupError` for a mistake in one of the user's files.
    """
    from eyechart.providers.catalog.model_facts import model_facts
    from eyechart.providers.registry import listed

    model_facts("")  # a mistake in the file is raised here
    found, errors = listed()
    rows = [(one.provider, one.origin, one.what, one.needs) for one in found]
    echo(*aligned(with_origins(("provider", "from", "what it is", "needs"), rows)))
    for error in errors:
        warn(str(error))


def with_origins(names: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """A list below the names of its columns, without the column `from` if all is built in."""
    if any(row[1] != BUILT_IN for row in rows):
        return [names, *rows]
    return [(row[0], *row[2:]) for row in (names, *rows)]
