"""Chooses samples of a run by outcome, length and condition, and shows them with their texts."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec.structs import asdict, replace

from eyechart.harness.analysis.samples.details import Detail, RemadePrompts, RunDetails
from eyechart.harness.analysis.samples.judged_run import JudgedRun, each_counted
from eyechart.harness.analysis.samples.probabilities import rank_of
from eyechart.harness.analysis.samples.verdicts import Judge, reason
from eyechart.harness.errors import UsageError
from eyechart.harness.journal.thoughts import thinking_characters, thinking_tokens
from eyechart.harness.score.outcomes import RECORDED, Outcome
from eyechart.harness.spec import Cell, Item, TaskSpec
from eyechart.providers.close_match import did_you_mean


@dataclass(frozen=True)
class SampleFilter:
    """Which samples are wanted; an empty field wants all."""

    outcomes: Collection[str] = ()
    lengths: Collection[int] = ()
    """Nominal lengths of lines, or true lengths of samples."""
    conditions: Sequence[Mapping[str, str]] = ()
    """Values on some axes; a sample is wanted if its condition has the values of one entry."""

    def __post_init__(self) -> None:
        """Raises `UsageError` for an outcome that no record has."""
        for outcome in self.outcomes:
            if outcome not in RECORDED:
                raise UsageError(f"no outcome {outcome!r}; known: {', '.join(RECORDED)}")

    def check(self, spec: TaskSpec) -> None:
        """Raises `UsageError` for an axis or a value that the task lacks."""
        for condition in self.conditions:
            for axis, value in condition.items():
                if axis not in spec.axes:
                    raise UsageError(f"no axis {axis!r}; {did_you_mean(axis, spec.axes)}")
                if value not in (values := spec.axes[axis].values):
                    raise UsageError(
                        f"no value {value!r} on axis {axis!r}; {did_you_mean(value, values)}"
                    )

    def has_condition(self, cell: Cell) -> bool:
        return not self.conditions or any(
            all(cell.condition[axis] == value for axis, value in condition.items())
            for condition in self.conditions
        )


def read_conditions(labels: Iterable[str]) -> list[dict[str, str]]:
    """Conditions from labels, `AXIS=VALUE[,AXIS=VALUE]`; raises `UsageError`."""
    conditions = []
    for label in labels:
        pairs = [part.partition("=") for part in label.split(",")]
        if not all(axis and equals and value for axis, equals, value in pairs):
            raise UsageError(f"a condition is AXIS=VALUE[,AXIS=VALUE], not {label!r}")
        conditions.append({axis.strip(): value.strip() for axis, _, value in pairs})
    return conditions


def choose(run: JudgedRun, choice: SampleFilter) -> list[int]:
    """Places in `run.samples` of the wanted samples, by index, cell and draw; each record once.

    Raises:
        UsageError: the choice has an axis or a value that the task has not, or a length that the
            run has not.
    """
    choice.check(run.spec)
    samples, cells = run.samples, run.manifest.cells
    lines = dict.fromkeys(str(cell.line) for cell in sorted(cells, key=lambda cell: cell.line))
    known = {*samples["true_length"], *(cell.length for cell in cells)}
    for length in choice.lengths:
        if length not in known:
            raise UsageError(
                f"no sample has length {length}; the run has lengths {', '.join(lines)}"
            )
    wanted = [place for place, cell in enumerate(cells) if choice.has_condition(cell)]
    chosen = samples[samples["cell"].isin(wanted)]
    if choice.outcomes:
        places = [Outcome.named(outcome).place for outcome in choice.outcomes]
        chosen = chosen[chosen["outcome"].isin(places)]
    if choice.lengths:
        nominal = [place for place, cell in enumerate(cells) if cell.length in choice.lengths]
        exact = chosen["true_length"].isin(list(choice.lengths))
        chosen = chosen[chosen["cell"].isin(nominal) | exact]
    ordered = chosen.sort_values(["index", "cell", "draw"], kind="stable").drop_duplicates("record")
    return [int(place) for place in ordered.index]


@dataclass(frozen=True)
class ShownSample:
    """One sample that has a record, with its prompt if that can be made again."""

    cell: Cell
    detail: Detail
    prompt: str | None
    metadata: Mapping[str, int | float | str] | None
    """What the item has as its metadata, such as its `id`; `None` if the item is not known."""
    first_wrong_turn: int | None = None
    """See `first_wrong_turn`."""

    @property
    def why(self) -> str:
        """Why the sample has its outcome; "" if it is correct."""
        failure = self.detail.record.failure
        if failure is not None:
            return f"{failure.type}: {failure.message}" if failure.message else failure.kind
        verdict = self.detail.verdict
        right = verdict.outcome is Outcome.CORRECT
        return "" if right else reason(verdict, self.detail.record.target)

    def row(self) -> dict[str, Any]:
        """All fields of the sample; `reply[answer_start:answer_end]` is the answer."""
        record, verdict = self.detail.record, self.detail.verdict
        read = verdict.answer is not None
        options = record.options
        place = rank_of(record)
        return {
            "id": record.id,
            "condition": dict(record.condition),
            "length": self.cell.length,
            "true_length": record.length,
            "index": record.index,
            "draw": record.draw,
            "seed": record.seed,
            "metadata": None if self.metadata is None else dict(self.metadata),
            "prompt": self.prompt,
            "turns": None if record.turns is None else list(map(asdict, record.turns)),
            "first_wrong_turn": self.first_wrong_turn,
            "reply": record.reply,
            "reasoning": record.reasoning,
            "target": record.target,
            "answer": verdict.answer,
            "answer_start": verdict.start if read else None,
            "answer_end": verdict.end if read else None,
            "outcome": verdict.outcome.value,
            "why": self.why,
            "options": None if options is None else list(map(asdict, options)),
            "rank": None if place is None else place.rank,
            "margin": None if place is None else round(place.margin, 6),
            "logprobs": None if record.logprobs is None else list(map(list, record.logprobs)),
            "top_logprobs": (
                None
                if record.top_logprobs is None
                else [list(map(list, place)) for place in record.top_logprobs]
            ),
            "recorded_verdict": record.recorded_verdict,
            "finish_reason": record.finish_reason,
            "prompt_tokens": record.prompt_tokens,
            "output_tokens": record.output_tokens,
            "thinking_tokens": thinking_tokens(record),
            "thinking_characters": thinking_characters(record),
            "latency_s": record.latency_s,
        }


def shown_samples(
    run: JudgedRun, places: Sequence[int], prompts: RemadePrompts
) -> Iterator[ShownSample]:
    """The samples at `places` of `run.samples`, in their order."""
    records = dict(each_counted(run, places))
    cells = run.samples["cell"].to_numpy()
    details = [
        Detail(int(cells[place]), records[place], run.judge.verdict(records[place]))
        for place in places
    ]
    texts = prompts.of(RunDetails(run, details, run.manifest.model))
    for detail, prompt in zip(details, texts, strict=True):
        cell, item = run.manifest.cells[detail.cell], prompts.item_of(run, detail.record)
        metadata = None if item is None else dict(item.metadata)
        wrong = None if item is None else first_wrong_turn(run.judge, detail, item)
        yield ShownSample(cell, detail, prompt, metadata, wrong)


def first_wrong_turn(judge: Judge, detail: Detail, item: Item) -> int | None:
    """The first turn, from 1, whose reply is not judged correct; `None` where all are, and where
    the item does not say what the correct answers of its turns are.
    """
    record = detail.record
    turns = record.turns or ()
    if not turns or len(item.turn_targets) < len(turns):
        return None
    for number, (turn, target) in enumerate(zip(turns, item.turn_targets, strict=False), start=1):
        asked = replace(record, reply=turn.reply, target=target, accept=None)
        asked = replace(asked, failure=None, refusal=None, finish_reason="stop", max_tokens=None)
        if judge.verdict(asked).outcome is not Outcome.CORRECT:
            return number
    is_right = detail.verdict.outcome is Outcome.CORRECT
    return None if is_right or record.is_error else len(turns) + 1
