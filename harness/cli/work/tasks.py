"""The work of `bench tasks`; each function prints lines, or with `as_json` one document."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from eyechart.harness.cli.documents import print_document
from eyechart.harness.cli.tables.lists import aligned, with_origins
from eyechart.harness.cli.terminal import echo, say, warn
from eyechart.harness.errors import (
    COMPLETE,
    USAGE,
    EyechartError,
    TaskError,
    TaskFileError,
)
from eyechart.harness.plan.plan import plan
from eyechart.harness.plan.selection import open_tasks
from eyechart.harness.spec import Sample
from eyechart.harness.task.catalogue import Task, built_in_files, find, open_task, plugin_tasks
from eyechart.harness.task.functions import ItemError
from eyechart.harness.task.generator import ItemsFileError
from eyechart.providers.plugins.plugins import BUILT_IN


def list_tasks(*, as_json: bool) -> None:
    """Prints a line for each task: name, title, axes, lengths, requests by default."""
    if as_json:
        print_document({"tasks": [_summary(task, origin) for origin, task in _installed_tasks()]})
        return
    names = ("task", "from", "lengths", "requests", "title", "axes")
    rows = []
    for origin, task in _installed_tasks():
        lengths = task.lengths
        span = f"{lengths[0]}-{lengths[-1]}" if len(lengths) > 1 else str(lengths[0])
        axes = " ".join(task.spec.axes) or "-"
        rows.append((task.name, origin, span, f"{plan(task).size:,}", task.spec.title, axes))
    shown = with_origins(names, rows)
    numbers = [shown[0].index(name) for name in ("lengths", "requests")]
    echo(*aligned(shown, right=numbers))


def _installed_tasks() -> Iterator[tuple[str, Task]]:
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


def _summary(task: Task, origin: str) -> dict[str, Any]:
    spec = task.spec
    return {
        "task": task.name,
        "from": origin,
        "version": spec.version,
        "title": spec.title,
        "source": spec.source,
        "answer": spec.answer.type,
        "axes": {
            name: {"values": list(axis.values), "default": list(axis.default)}
            for name, axis in spec.axes.items()
        },
        "lengths": list(task.lengths),
        "samples": task.samples,
        "requests": plan(task).size,
        "file": task.path,
    }


def show_tasks(names: str, *, as_json: bool) -> None:
    """Prints each task file, and a prompt for each of its default conditions."""
    tasks = open_tasks(names)
    if as_json:
        print_document({"tasks": [_shown(task) for task in tasks]})
        return
    for task in tasks:
        echo(f"# {task.name}: {task.path}", "")
        echo(*task.path.read_text(encoding="utf-8-sig").split("\n"))
        echo(f"# lines: {', '.join(map(str, plan(task).lines))}")
        if task.spec.answer.read == "first":
            echo("# read: first; the answer with which a reply begins")
        echo("")
        _echo_prompts(task)


def _shown(task: Task) -> dict[str, Any]:
    origin = BUILT_IN if task.is_installed else "your file"
    return {
        **_summary(task, origin if task.plugin is None else str(task.plugin)),
        "spec": task.spec.model_dump(mode="json", exclude_none=True),
        "lines": [
            {"length": line.length, "low": line.low, "high": line.high} for line in plan(task).lines
        ],
        "prompts": [sample_document(task, sample) for sample in shown_samples(task)],
    }


def sample_document(task: Task, sample: Sample) -> dict[str, Any]:
    return {
        "id": sample.id,
        "condition": sample.condition,
        "length": sample.length,
        "system": task.spec.system,
        "prompt": sample.prompt,
        "target": sample.target,
        "accept": sample.accept,
    }


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


def check_tasks(names: str, *, as_json: bool) -> int:
    """Checks task files and proves the tasks; prints a line for each, and the prompts where there
    is only one; returns the exit code.
    """
    code = COMPLETE
    documents: list[dict[str, Any]] = []
    files = find(names)
    for name, path in files.items():
        task, problems, unusual = _checked(name, path)
        code = USAGE if problems else code
        if as_json:
            found = {"sound": not problems, "problems": problems, "warnings": unusual}
            documents.append({"task": name, "file": path, **found})
            continue
        for line in unusual:
            warn(line)
        if problems or task is None:
            say(*problems)
            continue
        _echo_sound(name, task)
        if len(files) == 1:
            echo("")
            _echo_prompts(task)
    if as_json:
        print_document({"tasks": documents})
    return code


def _checked(name: str, path: Path) -> tuple[Task | None, list[str], list[str]]:
    """Checks a task file and proves the task: the task (`None` if the file cannot be opened), its
    problems, and what is unusual in it.
    """
    from eyechart.harness.plan.proof import failure_lines, repetitions
    from eyechart.harness.plan.warnings import warnings

    try:
        task = open_task(name, path)
        problems = [*failure_lines(task), *repetitions(task)]
        return task, problems, [*warnings(task)]
    except (TaskFileError, TaskError) as error:
        return None, [*error.lines], []


def _echo_sound(name: str, task: Task) -> None:
    from eyechart.harness.plan.oracles import PERFECT

    ways = f"{len(PERFECT)} ways to be right in each"
    if task.scorer is not None:
        ways = f"judged by its own scorer, which takes {len(PERFECT)} forms of a reply"
    echo(f"{name}: sound ({plan(task, samples=1).size} cells, {ways})")


def new_task(name: str, generator: str, *, as_json: bool) -> int:
    """Writes a new task into the current folder, and opens it; prints its files and what can be
    done next; returns the exit code.
    """
    from eyechart.harness.task.new_task import new_task as write

    files = write(name, generator=generator, folder=Path())
    ((full_name, path),) = find(str(files[0])).items()
    problems: list[str] = []
    try:
        open_task(full_name, path)
    except TaskFileError as error:  # of a generator that was there before
        problems += error.lines
    follow = [f"bench tasks check {files[0]}", f"bench run --task {files[0]} --model tiny"]
    if as_json:
        print_document({"files": files, "problems": problems, "next": follow})
    elif problems:
        echo(*map(str, files), "")
        warn(f"{files[0]} is written, and {generator} needs changes in it:")
        say(*problems)
    else:
        echo(*map(str, files), "", *(f"next: {command}" for command in follow))
    return USAGE if problems else COMPLETE
