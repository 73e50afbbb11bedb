"""The command that a user may want next, printed as a hint."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import product, takewhile
from pathlib import Path

from eyechart.harness.analysis.comparison.family import is_default, longest
from eyechart.harness.analysis.samples.judged_run import JudgedRun
from eyechart.harness.cli.findings import ALL
from eyechart.harness.cli.parsing.options import matching
from eyechart.harness.cli.parsing.settings import as_arguments
from eyechart.harness.settings.judging import JUDGED, JUDGING, JudgeSettings
from eyechart.harness.spec import Condition

_MOST_NAMED = 3
"""Folders that a command names; of more it has a pattern."""


@dataclass(frozen=True, slots=True)
class NextCommandFacts:
    """The facts about one run that the next command depends on."""

    folder: Path
    task: tuple[str, str]
    """Name and digest of its task."""
    missing: bool
    """Whether samples have no reply."""
    incorrect: bool
    """Whether there is a wrong answer."""
    command: str
    """The command line that asks the rest of the run; empty if none asked it."""
    axis: str
    """An axis with two of its values, for a comparison; empty if there is none."""
    judging: JudgeSettings


def followed(run: JudgedRun) -> NextCommandFacts:
    manifest = run.manifest
    commands = [command for command in manifest.commands if command.startswith("bench run ")]
    command = for_a_person(commands[-1]) if commands else ""
    if command and run.has_nothing_readable and "--keep-going" not in command:
        command += " --keep-going"
    return NextCommandFacts(
        folder=run.folder,
        task=(manifest.task, manifest.task_digest),
        missing=bool(run.missing),
        incorrect=bool(run.cells["incorrect"].any()),
        command=command,
        axis=_axis(run),
        judging=run.settings,
    )


def for_a_person(command: str) -> str:
    """A command of a manifest as a hint: what it prints is to be read."""
    return command.replace(" --json", "")


def after_runs(runs: Sequence[NextCommandFacts], *, asked: bool = False) -> str:
    """`next: ` and a complete command about `runs`, of which there is at least one.

    An incomplete run is continued, unless everything wanted has just been `asked`. Conditions of
    one run, or runs of one task, are compared. Otherwise samples are shown, or a page is made.
    """
    for run in runs:
        if run.missing and run.command and not asked:
            return f"next: {run.command}"
    first, *others = runs
    if others:
        folders = [run.folder for run in runs]
        alike = len({run.task for run in runs}) == 1 and len(set(folders)) == len(folders)
        if not alike:
            return page_next(folders, first.judging)
        return _next("compare", *named(folders), *_options(first.judging))
    if first.axis:
        return _next("compare", first.folder, "--axis", first.axis, *_options(first.judging))
    if first.incorrect:
        return _next("samples", first.folder, "--outcome", "incorrect")
    return page_next([first.folder], first.judging)


def page_next(folders: Sequence[Path], judging: JudgeSettings) -> str:
    """`next: ` and the command that makes a page of the runs, judged as they are now."""
    named_folders = named(list(dict.fromkeys(folders)))
    return _next("report", *named_folders, *_options(judging), "-o", "report.html")


def named(folders: Sequence[Path]) -> Sequence[Path]:
    """The folders of runs, or of many a pattern that matches them and no other run, as arguments of
    a verb.
    """
    if len(folders) <= _MOST_NAMED:
        return folders
    pattern = _pattern(folders)
    return [pattern] if {*matching([pattern])} == {*folders} else folders


def score_command(folders: Sequence[Path], judging: JudgeSettings) -> str:
    """The command that prints the accuracies and all findings of runs, judged as they are now."""
    return _command("score", ALL, *_options(judging), *named(folders))


def _options(judging: JudgeSettings) -> list[str]:
    """The options with which a verb judges runs by these settings; none for the default ones."""
    usual = JudgeSettings()
    return [
        word
        for name in JUDGED
        if (value := getattr(judging, name)) != getattr(usual, name)
        for word in as_arguments(JUDGING[name].option, value)
    ]


def _pattern(folders: Sequence[Path]) -> Path:
    places = [folder.parts for folder in folders]
    if len({*map(len, places)}) > 1:  # the name of a model may have a slash
        same = list(takewhile(lambda parts: len({*parts}) == 1, zip(*places, strict=False)))
        task, run = ({parts[place] for parts in places} for place in (-2, -1))
        ends = [task, run] if len(same) < min(map(len, places)) - 1 else [run]
        found = [*(parts[0] for parts in same), "**", *map(_one_of, ends)]
        return Path(*found)
    return Path(*(_one_of({*parts}) for parts in zip(*places, strict=True)))


def _one_of(parts: Collection[str]) -> str:
    """The part of a path that all have; else the pattern of any."""
    return next(iter(parts)) if len(parts) == 1 else "*"


def _next(*words: object) -> str:
    return f"next: {_command(*words)}"


def _command(*words: object) -> str:
    """The command of these words; a path that looks like an option begins with `./`."""
    paths = (f"./{one}" if isinstance(one, Path) and str(one)[0] == "-" else one for one in words)
    return f"bench {shlex.join(map(str, paths))}"


def _axis(run: JudgedRun) -> str:
    """An axis with two values that the run has under equal conditions; or empty. They are those of
    the default condition and of the one with the longest effective length, which the sentence about
    the run names, where these differ on one axis; else the first two.
    """
    for pairs in (_named(run), list(product(run.conditions, repeat=2))):
        for axis in run.spec.axes:
            for condition, other in pairs:
                values = condition[axis], other[axis]
                if values[0] != values[1] and condition.without(axis) == other.without(axis):
                    return f"{axis}={','.join(values)}"
    return ""


def _named(run: JudgedRun) -> list[tuple[Condition, Condition]]:
    """The default condition and the one with the longest effective length, where they differ."""
    lengths = {
        condition: estimate.length
        for condition, judged in run.conditions.items()
        if not judged.control
        if (estimate := judged.effective_length()) and estimate.is_ranked and estimate.length
    }
    usual = next((one for one in lengths if is_default(run.conditions[one])), None)
    if usual is None:
        return []
    best = list(lengths)[longest(list(lengths.values()))]
    return [] if lengths[best] == lengths[usual] else [(usual, best)]
