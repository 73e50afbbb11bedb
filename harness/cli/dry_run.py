"""`bench run --dry-run`: the requests and the cost of the runs, and a prompt of each run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from eyechart.harness.analysis.power import FROM, POWER
from eyechart.harness.cli.documents import print_document
from eyechart.harness.cli.dry_run_document import dry_run_document
from eyechart.harness.cli.preview import (
    CanShow,
    Forecasts,
    Preview,
    can_show,
    not_known,
    previews_of,
)
from eyechart.harness.cli.terminal import echo, take_logs
from eyechart.harness.errors import COMPLETE
from eyechart.harness.face.run_options import RunOptions
from eyechart.harness.plan.estimate import Forecast
from eyechart.harness.plan.forced_choice import ForcedChoice
from eyechart.harness.plan.plan import Plan
from eyechart.harness.run.room import MOST
from eyechart.harness.run.run_request import RunRequest
from eyechart.harness.spec import Sample
from eyechart.harness.spec.dollars import at_most_text, dollars_text
from eyechart.providers.catalog.model_facts import known_not_to_reason

if TYPE_CHECKING:
    from eyechart.harness.face.adaptive import AdaptiveChooser

_BEGINNING, _END = 1000, 500
"""Characters of a long prompt that are shown, at its beginning and at its end."""
_HALF_CENT = 0.005
_NEAR = 0.05
"""Accuracies whose distance to `FROM` is smaller are shown in tenths of a percent."""


def dry_run(
    plans: Sequence[Plan],
    models: Sequence[RunOptions],
    chooser: AdaptiveChooser | None = None,
    *,
    asks_server: bool = False,
    as_json: bool = False,
) -> int:
    """Prints for each model the requests and the cost of the runs, and a prompt of each; sends
    nothing, unless `asks_server`. With a `chooser`, the requests are those of all waves up to the
    next one.
    """
    take_logs()
    made: Forecasts = {}
    if as_json:
        found = (
            (options, previews_of(plans, options, chooser, made, asks_server=asks_server))
            for options in models
        )
        print_document(dry_run_document(found))
        return COMPLETE
    for options in models:
        previews = previews_of(plans, options, chooser, made, asks_server=asks_server)
        for preview in previews:
            _show(preview, options)
        if (where := options.destination) is not None:
            echo(f"asked at: {where}")
        _show_cost(
            options, [preview.forecast for preview in previews], is_adaptive=chooser is not None
        )
        if unknown := not_known(options, asks_server=asks_server):
            echo(unknown)
    return COMPLETE


def _show(preview: Preview, options: RunOptions) -> None:
    is_fresh = options.given.fresh
    request, run_forecast = preview.request, preview.forecast
    plan, spec = request.plan, request.plan.task.spec
    rule = (
        "counted"
        if run_forecast.exact
        else "counted in a few samples of each cell"
        if run_forecast.counted
        else "estimated: one a digit or sign, one per five letters"
    )
    first = next(iter(plan))
    cells = (
        f"those of shard {plan.shard} of {plan.samples} a cell"
        if not plan.shard.is_whole
        else f"{plan.samples} a cell"
        if plan.counts is None
        else "the first wave"
        if is_fresh or not preview.answered
        else "with the next wave"
        if preview.answered < run_forecast.requests
        else "all waves"
    )
    drawn = f", each asked {plan.draws:,} times" if plan.draws > 1 else ""
    thought = run_forecast.thought_tokens
    of_them = f" ({thought:,} of them for thinking)" if thought else ""
    replies = "the options of each are not counted, and no reply is written"
    if preview.writes_replies:
        replies = (
            f"about {run_forecast.output_tokens:,}{of_them} and at most "
            f"{run_forecast.most_output_tokens:,} of replies"
        )
    rows = [
        ("model", request.model.label),
        ("conditions", str(len(plan.conditions))),
        *(("", condition.label) for condition in plan.conditions),
        ("lengths", ", ".join(map(str, plan.lines))),
        ("requests", f"{plan.size:,} ({cells}{drawn}){_left(preview, is_fresh=is_fresh)}"),
        *(
            [("adaptive", str(preview.waves))]
            if preview.waves
            else zip(("can show", "", ""), _can_show(can_show(plan)), strict=True)
        ),
        *([("turns", _turns(preview, is_fresh=is_fresh))] if plan.task.in_turns else []),
        ("characters", f"{run_forecast.characters:,}"),
        ("tokens", f"{run_forecast.prompt_tokens:,} of prompts ({rule}), {replies}"),
        *([] if preview.writes_replies else [("read", _read(request, first))]),
        *([("thinking", thinking)] if (thinking := _thinking(preview, options)) else []),
    ]
    if request.model.prices is not None:
        expected, most = run_forecast.dollars(request.model.prices)
        at = f"at {request.model.prices}"
        rows.append(("cost", f"{cost_text(expected, most)}, {at}"))
    rows += [
        ("too long", f"{condition.label} at length {line}: {fit}")
        for (condition, line), fit in preview.fits.items()
        if str(fit)
    ]
    rows += [
        ("too long", f"{condition.label} at length {line}: {fit.may_be_too_long}")
        for (condition, line), fit in preview.fits.items()
        if fit.may_be_too_long
    ]
    rows += [
        ("cut off", f"{condition.label} at length {line}: {fit.may_be_cut}")
        for (condition, line), fit in preview.fits.items()
        if fit.may_be_cut
    ]
    rows += [("run folder", str(request.folder)), ("sample", first.id)]
    echo(f"{request.name}@{spec.version}: {spec.title}")
    echo(*(f"  {key:<11} {value}" for key, value in rows))
    echo(*(f"    | {line}" for line in _shown(first).split("\n")), "")


def _turns(preview: Preview, *, is_fresh: bool) -> str:
    """What the turns of samples take, and how many of them are left."""
    turns, answered = preview.forecast.turns, 0 if is_fresh else preview.answered_turns
    left = f", of which {max(0, turns - answered):,} are left" if answered else ""
    return f"{turns:,} requests in all{left}; each turn is one, and sends all that was said before"


def _read(request: RunRequest, first: Sample) -> str:
    """Among how many options the first sample is read."""
    options = ForcedChoice(request.plan.task, request.plan.seed).options(first)
    return f"by likelihood, the first sample over {len(options)} options"


def _thinking(preview: Preview, options: RunOptions) -> str:
    """How much thinking is in the forecast; "" where it does not think, or writes nothing."""
    if not preview.writes_replies:
        return ""
    found = preview.thinking
    if not found.is_known:
        return f"not counted; a model that shows it gets up to {MOST:,} tokens" * may_think(options)
    source = f"the mean of {found.seen:,} earlier replies" if found.seen else "assumed"
    fixed = options.settings.max_tokens
    usual = f"usually {min(found.likely, fixed or found.likely):,} tokens a reply ({source})"
    if found.most is None:
        return f"{usual}; at most {fixed:,} with the answer"
    return (
        f"{usual}; at most {found.most:,} with the answer, and what was cut off before; "
        "--max-tokens sets another limit"
    )


def may_think(options: RunOptions) -> bool:
    """Whether replies may show that a model thinks: it is not known to answer at once."""
    name, settings = options.name, options.settings
    is_asked = options.destination is not None or name.descriptor.thinking(())
    is_off = settings.thinking == "off" or settings.max_tokens is not None
    return bool(is_asked) and not is_off and not known_not_to_reason(name.label)


def cost_text(expected: float, most: float) -> str:
    """`about $1.20, at most $4.00`: an expected cost and the worst case, which is rounded up."""
    about = "less than $0.01" if 0 < expected < _HALF_CENT else f"about {dollars_text(expected)}"
    return f"{about}, at most {at_most_text(most)}"


def _of_budget(budget: float, expected: float, most: float) -> str:
    """Whether a budget pays for what is planned."""
    given = f"the budget of {dollars_text(budget)}"
    if most <= budget:
        return f"{given} pays for all of it"
    if expected <= budget:
        return f"{given} probably pays for all of it, and not for the worst case"
    return f"{given} is spent before all of it is asked; a new one goes on"


def _shown(sample: Sample) -> str:
    """The prompt; for a long one, its beginning and end, and how to see all of it."""
    prompt = sample.prompt
    between = len(prompt) - _BEGINNING - _END
    if between <= _END:
        return prompt
    left_out = f"[… {between:,} characters; 'bench tasks sample ID' prints the whole prompt …]"
    return f"{prompt[:_BEGINNING]}\n{left_out}\n{prompt[-_END:]}"


def _can_show(found: CanShow) -> tuple[str, str, str]:
    """What a comparison can show, in three lines."""
    better = f"{100 * FROM:g} %"
    tests = f"{found.tests} tests" if found.tests > 1 else "1 test"
    at_length = (
        f"at one length no fall from {better}: these are too few samples"
        if found.fall is None
        else f"at one length a fall from {better} to {_percent(FROM - found.fall)} or lower"
    )
    in_length = (
        "in effective length no factor within the tested range"
        if found.factor is None
        else f"in effective length a factor of about {found.factor:.2g} or more"
    )
    sure = f"with a power of {100 * POWER:g} %, as 'bench compare' corrects for {tests}:"
    return sure, at_length, in_length


def _percent(share: float) -> str:
    """The percentage, rounded down: to tenths where it is near to that of `FROM`."""
    steps = 1 if FROM - share > _NEAR else 10
    return f"{math.floor(round(100 * steps * share, 6)) / steps:g} %"


def _left(preview: Preview, *, is_fresh: bool) -> str:
    """The note on how many samples have answers, do not fit, and will be asked; or empty."""
    request = preview.request
    size, unsent = request.plan.size, request.plan.size - preview.forecast.requests
    answered = 0 if is_fresh else preview.answered
    why = [
        *[f"{answered:,} {'is' if answered == 1 else 'are'} answered"] * bool(answered),
        *[f"{unsent:,} {'does' if unsent == 1 else 'do'} not fit"] * bool(unsent),
    ]
    if not why:
        return ""
    return f"; {' and '.join(why)}, so {max(0, size - answered - unsent):,} will be asked"


def _show_cost(options: RunOptions, forecasts: Sequence[Forecast], *, is_adaptive: bool) -> None:
    """Prints the cost of all runs; with `is_adaptive`, that of all waves up to the next ones."""
    model, prices = options.model, options.model.prices
    if prices is not None:
        costs = [forecast.dollars(prices) for forecast in forecasts]
        expected, most = map(sum, zip(*costs, strict=True))
        assumed = "" if model.has_tier_price else f"; no {prices.tier} price is known"
        what = "these requests, without later waves" if is_adaptive else "all"
        echo(f"cost of {what}: {cost_text(expected, most)}, at {prices}{assumed}")
        if options.given.budget is not None:
            echo(_of_budget(options.given.budget, expected, most))
    elif not options.name.descriptor.is_free and not options.given.base_url:
        echo(f"cost: unknown, there are no prices of {model.label} in the list of genai-prices")
