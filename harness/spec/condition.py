"""Conditions: one value on each axis of a task."""

from __future__ import annotations

from collections.abc import ItemsView, Iterable, Iterator, Mapping, Sequence
from typing import Any, final

from pydantic import GetCoreSchemaHandler
from pydantic_core import core_schema

EXAMPLES = "examples"
"""The axis that every task takes besides its own, see `spec.worked_examples`."""


@final
class Condition(Mapping[str, str]):
    """The name of one value on each axis, in the order of the task file; hashable."""

    __slots__ = ("_hash", "_values", "label")

    label: str
    """`separator=comma,strategy=direct`, or `-` for a task without axes: for files and the
    screen."""

    def __init__(self, values: Mapping[str, str] | Iterable[tuple[str, str]] = ()) -> None:
        self._values = dict(values)
        self._hash = hash(frozenset(self._values.items()))
        self.label = ",".join(f"{axis}={value}" for axis, value in self._values.items()) or "-"

    def __getitem__(self, axis: str) -> str:
        return self._values[axis]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Condition):
            return self._values == other._values
        return isinstance(other, dict) and self._values == other

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, handler: GetCoreSchemaHandler) -> Any:
        """In a file a condition is an object of axes and values."""
        return core_schema.no_info_after_validator_function(
            cls,
            handler(dict[str, str]),
            serialization=core_schema.plain_serializer_function_ser_schema(dict),
        )

    def __repr__(self) -> str:
        return f"Condition({self._values!r})"

    def items(self) -> ItemsView[str, str]:
        """Each axis with its value; faster than what `Mapping` has."""
        return self._values.items()

    @classmethod
    def read(cls, label: str) -> Condition:
        """The condition of a label in a file; axes and values have no `,` or `=` in their names."""
        pairs = () if label == "-" else (pair.partition("=") for pair in label.split(","))
        return cls((axis, value) for axis, _, value in pairs)

    def with_value(self, axis: str, value: str) -> Condition:
        return Condition({**self._values, axis: value})

    def without(self, axis: str) -> Condition:
        return Condition({name: value for name, value in self._values.items() if name != axis})

    def only(self, axes: Iterable[str]) -> Condition:
        """The condition restricted to `axes`, in their order."""
        return Condition({axis: self._values[axis] for axis in axes})


def varied_axes(conditions: Sequence[Condition]) -> list[str]:
    """The axes on which the conditions differ."""
    first, *others = conditions
    return [axis for axis in first if any(other[axis] != first[axis] for other in others)]


def varied_label(condition: Condition, conditions: Sequence[Condition]) -> str:
    """`separator=comma, strategy=direct`: its values on the axes on which `conditions` differ."""
    return ", ".join(f"{axis}={condition[axis]}" for axis in varied_axes(conditions))
