"""The origin of a run, for the readers of a report: model, task, settings, software, cost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from eyechart.harness.analysis.findings.served import not_scored_text
from eyechart.harness.analysis.samples.details import RunDetails
from eyechart.harness.spec import exact_json


@dataclass(frozen=True)
class Origin:
    """The facts about one run, and the commands that made it."""

    section: str
    name: str
    facts: tuple[tuple[str, str], ...]
    commands: tuple[str, ...]


def origin(section: str, run_details: RunDetails) -> Origin:
    """The origin of a run; facts that are not known are left out."""
    facts = ((name, value) for name, value in _facts(run_details) if value)
    commands = run_details.run.manifest.commands
    return Origin(section, run_details.name, tuple(facts), tuple(commands))


def _facts(run_details: RunDetails) -> Iterator[tuple[str, str]]:
    manifest = run_details.run.manifest
    yield "model", manifest.model
    yield "asked as", manifest.served_as
    yield "answered by", ", ".join(manifest.answered_by)
    yield "task", f"{manifest.task} version {manifest.task_version}"
    yield "task digest", manifest.task_digest[:16]
    yield "dataset fingerprint", run_details.run.fingerprint() or "not complete"
    if manifest.recorded is not None:
        yield "recorded", str(manifest.recorded).removeprefix("recorded ")
    settings = {name: _value_text(value) for name, value in manifest.settings.given().items()}
    if manifest.settings.max_tokens is None and manifest.recorded is None:
        settings["max_tokens"] = "auto"
    yield "settings", ", ".join(f"{name} {value}" for name, value in settings.items() if value)
    yield (
        "server",
        ", ".join(f"{name} {_value_text(value)}" for name, value in manifest.server.items()),
    )
    yield "accepted without knowing its model", ", ".join(manifest.accepted)
    yield "software", ", ".join(f"{name} {value}" for name, value in manifest.software.items())
    yield "begun", manifest.created
    yield "last written", manifest.updated
    cells = run_details.run.cells
    yield "samples", f"{int(cells['n'].sum()):,} scored"
    yield "not scored", not_scored_text(run_details.run)
    samples = run_details.samples
    prompt, output = (float(samples[name].sum()) for name in ("prompt_tokens", "output_tokens"))
    if prompt or output:
        yield "tokens", f"{prompt:,.0f} of prompts, {output:,.0f} of replies"
    if (spent := run_details.run.cost) is not None:
        missing = f", without {spent.unknown:,} replies of unknown size" if spent.unknown else ""
        yield "cost", f"{spent} at the prices of {spent.prices_of}, retries not counted{missing}"


def _value_text(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return exact_json.dumps(value).decode()
