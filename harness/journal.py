"""A run's folder: what made it, and every answer as it arrived.

`samples.jsonl` only grows, one line a reply, written with a single unbuffered write, so that
`kill -9` at any moment loses nothing that was written. A line torn by a crash is cut off when the
next writer opens the run; a line that cannot be read costs its own sample.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import socket
from array import array
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self
from urllib.parse import quote

import orjson
from filelock import FileLock, Timeout

from harness.spec import Condition, Sample, Target, TaskSpec, condition_label
from providers.secrets import masked_fields, watch_environment

MANIFEST, SAMPLES, TABLE = "manifest.json", "samples.jsonl", "table.csv"
_LOCK, _WRITER = "lock", "writer.json"
_REPLIED = ("reply", "reasoning", "refusal", "model", "logprobs", "failure", "batch")
"""Fields of a record that others filled: no key that a server says back is kept."""
_TOLD = ("server", "answered_by", "commands")
"""The same of a manifest."""

Warn = Callable[[str], None]


class JournalError(Exception):
    """A run's folder that cannot be used as asked; one line for the user."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What shapes a model's answers besides the prompt; part of a run's identity."""

    seed: int = 0
    temperature: float = 0.0
    max_tokens: int | None = None
    """`None` is `auto`: room for the target and the strategy."""
    api: Literal["chat", "completions"] = "chat"
    """A user's message, or a text to be continued."""
    system: str | None = None
    """The system prompt."""


@dataclass(frozen=True, slots=True)
class Cell:
    """How many samples of one condition and length a run is meant to have."""

    condition: Condition
    length: int
    samples: int
    fingerprint: int | None = None
    """Sum of the samples' hashes, once all of them were made: see `plan.fingerprint`."""

    @property
    def key(self) -> CellKey:
        return condition_label(self.condition), self.length


CellKey = tuple[str, int]


@dataclass(slots=True)
class Manifest:
    """All that made a run; never a key."""

    model: str
    task: str
    task_version: int
    task_digest: str
    spec: dict[str, Any]
    settings: dict[str, Any]
    file: str = ""
    """The task's file, where it is the user's own."""
    server: dict[str, Any] = field(default_factory=dict)
    """What the provider says of the model behind it."""
    answered_by: list[str] = field(default_factory=list)
    """The model's names as its replies give them."""
    software: dict[str, str] = field(default_factory=dict)
    cells: list[Cell] = field(default_factory=list)
    fingerprint: str | None = None
    """Of the whole dataset, once every cell's is known."""
    commands: list[str] = field(default_factory=list)
    created: str = ""
    updated: str = ""

    def task_spec(self) -> TaskSpec:
        """The spec the run was made with."""
        return TaskSpec.model_validate(self.spec)

    def plan_cells(self, cells: list[Cell]) -> None:
        """Adds to what is planned; a cell never shrinks, nor forgets the fingerprint it has."""
        known = {cell.key: cell for cell in self.cells}
        for cell in cells:
            before = known.get(cell.key)
            if before is not None:
                knows_less = cell.fingerprint is None and cell.samples == before.samples
                if knows_less or cell.samples < before.samples:
                    continue
            known[cell.key] = cell
        self.cells = list(known.values())
        self.fingerprint = _dataset_fingerprint(self.cells)


def _dataset_fingerprint(cells: list[Cell]) -> str | None:
    if any(cell.fingerprint is None for cell in cells):
        return None
    said = sorted(f"{cell.key}|{cell.samples}|{cell.fingerprint:064x}" for cell in cells)
    return hashlib.sha256("\n".join(said).encode()).hexdigest()[:32]


def run_folder(out: Path, model: str, spec: TaskSpec, task: str, settings: Settings) -> Path:
    """Where a run lives: one folder for each model, task version and settings."""
    made_by = orjson.dumps([spec.digest(), asdict(settings)])
    short = hashlib.sha256(made_by).hexdigest()[:8]
    parts = [quote(part, safe=" @+,=()[]~") or "%2F" for part in model.split("/")]
    parts = [part.replace(".", "%2E") if set(part) == {"."} else part for part in parts]
    return out / "runs" / Path(*parts) / f"{task}@{spec.version}-{short}"


def read_manifest(folder: Path) -> Manifest:
    """The manifest of the run in `folder`.

    Raises:
        JournalError: there is no run, or its manifest cannot be read.
    """
    path = folder / MANIFEST
    try:
        read = orjson.loads(path.read_bytes())
        cells = [_read_cell(cell) for cell in read.pop("cells")]
        return _checked(Manifest(**read, cells=cells))
    except (FileNotFoundError, NotADirectoryError):
        raise JournalError(f"no run in {folder}: it has no {MANIFEST}") from None
    except (OSError, AttributeError, KeyError, TypeError, ValueError) as error:
        said = " ".join(str(error).split())
        raise JournalError(f"{path} cannot be read ({said}); move it away to start over") from error


def _checked(manifest: Manifest) -> Manifest:
    axes = manifest.task_spec().axes
    for cell in manifest.cells:
        if list(cell.condition) != list(axes) or any(
            value not in axes[axis].values for axis, value in cell.condition.items()
        ):
            raise ValueError(f"unknown condition {cell.key[0]!r}")
    return manifest


def _read_cell(cell: dict[str, Any]) -> Cell:
    condition, length, samples = cell["condition"], cell["length"], cell["samples"]
    if not isinstance(condition, dict) or not (_is_count(length) and _is_count(samples)):
        raise TypeError(f"no cell: {cell!r}")
    fingerprint = None if cell["sum"] is None else int(cell["sum"], 16)
    return Cell(condition, length, samples, fingerprint)


def _is_count(value: object) -> bool:
    return type(value) is int and value >= 0


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Replaces the manifest in one step, so that a reader never sees half of one."""
    manifest.updated = datetime.now(UTC).isoformat(timespec="seconds")
    said = asdict(manifest)
    said["cells"] = [
        {
            "condition": dict(cell.condition),
            "length": cell.length,
            "samples": cell.samples,
            "sum": None if cell.fingerprint is None else f"{cell.fingerprint:064x}",
        }
        for cell in manifest.cells
    ]
    content = _to_json(masked_fields(said, _TOLD), option=orjson.OPT_INDENT_2)
    replace_file(folder / MANIFEST, content + b"\n")


def replace_file(path: Path, content: bytes) -> None:
    """Writes `path` whole or not at all."""
    partial = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        partial.write_bytes(content)
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise JournalError(f"cannot write {path}: {error.strerror}") from error


def read_records(folder: Path, warn: Warn | None = None) -> Iterator[dict[str, Any]]:
    """The journal's records in the order they were written, one by one.

    A line that is no record is passed over, with a word to `warn`; a torn last line quietly,
    since the writer may be at it.
    """
    path = folder / SAMPLES
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return
    with file:
        for number, line in enumerate(file, start=1):
            try:
                record = orjson.loads(line)
            except orjson.JSONDecodeError:
                record = None
            if not _is_record(record):
                if warn is not None and line.endswith(b"\n") and line.strip():
                    warn(f"{path}:{number}: not a record; its sample counts as not asked")
                continue
            yield record


_HASH = re.compile(r"[0-9a-f]{1,16}")
_FAILURES = ("error", "overflow", "refused")


def _is_record(read: Any) -> bool:
    """Whether `read` has all that resuming and judging rely on."""
    if not isinstance(read, dict):
        return False
    get = read.get
    condition, target, failure = get("condition"), get("target"), get("failure")
    prompt_hash = get("prompt_hash")
    if failure is None:
        answered = isinstance(get("reply"), str)
    else:
        answered = isinstance(failure, dict) and failure.get("kind") in _FAILURES
    return (
        answered
        and isinstance(get("id"), str)
        and isinstance(condition, dict)
        and set(map(type, condition.values())) <= {str}
        and _is_count(get("length"))
        and _is_count(get("index"))
        and (isinstance(target, str) or type(target) is int)
        and isinstance(prompt_hash, str)
        and _HASH.fullmatch(prompt_hash) is not None
    )


class Answered:
    """Which samples have an answer, and to which prompt; eight bytes a sample."""

    def __init__(self) -> None:
        self._hashes: dict[CellKey, array[int]] = {}

    @cached_property
    def unsent(self) -> Answered:
        """Samples that were too long for the window there was then: nothing was asked or paid."""
        return Answered()

    @cached_property
    def failed(self) -> Answered:
        """Samples that were asked and have no reply, with the mark of the latest reason; some of
        them may have an answer as well.
        """
        return Answered()

    def note(self, sample: Sample, key: CellKey) -> None:
        """Adds `sample`, which has just been answered."""
        self.add(key, sample.index, _mark(sample.prompt_hash, sample.target))

    def has(self, key: CellKey, index: int) -> bool:
        """Whether a sample is here, to whatever prompt."""
        return self.mark(key, index) != 0

    def mark(self, key: CellKey, index: int) -> int:
        """What a sample was added with; 0 if it is not here."""
        hashes = self._hashes.get(key, ())
        return hashes[index] if index < len(hashes) else 0

    def add(self, key: CellKey, index: int, mark: int) -> None:
        hashes = self._hashes.setdefault(key, array("Q"))
        if index >= len(hashes):
            hashes.extend([0] * (index + 1 - len(hashes)))
        hashes[index] = mark

    def count_in(self, key: CellKey, samples: int) -> int:
        """Answers among the first `samples` of a cell."""
        return sum(map(bool, self._hashes.get(key, ())[:samples]))

    def first(self, key: CellKey) -> int | None:
        """The lowest index of a cell that has an answer."""
        return next((index for index, mark in enumerate(self._hashes.get(key, ())) if mark), None)

    def covers(self, sample: Sample, key: CellKey) -> bool:
        """Whether `sample` was answered.

        Raises:
            JournalError: it was, but to another prompt: the task changed underneath.
        """
        hashes = self._hashes.get(key)
        if hashes is None or sample.index >= len(hashes) or not hashes[sample.index]:
            return False
        if hashes[sample.index] != _mark(sample.prompt_hash, sample.target):
            raise JournalError(
                f"{sample.id}: the journal's answer was to another prompt or target, so the task "
                "changed but not its version; raise the version, or start over with --fresh"
            )
        return True


def _mark(prompt_hash: str, target: Target) -> int:
    """Prompt and target in 64 bits, never 0."""
    return text_mark(f"{prompt_hash}|{target!r}")


def text_mark(text: str) -> int:
    """A text in 64 bits, never 0."""
    said = hashlib.sha256(text.encode(errors="replace")).digest()
    return int.from_bytes(said[:8]) or 1


class Journal:
    """The one writer of a run's folder. Use as a context manager."""

    def __init__(self, folder: Path, warn: Warn) -> None:
        self.folder = folder
        self._warn = warn
        self._lock = FileLock(folder / _LOCK, timeout=0)
        self._file = -1

    def __enter__(self) -> Self:
        """Takes the lock and repairs a torn last line.

        Raises:
            JournalError: somebody else is writing, or the folder cannot be written.
        """
        watch_environment()
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock.acquire()
            writer = {"pid": os.getpid(), "host": socket.gethostname(), "since": _now()}
            replace_file(self.folder / _WRITER, orjson.dumps(writer))
            self._repair()
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)
            self._file = os.open(self.folder / SAMPLES, flags, 0o644)
        except Timeout:
            raise JournalError(_held(self.folder)) from None
        except JournalError:
            self._lock.release()
            raise
        except OSError as error:
            self._lock.release()
            raise JournalError(f"cannot write to {self.folder}: {error.strerror}") from error
        return self

    def __exit__(self, *_: object) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
        with contextlib.suppress(OSError):
            (self.folder / _WRITER).unlink(missing_ok=True)
        self._lock.release()

    def append(self, record: Mapping[str, Any]) -> None:
        """Writes one record; it is safe from a crash of this process when this returns.

        Raises:
            JournalError: the disk does not take it.
        """
        line = _to_json(masked_fields(record, _REPLIED)) + b"\n"
        written = 0
        try:
            while written < len(line):
                written += os.write(self._file, line[written:])
        except OSError as error:
            os.ftruncate(self._file, os.fstat(self._file).st_size - written)
            raise JournalError(f"cannot write {self.folder / SAMPLES}: {error.strerror}") from error

    def answered(self, planned: Mapping[CellKey, int]) -> Answered:
        """What needs no asking: every planned sample with a record that is not an error."""
        answered = Answered()
        for record in read_records(self.folder, self._warn):
            kind = (record.get("failure") or {}).get("kind")
            key = condition_label(record["condition"]), record["length"]
            if record["index"] >= planned.get(key, 0):
                continue
            if kind == "error":
                reason = text_mark(str(record["failure"].get("message")))
                answered.failed.add(key, record["index"], reason)
                continue
            unsent = kind == "overflow" and record.get("attempts") == 0
            mark = _mark(record["prompt_hash"], record["target"])
            (answered.unsent if unsent else answered).add(key, record["index"], mark)
        return answered

    def _repair(self) -> None:
        path = self.folder / SAMPLES
        if not path.exists() or path.stat().st_size == 0:
            return
        with path.open("rb+") as file:
            end = file.seek(0, os.SEEK_END)
            tail = b""
            at = end
            while at > 0 and b"\n" not in tail:
                step = min(65536, at)
                at = file.seek(at - step)
                tail = file.read(step) + tail
            torn = tail.rpartition(b"\n")[2]
            if not torn:
                return
            try:
                orjson.loads(torn)
            except orjson.JSONDecodeError:
                file.truncate(end - len(torn))
                self._warn(f"{path}: cut off a torn last line; its sample is asked again")
            else:
                file.seek(0, os.SEEK_END)
                file.write(b"\n")


def _to_json(value: Any, option: int = 0) -> bytes:
    """`value` as JSON; a lone surrogate, which UTF-8 has not, becomes U+FFFD."""
    try:
        return orjson.dumps(value, option=option)
    except TypeError:
        text = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
        return orjson.dumps(orjson.loads(text), option=option)


def _held(folder: Path) -> str:
    try:
        writer = orjson.loads((folder / _WRITER).read_bytes())
        who = f"process {writer['pid']} on {writer['host']} since {writer['since']}"
    except (OSError, orjson.JSONDecodeError, KeyError, TypeError):
        who = "another process"
    return f"{folder} is being written by {who}; wait for it or use another --out"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def set_aside(out: Path, folder: Path) -> Path:
    """Moves a run out of the way, to `replaced/`; returns where it is now.

    Raises:
        JournalError: somebody is writing to it, or it cannot be moved.
    """
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
    target = out / "replaced" / folder.relative_to(out / "runs")
    target = target.with_name(f"{target.name}-{stamp}")
    try:
        with FileLock(folder / _LOCK, timeout=0):
            target.parent.mkdir(parents=True, exist_ok=True)
            folder.rename(target)
    except Timeout:
        raise JournalError(_held(folder)) from None
    except OSError as error:
        raise JournalError(f"cannot move {folder} to {target}: {error.strerror}") from error
    return target
