"""The records of a journal: their type, and how they are written and read as lines."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import astuple
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, TypeAlias, get_type_hints

import msgspec

from eyechart.harness.errors import JournalError
from eyechart.harness.journal.files import bounded_lines, open_regular
from eyechart.harness.score.outcomes import FAILURES, Outcome
from eyechart.harness.settings.checks import MAX_DRAWS
from eyechart.harness.settings.shard import Shard
from eyechart.harness.spec import Condition, Sample, exact_json
from eyechart.harness.spec.answer import Target
from eyechart.harness.spec.token_counts import token_count
from eyechart.harness.spec.turns import Turn
from eyechart.providers.secrets import masked_fields, may_hold_secret

MANIFEST, SAMPLES = "manifest.json", "samples.jsonl"
_JOURNALS = "samples*.jsonl"
"""The journals of a run, one for each writer: their records together are those of the run."""

Warn: TypeAlias = Callable[[str], None]
if TYPE_CHECKING:
    FailureKind: TypeAlias = str
else:
    FailureKind = Literal[FAILURES]
"""The name of an outcome that can be recorded in place of a reply."""

_HASH = re.compile(r"[0-9a-f]{1,16}")
_MASKED = (
    *("reply", "reasoning", "refusal", "model", "logprobs", "top_logprobs"),
    *("failure", "batch", "tier", "prompt", "turns"),
)
"""Fields with text from servers, in which keys are masked."""


def unsaid(_: str) -> None:
    """A `Warn` that says nothing."""


class Failure(msgspec.Struct, frozen=True, gc=False):
    """Why a sample has no reply."""

    kind: FailureKind
    """`error`: the request failed, and its sample is asked again. `overflow`: the prompt is longer
    than the context window. `refused`: the server refused the request."""
    type: str = ""
    """Class name of the error."""
    message: str = ""


class Option(msgspec.Struct, frozen=True, gc=False):
    """An option of a forced choice."""

    text: str
    logprob: float
    """Natural logarithm of its probability after the prompt: the sum over its tokens."""
    tokens: int


class Record(msgspec.Struct, kw_only=True, omit_defaults=True, gc=False):
    """One sample's entry in the journal: a reply, or why there is none."""

    id: str
    run: str = ""
    """The mark of its run, see `Manifest.run`; "" if it is not known."""
    condition: Condition
    length: int
    """Its true length."""
    index: int
    target: Target
    prompt_hash: str
    line: int | None = None
    """Nominal length of the line, for a recorded reply; no index gives its length."""
    draw: int = 1
    """Which of several replies to the prompt it is, from 1."""
    chosen: bool = False
    """Whether an adaptive run asked it: then other answers chose it."""
    accept: tuple[str, ...] | None = None
    """Other correct answers."""
    reply: str | None = None
    finish_reason: str | None = None
    refusal: str | None = None
    reasoning: str | None = None
    model: str | None = None
    """Name of the model, as the reply gives it."""
    options: tuple[Option, ...] | None = None
    """What was chosen from, if the run is read by likelihood: the right answer first. The reply is
    then the most probable option."""
    failure: Failure | None = None
    chars: int | None = None
    """Characters of the prompt."""
    seed: int | None = None
    """Seed of the sampling, for a provider that takes one."""
    attempts: int | None = None
    """How often the sample was asked; 0 if it was known not to fit the window."""
    at: float | None = None
    """When the record was written, in seconds since 1970."""
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    thought_tokens: int | None = None
    """Tokens of the prompt read from and written to a cache, and of the reply's thinking."""
    max_tokens: int | None = None
    """Most tokens that were asked for, of a reply that was cut off."""
    cut_off: int | None = None
    """How often the sample was asked before with fewer tokens, and its reply was cut off."""
    cut_prompt_tokens: int | None = None
    cut_output_tokens: int | None = None
    """Sums of the tokens of these earlier requests. They were paid for too."""
    tier: str | None = None
    """The vendor's tier in which the request was served."""
    latency_s: float | None = None
    dropped_params: tuple[str, ...] | None = None
    """Parameters that were left out because the model does not take them."""
    logprobs: tuple[tuple[str, float | None], ...] | None = None
    """Each token of the reply with its log probability."""
    top_logprobs: tuple[tuple[tuple[str, float | None], ...], ...] | None = None
    """For each of these tokens the most probable ones there, the most probable one first."""
    batch: str | None = None
    """Id of the batch that the reply came from."""
    prompt: str | None = None
    """The prompt of a recorded reply, if it is known and not one of the task's own."""
    recorded_verdict: Literal["correct", "incorrect"] | None = None
    """The verdict of whoever recorded the reply."""
    turns: tuple[Turn, ...] | None = None
    """The turns before the reply, of a sample that is asked over several. Reply and tokens are
    those of the last request."""
    band: tuple[int, int, int] | None = None
    """The line that it was asked on, if that has several lengths: nominal, shortest and longest."""
    origin: str | None = None
    """Mark of the row in the recorded file, see `satellites.recorded`."""

    def __post_init__(self) -> None:
        """Checks the values that resuming and judging need; raises `ValueError` if there is neither
        a reply nor a failure, or a required value is invalid.
        """
        if self.failure is None and self.reply is None:
            raise ValueError("neither reply nor failure")
        if self.length < 0 or self.index < 0 or _HASH.fullmatch(self.prompt_hash) is None:
            raise ValueError("an invalid length, index or prompt_hash")
        if not 1 <= self.draw <= MAX_DRAWS:
            raise ValueError("an invalid draw")
        if self.options is not None and not _can_be_chosen(self.options):
            raise ValueError("options that are no choice")
        self.prompt_tokens = token_count(self.prompt_tokens)
        self.output_tokens = token_count(self.output_tokens)
        if self.cache_read_tokens is not None or self.cache_write_tokens is not None:
            read, write = token_count(self.cache_read_tokens), token_count(self.cache_write_tokens)
            fits = (read or 0) + (write or 0) <= (self.prompt_tokens or 0)
            self.cache_read_tokens, self.cache_write_tokens = (
                (read, write) if fits else (None, None)
            )
        if self.thought_tokens is not None:
            thought = token_count(self.thought_tokens)
            fits = thought is not None and thought <= (self.output_tokens or 0)
            self.thought_tokens = thought if fits else None

    @property
    def is_cut_off(self) -> bool:
        """Whether the reply was cut off at its most tokens. The server says so; or it says anything
        else, or nothing, but the reply has exactly as many tokens as were asked for. One with more
        shows that the server counts otherwise, which says nothing.
        """
        if self.finish_reason in ("length", "content_filter"):
            return self.finish_reason == "length"
        return self.max_tokens is not None and self.output_tokens == self.max_tokens

    @property
    def has_servers_limit(self) -> bool:
        """Whether the server cut the reply off far below the tokens that were asked for."""
        return 2 * (self.output_tokens or math.inf) < (self.max_tokens or 0)

    @property
    def is_unsent(self) -> bool:
        """Whether the prompt was known not to fit the window, so that nothing was asked."""
        is_overflow = self.failure is not None and self.failure.kind == Outcome.OVERFLOW
        return is_overflow and self.attempts == 0

    @property
    def is_error(self) -> bool:
        """Whether the request failed, so that the sample is asked again."""
        return self.failure is not None and self.failure.kind == Outcome.ERROR


def _can_be_chosen(options: tuple[Option, ...]) -> bool:
    return len(options) > 1 and all(math.isfinite(option.logprob) for option in options)


def record_of(
    sample: Sample, *, reply: str | None = None, failure: Failure | None = None
) -> Record:
    return Record(
        id=sample.id,
        condition=sample.condition,
        length=sample.length,
        index=sample.index,
        draw=sample.draw,
        target=sample.target,
        accept=sample.accept or None,
        prompt_hash=sample.prompt_hash,
        reply=reply,
        failure=failure,
        chars=len(sample.prompt),
        band=None if sample.line.is_exact else astuple(sample.line),
    )


@lru_cache(maxsize=4096)
def _condition(values: tuple[tuple[str, str], ...]) -> Condition:
    return Condition(values)


def decode_condition(kind: type, read: Any) -> Condition:
    """The condition in a JSON object, for msgspec; raises `ValueError` where it is none."""
    if kind is not Condition or not isinstance(read, dict):
        raise ValueError("the condition is no mapping")
    if not all(type(value) is str for value in read.values()):
        raise ValueError("a value of the condition is no text")
    return _condition(tuple(read.items()))


def encode_condition(condition: Any) -> dict[str, str]:
    """A condition as a dictionary, for msgspec, which knows all other types of a record."""
    return dict(condition.items())


_DECODER = msgspec.json.Decoder(Record, dec_hook=decode_condition)
_FIELDS = Record.__struct_fields__
_OF_REPLY = (
    *("finish_reason", "refusal", "reasoning", "model", "prompt_tokens", "output_tokens"),
    "latency_s",
)
"""Fields that are written for every reply, even where they are `None`."""
_DETAILS = _FIELDS[_FIELDS.index("failure") + 1 :]
"""Fields that do not affect any answer."""
_TYPES = get_type_hints(Record)


def decode(line: bytes) -> Record:
    """The record on a line. A detail of the wrong type is dropped, and the rest of the record is
    kept; raises `ValueError` if the line is no record.
    """
    try:
        return _DECODER.decode(line)
    except msgspec.ValidationError:
        return _without_wrong_details(line)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ValueError(str(error)) from error


def _without_wrong_details(line: bytes) -> Record:
    fields = exact_json.loads(line)
    if not isinstance(fields, dict):
        raise ValueError("not a mapping")  # noqa: TRY004  the line's fault
    kept = {
        name: value
        for name, value in fields.items()
        if name not in _DETAILS or _has_type(value, _TYPES[name])
    }
    failure = kept.get("failure")
    if isinstance(failure, dict):
        kept["failure"] = {
            name: value
            for name, value in failure.items()
            if name == "kind" or isinstance(value, str)
        }
    try:
        return msgspec.convert(kept, Record, dec_hook=decode_condition)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from error


def _has_type(value: object, kind: Any) -> bool:
    try:
        msgspec.convert(value, kind)
    except (msgspec.ValidationError, OverflowError):
        return False
    return True


def encode(record: Record) -> bytes:
    """The line of a record, without the newline. Known keys and passwords are masked."""
    fields: dict[str, Any] = msgspec.to_builtins(record, enc_hook=encode_condition)
    if record.failure is None:
        for name in _OF_REPLY:
            fields.setdefault(name)
    line = exact_json.dumps(fields)
    has_tokens = record.logprobs is not None or record.top_logprobs is not None
    if has_tokens or may_hold_secret(line):  # a secret may be spread over several tokens
        return exact_json.dumps(masked_fields(fields, _MASKED))
    return line


def journal_name(shard: Shard) -> str:
    """The name of the journal of a command: `samples.jsonl`, or `samples-03-of-16.jsonl`."""
    digits = len(str(shard.of))
    return SAMPLES if shard.is_whole else f"samples-{shard.number:0{digits}}-of-{shard.of}.jsonl"


def journals(folder: Path) -> list[Path]:
    """The journals of the run in `folder`, sorted by name."""
    return sorted(folder.glob(_JOURNALS))


def journal_size(folder: Path) -> int:
    """Bytes of the journals in `folder`; 0 if there is none."""
    try:
        return sum(path.stat().st_size for path in journals(folder))
    except OSError:  # reading it says what is wrong
        return 0


def read_records(folder: Path, warn: Warn | None = None) -> Iterator[Record]:
    """The records of all journals in `folder`, by the journal's name and in the order of writing;
    none if there is no journal.

    Skips each line that is not a record, or is a record of another run, and calls `warn` with a
    message; no message for an incomplete last line, which may still be being written.

    Raises:
        JournalError: a journal cannot be read.
    """
    return (record for _, record in _placed_records(folder, warn))


def is_chosen(settings: Mapping[str, object]) -> bool:
    """Whether a run with these settings is read by likelihood."""
    return settings.get("read") == "likelihood"


def chosen_records(folder: Path, warn: Warn | None = None) -> Iterator[Record | None]:
    """The records of a run that is read by likelihood; `None` and a message for a reply without its
    options, which says nothing of their probabilities.
    """
    for (path, number), record in _placed_records(folder, warn):
        lacks = record.options is None and record.failure is None
        if lacks and warn is not None:
            warn(f"{path}:{number}: no options of a forced choice; its sample counts as not asked")
        yield None if lacks else record


def _placed_records(folder: Path, warn: Warn | None) -> Iterator[tuple[tuple[Path, int], Record]]:
    """The records, each with its file and the number of its line, from 1; see `read_records`."""
    run = _run_of(folder)
    for path in journals(folder):
        strange, first = 0, 0
        for number, record in _numbered_records(path, warn):
            if record.run and run and record.run != run:
                strange, first = strange + 1, first or number
            else:
                yield (path, number), record
        if strange and warn is not None:
            warn(
                f"{path}:{first}: a record of another run, whose model, task or settings differ "
                f"({strange:,} such); they are not counted: move them to the folder of their run"
            )


def _run_of(folder: Path) -> str:
    """`Manifest.run` of the run in `folder`; "" where it cannot be read."""
    try:
        with open_regular(folder / MANIFEST) as file:
            run = exact_json.loads(file.read())["run"]
    except (OSError, ValueError, LookupError, TypeError):
        return ""
    return run if isinstance(run, str) else ""


def _numbered_records(path: Path, warn: Warn | None) -> Iterator[tuple[int, Record]]:
    try:
        file = open_regular(path)
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise _unreadable(path, error) from error
    with file:
        for number, line in enumerate(_lines(path, file), start=1):
            try:
                record = decode(line or b"")
            except ValueError:
                if warn is not None and (line is None or (line.endswith(b"\n") and line.strip())):
                    warn(f"{path}:{number}: not a record; its sample counts as not asked")
                continue
            yield number, record


def _lines(path: Path, file: BinaryIO) -> Iterator[bytes | None]:
    try:
        yield from bounded_lines(file)
    except OSError as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: OSError) -> JournalError:
    return JournalError(
        f"{path} cannot be read ({error.strerror}); restore the file, or move the folder away"
    )
