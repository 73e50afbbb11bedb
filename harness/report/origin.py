"""What produced a run, for those who read its report."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from harness import exact_json
from harness.analysis.details import RunDetails
from harness.analysis.judged_run import NOT_SCORED
from harness.plan.cost import cost
from providers.catalog.model_facts import model_facts


@dataclass(frozen=True)
class Origin:
    """One run's."""

    section: str
    name: str
    facts: tuple[tuple[str, str], ...]
    commands: tuple[str, ...]


def origin(section: str, shown: RunDetails) -> Origin:
    """All that is known of what made it."""
    facts = ((name, said) for name, said in _facts(shown) if said)
    return Origin(section, shown.name, tuple(facts), tuple(shown.run.manifest.commands))


def _facts(shown: RunDetails) -> Iterator[tuple[str, str]]:
    manifest = shown.run.manifest
    yield "model", manifest.model
    yield "answered by", ", ".join(manifest.answered_by)
    yield "task", f"{manifest.task} version {manifest.task_version}"
    yield "task digest", manifest.task_digest[:16]
    yield "dataset fingerprint", manifest.fingerprint or "not complete"
    settings = {name: _said(value) for name, value in manifest.settings.items()}
    if manifest.settings.get("max_tokens") is None:
        settings["max_tokens"] = "auto"
    yield "settings", ", ".join(f"{name} {value}" for name, value in settings.items() if value)
    yield "server", ", ".join(f"{name} {_said(value)}" for name, value in manifest.server.items())
    yield "software", ", ".join(f"{name} {value}" for name, value in manifest.software.items())
    yield "begun", manifest.created
    yield "last written", manifest.updated
    cells = shown.run.cells
    yield "samples", f"{int(cells['n'].sum()):,} scored"
    yield (
        "not scored",
        ", ".join(f"{name.replace('_', ' ')} {int(cells[name].sum()):,}" for name in NOT_SCORED),
    )
    samples = shown.samples
    prompt, output = (float(samples[name].sum()) for name in ("prompt_tokens", "output_tokens"))
    if prompt or output:
        yield "tokens", f"{prompt:,.0f} of prompts, {output:,.0f} of replies"
    prices = model_facts(manifest.model).prices
    if prices is not None:
        spent = cost(prices, prompt, output)
        yield "cost", f"${spent:,.4f} at the list prices of {prices.as_of}, retries not counted"


def _said(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return exact_json.dumps(value).decode()
