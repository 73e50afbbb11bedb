"""What a model does that is right, in words: the one place that says `counts exactly`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from eyechart.harness.analysis.samples.judged_run import JudgedCondition


@dataclass(frozen=True, slots=True)
class VerbPhrase:
    """A verb with its adverb: a model that counts exactly to 20 `counts exactly`."""

    one: str
    many: str
    base: str

    def __str__(self) -> str:
        return self.one


COUNTS = VerbPhrase("counts exactly", "count exactly", "count exactly")
COPIES = VerbPhrase("copies exactly", "copy exactly", "copy exactly")
RIGHT = VerbPhrase("is right", "are right", "be right")
FORMS = {doing.one: doing for doing in (COUNTS, COPIES, RIGHT)}
"""The form for one model, which findings have as a fact -> all forms."""


def doing(judged: Iterable[JudgedCondition], task: str) -> VerbPhrase:
    """What a model does that is right on a task; a saved baseline has no answers to tell it by."""
    if task.startswith("copying/"):
        return COPIES
    scored = [one.scored for one in judged if one.scored is not None]
    return COUNTS if task.startswith("counting/") or any(one.counts for one in scored) else RIGHT
