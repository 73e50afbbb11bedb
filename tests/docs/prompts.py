"""The chapter of example prompts, `docs/prompts.md`, made from the built-in tasks."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from eyechart.harness.cli.work.tasks import shown_samples
from eyechart.harness.plan.plan import make_sample
from eyechart.harness.spec import Line, Sample
from eyechart.harness.task.catalogue import Task, built_in_files, open_task

_HEAD = """\
# The tasks, with example prompts

Every built-in task with one prompt of about ten symbols, under the first condition that runs by
default. The tables say how each value of an axis changes this prompt; values in bold run by
default, the others with `--axis AXIS=VALUE` or `--axis AXIS=all`. `bench tasks show NAME` prints a
task's file. [A task of your own](tasks.md) explains the files, and
[what is measured, and why](theory.md) says which question each task belongs to.
"""
_LONGEST_CELL = 70
_MOST_LINES = 3


def prompts_page() -> str:
    """The whole page; the prompts are printed by the commands before them."""
    return _HEAD + "".join(
        part
        for name, path in built_in_files().items()
        for part in _section(open_task(name, path, trial=False))
    )


def _section(task: Task) -> Iterator[str]:
    spec = task.spec
    example = shown_samples(task)[0]
    lengths = f"lengths {task.lengths[0]} to {task.lengths[-1]}"
    if len(task.lengths) == 1:
        lengths = f"length {task.lengths[0]}"
    yield f"\n## {task.name}\n\n{spec.title}; {lengths}. Source: {spec.source}.\n\n"
    yield f"<!-- printed by: bench tasks sample '{example.id}' -->\n```text\n```\n"
    if not spec.axes:
        return
    yield "\n| axis | value | what it changes in the prompt |\n| --- | --- | --- |\n"
    for axis, choices in spec.axes.items():
        for value in choices.values:
            shown = f"**{value}**" if value in choices.default else value
            yield f"| {axis} | {shown} | {_change(task, example, axis, value)} |\n"


def _change(task: Task, example: Sample, axis: str, value: str) -> str:
    """The lines that a prompt has under another value of an axis, and the example has not."""
    if example.condition[axis] == value:
        return "as above"
    condition = example.condition.with_value(axis, value)
    other = make_sample(task, condition, Line.exact(example.length), example.index, seed=0)
    before, after = example.prompt.splitlines(), other.prompt.splitlines()
    changes = [line for line in difflib.ndiff(before, after) if line[:2] in {"+ ", "- "}]
    new = [line[2:].strip() for line in changes if line.startswith("+ ") and line[2:].strip()]
    old = [line[2:].strip() for line in changes if line.startswith("- ") and line[2:].strip()]
    if sorted(new) == sorted(old):
        return "the same lines in another order" if changes else "nothing in this sample"
    if not new:
        return "without " + "<br>".join(map(_code, old))
    shown = [_code(line) for line in new[:_MOST_LINES]]
    return "<br>".join([*shown, "…"] if len(new) > _MOST_LINES else shown)


def _code(text: str) -> str:
    """A text as code in a cell, cut off where it is long."""
    text = text.replace("|", "\\|")
    cut = text if len(text) <= _LONGEST_CELL else text[: _LONGEST_CELL - 1].rstrip() + "…"
    return f"`` {cut} ``" if "`" in cut else f"`{cut}`"
