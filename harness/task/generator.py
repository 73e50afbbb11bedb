"""The items of a task, from a generator function beside the task file or from a JSONL file."""

from __future__ import annotations

import inspect
import json
import math
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from eyechart.harness.spec import Item, exact_json
from eyechart.harness.spec.answer import TYPES, Answer
from eyechart.harness.task import prompt
from eyechart.harness.task.functions import ItemError, load_function
from eyechart.providers.close_match import did_you_mean
from eyechart.providers.plugins.contract import described

_METADATA_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_WITH_ACCEPT = [kind.name for kind in TYPES.values() if kind.accepts]


class ItemsFileError(Exception):
    """An items file with mistakes."""

    def __init__(self, path: Path, mistakes: Sequence[tuple[int, int, str]]) -> None:
        self.path = path
        self.mistakes = mistakes
        """Line and column, from 1, and what is wrong there."""
        line, _, message = mistakes[0]
        super().__init__(f"{path}:{line}: {message}")


@dataclass(frozen=True, slots=True)
class Generator:
    """A loaded generator function and its parameters."""

    function: Callable[..., Item]
    path: Path
    keywords: frozenset[str]
    """Names of its parameters besides `rng` and `length`."""
    required: frozenset[str]
    """The parameters among them without a default."""

    def draw(
        self, rng: random.Random, length: int, names: Mapping[str, object], answer: Answer
    ) -> Item:
        """Draws an item; `names` may have more names than the function has parameters.

        Raises:
            ItemError: the function raises, or its item does not fit `length` or `answer`.
        """
        arguments = {name: names[name] for name in self.keywords if name in names}
        try:
            item = self.function(rng, length, **arguments)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # code of the task's author, which may raise anything
            raise ItemError(f"the generator raised {described(error, self.path)}") from error
        if problem := item_problem(item, length, answer):
            raise ItemError(problem)
        return item


@cache
def load_generator(task_file: Path, reference: str) -> Generator:
    """Loads the generator in `reference`, which is `file.py:function` relative to `task_file`.

    Raises:
        ItemError: the file or function is missing, its import fails, or its parameters do not fit.
    """
    path, function = load_function(task_file, reference, "generator")
    parameters = list(inspect.signature(function).parameters.values())
    if len(parameters) < 2:  # noqa: PLR2004  # rng and length
        raise ItemError(f"{reference} must take (rng, length, …), it takes {len(parameters)}")
    named = [p for p in parameters[2:] if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return Generator(
        function=function,
        path=path,
        keywords=frozenset(p.name for p in named),
        required=frozenset(p.name for p in named if p.default is p.empty),
    )


@cache
def load_items(task_file: Path, file_name: str, answer: Answer) -> dict[int, list[Item]]:
    """Length -> the items of that length, in the file's order.

    Raises:
        ItemError: the file is missing.
        ItemsFileError: the file is empty, or has lines that are not items; the error lists them.
    """
    path = task_file.parent / file_name
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except UnicodeDecodeError:
        raise ItemsFileError(path, [(1, 1, "not UTF-8; save the file as UTF-8")]) from None
    except (OSError, ValueError):
        raise ItemError(
            f"items file {file_name!r} is not there (looked beside the task file)"
        ) from None
    by_length: dict[int, list[Item]] = {}
    mistakes: list[tuple[int, int, str]] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            length, item = _read_item(line, answer)
            by_length.setdefault(length, []).append(item)
        except json.JSONDecodeError as error:
            mistakes.append((number, error.colno, f"not JSON: {error.msg}"))
        except ValueError as error:
            mistakes.append((number, 1, f"a number that cannot be read: {error}"))
        except ItemError as error:
            mistakes.append((number, 1, str(error)))
    if mistakes:
        raise ItemsFileError(path, mistakes)
    if not by_length:
        raise ItemsFileError(path, [(1, 1, f"items file {file_name!r} is empty")])
    return by_length


def item_lines(task_file: Path, file_name: str) -> list[tuple[int, int]]:
    """The line, from 1, and the length of each item of a valid items file, in the file's order."""
    text = (task_file.parent / file_name).read_text(encoding="utf-8-sig")
    lines = enumerate(text.split("\n"), start=1)
    return [(number, exact_json.loads(line)["length"]) for number, line in lines if line.strip()]


_ITEM_KEYS = ("variables", "target", "length")
_MORE_KEYS = ("accept", "metadata")


def _read_item(line: str, answer: Answer) -> tuple[int, Item]:
    fields = exact_json.loads(line)
    if not isinstance(fields, dict):
        raise ItemError("an item is a JSON object")
    known = (*_ITEM_KEYS, *_MORE_KEYS)
    for name in fields:
        if name not in known:
            raise ItemError(f"unknown key {name!r} in the item; {did_you_mean(name, known)}")
    for name in _ITEM_KEYS:
        if name not in fields:
            raise ItemError(f"the item has no {name!r}")
    length, variables = fields["length"], fields["variables"]
    if not isinstance(length, int) or isinstance(length, bool) or length < 0:
        raise ItemError(f"length must be a whole number from 0 on, not {length!r}")
    if not isinstance(variables, dict):
        raise ItemError("variables must be an object")
    symbols = variables.pop("symbols", None)
    more = {name: fields[name] for name in _MORE_KEYS if name in fields}
    item = Item([] if symbols is None else symbols, fields["target"], variables, **more)
    if symbols is not None and (problem := _symbols_problem(symbols, length)):
        raise ItemError(problem)
    if problem := _answer_problem(item, answer):
        raise ItemError(problem)
    return length, item


def item_problem(item: object, length: int, answer: Answer) -> str | None:
    """What is wrong with the `item` that a generator returned; `None` if nothing is."""
    if item is None:
        return "the generator returned None; is a 'return' missing?"
    if not isinstance(item, Item):
        return f"the generator returned {type(item).__name__}, not an Item"
    if problem := _symbols_problem(item.symbols, length):
        return problem
    variables = item.variables
    if not isinstance(variables, Mapping) or not all(isinstance(name, str) for name in variables):
        return "an item's variables are a mapping from names to values"
    for name, value in variables.items():
        if isinstance(value, set | frozenset | random.Random):
            kind = type(value).__name__
            return f"the variable {name!r} is a {kind}, which differs each time; give a list"
    return _answer_problem(item, answer) or _text_problem(item)


def _text_problem(item: Item) -> str | None:
    """Which text of an item is not valid UTF-8, and so cannot be sent; `None` if all are."""
    target = item.target if isinstance(item.target, int | float | str) else "".join(item.target)
    parts = {
        "a symbol": "".join(item.symbols),
        "the target": target,
        "accept": "".join(item.accept),
        **item.variables,
    }
    for part, text in parts.items():
        if isinstance(text, str) and not text.isascii():
            name = f"variable {part!r}" if part in item.variables else part
            if problem := prompt.utf8_problem(name, text):
                return problem
    return None


def _symbols_problem(symbols: object, length: int) -> str | None:
    if not isinstance(symbols, list | tuple) or not _are_text(symbols):
        return "an item's symbols are a list of strings"
    if len(symbols) != length:
        return f"{len(symbols)} symbols where length is {length}"
    return None


def _are_text(symbols: Sequence[object]) -> bool:
    """Whether all symbols are strings. Compares the set of types first: ten times as fast."""
    kinds = set(map(type, symbols))
    return kinds <= {str} or all(issubclass(kind, str) for kind in kinds)


def _answer_problem(item: Item, answer: Answer) -> str | None:
    """What is wrong with the answers or the metadata of `item`; `None` if nothing is."""
    return (
        answer.kind.problem(item.target, answer)
        or _accept_problem(item.accept, answer)
        or _all_right_problem(item, answer)
        or _metadata_problem(item.metadata)
        or _turns_problem(item.turn_targets, answer)
    )


def _accept_problem(accept: object, answer: Answer) -> str | None:
    if not isinstance(accept, list | tuple):
        return f"accept is a list of texts, not {accept!r}"
    if accept and not answer.kind.accepts:
        return f"accept goes with {', '.join(_WITH_ACCEPT)}, not with 'answer: {answer.type}'"
    problems = (answer.kind.problem(text, answer, "accepted answer") for text in accept)
    return next(filter(None, problems), None)


def _all_right_problem(item: Item, answer: Answer) -> str | None:
    if not answer.options:
        return None
    right = {answer.kind.compared(one, answer) for one in (item.target, *item.accept)}
    if right.issuperset(answer.kind.compared(o, answer) for o in answer.options):
        return "the target and accept are all of the options, so every choice would be right"
    return None


def _turns_problem(targets: object, answer: Answer) -> str | None:
    if not isinstance(targets, list | tuple):
        return f"turn_targets is a list of answers, not {targets!r}"
    problems = (answer.kind.problem(target, answer, "a turn's target") for target in targets)
    return next(filter(None, problems), None)


def _metadata_problem(metadata: object) -> str | None:
    if not isinstance(metadata, Mapping):
        return f"metadata is a mapping of names to texts or numbers, not {metadata!r}"
    for name, value in metadata.items():
        if not isinstance(name, str) or not _METADATA_NAME.fullmatch(name):
            return f"metadata name {name!r} must be lower case letters, digits and _, at most 40"
        if not isinstance(value, str | int | float) or isinstance(value, bool):
            return f"metadata {name!r} must be a text or a number, not {value!r}"
        if isinstance(value, float) and not math.isfinite(value):
            return f"metadata {name!r} is not a finite number"
    return None
