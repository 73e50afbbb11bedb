"""The samples of a report, packed for the page: columns to filter by, and texts in chunks, which
the page unpacks when it shows them.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from eyechart.harness.analysis.samples.details import Detail, RemadePrompts, RunDetails, prompts_of
from eyechart.harness.report.page.cut_texts import cut_prompt
from eyechart.harness.spec.turns import conversation

CHUNK = 500
"""Samples whose texts are packed together."""


@dataclass
class PackedSamples:
    """The packed samples of all runs of a report, run after run."""

    columns: dict[str, list[int]] = field(
        default_factory=lambda: {
            name: [] for name in ("run", "cell", "outcome", "length", "index", "draw")
        }
    )
    """One entry for each sample: its place in `runs`, in the run's cells, in `OUTCOMES`; its
    length, its index and its draw."""
    runs: list[dict[str, Any]] = field(default_factory=list)
    chunks: list[str] = field(default_factory=list)
    """The texts of `CHUNK` samples each: base64 of gzip of a JSON list of lists, see `FIELDS`."""
    unknown: list[str] = field(default_factory=list)
    """Tasks whose prompts are not shown, with what helps, each once: `NAME are not shown: …`."""

    def enter(self, run: int, detail: Detail) -> None:
        """Adds a sample of the run at this place to the columns."""
        record, outcome = detail.record, detail.verdict.outcome.place
        values = run, detail.cell, outcome, record.length, record.index, record.draw
        for column, value in zip(self.columns.values(), values, strict=True):
            column.append(value)

    @property
    def index(self) -> str:
        """The columns, packed like the texts."""
        return pack(self.columns)


FIELDS = (
    *("id", "prompt", "reply", "reasoning", "thinking", "failure", "target", "answer"),
    *("start", "end", "why", "options", "logprobs"),
    *("prompt_tokens", "output_tokens", "latency_s"),
)
"""The values in the list of a sample, in order."""


MOST_SYMBOLS = 2_000_000
"""Symbols in all rows of a page, each row once, up to which each sample has its prompt."""
EXAMPLES = 5
"""Beyond that, the first samples of each cell and outcome that have theirs."""
_LEFT_OUT = (
    f"the rows of this page are long, so only the first {EXAMPLES} samples of each length and "
    "outcome have theirs; 'bench samples --full' prints it"
)


def pack_samples(runs: Sequence[tuple[str, RunDetails]]) -> PackedSamples:
    """Packs the samples of `runs`, which are pairs of a section's name and a run.

    A prompt is made again once, however many runs have its sample. Of long rows only some are, see
    `MOST_SYMBOLS`.
    """
    packed = PackedSamples()
    made: dict[tuple[str, str], str] = {}
    opened: dict[tuple[str, str, str], RemadePrompts] = {}
    rows = {_key(detail): detail.record.length for _, run in runs for detail in run.details}
    are_long = sum(rows.values()) > MOST_SYMBOLS

    def texts() -> Iterator[list[Any]]:
        for place, (section, run_details) in enumerate(runs):
            chosen = _examples(run_details.details) if are_long else run_details.details
            new = [one for one in chosen if one.record.prompt is None and _key(one) not in made]
            manifest = run_details.run.manifest
            task = manifest.task, manifest.task_digest, manifest.kept
            prompts = opened.get(task, RemadePrompts(None))
            if new:
                if prompts.task is None:
                    prompts = prompts_of(run_details.run)
                    opened[task] = prompts
                found = prompts.of(replace(run_details, details=new))
                for detail, prompt in zip(new, map(cut_prompt, found), strict=True):
                    if prompt is not None:
                        made[_key(detail)] = prompt
            packed.runs.append(_run(section, run_details, prompts.why or _LEFT_OUT * are_long))
            unknown = f"{manifest.task} are not shown: {prompts.remedy}"
            if prompts.remedy and unknown not in packed.unknown:
                packed.unknown.append(unknown)
            for detail in run_details.details:
                packed.enter(place, detail)
                yield _texts(detail, detail.record.prompt or made.get(_key(detail)))

    all_texts = texts()
    while chunk := list(islice(all_texts, CHUNK)):
        packed.chunks.append(pack(chunk))
    return packed


def _key(detail: Detail) -> tuple[str, str]:
    """What tells a prompt from all others: samples of two runs may have the same."""
    return detail.record.id, detail.record.prompt_hash


def _examples(details: Iterable[Detail]) -> list[Detail]:
    """The first samples of each cell and outcome."""
    counts: Counter[tuple[int, str]] = Counter()
    examples = []
    for detail in details:
        kind = detail.cell, detail.verdict.outcome
        counts[kind] += 1
        if counts[kind] <= EXAMPLES:
            examples.append(detail)
    return examples


def _run(section: str, run_details: RunDetails, why: str) -> dict[str, Any]:
    return {
        "section": section,
        "name": run_details.name,
        "seed": run_details.run.manifest.settings.seed,
        "why": why,
        "cells": [
            [cell.condition.label, str(cell.line)] for cell in run_details.run.manifest.cells
        ],
    }


def _texts(detail: Detail, prompt: str | None) -> list[Any]:
    record, verdict = detail.record, detail.verdict
    start, end = (_utf16(record.reply or "", place) for place in (verdict.start, verdict.end))
    failure = record.failure
    return [
        record.id,
        None if prompt is None else conversation(prompt, record.turns or ()),
        record.reply,
        record.reasoning or "",
        detail.thinking,
        (record.refusal or "") if failure is None else failure.message or failure.kind,
        str(record.target),
        None if verdict.answer is None else str(verdict.answer),
        start,
        end,
        verdict.why,
        detail.options,
        detail.logprobs,
        record.prompt_tokens,
        record.output_tokens,
        record.latency_s,
    ]


def _utf16(text: str, place: int) -> int:
    """A place in `text` as JavaScript counts it."""
    return len(text[:place].encode("utf-16-le", "surrogatepass")) // 2


def pack(value: object) -> str:
    """`value` as base64 of gzip of JSON; the same value gives the same text."""
    return packed(json.dumps(value, separators=(",", ":"), allow_nan=False))


def packed(text: str) -> str:
    """`text` as base64 of gzip; the same text gives the same."""
    return base64.b64encode(gzip.compress(text.encode(), compresslevel=6, mtime=0)).decode()
