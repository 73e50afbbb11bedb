"""A probe's folder: `<out>/probes/<model>/<task>@<version>-<hash>`, which grows like a run's.

`measured.jsonl` has a line for each measure of each sample and only grows; an incomplete last line
is removed by the next writer. `probe.csv` is made from it.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self, TypeAlias

import msgspec
import orjson
from filelock import FileLock, Timeout

from eyechart import Task
from eyechart.harness.errors import JournalError
from eyechart.harness.journal import replace_file, run_folder
from eyechart.harness.spec import CellKey, Condition, Line, Settings
from eyechart.providers.naming import named

_FIELDS: dict[str, type] = {
    "model": str,
    "task": str,
    "task_version": int,
    "task_digest": str,
    "axes": list,
    "seed": int,
    "facts": dict,
    "commands": list,
}
"""Field of the manifest -> its type; lists have texts."""
MEASURED, MANIFEST = "measured.jsonl", "probe.json"
_LOCK = "lock"


def probe_folder(out: Path, model: str, task: Task, settings: Settings) -> Path:
    """The folder of a probe: that of the run of the same model, task and settings, with `probes` in
    place of `runs`.

    Raises:
        JournalError: the folder would be outside `<out>`.
    """
    run = run_folder(out, model, task.spec, task.name, settings)
    return out / "probes" / run.relative_to(out / "runs")


MeasuredKey: TypeAlias = tuple[str, CellKey, int, int]
"""Measure, cell, true length and index: the key of a measurement."""


class Measurement(msgspec.Struct, frozen=True):
    """What one measure found on one sample, or on several together."""

    measure: str
    condition: dict[str, str]
    line: tuple[int, int, int]
    """Nominal length of the line, shortest and longest length in it."""
    length: int
    """The sample's true length."""
    index: int
    tokens: int
    """Tokens of the prompt, with the phrase before the answer."""
    found: list[tuple[str, int | None, int | None, float | None]]
    """Quantity, layer, head, value; `None` for what a quantity does not have."""
    seconds: float = 0.0

    @property
    def key(self) -> MeasuredKey:
        return self.measure, self.cell, self.length, self.index

    @property
    def cell(self) -> CellKey:
        return Condition(self.condition), Line(*self.line)


_DECODER = msgspec.json.Decoder(Measurement)


def read_measured(folder: Path) -> Iterator[Measurement]:
    """The complete lines of a probe, in the order in which they were written.

    Raises:
        JournalError: there is no probe, or a line is invalid; the error names the line.
    """
    path = folder / MEASURED
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if not line.endswith(b"\n"):
                    return
                try:
                    yield _DECODER.decode(line)
                except (msgspec.MsgspecError, RecursionError) as error:
                    raise JournalError(
                        f"{path}:{number}: {error}; remove the line, and the same command measures "
                        "its sample again"
                    ) from None
    except FileNotFoundError:
        raise JournalError(
            f"no probe in {folder}: it has no {MEASURED}; 'bench probe' makes one"
        ) from None
    except OSError as error:
        raise JournalError(f"{path} cannot be read: {error.strerror}") from error


def is_probe(folder: Path) -> bool:
    return (folder / MEASURED).is_file()


def read_manifest(folder: Path) -> dict[str, Any]:
    """The facts about a probe: model, task, spec, facts, versions.

    Raises:
        JournalError: the manifest is missing or invalid.
    """
    path = folder / MANIFEST
    if path.exists() and not path.is_file():  # a pipe would be waited for
        raise JournalError(f"{path} cannot be read (it is no file); restore the file")
    try:
        manifest = orjson.loads(path.read_bytes())
    except FileNotFoundError:
        raise JournalError(f"no probe in {folder}: it has no {MANIFEST}") from None
    except (OSError, ValueError) as error:
        raise JournalError(f"{path} cannot be read ({error}); restore the file") from error
    if not isinstance(manifest, dict):
        raise JournalError(f"{path} cannot be read (it is no object); restore the file")
    for name, kind in _FIELDS.items():
        value = manifest.get(name)
        parts = value if isinstance(value, list) else ()
        if not isinstance(value, kind) or not all(isinstance(part, str) for part in parts):
            raise JournalError(f"{path} cannot be read ({name!r} is wrong); restore the file")
    return manifest


class ProbeFolder:
    """The writer of a probe's folder; a lock allows one at a time. Use as a context manager."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = FileLock(folder / _LOCK, timeout=0)
        self._file = -1

    def __enter__(self) -> Self:
        """Takes the lock and removes an incomplete last line.

        Raises:
            JournalError: another process holds the lock, or the folder cannot be written.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock.acquire()
            flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0)
            self._file = os.open(self.folder / MEASURED, flags, 0o644)
            self._repair()
        except Timeout:
            raise JournalError(
                f"{self.folder} is being written by another process on {socket.gethostname()}; "
                f"wait for it or use another {named('out')}"
            ) from None
        except OSError as error:
            self._lock.release()
            raise JournalError(f"cannot write to {self.folder}: {error.strerror}") from error
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._file)
        self._lock.release()

    def append(self, measured: Measurement) -> None:
        """Writes one line. When this returns it survives the end of this process.

        Raises:
            JournalError: it cannot be written.
        """
        line = msgspec.json.encode(measured) + b"\n"
        written = 0
        try:
            while written < len(line):
                written += os.write(self._file, line[written:])
        except OSError as error:
            raise JournalError(
                f"cannot write {self.folder / MEASURED}: {error.strerror}"
            ) from error

    def describe(self, manifest: dict[str, Any]) -> None:
        """Writes the manifest, with the time of its creation kept and its commands added.

        Raises:
            JournalError: the folder has the probe of another model of this name.
        """
        now = datetime.now(UTC).isoformat(timespec="seconds")
        path = self.folder / MANIFEST
        before = read_manifest(self.folder) if path.exists() else {}
        if not before and (self.folder / MEASURED).stat().st_size:
            raise JournalError(
                f"{self.folder} has measures but no {MANIFEST}, so their model is not known; "
                f"restore the file, or use another {named('out')}"
            )
        for fact in ("weights_sha256", "config_sha256", "tokenizer_sha256"):
            old, new = (one.get("facts", {}).get(fact) for one in (before, manifest))
            if old is not None and old != new:
                raise JournalError(
                    f"{self.folder} is the probe of a model with other weights, another config or "
                    f"another tokenizer ({fact} differs); use another {named('out')}"
                )
        commands = dict.fromkeys([*before.get("commands", []), *manifest.get("commands", [])])
        kept = {"created": before.get("created", now), "updated": now, "commands": list(commands)}
        content = orjson.dumps(manifest | kept, option=orjson.OPT_INDENT_2)
        replace_file(path, content + b"\n", durable=True)

    def _repair(self) -> None:
        """Removes an incomplete last line, and goes to the end."""
        end = os.lseek(self._file, 0, os.SEEK_END)
        at, step = end, 1 << 16
        while at > 0:
            start = max(0, at - step)
            os.lseek(self._file, start, os.SEEK_SET)
            found = os.read(self._file, at - start).rfind(b"\n")
            if found >= 0:
                at = start + found + 1
                break
            at = start
        os.ftruncate(self._file, at)
        os.lseek(self._file, at, os.SEEK_SET)
