"""Verdicts as scorers of inspect_ai, and the metrics by length; skipped where it is missing."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import pytest

pytest.importorskip("inspect_ai", reason="inspect_ai is not installed: pip install -e '.[inspect]'")

from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessageAssistant,
    ContentReasoning,
    ContentText,
    ModelOutput,
    ModelUsage,
)
from inspect_ai.scorer import SampleScore, Score

from eyechart.harness.satellites.export.inspect_ai.scores import (
    FACTS,
    by_length,
    by_outcome,
    effective_length,
    outcome,
    verdict,
)
from eyechart.harness.score.outcomes import RECORDED

pytestmark = pytest.mark.inspect

FIVE = {"target": 5, "answer": {"type": "integer", "phrase": "Final answer:"}}
SOME = ModelUsage(input_tokens=9, output_tokens=3, total_tokens=12)


def output(text: str, stop: Any = "stop", usage: Any = SOME) -> Any:
    """A reply as Inspect's providers give it."""
    made = ModelOutput.from_content("model", text, stop_reason=stop)
    made.usage = usage
    return made


def parts(*content: Any) -> Any:
    """A reply in parts."""
    message = ChatMessageAssistant(content=list(content))
    choice = ChatCompletionChoice(message=message, stop_reason="stop")
    return ModelOutput(model="model", choices=[choice], usage=SOME)


class State:
    """What a scorer reads of Inspect's state."""

    def __init__(self, reply: Any, facts: dict[str, Any]) -> None:
        self.output = reply
        self.metadata = {FACTS: facts}


def scored(reply: Any, facts: dict[str, Any] = FIVE) -> tuple[Any, str]:
    """The score of `verdict` and the name that `outcome` gives."""
    judges: Any = verdict(), outcome()
    score, named = (asyncio.run(judge(State(reply, facts), None)) for judge in judges)
    return score, named.value


@pytest.mark.parametrize(
    ("reply", "name", "value", "reason"),
    [
        (output("Final answer: 5"), "correct", "C", None),
        (output("Final answer: 4"), "incorrect", "I", None),
        (output("who knows"), "unparsed", "I", "invalid_response_format"),
        (output("I'm sorry, I can't help with that."), "refused", None, "refusal"),
        (output("blocked", "content_filter"), "refused", None, "refusal"),
        (output("Final ans", "max_tokens"), "truncated", None, "truncated"),
        (output("", "max_tokens"), "truncated", None, "truncated"),
        (output("Final answer: 5\nfor", "max_tokens"), "correct", "C", None),
        (output("Final ans", "model_length"), "truncated", None, "truncated"),
        (output("the window is 4 tokens", "model_length", None), "overflow", None, "overflow"),
        (output("Final answer: 5", "unknown"), "correct", "C", None),
        (parts(ContentText(text="No 5", refusal=True)), "refused", None, "refusal"),
        (
            parts(ContentReasoning(reasoning="Final answer: 4"), ContentText(text="It is 5")),
            "correct",
            "C",
            None,
        ),
        (ModelOutput(model="model", choices=[], error=None), "error", None, "error"),
        (ModelOutput(model="model"), "error", None, "error"),
    ],
)
def test_each_outcome_has_its_score(
    reply: Any, name: str, value: str | None, reason: str | None
) -> None:
    """Refused, cut-off and too long samples are unscored, with the reason, and counted by name."""
    score, named = scored(reply)
    assert named == score.metadata["outcome"] == name
    assert score.reason == reason
    assert math.isnan(score.value) if value is None else score.value == value


def test_a_score_says_what_was_read() -> None:
    """Answer, error and reason are where Inspect shows them."""
    wrong, _ = scored(output("Final answer: 3"))
    assert (wrong.answer, wrong.metadata["signed_error"]) == ("3", -2)
    assert wrong.explanation == "reads 3, target 5"
    unread, _ = scored(output("who knows"))
    assert (unread.answer, unread.explanation) == (None, "no number on the last line")
    beyond, _ = scored(output("the window is 4 tokens", "model_length", None))
    assert beyond.explanation == "the window is 4 tokens"


def test_a_refusal_of_the_provider_is_refused() -> None:
    """The error field of a reply goes before its text."""
    reply = output("Final answer: 5")
    reply.error = "not allowed"
    score, named = scored(reply)
    assert (named, score.explanation) == ("refused", "not allowed")


def scores(*samples: tuple[str, str, int, int, Any], epochs: int = 1) -> list[Any]:
    """Scores of (task, condition, length, index, value)."""
    return [
        SampleScore(
            score=Score(value=value),
            sample_id=f"{task}|{condition}|{length}|{index}",
            sample_metadata={
                "task": task,
                "condition": condition,
                "length": length,
                "index": index,
                FACTS: {"line": [length, length, length]},
            },
        )
        for task, condition, length, index, value in samples * epochs
    ]


NONE, COMMA = (
    f"separator={value},strategy=direct,order=question_first" for value in ("none", "comma")
)


def test_lengths_are_rows_in_their_order() -> None:
    """Accuracy, standard error and number of each length, the shortest first."""
    some = scores(
        *(("a/b", NONE, 100, index, 0.0) for index in range(2)),
        *(("a/b", NONE, 5, index, float(index != 0)) for index in range(4)),
    )
    rows: Any = by_length()(some)
    assert list(rows) == [
        "n",
        *("length=5", "length=5 stderr", "length=5 n"),
        *("length=100", "length=100 stderr", "length=100 n"),
    ]
    assert (rows["n"], rows["length=5"], rows["length=5 n"]) == (6, 0.75, 4)
    assert rows["length=5 stderr"] == pytest.approx(0.25)
    assert (rows["length=100"], rows["length=100 n"]) == (0.0, 2)


def test_cells_of_one_task_are_rows_too() -> None:
    """Named by the axes that differ; those of several tasks are not shown."""
    some = scores(("a/b", NONE, 5, 0, 1.0), ("a/b", COMMA, 5, 0, 0.0), ("a/b", NONE, 9, 0, 1.0))
    rows: Any = by_length()(some)
    assert rows["length=5"] == 0.5
    assert list(rows.items())[7:] == [
        *(("separator=comma length=5", 0.0), ("separator=comma length=5 n", 1)),
        *(("separator=none length=5", 1.0), ("separator=none length=5 n", 1)),
        *(("separator=none length=9", 1.0), ("separator=none length=9 n", 1)),
    ]
    two: Any = by_length()(some + scores(("a/c", "-", 5, 0, 1.0)))
    assert list(two) == list(rows)[:7]


def test_outcomes_are_counted_by_length() -> None:
    """All outcomes of the whole, then of each length those that it has."""
    some = scores(
        ("a/b", NONE, 50, 0, "truncated"),
        ("a/b", NONE, 5, 0, "correct"),
        ("a/b", NONE, 5, 1, "error"),
    )
    rows: Any = by_outcome()(some)
    assert list(rows)[: len(RECORDED)] == list(RECORDED)
    assert (rows["correct"], rows["truncated"], rows["refused"], rows["error"]) == (1, 1, 0, 1)
    assert list(rows)[len(RECORDED) :] == [
        "length=5 correct",
        "length=5 error",
        "length=50 truncated",
    ]


@pytest.mark.parametrize("epochs", [1, 2])
def test_how_far_it_sees_is_reckoned_as_bench_does(epochs: int) -> None:
    """Truncated replies count against a length, samples without a reply do not."""
    some = scores(
        *(("a/b", "-", 5, index, "correct") for index in range(30)),
        *(("a/b", "-", 10, index, "correct" if index else "error") for index in range(30)),
        *(("a/b", "-", 20, index, "correct" if index > 9 else "truncated") for index in range(30)),
        epochs=epochs,
    )
    rows: Any = effective_length()(some)
    length = rows["effective_length_min"]
    assert 10 < length < 20
    assert rows["effective_length_max"] == length
    assert 5 <= rows["effective_length_ci_low"] < length
    assert rows["effective_length_ci_high"] == 20  # no length between 10 and 20 was asked
    assert rows["one_threshold"] == 1


def test_beyond_the_tested_lengths_one_bound_is_missing() -> None:
    """Each condition has its own bounds; below the shortest length there is no lower one."""
    some = scores(
        *(("a/b", NONE, 5, index, "correct") for index in range(30)),
        *(("a/b", COMMA, 5, index, "unparsed") for index in range(30)),
    )
    rows: Any = effective_length()(some)
    assert rows["separator=none effective_length_min"] == 5
    assert rows["separator=none effective_length_max"] is None
    assert rows["separator=comma effective_length_min"] is None
    assert rows["separator=comma effective_length_max"] == 5


def test_nothing_scored_is_no_accuracy() -> None:
    """A metric of nothing has a number, which is zero, and no share."""
    assert by_length()([]) == {"n": 0}
    assert by_outcome()([]) == dict.fromkeys(RECORDED, 0.0)
    assert effective_length()(scores(("a/b", NONE, 5, 0, "error"))) == {}


def test_bands_are_rows_by_their_nominal_length() -> None:
    """Whatever the true lengths of their samples."""
    some = scores(*(("a/b", NONE, 50, index, 1.0) for index in range(20)))
    for index, score in enumerate(some):
        score.sample_metadata["length"] = (57, 43)[index % 2]
        score.sample_metadata[FACTS]["line"] = [50, 41, 61]
    rows: Any = by_length()(some)
    assert [*rows] == ["n", "length=50", "length=50 stderr", "length=50 n"]
    for score in some:
        score.score.value = "correct"
    limits: Any = effective_length()(some)
    assert limits["effective_length_min"] == 61  # the longest of the band, as in `bench`
