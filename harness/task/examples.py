"""Worked examples: other rows of a task with their answers, before the row that is asked.

The examples of a sample follow from seed, task, index and what its row is made of, and not from
its length: so all lengths of an index have the same ones, and two are the first two of eight. They
are rows of `SHORTEST` to `LONGEST` symbols, or the shortest items of a file of ready items, so that
a prompt grows with its own row alone. None of them is the row that is asked.

Their answers are spread: each as rarely as the others allow. Where all rows of a condition have the
same answer, the value of an axis that only the generator sees is drawn for each example.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, TypeAlias

from eyechart.harness.errors import PlanError, TaskError
from eyechart.harness.spec import EXAMPLES, Condition, Item, TaskSpec
from eyechart.harness.spec.worked_examples import answer_line, number_of
from eyechart.harness.task import prompt

SHORTEST, LONGEST = 4, 12
"""Symbols of a generated example."""
_LENGTHS = range(SHORTEST, LONGEST + 1)
_TURNS = 5
"""Rows of each length that examples are chosen from."""
_ITEMS = 64
"""Items of a file that examples are chosen from."""
_POOLS = 256
"""Most pools that are kept: those of many indices make no run slow, but take memory."""
_LABEL = "label"
"""The variable of an item that names its row in a prompt: two rows of one prompt have two names."""


class Source(Protocol):
    """The task that examples are of, see `catalogue.Task`."""

    @property
    def name(self) -> str: ...

    @property
    def spec(self) -> TaskSpec: ...

    @property
    def row_axes(self) -> frozenset[str]: ...

    @property
    def places(self) -> list[tuple[int, int]]: ...

    def item_at(self, length: int, index: int) -> Item | None: ...

    def draw(self, rng: random.Random, condition: Condition, length: int, index: int) -> Item: ...

    def prompt(
        self,
        item: Item,
        condition: Condition,
        length: int,
        index: int | None = None,
        *,
        around: bool = True,
    ) -> str: ...


@dataclass(frozen=True, slots=True)
class _Row:
    """A row that may be an example."""

    item: Item
    length: int
    answer: str


_Key: TypeAlias = tuple[tuple[tuple[str, str], ...], int, int]


class WorkedExamples:
    """The worked examples of one task."""

    def __init__(self, task: Source) -> None:
        self._task = task
        self._pools: dict[_Key, list[_Row]] = {}

    def before(self, asked: Item, condition: Condition, index: int, seed: int) -> str:
        """The text of the examples before the question about `asked`, which is the sample `index`:
        each as the prompt shows it, with its answer and an empty line after it. Empty where the
        condition has none.

        Raises:
            PlanError: the task has too few other rows, or an answer that no example can show.
            TaskError: the generator or the template fails.
        """
        wanted = number_of(self._task.spec, condition)
        if not wanted:
            return ""
        own, name = _shown(asked), asked.variables.get(_LABEL)
        others = [
            row
            for row in self._pool(condition, index, seed)
            if _shown(row.item) != own and (name is None or row.item.variables[_LABEL] != name)
        ]
        if len(others) < wanted:
            raise PlanError(
                f"task {self._task.name!r} has {len(others)} other rows for the {wanted} worked "
                f"examples of {EXAMPLES}={wanted}; ask for fewer",
                setting="axes",
            )
        return "".join(self._text(row, condition) for row in _spread(others, wanted))

    def _text(self, row: _Row, condition: Condition) -> str:
        answer = self._task.spec.answer
        shown = self._task.prompt(row.item, condition, row.length, around=False).rstrip()
        if "\n\n" in row.answer:
            raise PlanError(
                f"task {self._task.name!r} has answers with an empty line, which ends an answer in "
                f"worked examples; leave the axis {EXAMPLES!r} out",
                setting="axes",
            )
        if shown.endswith(answer.first_phrase.strip()):
            return f"{shown} {row.answer}\n\n"
        return f"{shown}\n{answer_line(answer, row.answer)}\n\n"

    def _pool(self, condition: Condition, index: int, seed: int) -> list[_Row]:
        """The rows that the examples of an index are chosen from, in the order of their draw."""
        values = tuple((axis, condition[axis]) for axis in sorted(self._task.row_axes))
        key = values, index, seed
        if key not in self._pools:
            if len(self._pools) >= _POOLS:
                self._pools.pop(next(iter(self._pools)))
            self._pools[key] = self._drawn(condition, index, seed)
        return self._pools[key]

    def _drawn(self, condition: Condition, index: int, seed: int) -> list[_Row]:
        rng = random.Random(f"examples|{seed}|{self._task.name}|{index}")
        if self._task.spec.items is not None:
            return self._of_file(rng)
        lengths = _TURNS * rng.sample(_LENGTHS, len(_LENGTHS))
        usual = self._made([condition] * len(lengths), lengths, index, seed)
        if _answers(usual) > 1:
            return usual
        for axis in self._hidden:
            names = list(self._task.spec.axes[axis].values)
            varied = [condition.with_value(axis, rng.choice(names)) for _ in lengths]
            rows = self._made(varied, lengths, index, seed)
            if _answers(rows) > 1:
                return rows
        return usual

    def _made(
        self, conditions: Sequence[Condition], lengths: Sequence[int], index: int, seed: int
    ) -> list[_Row]:
        """A generated row for each condition and length, without those that are there already."""
        rows: dict[object, _Row] = {}
        for number, (condition, length) in enumerate(zip(conditions, lengths, strict=True)):
            rng = random.Random(f"example|{seed}|{self._task.name}|{index}|{number}")
            try:
                item = self._task.draw(rng, condition, length, index)
            except TaskError as error:
                raise PlanError(
                    f"{error}; so there are no worked examples, which have {SHORTEST} to {LONGEST} "
                    f"symbols; leave the axis {EXAMPLES!r} out",
                    setting="axes",
                ) from error
            self._add(rows, item, length)
        return list(rows.values())

    def _of_file(self, rng: random.Random) -> list[_Row]:
        """The shortest items of the file, in an order that is drawn."""
        rows: dict[object, _Row] = {}
        for length, number in sorted(self._task.places)[:_ITEMS]:
            item = self._task.item_at(length, number)
            assert item is not None
            self._add(rows, item, length)
        found = list(rows.values())
        rng.shuffle(found)
        return found

    def _add(self, rows: dict[object, _Row], item: Item, length: int) -> None:
        answer = self._task.spec.answer
        target = str(answer.kind.value(item.target, answer))
        rows.setdefault(_shown(item), _Row(item, length, target))

    @cached_property
    def _hidden(self) -> list[str]:
        """The axes that the generator sees and the prompt does not, by name."""
        seen = prompt.used_names(self._task.spec.prompt)
        seen |= {"separator"} if "sequence" in seen else set()
        return sorted(self._task.row_axes - seen)


def _shown(item: Item) -> object:
    """What makes two rows the same: their symbols, or else their variables."""
    return tuple(item.symbols) or repr(sorted(item.variables.items()))


def _answers(rows: Sequence[_Row]) -> int:
    return len({row.answer for row in rows})


def _spread(rows: Sequence[_Row], wanted: int) -> list[_Row]:
    """`wanted` rows: the next is the first whose answer was chosen least often so far."""
    taken: Counter[str] = Counter()
    left, chosen = list(rows), []
    for _ in range(wanted):
        row = min(left, key=lambda one: taken[one.answer])
        left.remove(row)
        taken[row.answer] += 1
        chosen.append(row)
    return chosen
