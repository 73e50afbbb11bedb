"""`bench run --dry-run`: the requests and the cost of the runs, and a prompt of each run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from harness.analysis.power import FROM, POWER, smallest_factor, smallest_fall
from harness.cli.terminal import echo, take_logs, warn
from harness.errors import COMPLETE
from harness.face.run_options import RunOptions
from harness.journal.writer import Journal
from harness.plan.context_fit import CellFit, context_fits
from harness.plan.cost import Budget
from harness.plan.estimate import Forecast, forecast
from harness.plan.plan import Plan
from harness.run.chooser import first_plan
from harness.run.event_loop import run_in_loop
from harness.run.run_request import RunRequest
from harness.spec import CellKey, line_start
from providers.base import Provider, SetupError

if TYPE_CHECKING:
    from harness.cli.adaptive import AdaptiveChooser

_NEAR = 0.05
"""Falls below it are shown in tenths of a percent."""


@dataclass(frozen=True, slots=True)
class _Preview:
    """The requests of one run, with their forecast."""

    request: RunRequest
    forecast: Forecast
    fits: Mapping[CellKey, CellFit]
    goes_on: str = ""
    """What follows the requests, in an adaptive run."""


def dry_run(
    plans: Sequence[Plan], options: RunOptions, chooser: AdaptiveChooser | None = None
) -> int:
    """Prints the requests and the cost of the runs, and a prompt of each; sends nothing. With a
    `chooser` the requests are those of the first wave.
    """
    requests = options.requests(plans)
    goes_on = [""] * len(requests)
    if chooser is not None:
        goes_on = [_goes_on(request, options, chooser) for request in requests]
        requests = [
            replace(request, plan=_first_plan(request, options, chooser)) for request in requests
        ]
    counter = _counter(options, requests)
    take_logs()
    previews = run_in_loop(_previews(requests, counter))
    for preview, text in zip(previews, goes_on, strict=True):
        _show(replace(preview, goes_on=text), is_fresh=options.fresh)
    _show_cost(options, [preview.forecast for preview in previews], is_first=chooser is not None)
    return COMPLETE


def _first_plan(request: RunRequest, options: RunOptions, chooser: AdaptiveChooser) -> Plan:
    """The first wave; with `--fresh` that of a run that has nothing yet."""
    if options.fresh:
        return request.plan.with_counts(chooser.of_new_run(request, options.max_requests))
    return first_plan(request, chooser, Budget(requests=options.max_requests))


def _goes_on(request: RunRequest, options: RunOptions, chooser: AdaptiveChooser) -> str:
    """What follows the first wave of an adaptive run."""
    most, may_grow = chooser.most(request, is_fresh=options.fresh)
    limit = f"{most:,} samples of this task"
    if options.max_requests is not None and (options.max_requests < most or may_grow):
        limit = f"{options.max_requests:,} of the command"
    elif may_grow:
        limit += ", and as many a line on longer lines, if the server says that its window has room"
    return (
        "each wave follows from the replies before it, until the effective length is known to "
        f"{options.precision:g} octaves; at most {limit}; tokens and cost below are of the first "
        "wave"
    )


def _counter(options: RunOptions, requests: Sequence[RunRequest]) -> Provider | None:
    """A provider that counts tokens without cost: the embedded model, or vLLM servers that run."""
    provider = options.model.provider
    if provider != "tiny" and not (provider == "vllm" and options.base_urls):
        return None
    with suppress(SetupError):
        return options.open_provider(requests)
    return None


async def _previews(requests: Sequence[RunRequest], counter: Provider | None) -> list[_Preview]:
    """A preview of each run; closes `counter`."""
    try:
        server = {} if counter is None else await counter.facts()
        return [await _preview(request, server, counter) for request in requests]
    finally:
        if counter is not None:
            await counter.aclose()


async def _preview(
    request: RunRequest, server: Mapping[str, object], counter: Provider | None
) -> _Preview:
    plan, model, settings = request.plan, request.model, request.settings
    fits = await context_fits(plan, model, server, counter, settings.max_tokens)
    run_forecast = await forecast(
        plan,
        max_tokens=settings.max_tokens,
        think_tokens=model.think_tokens,
        counter=counter,
        system=settings.system,
        fits=fits,
    )
    return _Preview(request, run_forecast, fits)


def _show(preview: _Preview, *, is_fresh: bool) -> None:
    request, run_forecast = preview.request, preview.forecast
    plan, spec = request.plan, request.plan.task.spec
    rule = (
        "counted" if run_forecast.exact else "estimated: one a digit or sign, one per five letters"
    )
    first = next(iter(plan))
    cells = (
        f"{plan.samples} a cell"
        if plan.counts is None
        else "the samples of the run"
        if request.repeat
        else "the first wave"
    )
    replies = (
        f"about {run_forecast.output_tokens:,} and at most "
        f"{run_forecast.most_output_tokens:,} of replies"
    )
    rows = [
        ("model", request.model.label),
        ("conditions", str(len(plan.conditions))),
        *(("", condition.label) for condition in plan.conditions),
        ("lengths", ", ".join(map(str, plan.lines))),
        ("requests", f"{plan.size:,} ({cells}){'' if is_fresh else _answered(request)}"),
        *(
            [("adaptive", preview.goes_on)]
            if preview.goes_on
            else zip(("can show", "", ""), _can_show(plan), strict=True)
        ),
        ("characters", f"{run_forecast.characters:,}"),
        ("tokens", f"{run_forecast.prompt_tokens:,} of prompts ({rule}), {replies}"),
    ]
    if request.model.prices is not None:
        expected, most = run_forecast.dollars(request.model.prices)
        rows.append(("cost", f"about ${expected:.2f}, at most ${most:.2f}"))
    rows += [
        ("too long", f"{condition.label} at length {line}: {fit}")
        for (condition, line), fit in preview.fits.items()
        if str(fit)
    ]
    rows += [("run folder", str(request.folder)), ("sample", first.id)]
    echo(f"{request.name}@{spec.version}: {spec.title}")
    echo(*(f"  {key:<11} {value}" for key, value in rows))
    echo(*(f"    | {line}" for line in first.prompt.split("\n")), "")


def _can_show(plan: Plan) -> tuple[str, str, str]:
    """What a comparison of two such runs finds with a power of 80 %."""
    sizes, better = plan.sizes, f"{100 * FROM:g} %"
    tests = f"{len(sizes)} tests" if len(sizes) > 1 else "1 test"
    fall = smallest_fall(min(sizes.values()), len(sizes))
    at_length = (
        f"at one length no fall from {better}: these are too few samples"
        if fall is None
        else f"at one length a fall from {better} to {_percent(FROM - fall)} or lower"
    )
    first = plan.conditions[0]
    lines = [(line, size) for (condition, line), size in sizes.items() if condition == first]
    factor = smallest_factor(tuple(lines))
    in_length = (
        "in effective length no factor within the tested range"
        if factor is None
        else f"in effective length a factor of about {factor:.2g} or more"
    )
    sure = f"with a power of {100 * POWER:g} %, as 'bench compare' corrects for {tests}:"
    return sure, at_length, in_length


def _percent(share: float) -> str:
    """The percentage, rounded down: to tenths where it is near to that of `FROM`."""
    steps = 1 if FROM - share > _NEAR else 10
    return f"{math.floor(round(100 * steps * share, 6)) / steps:g} %"


def _answered(request: RunRequest) -> str:
    """The note on how many samples of the plan have answers; empty if none has."""
    plan = request.plan
    start = line_start(plan.seed, plan.task.name)
    answers = Journal(request.folder, warn).answered(plan.lines, start)
    answered = sum(answers.count_in(key, size) for key, size in plan.sizes.items())
    again = f" again, for repeat {request.repeat}" if request.repeat else ""
    if not answered:
        return f"; all are asked{again}" if again else ""
    return f"; {answered:,} are answered, so {plan.size - answered:,} will be asked{again}"


def _show_cost(options: RunOptions, forecasts: Sequence[Forecast], *, is_first: bool) -> None:
    """Prints the cost of all runs; with `is_first` that of their first waves."""
    model, prices = options.model, options.model.prices
    if prices is not None:
        costs = [forecast.dollars(prices) for forecast in forecasts]
        expected, most = map(sum, zip(*costs, strict=True))
        price_kind = "batch " if options.batch and model.has_batch_price else ""
        assumed = "; no batch price is known" if options.batch and not price_kind else ""
        what = "the first waves, without later ones" if is_first else "all"
        echo(
            f"cost of {what}: about ${expected:.2f}, at most ${most:.2f}, "
            f"at the {price_kind}prices of {prices.as_of}{assumed}"
        )
    elif model.provider not in ("tiny", "oracle", "scripted", "vllm") and not options.base_urls:
        echo(f"cost: unknown, providers/catalog/models.yaml has no prices of {model.label}")
