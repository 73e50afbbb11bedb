"""The manifest of a merged run, made from the manifests of its parts."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from eyechart.harness.errors import JournalError
from eyechart.harness.journal.manifest import Manifest
from eyechart.harness.journal.manifest import together as cell_together
from eyechart.harness.journal.parts import Part
from eyechart.harness.journal.server import differences, together
from eyechart.harness.spec import Cell, CellKey


def joined(parts: Sequence[Part]) -> Manifest:
    """The manifest of the run that has all the records of `parts`; raises `JournalError` if the
    parts do not belong together; the message names the first difference.
    """
    manifests = [part.manifest for part in parts]
    first = manifests[0]
    _check_chosen(parts)
    merged = replace(
        first,
        shard="",
        merged={},
        kept=_kept(parts),
        server=_server(parts),
        accepted=sorted({address for one in manifests for address in one.accepted}),
        answered_by=_answered_by(parts),
        refused=sorted({name for one in manifests for name in one.refused}),
        software=max(manifests, key=lambda manifest: manifest.updated).software,
        counted={label: text for one in reversed(manifests) for label, text in one.counted.items()},
        cells=[],
        completed=[],
        former=[cell for one in manifests for cell in one.former],
        commands=list(
            dict.fromkeys(_whole(line) for manifest in manifests for line in manifest.commands)
        ),
        created=min(manifest.created for manifest in manifests),
    )
    merged.plan_cells(_cells(parts))
    for part in parts:
        if part.shard.is_whole:
            merged.complete(part.manifest.completed)
    merged.adaptive = first.adaptive
    return merged


def _check_chosen(parts: Sequence[Part]) -> None:
    """Raises `JournalError` for adaptive parts, since the replies of one part have chosen its
    samples, and for recorded replies, since their numbers follow from the rows of a file.
    """
    first = parts[0]
    for part in parts[1:]:
        both = first.manifest, part.manifest
        same_cells = {cell.key: (cell.samples, cell.draws) for cell in both[0].cells} == {
            cell.key: (cell.samples, cell.draws) for cell in both[1].cells
        }
        if any(one.adaptive for one in both) and not (
            same_cells and both[0].adaptive == both[1].adaptive
        ):
            raise JournalError(
                f"{first.folder} and {part.folder} cannot be merged: an adaptive run chooses its "
                "samples by its own replies"
            )
        if both[0].recorded != both[1].recorded:
            raise JournalError(
                f"{first.folder} and {part.folder} cannot be merged: their replies were recorded "
                "in other files; give 'bench import' all files at once"
            )


def _kept(parts: Sequence[Part]) -> str:
    """The name of the kept file of the task, which must be the same in all parts."""
    known = [part for part in parts if part.manifest.kept]
    for part in known[1:]:
        if part.manifest.kept != known[0].manifest.kept:
            raise JournalError(
                f"{known[0].folder} and {part.folder} do not belong together: the file that makes "
                f"their items has changed (kept/{known[0].manifest.kept} and "
                f"kept/{part.manifest.kept})"
            )
    return known[0].manifest.kept if known else ""


def _server(parts: Sequence[Part]) -> dict[str, Any]:
    """The facts of the servers, which must be equal in all parts except for addresses."""
    known = [part for part in parts if part.manifest.server]
    if not known:
        return {}
    facts = known[0].manifest.server
    for part in known[1:]:
        server = part.manifest.server
        if names := differences(facts, server):
            was, is_now = facts.get(names[0]), server.get(names[0])
            raise JournalError(
                f"{known[0].folder} and {part.folder} were answered by other models or "
                f"servers: {names[0]} is {was!r} and {is_now!r}"
            )
        facts = together(facts, server)
    return facts


def _answered_by(parts: Sequence[Part]) -> list[str]:
    """The names of the model in the replies; two parts must share at least one."""
    known = [part for part in parts if part.manifest.answered_by]
    for part in known[1:]:
        names, others = known[0].manifest.answered_by, part.manifest.answered_by
        if not set(names) & set(others):
            raise JournalError(
                f"{known[0].folder} was answered by {', '.join(map(repr, names))}, and "
                f"{part.folder} by {', '.join(map(repr, others))}"
            )
    return list(dict.fromkeys(name for part in known for name in part.manifest.answered_by))


def _whole(command: str) -> str:
    """A command without `--shard`, so that it asks everything that the merged run lacks."""
    if not command.startswith("bench "):
        return re.sub(r", shard='[0-9/]+'", "", command)
    if "--shard" not in command:
        return command
    words = iter(shlex.split(command))
    kept = []
    for word in words:
        if word == "--shard":
            next(words, None)
        elif not word.startswith("--shard="):
            kept.append(word)
    return shlex.join(kept)


def _cells(parts: Sequence[Part]) -> list[Cell]:
    """The cells of all parts, each with its most samples and its fingerprint, if known."""
    cells: dict[CellKey, Cell] = {}
    for part in parts:
        for cell in part.manifest.cells:
            known = cells.get(cell.key)
            more = cell if known is None else cell_together(known, cell)
            cells[cell.key] = replace(more, fingerprint=None)
    by_key = [(part, {cell.key: cell for cell in part.manifest.cells}) for part in parts]
    return [replace(cell, fingerprint=_fingerprint(cell, by_key)) for cell in cells.values()]


def _fingerprint(cell: Cell, parts: Sequence[tuple[Part, Mapping[CellKey, Cell]]]) -> int | None:
    """The sum of all of a cell's samples, from the sums of shards that have all rows together;
    raises `JournalError` if two parts have different sums of the same rows.
    """
    sums: dict[range, tuple[int, Part]] = {}
    whole = range(cell.samples)

    def note(rows: range, total: int, part: Part) -> None:
        known = sums.setdefault(rows, (total, part))
        if known[0] != total:
            raise JournalError(
                f"{known[1].folder} and {part.folder} have other samples at length {cell.line} of "
                f"{cell.condition.label}: the data of their task differ"
            )

    for part, cells in parts:
        one = cells.get(cell.key)
        if one is not None and one.fingerprint is not None and one.samples == cell.samples:
            note(part.shard.rows(cell.samples), one.fingerprint, part)
    for of in {part.shard.of for part, _ in parts}:
        wanted = [range(start, cell.samples, of) for start in range(min(of, cell.samples))]
        if all(rows in sums for rows in wanted):
            total = sum(sums[rows][0] for rows in wanted) % 2**256
            note(whole, total, sums[wanted[0]][1])
    return sums[whole][0] if whole in sums else None
