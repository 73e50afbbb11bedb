"""One line of a run's journal, as a typed value; the only place that knows how it is written."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec

from harness import exact_json
from harness.spec import CellKey, Condition, Target, token_count
from providers.secrets import masked_fields

SAMPLES = "samples.jsonl"

Warn: TypeAlias = Callable[[str], None]
FailureKind: TypeAlias = Literal["error", "overflow", "refused"]

_HASH = re.compile(r"[0-9a-f]{1,16}")
_FROM_OTHERS = ("reply", "reasoning", "refusal", "model", "logprobs", "failure", "batch")
"""Fields that others filled: no key that a server says back is kept."""


class Failure(msgspec.Struct, frozen=True, gc=False):
    """Why a sample has no reply."""

    kind: FailureKind
    """`error` is not the model's fault: its sample is asked again."""
    type: Any = ""
    """Name of the error's class."""
    message: Any = ""

    def __post_init__(self) -> None:
        """Makes texts of what others wrote."""
        for name in ("type", "message"):
            if not isinstance(value := getattr(self, name), str):
                msgspec.structs.force_setattr(self, name, "" if value is None else str(value))


class Record(msgspec.Struct, kw_only=True, omit_defaults=True, gc=False):
    """What the journal says of one sample: a reply, or why there is none.

    Figures that a record may lack (`chars` and below) are `None` where they are no such figure, so
    that a damaged one costs itself and not the answer.
    """

    id: str
    condition: Condition
    length: int
    index: int
    target: Target
    prompt_hash: str
    reply: str | None = None
    finish_reason: str | None = None
    refusal: str | None = None
    reasoning: str | None = None
    model: str | None = None
    """Who answered, as the reply says."""
    failure: Failure | None = None
    chars: Any = None
    """Characters of the prompt; `int | None`."""
    attempts: Any = None
    """Times the sample was asked; 0 where it is known not to fit. `int | None`."""
    at: Any = None
    """When the record was written, in seconds since 1970; `float | None`."""
    prompt_tokens: Any = None
    """`int | None`, as for the next."""
    output_tokens: Any = None
    latency_s: Any = None
    """`float | None`."""
    dropped_params: Any = None
    """Parameters that the model does not take and that were left out."""
    logprobs: Any = None
    """Pairs of token and log probability."""
    batch: Any = None
    """Id of the batch that the reply came from."""

    def __post_init__(self) -> None:
        """Holds what resuming and judging rely on.

        Raises:
            ValueError: there is neither a reply nor a failure, or a value that cannot be.
        """
        if self.failure is None and self.reply is None:
            raise ValueError("neither reply nor failure")
        if self.length < 0 or self.index < 0 or _HASH.fullmatch(self.prompt_hash) is None:
            raise ValueError("a length, index or prompt_hash that cannot be")
        self.prompt_tokens = token_count(self.prompt_tokens)
        self.output_tokens = token_count(self.output_tokens)
        self.chars = token_count(self.chars)
        self.attempts = token_count(self.attempts)
        if not isinstance(self.at, float):
            self.at = _number(self.at)
        if not isinstance(self.latency_s, float):
            self.latency_s = _number(self.latency_s)

    @property
    def key(self) -> CellKey:
        """Of the sample's cell."""
        return self.condition, self.length

    @property
    def is_error(self) -> bool:
        """Whether there is no reply, and not by the model's fault."""
        return self.failure is not None and self.failure.kind == "error"


def _number(value: object) -> float | None:
    if type(value) is not int:
        return None
    try:
        return float(value)
    except OverflowError:
        return None


@lru_cache(maxsize=4096)
def _condition(values: tuple[tuple[str, str], ...]) -> Condition:
    return Condition(values)


def _decode_condition(kind: type, read: Any) -> Condition:
    if kind is not Condition or not isinstance(read, dict):
        raise ValueError("a condition that is none")
    if not all(type(value) is str for value in read.values()):
        raise ValueError("a condition whose values are no texts")
    return _condition(tuple(read.items()))


_DECODER = msgspec.json.Decoder(Record, dec_hook=_decode_condition)
_FIELDS = Record.__struct_fields__
_OF_REPLY = frozenset(
    ("reply", "finish_reason", "refusal", "reasoning", "model", "prompt_tokens", "output_tokens")
) | {"latency_s"}
"""Written of every reply, also where it has none of it."""


def decode(line: bytes) -> Record:
    """The record on a line.

    Raises:
        ValueError: it is none.
    """
    try:
        return _DECODER.decode(line)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ValueError(str(error)) from error


def encode(record: Record) -> bytes:
    """The line of a record, without its end; keys and passwords that are known are masked."""
    failure = record.failure
    always = _OF_REPLY if failure is None else frozenset[str]()
    fields: dict[str, Any] = {
        name: value
        for name in _FIELDS
        if (value := getattr(record, name)) is not None or name in always
    }
    fields["condition"] = dict(record.condition)
    if failure is not None:
        fields["failure"] = msgspec.structs.asdict(failure)
    return exact_json.dumps(masked_fields(fields, _FROM_OTHERS))


def read_records(folder: Path, warn: Warn | None = None) -> Iterator[Record]:
    """The journal's records in the order they were written, one by one.

    A line that is no record is passed over, with a word to `warn`; a torn last line quietly, since
    the writer may be at it.
    """
    path = folder / SAMPLES
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return
    with file:
        for number, line in enumerate(file, start=1):
            try:
                record = decode(line)
            except ValueError:
                if warn is not None and line.endswith(b"\n") and line.strip():
                    warn(f"{path}:{number}: not a record; its sample counts as not asked")
                continue
            yield record
