"""An environment of verifiers: the rows of Eyechart's tasks, and Eyechart's scoring as the reward.

This file is `taskset.py` of the exported package. It needs nothing but verifiers: the rows are in
`rows.jsonl` beside it, the scoring is in the package `eyechart_scoring` beside it.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import verifiers.v1 as vf
from pydantic import Field

ROWS = Path(__file__).with_name("rows.jsonl")


class EyechartData(vf.TaskData):
    """One sample: a prompt with its right answer."""

    answer: str
    """The right answer, as a text."""
    info: dict[str, Any]
    """Its `task`, `task_version`, `condition`, nominal `length` (the line), true length `symbols`,
    `row` (the same row comes under every condition), `seed`, and `max_tokens`, the room that a
    reply needs."""
    scoring: dict[str, Any]
    """What the verdict depends on."""


class EyechartTask(vf.Task[EyechartData]):
    """The reward is 1 for a reply that is `correct`, and 0 for every other outcome."""

    @property
    def key(self) -> str:
        """The sample's id, which is the one in a run's journal."""
        return str(self.data.id)

    @vf.reward(weight=1.0)
    async def correct(self, trace: vf.Trace) -> float:
        """Whether `bench score` judges the reply `correct`."""
        return float(self._outcome(trace) == "correct")

    @vf.metric
    async def outcome(self, trace: vf.Trace) -> dict[str, float]:
        """1 for the outcome, and 0 for the others."""
        found = self._outcome(trace)
        return {str(one): float(one == found) for one in _scoring().Outcome if one != "not_run"}

    async def validate(self, runtime: vf.Runtime) -> bool:  # noqa: ARG002  it comes by its name
        """Whether the right answer after the answer phrase is judged correct, for `vf-validate`."""
        phrase, *_ = _scoring().form_of(self.data.scoring).phrase
        reply = f"{phrase} {self.data.answer}"
        return str(_scoring().outcome_of(self.data.scoring, reply)) == "correct"

    def _outcome(self, trace: vf.Trace) -> str:
        return str(
            _scoring().outcome_of(
                self.data.scoring,
                trace.last_reply,
                finish_reason="length" if trace.is_truncated else "stop",
                failure=None if trace.assistant_messages else "error",
            )
        )


class EyechartConfig(vf.TasksetConfig):
    """Which rows are loaded."""

    conditions: list[str] = Field(default_factory=list)
    """Conditions, as `separator=none,strategy=direct`; all of them if empty."""
    lengths: list[int] = Field(default_factory=list)
    """Nominal lengths; all of them if empty."""


class EyechartTaskset(vf.Taskset[EyechartTask, EyechartConfig]):
    """The rows of the export, in its order."""

    def load(self) -> Iterator[EyechartTask]:
        """Each sample of the wanted conditions and lengths."""
        with ROWS.open(encoding="utf-8") as lines:
            for line in lines:
                row = json.loads(line)
                if self._is_wanted(row["info"]):
                    yield EyechartTask(EyechartData(**row), self.config.task)

    def _is_wanted(self, info: dict[str, Any]) -> bool:
        conditions, lengths = self.config.conditions, self.config.lengths
        return (not conditions or info["condition"] in conditions) and (
            not lengths or info["length"] in lengths
        )


def _scoring() -> Any:
    """The scoring that came with the export."""
    return importlib.import_module(f"{__package__}.eyechart_scoring.bare_text")
