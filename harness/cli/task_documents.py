"""What `bench tasks … --json` prints."""

from __future__ import annotations

from typing import Any

from eyechart.harness.cli.documents import print_document
from eyechart.harness.cli.terminal import warn
from eyechart.harness.cli.verbs import check_task, installed_tasks, shown_samples, write_task
from eyechart.harness.errors import COMPLETE, USAGE
from eyechart.harness.plan.plan import plan
from eyechart.harness.plan.selection import open_tasks
from eyechart.harness.spec import Sample
from eyechart.harness.task.catalogue import Task, find
from eyechart.providers.plugins import BUILT_IN


def list_tasks() -> None:
    print_document({"tasks": [_summary(task, origin) for origin, task in installed_tasks()]})


def _summary(task: Task, origin: str) -> dict[str, Any]:
    spec = task.spec
    return {
        "task": task.name,
        "from": origin,
        "version": spec.version,
        "title": spec.title,
        "source": spec.source,
        "answer": spec.answer.type,
        "axes": {
            name: {"values": list(axis.values), "default": list(axis.default)}
            for name, axis in spec.axes.items()
        },
        "lengths": list(task.lengths),
        "samples": task.samples,
        "requests": plan(task).size,
        "presets": {
            name: {
                "title": preset.title,
                "lengths": [line.length for line in plan(task, preset=name).lines],
                "requests": plan(task, preset=name).size,
            }
            for name, preset in spec.presets.items()
        },
        "file": task.path,
    }


def show_tasks(names: str) -> None:
    """Prints the fields of task files, their lines, and a prompt of each default condition."""
    print_document({"tasks": [_shown(task) for task in open_tasks(names)]})


def _origin(task: Task) -> str:
    if task.plugin is not None:
        return str(task.plugin)
    return BUILT_IN if task.is_installed else "your file"


def _shown(task: Task) -> dict[str, Any]:
    return {
        **_summary(task, _origin(task)),
        "spec": task.spec.model_dump(mode="json", exclude_none=True),
        "lines": [
            {"length": line.length, "low": line.low, "high": line.high} for line in plan(task).lines
        ],
        "prompts": [sample_document(task, sample) for sample in shown_samples(task)],
    }


def sample_document(task: Task, sample: Sample) -> dict[str, Any]:
    return {
        "id": sample.id,
        "condition": sample.condition,
        "length": sample.length,
        "system": task.spec.system,
        "prompt": sample.prompt,
        "target": sample.target,
        "accept": sample.accept,
    }


def check_tasks(names: str) -> int:
    checked = {name: (path, check_task(name, path)) for name, path in find(names).items()}
    print_document(
        {
            "tasks": [
                {
                    "task": name,
                    "file": path,
                    "sound": not one.problems,
                    "problems": one.problems,
                    "warnings": one.unusual,
                }
                for name, (path, one) in checked.items()
            ]
        }
    )
    return USAGE if any(one.problems for _, one in checked.values()) else COMPLETE


def new_task(name: str, generator: str) -> int:
    written = write_task(name, generator)
    print_document({"files": written.files, "problems": written.problems, "next": written.commands})
    return USAGE if written.problems else COMPLETE


def list_models() -> None:
    """Prints what `bench models` lists, and the models whose facts are known."""
    from eyechart.providers.catalog.model_facts import known_models, model_facts
    from eyechart.providers.registry import listed

    found, errors = listed()
    print_document(
        {
            "providers": [
                {"provider": one.provider, "from": one.origin, "what": one.what, "needs": one.needs}
                for one in found
            ],
            "models": [
                {"model": name, **model_facts(name).model_dump(mode="json", exclude_defaults=True)}
                for name in known_models()
            ],
        }
    )
    for error in errors:
        warn(str(error))
