"""Cuts long texts of a sample for a page, so that the page stays readable and small."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from eyechart.harness.analysis.samples.details import Detail
from eyechart.harness.analysis.samples.probabilities import logprobs_text, options_text
from eyechart.harness.analysis.samples.shortening import marked, shortened
from eyechart.harness.journal.thoughts import thinking_text

MOST = 20_000
"""Characters of a reply, its reasoning or a prompt that a page shows."""
_WHERE = " left out; the run's samples.jsonl has them"
_OF_PROMPT = " left out; 'bench samples --full' prints them"


def cut_prompt(prompt: str | None) -> str | None:
    """A prompt with its middle left out where it is long."""
    return _cut(prompt, _OF_PROMPT)


def cut_detail(detail: Detail) -> Detail:
    """A sample without the middle of long texts, its answer marked, probabilities as texts."""
    record, verdict = detail.record, detail.verdict
    reply = record.reply
    if reply is not None and len(reply) > MOST:
        parts = marked(reply, verdict.start, verdict.end, MOST, _WHERE)
        reply = "".join(part for part, _ in parts)
        if len(parts) > 1:
            start = len(parts[0][0])
            verdict = replace(verdict, start=start, end=start + len(parts[1][0]))
    if isinstance(verdict.answer, str):
        verdict = replace(verdict, answer=shortened(verdict.answer, MOST, _WHERE))
    failure = record.failure
    if failure is not None:
        message = shortened(failure.message, MOST, _WHERE)
        failure = msgspec.structs.replace(failure, message=message)
    record = msgspec.structs.replace(
        record,
        reply=reply,
        reasoning=_cut(record.reasoning),
        refusal=_cut(record.refusal),
        prompt=cut_prompt(record.prompt),
        failure=failure,
        options=None,
        logprobs=None,
        top_logprobs=None,
    )
    options, logprobs = (
        shortened(text(detail.record), MOST, _WHERE) for text in (options_text, logprobs_text)
    )
    return Detail(detail.cell, record, verdict, thinking_text(detail.record), options, logprobs)


def _cut(text: str | None, where: str = _WHERE) -> str | None:
    return None if text is None else shortened(text, MOST, where)
