"""Verdicts as scorers of inspect_ai, and the metrics that keep lengths apart.

Two scorers judge each reply. `verdict` is right or wrong, and unscored where there is no answer to
judge: Inspect leaves such samples out of its metrics, so only `outcome`, which names each sample's
outcome, can count them.
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

from harness.score.verdict import Outcome, Verdict, judge
from harness.spec import Answer

PACKAGE = "eyechart"
"""What the names begin with, and what the entry point is called."""
FACTS = "eyechart"
"""Where a sample's metadata holds what is no axis: an axis cannot hide it by its name."""
OUTCOMES: tuple[Outcome, ...] = (
    *("correct", "incorrect", "unparsed"),
    *("refused", "truncated", "overflow", "error"),
)
_REASONS = {"unparsed": "invalid_response_format", "refused": "refusal"}
"""Outcome -> Inspect's word for it, where it has one."""
_FINISH = {
    "max_tokens": "length",
    "model_length": "length",
    "content_filter": "content_filter",
}
"""Inspect's stop reason -> ours, where it matters."""
_Function = TypeVar("_Function", bound=Callable[..., Any])
_Number: TypeAlias = Callable[[list[SampleScore]], float]

if "reason" not in Score.model_fields:
    raise ImportError(
        f"eyechart needs inspect-ai 0.3.265 or newer, not {version('inspect-ai')}; "
        "pip install -U inspect-ai"
    )


def ours(function: _Function) -> _Function:
    """Keeps Inspect from putting `harness/` before the name under which it registers `function`.

    It puts there the import package of the module that a function says it is from, if such a
    module is installed; our names begin with the distribution's instead.
    """
    function.__module__ = PACKAGE
    return function


def verdict_of(output: ModelOutput, facts: Mapping[str, Any]) -> Verdict:
    """The verdict on a reply to a sample with these `facts`.

    Inspect turns some refusals of providers into replies whose text is the error: such a reply has
    no tokens. No reply at all is no answer either, and was not the model's fault.
    """
    judged = {"target": facts["target"], "answer": Answer.model_validate(facts["answer"])}
    if output.empty:
        return judge(text="", finish_reason="stop", refusal=None, failure="error", **judged)
    stop, tokens = output.stop_reason, output.usage.output_tokens if output.usage else 0
    parts = output.message.content
    refused = [part.text for part in parts if isinstance(part, ContentText) and part.refusal]
    return judge(
        text=output.completion,
        finish_reason=_FINISH.get(stop, "stop"),
        refusal=output.error or " ".join(refused) or None,
        failure="overflow" if stop == "model_length" and not tokens else None,
        **judged,
    )


def _cell(score: SampleScore) -> tuple[str, str, int, int]:
    """Task, condition, length and index of a sample."""
    known = score.sample_metadata or {}
    return known["task"], known["condition"], known["length"], known["index"]


def _told_apart(conditions: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """(task, condition) -> what tells it from the others: the task if there are several, and the
    axes on which its task's conditions differ.
    """
    values: dict[str, dict[str, set[str]]] = {}
    known = sorted(set(conditions))
    for task, condition in known:
        for pair in condition.split(","):
            axis, _, value = pair.partition("=")
            values.setdefault(task, {}).setdefault(axis, set()).add(value)
    return {
        (task, condition): " ".join(
            ([task] if len(values) > 1 else [])
            + [
                pair
                for pair in condition.split(",")
                if len(values[task][pair.partition("=")[0]]) > 1
            ]
        )
        for task, condition in known
    }


@metric(name=f"{PACKAGE}/by_length")
@ours
def by_length() -> Metric:
    """Accuracy, standard error and number of the scored samples of each length; where one task was
    asked under several conditions, accuracy and number in each of their cells too.

    The cells of several tasks would be a hundred rows; those are in each task's own evaluation.
    """

    def compute(scores: list[SampleScore]) -> Value:
        share, error = cast("_Number", accuracy()), cast("_Number", stderr())
        rows: dict[str, float] = {"n": len(scores)}
        for length, some in _groups(scores, lambda score: _cell(score)[2]):
            rows[f"length={length}"] = share(some)
            rows[f"length={length} stderr"] = error(some)
            rows[f"length={length} n"] = len(some)
        names = _told_apart(_cell(score)[:2] for score in scores)
        if len(names) > 1 == len({task for task, _ in names}):
            for (task, condition, length), some in _groups(scores, lambda score: _cell(score)[:3]):
                name = f"{names[task, condition]} length={length}"
                rows[name] = share(some)
                rows[f"{name} n"] = len(some)
        return cast("Value", rows)

    return compute


@metric(name=f"{PACKAGE}/by_outcome", scores="unreduced")
@ours
def by_outcome() -> Metric:
    """Samples of each outcome, then those of each length, of the outcomes that it has."""

    def compute(scores: list[SampleScore]) -> Value:
        rows = _counts(scores)
        for length, some in _groups(scores, lambda score: _cell(score)[2]):
            rows |= {f"length={length} {kind}": n for kind, n in _counts(some).items() if n}
        return cast("Value", rows)

    return compute


@metric(name=f"{PACKAGE}/effective_length", scores="unreduced")
@ours
def effective_length() -> Metric:
    """How far the model sees under each condition, as `bench` reckons: the share of right replies
    among all replies stays at or above 85 %.

    Bounds with those of the 95 % interval, under their names in `effective_length.csv`; what lies
    outside the tested lengths has one bound alone. Each epoch of a sample is a row of its own.
    """

    def compute(scores: list[SampleScore]) -> Value:
        from harness.analysis import stats  # noqa: PLC0415  NumPy is slow to load

        replies = [score for score in scores if score.score.value != "error"]
        names = _told_apart(_cell(score)[:2] for score in replies)
        rows: dict[str, float | None] = {}
        for condition, some in _groups(replies, lambda score: _cell(score)[:2]):
            again: Counter[tuple[int, int]] = Counter()
            longest = 1 + max(_cell(score)[3] for score in some)
            lengths, indexes, right = [], [], []
            for score in some:
                place = _cell(score)[2:]
                lengths.append(place[0])
                indexes.append(place[1] + longest * again[place])
                right.append(score.score.value == "correct")
                again[place] += 1
            found = stats.effective_length(stats.curve(lengths, indexes, right))
            low, high = found.length_ci
            bounds = {
                "min": found.length.at_least,
                "max": found.length.at_most,
                "ci_low": low.at_least,
                "ci_high": high.at_most,
            }
            for end, bound in bounds.items():
                rows[f"{names[condition]} effective_length_{end}".lstrip()] = bound
        return cast("Value", rows)

    return compute


def _counts(scores: Iterable[SampleScore]) -> dict[str, float]:
    found = Counter(str(score.score.value) for score in scores)
    return {kind: float(found[kind]) for kind in OUTCOMES}


_Key = TypeVar("_Key", bound="int | tuple[Any, ...]")


def _groups(
    scores: list[SampleScore], key: Callable[[SampleScore], _Key]
) -> Iterator[tuple[_Key, list[SampleScore]]]:
    """Scores of one key together, by ascending key; they come in the order of their replies."""
    groups: dict[_Key, list[SampleScore]] = {}
    for score in scores:
        groups.setdefault(key(score), []).append(score)
    yield from sorted(groups.items(), key=lambda group: group[0])


@scorer(metrics=[accuracy(), stderr(), by_length()], name=f"{PACKAGE}/verdict")
@ours
def verdict() -> Scorer:
    """Right, or wrong: another answer, or none that can be read; else unscored, with the reason."""

    async def score(state: TaskState, target: Target) -> Score:  # noqa: ARG001  Inspect's form
        facts = state.metadata[FACTS]
        found = verdict_of(state.output, facts)
        why = state.output.completion if found.outcome == "overflow" else found.why
        said: dict[str, Any] = {
            "answer": None if found.answer is None else str(found.answer),
            "explanation": why or f"reads {found.answer!r}, target {facts['target']!r}",
            "metadata": {"outcome": found.outcome, "signed_error": found.signed_error},
        }
        if found.outcome == "correct":
            return Score(value=CORRECT, **said)
        said["reason"] = _REASONS.get(found.outcome, found.outcome)
        if found.outcome == "incorrect":
            return Score(value=INCORRECT, **(said | {"reason": None}))
        if found.outcome == "unparsed":
            return Score(value=INCORRECT, **said)
        return Score.unscored(**said)

    return score


@scorer(metrics=[by_outcome(), effective_length()], name=f"{PACKAGE}/outcome")
@ours
def outcome() -> Scorer:
    """The name of the sample's outcome, as the columns of `table.csv` have it."""

    async def score(state: TaskState, target: Target) -> Score:  # noqa: ARG001  Inspect's form
        return Score(value=verdict_of(state.output, state.metadata[FACTS]).outcome)

    return score
