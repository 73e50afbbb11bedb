"""Merges the parts of a run into one folder. The parts stay as they are.

Only an index of the samples is in memory, of 25 bytes each; lines are copied as they are. If a
merge is killed, the folder is unchanged, or has a plan with samples that have no record yet; the
next merge completes it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from eyechart.harness.errors import JournalError
from eyechart.harness.journal.files import bounded_lines
from eyechart.harness.journal.joined import joined
from eyechart.harness.journal.kept import KEPT, read_kept, write_kept
from eyechart.harness.journal.line_finder import LineFinder
from eyechart.harness.journal.manifest import (
    MANIFEST,
    SHARDS,
    Manifest,
    journal_size,
    read_manifest,
    write_manifest,
)
from eyechart.harness.journal.parts import Part
from eyechart.harness.journal.record import SAMPLES, Warn, numbered_records
from eyechart.harness.journal.sample_index import Chosen, OtherPromptError, SampleIndex
from eyechart.harness.journal.writer import Journal
from eyechart.harness.spec import line_start

_BUFFER = 1 << 20


@dataclass(frozen=True, slots=True)
class Merged:
    folder: Path
    parts: int
    chosen: Chosen
    is_changed: bool
    """Whether the merge changed the folder."""


@dataclass(frozen=True, slots=True)
class _Lines:
    """The chosen lines of a part's journal."""

    folder: Path
    flags: bytearray
    """One byte for each line, from 0: 1 if it is chosen."""

    def copy(self, target: BinaryIO) -> None:
        """Appends the chosen lines to `target`."""
        try:
            if 1 not in self.flags:
                return
            with (self.folder / SAMPLES).open("rb", _BUFFER) as source:
                for is_chosen, line in zip(self.flags, bounded_lines(source), strict=False):
                    if is_chosen and line is not None:
                        target.write(line if line.endswith(b"\n") else line + b"\n")
        except OSError as error:
            raise JournalError(f"cannot merge {self.folder}: {error.strerror}") from error


def merge(parts: Sequence[Part], target: Path, warn: Warn) -> Merged:
    """Merges `parts` into `target`, with the run that is there. Nothing is written if the run would
    not change.

    Raises:
        JournalError: the parts do not belong together, or `target` cannot be written.
    """
    sources = [part for part in parts if part.folder.resolve() != target.resolve()]
    with ExitStack() as stack:
        journal: Journal | None = None
        before: Manifest | None = None
        if os.path.lexists(target / MANIFEST) or journal_size(target):
            read_manifest(target)  # before anything is written beside one that cannot be read
            journal = stack.enter_context(Journal(target, warn))
            before = read_manifest(target)
        together = [*([Part(target, before)] if before else []), *sources]
        merged = (before.merged if before else {}) | _sizes(sources, target)
        manifest = joined(together)
        index, lines = _chosen(together, manifest, warn)
        is_changed = before is None or not _is_same(before, replace(manifest, merged=merged))
        has_new = any(1 in one.flags for one in lines[0 if before is None else 1 :])
        if journal is None:
            journal = stack.enter_context(Journal(target, warn))
            if (target / MANIFEST).exists():
                raise JournalError(f"another command has begun {target} meanwhile; merge again")
        if is_changed:
            _keep(together, target)
            write_manifest(target, manifest)
        if has_new:
            with journal.rewrite() as file:
                for one in lines:
                    one.copy(file)
        if is_changed and merged:  # a merge that is killed before this is to be made again
            write_manifest(target, replace(manifest, merged=merged))
    return Merged(target, len(sources), index.chosen, is_changed or has_new)


def _chosen(
    parts: Sequence[Part], manifest: Manifest, warn: Warn
) -> tuple[SampleIndex, list[_Lines]]:
    """The index of all records, and the lines of each part that are chosen."""
    start = line_start(int(manifest.settings["seed"]), manifest.task)
    index = SampleIndex(LineFinder((cell.line for cell in manifest.cells), start))
    lines = []
    for number, part in enumerate(parts):
        last = 0
        try:
            for last, record in numbered_records(part.folder, warn):
                index.note(number, last, record)
        except OtherPromptError as error:
            raise JournalError(
                f"{parts[error.part].folder} and {part.folder} do not belong together: their "
                f"prompts or targets of {error.identifier} differ"
            ) from None
        lines.append(_Lines(part.folder, bytearray(last)))
    for number, line in index.places():
        lines[number].flags[line - 1] = 1
    return index, lines


def _sizes(parts: Sequence[Part], target: Path) -> dict[str, int]:
    """Folder name -> bytes of the journal, for those `parts` that are shards of `target`.

    The sizes are taken before the journals are read, so a journal that grows meanwhile counts as
    not merged.
    """
    home = (target / SHARDS).resolve()
    return {
        part.folder.name: journal_size(part.folder)
        for part in parts
        if part.folder.resolve().parent == home
    }


def _is_same(one: Manifest, other: Manifest) -> bool:
    """Whether two manifests are equal in everything that a merge sets."""
    return replace(one, updated="") == replace(other, updated="")


def _keep(parts: Sequence[Part], target: Path) -> None:
    """Copies the kept file of the task to `target`."""
    for part in parts:
        name = part.manifest.kept
        content = read_kept(part.folder, name)
        if content is not None and not (target / KEPT / name).exists():
            write_kept(target, name, content)
