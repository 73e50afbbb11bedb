"""A run's folder: what made it, and every answer as it arrived.

`samples.jsonl` only grows, one line a reply, written with a single unbuffered write, so that
`kill -9` at any moment loses nothing that was written. A line torn by a crash is cut off when the
next writer opens the run; a line that cannot be read costs its own sample.
"""

from __future__ import annotations

import hashlib
import os
import socket
from array import array
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

import orjson
from filelock import FileLock, Timeout

from harness.spec import Condition, Sample, TaskSpec, condition_label

MANIFEST, SAMPLES, TABLE = "manifest.json", "samples.jsonl", "table.csv"
_LOCK, _WRITER = "lock", "writer.json"

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


@dataclass(frozen=True, slots=True)
class Cell:
    """How many samples of one condition and length a run is meant to have."""

    condition: Condition
    length: int
    samples: int
    fingerprint: int | None = None
    """Sum of the samples' hashes, once all of them were made: see `plan.Fingerprint`."""

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
    server: dict[str, Any] = field(default_factory=dict)
    """What the provider says of the model behind it."""
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
        """Adds to what is planned; a cell never shrinks."""
        known = {cell.key: cell for cell in self.cells}
        for cell in cells:
            before = known.get(cell.key)
            if before is None or cell.samples >= before.samples:
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
        cells = [
            Cell(
                condition=cell["condition"],
                length=cell["length"],
                samples=cell["samples"],
                fingerprint=None if cell["sum"] is None else int(cell["sum"], 16),
            )
            for cell in read.pop("cells")
        ]
        return Manifest(**read, cells=cells)
    except FileNotFoundError:
        raise JournalError(f"no run in {folder}: it has no {MANIFEST}") from None
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError) as error:
        raise JournalError(
            f"{path} cannot be read ({error}); move it away to start over"
        ) from error


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
    replace_file(folder / MANIFEST, orjson.dumps(said, option=orjson.OPT_INDENT_2) + b"\n")


def replace_file(path: Path, content: bytes) -> None:
    """Writes `path` whole or not at all."""
    partial = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    partial.write_bytes(content)
    partial.replace(path)


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
                record["id"], record["condition"], record["length"], record["index"]
            except (orjson.JSONDecodeError, KeyError, TypeError):
                if warn is not None and line.endswith(b"\n") and line.strip():
                    warn(f"{path}:{number}: not a record; its sample counts as not asked")
                continue
            yield record


class Answered:
    """Which samples a journal has an answer to, and to which prompt; eight bytes a sample."""

    def __init__(self) -> None:
        self._hashes: dict[CellKey, array[int]] = {}

    def add(self, key: CellKey, index: int, prompt_hash: str) -> None:
        hashes = self._hashes.setdefault(key, array("Q"))
        if index >= len(hashes):
            hashes.extend([0] * (index + 1 - len(hashes)))
        hashes[index] = int(prompt_hash, 16) or 1

    def count_in(self, key: CellKey, samples: int) -> int:
        """Answers among the first `samples` of a cell."""
        return sum(map(bool, self._hashes.get(key, ())[:samples]))

    def covers(self, sample: Sample, key: CellKey) -> bool:
        """Whether `sample` was answered.

        Raises:
            JournalError: it was, but to another prompt: the task changed underneath.
        """
        hashes = self._hashes.get(key)
        if hashes is None or sample.index >= len(hashes) or not hashes[sample.index]:
            return False
        if hashes[sample.index] != (int(sample.prompt_hash, 16) or 1):
            raise JournalError(
                f"{sample.id}: the journal's answer was given to another prompt, so the task "
                "changed but not its version; raise the version, or start over with --fresh"
            )
        return True


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
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock.acquire()
        except Timeout:
            raise JournalError(self._held()) from None
        except OSError as error:
            raise JournalError(f"cannot write to {self.folder}: {error.strerror}") from error
        writer = {"pid": os.getpid(), "host": socket.gethostname(), "since": _now()}
        replace_file(self.folder / _WRITER, orjson.dumps(writer))
        self._repair()
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)
        self._file = os.open(self.folder / SAMPLES, flags, 0o644)
        return self

    def __exit__(self, *_: object) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
        (self.folder / _WRITER).unlink(missing_ok=True)
        self._lock.release()

    def append(self, record: Mapping[str, Any]) -> None:
        """Writes one record; it is safe from a crash of this process when this returns.

        Raises:
            JournalError: the disk does not take it.
        """
        line = orjson.dumps(record) + b"\n"
        try:
            while line:
                line = line[os.write(self._file, line) :]
        except OSError as error:
            raise JournalError(f"cannot write {self.folder / SAMPLES}: {error.strerror}") from error

    def answered(self) -> Answered:
        """What needs no asking: every sample with a record that is not an error."""
        answered = Answered()
        for record in read_records(self.folder, self._warn):
            failed = (record.get("failure") or {}).get("kind") == "error"
            if not failed:
                key = condition_label(record["condition"]), record["length"]
                answered.add(key, record["index"], record["prompt_hash"])
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

    def _held(self) -> str:
        try:
            writer = orjson.loads((self.folder / _WRITER).read_bytes())
            who = f"process {writer['pid']} on {writer['host']} since {writer['since']}"
        except (OSError, orjson.JSONDecodeError, KeyError, TypeError):
            who = "another process"
        return f"{self.folder} is being written by {who}; wait for it or use another --out"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def set_aside(out: Path, folder: Path) -> Path:
    """Moves a run out of the way, to `replaced/`; returns where it is now."""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
    target = out / "replaced" / folder.relative_to(out / "runs")
    target = target.with_name(f"{target.name}-{stamp}")
    target.parent.mkdir(parents=True, exist_ok=True)
    folder.rename(target)
    return target
