"""Eyechart in Python: `run` a task on a model, `load_run`, `compare`, and `Item` for generators.

Importing this module is quick: each name is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.answer import ScorerResult, Target
    from harness.errors import EyechartError
    from harness.face.ask import load_task, run
    from harness.face.result import Run, RunComparison, compare, list_runs, load_run
    from harness.spec import Item
    from harness.task.catalogue import Task
    from providers.base import ProviderError

__all__ = [
    "EyechartError",
    "Item",
    "ProviderError",
    "Run",
    "RunComparison",
    "ScorerResult",
    "Target",
    "Task",
    "compare",
    "list_runs",
    "load_run",
    "load_task",
    "run",
]
_PLACES = {
    "EyechartError": "harness.errors",
    "Item": "harness.spec",
    "ProviderError": "providers.base",
    "Run": "harness.face.result",
    "RunComparison": "harness.face.result",
    "ScorerResult": "harness.answer",
    "Target": "harness.answer",
    "Task": "harness.task.catalogue",
    "compare": "harness.face.result",
    "list_runs": "harness.face.result",
    "load_run": "harness.face.result",
    "load_task": "harness.face.ask",
    "run": "harness.face.ask",
}
"""Name -> the module that has it."""


if not TYPE_CHECKING:  # with it, type checkers would accept any name

    def __getattr__(name: str) -> object:
        """The object with this name, loaded when it is first used."""
        if name not in _PLACES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value: object = getattr(import_module(_PLACES[name]), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    """The public names."""
    return sorted({*globals(), *__all__})
