"""The chapter of built-in tasks, `docs/prompts.md`, made from their files."""

from __future__ import annotations

import re
from collections.abc import Iterator

from eyechart.harness.cli.work.tasks import shown_samples
from eyechart.harness.task.catalogue import Task, built_in_files, open_task

_HEAD = """\
# The tasks, with example prompts

A reference of every built-in task, made from its file, with lengths, source, notes and axes.
[What is measured, and why](theory.md) says which question each task belongs to, and
[a task of your own](tasks.md) explains the files.

- Values of axes in bold run by default, the others with `--axis AXIS=VALUE` or `--axis AXIS=all`.
- A length is a number of symbols: digits, letters, words, keys, steps, leaves, or records.
- `order=row_first` shows the row before the question. A model then reads the row without knowing
  what is asked of it, and breaking points move.
- Five tasks whose prompts have different forms show one, of about ten symbols; `bench tasks show
  NAME` prints those of any task.
"""
_SHOWN = (
    *("context/first_last", "copying/first_last", "counting/bernoulli"),
    *("memory/flip_flop", "spelling/letters_in_words"),
)
"""The tasks with a prompt; docs/around.md shows one of several turns."""
_NOTE = re.compile(r"^# (?!yaml-language-server)(.*)$", re.MULTILINE)
"""A comment that is about the whole task: it begins its line."""


def prompts_page() -> str:
    """The whole page; the prompts are printed by the commands before them."""
    tasks = [open_task(name, path, trial=False) for name, path in built_in_files().items()]
    return _HEAD + "".join(part for task in tasks for part in _section(task))


def _section(task: Task) -> Iterator[str]:
    spec = task.spec
    lengths = f"lengths {task.lengths[0]} to {task.lengths[-1]}"
    if len(task.lengths) == 1:
        lengths = f"length {task.lengths[0]}"
    yield f"\n## {task.name}\n\n{spec.title}; {lengths}. Source: {spec.source}.\n\n"
    if notes := _NOTE.findall(task.path.read_text(encoding="utf-8")):
        yield f"{' '.join(notes)}\n\n"
    for axis, choices in spec.axes.items():
        values = (f"**{one}**" if one in choices.default else one for one in choices.values)
        yield f"- {axis}: {', '.join(values)}\n"
    if task.name in _SHOWN:
        sample = shown_samples(task)[0].id
        yield f"\n<!-- printed by: bench tasks sample '{sample}' -->\n```text\n```\n"
