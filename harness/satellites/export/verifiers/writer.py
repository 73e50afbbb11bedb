"""A task in the form of verifiers: a package that `pip install` takes and `vf-eval` runs.

DIR/pyproject.toml
DIR/eyechart_counting_ones/__init__.py      names the taskset
taskset.py       the taskset, its reward and its metrics
rows.jsonl       the samples
eyechart_scoring the scoring, a copy of ours
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from eyechart.harness.errors import UsageError
from eyechart.harness.plan.plan import Plan, output_budget
from eyechart.harness.plan.selection import refuse_turns
from eyechart.harness.satellites.export.exported_folder import exported_folder, maker
from eyechart.harness.spec import Sample

OLDEST = "0.4"
"""The oldest version of verifiers with tasksets in `verifiers.v1` as they are used here."""
_TASKSET = Path(__file__).with_name("taskset.py")
_INIT = """\
# {maker}
from {package}.taskset import EyechartTaskset

__all__ = ["EyechartTaskset"]
"""
_PYPROJECT = """\
# {maker}
[project]
name = "{name}"
version = "0.{version}.0"
description = {description}
requires-python = ">=3.11"
dependencies = ["verifiers>={oldest}"]

[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[tool.hatch.build.targets.wheel]
packages = ["{package}"]
artifacts = ["*.jsonl"]
"""


def export(plans: Sequence[Plan], output: Path) -> str:
    """Writes the plans' samples as one environment into `output`; returns its name.

    Raises:
        UsageError: a task has turns or a scorer; `output` is a file, or a folder with files that
            are not of an export.
    """
    refuse_turns(plans, "the exported environment")
    for plan in plans:
        if plan.task.spec.scorer is not None:
            raise UsageError(
                f"task {plan.task.name!r} has a scorer of its own, which the exported environment "
                "does not have; 'bench export batch' needs none"
            )
    name = environment_name([plan.task.name for plan in plans])
    package = name.replace("-", "_")
    with exported_folder(output) as folder:
        folder.write(
            "pyproject.toml",
            _PYPROJECT.format(
                maker=maker(),
                name=name,
                version=max(plan.task.spec.version for plan in plans),
                description=json.dumps(_description(plans), ensure_ascii=False),
                oldest=OLDEST,
                package=package,
            ),
        )
        folder.write(f"{package}/__init__.py", _INIT.format(maker=maker(), package=package))
        folder.copy(f"{package}/taskset.py", _TASKSET)
        folder.write_scoring(f"{package}/eyechart_scoring")
        with folder.open(f"{package}/rows.jsonl").open("w", encoding="utf-8") as rows:
            for plan in plans:
                for sample in plan:
                    rows.write(json.dumps(_row(plan, sample), ensure_ascii=False) + "\n")
    return name


def environment_name(tasks: Sequence[str]) -> str:
    """The name of the environment of these tasks: that of the only one, or of their only group.

    Raises:
        UsageError: the name of the task has no letter or digit that a package can have.
    """
    groups = {task.partition("/")[0] for task in tasks}
    common = tasks[0] if len(tasks) == 1 else groups.pop() if len(groups) == 1 else "tasks"
    word = re.sub(r"[^a-z0-9]+", "-", common.lower()).strip("-")
    if not word:
        raise UsageError(
            f"{common!r} has no letter from a to z for the name of a package; rename the task"
        )
    return f"eyechart-{word}"


def _description(plans: Sequence[Plan]) -> str:
    """One line without control characters, as TOML wants it."""
    if len(plans) > 1:
        return f"{len(plans)} tasks of Eyechart"
    return " ".join(re.sub(r"[\x00-\x1f\x7f]", " ", plans[0].task.spec.title).split())


def _row(plan: Plan, sample: Sample) -> Mapping[str, Any]:
    """A sample as the data of a task of verifiers; its id is the id in a run's journal."""
    task, answer = plan.task, plan.task.spec.answer
    condition, length = sample.condition.label, sample.line.length
    return {
        "id": sample.id,
        "name": f"{task.name}|{condition}|{length}",
        "prompt": sample.prompt,
        "system_prompt": task.spec.system,
        "answer": str(sample.target),
        "info": {
            "task": task.name,
            "task_version": task.spec.version,
            "condition": condition,
            "length": length,
            "symbols": sample.length,
            "row": sample.index,
            "seed": plan.seed,
            "max_tokens": output_budget(sample),
        },
        "scoring": {
            "target": str(sample.target),
            "answer": answer.type,
            "accept": list(sample.accept),
            **{name: value for name, value in answer.given().items() if name != "type"},
        },
    }
