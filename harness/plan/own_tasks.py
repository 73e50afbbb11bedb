"""A private record of the task files that the user has run on this machine.

A run's folder may come from a stranger, so the path of a task file in its manifest loads no code.
This record lies outside of all runs, in the user's cache folder. It has the path of each task file
that the user named in a command, and hashes of the files with its code. If a run has the same spec
and these files have not changed, the task is opened again without being named.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson

from eyechart.harness.errors import EyechartError
from eyechart.harness.task.catalogue import Task, of_digest, open_task
from eyechart.providers.catalog.price_list import cache_folder

_MOST = 500
"""Most records that are kept; older ones are removed."""


def remember(task: Task) -> None:
    """Records that the user has run `task`, unless it is installed or the folder is read-only."""
    if task.is_installed:
        return
    path = task.path.resolve()
    with suppress(OSError):
        files = {str(file): _hash(file.read_bytes()) for file in _code(task)}
        record = orjson.dumps({"path": str(path), "files": files})
        folder = _folder()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        name = f"{_hash(task.spec.digest())[:32]}-{_hash(str(path))[:16]}"
        part = folder / f"{name}.{os.getpid()}.part"
        part.write_bytes(record)
        part.replace(folder / f"{name}.json")
        for old in sorted(folder.iterdir(), key=lambda file: file.stat().st_mtime)[:-_MOST]:
            old.unlink(missing_ok=True)


def remembered(name: str, digest: str) -> Task | None:
    """The task with this spec digest that the user has run, opened under `name`; `None` if its file
    or its code has changed.
    """
    records = _folder().glob(f"{_hash(digest)[:32]}-*.json")
    for record in sorted(records, key=lambda file: file.name):
        with suppress(OSError, ValueError, TypeError, KeyError, EyechartError):
            read: Mapping[str, Any] = orjson.loads(record.read_bytes())
            task = of_digest(open_task(name, Path(read["path"]), trial=False), digest)
            if task is None:
                continue
            if {str(file): _hash(file.read_bytes()) for file in _code(task)} == read["files"]:
                return task
    return None


def _code(task: Task) -> list[Path]:
    """The files with the code of a task: of its items and its scorer."""
    scorer = (task.spec.scorer or "").rpartition(":")[0]
    return [task.source, *([(task.path.parent / scorer).resolve()] if scorer else [])]


def _folder() -> Path:
    return cache_folder() / "tasks"


def _hash(content: bytes | str) -> str:
    return hashlib.sha256(os.fsencode(content)).hexdigest()
