"""Writes a new task of the user's own: a file that opens and runs as it is, to be changed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import yaml
from pydantic import TypeAdapter, ValidationError

from eyechart.harness.errors import UsageError
from eyechart.harness.spec.task_file import NAME_FORM, CodeReference, Name
from eyechart.harness.task.catalogue import installed_files
from eyechart.harness.task.files import SUFFIXES
from eyechart.harness.task.functions import ItemError
from eyechart.harness.task.generator import load_generator

_TASK = """\
version: 1                  # raise it with every change of prompt, data or scoring
title: Ones in a random row # what the task asks
generator: {generator}  # the function in the file beside this one
{params}lengths: [5, 10, 20, 40]    # numbers of symbols
samples: 20                 # of each length, under each condition
axes:                       # what the task varies besides length
  separator:                # {{{{ sequence }}}} is the row written with it
    default: [none, comma]  # what runs unless --axis says otherwise
    values: {{none: "", comma: ",", space: " "}}
prompt: |
  How many ones are in {row}?
  Answer at once, without explaining.
  On the last line write "{{{{ phrase }}}}" and then the number.
  {sequence}: {{{{ sequence }}}}
answer: integer
"""
_PARAMS = "params: {share: 0.7}        # arguments of the function\n"
_GENERATOR = '''\
"""The rows of {name}.yaml, and their right answers."""

from eyechart import Item


def row(rng, length, *, share):
    """A row of `length` symbols; {name}.yaml gives `share`.

    Draw from `rng` alone: the label first, which does not depend on the length, then one symbol
    after the other. Then a longer row of one index begins with the shorter one, and lengths are
    compared on the same rows.
    """
    label = "".join(rng.choice("ABCDEFGHIJKLMNOPQRSTUVWXYZ") for _ in range(3))
    symbols = ["1" if rng.random() < share else "0" for _ in range(length)]
    return Item(symbols=symbols, target=symbols.count("1"), variables={{"label": label}})
'''
_SHOWN = 60


def new_task(name: str, *, generator: str = "", folder: Path) -> list[Path]:
    """Writes the task `name` into `folder`; returns the files, the task's first.

    A generator is written beside it, unless `generator` names one that is there, as
    `file.py:function`. A file is never replaced.

    Raises:
        UsageError: no task can have the name, a file of it is there, or the generator is not.
        OSError: a file cannot be written.
    """
    name = _checked(name)
    path, code = folder / f"{name}{SUFFIXES[0]}", folder / f"{name}.py"
    if generator:
        _find_generator(path, generator)
        row = {"row": "the row", "sequence": "Row"}
        quoted = yaml.safe_dump(generator, allow_unicode=True, width=math.inf).splitlines()[0]
        texts = {path: _TASK.format(generator=quoted, params="", **row)}
    else:
        row = {"row": "row {{ label }}", "sequence": "Row {{ label }}"}
        made = f"{code.name}:row"
        texts = {
            path: _TASK.format(generator=made, params=_PARAMS, **row),
            code: _GENERATOR.format(name=name),
        }
    others = [folder / f"{name}{suffix}" for suffix in SUFFIXES[1:]]  # would be the same task
    if there := [file.name for file in (*texts, *others) if file.exists() or file.is_symlink()]:
        raise UsageError(
            f"{there[0]!r} is already in this folder, and nothing was written; choose another name"
            + (", or --generator FILE.py:FUNCTION" if there == [code.name] else "")
        )
    _write(texts)
    return list(texts)


def _checked(name: str) -> str:
    """`name`, without the suffix of a task file."""
    shown = repr(name) if len(name) <= _SHOWN else f"{name[:_SHOWN]!r}…"
    for suffix in SUFFIXES:
        name = name.removesuffix(suffix)
    try:
        TypeAdapter(Name).validate_python(name)
    except ValidationError:
        raise UsageError(
            f"a new task cannot be called {shown}: the name must be {NAME_FORM}, begin with a "
            "letter and have at most 40 characters, such as my_task, without a path"
        ) from None
    for task in installed_files():
        group, _, last = task.rpartition("/")
        if name in {group, last}:
            what = f"the task {task}" if name == last else "a group of tasks"
            raise UsageError(f"{name!r} is the name of {what}; choose another name")
    return name


def _find_generator(path: Path, generator: str) -> None:
    try:
        TypeAdapter(CodeReference).validate_python(generator)
        load_generator(path, generator)
    except ValidationError:
        raise UsageError(f"--generator must be FILE.py:FUNCTION, not {generator!r}") from None
    except ItemError as error:
        raise UsageError(f"--generator: {error}") from error


def _write(texts: Mapping[Path, str]) -> None:
    """Writes all files or none."""
    written: list[Path] = []
    try:
        for path, text in texts.items():
            with path.open("x", encoding="utf-8") as file:
                written.append(path)
                file.write(text)
    except OSError:
        for path in written:
            with suppress(OSError):
                path.unlink()
        raise
