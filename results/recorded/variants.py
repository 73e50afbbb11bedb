"""The recorded replies as runs, a variant each."""

from __future__ import annotations

import gzip
import json
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from eyechart.harness.analysis.length.capacity import Capacity, capacity
from eyechart.harness.analysis.length.effective_length import EffectiveLength
from eyechart.harness.analysis.samples.judged_run import JudgedCondition, JudgedRun, read_run
from eyechart.harness.satellites.recorded.fields import Columns
from eyechart.harness.satellites.recorded.reader import ImportRequest
from eyechart.harness.satellites.recorded.recorder import import_recorded
from eyechart.harness.satellites.recorded.rows import RecordedRows
from eyechart.harness.satellites.recorded.sources import given_files
from eyechart.harness.score.outcomes import OUTCOMES
from eyechart.harness.task.catalogue import built_in_files, open_task

TASK = "capacity/items"
BY, AT = "Dai & Fan 2026, arXiv 2605.02028", "2026-04"
FIELDS = "line=centre,index=trial,target=expected,length=expected"
USUAL = "a, comma"
"""The writing in which every model was asked."""


@dataclass(frozen=True, eq=False)
class Variant:
    """One model under one writing of the row."""

    set: str
    model: str
    judged: JudgedCondition
    rows: dict[int, dict[int, dict[str, Any]]]
    """Centre -> trial -> what was recorded."""

    @property
    def name(self) -> str:
        """The model, with the writing where that is not the usual one."""
        return f"{self.model} {self.writing}" if self.set == "stimulus" else self.model

    @property
    def writing(self) -> str:
        """Item and delimiter, by the names that the task has for them."""
        condition = self.judged.condition
        return f"{condition['item']}, {condition['delimiter']}"

    @cached_property
    def estimate(self) -> EffectiveLength:
        """The effective length at 85 %."""
        found = self.judged.effective_length()
        assert found is not None
        return found

    @cached_property
    def capacity(self) -> Capacity:
        """The capacity by our reading."""
        found = capacity(self.judged)
        assert found is not None
        return found

    @property
    def capacity_number(self) -> int:
        """The capacity as the authors write it: 0 where no line passes."""
        return 0 if self.capacity.length.sign == "<" else int(self.capacity.length.length)

    @cached_property
    def outcomes(self) -> dict[int, dict[int, tuple[str, int | None]]]:
        """Centre -> trial -> outcome and the answer that was read."""
        run, cells = self.judged.run, self.judged.run.manifest.cells
        found: dict[int, dict[int, tuple[str, int | None]]] = defaultdict(dict)
        columns = [run.samples[name].tolist() for name in ("cell", "index", "outcome", "answer")]
        for cell, index, outcome, answer in zip(*columns, strict=True):
            if cell in self.judged.places:
                read = None if answer < 0 else run.answers[answer]
                found[cells[cell].length][index] = OUTCOMES[outcome], read
        return dict(found)

    def count(self, outcome: str) -> int:
        """How many replies have an outcome."""
        return int(self.judged.cells[outcome].sum())


def read_file(path: Path) -> list[dict[str, Any]]:
    """The recorded rows, without the single row of 8 items that each variant was tried with."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    return [row for row in rows if row["phase"] != "preflight"]


def variants(path: Path, out: Path) -> list[Variant]:
    """Every variant of the file at `path`, imported as `bench import` does; the runs are under
    `out`.

    The rows of a model are written to a file of their own first, since the file has 126 models.
    """
    with tempfile.TemporaryDirectory() as scratch:
        return list(_imported(read_file(path), path.name.partition(".")[0], out, Path(scratch)))


def _imported(
    rows: Sequence[Mapping[str, Any]], source: str, out: Path, scratch: Path
) -> Iterator[Variant]:
    task = open_task(TASK, built_in_files()[TASK])
    columns = Columns.read([FIELDS], task.spec.axes)
    parts: dict[tuple[str, str], list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        parts["stimulus" if row["set"] == "stimulus" else "length", row["model"]].append(row)
    for number, ((kind, model), part) in enumerate(parts.items()):
        file = scratch / f"{number}-{source}.jsonl"
        file.write_text("".join(f"{json.dumps(given(row))}\n" for row in part), encoding="utf-8")
        request = ImportRequest(
            [file],
            task,
            model,
            out / kind,
            columns,
            by=BY,
            at=AT,
            command="python -m results.recorded",
        )
        with RecordedRows(given_files(request.files, print)) as kept:
            imported = import_recorded(request, kept, _no_batches, print)
        assert not imported.problems, imported.problems[:3]
        yield from _conditions(read_run(request.folder), part)


def given(row: Mapping[str, Any]) -> dict[str, Any]:
    """What a row says, in our terms: which errors, and nothing that the authors made of it."""
    usage = {"prompt_tokens": row["input_tokens"], "output_tokens": row["output_tokens"]}
    names = ("item", "delimiter", "centre", "trial", "expected", "cut_off", "reply", "error")
    return {name: row[name] for name in names} | usage


def _no_batches() -> Any:
    raise AssertionError("no row has the Batch form")


def _conditions(run: JudgedRun, part: Sequence[Mapping[str, Any]]) -> Iterator[Variant]:
    values = {axis: of.values for axis, of in run.spec.axes.items()}
    for condition, judged in run.conditions.items():
        rows: dict[int, dict[int, dict[str, Any]]] = defaultdict(dict)
        texts = {axis: values[axis][name] for axis, name in condition.items()}
        for row in part:
            if all(row[axis] == text for axis, text in texts.items()):
                rows[row["centre"]][row["trial"]] = dict(row)
        set_name = next(iter(next(iter(rows.values())).values()))["set"]
        yield Variant(set_name, run.manifest.model, judged, dict(rows))
