"""The parts of runs to be merged: runs and shards, found in the folders that a user names."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from eyechart.harness.errors import JournalError
from eyechart.harness.journal.manifest import (
    MANIFEST,
    Manifest,
    folders_below,
    is_shard,
    journal_size,
    read_manifest,
    shards_of,
)
from eyechart.harness.settings.shard import WHOLE, Shard


@dataclass(frozen=True, slots=True)
class Part:
    """A run, or a shard of one, to be merged."""

    folder: Path
    manifest: Manifest

    @property
    def run(self) -> Path:
        """The folder of the run, or of the run that the shard belongs to."""
        return self.folder.parents[1] if is_shard(self.folder.resolve()) else self.folder

    @property
    def shard(self) -> Shard:
        return Shard.read(self.manifest.shard) if self.manifest.shard else WHOLE


def find_parts(folders: Sequence[Path], unread: list[str]) -> list[list[Part]]:
    """The parts in `folders`, grouped by run; a run's folder includes its shards. A part that
    cannot be read is left out, and its problem is added to `unread`. A folder is a run, a shard, or
    a folder with many runs, such as `results`. Runs that are named one by one must be parts of the
    same run.

    Raises:
        JournalError: a folder has no run, or a run is not the same as the others that were named.
    """
    named: list[Part] = []
    found: list[Part] = []
    for folder in folders:
        if its := _of_run(folder):
            named += _parts(its, unread)
        elif runs := _below(folder):
            found += _parts((one for run in runs for one in _of_run(run)), unread)
        else:
            read_manifest(folder)  # says that it is no run
    for part in named[1:]:
        if difference := _difference(named[0].manifest, part.manifest):
            raise JournalError(
                f"{named[0].folder} and {part.folder} are not the same run: {difference}"
            )
    distinct = {part.folder.resolve(): part for part in (*found, *named)}
    return _grouped(list(distinct.values()))


def _of_run(folder: Path) -> list[Path]:
    """The folders of a run and of its shards; empty if `folder` is neither a run nor a shard."""
    run = [folder] if os.path.lexists(folder / MANIFEST) or journal_size(folder) else []
    return [*run, *shards_of(folder)]


def _below(folder: Path) -> list[Path]:
    """The folders of all runs in a folder, and of runs that have only shards."""
    top = folder / "runs" if (folder / "runs").is_dir() else folder
    runs = {of.parents[1] if is_shard(of.resolve()) else of for of in folders_below(top)}
    return sorted(runs)


def _parts(folders: Iterable[Path], unread: list[str]) -> Iterator[Part]:
    for folder in folders:
        try:
            yield Part(folder, read_manifest(folder))
        except JournalError as error:
            unread += error.lines


def _grouped(parts: Iterable[Part]) -> list[list[Part]]:
    groups: dict[tuple[object, ...], list[Part]] = {}
    for part in parts:
        manifest = part.manifest
        identity = tuple(value for _, value, _ in _identity(manifest, manifest))
        groups.setdefault((*identity, manifest.task_digest), []).append(part)
    return [*groups.values()]


def _difference(one: Manifest, other: Manifest) -> str:
    """In what two runs differ; empty if they are parts of one run."""
    for name, first, second in _identity(one, other):
        if first != second:
            return f"{name} is {first!r} and {second!r}"
    if one.task_digest != other.task_digest:
        return f"the task {one.task!r} was changed between them, and not its version"
    return ""


def _identity(one: Manifest, other: Manifest) -> Iterator[tuple[str, object, object]]:
    """The properties that identify a run, in words for users."""
    yield "the model", one.model, other.model
    yield "the model's name at its server", one.served_as, other.served_as
    yield "the task", one.task, other.task
    yield "the version of the task", one.task_version, other.task_version
    origin, other_origin = ("asked" if of.recorded is None else "recorded" for of in (one, other))
    yield "the origin", origin, other_origin
    for name in sorted(one.settings | other.settings):
        yield f"the setting {name}", one.settings.get(name), other.settings.get(name)
