"""The samples of a run in the schema of "Every Eval Ever": a line of JSON each.

The schema has right and wrong only. A reply that is no answer has an `error` that names the
outcome, no extracted value, and the outcome in its metadata. A sample without a reply was never
scored; it belongs to no result, so that the mean over the samples of a result, by its id or by its
name, is the accuracy in the table.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator

from eyechart.harness.analysis.samples.details import Detail
from eyechart.harness.journal.record import Record
from eyechart.harness.satellites.export.every_eval_ever.aggregate import (
    SCHEMA_VERSION,
    Evaluation,
    Json,
    result_id,
    strings,
)
from eyechart.harness.score.forced_choice import ranked
from eyechart.harness.score.outcomes import Outcome
from eyechart.harness.spec import exact_json
from eyechart.harness.spec.answer import Answer
from eyechart.harness.spec.turns import conversation

_LINE_ENDS = {
    character.encode(): f"\\u{ord(character):04x}".encode() for character in "\x85\u2028\u2029"
}
"""Characters that some readers take for the end of a line; they are escaped in JSON."""


def lines(
    evaluation: Evaluation, details: Iterable[Detail], prompts: Iterable[str]
) -> Iterator[bytes]:
    """A line for each sample that has a record; `prompts` are those of `details`, in order."""
    for detail, prompt in zip(details, prompts, strict=True):
        line = exact_json.dumps(_row(evaluation, detail, prompt)) + b"\n"
        for character, escaped in _LINE_ENDS.items():
            line = line.replace(character, escaped)
        yield line


def _row(evaluation: Evaluation, detail: Detail, prompt: str) -> Json:
    record, verdict = detail.record, detail.verdict
    answer = evaluation.spec.answer
    label, line = record.condition.label, evaluation.publishable.run.line_names[detail.cell]
    reference = [str(record.target)]
    row: Json = {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": evaluation.id,
        "model_id": evaluation.model.id,
        "evaluation_name": evaluation.name_of(label, line),
        "evaluation_result_id": result_id(label, line, "accuracy"),
        "sample_id": record.id,
        "sample_hash": _sample_hash(prompt, reference),
        "interaction_type": "single_turn",
        "input": {"raw": conversation(prompt, record.turns or ()), "reference": reference},
        "output": {"raw": [record.reply] if record.reply is not None else []},
        "answer_attribution": [],
        "evaluation": {
            "score": float(verdict.outcome is Outcome.CORRECT),
            "is_correct": verdict.outcome is Outcome.CORRECT,
        },
        "metadata": _metadata(evaluation, detail),
    }
    if record.reasoning:
        row["output"]["reasoning_trace"] = [record.reasoning]
    if verdict.answer is not None:
        row["answer_attribution"] = [
            {
                "turn_idx": 0,
                "source": "output.raw",
                "extracted_value": str(verdict.answer),
                "extraction_method": _method(answer, record),
                "is_terminal": True,
            }
        ]
    else:
        row["error"] = _error(detail)
    if not verdict.outcome.about.scored:
        del row["evaluation_result_id"]
        row["evaluation_name"] += "/not_scored"
    prompt_tokens, output_tokens = record.prompt_tokens, record.output_tokens
    if prompt_tokens is not None and output_tokens is not None:
        row["token_usage"] = {
            "input_tokens": prompt_tokens,
            "output_tokens": output_tokens,
            "total_tokens": prompt_tokens + output_tokens,
        }
    if record.latency_s is not None:
        row["performance"] = {"latency_ms": round(1000 * record.latency_s, 3)}
    return row


def _method(answer: Answer, record: Record) -> str:
    """How the answer was read: from a reply, or by the probabilities of options."""
    if record.options is None:
        return f"eyechart {answer.type} after {answer.first_phrase!r}"
    return f"eyechart: most probable of {len(record.options)} options after {answer.first_phrase!r}"


def _metadata(evaluation: Evaluation, detail: Detail) -> dict[str, str]:
    record, verdict = detail.record, detail.verdict
    return {
        **strings(
            outcome=verdict.outcome.value,
            scored=verdict.outcome.about.scored,
            why=verdict.why or None,
            condition=record.condition.label,
        ),
        **strings(**{f"axis.{axis}": value for axis, value in record.condition.items()}),
        **strings(
            length=record.length,
            index=record.index,
            draw=record.draw,
            seed=evaluation.publishable.run.manifest.settings.seed,
            characters=record.chars,
            finish_reason=record.finish_reason,
            attempts=record.attempts,
            answered_by=record.model,
            prompt_hash=record.prompt_hash,
            signed_error=verdict.signed_error,
            similarity=verdict.similarity,
            first_divergence=verdict.first_divergence,
        ),
        **_choice(record),
    }


def _choice(record: Record) -> dict[str, str]:
    """What was chosen from, with log-probabilities; the right option is the first one."""
    if record.options is None:
        return {}
    found = ranked(record.options)
    options = [
        {"text": one.text, "logprob": one.logprob, "tokens": one.tokens} for one in record.options
    ]
    chance = round(1 / found.of, 6)
    return strings(options=options, rank=found.rank, margin=found.margin, chance=chance)


def _error(detail: Detail) -> str:
    """`truncated: cut off before the answer was whole`."""
    failure = detail.record.failure
    message = "" if failure is None else failure.message
    return f"{detail.verdict.outcome}: {message or detail.verdict.why}"


def _sample_hash(prompt: str, reference: list[str]) -> str:
    """The hash of prompt and target, computed as the coalition's own converters do it, so that the
    same sample can be found in records of other harnesses.
    """
    payload = json.dumps(
        {"raw": prompt, "reference": reference}, sort_keys=True, separators=(",", ":")
    )
    return hashlib.sha256(payload.encode()).hexdigest()
