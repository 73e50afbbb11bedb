"""A dry run as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from eyechart.harness.analysis.comparison.power import FROM, POWER
from eyechart.harness.cli.work.dry_run.preview import Preview, can_show, dollars_of, first_sample
from eyechart.harness.cli.work.tasks import sample_document
from eyechart.harness.face.options.run_options import RunOptions
from eyechart.harness.spec import CellKey


def dry_run_document(previews: Iterable[tuple[RunOptions, Sequence[Preview]]]) -> Mapping[str, Any]:
    """The cost of each model, and each run; `previews` has the runs of each model."""
    models: list[dict[str, Any]] = []
    runs: list[dict[str, Any]] = []
    for options, of_model in previews:
        models.append(_model(options, of_model))
        runs += map(_run, of_model)
    return {"models": models, "runs": runs}


def _model(options: RunOptions, previews: Sequence[Preview]) -> dict[str, Any]:
    model, prices = options.model, options.model.prices
    dollars, most = dollars_of(prices, previews) or (None, None)
    return {
        "model": model.label,
        "dollars": dollars,
        "most_dollars": most,
        "prices": None if prices is None else str(prices),
        "tier_prices": model.has_tier_price,
    }


def _run(preview: Preview) -> dict[str, Any]:
    """A run of the plan: its conditions, lines, tokens and dollars, and its first sample."""
    request, forecast, waves = preview.request, preview.forecast, preview.waves
    plan, prices = request.plan, request.model.prices
    sample, writes = first_sample(plan), preview.writes_replies
    dollars, most = (None, None) if prices is None else forecast.dollars(prices)
    return {
        "model": request.model.label,
        "task": request.name,
        "task_version": plan.task.spec.version,
        "draws": plan.draws,
        "shard": "" if plan.shard.is_whole else str(plan.shard),
        "settings": request.settings.given(),
        "folder": request.folder,
        "requests": plan.size,
        "fitting": forecast.requests,
        "turns": forecast.turns,
        "answered": preview.answered,
        "answered_turns": preview.answered_turns,
        "cells": [_cell(preview, key, size) for key, size in plan.sizes.items()],
        "characters": forecast.characters,
        "tokens_are_counted": forecast.exact,
        "prompt_tokens": forecast.prompt_tokens,
        "output_tokens": forecast.output_tokens if writes else 0,
        "thought_tokens": forecast.thought_tokens if writes else 0,
        "most_output_tokens": forecast.most_output_tokens if writes else 0,
        "thinking": asdict(preview.thinking) if preview.thinking.is_known else None,
        "dollars": dollars,
        "most_dollars": most,
        "adaptive": None if waves is None else asdict(waves),
        "can_show": None
        if waves is not None
        else {"power": POWER, "from_accuracy": FROM, **asdict(can_show(plan))},
        "sample": {
            **sample_document(plan.task, sample),
            "system": request.settings.system,
            "characters": len(sample.prompt),
        },
    }


def _cell(preview: Preview, key: CellKey, size: int) -> dict[str, Any]:
    condition, line = key
    fit = preview.fits.get(key)
    return {
        "condition": condition,
        "length": line.length,
        "low": line.low,
        "high": line.high,
        "samples": size,
        "too_long": "" if fit is None else str(fit),
        "may_be_too_long": "" if fit is None else fit.may_be_too_long,
        "may_be_cut": "" if fit is None else fit.may_be_cut,
    }
