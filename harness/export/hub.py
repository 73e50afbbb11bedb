"""A run as the `.eval_results/*.yaml` that model pages and leaderboards of the Hugging Face Hub
read: https://huggingface.co/docs/hub/eval-results.

A page shows one number for each task of a benchmark data set, so a condition is a task there, and
its number is the area under accuracy over log length, 0 to 1. An area over other lengths is another
number: lengths that are not the task's own are part of the task's name. What the number does not
say, its interval, the effective length, the samples and what was no answer, stands in the notes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pandas as pd
import yaml

from harness.analysis.judged_run import NOT_SCORED, JudgedCondition
from harness.analysis.stats import EffectiveLength, Threshold, span_text
from harness.export.publishable import Publishable, counted
from harness.spec import Condition

if TYPE_CHECKING:
    from huggingface_hub import EvalResultEntry

FOLDER = ".eval_results"
HEADER = "# written by bench export hf-eval-results"
"""The first words of every file of ours."""
_DIGITS = 4
_WIDTH = 100


@dataclass(frozen=True, slots=True)
class Benchmark:
    """Where the numbers belong and where they come from."""

    dataset: str
    """The benchmark's data set on the hub."""
    revision: str | None = None
    url: str | None = None
    """What the numbers can be checked by."""
    name: str | None = None
    user: str | None = None
    org: str | None = None


def hub_files(
    of: Publishable, benchmark: Benchmark, threshold: Threshold, *, per_length: bool = False
) -> Iterator[tuple[str, str]]:
    """Name and text of the file of each condition that has a scored sample."""
    from huggingface_hub import eval_result_entries_to_yaml  # noqa: PLC0415  70 ms

    manifest = of.run.manifest
    for part in of.run.conditions.values():
        estimate = part.effective_length(threshold)
        if estimate is None:
            continue
        entries = [_area(of, part, benchmark, estimate)]
        if per_length:
            entries += _accuracies(of, part, benchmark)
        head = f"{HEADER} of {manifest.task}@{manifest.task_version}-{of.settings_hash}\n"
        text = yaml.safe_dump(
            eval_result_entries_to_yaml(entries), sort_keys=False, allow_unicode=True, width=_WIDTH
        )
        yield f"{_task_id(of, part)}-{of.settings_hash}.yaml", head + text


def _task_id(of: Publishable, part: JudgedCondition, *more: str) -> str:
    """`counting_ones_v1__separator_none__strategy_direct`, of letters, digits and underscores."""
    manifest = of.run.manifest
    axes = (f"{axis}_{value}" for axis, value in part.condition.items())
    return "__".join([f"{_slug(manifest.task)}_v{manifest.task_version}", *axes, *more])


def _slug(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_")


def _entry(
    of: Publishable, benchmark: Benchmark, task_id: str, value: float, notes: Sequence[str]
) -> EvalResultEntry:
    from huggingface_hub import EvalResultEntry  # noqa: PLC0415

    answered = datetime.fromtimestamp(of.answered_s, UTC)
    return EvalResultEntry(
        dataset_id=benchmark.dataset,
        dataset_revision=benchmark.revision,
        task_id=task_id,
        value=round(value, _DIGITS),
        date=answered.isoformat(timespec="seconds").replace("+00:00", "Z"),
        source_url=benchmark.url,
        source_name=benchmark.name,
        source_user=benchmark.user,
        source_org=benchmark.org,
        notes="; ".join(filter(None, notes)),
    )


def _area(
    of: Publishable, part: JudgedCondition, benchmark: Benchmark, estimate: EffectiveLength
) -> EvalResultEntry:
    lengths, sizes = part.lengths, sorted({int(n) for n in part.scored_cells["n"]})
    own = of.run.manifest.task_spec().lengths
    same = own is not None and sorted(set(own)) == lengths
    low, high = estimate.area_ci
    span = span_text(estimate.length_ci)
    each = str(sizes[0]) if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
    notes = [
        f"area under accuracy over log length, 0 to 1 (95 % {low:.2f} to {high:.2f})",
        f"sees to {estimate.length} symbols ({span}) at {estimate.threshold}",
        f"{each} scored samples at each of lengths {', '.join(map(str, lengths))}",
        *_notes(of, part, part.cells),
    ]
    more = [] if same else ["_".join(["lengths", *map(str, lengths)])]
    return _entry(of, benchmark, _task_id(of, part, *more), estimate.area, notes)


def _accuracies(
    of: Publishable, part: JudgedCondition, benchmark: Benchmark
) -> Iterator[EvalResultEntry]:
    """One number a length, each a task of its own."""
    for _, cell in part.scored_cells.iterrows():
        length = int(cell["length"])
        interval = f"95 % {cell['ci_low']:.2f} to {cell['ci_high']:.2f}"
        notes = [
            f"accuracy at length {length}, 0 to 1 ({interval}), {int(cell['n'])} scored samples",
            *_notes(of, part, part.cells.loc[[cell.name]]),
        ]
        task_id = _task_id(of, part, f"length_{length}")
        yield _entry(of, benchmark, task_id, float(cell["accuracy"]), notes)


def _notes(of: Publishable, part: JudgedCondition, cells: pd.DataFrame) -> Iterator[str]:
    """What was no answer in `cells`, and what shaped the answers."""
    manifest = of.run.manifest
    if part.control:
        yield "a control: a model that sees nothing is right"
    no_answer, no_reply = counted(cells), counted(cells, NOT_SCORED)
    if no_answer:
        yield f"no answer and so not correct: {no_answer}"
    if no_reply:
        yield f"incomplete, without a reply and not scored: {no_reply}"
    if part.label != Condition().label:
        yield part.label.replace(",", ", ")
    settings = {**manifest.settings, "max_tokens": manifest.settings.get("max_tokens") or "auto"}
    known = {name: said for name, said in settings.items() if said is not None}
    yield ", ".join(f"{name} {_said(said)}" for name, said in known.items())
    data = f", data {manifest.fingerprint[:8]}" if manifest.fingerprint else ""
    version = manifest.software.get("eyechart", "")
    yield f"eyechart {version}, {manifest.task} version {manifest.task_version}{data}"


def _said(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
