"""A run's folder: what made it, and every answer as it arrived.

`samples.jsonl` only grows, one line a reply, written with a single unbuffered write, so that
`kill -9` at any moment loses nothing that was written. A power cut loses what was written in the
last second: a thread syncs the file to the disk once a second, and it is synced when the run is
closed. A line torn by a crash is cut off when the next writer opens the run; a line that cannot be
read costs its own sample.
"""

from __future__ import annotations

import contextlib
import glob
import hashlib
import os
import re
import socket
import stat
import sys
import threading
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import quote

import orjson
from filelock import FileLock, Timeout
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    PositiveInt,
    ValidationError,
)

from harness import exact_json
from harness.errors import JournalError
from harness.spec import (
    MAX_LENGTH,
    MAX_SAMPLES,
    Condition,
    Sample,
    Target,
    TaskSpec,
    condition_label,
)
from providers.secrets import masked_fields, watch_environment

MANIFEST, SAMPLES, TABLE = "manifest.json", "samples.jsonl", "table.csv"
_LOCK, _WRITER = "lock", "writer.json"
SYNC_S = 1.0
"""Seconds between two moments at which all records are on the disk."""

_NEW_FOLDERS = 5
"""The run's own and those above it that may be as new: the group's, model's and provider's, `runs`.
"""
_REPLIED = ("reply", "reasoning", "refusal", "model", "logprobs", "failure", "batch")
"""Fields of a record that others filled: no key that a server says back is kept."""
_TOLD = ("server", "answered_by", "commands")
"""The same of a manifest."""

Warn = Callable[[str], None]


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
    """The plan: see `plan_cells`."""
    completed: list[Cell] = field(default_factory=list)
    """The largest cells that have a record for every sample, as far as was known when a command
    began; they stay in the plan."""
    fingerprint: str | None = None
    """Of the whole dataset, once every cell's is known."""
    commands: list[str] = field(default_factory=list)
    created: str = ""
    updated: str = ""

    def task_spec(self) -> TaskSpec:
        """The spec the run was made with."""
        return TaskSpec.model_validate(self.spec)

    def plan_cells(self, asked: Sequence[Cell]) -> None:
        """Adds what a command asks for to the plan.

        A command that asks for a part of the plan takes back the rest, but for what is complete.
        Answers to what is taken back stay in the journal, for a command that asks for them again.
        """
        before = {cell.key: cell for cell in self.cells}
        is_part = all(
            cell.key in before and cell.samples <= before[cell.key].samples for cell in asked
        )
        planned = {cell.key: cell for cell in (self.completed if is_part else self.cells)}
        for cell in asked:
            known = planned.get(cell.key)
            if known is None or known.samples < cell.samples:
                was = before.get(cell.key)
                planned[cell.key] = was if was and was.samples == cell.samples else cell
        self.cells = list(planned.values())
        self.fingerprint = _dataset_fingerprint(self.cells)

    def complete(self, cells: Iterable[Cell]) -> None:
        """Keeps `cells`, which have a record for every sample, in the plan from now on."""
        completed = {cell.key: cell for cell in self.completed}
        for cell in cells:
            known = completed.get(cell.key)
            if known is None or known.samples < cell.samples:
                completed[cell.key] = cell
        self.completed = list(completed.values())

    def fingerprint_cells(
        self, sums: Mapping[CellKey, int], samples: Mapping[CellKey, int]
    ) -> None:
        """Notes the fingerprints of planned cells: of those that have as many `samples`."""
        self.cells = [
            replace(cell, fingerprint=sums[cell.key])
            if samples.get(cell.key) == cell.samples
            else cell
            for cell in self.cells
        ]
        self.fingerprint = _dataset_fingerprint(self.cells)


def _dataset_fingerprint(cells: list[Cell]) -> str | None:
    if any(cell.fingerprint is None for cell in cells):
        return None
    said = sorted(f"{cell.key}|{cell.samples}|{cell.fingerprint:064x}" for cell in cells)
    return hashlib.sha256("\n".join(said).encode()).hexdigest()[:32]


def run_folder(out: Path, model: str, spec: TaskSpec, task: str, settings: Settings) -> Path:
    """Where a run lives: one folder for each model, task version and settings.

    Raises:
        JournalError: the task's name leads out of the folder of the runs.
    """
    made_by = orjson.dumps([spec.digest(), asdict(settings)])
    short = hashlib.sha256(made_by).hexdigest()[:8]
    parts = [quote(part, safe=" @+,=()[]~") or "%2F" for part in model.split("/")]
    parts = [part.replace(".", "%2E") if set(part) == {"."} else part for part in parts]
    runs = out / "runs"
    folder = runs / Path(*parts) / f"{task}@{spec.version}-{short}"
    if not Path(os.path.normpath(folder)).is_relative_to(os.path.normpath(runs)):
        raise JournalError(f"the run of task {task!r} would lie outside {runs}; rename its file")
    return folder


def _is_moment(text: str) -> str:
    if text:
        datetime.fromisoformat(text)
    return text


class _InFile(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _CellInFile(_InFile):
    condition: dict[str, str]
    length: Annotated[int, Field(ge=1, le=MAX_LENGTH)]
    samples: Annotated[int, Field(ge=0, le=MAX_SAMPLES)]
    sum: Annotated[str, Field(pattern=r"^[0-9a-f]{1,64}$")] | None

    def cell(self) -> Cell:
        fingerprint = None if self.sum is None else int(self.sum, 16)
        return Cell(self.condition, self.length, self.samples, fingerprint)


class _SettingsInFile(_InFile):
    seed: Annotated[int, Field(gt=-(2**63), lt=2**63)]
    temperature: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    max_tokens: PositiveInt | None
    api: Literal["chat", "completions"]
    system: str | None


class _ManifestInFile(_InFile):
    """What `manifest.json` holds."""

    model: Annotated[str, Field(min_length=1)]
    task: Annotated[str, Field(min_length=1)]
    task_version: PositiveInt
    task_digest: str
    spec: dict[str, JsonValue]
    settings: _SettingsInFile
    file: str = ""
    server: dict[str, JsonValue] = {}
    answered_by: list[str] = []
    software: dict[str, str] = {}
    cells: list[_CellInFile]
    completed: list[_CellInFile] = []
    fingerprint: str | None = None
    commands: list[str] = []
    created: Annotated[str, AfterValidator(_is_moment)] = ""
    updated: Annotated[str, AfterValidator(_is_moment)] = ""


def read_manifest(folder: Path) -> Manifest:
    """The manifest of the run in `folder`.

    Raises:
        JournalError: there is no run, or its manifest cannot be read; says which field is wrong.
    """
    path = folder / MANIFEST
    try:
        text = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        raise JournalError(f"no run in {folder}: it has no {MANIFEST}") from None
    except OSError as error:
        raise JournalError(f"{path} cannot be read: {error.strerror}") from error
    try:
        return _checked(_ManifestInFile.model_validate(exact_json.loads(text)))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        said = f"{where or 'top level'}: {first['msg'].lower()}"
    except ValueError as error:
        said = " ".join(str(error).split())
    raise JournalError(f"{path} cannot be read ({said}); move it away to start over")


def _checked(read: _ManifestInFile) -> Manifest:
    """`read` with what its fields must be to each other; raises `ValueError`."""
    try:
        axes = TaskSpec.model_validate(read.spec).axes
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(("spec", *map(str, first["loc"])))
        raise ValueError(f"{where}: {first['msg'].lower()}") from None
    cells, completed = ([one.cell() for one in given] for given in (read.cells, read.completed))
    for cell in (*cells, *completed):
        if list(cell.condition) != list(axes) or any(
            value not in axes[axis].values for axis, value in cell.condition.items()
        ):
            raise ValueError(f"cells: unknown condition {cell.key[0]!r}")
    if len({cell.key for cell in cells}) < len(cells):
        raise ValueError("cells: a cell is there twice")
    fields = {name: getattr(read, name) for name in _ManifestInFile.model_fields}
    return Manifest(
        **fields | {"settings": dict(read.settings), "cells": cells, "completed": completed}
    )


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Replaces the manifest in one step, so that a reader never sees half of one."""
    manifest.updated = datetime.now(UTC).isoformat(timespec="seconds")
    said = asdict(manifest)
    for name, cells in (("cells", manifest.cells), ("completed", manifest.completed)):
        said[name] = [
            {
                "condition": dict(cell.condition),
                "length": cell.length,
                "samples": cell.samples,
                "sum": None if cell.fingerprint is None else f"{cell.fingerprint:064x}",
            }
            for cell in cells
        ]
    content = exact_json.dumps(masked_fields(said, _TOLD), indent=True)
    replace_file(folder / MANIFEST, content + b"\n", durable=True)


def replace_file(path: Path, content: bytes, *, durable: bool = False) -> None:
    """Writes `path` whole or not at all, with the permissions that it has; `durable`, it is on the
    disk when this returns.
    """
    partial = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        _remove_partials(path)
        partial.write_bytes(content)
        if path.exists():
            partial.chmod(stat.S_IMODE(path.stat().st_mode))
        if durable:
            sync_file(partial)
        partial.replace(path)
        if durable:
            sync_folder(path.parent)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise JournalError(f"cannot write {path}: {error.strerror}") from error


def sync_file(path: Path) -> None:
    """Brings what a file holds to the disk; raises `OSError` where that fails."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Brings the names of the files in `folder` to the disk, where the system can do that."""
    try:
        place = os.open(folder, os.O_RDONLY)
    except OSError:  # Windows opens no folders
        return
    try:
        os.fsync(place)
    except OSError:  # some network file systems sync no folders
        pass
    finally:
        os.close(place)


def _remove_partials(path: Path) -> None:
    """Removes what processes that were killed while they wrote `path` left beside it."""
    for partial in path.parent.glob(f"{glob.escape(path.name)}.*.tmp"):
        writer = partial.name.removeprefix(f"{path.name}.").removesuffix(".tmp")
        if writer.isdecimal() and not _is_running(int(writer)):
            with contextlib.suppress(OSError):  # somebody else's
                partial.unlink()


def _is_running(process: int) -> bool:
    """Whether there is such a process on this machine; where that cannot be asked, yes."""
    if sys.platform == "win32":
        return True
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True


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
                record = exact_json.loads(line)
            except ValueError:
                record = None
            if not _is_record(record):
                if warn is not None and line.endswith(b"\n") and line.strip():
                    warn(f"{path}:{number}: not a record; its sample counts as not asked")
                continue
            yield record


def _is_count(value: object) -> bool:
    return type(value) is int and value >= 0


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
        and isinstance(get("finish_reason"), str | None)
        and isinstance(get("refusal"), str | None)
        and isinstance(get("model"), str | None)
        and isinstance(get("reasoning"), str | None)
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

    def __bool__(self) -> bool:
        """Whether there is any answer."""
        return any(map(any, self._hashes.values()))

    def recorded_in(self, key: CellKey, samples: int) -> int:
        """Samples among the first `samples` of a cell that have a record of any kind."""
        if (answers := self.count_in(key, samples)) == samples:
            return answers
        kinds = (self, self.unsent, self.failed)
        return sum(any(kind.has(key, index) for kind in kinds) for index in range(samples))

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
        self._unsynced = False
        self._sync_error: OSError | None = None
        self._one_sync = threading.Lock()
        self._closing = threading.Event()
        self._syncing: threading.Thread | None = None

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
            is_new = not (self.folder / SAMPLES).exists()
            self._file = os.open(self.folder / SAMPLES, flags, 0o644)
            for folder in (self.folder, *self.folder.parents)[:_NEW_FOLDERS] if is_new else ():
                sync_folder(folder)
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
        self._closing.set()
        if self._syncing is not None:
            self._syncing.join()
        try:
            if self._file >= 0:
                self.sync()
        finally:
            self._close()

    def _close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
        with contextlib.suppress(OSError):
            (self.folder / _WRITER).unlink(missing_ok=True)
        self._lock.release()

    def append(self, record: Mapping[str, Any]) -> None:
        """Writes one record. It is safe from a crash of this process when this returns, and from a
        power cut about a second later.

        Raises:
            JournalError: the disk does not take it, or did not take an earlier one.
        """
        if self._sync_error is not None:
            self.sync()
        line = exact_json.dumps(masked_fields(record, _REPLIED)) + b"\n"
        written = 0
        try:
            while written < len(line):
                written += os.write(self._file, line[written:])
        except OSError as error:
            os.ftruncate(self._file, os.fstat(self._file).st_size - written)
            raise JournalError(f"cannot write {self.folder / SAMPLES}: {error.strerror}") from error
        self._unsynced = True
        if self._syncing is None:
            self._syncing = threading.Thread(target=self._sync_regularly, daemon=True)
            self._syncing.start()

    def sync(self) -> None:
        """Returns when all records are on the disk.

        Raises:
            JournalError: the disk does not take them.
        """
        self._sync()
        if self._sync_error is not None:
            error = self._sync_error
            raise JournalError(f"cannot write {self.folder / SAMPLES}: {error.strerror}") from error

    def _sync_regularly(self) -> None:
        while not self._closing.wait(SYNC_S):
            self._sync()

    def _sync(self) -> None:
        with self._one_sync:
            if not self._unsynced:
                return
            self._unsynced = False  # before the call: what is written meanwhile is for the next one
            try:
                os.fsync(self._file)
            except OSError as error:
                self._sync_error = error

    def answered(self) -> Answered:
        """What needs no asking: every sample with a record that is not an error."""
        answered = Answered()
        for record in read_records(self.folder, self._warn):
            kind = (record.get("failure") or {}).get("kind")
            key = condition_label(record["condition"]), record["length"]
            if record["index"] >= MAX_SAMPLES:
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
