"""Eyechart in Python: `run` a task on a model, `load_run`, `compare`, and `Item` for generators.

Importing this module is quick: each name is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from eyechart.harness.errors import EyechartError
    from eyechart.harness.face.python.ask import load_task, run
    from eyechart.harness.face.python.compare import compare
    from eyechart.harness.face.python.figure import figures
    from eyechart.harness.face.python.ranking import RunRanking
    from eyechart.harness.face.python.result import Run, RunComparison, list_runs, load_run
    from eyechart.harness.score.verdict import Target
    from eyechart.harness.spec import Item
    from eyechart.harness.task.catalogue import Task
    from eyechart.harness.task.scorer import ScorerResult
    from eyechart.providers.base import ProviderError

__all__ = [
    "EyechartError",
    "Item",
    "ProviderError",
    "Run",
    "RunComparison",
    "RunRanking",
    "ScorerResult",
    "Target",
    "Task",
    "compare",
    "figures",
    "list_runs",
    "load_run",
    "load_task",
    "run",
]
_PLACES = {
    "EyechartError": "eyechart.harness.errors",
    "Item": "eyechart.harness.spec",
    "ProviderError": "eyechart.providers.base",
    "Run": "eyechart.harness.face.python.result",
    "RunComparison": "eyechart.harness.face.python.result",
    "RunRanking": "eyechart.harness.face.python.ranking",
    "ScorerResult": "eyechart.harness.task.scorer",
    "Target": "eyechart.harness.score.verdict",
    "Task": "eyechart.harness.task.catalogue",
    "compare": "eyechart.harness.face.python.compare",
    "figures": "eyechart.harness.face.python.figure",
    "list_runs": "eyechart.harness.face.python.result",
    "load_run": "eyechart.harness.face.python.result",
    "load_task": "eyechart.harness.face.python.ask",
    "run": "eyechart.harness.face.python.ask",
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
