"""Where a task's items come from: a generator function beside the task file, or a JSONL file."""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import random
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import orjson

from harness.spec import Answer, Item


class ItemError(Exception):
    """A generator or items file does not give what it should; one line, lower case."""

    def __init__(self, message: str, *, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line
        """Line of the items file, counted from 1."""


@dataclass(frozen=True, slots=True)
class Generator:
    """A loaded generator function and what it wants to know."""

    function: Callable[..., Item]
    keywords: frozenset[str]
    """Names it takes besides `rng` and `length`."""
    required: frozenset[str]

    def draw(self, rng: random.Random, length: int, names: Mapping[str, object]) -> Item:
        """An item; `names` may hold more than the function takes."""
        wanted = {name: names[name] for name in self.keywords if name in names}
        return self.function(rng, length, **wanted)


@cache
def load_generator(task_file: Path, reference: str) -> Generator:
    """The function that `file.py:function` names, the file relative to `task_file`.

    Raises:
        ItemError: the file or function is missing, its import fails, or its parameters do not fit.
    """
    file_name, _, function_name = reference.rpartition(":")
    path = (task_file.parent / file_name).resolve()
    if not path.is_file():
        raise ItemError(f"generator file {file_name!r} is not there (looked for {path})")
    function = getattr(_module(path), function_name, None)
    if function is None or not callable(function):
        here = [n for n, v in vars(_module(path)).items() if inspect.isfunction(v) and n[0] != "_"]
        raise ItemError(
            f"no function {function_name!r} in {file_name!r}; it has {', '.join(here) or 'none'}"
        )
    parameters = list(inspect.signature(function).parameters.values())
    if len(parameters) < 2:  # noqa: PLR2004  # rng and length
        raise ItemError(f"{reference} must take (rng, length, …), it takes {len(parameters)}")
    named = [p for p in parameters[2:] if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return Generator(
        function=function,
        keywords=frozenset(p.name for p in named),
        required=frozenset(p.name for p in named if p.default is p.empty),
    )


@cache
def _module(path: Path) -> object:
    name = f"eyechart_task_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    writes_bytecode = sys.dont_write_bytecode
    sys.dont_write_bytecode = True
    try:
        spec.loader.exec_module(module)
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:  # the user's code: whatever it raises is a mistake in it
        raise ItemError(f"importing {path.name} raised {describe(error)}") from error
    finally:
        sys.dont_write_bytecode = writes_bytecode
    return module


@cache
def load_items(task_file: Path, file_name: str, answer: Answer) -> dict[int, list[Item]]:
    """Length -> the items of that length, in the file's order.

    Raises:
        ItemError: the file is missing or a line of it is not an item.
    """
    path = task_file.parent / file_name
    if not path.is_file():
        raise ItemError(f"items file {file_name!r} is not there (looked for {path})")
    by_length: dict[int, list[Item]] = {}
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if line.strip():
                length, item = _read_item(line, number, answer)
                by_length.setdefault(length, []).append(item)
    if not by_length:
        raise ItemError(f"items file {file_name!r} is empty", line=1)
    return by_length


def _read_item(line: bytes, number: int, answer: Answer) -> tuple[int, Item]:
    try:
        read = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise ItemError(f"not JSON: {error}", line=number) from None
    if not isinstance(read, dict):
        raise ItemError("an item is a JSON object", line=number)
    for name in ("variables", "target", "length"):
        if name not in read:
            raise ItemError(f"the item has no {name!r}", line=number)
    if extra := set(read) - {"variables", "target", "length"}:
        raise ItemError(f"unknown key {min(extra)!r} in the item", line=number)
    length, variables = read["length"], read["variables"]
    if not isinstance(length, int) or isinstance(length, bool) or length < 1:
        raise ItemError(f"length must be a positive integer, not {length!r}", line=number)
    if not isinstance(variables, dict):
        raise ItemError("variables must be an object", line=number)
    symbols = variables.get("symbols", [])
    if not isinstance(symbols, list) or not all(isinstance(s, str) for s in symbols):
        raise ItemError("symbols must be a list of strings", line=number)
    item = Item(symbols, read["target"], {k: v for k, v in variables.items() if k != "symbols"})
    if problem := _target_problem(item.target, answer):
        raise ItemError(problem, line=number)
    return length, item


def item_problem(item: object, length: int, answer: Answer) -> str | None:
    """What is wrong with what a generator returned; `None` if nothing is."""
    if not isinstance(item, Item):
        return f"the generator returned {type(item).__name__}, not an Item"
    if len(item.symbols) != length:
        return f"the generator returned {len(item.symbols)} symbols where {length} were asked for"
    if isinstance(item.symbols, str) or not all(isinstance(s, str) for s in item.symbols):
        return "an item's symbols are a list of strings"
    return _target_problem(item.target, answer)


def _target_problem(target: object, answer: Answer) -> str | None:
    wanted = int if answer.type == "integer" else str
    if not isinstance(target, wanted) or isinstance(target, bool):
        return f"the target {target!r} does not fit 'answer: {answer.type}'"
    if isinstance(target, str) and not target.strip():
        return "the target is empty text, which no reply can show"
    return None


def describe(error: BaseException) -> str:
    """An exception of somebody's code in one line, with the line it came from if known."""
    said = " ".join(str(error).split())
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = f" (line {trace.tb_lineno})" if trace is not None else ""
    return f"{type(error).__name__}{': ' + said if said else ''}{where}"
