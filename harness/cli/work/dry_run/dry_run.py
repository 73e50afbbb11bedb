"""`bench run --dry-run`: the requests and the cost of the runs, and a prompt of each run; in words,
or as the document of `--json`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import TypeAlias

from eyechart.harness.analysis.comparison.power import FROM, POWER
from eyechart.harness.cli.documents import print_document
from eyechart.harness.cli.failures import FAILURES, explain, lines_of
from eyechart.harness.cli.tables.layout import Column, show_blocks
from eyechart.harness.cli.terminal import echo, take_logs
from eyechart.harness.cli.work.dry_run.dry_run_json import dry_run_document
from eyechart.harness.cli.work.dry_run.preview import (
    Bill,
    CanShow,
    Preview,
    Waves,
    all_waves,
    can_show,
    dollars_of,
    first_sample,
)
from eyechart.harness.cli.work.dry_run.previewing import Forecasts, not_known, previews_of
from eyechart.harness.cli.work.models_asked import (
    ModelResult,
    chooser_of,
    exit_code,
    warn_of_unknown,
)
from eyechart.harness.face.options.run_options import RunOptions
from eyechart.harness.face.options.study import RunMatrix, StudyRuns
from eyechart.harness.plan.forced_choice import ForcedChoice
from eyechart.harness.plan.plan import Plan
from eyechart.harness.plan.selection import precision_text
from eyechart.harness.run.room import MOST
from eyechart.harness.run.run_request import RunRequest
from eyechart.harness.settings.judging import JudgeSettings
from eyechart.harness.spec import Sample
from eyechart.harness.spec.dollars import at_most_text, dollars_text
from eyechart.providers.catalog.model_facts import known_not_to_reason
from eyechart.providers.naming import named

Dollars: TypeAlias = tuple[float | None, float | None]
"""Expected, and at most; `None` where it is not known."""
_BEGINNING, _END = 1000, 500
"""Characters of a long prompt that are shown, at its beginning and at its end."""
_HALF_CENT = 0.005
_NEAR = 0.05
"""Accuracies whose distance to `FROM` is smaller are shown in tenths of a percent."""


def dry_run(runs: RunMatrix, judging: JudgeSettings, *, asks_server: bool, as_json: bool) -> int:
    """Prints what a command would ask, and the cost of what is not answered yet: of one run with a
    prompt, of several in a row for each model. Sends nothing, unless `asks_server`. The failure of
    one model does not stop the others. Of adaptive runs the requests are those of all waves up to
    the next one.
    """
    warn_of_unknown(runs.models)
    take_logs()
    chooser = chooser_of(runs, judging)
    failed: list[ModelResult] = []
    made: Forecasts = {}

    def found() -> Iterator[tuple[RunOptions, Sequence[Preview]]]:
        for options in runs.models:
            try:
                yield (
                    options,
                    previews_of(runs.plans, options, chooser, made, asks_server=asks_server),
                )
            except FAILURES as error:
                label = options.model.label
                code = explain(error, label if len(runs.models) > 1 else "")
                failed.append(ModelResult(label, code, lines_of(error)[0]))

    if as_json:
        document = {**dry_run_document(found()), "failed": [asdict(result) for result in failed]}
        if isinstance(runs, StudyRuns):
            document = {"study": runs.label, **document}
        print_document(document)
    elif not runs.has_several:
        for options, previews in found():
            _show_each(runs, options, previews, asks_server=asks_server)
    else:
        _show_models(runs, found(), asks_server=asks_server)
    return exit_code(failed, len(runs.models))


def _show_each(
    runs: RunMatrix, options: RunOptions, previews: Sequence[Preview], *, asks_server: bool
) -> None:
    for preview in previews:
        _show(runs, preview, options)
    if (where := options.destination) is not None:
        echo(f"asked at: {where}")
    _show_cost(runs, options, previews)
    if unknown := not_known(options, asks_server=asks_server):
        echo(unknown)


class _Total:
    """The sum of what all plans would ask of a model."""

    def __init__(self, options: RunOptions, previews: Sequence[Preview]) -> None:
        given, prices = options.given, options.model.prices
        self.options = options
        self.label = options.model.label
        self.requests = sum(preview.request.plan.size for preview in previews)
        self.answered = sum(preview.answered for preview in previews)
        self.waves = all_waves(previews, given.max_requests) if given.adaptive else None
        self.prompt_tokens = sum(preview.forecast.prompt_tokens for preview in previews)
        self.output_tokens = sum(preview.forecast.output_tokens for preview in previews)
        is_counted = any(preview.thinking.is_known for preview in previews)
        self.may_turn_out_to_think = not is_counted and may_think(options)
        self.dollars: Dollars = (
            dollars_of(prices, previews) or (None, None)
            if self.waves is None
            else self.waves.dollars
        )
        self.unfit = sum(
            bool(str(fit) or fit.may_be_too_long or fit.may_be_cut)
            for preview in previews
            for fit in preview.fits.values()
        )


def _columns(totals: Sequence[_Total]) -> list[Column]:
    """What each model is asked, how much of it is answered, and the cost; of adaptive runs the
    requests up to the next wave, and what all waves take.
    """
    each = [one.waves for one in totals if one.waves is not None]
    expected = [one.expected for one in each]
    requests = [Column(["requests"], [f"{one.requests:,}" for one in totals])]
    prompts: list[int | None] = [one.prompt_tokens for one in totals]
    replies: list[int | None] = [one.output_tokens for one in totals]
    if each:
        requests = [
            Column(
                ["requests", "next" if any(one.answered for one in totals) else "first"],
                requests[0].cells,
            ),
            _numbers(
                "requests", "about", [None if one is None else one.requests for one in expected]
            ),
            _numbers("requests", "at most", [one.most_requests for one in each]),
        ]
        prompts = [None if one is None else one.prompt_tokens for one in expected]
        replies = [None if one is None else one.output_tokens for one in expected]
    about, most = zip(*(one.dollars for one in totals), strict=True)
    return [
        *requests,
        Column(["answered"], [f"{one.answered:,}" for one in totals]),
        _numbers("prompts", "tokens", prompts),
        _numbers("replies", "tokens", replies),
        Column(["cost", "about"], ["-" if one is None else dollars_text(one) for one in about]),
        Column(["cost", "at most"], ["-" if one is None else at_most_text(one) for one in most]),
    ]


def _numbers(head: str, below: str, numbers: Sequence[int | None]) -> Column:
    return Column([head, below], ["-" if one is None else f"{one:,}" for one in numbers])


def _show_models(
    runs: RunMatrix, found: Iterator[tuple[RunOptions, Sequence[Preview]]], *, asks_server: bool
) -> None:
    """Prints what each task asks, and a row for each model."""
    totals = [_Total(options, previews) for options, previews in found]
    if isinstance(runs, StudyRuns):
        echo(f"{runs.label}: {runs.study.spec.title}")
    echo(*(f"  {plan.task.name}: {conditions_text(plan)}" for plan in runs.plans), "")
    if totals:
        show_blocks([Column(["model"], [one.label for one in totals], "left")], _columns(totals))
    given = runs.models[0].given
    _show_sum(runs, [one.dollars for one in totals], given.budget)
    echo(
        *(
            f"{one.label} would be asked at {one.options.destination}"
            for one in totals
            if one.options.given.base_url
        ),
        *(
            f"{one.label}: {one.unfit:,} cell{'s' * (one.unfit > 1)} may be too long, or get no "
            "whole reply; the task and the model alone say which"
            for one in totals
            if one.unfit
        ),
    )
    if may := [one.label for one in totals if one.may_turn_out_to_think]:
        echo(f"thinking is not counted, should they think: {', '.join(may)}")
    unknown = (not_known(one.options, asks_server=asks_server) for one in totals)
    echo(*dict.fromkeys(filter(None, unknown)))
    if given.adaptive:
        is_bounded = all(one.waves and one.waves.most_requests is not None for one in totals)
        limits = f"longer lines may follow ({runs.where_to_set('lengths')} limits them) or "
        echo(
            "Each wave follows from the replies before it, until each length is known to "
            f"{precision_text(given.precision)}. About: all waves, with their tokens, of a model "
            f"right to the middle of the lines. At most: {named('max_requests')} sets a lower "
            f"limit. -: not known, as {'' if is_bounded else limits}no price is listed."
        )


def _show_sum(runs: RunMatrix, dollars: Sequence[Dollars], budget: float | None) -> None:
    """Prints what models with prices cost together, and what of it a budget pays for."""
    priced = [(about, most) for about, most in dollars if about is not None]
    if not priced:
        return
    about = sum(expected for expected, _ in priced)
    bounds = [most for _, most in priced if most is not None]
    most = sum(bounds) if len(bounds) == len(priced) else None
    if len(priced) > 1:
        whole = _of_all_waves(runs, about, None) if most is None else cost_text(about, most)
        echo(f"together {whole}")
    if budget is not None:
        echo(_of_budget(budget, about, most))


def conditions_text(plan: Plan) -> str:
    """How many conditions a plan has, and on which lines."""
    number = len(plan.conditions)
    lengths = sorted(line.length for line in plan.lines)
    return f"{number} condition{'s' * (number > 1)}, lengths {lengths[0]:,} to {lengths[-1]:,}"


def _show(runs: RunMatrix, preview: Preview, options: RunOptions) -> None:
    request, run_forecast = preview.request, preview.forecast
    plan, spec = request.plan, request.plan.task.spec
    rule = (
        "counted"
        if run_forecast.exact
        else "counted in a few samples of each cell"
        if run_forecast.counted
        else "estimated: one a digit or sign, one per five letters"
    )
    first = first_sample(plan)
    cells = (
        f"those of shard {plan.shard} of {plan.samples} a cell"
        if not plan.shard.is_whole
        else f"{plan.samples} a cell"
        if plan.counts is None
        else f"no wave: {named('max_requests')} may be reached before"
        if not plan.counts
        else "the first wave"
        if not preview.answered
        else "with the next wave"
        if run_forecast.left
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
        ("requests", f"{plan.size:,} ({cells}{drawn}){_left(preview)}"),
        *(
            [("adaptive", str(preview.waves)), *_all_waves(runs, preview, preview.waves)]
            if preview.waves
            else zip(("can show", "", ""), _can_show(can_show(plan)), strict=True)
        ),
        *([("turns", _turns(preview))] if plan.task.in_turns else []),
        ("characters", f"{run_forecast.characters:,}"),
        ("tokens", f"{run_forecast.prompt_tokens:,} of prompts ({rule}), {replies}"),
        *([] if preview.writes_replies else [("read", _read(request, first))]),
        *([("thinking", thinking)] if (thinking := _thinking(runs, preview, options)) else []),
    ]
    if request.model.prices is not None:
        expected, most = run_forecast.dollars(request.model.prices)
        at = f"at {request.model.prices}"
        rows.append(("cost", f"{cost_text(expected, most)}, {at}"))
    fits = [(f"{of.label} at length {line}", fit) for (of, line), fit in preview.fits.items()]
    rows += [("too long", f"{cell}: {fit}") for cell, fit in fits if str(fit)]
    rows += [("too long", f"{cell}: {why}") for cell, fit in fits if (why := fit.may_be_too_long)]
    rows += [("cut off", f"{cell}: {why}") for cell, fit in fits if (why := fit.may_be_cut)]
    rows += [("run folder", str(request.folder)), ("sample", first.id)]
    echo(f"{request.name}@{spec.version}: {spec.title}")
    echo(*(f"  {key:<11} {value}" for key, value in rows))
    echo(*(f"    | {line}" for line in _shown(first).split("\n")), "")


def _all_waves(runs: RunMatrix, preview: Preview, waves: Waves) -> Iterator[tuple[str, str]]:
    """What all waves take besides what is answered: expected, and at most."""
    name = "still to ask" if preview.answered else "all waves"
    if waves.most is not None and not waves.most.requests:
        yield name, "nothing"
        return
    if waves.expected is not None and not waves.expected.requests:
        yield name, f"about 0 samples, as {named('max_requests')} is probably reached before"
    elif waves.expected is not None:
        unit = preview.request.plan.task.spec.unit
        about = f"if the model is right to {waves.right_to:,} {unit}, in the middle of the lines"
        yield name, f"about {bill_text(waves.expected)}, {about}"
    most = _no_bound(runs)
    if waves.most is not None:
        bound = bill_text(waves.most, at_most_text)
        most = f"at most {bound}, all of them on the longest lines"
    yield "" if waves.expected else name, most


def bill_text(bill: Bill, price: Callable[[float], str] = dollars_text) -> str:
    """`120 samples, 9,000 tokens of prompts, 800 of replies and $0.12`."""
    parts = [
        f"{bill.requests:,} samples",
        f"{bill.prompt_tokens:,} tokens of prompts",
        *[f"{bill.output_tokens:,} of replies"] * bool(bill.output_tokens),
        *([] if bill.dollars is None else [price(bill.dollars)]),
    ]
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


def _turns(preview: Preview) -> str:
    """What the turns of samples take, and how many of them are left."""
    turns, answered = preview.forecast.turns, preview.answered_turns
    left = f", of which {max(0, turns - answered):,} are left" if answered else ""
    return f"{turns:,} requests in all{left}; each turn is one, and sends all that was said before"


def _read(request: RunRequest, first: Sample) -> str:
    """Among how many options the first sample is read."""
    choice = ForcedChoice(request.plan.task, request.plan.seed)
    asked = choice.shortfall(first) or f"{len(choice.options(first))} options"
    return f"by likelihood, the first sample over {asked}"


def _thinking(runs: RunMatrix, preview: Preview, options: RunOptions) -> str:
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
        f"{runs.where_to_set('max_tokens')} sets another limit"
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


def _of_budget(budget: float, expected: float | None, most: float | None) -> str:
    given = f"the budget of {dollars_text(budget)}"
    if most is not None and most <= budget:
        return f"{given} pays for all of it"
    if expected is None:
        return f"{given} may be spent before all of it is asked; a new one goes on"
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
        else f"in effective length a factor of about {found.factor:.2g}, or less where the "
        "accuracy falls steeply"
    )
    sure = f"with a power of {100 * POWER:g} %, as 'bench compare' corrects for {tests}:"
    return sure, at_length, in_length


def _percent(share: float) -> str:
    """The percentage, rounded down: to tenths where it is near to that of `FROM`."""
    steps = 1 if FROM - share > _NEAR else 10
    return f"{math.floor(round(100 * steps * share, 6)) / steps:g} %"


def _left(preview: Preview) -> str:
    """The note on how many samples have answers, do not fit, and will be asked; or empty."""
    request = preview.request
    answered, unsent = preview.answered, request.plan.size - preview.forecast.requests
    why = [
        *[f"{answered:,} {'is' if answered == 1 else 'are'} answered"] * bool(answered),
        *[f"{unsent:,} {'does' if unsent == 1 else 'do'} not fit"] * bool(unsent),
    ]
    if not why:
        return ""
    return f"; {' and '.join(why)}, so {preview.forecast.left:,} will be asked"


def _show_cost(runs: RunMatrix, options: RunOptions, previews: Sequence[Preview]) -> None:
    """Prints the cost of all runs; of adaptive ones, that of all waves up to the next ones."""
    model, prices, is_adaptive = options.model, options.model.prices, options.given.adaptive
    if (dollars := dollars_of(prices, previews)) is not None and prices is not None:
        expected, most = dollars
        assumed = "" if model.has_tier_price else f"; no {prices.tier} price is known"
        begun = any(preview.answered for preview in previews)
        left = "what is still to ask" if begun else "all waves" if is_adaptive else "all"
        waves = "the next waves" if begun else "the first waves"
        what = waves if is_adaptive else left
        echo(f"cost of {what}: {cost_text(expected, most)}, at {prices}{assumed}")
        whole: Dollars = dollars
        if is_adaptive:
            whole = all_waves(previews, options.given.max_requests).dollars
            echo(f"cost of {left}: {_of_all_waves(runs, *whole)}")
        if options.given.budget is not None:
            echo(_of_budget(options.given.budget, *whole))
    elif not options.name.descriptor.is_free and not options.given.base_url:
        echo(f"cost: unknown, there are no prices of {model.label} in the list of genai-prices")


def _of_all_waves(runs: RunMatrix, expected: float | None, most: float | None) -> str:
    at_most = _no_bound(runs) if most is None else f"at most {at_most_text(most)}"
    return at_most if expected is None else f"about {dollars_text(expected)}, {at_most}"


def _no_bound(runs: RunMatrix) -> str:
    limits = f"{runs.where_to_set('lengths')} limits them"
    return f"without an upper bound, as longer lines may follow; {limits}"
