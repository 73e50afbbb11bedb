"""Task and options to samples, in the order they are sent.

Planning is lazy: samples come out of a generator one by one, so memory does not grow with their
number, and each can be made again alone from its id.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING

from msgspec.structs import replace as with_fields

from eyechart.harness.errors import PlanError
from eyechart.harness.settings.shard import WHOLE, Shard
from eyechart.harness.spec import (
    EXAMPLES,
    Cell,
    CellKey,
    Condition,
    Item,
    Line,
    Sample,
    line_start,
    lines_of,
)
from eyechart.harness.spec.worked_examples import has_examples

if TYPE_CHECKING:
    from eyechart.harness.task.catalogue import Task

_ID = re.compile(
    r"(?P<task>.+)@(?P<version>\d+)\|(?P<condition>[^|]*)"
    r"\|length=(?P<length>\d+)\|seed=(?P<seed>-?\d+)\|index=(?P<index>\d+)"
    r"(\|draw=(?P<draw>[1-9]\d*))?"
)
_EXAMPLE = "separators/two_symbols@1|separator=comma,share=half|length=20|seed=0|index=3"


@dataclass(frozen=True, slots=True)
class Plan:
    """The planned samples of one task."""

    task: Task
    conditions: Sequence[Condition]
    lines: Sequence[Line]
    """Ascending."""
    samples: int
    """Samples of each cell; in an adaptive run the most."""
    seed: int
    counts: Mapping[CellKey, int] | None = None
    """Cell -> its samples; `None` if every cell has `samples`."""
    is_adaptive: bool = True
    """Whether `counts` are those of an adaptive run; otherwise adaptive conditions stay adaptive,
    and the others full."""
    shard: Shard = WHOLE
    """The rows that are asked."""
    draws: int = 1
    """How often each sample is asked."""

    @property
    def size(self) -> int:
        """Number of requests."""
        return self.draws * sum(len(self.shard.rows(size)) for size in self.sizes.values())

    @property
    def sizes(self) -> dict[CellKey, int]:
        """Cell -> number of its samples in all shards, in the order of conditions and lines; an
        adaptive run has no cells without samples.
        """
        sizes = {
            (condition, line): self.cell_size(condition, line)
            for condition, line in product(self.conditions, self.lines)
        }
        if self.counts is None:
            return sizes
        return {key: size for key, size in sizes.items() if size}

    @property
    def cells(self) -> list[Cell]:
        """Every cell of the plan with its number of samples, in the form that a manifest stores."""
        return [Cell(*key, size, draws=self.draws) for key, size in self.sizes.items()]

    def cell_size(self, condition: Condition, line: Line) -> int:
        """Samples in a cell; fewer than planned if an items file has fewer."""
        wanted = self.samples if self.counts is None else self.counts.get((condition, line), 0)
        available = self.task.items_at(line.length)
        return wanted if available is None else min(wanted, available)

    def with_counts(self, counts: Mapping[CellKey, int]) -> Plan:
        """The adaptive plan with these numbers of samples in each cell."""
        kept = {key: size for key, size in counts.items() if key[0] in self.conditions and size}
        return replace(self, lines=sorted({line for _, line in kept}), counts=kept)

    def __iter__(self) -> Iterator[Sample]:
        """All samples: index by index, so that a run cut short has seen every cell.

        Within an index the conditions, within a condition the lines ascending, and the draws of a
        sample one after the other, so that prompts that begin alike follow one another and a
        server's prefix cache serves them.
        """
        sizes = self.sizes
        for index in self.shard.rows(max(sizes.values(), default=0)):
            drawn: dict[int, Item] | None = {} if self.task.paired else None
            for (condition, line), size in sizes.items():
                if index < size:
                    first = make_sample(self.task, condition, line, index, self.seed, drawn=drawn)
                    yield first
                    yield from (drawn_again(first, draw) for draw in range(2, self.draws + 1))

    def sample(self, condition: Condition, line: Line, index: int) -> Sample:
        return make_sample(self.task, condition, line, index, self.seed)


def plan(
    task: Task,
    *,
    lengths: Sequence[int] | None = None,
    samples: int | None = None,
    axes: Mapping[str, Sequence[str]] | None = None,
    exact: bool = False,
    seed: int = 0,
) -> Plan:
    """The plan of a task: its defaults, overridden by the given options.

    The lines have the spread of the task, unless `exact`. `axes` maps an axis to value names, or to
    `["all"]`; axes that the task lacks are ignored here, since tasks of a group may have different
    axes; the caller checks them.
    With `examples` among them the plan is of the task with this axis.

    Raises:
        PlanError: the task lacks an axis value, its items file lacks a
            length, or worked examples are asked of a task in turns.
    """
    if EXAMPLES in (axes or {}) and EXAMPLES not in task.spec.axes:
        if task.in_turns:
            raise PlanError(
                f"task {task.name!r} asks over several turns, and worked examples show one; leave "
                f"out the axis {EXAMPLES!r}",
                setting="axes",
            )
        task = task.with_examples()
    conditions = _conditions(_chosen_values(task, axes or {}))
    for length in sorted(set(lengths or task.lengths)):
        if task.items_at(length) == 0:
            raise PlanError(f"task {task.name!r} has no item of length {length}", setting="lengths")
    lines = lines_of(lengths or task.lengths, "none" if exact else task.spec.usual_spread)
    return Plan(task, conditions, lines, samples or task.samples, seed)


def _chosen_values(task: Task, axes: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Axis -> the value names that run."""
    spec = task.spec
    chosen = spec.default_conditions()
    for axis, names in axes.items():
        if axis not in spec.axes:
            continue
        known = list(spec.axes[axis].values)
        wanted = known if list(names) == ["all"] else list(dict.fromkeys(names))
        for name in wanted:
            if name not in known:
                raise PlanError(
                    f"task {task.name!r} has no value {name!r} on axis {axis!r}; it has "
                    f"{', '.join(known)}",
                    setting="axes",
                )
        chosen[axis] = wanted
    return chosen


def _conditions(values: Mapping[str, Iterable[str]]) -> list[Condition]:
    """Every combination of the values of all axes."""
    return [Condition(zip(values, names, strict=True)) for names in product(*values.values())]


def drawn_again(sample: Sample, draw: int) -> Sample:
    """A further draw of a sample: the same prompt, under an id of its own."""
    return sample if draw == 1 else with_fields(sample, id=id_of_draw(sample.id, draw), draw=draw)


def id_of_draw(identifier: str, draw: int) -> str:
    """The id of a draw; the first one has that of the sample."""
    return identifier if draw == 1 else f"{identifier}|draw={draw}"


def sample_id(task: Task, condition: Condition, length: int, index: int, seed: int) -> str:
    """`task@version|axis=value,…|length=…|seed=…|index=…`: enough to make the sample again;
    `length` is its true length. The ids of further draws end with `|draw=2` and so on.
    """
    return (
        f"{task.name}@{task.spec.version}|{condition.label}"
        f"|length={length}|seed={seed}|index={index}"
    )


def item_of(task: Task, condition: Condition, length: int, index: int, seed: int) -> Item:
    """The item of one sample.

    The generator's `random.Random` is seeded by (seed, task, index) alone: every length and
    condition draws the same stream, so rows are nested across lengths and paired across
    conditions, and neither order nor concurrency can change them.
    """
    return task.draw(random.Random(f"{seed}|{task.name}|{index}"), condition, length, index)


def make_sample(
    task: Task,
    condition: Condition,
    line: Line,
    index: int,
    seed: int,
    *,
    drawn: dict[int, Item] | None = None,
) -> Sample:
    """One sample, made from its place alone. `drawn` caches the items of an index, by length."""
    length = line.length_of(index, line_start(seed, task.name))
    item = None if drawn is None else drawn.get(length)
    if item is None:
        item = item_of(task, condition, length, index, seed)
        if drawn is not None:
            drawn[length] = item
    answer = task.spec.answer
    before, cue, phrase = "", "", answer.first_phrase
    prompt = task.prompt(item, condition, length, index)
    if has_examples(task.spec):
        before = task.examples.before(item, condition, index, seed)
        cue = "" if prompt.rstrip().endswith(phrase.strip()) else phrase.rstrip()
    return Sample(
        id=sample_id(task, condition, length, index, seed),
        condition=condition,
        line=line,
        length=length,
        index=index,
        prompt=f"{before}{prompt}",
        target=answer.kind.value(item.target, answer),
        accept=tuple(item.accept),
        before=len(before),
        cue=cue,
        in_turns=task.in_turns,
        turn_targets=tuple(answer.kind.value(one, answer) for one in item.turn_targets),
    )


def task_of_id(identifier: str) -> str:
    """The name of the task of a sample; raises `PlanError` if `identifier` is not a sample id."""
    match = _ID.fullmatch(identifier)
    if match is None:
        raise PlanError(f"not a sample id: {identifier!r}; one is {_EXAMPLE!r}")
    return match["task"]


def sample_from_id(task: Task, identifier: str) -> Sample:
    """The sample that `identifier` names, on the exact line of its length; raises `PlanError` if
    `identifier` is not a sample id, or names another task, version or condition.
    """
    match = _ID.fullmatch(identifier)
    if match is None:
        raise PlanError(f"not a sample id: {identifier!r}")
    if (match["task"], int(match["version"])) != (task.name, task.spec.version):
        raise PlanError(f"{identifier!r} is not of task {task.name}@{task.spec.version}")
    condition = Condition.read(match["condition"])
    if EXAMPLES in condition:
        task = task.with_examples()
    if not task.spec.has_condition(condition) or condition.label != match["condition"]:
        raise PlanError(f"task {task.name!r} has no condition {match['condition']!r}")
    length, index = int(match["length"]), int(match["index"])
    available = task.items_at(length)
    if available is not None and index >= available:
        raise PlanError(f"task {task.name!r} has no item {index} of length {length}")
    draw = int(match["draw"] or 1)
    known = id_of_draw(sample_id(task, condition, length, index, int(match["seed"])), draw)
    if known != identifier or (length < 1 and available is None):
        raise PlanError(f"not a sample id: {identifier!r}")
    first = make_sample(task, condition, Line.exact(length), index, int(match["seed"]))
    return drawn_again(first, draw)


def sample_hash(sample: Sample) -> int:
    """SHA-256 of id, prompt and target, as a number below 2^256.

    The sum of these numbers modulo 2^256 is the fingerprint of a set of samples. It can be computed
    while samples stream by, and does not depend on their order.
    """
    text = "\0".join((sample.id, sample.prompt, str(sample.target), *sample.accept))
    return int.from_bytes(hashlib.sha256(text.encode()).digest())


def fingerprint(samples: Iterable[Sample]) -> int:
    return sum(map(sample_hash, samples)) % 2**256


def output_budget(sample: Sample) -> int:
    """Tokens a reply may have where `max_tokens` is auto.

    Enough for the answer, at one token a character, and for the text before it. That text depends
    on the axis `strategy`: a few sentences for `direct`, sixteen tokens a symbol for other values,
    a page if the task has no such axis.
    """
    answer = 32 + len(str(sample.target))
    strategy = sample.condition.get("strategy")
    if strategy is None:
        return 1024 + answer
    return answer + (256 if strategy == "direct" else 512 + 16 * sample.length)
