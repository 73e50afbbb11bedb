"""A baseline: the verdicts of some runs in one small file, which goes into version control.

It has no replies, so it cannot be judged again; a comparison with it needs no more than the verdict
on each sample, and marks of its prompt and target. Of a sample of 500 symbols it holds about 30
bytes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pandas as pd

from eyechart.harness.analysis.samples.judged_run import JudgedRun
from eyechart.harness.analysis.samples.judged_samples import slots
from eyechart.harness.analysis.samples.verdicts import Judge
from eyechart.harness.errors import JournalError, UsageError
from eyechart.harness.journal.files import is_another, replace_file
from eyechart.harness.journal.manifest import fields_of, manifest_of
from eyechart.harness.score.outcomes import Outcome
from eyechart.harness.settings.judging import JudgeSettings
from eyechart.harness.spec import exact_json

FORMAT = "eyechart baseline 1"
_HEX = 16
"""Digits of the mark of a prompt."""
_LEFT_OUT = (
    "commands",
    "server",
    "accepted",
    "sent",
    "refused",
    "answered_by",
    "software",
    "file",
    "given",
)
"""Fields of a manifest that no comparison needs, some with addresses of servers or paths of this
machine."""
_LISTS = {"lengths": "true_length", "targets": "target", "options": "options"}
"""Name of a list in the file -> the column of `JudgedRun.samples` that it holds."""
_BY_LETTER = {outcome.about.letter: outcome.place for outcome in Outcome}
_LETTERS = [outcome.about.letter for outcome in Outcome]
_NOT_ASKED = Outcome.NOT_RUN.about.letter


def save_baseline(path: Path, runs: Sequence[JudgedRun]) -> None:
    """Writes a baseline: a file with the verdict on every sample of `runs`, without the replies.

    Raises:
        UsageError: the file is there and is no baseline, or one of another model or task; or two
            runs are the same but for their model.
    """
    if path.exists():
        _check_replaced(path, runs)
    asked = [(run.manifest.task, str(run.manifest.settings.given())) for run in runs]
    for (task, _), count in Counter(asked).items():
        if count > 1:
            raise UsageError(f"{count} of the runs are of {task} with the same settings; name one")
    saved = datetime.now(UTC).isoformat(timespec="seconds")
    content = ",\n".join(map(_saved, runs))
    text = f'{{"format": "{FORMAT}", "saved": "{saved}", "runs": [\n{content}\n]}}\n'
    replace_file(path, text.encode())


def _check_replaced(path: Path, runs: Sequence[JudgedRun]) -> None:
    """A baseline is renewed by runs of its models and tasks. One that cannot be read is made anew;
    raises `UsageError` for any other file.
    """
    if is_another(path, FORMAT.encode()):
        raise UsageError(f"{str(path)!r} is no baseline; to keep it, name another file")
    before: list[JudgedRun] = []
    with suppress(JournalError):
        before = read_baseline(path)
    known = {(run.manifest.model, run.manifest.task) for run in runs}
    for run in before:
        model, task = run.manifest.model, run.manifest.task
        if (model, task) not in known:
            raise UsageError(
                f"{str(path)!r} is a baseline of {model} on {task}, of which no run is given; name "
                "another file, or delete this one to replace it"
            )


def read_baseline(path: Path, judging: JudgeSettings = JudgeSettings()) -> list[JudgedRun]:
    """The runs of a baseline; their folder is the file.

    Raises:
        JournalError: there is no such file, or it is no baseline.
    """
    try:
        document = exact_json.loads(path.read_bytes())
    except OSError as error:
        raise JournalError(f"no baseline at {path}: {error.strerror}; --save makes one") from error
    except ValueError as error:
        raise JournalError(f"{path} is no baseline: {error}") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise JournalError(f"{path} is no baseline of this version; --save makes one")
    try:
        runs = [_read(path, run, judging) for run in document["runs"]]
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError) as error:
        raise JournalError(f"{path} is damaged; --save makes it anew") from error
    if not runs:
        raise JournalError(f"{path} has no run; --save makes it anew")
    return runs


def _saved(run: JudgedRun) -> str:
    """A run as JSON, a line for each cell, so that version control shows what has changed."""
    fields = fields_of(run.manifest).items()
    kept = {name: value for name, value in fields if name not in _LEFT_OUT}
    samples = run.samples.sort_values(["cell", "index", "draw"])
    by_cell = dict(iter(samples.groupby("cell")))
    cells = [
        _saved_cell(by_cell.get(place), cell.draws) for place, cell in enumerate(run.manifest.cells)
    ]
    lines = ",\n".join(orjson.dumps(cell).decode() for cell in cells)
    return f'{{"manifest": {orjson.dumps(kept).decode()}, "cells": [\n{lines}\n]}}'


def _saved_cell(samples: pd.DataFrame | None, draws: int) -> dict[str, Any]:
    """What is known about the samples of a cell, see `slots`."""
    if samples is None:
        return dict.fromkeys(("outcomes", "readings", "prompts"), "") | {key: [] for key in _LISTS}
    places = slots(samples, draws)
    outcomes = np.full(int(places.max()) + 1, _NOT_ASKED)
    outcomes[places] = np.array(_LETTERS)[samples["outcome"]]
    return {
        "outcomes": "".join(outcomes),
        "readings": "".join(map(str, samples["reading"])),
        **{name: samples[column].tolist() for name, column in _LISTS.items()},
        "prompts": "".join(f"{int(prompt):0{_HEX}x}" for prompt in samples["prompt"]),
    }


def _read(path: Path, saved: Mapping[str, Any], judging: JudgeSettings) -> JudgedRun:
    manifest = manifest_of(saved["manifest"])
    cells = saved["cells"]
    if len(cells) != len(manifest.cells):
        raise ValueError("another number of cells than planned")
    draws = [cell.draws for cell in manifest.cells]
    samples = pd.concat([_read_cell(place, cell, draws[place]) for place, cell in enumerate(cells)])
    judge = Judge(manifest.task_spec().answer)
    samples = samples.reset_index(drop=True)
    return JudgedRun(path, manifest, samples, [], judge, settings=judging)


def _read_cell(place: int, cell: Mapping[str, Any], draws: int) -> pd.DataFrame:
    outcomes = np.array([_BY_LETTER[letter] for letter in cell["outcomes"]], np.int8)
    asked = np.flatnonzero(outcomes != Outcome.NOT_RUN.place)
    prompts = cell["prompts"]
    marks = [int(prompts[at : at + _HEX], 16) for at in range(0, len(prompts), _HEX)]
    columns = {
        "cell": np.full(len(asked), place, np.int32),
        "index": (asked // draws).astype(np.int32),
        "draw": (asked % draws + 1).astype(np.int32),
        "outcome": outcomes[asked],
        "reading": np.array([int(digit) for digit in cell["readings"]], np.int8),
        "record": np.full(len(asked), -1, np.int32),
        "prompt": np.array(marks, np.uint64),
        **{column: np.array(cell[name], np.int64) for name, column in _LISTS.items()},
    }
    nothing = np.full(len(asked), np.nan)
    unknown = ("wanted", "signed_error", "first_divergence", "off", "nearer", "margin", "cost")
    tokens = ("prompt_tokens", "output_tokens", "thinking_tokens")
    columns |= dict.fromkeys((*unknown, *tokens), nothing)
    columns |= {"answer": np.full(len(asked), -1), "collapsed": np.full(len(asked), -1)}
    columns |= dict.fromkeys(("said", "text", "offered"), np.zeros(len(asked), np.uint32))
    return pd.DataFrame(columns)
