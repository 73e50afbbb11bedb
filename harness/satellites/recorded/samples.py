"""Finds the sample of a recorded reply: one of the task's own, or one that the row describes."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import product

from eyechart.harness.errors import PlanError, TaskError, UsageError
from eyechart.harness.plan.plan import item_of, make_sample, plan, sample_from_id
from eyechart.harness.satellites.recorded.fields import RecordedReply, RowError, integer
from eyechart.harness.spec import (
    EXAMPLES,
    MAX_LENGTH,
    MAX_SAMPLES,
    Condition,
    Line,
    Sample,
    Separator,
    fifth_around,
    lines_of,
)
from eyechart.harness.spec.answer import Answer, Target, folded, is_too_long
from eyechart.harness.task.catalogue import Task

_MOST_CHARACTERS = 200_000_000
"""Most characters of the prompts that are made to find a sample: a few seconds of work."""


_LINES_TRIED, _SAMPLES_TRIED = 4, 48
"""Number of the task's own samples that show the range of targets: milliseconds of work."""


@dataclass(frozen=True, slots=True)
class GivenSample:
    """A sample that a row describes, without index if the row has none."""

    condition: Condition
    line: Line
    length: int
    target: Target
    index: int | None
    prompt: str | None


class SampleFinder:
    """Finds the samples of recorded replies in a task."""

    def __init__(self, task: Task, fixed: Mapping[str, str]) -> None:
        """`fixed` has the value of each axis that is the same for all replies.

        Raises:
            UsageError: the task has no such axis or value.
        """
        self._task = task
        axes = task.spec.axes
        for axis, name in fixed.items():
            if axis not in axes:
                raise UsageError(f"task {task.name!r} has no axis {axis!r}; it has {_list(axes)}")
            if name not in axes[axis].values:
                raise UsageError(
                    f"task {task.name!r} has no value {name!r} on axis {axis!r}; it has "
                    f"{_list(axes[axis].values)}"
                )
        self._fixed = fixed
        self.seed = 0
        """The seed of the task's own samples: that of the first sample id."""
        self._has_id = False
        self.is_unproven = False
        """Whether a row named its item by number, and had neither a target nor a prompt."""

    def keep_seed(self, seed: int, *, is_sure: bool) -> None:
        """Sets the seed of the task's own samples. If it `is_sure`, no id may have another seed."""
        self.seed, self._has_id = seed, is_sure

    def of(self, reply: RecordedReply) -> Sample | GivenSample:
        """The sample of a reply.

        Raises:
            RowError: the row does not identify its sample, or contradicts it.
        """
        sample = self._own(reply)
        if sample is None:
            return self._given(reply)
        if reply.target is not None and not _same(reply.target, sample.target):
            raise RowError(
                f"the row's target is {reply.target!r}, and that of sample {sample.id} "
                f"{sample.target!r}"
            )
        if reply.target is None and self._is_foreign(reply, sample):
            raise RowError(
                f"the row's prompt has nothing of sample {sample.id}; name the right item, or "
                "ignore the prompt with --field prompt="
            )
        return sample

    def _is_foreign(self, reply: RecordedReply, sample: Sample) -> bool:
        """Whether a row without a target names an item of which its prompt has no text: the texts
        among the item's variables, or its row.
        """
        item = self._task.item_at(sample.length, sample.index)
        if reply.prompt is None or item is None or reply.prompt == sample.prompt:
            return False
        if _hash(reply.prompt) in self._by_prompt:
            return True
        shown = [*(one for one in item.variables.values() if isinstance(one, str)), *item.symbols]
        said = _squeezed(reply.prompt)
        texts = [text for one in shown if (text := _squeezed(one))]
        return bool(texts) and not any(text in said for text in texts)

    def _own(self, reply: RecordedReply) -> Sample | None:
        """The sample of the task that the row names; `None` if it names none."""
        spec = self._task.spec
        if reply.id is not None and reply.id.startswith(f"{self._task.name}@"):
            return self._by_id(reply.id)
        if spec.items is not None:
            place = self._place(reply)
            if place is not None:
                return self._make(self._condition(reply), *place)
        if reply.prompt is not None and (found := self._by_prompt.get(_hash(reply.prompt))):
            return self._make(*found)
        if spec.items is not None:
            raise RowError(
                f"the row belongs to no item of {spec.items}; name the column with the item's "
                "number (from 0) or with the 'id' in its metadata with --field item=COLUMN, or "
                "that of its prompt with --field prompt=COLUMN"
            )
        return None

    def _by_id(self, identifier: str) -> Sample:
        try:
            sample = sample_from_id(self._task, identifier)
        except (PlanError, TaskError) as error:
            raise RowError(str(error)) from None
        if list(sample.condition) != list(self._task.spec.axes):
            raise RowError(
                f"{identifier!r} has worked examples; import such rows with --axis "
                f"{EXAMPLES}={sample.condition[EXAMPLES]}"
            )
        seed = int(identifier.rpartition("|seed=")[2].partition("|")[0])
        if self._has_id and seed != self.seed:
            raise RowError(f"{identifier!r} has seed {seed}, and earlier ids seed {self.seed}")
        self.seed, self._has_id = seed, True
        return sample

    def _place(self, reply: RecordedReply) -> tuple[int, int] | None:
        """Length and index of the item that the row names."""
        for name in (reply.item, reply.id):
            if name is None:
                continue
            if (place := self._places_by_id.get(name)) is not None:
                return place
            if name.isdecimal() and name.isascii():
                places = self._task.places
                if int(name) < len(places):
                    self.is_unproven |= reply.target is None and reply.prompt is None
                    return places[int(name)]
                raise RowError(f"item {name} is not in the {len(places):,} items of the file")
        return None

    @cached_property
    def _places_by_id(self) -> dict[str, tuple[int, int]]:
        items = {
            (length, index): item
            for length, index in self._task.places
            if (item := self._task.item_at(length, index)) is not None
        }
        return {
            str(item.metadata["id"]): place
            for place, item in items.items()
            if "id" in item.metadata
        }

    @cached_property
    def _by_prompt(self) -> dict[bytes, tuple[Condition, int, int]]:
        """Hash of a prompt -> condition, length and index of the first sample that has it: of those
        that the task asks by default under all conditions, or of all its items.
        """
        found: dict[bytes, tuple[Condition, int, int]] = {}
        characters = 0
        for sample in self._samples():
            place = sample.condition, sample.length, sample.index
            found.setdefault(_hash(sample.prompt), place)
            characters += len(sample.prompt)
            if characters > _MOST_CHARACTERS:
                break
        return found

    def _samples(self) -> Iterator[Sample]:
        if self._task.spec.items is None:
            yield from plan(self._task, axes={name: ["all"] for name in self._task.spec.axes})
            return
        for condition in self._conditions:
            for length, index in self._task.places:
                yield self._make(condition, length, index)

    @property
    def _conditions(self) -> list[Condition]:
        axes = self._task.spec.axes
        names = [
            [self._fixed[axis]] if axis in self._fixed else list(of_axis.values)
            for axis, of_axis in axes.items()
        ]
        return [Condition(zip(axes, chosen, strict=True)) for chosen in product(*names)]

    def _make(self, condition: Condition, length: int, index: int) -> Sample:
        try:
            return make_sample(self._task, condition, Line.exact(length), index, self.seed)
        except TaskError as error:
            raise RowError(str(error)) from None

    def _given(self, reply: RecordedReply) -> GivenSample:
        """The sample that a row describes by itself."""
        if reply.target is None or reply.length is None:
            lacks = " and ".join(
                name for name in ("target", "length") if getattr(reply, name) is None
            )
            raise RowError(
                f"the row names no sample of {self._task.name}, so it needs its {lacks}; name the "
                "columns with --field target=COLUMN,length=COLUMN"
            )
        if not reply.length <= MAX_LENGTH:
            raise RowError(f"lengths go from 0 to {MAX_LENGTH:,}, not {reply.length:,}")
        if reply.index is not None and reply.index >= MAX_SAMPLES:
            raise RowError(f"an index is below {MAX_SAMPLES:,}, not {reply.index:,}")
        return GivenSample(
            self._condition(reply),
            self.line(reply.length, reply.line),
            reply.length,
            self._target(reply.target, reply.length),
            reply.index,
            reply.prompt,
        )

    def _target(self, given: object, length: int) -> Target:
        answer = self._task.spec.answer
        value = _of_type(given, answer)
        if isinstance(value, int) and is_too_long(value):
            raise RowError("the row's target has too many digits")
        if not answer.kind.fits(value) or not isinstance(value, int | float | str):
            raise RowError(
                f"the row's target {given!r} is no {answer.type}, as an answer to the task is"
            )
        if answer.options and folded(str(value)) not in map(folded, answer.options):
            raise RowError(f"the row's target {given!r} is none of the options of the task")
        if isinstance(value, int):
            self._check_size(value, length)
        return value

    def _check_size(self, target: int, length: int) -> None:
        """Raises `RowError` for a target that the task's own samples could not have."""
        least, most = self._target_range
        if target < 0 <= least:
            raise RowError(
                f"the row's target is {target}, and no sample of {self._task.name} is below 0"
            )
        if target > length and most <= 0:
            raise RowError(
                f"the row's target {target:,} is more than its length {length:,}, which no sample "
                f"of {self._task.name} has"
            )

    @cached_property
    def _target_range(self) -> tuple[float, float]:
        """The smallest target of some of the task's own samples, and the largest difference of
        target and length. The shortest samples show most.
        """
        targets = []
        answer = self._task.spec.answer
        condition = self._conditions[0]
        with suppress(TaskError):
            for length in self._task.lengths[:_LINES_TRIED]:
                for index in range(_SAMPLES_TRIED):
                    item = item_of(self._task, condition, length, index, self.seed)
                    target = float(answer.kind.value(item.target, answer))
                    targets.append((target, target - length))
        if not targets:
            return -math.inf, math.inf
        return min(low for low, _ in targets), max(high for _, high in targets)

    def _condition(self, reply: RecordedReply) -> Condition:
        return Condition(
            (axis, self._value_of(axis, reply.axes.get(axis))) for axis in self._task.spec.axes
        )

    def _value_of(self, axis: str, given: str | None) -> str:
        """The name of the value on an axis: from the row, from the command, or the only one."""
        values = self._task.spec.axes[axis].values
        if given is not None:
            if given in values:
                return given
            texts = {_text_of(value): name for name, value in values.items()}
            if (name := texts.get(given.lower())) is not None:
                return name
            raise RowError(f"axis {axis!r} has no value {given!r}; it has {_list(values)}")
        if axis in self._fixed:
            return self._fixed[axis]
        if len(values) == 1:
            return next(iter(values))
        raise RowError(
            f"no value of the axis {axis!r}; name its column with --field {axis}=COLUMN, or the "
            f"value of all replies with --axis {axis}=VALUE"
        )

    def line(self, length: int, nominal: int | None) -> Line:
        """The line that a row names, or else the task's line with the nearest length.

        Raises:
            RowError: the length is not on the line.
        """
        if nominal is None:
            around = [line for line in self._lines if line.low <= length <= line.high]
            if not around:
                return Line.exact(length)
            return min(around, key=lambda line: abs(math.log(line.length / length)))
        line = next((line for line in self._lines if line.length == nominal), None)
        if line is None and nominal <= MAX_LENGTH:
            is_fifth = nominal > 0 and self._task.spec.usual_spread == "fifth"
            line = fifth_around(nominal) if is_fifth else Line.exact(nominal)
        if line is None or not line.low <= length <= line.high:
            raise RowError(f"length {length:,} is not on the line {line or nominal} of the task")
        return line

    @cached_property
    def _lines(self) -> Sequence[Line]:
        spec = self._task.spec
        return lines_of(spec.lengths or (), spec.usual_spread)


def _of_type(given: object, answer: Answer) -> object:
    """A target in the type of the answer; `None` if it cannot be read as this type."""
    value = given
    try:
        if answer.kind.stored is int:
            value = integer(given)
        elif answer.kind.stored is float:
            value = float(given) if isinstance(given, int | float | str) else given
        elif isinstance(given, int | float):
            value = str(given)
    except ValueError:
        return None
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        value = answer.kind.value(value, answer)
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _squeezed(text: str) -> str:
    """`text` with single spaces and in lower case."""
    return " ".join(text.split()).lower()


def _hash(prompt: str) -> bytes:
    return hashlib.sha256(prompt.encode()).digest()


def _same(given: object, target: Target) -> bool:
    """Whether a row's target equals that of a sample, also if one is the text of the other."""
    if given == target or str(given) == str(target):
        return True
    try:
        return float(str(given)) == float(target)
    except ValueError:
        return isinstance(given, list) and ", ".join(map(str, given)) == target


def _text_of(value: object) -> str | None:
    """The text of an axis's value, in lower case, which a row may have in place of the value's
    name; `None` if there is none.
    """
    if isinstance(value, Separator):
        return value.inside.lower() if value == Separator(inside=value.inside) else None
    return str(value).lower()


def _list(names: Mapping[str, object]) -> str:
    return ", ".join(names) or "none"
