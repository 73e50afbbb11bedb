"""The options of a run, checked once: for `bench run`, `bench export batch` and Python."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import get_args

from eyechart.harness.bounds import BOUNDS
from eyechart.harness.errors import UsageError
from eyechart.harness.face.variant import (
    check_word,
    read_name,
    refuse_other_arguments,
    refuse_variant,
    variant_of,
)
from eyechart.harness.journal.record import Warn
from eyechart.harness.plan import selection
from eyechart.harness.plan.oracles import knower
from eyechart.harness.plan.plan import Plan
from eyechart.harness.plan.resolved_model import ResolvedModel, resolve_model
from eyechart.harness.plan.selection import PRECISION, check_text, read_precision
from eyechart.harness.run.limits import RayOptions, RunLimits
from eyechart.harness.run.repeat import repeat_requests
from eyechart.harness.run.run_request import RunRequest
from eyechart.harness.shard import WHOLE, Shard
from eyechart.harness.spec import Settings
from eyechart.providers.base import Api, ModelSettings, Provider
from eyechart.providers.descriptor import Destination
from eyechart.providers.registry import (
    ModelName,
    check_effort,
    check_intervention,
    check_tier,
    has_batches,
    has_replies,
    open_model,
    parse_model,
)
from eyechart.providers.secrets import has_secret

_TIERS = ("default", "flex")
"""Tiers of single requests."""


def read_settings(
    *,
    seed: int = 0,
    temperature: float = 0.0,
    max_tokens: str = "auto",
    api: str = "chat",
    system: str | None = None,
    effort: str | None = None,
) -> Settings:
    """The settings that affect answers; raises `UsageError` for a value that no run can have."""
    limit = selection.max_tokens(max_tokens)
    check_text("--system", system)
    if system is not None and has_secret(system):
        raise UsageError(
            "--system has a key or a password in it, which would be sent to the model and written "
            "to the manifest; leave it out"
        )
    _check_bounds(temperature=temperature, seed=seed)
    if api not in get_args(Api):
        raise UsageError(f"--api must be chat or completions, not {api!r}")
    check_word(effort)
    form: Api = "completions" if api == "completions" else "chat"
    return Settings(seed, temperature, limit, form, system or None, effort)


def _check_bounds(**given: float | None) -> None:
    """Raises `UsageError` for a number that no run can have."""
    for name, value in given.items():
        if value is not None and (problem := BOUNDS[name].problem(value)):
            raise UsageError(f"--{name.replace('_', '-')} {problem}")


def as_warning(text: str) -> None:
    """Gives a message as a Python warning."""
    warnings.warn(text, stacklevel=2)


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options of a run besides the tasks; `from_command` checks all of them."""

    name: ModelName
    model: ResolvedModel
    settings: Settings
    out: Path
    limits: RunLimits
    known_facts: Mapping[str, object]
    """Facts of the provider that are known before it is opened."""
    notify: Warn
    """Gets messages of the provider."""
    logprobs: bool = False
    base_urls: tuple[str, ...] = ()
    server_args: tuple[str, ...] = ()
    model_args: tuple[str, ...] = ()
    budget: float | None = None
    """The limit of the cost, in dollars."""
    fresh: bool = False
    batch: bool = False
    tier: str | None = None
    """The tier of single requests; `None` leaves it to the vendor."""
    adaptive: bool = False
    precision: float = PRECISION
    """Octaves to which an adaptive run shall know each effective length."""
    max_requests: int | None = None
    """Most samples that an adaptive command may ask."""
    repeat: bool = False
    """Whether the samples of complete runs are asked again."""
    intervention: str | None = None
    """A change of the model's attention, see `providers.intervention`."""
    shard: Shard = WHOLE
    """The rows that are asked."""
    ray: RayOptions | None = None
    """The cluster that asks; `None` for this process."""
    accept_server: bool = False
    """Whether the user accepts a server that does not say whether it has the run's model."""
    command: str = ""
    """The call that asked for the run; "" for the command line of this process."""

    @classmethod
    def from_command(
        cls,
        *,
        model: str,
        out: Path,
        settings: Settings,
        notify: Warn = as_warning,
        logprobs: bool = False,
        base_urls: Sequence[str] = (),
        server_args: Sequence[str] = (),
        model_args: Sequence[str] = (),
        max_connections: int = 64,
        rpm: float | None = None,
        tpm: float | None = None,
        budget: float | None = None,
        fresh: bool = False,
        batch: bool = False,
        tier: str | None = None,
        adaptive: bool = False,
        precision: float | None = None,
        max_requests: int | None = None,
        repeat: bool = False,
        shard: str | None = None,
        engine: str | None = None,
        ray_address: str | None = None,
        ray_workers: int | None = None,
        label: str | None = None,
        called: str | None = None,
        intervention: str | None = None,
        accept_server: bool = False,
        command: str = "",
    ) -> RunOptions:
        """Checks the options and looks up the model. `called` is the user's name for the model,
        `label` names its variant, `intervention` is a change of its attention.

        Raises:
            UsageError: a value that no run can have.
            SetupError: there is no such model or provider.
        """
        check_text("--model", model)
        for option, texts in (
            ("--base-url", base_urls),
            ("--vllm-arg", server_args),
            ("--model-arg", model_args),
        ):
            for text in texts:
                check_text(option, text)
        _check_bounds(
            max_connections=max_connections,
            rpm=rpm,
            tpm=tpm,
            budget=budget,
            max_requests=max_requests,
            ray_workers=ray_workers,
        )
        batch, tier = _read_tier(tier, batch=batch)
        if batch and (rpm is not None or tpm is not None):
            raise UsageError("--rpm and --tpm pace single requests; leave them out with --batch")
        _check_adaptive(precision, max_requests, adaptive=adaptive)
        for option, is_given in (
            ("--fresh", fresh),
            ("--batch", batch),
        ):
            if repeat and is_given:
                raise UsageError(f"--repeat does not go together with {option}")
        rows = _read_shard(shard, adaptive=adaptive, repeat=repeat)
        ray = _read_ray(engine, ray_address, ray_workers)
        _check_ray(ray, budget, batch=batch)
        _check_out(out)
        refuse_variant(model, base_urls)
        name = parse_model(model, model_args, base_urls)
        if ray is not None and not name.descriptor.in_cluster:
            raise UsageError(f"{model} answers from this process alone; leave out --engine ray")
        name = replace(name, called=read_name(called, base_urls))
        has_replies(name)
        if batch:
            has_batches(name)
        check_tier(name, tier, base_urls)
        check_effort(name, settings.effort, base_urls)
        intervention = check_intervention(name, intervention)
        variant = variant_of(label, settings.effort, intervention)
        resolved = resolve_model(
            name.asked_as,
            tier="batch" if batch else tier,
            addresses=tuple(base_urls),
            variant=variant,
            effort=settings.effort,
            called=name.called,
        )
        refuse_other_arguments(out, resolved, label, server_args)
        if budget is not None and resolved.prices is None:
            raise UsageError(
                f"--budget needs the prices of {name.label}: give them in a file that "
                "EYECHART_MODELS names, as providers/catalog/models.yaml does"
            )
        return cls(
            name=name,
            model=resolved,
            settings=settings,
            out=out,
            limits=RunLimits(max_connections=max_connections, rpm=rpm, tpm=tpm),
            known_facts=name.descriptor.known_facts(model_args),
            notify=notify,
            logprobs=logprobs,
            base_urls=tuple(base_urls),
            server_args=tuple(server_args),
            model_args=tuple(model_args),
            budget=budget,
            fresh=fresh,
            batch=batch,
            tier=tier,
            adaptive=adaptive,
            precision=read_precision(precision),
            max_requests=max_requests,
            repeat=repeat,
            intervention=intervention,
            shard=rows,
            ray=ray,
            accept_server=accept_server,
            command=command,
        )

    @property
    def destination(self) -> Destination | None:
        """Where requests go, and which key is sent; `None` if the model runs on this machine."""
        return self.name.destination(self.base_urls, self.model_args)

    def requests(self, plans: Sequence[Plan]) -> list[RunRequest]:
        """One run for each plan; a plan without a row in the shard is left out.

        Raises:
            UsageError: no plan has a row in the shard.
            JournalError: a run is to be repeated and is not there or not complete.
        """
        requests = [
            RunRequest(
                replace(plan, shard=self.shard),
                self.model,
                self.settings,
                self.out,
                self.known_facts,
                plugin=self.name.plugin,
                accept_server=self.accept_server,
                command=self.command,
            )
            for plan in self._in_shard(plans)
        ]
        return repeat_requests(requests, adaptive=self.adaptive) if self.repeat else requests

    def _in_shard(self, plans: Sequence[Plan]) -> list[Plan]:
        """The plans that have a row in the shard; tells which plans have none."""
        kept = [plan for plan in plans if replace(plan, shard=self.shard).size]
        if plans and not kept:
            most = max(max(plan.sizes.values()) for plan in plans)
            raise UsageError(
                f"--shard {self.shard} has no row: there are {most:,} samples a cell, so use at "
                f"most {most:,} shards"
            )
        if without := [plan.task.name for plan in plans if plan not in kept]:
            self.notify(f"shard {self.shard} has no row of {', '.join(without)}")
        return kept

    def model_settings(self, log: Path | None = None) -> ModelSettings:
        """The settings to open the model with; `log` gets the output of its server."""
        return ModelSettings(
            model=self.name.model,
            temperature=self.settings.temperature,
            base_urls=self.base_urls,
            api=self.settings.api,
            system=self.settings.system,
            effort=self.settings.effort,
            intervention=self.intervention,
            tier=self.tier,
            logprobs=self.logprobs,
            server_args=self.server_args,
            model_args=self.model_args,
            server_log=log,
            notify=self.notify,
        )

    def open_provider(self, requests: Sequence[RunRequest]) -> Provider:
        """The provider that answers `requests`, of which the first run's folder takes the output of
        its server; raises `SetupError`.
        """
        settings = self.model_settings(requests[0].server_log)
        if self.name.descriptor.gets_answers:
            known = knower(request.plan.task for request in requests)
            settings = replace(settings, known=known)
        return open_model(self.name, settings)


def _read_tier(tier: str | None, *, batch: bool) -> tuple[bool, str | None]:
    """Whether a Batch API is used, and the tier of single requests; raises `UsageError`."""
    if tier is not None and batch:
        raise UsageError("a batch is a tier of its own; leave out --tier or --batch")
    if tier not in (None, *_TIERS, "batch"):
        raise UsageError(f"--tier must be {', '.join(_TIERS)} or batch, not {tier!r}")
    return (True, None) if tier == "batch" else (batch, tier)


def _read_shard(text: str | None, *, adaptive: bool, repeat: bool) -> Shard:
    """The rows that are asked; raises `UsageError` if other options exclude a shard."""
    if text is None:
        return WHOLE
    shard = Shard.read(text)
    if adaptive:
        raise UsageError(
            "--shard does not go together with --adaptive, which chooses each sample by all "
            "replies so far: a shard has only its own"
        )
    if repeat:
        raise UsageError(
            "--shard does not go together with --repeat, which asks a complete run again: merge "
            "the shards and repeat that run"
        )
    return shard


def _read_ray(engine: str | None, address: str | None, workers: int | None) -> RayOptions | None:
    """The cluster that asks, or `None`; raises `UsageError` for an unknown engine."""
    if engine is None:
        if address is not None or workers is not None:
            raise UsageError("--ray-address and --ray-workers need --engine ray")
        return None
    if engine != "ray":
        raise UsageError(f"--engine must be ray, not {engine!r}; leave it out to ask from here")
    check_text("--ray-address", address)
    return RayOptions(address, workers)


def _check_ray(ray: RayOptions | None, budget: float | None, *, batch: bool) -> None:
    """Raises `UsageError` for options that workers of a cluster cannot follow."""
    if ray is None:
        return
    if batch:
        raise UsageError("--engine ray does not go together with --batch: each asks in its own way")
    if budget is not None:
        raise UsageError(
            "--budget does not go together with --engine ray, whose workers do not know what the "
            "others spend; leave out one of them"
        )


def _check_adaptive(precision: float | None, max_requests: int | None, *, adaptive: bool) -> None:
    """Raises `UsageError` for options of adaptive runs without `--adaptive`."""
    for option, value in (("precision", precision), ("max-requests", max_requests)):
        if value is not None and not adaptive:
            raise UsageError(f"--{option} needs an adaptive run; add --adaptive")


def _check_out(out: Path) -> None:
    """Raises `UsageError` if `out`, or a folder above it, is a file."""
    nearest = next((folder for folder in (out, *out.parents) if folder.exists()), out)
    if nearest.exists() and not nearest.is_dir():
        raise UsageError(f"--out {str(out)!r}: {str(nearest)!r} is not a folder")
