"""The models of a command, looked up and checked together with the settings of their runs."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

from eyechart.harness.errors import UsageError
from eyechart.harness.face.options.variant import (
    check_name,
    refuse_other_arguments,
    refuse_variant,
    variant_of,
)
from eyechart.harness.face.tracking import OpenTracker, open_trackers
from eyechart.harness.journal.record import Warn
from eyechart.harness.plan.oracles import knower
from eyechart.harness.plan.plan import Plan
from eyechart.harness.plan.resolved_model import ResolvedModel, resolve_model
from eyechart.harness.plan.selection import system_prompt
from eyechart.harness.run.limits import RunLimits
from eyechart.harness.run.run_request import RunRequest
from eyechart.harness.settings.run_settings import RunSettings
from eyechart.harness.spec import Settings
from eyechart.providers.base import ModelSettings, Provider
from eyechart.providers.descriptor import Destination
from eyechart.providers.naming import in_python, named
from eyechart.providers.registry.model_name import ModelName, address_in_environment, parse_model
from eyechart.providers.registry.registry import has_batches, open_model
from eyechart.providers.registry.setting_checks import (
    asked_thinking,
    check_params,
    check_tier,
    checked,
    read_headers,
    takes_temperature,
)


def as_warning(text: str) -> None:
    """Gives a message as a Python warning."""
    warnings.warn(in_python(text), stacklevel=2)


@dataclass(frozen=True, slots=True)
class RunOptions:
    """One model to ask, with the settings of its runs."""

    given: RunSettings
    """The settings of the command; an address of the environment is one of `base_url`."""
    name: ModelName
    model: ResolvedModel
    settings: Settings
    """What shapes the answers, as it stands in the manifest."""
    known_facts: Mapping[str, object]
    """Facts of the provider that are known before it is opened."""
    notify: Warn = as_warning
    """Takes what the provider says."""
    trackers: Sequence[OpenTracker] = ()
    """Where the results of its runs are logged too."""
    command: str = ""
    """The call that asked for the run; "" for the command line of this process."""
    address_from: str = ""
    """The environment variable that has its address, if one has."""

    @property
    def limits(self) -> RunLimits:
        given = self.given
        return RunLimits(max_connections=given.max_connections, rpm=given.rpm, tpm=given.tpm)

    @property
    def destination(self) -> Destination | None:
        """Where requests go, and which key is sent; `None` if the model runs on this machine."""
        where = self.name.destination(self.given.base_url, self.given.model_args)
        if where is None or not self.address_from:
            return where
        return replace(where, variable=self.address_from)

    def requests(self, plans: Sequence[Plan]) -> list[RunRequest]:
        """One run for each plan; a plan without a row in the shard is left out; raises `UsageError`
        if no plan has a row in the shard.
        """
        given = self.given
        return [
            RunRequest(
                replace(plan, shard=given.shard),
                self.model,
                self.settings,
                given.out,
                self.known_facts,
                plugin=self.name.plugin,
                accept_server=given.trust,
                command=self.command,
                given=given.kept,
            )
            for plan in self._in_shard(plans)
        ]

    def _in_shard(self, plans: Sequence[Plan]) -> list[Plan]:
        """The plans that have a row in the shard; says which have none."""
        shard = self.given.shard
        kept = [plan for plan in plans if replace(plan, shard=shard).size]
        if plans and not kept:
            most = max(max(plan.sizes.values()) for plan in plans)
            raise UsageError(
                f"{named('shard', str(shard))} has no row: there are {most:,} samples a cell, so "
                f"use at most {most:,} shards"
            )
        if without := [plan.task.name for plan in plans if plan not in kept]:
            self.notify(f"shard {shard} has no row of {', '.join(without)}")
        return kept

    def model_settings(self, log: Path | None = None) -> ModelSettings:
        """How the provider is to open the model; `log` takes the output of its server."""
        given, settings = self.given, self.settings
        return ModelSettings(
            model=self.name.model,
            **settings.shared(),
            base_urls=given.base_url,
            headers=read_headers(given.header),
            tier=given.request_tier,
            logprobs=given.logprobs is not None,
            top_logprobs=given.logprobs or 0,
            model_args=given.model_args,
            server_log=log,
            notify=self.notify,
        )

    def open_provider(self, requests: Sequence[RunRequest]) -> Provider:
        """The provider that answers `requests`; raises `SetupError`. The output of a server that it
        starts goes into the folder of the first run.
        """
        settings = self.model_settings(requests[0].server_log)
        if self.name.descriptor.gets_answers:
            known = knower(request.plan.task for request in requests)
            settings = replace(settings, known=known)
        return open_model(self.name, settings)


def models_of(
    given: RunSettings,
    plans: Sequence[Plan] = (),
    *,
    notify: Warn = as_warning,
    command: str = "",
    function: object = None,
) -> list[RunOptions]:
    """One `RunOptions` for each combination of a model and a kind of thinking in the
    settings. If two have the same label, only the first one is kept. The system
    prompt comes from the settings; if they have none, from the tasks of `plans`. `function` is the
    model itself, where it is a function or an object of this program.

    Raises:
        UsageError: a value that no run of the model can have.
        SetupError: there is no such model or provider.
    """
    _check_out(given.out)
    if given.called and len(given.model) > 1:
        raise UsageError(
            f"{named('name')} names one model, and {named('model')} has {len(given.model)}; give "
            "each a command"
        )
    trackers = open_trackers(given.log_to)
    settings = shaping(given, system_prompt(plans, given.system))
    found = {}
    for (at, variable, name), thinking in product(
        [_located(given, model, function) for model in given.model],
        given.thinking or [None],
    ):
        _check_read(at, name, plans)
        _check_turns(at, name, plans)
        effort, kind = asked_thinking(name, thinking, at.base_url)
        asked = replace(settings, effort=effort, thinking=kind)
        model = _look_up(at, name, asked)
        if model.label not in found:
            one = found[model.label] = RunOptions(
                given=at,
                name=name,
                model=model,
                settings=_sent(at, name, model, asked, notify),
                known_facts=name.known_facts(at.model_args),
                notify=notify,
                trackers=trackers,
                command=command,
                address_from=variable,
            )
            checked(name, one.model_settings())
    return list(found.values())


def shaping(given: RunSettings, system: str | None = None) -> Settings:
    """The settings that shape the answers, without thinking, as the manifest has them."""
    return Settings(
        seed=given.seed,
        temperature=given.temperature,
        max_tokens=given.max_tokens,
        api=given.api,
        system=system or None,
        params=given.params,
        read=given.reading,
    )


def _check_read(given: RunSettings, name: ModelName, plans: Sequence[Plan]) -> None:
    """Raises `UsageError` if the model or a task has no forced choice, and the user asks for it."""
    if given.reading != "likelihood":
        return
    read = named("reading", given.reading)
    apis = name.descriptor.likelihood(given.base_url)
    if not apis:
        raise UsageError(
            f"{name.label} does not say how probable a given answer is, which {read} needs; "
            "tiny, hf/…, gguf/…, vllm/… and lm-eval/… do, and so does a server of your own with "
            f"{named('base_url')} and {named('api', 'completions')}"
        )
    if given.api not in apis:
        raise UsageError(
            f"{name.label} takes {read} with {named('api', ' or '.join(apis))} alone: its chat "
            "cannot be asked for the probability of a given answer; that of a llama.cpp server "
            f"can, under the name llamacpp/{name.model}"
        )
    if scored := [plan.task.name for plan in plans if plan.task.spec.scorer is not None]:
        raise UsageError(
            f"{scored[0]} has a scorer of its own, which says of a reply whether it is right; "
            f"leave out {read}"
        )


def _check_turns(given: RunSettings, name: ModelName, plans: Sequence[Plan]) -> None:
    """Raises `UsageError` if a task asks over several turns, and the run cannot."""
    in_turns = [plan.task.name for plan in plans if plan.task.in_turns]
    if not in_turns:
        return
    why = f"task {in_turns[0]!r} asks over several turns"
    if not name.descriptor.takes_turns:
        raise UsageError(
            f"{why}, and {name.label} answers one message; ask a vendor, vllm/…, or a server of "
            f"your own with {named('base_url')}"
        )
    for setting, value, is_other in (
        ("api", given.api, given.api != "chat"),
        ("reading", given.reading, given.reading != "reply"),
        ("tier", given.tier or "", given.tier == "batch"),
        ("engine", str(given.engine), given.engine is not None),
    ):
        if is_other:
            raise UsageError(
                f"{why}, in a chat that this process asks; leave out {named(setting, value)}"
            )


def _sent(
    given: RunSettings, name: ModelName, model: ResolvedModel, asked: Settings, notify: Warn
) -> Settings:
    """The settings without a temperature that the model does not take."""
    if takes_temperature(name, model.facts, given.base_url):
        if given.draws > 1 and given.temperature == 0:
            notify(
                f"{model.label}: at {named('temperature', '0')} draws differ by the noise of a "
                "server alone; above 0 they show how sure the model is"
            )
        return asked
    if given.temperature:
        notify(f"{model.label} takes no {named('temperature')}, so none is sent")
    return replace(asked, temperature=None)


def _located(
    given: RunSettings, model: str, function: object
) -> tuple[RunSettings, str, ModelName]:
    """The settings of a model with its address, the environment variable that has the address if
    the user gave none, and its name, with the function that the model is.
    """
    variable = ""
    if not given.base_url:
        variable, url = address_in_environment(model, given.model_args)
        given = replace(given, base_url=(url,)) if variable else given
    return given, variable, replace(_name_of(given, model), function=function)


def _name_of(given: RunSettings, model: str) -> ModelName:
    """The name of a model, whose provider can do what the settings ask for."""
    urls = given.base_url
    refuse_variant(model, urls)
    name = parse_model(model, given.model_args, urls)
    if given.called:
        check_name(given.called, urls, is_file=name.descriptor.models_are_files)
        name = replace(name, called=given.called)
    if given.is_batch:
        has_batches(name)
    check_tier(name, given.request_tier, urls)
    check_params(name, given.params)
    if given.engine is not None and not name.descriptor.in_cluster:
        raise UsageError(
            f"{model} answers from this process alone; leave out "
            f"{named('engine', str(given.engine))}"
        )
    return name


def _look_up(given: RunSettings, name: ModelName, asked: Settings) -> ResolvedModel:
    """What is known of the model, and the label of its variant."""
    model = resolve_model(
        name.asked_as,
        tier=given.tier,
        addresses=given.base_url,
        variant=variant_of(given.variant, asked.effort, asked.thinking, asked.read),
        effort=asked.effort,
        thinking=asked.thinking,
        called=name.called,
    )
    refuse_other_arguments(
        given.out, model, given.variant, name.descriptor.known_facts(given.model_args)
    )
    if given.budget is not None and model.prices is None:
        raise UsageError(
            f"{named('budget')} needs the prices of {name.label}: give them in a file that "
            "EYECHART_MODELS names, as providers/catalog/models.yaml does"
        )
    return model


def _check_out(out: Path) -> None:
    """Raises `UsageError` if `out`, or a folder above it, is a file."""
    nearest = next((folder for folder in (out, *out.parents) if folder.exists()), out)
    if nearest.exists() and not nearest.is_dir():
        raise UsageError(f"{named('out')} {str(out)!r}: {str(nearest)!r} is not a folder")
