"""The names that a shell completes: tasks, models, folders of runs.

Nothing here prints or raises: a shell that asks has no place for a message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeAlias

from eyechart.harness.errors import EyechartError
from eyechart.harness.settings.setting import Setting
from eyechart.providers.base import ProviderError

Completion: TypeAlias = Callable[[Any, str], list[str]]
"""Context of typer's own click, and the word so far -> words that begin so."""


def _of_list(names: Callable[[str], Iterable[str]]) -> Completion:
    """Completes the last name of a list with commas; `names` gets that name so far."""

    def complete(ctx: Any, incomplete: str) -> list[str]:  # noqa: ARG001  typer passes it
        before, comma, last = incomplete.rpartition(",")
        return _quietly(lambda: [f"{before}{comma}{name}" for name in names(last)])

    return complete


def _quietly(names: Callable[[], list[str]]) -> list[str]:
    try:
        return names()
    except (EyechartError, ProviderError, OSError):
        return []


def _tasks(begun: str) -> list[str]:
    """Installed tasks and groups, and task files beside the word so far."""
    from eyechart.harness.task.catalogue import installed_files

    names = list(installed_files())
    groups = {name.partition("/")[0] for name in names}
    return sorted({*names, *groups, *_files(begun)})


def _files(begun: str) -> list[str]:
    folder, slash, name = begun.rpartition("/")
    here = Path(folder + slash)
    if not here.is_dir():
        return []
    return [
        f"{folder}{slash}{path.name}"
        for path in here.iterdir()
        if path.suffix in (".yaml", ".yml") and path.name.startswith(name)
    ]


def _models(begun: str) -> list[str]:
    """Built-in models, models with known facts, and providers that plugins add."""
    from eyechart.providers.catalog.endpoints import DEFAULT
    from eyechart.providers.catalog.model_facts import known_models
    from eyechart.providers.descriptors import BUILT_IN
    from eyechart.providers.plugins.plugins import PROVIDERS, installed

    names = [name.removesuffix("*") for name in known_models()]
    if not begun.startswith(f"{DEFAULT}/"):
        names = [name.removeprefix(f"{DEFAULT}/") for name in names]
    added = [f"{name}/" for name in installed(PROVIDERS, ()).usable]
    examples = [one.example for one in BUILT_IN.values() if one.example]
    return [*examples, *names, *added]


def complete_runs(ctx: Any, incomplete: str) -> list[str]:
    """Folders of runs under `--out`, or under `results`."""
    from eyechart.harness.journal.manifest import find_runs

    out = Path(ctx.params.get("out") or "results")
    return _quietly(lambda: [str(run) for run in find_runs(out) if str(run).startswith(incomplete)])


def one_of(*values: str) -> Completion:
    """Completes one of `values`."""

    def complete(ctx: Any, incomplete: str) -> list[str]:  # noqa: ARG001  typer passes it
        return [value for value in values if value.startswith(incomplete)]

    return complete


complete_tasks = _of_list(_tasks)
_OF_SETTINGS = {"task": complete_tasks, "tasks": complete_tasks, "model": _of_list(_models)}


def completion_of(setting: Setting) -> Completion | None:
    words = one_of(*setting.words) if setting.words else None
    return _OF_SETTINGS.get(setting.name, words)
