"""The samples of a report, packed for its browser: columns to filter by, and texts in pieces that
are unpacked one by one as they are looked at.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from harness.analysis.details import Detail, Prompts, RunDetails, prompts_of
from harness.columns import OUTCOMES

CHUNK = 500
"""Samples whose texts are packed together."""


@dataclass
class Paged:
    """All samples of a report, run after run."""

    columns: dict[str, list[int]] = field(
        default_factory=lambda: {"run": [], "cell": [], "outcome": []}
    )
    """One entry a sample in each: places in `runs`, in the run's cells, in `OUTCOMES`."""
    runs: list[dict[str, Any]] = field(default_factory=list)
    chunks: list[str] = field(default_factory=list)
    """Texts of `CHUNK` samples each: base64 of gzip of a JSON list of lists, see `FIELDS`."""
    unknown: list[str] = field(default_factory=list)
    """Tasks whose files are not at hand, each once."""

    @property
    def index(self) -> str:
        """The columns, packed as the texts are."""
        return pack(self.columns)


FIELDS = (
    "id",
    "prompt",
    "reply",
    "reasoning",
    "failure",
    "target",
    "answer",
    "start",
    "end",
    "why",
    "prompt_tokens",
    "output_tokens",
    "latency_s",
)
"""What a sample's list holds, in order."""


def paged(runs: Iterable[tuple[str, RunDetails]], tasks: str = "") -> Paged:
    """The samples of runs that are given with the names of their sections."""
    made = Paged()

    def texts() -> Iterator[list[Any]]:
        for place, (section, shown) in enumerate(runs):
            prompts = prompts_of(shown.run, tasks)
            made.runs.append(_run(section, shown, prompts))
            task = shown.run.manifest.task
            if prompts.absent and task not in made.unknown:
                made.unknown.append(task)
            for detail, prompt in zip(shown.details, prompts.of(shown), strict=True):
                made.columns["run"].append(place)
                made.columns["cell"].append(detail.cell)
                made.columns["outcome"].append(OUTCOMES.index(detail.verdict.outcome))
                yield _texts(detail, prompt)

    every = texts()
    while chunk := list(islice(every, CHUNK)):
        made.chunks.append(pack(chunk))
    return made


def _run(section: str, shown: RunDetails, prompts: Prompts) -> dict[str, Any]:
    return {
        "section": section,
        "name": shown.name,
        "why": prompts.why,
        "cells": [[cell.condition.label, cell.length] for cell in shown.run.manifest.cells],
    }


def _texts(detail: Detail, prompt: str | None) -> list[Any]:
    record, verdict = detail.record, detail.verdict
    start, end = (_utf16(record.reply or "", place) for place in (verdict.start, verdict.end))
    failure = record.failure
    return [
        record.id,
        prompt,
        record.reply,
        record.reasoning or "",
        (record.refusal or "") if failure is None else failure.message or failure.kind,
        str(record.target),
        None if verdict.answer is None else str(verdict.answer),
        start,
        end,
        verdict.why,
        record.prompt_tokens,
        record.output_tokens,
        record.latency_s,
    ]


def _utf16(text: str, place: int) -> int:
    """A place in `text` as JavaScript counts it."""
    return len(text[:place].encode("utf-16-le", "surrogatepass")) // 2


def pack(value: object) -> str:
    """`value` as base64 of gzip of JSON; the same value gives the same text."""
    said = json.dumps(value, separators=(",", ":"), allow_nan=False).encode()
    return base64.b64encode(gzip.compress(said, compresslevel=6, mtime=0)).decode()
