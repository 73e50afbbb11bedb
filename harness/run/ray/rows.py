"""What goes to a cluster and comes back, as Arrow tables. A block is neighbours of a plan."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.journal.record import Record, decode, encode
from harness.spec import Sample
from providers import base
from providers.base import ProviderError, StopRunError

if TYPE_CHECKING:
    import pyarrow as pa

BLOCK = 128
"""Samples of a block. What a worker that is killed loses is its blocks in flight."""
RUN, SAMPLE, MAX_TOKENS, RECORD, STOP = "run", "sample", "max_tokens", "record", "stop"
"""Columns: number of the run, the pickled sample and its output budget; then the record as a line
of the journal, or in its place the error that ends the run."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A sample that goes to the cluster."""

    run: int
    sample: Sample
    max_tokens: int


@dataclass(frozen=True, slots=True)
class Back:
    """What came back of a sample: its record, or the error that ends the run."""

    run: int
    record: Record | None
    stop: ProviderError | None = None


def tables(asked: Iterable[Asked]) -> Iterator[pa.Table]:
    """The blocks of the samples, in their order: a plan's neighbours share prefixes."""
    block: list[Asked] = []
    for one in asked:
        block.append(one)
        if len(block) == BLOCK:
            yield _table(block)
            block = []
    if block:
        yield _table(block)


def _table(block: Sequence[Asked]) -> pa.Table:
    import pyarrow as pa  # noqa: PLC0415  comes with Ray

    return pa.table(
        {
            RUN: pa.array([one.run for one in block], pa.int64()),
            SAMPLE: pa.array([pickle.dumps(one.sample) for one in block], pa.binary()),
            MAX_TOKENS: pa.array([one.max_tokens for one in block], pa.int64()),
        }
    )


def read_asked(row: Mapping[str, Any]) -> Asked:
    """The sample of a row, on a worker: a row comes only from `tables`."""
    return Asked(int(row[RUN]), pickle.loads(row[SAMPLE]), int(row[MAX_TOKENS]))  # noqa: S301


def row_of(back: Back) -> dict[str, Any]:
    """The row of what comes back."""
    record = b"" if back.record is None else encode(back.record)
    stop = "" if back.stop is None else f"{type(back.stop).__name__} {back.stop}"
    return {RUN: back.run, RECORD: record, STOP: stop}


def read_back(row: Mapping[str, Any]) -> Back:
    """What came back in a row."""
    if not row[STOP]:
        return Back(int(row[RUN]), decode(row[RECORD]))
    name, _, message = row[STOP].partition(" ")
    kind = getattr(base, name, StopRunError)
    return Back(int(row[RUN]), None, kind(message))
