"""Tasks in the form of lm-eval: a folder that `lm_eval run --include_path` takes as it is.

lm-eval has metrics but no lengths, so each cell is a task of its own, with one metric (`acc`) and
its standard error. Groups combine them into one table in which lengths are rows:

    eyechart_counting                                     --tasks eyechart_counting
      eyechart_counting_bernoulli                         counting/bernoulli
        eyechart_counting_bernoulli__none__direct         separator=none,strategy=direct
          eyechart_counting_bernoulli__none__direct__0000010          length 10
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from eyechart.harness.errors import UsageError
from eyechart.harness.journal.software import software
from eyechart.harness.plan.plan import Plan, output_budget
from eyechart.harness.plan.selection import refuse_turns
from eyechart.harness.satellites.export.exported_folder import (
    ExportedFolder,
    exported_folder,
    maker,
)
from eyechart.harness.spec import CellKey, Sample
from eyechart.harness.spec.worked_examples import answer_read
from eyechart.providers.base import Api
from eyechart.providers.documents import as_document, stops

_TASK_CODE = Path(__file__).with_name("task.py")
_END = "<|endoftext|>"
"""A stop that no right answer contains. Without a stop lm-eval uses a blank line, and some servers
reject an empty list."""
_LONGEST = 200
"""Characters that a task's name may have; lm-eval adds 40 and uses it as the name of a file."""


class _Function(str):
    """The name of a function that lm-eval loads from a file beside the task file."""

    __slots__ = ()


class _Dumper(yaml.SafeDumper):
    """Writes functions with lm-eval's own tag, and no aliases for repeated lists and mappings."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        return True


def _write_function(dumper: yaml.SafeDumper, function: _Function) -> yaml.Node:
    return dumper.represent_scalar("!function", str(function))


_Dumper.add_representer(_Function, _write_function)

_SHARED: dict[str, Any] = {
    "class": _Function("utils.CellTask"),
    "output_type": "generate_until",
    "test_split": "test",
    "doc_to_text": "prompt",
    "doc_to_target": "target",
    "process_results": _Function("utils.process_results"),
    "metric_list": [{"metric": "acc", "aggregation": "mean", "higher_is_better": True}],
    "num_fewshot": 0,
}
_SHARED_NAME = "cell"
"""The name has no suffix, so that lm-eval does not read the file as a task."""


@dataclass(frozen=True, slots=True)
class _Form:
    """The form of the prompts, and the limit of reply tokens."""

    api: Api
    max_tokens: int | None


@dataclass(slots=True)
class _Folder:
    """The folder of an export, with the names in it."""

    folder: ExportedFolder
    names: dict[str, str] = field(default_factory=dict)
    """Name in lm-eval -> the task, group or condition that has it."""

    def write_yaml(self, name: str, config: Mapping[str, Any]) -> None:
        text = yaml.dump(
            dict(config), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100
        )
        self.folder.write(name, f"# {maker()}\n{text}")

    def claim(self, name: str, owner: str) -> str:
        """Reserves `name` for `owner` and returns it; names that differ only in signs are the same
        name in lm-eval.

        Raises:
            UsageError: another owner has the name, or it is too long for lm-eval's files.
        """
        if len(name) > _LONGEST:
            raise UsageError(f"{name!r} is too long a name for lm-eval's files; rename the task")
        if self.names.setdefault(name, owner) != owner:
            raise UsageError(
                f"{owner!r} and {self.names[name]!r} would both be named {name!r}; export them "
                "into two folders"
            )
        return name


def export(
    plans: Sequence[Plan], output: Path, *, api: Api, max_tokens: int | None = None
) -> list[str]:
    """Writes the plans' samples as tasks into `output`; returns the names of the topmost groups.

    A reply may have `max_tokens` tokens; without it, as many as `bench run` allows.

    Raises:
        UsageError: a task has turns, a scorer or a system prompt; `output` is a file, or a folder
            with files that are not of an export.
    """
    refuse_turns(plans, "lm-eval")
    for plan in plans:
        spec, name = plan.task.spec, plan.task.name
        if spec.scorer is not None:
            raise UsageError(
                f"task {name!r} has a scorer of its own, which lm-eval cannot run; "
                "'bench export batch' needs none"
            )
        if spec.system is not None:
            raise UsageError(
                f"task {name!r} has a system prompt, and lm-eval has none per task; leave it out "
                "of the task file and give lm-eval --system_instruction"
            )
    with exported_folder(output) as folder:
        return _write(_Folder(folder), plans, _Form(api, max_tokens))


def _write(folder: _Folder, plans: Sequence[Plan], form: _Form) -> list[str]:
    """Writes all files; returns the names of the topmost groups."""
    folder.folder.copy("utils.py", _TASK_CODE)
    folder.folder.write_scoring("eyechart_scoring")
    folder.write_yaml(_SHARED_NAME, _SHARED)
    tops: dict[str, list[str]] = {}
    for plan in plans:
        group = plan.task.name.partition("/")[0]
        tops.setdefault(group, []).append(_write_task(folder, plan, form))
    names = []
    for group, members in tops.items():
        name = folder.claim(f"eyechart_{_word(group)}", group)
        version = {"version": software()["eyechart"]}
        folder.write_yaml(
            f"{_word(group)}.yaml", _group(name, f"eyechart {group}", members, version)
        )
        names.append(name)
    return names


def _write_task(folder: _Folder, plan: Plan, form: _Form) -> str:
    """Writes the task's cells and groups; returns the name of its topmost group."""
    task = plan.task
    place = _word(task.name)
    name = folder.claim(f"eyechart_{place}", task.name)
    version = {"version": task.spec.version}
    members: list[str] = []
    for condition in plan.conditions:
        label = condition.label
        values = "__".join(condition.values())
        inner = folder.claim(f"{name}__{values}", f"{task.name} {label}") if values else name
        cells = [
            _write_cell(folder, plan, (condition, line), form=form, inner=inner)
            for line in plan.lines
        ]
        if not values:
            members = cells
            continue
        folder.write_yaml(f"{place}/{values}.yaml", _group(inner, label, cells, version))
        members.append(inner)
    folder.write_yaml(f"{place}.yaml", _group(name, task.name, members, version))
    return name


def _write_cell(folder: _Folder, plan: Plan, cell: CellKey, *, form: _Form, inner: str) -> str:
    """Writes the samples of one cell, a line each, and its task; returns the task's name."""
    condition, line = cell
    length = line.length
    place, label = _word(plan.task.name), condition.label
    name = folder.claim(f"{inner}__{length:07}", f"{plan.task.name} {label} at {length}")
    file = f"{place}/{name.removeprefix(f'eyechart_{place}__')}"
    budget, until = 0, None
    with folder.folder.open(f"{file}.jsonl").open("w", encoding="utf-8") as rows:
        for sample in _samples(plan, cell):
            row = _row(plan, sample, form)
            rows.write(json.dumps(row, ensure_ascii=False) + "\n")
            budget = max(budget, row["budget"])
            # lm-eval has stops per task, not per sample: those that all samples share; the scoring
            # applies the others
            sample_stops = row.get("stops", [_END])
            if until is None:
                until = sample_stops
            else:
                until = [stop for stop in until if stop in sample_stops]
    folder.write_yaml(
        f"{file}.yaml",
        {
            "include": f"../{_SHARED_NAME}",
            "task": name,
            "task_alias": f"length {length}",
            "dataset_kwargs": {"rows": f"{file}.jsonl"},
            "generation_kwargs": {
                "do_sample": False,
                "temperature": 0.0,
                "max_gen_toks": budget,
                "until": until or [_END],
            },
            "metadata": {
                "version": plan.task.spec.version,
                "eyechart": software()["eyechart"],
                "eyechart_task": plan.task.name,
                "condition": dict(condition),
                "length": length,
                "length_low": line.low,
                "length_high": line.high,
                "seed": plan.seed,
            },
        },
    )
    return name


def _samples(plan: Plan, cell: CellKey) -> Iterator[Sample]:
    condition, line = cell
    for index in range(plan.cell_size(condition, line)):
        yield plan.sample(condition, line, index)


def _row(plan: Plan, sample: Sample, form: _Form) -> dict[str, Any]:
    """A sample as a document for lm-eval; its id is the id in a run's journal."""
    answer = answer_read(plan.task.spec, form.api)
    row: dict[str, Any] = {
        "id": sample.id,
        "condition": sample.condition.label,
        "length": sample.length,
        "index": sample.index,
        "prompt": sample.prompt,
        "target": str(sample.target),
        "answer": answer.type,
        "accept": list(sample.accept),
        "budget": form.max_tokens or output_budget(sample),
        **{name: value for name, value in answer.given().items() if name != "type"},
    }
    if form.api == "completions":
        text = sample.document
        row |= {"prompt": as_document(text), "stops": stops(text)}
    return row


def _group(
    name: str, alias: str, members: Sequence[str], metadata: Mapping[str, Any]
) -> dict[str, Any]:
    return {
        "group": name,
        "group_alias": alias,
        "task": list(members),
        "aggregate_metric_list": [{"metric": "acc", "aggregation": "mean", "weight_by_size": True}],
        "metadata": dict(metadata),
    }


def _word(name: str) -> str:
    """`name` in the form that lm-eval accepts on its command line."""
    return re.sub(r"\W+", "_", name)
