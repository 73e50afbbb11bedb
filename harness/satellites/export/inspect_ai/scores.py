"""Verdicts as scorers of inspect_ai, and metrics for each length.

Two scorers judge each reply. `verdict` is right or wrong, and unscored where there is no answer to
judge. Inspect leaves unscored samples out of its metrics; `outcome`, which names each sample's
outcome, counts them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.metadata import version
from typing import Any, TypeAlias, TypeVar, cast

from inspect_ai.model import ContentText, ModelOutput
from inspect_ai.scorer import (
    CORRECT,
    INCORRECT,
    Metric,
    SampleScore,
    Score,
    Scorer,
    Target,
    Value,
    accuracy,
    metric,
    scorer,
    stderr,
)
from inspect_ai.solver import TaskState

from eyechart.harness.score.judge import judge
from eyechart.harness.score.outcomes import RECORDED, Outcome
from eyechart.harness.score.verdict import Verdict
from eyechart.harness.spec import Condition, Line
from eyechart.harness.spec.answer import Answer
from eyechart.providers.finish import finish_of

PACKAGE = "eyechart"
"""The first part of all registered names, and the name of the entry point."""
FACTS = "eyechart"
"""Key in a sample's metadata of everything that is no axis, so that no axis can overwrite it."""
OUTCOME = "outcome"
"""The name under which Inspect has the scores of the scorer `outcome`."""
_Function = TypeVar("_Function", bound=Callable[..., Any])
_Number: TypeAlias = Callable[[list[SampleScore]], float]

if "reason" not in Score.model_fields:
    raise ImportError(
        f"eyechart needs inspect-ai 0.3.265 or newer, not {version('inspect-ai')}; "
        "pip install -U inspect-ai"
    )


def ours(function: _Function) -> _Function:
    """Keeps Inspect from putting `harness/` before the name under which it registers `function`.

    Inspect takes the prefix from the function's `__module__`, if such a module is installed; our
    names begin with the name of the distribution instead, and no module can have a hyphen.
    """
    function.__module__ = f"{PACKAGE}-inspect"
    return function


def verdict_of(output: ModelOutput, facts: Mapping[str, Any]) -> Verdict:
    """The verdict on a reply to a sample with these `facts`.

    Inspect turns some refusals of providers into replies whose text is the error: such a reply has
    no tokens. A missing reply is an `error`, which is not the model's fault.
    """
    answer_key = {
        "target": facts["target"],
        "answer": Answer.model_validate(facts["answer"]),
        "accept": facts.get("accept", ()),
    }
    if output.empty:
        return judge(text="", finish_reason="stop", refusal=None, failure="error", **answer_key)
    stop, tokens = output.stop_reason, output.usage.output_tokens if output.usage else 0
    parts = output.message.content
    refused = [part.text for part in parts if isinstance(part, ContentText) and part.refusal]
    return judge(
        text=output.completion,
        finish_reason=finish_of(stop) or "stop",
        refusal=output.error or " ".join(refused) or None,
        failure="overflow" if stop == "model_length" and not tokens else None,
        **answer_key,
    )


def _cell(score: SampleScore) -> tuple[str, str, int, int]:
    """Task, condition, nominal length and index of a sample."""
    metadata = score.sample_metadata or {}
    return metadata["task"], metadata["condition"], _line(score).length, metadata["index"]


def _line(score: SampleScore) -> Line:
    return Line(*(score.sample_metadata or {})[FACTS]["line"])


def _row_names(conditions: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """(task, condition) -> the name of its rows: the task if there are several tasks, and the axes
    on which the conditions of its task differ.
    """
    values: dict[str, dict[str, set[str]]] = {}
    pairs = sorted(set(conditions))
    for task, label in pairs:
        of_task = values.setdefault(task, {})
        for axis, value in Condition.read(label).items():
            of_task.setdefault(axis, set()).add(value)
    return {
        (task, label): " ".join(
            ([task] if len(values) > 1 else [])
            + [
                f"{axis}={value}"
                for axis, value in Condition.read(label).items()
                if len(values[task][axis]) > 1
            ]
        )
        for task, label in pairs
    }


@metric(name=f"{PACKAGE}/by_length")
@ours
def by_length() -> Metric:
    """Accuracy, standard error and number of the scored samples of each length; for one task with
    several conditions also the accuracy and number of each cell.

    The cells of several tasks would be a hundred rows; they are in the evaluation of each task.
    """

    def compute(scores: list[SampleScore]) -> Value:
        share, error = cast("_Number", accuracy()), cast("_Number", stderr())
        rows: dict[str, float] = {"n": len(scores)}
        for length, group in _groups(scores, lambda score: _cell(score)[2]):
            rows[f"length={length}"] = share(group)
            rows[f"length={length} stderr"] = error(group)
            rows[f"length={length} n"] = len(group)
        names = _row_names(_cell(score)[:2] for score in scores)
        if len(names) > 1 == len({task for task, _ in names}):
            for (task, condition, length), group in _groups(scores, lambda score: _cell(score)[:3]):
                name = f"{names[task, condition]} length={length}"
                rows[name] = share(group)
                rows[f"{name} n"] = len(group)
        return cast("Value", rows)

    return compute


@metric(name=f"{PACKAGE}/by_outcome", scores="unreduced")
@ours
def by_outcome() -> Metric:
    """The number of samples of each outcome; then the same for each length, without zeros."""

    def compute(scores: list[SampleScore]) -> Value:
        rows = _counts(scores)
        for length, group in _groups(scores, lambda score: _cell(score)[2]):
            rows |= {f"length={length} {kind}": n for kind, n in _counts(group).items() if n}
        return cast("Value", rows)

    return compute


@metric(name=f"{PACKAGE}/effective_length", scores="unreduced")
@ours
def effective_length() -> Metric:
    """The effective length under each condition, as `bench` computes it: where the share of right
    replies among all replies falls below 85 %.

    Values are numbers, so a length is a lower and an upper bound, `effective_length_min` and
    `_max`; outside the tested range it has one of them only. The others have their names in
    `effective_length.csv`; `one_threshold` is 1 or 0. Each epoch of a sample is a row of its own.
    """

    def compute(scores: list[SampleScore]) -> Value:
        from eyechart.harness.analysis.length.curve import curve  # noqa: PLC0415  NumPy is slow to load
        from eyechart.harness.analysis.length.effective_length import effective_length as estimated  # noqa: PLC0415

        replies = [score for score in scores if score.score.value != "error"]
        names = _row_names(_cell(score)[:2] for score in replies)
        rows: dict[str, float | None] = {}
        for condition, group in _groups(replies, lambda score: _cell(score)[:2]):
            epochs: Counter[tuple[int, int]] = Counter()
            stride = 1 + max(_cell(score)[3] for score in group)
            lines = sorted({_line(score) for score in group})
            lengths, places, indexes, right = [], [], [], []
            for score in group:
                place = _cell(score)[2:]
                lengths.append((score.sample_metadata or {})["length"])
                places.append(lines.index(_line(score)))
                indexes.append(place[1] + stride * epochs[place])
                right.append(score.score.value == "correct")
                epochs[place] += 1
            estimate = estimated(curve(lengths, indexes, right, lines=lines, places=places))
            length, (low, high) = estimate.length, estimate.length_ci
            values = {
                "effective_length_min": None if length is None else length.at_least,
                "effective_length_max": None if length is None else length.at_most,
                "effective_length_ci_low": low.at_least,
                "effective_length_ci_high": high.at_most,
                "one_threshold": float(estimate.one_threshold),
            }
            rows |= {f"{names[condition]} {name}".lstrip(): value for name, value in values.items()}
        return cast("Value", rows)

    return compute


def _counts(scores: Iterable[SampleScore]) -> dict[str, float]:
    counts = Counter(str(score.score.value) for score in scores)
    return {kind: float(counts[kind]) for kind in RECORDED}


_Key = TypeVar("_Key", bound="int | tuple[Any, ...]")


def _groups(
    scores: list[SampleScore], key: Callable[[SampleScore], _Key]
) -> Iterator[tuple[_Key, list[SampleScore]]]:
    """The scores grouped by `key`, in ascending order of the key; they arrive in reply order."""
    groups: dict[_Key, list[SampleScore]] = {}
    for score in scores:
        groups.setdefault(key(score), []).append(score)
    yield from sorted(groups.items(), key=lambda group: group[0])


@scorer(metrics=[accuracy(), stderr(), by_length()], name=f"{PACKAGE}/verdict")
@ours
def verdict() -> Scorer:
    """Right or wrong; a reply without a readable answer is wrong, and every other outcome is
    unscored, with the reason.
    """

    async def score(state: TaskState, target: Target) -> Score:  # noqa: ARG001  Inspect's form
        facts = state.metadata[FACTS]
        judgement = verdict_of(state.output, facts)
        outcome, about = judgement.outcome, judgement.outcome.about
        why = state.output.completion if outcome is Outcome.OVERFLOW else judgement.why
        fields: dict[str, Any] = {
            "answer": None if judgement.answer is None else str(judgement.answer),
            "explanation": why or f"reads {judgement.answer!r}, target {facts['target']!r}",
            "metadata": {"outcome": outcome.value, "signed_error": judgement.signed_error},
        }
        if not about.answered:
            fields["reason"] = about.inspect_reason or outcome.value
        if not about.judged:
            return Score.unscored(**fields)
        return Score(value=CORRECT if outcome is Outcome.CORRECT else INCORRECT, **fields)

    return score


@scorer(metrics=[by_outcome(), effective_length()], name=f"{PACKAGE}/{OUTCOME}")
@ours
def outcome() -> Scorer:
    """The name of the sample's outcome, as the columns of `table.csv` have it."""

    async def score(state: TaskState, target: Target) -> Score:  # noqa: ARG001  Inspect's form
        return Score(value=verdict_of(state.output, state.metadata[FACTS]).outcome.value)

    return score
