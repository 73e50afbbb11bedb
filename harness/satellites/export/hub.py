"""A run as the `.eval_results/*.yaml` that model pages and leaderboards of the Hugging Face Hub
read: https://huggingface.co/docs/hub/eval-results.

A page shows one number for each task of a benchmark data set, so a condition is a task there, and
its number is the area under accuracy over log length, 0 to 1. Areas over different lengths are not
comparable: if a run's lengths are not the task's own, they are part of the task's name. The notes
hold the interval of the number, the effective length, the samples and the outcomes that are no
answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pandas as pd
import yaml

from eyechart.harness.analysis.curve import Threshold
from eyechart.harness.analysis.effective_length import EffectiveLength
from eyechart.harness.analysis.judged_run import JudgedCondition
from eyechart.harness.errors import JournalError
from eyechart.harness.satellites.export.publishable import Publishable, counted
from eyechart.harness.score.outcomes import NOT_SCORED
from eyechart.harness.spec import lines_of

if TYPE_CHECKING:
    from huggingface_hub import EvalResultEntry

FOLDER = ".eval_results"
HEADER = "# written by bench export hf-eval-results"
"""The first words of every file that is written here."""
_DIGITS = 4
_WIDTH = 100


@dataclass(frozen=True, slots=True)
class Benchmark:
    """The data set that the numbers belong to, and the source of the numbers."""

    dataset: str
    """The benchmark's data set on the hub."""
    revision: str | None = None
    url: str | None = None
    """Address where the numbers can be checked."""
    name: str | None = None
    user: str | None = None
    org: str | None = None


def hub_files(
    publishable: Publishable,
    benchmark: Benchmark,
    threshold: Threshold,
    *,
    per_length: bool = False,
) -> Iterator[tuple[str, str]]:
    """Name and text of the file of each condition that has an area: a scored sample, and no
    adaptive plan.

    Raises:
        JournalError: every condition is adaptive.
    """
    from huggingface_hub import eval_result_entries_to_yaml  # noqa: PLC0415  70 ms

    manifest, conditions = publishable.run.manifest, publishable.run.conditions.values()
    if conditions and all(judged.adaptive for judged in conditions):
        raise JournalError(
            f"{publishable.run.folder} is an adaptive run, which has no area to publish; the "
            "same command without --adaptive, --precision and --max-requests uses its answers and "
            "has one"
        )
    for judged in conditions:
        estimate = judged.effective_length(threshold)
        if estimate is None or judged.adaptive:
            continue
        entries = [_area(publishable, judged, benchmark, estimate)]
        if per_length:
            entries += _accuracies(publishable, judged, benchmark)
        header = (
            f"{HEADER} of {manifest.task}@{manifest.task_version}-{publishable.settings_hash}\n"
        )
        text = yaml.safe_dump(
            eval_result_entries_to_yaml(entries), sort_keys=False, allow_unicode=True, width=_WIDTH
        )
        yield f"{_task_id(publishable, judged)}-{publishable.settings_hash}.yaml", header + text


def _task_id(publishable: Publishable, judged: JudgedCondition, *more: str) -> str:
    """`counting_ones_v1__separator_none__strategy_direct`, of letters, digits and underscores."""
    manifest = publishable.run.manifest
    axes = (f"{axis}_{value}" for axis, value in judged.condition.items())
    return "__".join([f"{_slug(manifest.task)}_v{manifest.task_version}", *axes, *more])


def _slug(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_")


def _entry(
    publishable: Publishable, benchmark: Benchmark, task_id: str, value: float, notes: Sequence[str]
) -> EvalResultEntry:
    from huggingface_hub import EvalResultEntry  # noqa: PLC0415

    answered = datetime.fromtimestamp(publishable.last_answer_s, UTC)
    date: str | None = answered.isoformat(timespec="seconds").replace("+00:00", "Z")
    if (recorded := publishable.run.manifest.recorded) is not None:
        date = recorded.at if len(recorded.at) == len("2026-04-01") else None
    return EvalResultEntry(
        dataset_id=benchmark.dataset,
        dataset_revision=benchmark.revision,
        task_id=task_id,
        value=round(value, _DIGITS),
        date=date,
        source_url=benchmark.url,
        source_name=benchmark.name,
        source_user=benchmark.user,
        source_org=benchmark.org,
        notes="; ".join(filter(None, notes)),
    )


def _area(
    publishable: Publishable,
    judged: JudgedCondition,
    benchmark: Benchmark,
    estimate: EffectiveLength,
) -> EvalResultEntry:
    cells = publishable.run.manifest.cells
    lines = [cells[place].line for place in judged.scored_cells.index]
    sizes = sorted({int(n) for n in judged.scored_cells["n"]})
    spec = publishable.run.spec
    same = spec.lengths is not None and lines_of(spec.lengths, spec.usual_spread) == lines
    low, high = estimate.area_ci
    per_length = str(sizes[0]) if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
    notes = [
        f"area under accuracy over log length, 0 to 1 (95 % {low:.2f} to {high:.2f})",
        f"sees to {estimate} symbols at {estimate.threshold}",
        f"{per_length} scored samples at each of lengths {', '.join(map(str, lines))}",
        *_notes(publishable, judged, judged.cells),
    ]
    kind = "lengths" if all(line.is_exact for line in lines) else "bands"
    more = [] if same else ["_".join([kind, *(str(line.length) for line in lines)])]
    return _entry(
        publishable, benchmark, _task_id(publishable, judged, *more), estimate.area, notes
    )


def _accuracies(
    publishable: Publishable, judged: JudgedCondition, benchmark: Benchmark
) -> Iterator[EvalResultEntry]:
    """One entry for each length, as a task of its own."""
    for place, cell in zip(
        judged.scored_cells.index, judged.scored_cells.to_dict("records"), strict=True
    ):
        line = publishable.run.manifest.cells[place].line
        interval = f"95 % {cell['ci_low']:.2f} to {cell['ci_high']:.2f}"
        notes = [
            f"accuracy at length {line}, 0 to 1 ({interval}), {int(cell['n'])} scored samples",
            *_notes(publishable, judged, judged.cells.loc[[place]]),
        ]
        task_id = _task_id(
            publishable, judged, f"length_{_slug(publishable.run.line_names[place])}"
        )
        yield _entry(publishable, benchmark, task_id, float(cell["accuracy"]), notes)


def _notes(publishable: Publishable, judged: JudgedCondition, cells: pd.DataFrame) -> Iterator[str]:
    """The outcomes in `cells` that are no answer, and the settings that shaped the answers."""
    manifest = publishable.run.manifest
    if judged.control:
        yield "a control: a model that sees nothing is right"
    no_answer, no_reply = counted(cells), counted(cells, NOT_SCORED)
    if no_answer:
        yield f"no answer and so not correct: {no_answer}"
    if no_reply:
        yield f"incomplete, without a reply and not scored: {no_reply}"
    if judged.condition:
        yield ", ".join(f"{axis}={value}" for axis, value in judged.condition.items())
    settings = {**manifest.settings, "max_tokens": manifest.settings.get("max_tokens") or "auto"}
    if manifest.recorded is not None:
        settings = {"recorded": str(manifest.recorded)}
    known = {name: value for name, value in settings.items() if value is not None}
    yield ", ".join(f"{name} {_value_text(value)}" for name, value in known.items())
    data = f", data {manifest.fingerprint[:8]}" if manifest.fingerprint else ""
    version = manifest.software.get("eyechart", "")
    yield f"eyechart {version}, {manifest.task} version {manifest.task_version}{data}"


def _value_text(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
