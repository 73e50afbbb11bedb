"""Arrow tables of samples that go to a cluster, and of results that come back.

A block has neighbouring samples of a plan. All values are plain data: numbers, texts, and JSON as
bytes. Results may come from another machine, so they are checked like any file from outside, and
nothing in them is unpickled.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import msgspec

from eyechart.harness.journal.answers import text_mark
from eyechart.harness.journal.record import (
    Record,
    decode,
    decode_condition,
    encode,
    encode_condition,
    record_of,
)
from eyechart.harness.plan.cost import Budget
from eyechart.harness.spec import Sample, exact_json
from eyechart.harness.spec.token_counts import token_count
from eyechart.providers import base
from eyechart.providers.base import ProviderError, StopRunError, Usage

if TYPE_CHECKING:
    import pyarrow as pa

BLOCK = 128
"""Samples of a block. A worker that is killed loses its blocks in flight."""
RUN, SAMPLE, MAX_TOKENS = "run", "sample", "max_tokens"
"""Columns of a table that goes to a worker: the number of the run, the sample as JSON, and the
tokens that its reply may have.
"""
RECORD, STOP, CHARGED = "record", "stop", "charged"
"""Columns of a table that comes back, besides the number of the run: the record as a line of the
journal, or the error that ends the run; and a `SettledCharges` as JSON.
"""
BACK = RUN, RECORD, STOP, CHARGED
_STOP_CHARS = 400
_ERRORS = {
    kind.__name__: kind
    for kind in vars(base).values()
    if isinstance(kind, type) and issubclass(kind, ProviderError)
}
_IDENTITY = (
    *("id", "condition", "length", "index", "line", "target", "accept", "prompt_hash", "chars"),
    "draw",
    *("prompt", "origin", "batch"),
)
"""Fields of a record that follow from its sample, or that no record of a cluster has."""


@dataclass(frozen=True, slots=True)
class SampleRow:
    """A sample that goes to the cluster."""

    run: int
    sample: Sample
    max_tokens: int


class SettledCharges(msgspec.Struct, frozen=True):
    """What a worker has settled, for the budget of the command."""

    usages: tuple[Usage, ...] = ()
    estimated: int = 0
    """How many of them are estimates."""

    def check(self) -> Self:
        """Raises `ValueError` if it cannot be true."""
        if not 0 <= self.estimated <= len(self.usages):
            raise ValueError(f"{self.estimated} of {len(self.usages)} usages as estimates")
        for usage in self.usages:
            counts = [one for one in msgspec.structs.astuple(usage) if isinstance(one, int)]
            if any(token_count(one) is None for one in counts):
                raise ValueError("a number of tokens that cannot be true")
        return self


@dataclass(slots=True)
class WorkerBudget(Budget):
    """A budget of a worker: it keeps what is charged for that of the command."""

    usages: list[Usage] = field(default_factory=list)

    def charge(self, *usages: Usage, estimated: int = 0) -> None:
        self.usages += usages
        self.estimated += estimated

    def hand_over(self) -> SettledCharges:
        """What was charged since this was last called."""
        charged = SettledCharges(tuple(self.usages), self.estimated)
        self.usages, self.estimated = [], 0
        return charged


@dataclass(frozen=True, slots=True)
class ResultRow:
    """The result of a sample: its record, or the error that ends the run."""

    run: int
    record: Record | None
    stop: ProviderError | None = None
    charged: SettledCharges = field(default_factory=SettledCharges)
    """What was charged since the row before; samples of a block are asked at the same time."""


def tables(asked: Iterable[SampleRow]) -> Iterator[pa.Table]:
    """The blocks of the samples, in order, since neighbours in a plan share prefixes."""
    block: list[SampleRow] = []
    for one in asked:
        block.append(one)
        if len(block) == BLOCK:
            yield _table(block)
            block = []
    if block:
        yield _table(block)


def _table(block: Sequence[SampleRow]) -> pa.Table:
    import pyarrow as pa  # noqa: PLC0415  comes with Ray

    schema = {RUN: pa.int64(), SAMPLE: pa.binary(), MAX_TOKENS: pa.int64()}
    return pa.Table.from_pylist([row_of_asked(one) for one in block], pa.schema(schema))


def row_of_asked(asked: SampleRow) -> dict[str, Any]:
    fields = msgspec.to_builtins(asked.sample, enc_hook=encode_condition)
    return {RUN: asked.run, SAMPLE: exact_json.dumps(fields), MAX_TOKENS: asked.max_tokens}


def read_asked(row: Mapping[str, Any]) -> SampleRow:
    """The sample in a row, for a worker; raises `ValueError` if there is none."""
    fields = exact_json.loads(row[SAMPLE])
    sample = msgspec.convert(fields, Sample, dec_hook=decode_condition)
    return SampleRow(int(row[RUN]), sample, int(row[MAX_TOKENS]))


def row_of(back: ResultRow) -> dict[str, Any]:
    return {
        RUN: back.run,
        RECORD: b"" if back.record is None else encode(back.record),
        STOP: "" if back.stop is None else stop_text(back.stop),
        CHARGED: msgspec.json.encode(back.charged),
    }


def back_table(answers: Sequence[ResultRow]) -> pa.Table:
    import pyarrow as pa  # noqa: PLC0415  comes with Ray

    schema = dict(zip(BACK, (pa.int64(), pa.binary(), pa.string(), pa.binary()), strict=True))
    return pa.Table.from_pylist([row_of(back) for back in answers], pa.schema(schema))


def read_table(table: pa.Table) -> list[ResultRow]:
    """The results in a table.

    Raises:
        StopRunError: the table has other columns, or a row is no result.
    """
    import pyarrow as pa  # noqa: PLC0415  comes with Ray

    if not table.num_rows:
        return []
    binary, text = (pa.binary(), pa.large_binary()), (pa.string(), pa.large_string())
    kinds = dict(zip(BACK, ((pa.int64(),), binary, text, binary), strict=True))
    for name, types in kinds.items():
        # a column of Python objects, which Ray would unpickle, is not among the types
        if name not in table.schema.names or table.schema.field(name).type not in types:
            raise _unsound(f"a table without a proper column {name!r}")
    return [read_back(row) for row in table.select(list(kinds)).to_pylist()]


def read_back(row: Mapping[str, Any]) -> ResultRow:
    """The result in a row; raises `StopRunError` if it is neither a record nor an error, or has
    charges that cannot be true.
    """
    try:
        run, record, stop = int(row[RUN]), row[RECORD], row[STOP]
        charged = msgspec.json.decode(row[CHARGED], type=SettledCharges).check()
        if stop:
            return ResultRow(run, None, read_stop(stop), charged)
        return ResultRow(run, decode(record), None, charged)
    except (TypeError, ValueError) as error:
        raise _unsound(f"a row that is no result ({error})") from error


def stop_text(error: ProviderError) -> str:
    """An error that ends a run, with its class, as a text."""
    return f"{type(error).__name__} {error}"


def read_stop(text: str) -> ProviderError:
    """The error in such a text; a class that is no provider error becomes a `StopRunError`."""
    name, _, message = text.partition(" ")
    return _ERRORS.get(name, StopRunError)(" ".join(message.split())[:_STOP_CHARS])


class ClusterJob:
    """The samples of a job, with the marks that their records must have, and how many were sent and
    came back.
    """

    def __init__(self, samples: Iterator[SampleRow]) -> None:
        self._samples = samples
        self._marks: set[int] = set()
        self.sent = 0
        self.back = 0

    def __iter__(self) -> Iterator[SampleRow]:
        for asked in self._samples:
            self.sent += 1
            self._marks.add(_mark(asked.run, record_of(asked.sample, reply="")))
            yield asked

    def check(self, run: int, record: Record) -> None:
        """Raises `StopRunError` if the record belongs to no sample that was sent."""
        if _mark(run, record) not in self._marks:
            raise _unsound(f"the reply to a sample that was not sent: {record.id}")


def _mark(run: int, record: Record) -> int:
    return text_mark(repr((run, *(getattr(record, name) for name in _IDENTITY))))


def _unsound(what: str) -> StopRunError:
    return StopRunError(
        f"a worker of Ray sent {what[:_STOP_CHARS]}; install the same version of Eyechart on all "
        "machines of the cluster"
    )
