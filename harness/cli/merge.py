"""`bench merge`: joins the shards of runs, and runs that were asked in several places."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from eyechart.harness.cli.completion import complete_runs
from eyechart.harness.cli.options import JsonOption, OwnTasksOption, RunKeptCodeOption, examples
from eyechart.harness.cli.readable import Reading, each_readable
from eyechart.harness.cli.terminal import echo, say, warn
from eyechart.harness.errors import COMPLETE, INCOMPLETE, JournalError, UsageError
from eyechart.harness.settings.judging import THRESHOLD

if TYPE_CHECKING:
    from eyechart.harness.analysis.judged_run import JudgedRun
    from eyechart.harness.journal.merge import Merged
    from eyechart.harness.journal.parts import Part

MERGE_EXAMPLES = examples(
    "bench run --task counting/ones --model tiny --shard 1/2",
    "bench merge results",
    "bench merge job-1 job-2 job-3 -o results",
    "bench merge results/runs/tiny/counting/ones@1-*/shards/*",
)
_NAMED = 8
"""Most shards that a line names."""


def merge(
    folders: Annotated[
        list[Path],
        typer.Argument(
            metavar="FOLDER…",
            help="Folders of runs or shards, or --out folders with many of them.",
            autocompletion=complete_runs,
        ),
    ],
    *,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FOLDER",
            help="Folder that holds the merged runs; default: each in the folder of its shards.",
        ),
    ] = None,
    tasks: OwnTasksOption = "",
    run_kept_code: RunKeptCodeOption = False,
    as_json: JsonOption = False,
) -> None:
    """Join the shards of runs, and runs that were asked in several places; judge the whole.

    Only parts of the same run are joined. They stay as they are, and merging again changes nothing.
    Of several replies to a sample the first in time is kept; a reply replaces a failed request.
    """
    from eyechart.harness.cli.documents import print_document, run_document
    from eyechart.harness.cli.results import show_run

    reading = Reading(THRESHOLD, tasks, run_kept_code)

    def read(one: tuple[list[Part], Merged]) -> tuple[list[Part], Merged, JudgedRun]:
        return *one, reading.run(one[1].folder)

    judged = []
    unread: list[str] = []
    for parts, merged, run in each_readable(_merged(folders, output, unread), read, unread):
        judged.append(run)
        if not as_json:
            show_run(run)
        _report(merged)
        if run.missing:
            _report_missing(run, parts, unread)
    if as_json:
        from eyechart.harness.analysis.results import write_results

        for run in judged:
            write_results(run)
        print_document({"runs": [run_document(run) for run in judged]})
    elif all(not run.missing for run in judged):
        from eyechart.harness.cli.following import after_runs, followed

        echo(after_runs([followed(run) for run in judged]))
    raise typer.Exit(INCOMPLETE if unread or any(run.missing for run in judged) else COMPLETE)


def _merged(
    folders: Sequence[Path], output: Path | None, unread: list[str]
) -> list[tuple[list[Part], Merged]]:
    """The parts and the result of each merged run; other problems are added to `unread`."""
    from eyechart.harness.journal.merge import merge as merge_parts
    from eyechart.harness.journal.parts import find_parts
    from eyechart.harness.journal.writer import is_written
    from eyechart.harness.run.batch.pending import PENDING_FILE

    wanted = []
    for parts in find_parts(folders, unread):
        try:
            target = _target(parts, output)
        except JournalError as error:
            unread += [f"{parts[0].folder}: {line}" for line in error.lines]
            continue
        if [part.folder.resolve() for part in parts] != [target.resolve()]:
            wanted.append((parts, target))
    if not wanted and not unread:
        names = ", ".join(map(str, folders))
        raise UsageError(
            f"nothing to merge in {names}: no run there has shards; name other folders too"
        )
    merged = []
    for parts, target in wanted:
        for part in parts:
            if part.folder.resolve() != target.resolve() and is_written(part.folder):
                warn(f"{part.folder} is being written; merge again when its command has ended")
            if (part.folder / PENDING_FILE).exists():
                warn(f"{part.folder} has a batch under way; merge again when it is imported")
        try:
            merged.append((parts, merge_parts(parts, target, warn)))
        except JournalError as error:
            unread += error.lines
    return merged


def _target(parts: Sequence[Part], output: Path | None) -> Path:
    from eyechart.harness.journal.manifest import folder_of

    if output is not None:
        return folder_of(output, parts[0].manifest)
    homes = dict.fromkeys(part.run.resolve() for part in parts)
    if len(homes) > 1:
        raise UsageError(
            f"{parts[0].manifest.model} on {parts[0].manifest.task} is in {len(homes)} folders; "
            "name one for the merged run: -o FOLDER"
        )
    return parts[0].run


def _report(merged: Merged) -> None:
    chosen = merged.chosen
    parts = "1 folder" if merged.parts == 1 else f"{merged.parts} folders"
    what = f"{parts} merged" if merged.is_changed else f"{parts} merged before, nothing is new"
    say(f"{merged.folder}: {what}, {chosen.samples:,} samples")
    if chosen.replaced:
        say(f"{chosen.replaced:,} failed requests have a reply in another folder, which is kept")
    if chosen.different:
        warn(
            f"{chosen.different:,} samples have different replies in several folders; the first in "
            "time is kept"
        )


def _report_missing(run: JudgedRun, parts: Sequence[Part], unread: Sequence[str]) -> None:
    """Prints which samples have no reply, and which shards are missing and not `unread`."""
    from eyechart.harness.cli.results import missing_text
    from eyechart.harness.journal.manifest import shard_folder
    from eyechart.harness.settings.shard import Shard

    shards = {part.shard for part in parts if not part.shard.is_whole}
    home = parts[0].run
    absent = [
        f"{number}/{of}"
        for of in sorted({shard.of for shard in shards})
        for number in range(1, of + 1)
        if (shard := Shard(number, of)) not in shards
        and not any(str(shard_folder(home, shard)) in problem for problem in unread)
    ]
    more = f" and {len(absent) - _NAMED} more" if len(absent) > _NAMED else ""
    why = f"; these shards are not there: {', '.join(absent[:_NAMED])}{more}" if absent else ""
    warn(f"{missing_text(run)}{why}; ask them and merge again")
