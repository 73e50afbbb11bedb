"""The records of a journal: their type, and how they are written and read as lines."""

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
_MASKED = ("reply", "reasoning", "refusal", "model", "logprobs", "failure", "batch")
"""Fields with text from servers, in which keys are masked."""


class Failure(msgspec.Struct, frozen=True, gc=False):
    """Why a sample has no reply."""

    kind: FailureKind
    """`error`: the request failed, and its sample is asked again. `overflow`: the prompt is longer
    than the context window. `refused`: the server refused the request."""
    type: Any = ""
    """Class name of the error."""
    message: Any = ""

    def __post_init__(self) -> None:
        """Converts both texts to `str`, whatever the line has."""
        for name in ("type", "message"):
            if not isinstance(value := getattr(self, name), str):
                msgspec.structs.force_setattr(self, name, "" if value is None else str(value))


class Record(msgspec.Struct, kw_only=True, omit_defaults=True, gc=False):
    """One sample's entry in the journal: a reply, or why there is none.

    Optional numbers (`chars` and below) are `None` where the line has no valid number, so that a
    damaged number does not make the reply unreadable.
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
    """Name of the model in the reply."""
    failure: Failure | None = None
    chars: Any = None
    """Characters of the prompt; `int | None`."""
    attempts: Any = None
    """Number of requests; 0 if none was sent because the prompt is too long. `int | None`."""
    at: Any = None
    """Time of writing, in seconds since 1970; `float | None`."""
    prompt_tokens: Any = None
    """`int | None`."""
    output_tokens: Any = None
    """`int | None`."""
    latency_s: Any = None
    """`float | None`."""
    dropped_params: Any = None
    """Parameters that were left out because the model does not accept them."""
    logprobs: Any = None
    """Pairs of token and log probability."""
    batch: Any = None
    """Id of the reply's batch."""

    def __post_init__(self) -> None:
        """Checks the required values, and drops invalid optional numbers.

        Raises:
            ValueError: there is neither a reply nor a failure, or a required value is invalid.
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
        """Key of the sample's cell."""
        return self.condition, self.length

    @property
    def is_error(self) -> bool:
        """Whether the request failed, so that the sample is asked again."""
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
"""Fields that are written for every reply, even where they are `None`."""


def decode(line: bytes) -> Record:
    """The record on a line.

    Raises:
        ValueError: the line is not a valid record.
    """
    try:
        return _DECODER.decode(line)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ValueError(str(error)) from error


def encode(record: Record) -> bytes:
    """The line of a record, without the newline. Known keys and passwords are masked."""
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
    return exact_json.dumps(masked_fields(fields, _MASKED))


def read_records(folder: Path, warn: Warn | None = None) -> Iterator[Record]:
    """The records of the journal in `folder`, in the order of writing; none if there is no journal.

    Skips each line that is not a record and calls `warn` with a message; no message for an
    incomplete last line, which may still be being written.
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
