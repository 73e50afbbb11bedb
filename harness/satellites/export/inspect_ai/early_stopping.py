"""`-T adaptive=true`: an adaptive evaluation, through Inspect's protocol for early stopping.

Inspect asks in the order of its data set. It offers each sample once, and what is not asked then is
not asked later. So a wave takes the next samples of the lines that it wants, which need not be
those of the lowest indexes, as in `bench run --adaptive`, and samples that come up meanwhile are
passed over or wait, each in one of Inspect's `--max-samples` places. An evaluation cannot go beyond
its data set: neither to more samples of a line, nor to longer lines than its task has.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from anyio import Event
from inspect_ai.util import EarlyStop

from eyechart.harness.analysis.adaptive import Aim
from eyechart.harness.satellites.export.inspect_ai.scores import FACTS, OUTCOME
from eyechart.harness.satellites.export.inspect_ai.waves import Place, Waves
from eyechart.harness.spec import Line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from inspect_ai.dataset import Sample
    from inspect_ai.scorer import SampleScore

_NAME = "eyechart adaptive"
_Key = tuple[str, int]
"""Id and epoch of a sample."""


@dataclass
class _Condition:
    """One task under one condition, in one evaluation."""

    waves: Waves[_Key]
    changed: Event = field(default_factory=Event)
    """Set when a sample ends, and then replaced."""

    def ended(self, key: _Key, *, correct: bool | None) -> None:
        self.waves.ended(key, correct=correct)
        self.changed.set()
        self.changed = Event()


@dataclass
class _Evaluation:
    """All that one evaluation knows of its samples."""

    conditions: dict[str, _Condition]
    """Task and condition -> its waves."""
    of_sample: dict[str, str]
    """Sample id -> task and condition."""

    def condition(self, sample_id: str) -> _Condition:
        return self.conditions[self.of_sample[sample_id]]


_EVALUATION: ContextVar[_Evaluation | None] = ContextVar("_EVALUATION", default=None)
"""Inspect may evaluate one task on several models at the same time, and names none of them in its
calls; but the tasks of an evaluation inherit the context in which it began."""


class AdaptiveStopping:
    """Inspect's `EarlyStopping`: asks what the waves of each condition want, and stops them."""

    def __init__(self, precision: float) -> None:
        self.precision = precision

    async def start_task(self, task: object, samples: Sequence[Sample], epochs: int) -> str:  # noqa: ARG002  Inspect's form
        """Begins an evaluation with these samples."""
        places: dict[str, dict[_Key, Place]] = {}
        of_sample: dict[str, str] = {}
        for sample in samples:
            of = sample.metadata
            name = of_sample[sample.id] = f"{of['task']} {of['condition']}".removesuffix(" -")
            for epoch in range(epochs):
                places.setdefault(name, {})[sample.id, epoch + 1] = Place(
                    Line(*of[FACTS]["line"]), of["index"] * epochs + epoch, of["length"]
                )
        aim = Aim(self.precision)
        conditions = {name: _Condition(Waves(of_name, aim)) for name, of_name in places.items()}
        _EVALUATION.set(_Evaluation(conditions, of_sample))
        return _NAME

    async def schedule_sample(self, id: str, epoch: int) -> EarlyStop | None:  # noqa: A002  Inspect's form
        """Lets the sample be asked, or says why it is not."""
        condition = _evaluation().condition(id)
        while True:
            changed = condition.changed
            match condition.waves.turn((id, epoch)):
                case "ask":
                    return None
                case "pass":
                    return EarlyStop(id=id, epoch=epoch, reason=condition.waves.why_passed)
                case "wait":
                    await changed.wait()

    async def complete_sample(
        self,
        id: str,  # noqa: A002  Inspect's form
        epoch: int,
        scores: Mapping[str, SampleScore],
    ) -> None:
        """Takes in the outcome of a sample, which may be of an evaluation that this one goes on."""
        said = scores[OUTCOME].score.value if OUTCOME in scores else "error"
        correct = None if said == "error" else said == "correct"
        _evaluation().condition(id).ended((id, epoch), correct=correct)

    async def complete_task(self) -> dict[str, Any]:
        """What was asked under each condition, and why no more."""
        conditions = {
            name: {"asked": condition.waves.asked, "ended": condition.waves.why_ended()}
            for name, condition in _evaluation().conditions.items()
        }
        return {"adaptive": True, "precision": self.precision, "conditions": conditions}


def gave_up(sample_id: str, epoch: int) -> None:
    """Lets no sample wait for the reply to this one, which was cancelled or is to be asked again
    once there is a place for it.
    """
    evaluation = _EVALUATION.get()
    if evaluation is not None and sample_id in evaluation.of_sample:
        evaluation.condition(sample_id).ended((sample_id, epoch), correct=None)


def _evaluation() -> _Evaluation:
    evaluation = _EVALUATION.get()
    assert evaluation is not None, "Inspect starts a task before its samples"
    return evaluation
