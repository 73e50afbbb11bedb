"""The work of `bench samples` and `bench tasks sample`."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eyechart.harness.analysis.samples.probabilities import options_text
from eyechart.harness.analysis.samples.shortening import marked, shortened
from eyechart.harness.cli.documents import json_text, print_document
from eyechart.harness.cli.terminal import clean, echo, say, warn, width
from eyechart.harness.cli.work.tasks import sample_document
from eyechart.harness.errors import COMPLETE, AbsentTaskError
from eyechart.harness.journal.thoughts import thinking_text
from eyechart.harness.plan.plan import sample_from_id, task_of_id
from eyechart.harness.plan.selection import open_tasks
from eyechart.harness.settings.judging import JudgeSettings
from eyechart.harness.spec.turns import conversation
from eyechart.harness.task.catalogue import installed_file

if TYPE_CHECKING:
    from eyechart.harness.face.samples import ShownSample

MOST = 800
"""Texts of at most this many characters are shown whole."""
_BAR, _GOES_ON = "  | ", "  : "
_LEFT, _RIGHT = ">>", "<<"
"""Marks around the answer in a reply."""


def samples(
    folder: Path,
    *,
    outcomes: Sequence[str],
    lengths: Sequence[int],
    conditions: Sequence[str],
    limit: int,
    full: bool,
    as_json: bool,
    judging: JudgeSettings,
) -> int:
    """Prints samples of a run, at most `limit` of them unless that is 0; returns the exit code."""
    from eyechart.harness.analysis.samples.details import prompts_of
    from eyechart.harness.analysis.samples.judged_run import read_run
    from eyechart.harness.face.samples import SampleFilter, choose, read_conditions, shown_samples

    names = [name.strip() for option in outcomes for name in option.split(",")]
    choice = SampleFilter(names, lengths, read_conditions(conditions))
    run = read_run(folder, warn, judging)
    chosen = choose(run, choice)
    places = chosen[:limit] if limit else chosen
    prompts = prompts_of(run)
    if places and prompts.task is None:
        remedy = f"; {prompts.remedy}" if prompts.remedy else ""
        warn(f"prompts are not shown: {prompts.why}{remedy}")
    for sample in shown_samples(run, places, prompts):
        if as_json:
            echo(json_text(sample.row()))
        else:
            _print_sample(sample, None if full else MOST, draws=run.draws)
    if not chosen:
        say("no sample with a record is like that")
    elif len(places) < len(chosen):
        say(f"{len(places):,} of {len(chosen):,} samples; --limit 0 shows all")
    return COMPLETE


def _print_sample(sample: ShownSample, most: int | None, *, draws: int) -> None:
    """Prints one sample: its texts indented, the answer in the reply between marks."""
    row = sample.row()

    def whole(text: str) -> str:
        return text if most is None else shortened(text, most)

    why = f" ({row['why']})" if row["why"] else ""
    echo(
        f"{row['id']}",
        f"  outcome  {row['outcome']}{why}",
        f"  target   {whole(str(row['target']))}",
    )
    echo(*(f"  {name:8} {whole(text)}" for name, text in _facts(sample, row, draws)))
    asked = conversation(row["prompt"] or "", sample.detail.record.turns or ())
    for name, text in (("prompt", asked), ("reasoning", row["reasoning"])):
        if text:
            echo(f"  {name}", *_indented(whole(text)))
    if row["reply"] is None:
        echo("  no reply", "")
        return
    if row["options"]:
        echo(f"  options  {row['rank']} of {len(row['options'])}, margin {row['margin']:.2f}")
        echo(*_indented(whole(options_text(sample.detail.record))), "")
        return
    start, end = row["answer_start"] or 0, row["answer_end"] or 0
    parts = marked(row["reply"], start, end, most)
    reply = "".join(f"{_LEFT}{part}{_RIGHT}" if answer else part for part, answer in parts)
    echo("  reply", *_indented(reply), "")


def _facts(sample: ShownSample, row: Mapping[str, Any], draws: int) -> Iterator[tuple[str, str]]:
    """Further facts of a sample, each with its name; only those that there are."""
    if draws > 1:
        seed = "" if row["seed"] is None else f", seed {row['seed']}"
        yield "draw", f"{row['draw']} of {draws}{seed}"
    if (turn := row["first_wrong_turn"]) is not None:
        yield "turns", f"{turn} is the first whose answer is not right"
    if row["recorded_verdict"]:
        yield "by row", str(row["recorded_verdict"])
    if thinking := thinking_text(sample.detail.record):
        yield "thinking", thinking
    if row["metadata"]:
        yield "item", ", ".join(f"{name}={value}" for name, value in row["metadata"].items())


def _indented(text: str) -> Iterator[str]:
    """The lines of `text` after a bar. A line that is too long continues after a colon."""
    limit = width()
    for line in text.split("\n"):
        parts = [line] if limit is None else _parts(line, limit - len(_BAR))
        for place, part in enumerate(parts):
            yield f"{_GOES_ON if place else _BAR}{part}"


def _parts(line: str, limit: int) -> list[str]:
    """`line` in parts that fit, without any loss; they end between words if possible."""
    parts = textwrap.wrap(
        clean(line),
        limit,
        expand_tabs=False,
        replace_whitespace=False,
        drop_whitespace=False,
        break_on_hyphens=False,
    )
    return parts or [""]


def task_sample(identifier: str, tasks: str, *, as_json: bool) -> None:
    """Prints the prompt and the target of the sample with this id."""
    name = task_of_id(identifier)
    if not tasks and installed_file(name) is None:
        raise AbsentTaskError(f"no task {name!r} is installed; name its file with --task")
    opened = open_tasks(tasks or name)
    task = next((task for task in opened if task.name == name), opened[0])
    sample = sample_from_id(task, identifier)
    if as_json:
        print_document(sample_document(task, sample))
        return
    echo(sample.id, f"  target   {sample.target}", "  prompt", *_indented(sample.prompt))
