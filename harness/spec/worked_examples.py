"""The axis `examples`: how many worked examples stand before a question.

No task file has it, and every task takes it: a run has it where its settings name it. So the
prompts, the ids and the hash of a task are the same as ever where nobody asks for examples.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from eyechart.harness.score.extraction import FIRST
from eyechart.harness.spec import EXAMPLES, Axis, Condition, TaskSpec

if TYPE_CHECKING:
    from eyechart.harness.spec.answer import Answer

NUMBERS = (0, 2, 4, 8)
"""Worked examples that can stand before a question."""
AXIS = Axis(default=["0"], values={str(number): number for number in NUMBERS})


def with_examples(spec: TaskSpec) -> TaskSpec:
    """The task with the axis `examples`, after its own."""
    return spec.model_copy(update={"axes": {**spec.axes, EXAMPLES: AXIS}})


def has_examples(spec: TaskSpec) -> bool:
    """Whether the task has the axis; one of this name that a file gave it is another one."""
    return EXAMPLES in spec.axes and spec.axes[EXAMPLES] == AXIS


def number_of(spec: TaskSpec, condition: Condition) -> int:
    """The number of worked examples under a condition."""
    return int(condition[EXAMPLES]) if has_examples(spec) else 0


def answer_line(answer: Answer, target: object) -> str:
    """The line of a worked example that has its answer, as the scorer reads it."""
    return f"{answer.first_phrase} {target}"


def answer_read(spec: TaskSpec, api: str | None) -> Answer:
    """The answer as it is read from replies. A text to continue that has worked examples, or that
    is compared with one that has them, ends with the answer phrase, so its answer stands first.
    """
    if api == "completions" and has_examples(spec) and spec.answer.read is None:
        return spec.answer.model_copy(update={"read": FIRST})
    return spec.answer
