"""The samples of a run in the schema of "Every Eval Ever": a line of JSON each.

The schema knows right and wrong only. What is no answer says so where it can: an `error` that names
the outcome, nothing extracted, and its outcome among the metadata. A sample without a reply was
never scored; it belongs to no result, so that whoever averages what belongs to one, by its id or by
its name, gets the accuracy in the table.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator

from harness import exact_json
from harness.analysis.details import Detail
from harness.analysis.judged_run import NOT_SCORED
from harness.export.every_eval_ever.aggregate import (
    SCHEMA_VERSION,
    Evaluation,
    Json,
    result_id,
    strings,
)

_LINE_ENDS = {
    character.encode(): f"\\u{ord(character):04x}".encode() for character in "\x85\u2028\u2029"
}
"""What ends a line for some readers of text, and so must not stand in a line of JSON as it is."""


def lines(
    evaluation: Evaluation, details: Iterable[Detail], prompts: Iterable[str]
) -> Iterator[bytes]:
    """A line a sample that has a record; `prompts` are theirs."""
    for detail, prompt in zip(details, prompts, strict=True):
        line = exact_json.dumps(_row(evaluation, detail, prompt)) + b"\n"
        for character, escaped in _LINE_ENDS.items():
            line = line.replace(character, escaped)
        yield line


def _row(evaluation: Evaluation, detail: Detail, prompt: str) -> Json:
    record, verdict = detail.record, detail.verdict
    answer = evaluation.spec.answer
    label = record.condition.label
    reference = [str(record.target)]
    row: Json = {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": evaluation.id,
        "model_id": evaluation.model.id,
        "evaluation_name": evaluation.name_of(label, record.length),
        "evaluation_result_id": result_id(label, record.length, "accuracy"),
        "sample_id": record.id,
        "sample_hash": _sample_hash(prompt, reference),
        "interaction_type": "single_turn",
        "input": {"raw": prompt, "reference": reference},
        "output": {"raw": [record.reply] if record.reply is not None else []},
        "answer_attribution": [],
        "evaluation": {
            "score": 1.0 if verdict.outcome == "correct" else 0.0,
            "is_correct": verdict.outcome == "correct",
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
                "extraction_method": f"eyechart {answer.type} after {answer.phrase!r}",
                "is_terminal": True,
            }
        ]
    else:
        row["error"] = _error(detail)
    if verdict.outcome in NOT_SCORED:
        del row["evaluation_result_id"]
        row["evaluation_name"] += "/not_scored"
    asked = record.prompt_tokens
    said = record.output_tokens
    if asked is not None and said is not None:
        row["token_usage"] = {
            "input_tokens": asked,
            "output_tokens": said,
            "total_tokens": asked + said,
        }
    if record.latency_s is not None:
        row["performance"] = {"latency_ms": round(1000 * record.latency_s, 3)}
    return row


def _metadata(evaluation: Evaluation, detail: Detail) -> dict[str, str]:
    record, verdict = detail.record, detail.verdict
    return {
        **strings(
            outcome=verdict.outcome,
            scored=verdict.outcome not in NOT_SCORED,
            why=verdict.why or None,
            condition=record.condition.label,
        ),
        **strings(**{f"axis.{axis}": value for axis, value in record.condition.items()}),
        **strings(
            length=record.length,
            index=record.index,
            seed=evaluation.of.run.manifest.settings.get("seed"),
            characters=record.chars,
            finish_reason=record.finish_reason,
            attempts=record.attempts,
            answered_by=record.model,
            prompt_hash=record.prompt_hash,
            signed_error=verdict.signed_error,
            similarity=verdict.similarity,
            first_divergence=verdict.first_divergence,
        ),
    }


def _error(detail: Detail) -> str:
    """`truncated: cut off before the answer was whole`."""
    failure = detail.record.failure
    message = "" if failure is None else failure.message
    return f"{detail.verdict.outcome}: {message or detail.verdict.why}"


def _sample_hash(prompt: str, reference: list[str]) -> str:
    """Of prompt and target, by the recipe of the coalition's own converters, so that the same
    sample is found again in records of other harnesses.
    """
    said = json.dumps(
        {"raw": prompt, "reference": reference}, sort_keys=True, separators=(",", ":")
    )
    return hashlib.sha256(said.encode()).hexdigest()
