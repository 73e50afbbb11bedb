"""Settings that do not go together, or that need each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from eyechart.harness.errors import UsageError
from eyechart.providers.naming import named, turned_on

if TYPE_CHECKING:
    from eyechart.harness.settings.run_settings import RunSettings


def _check_tier(given: RunSettings) -> None:
    if given.batch and given.tier is not None:
        raise UsageError(
            f"a batch is a tier of its own; leave out {named('tier')} or {turned_on('batch')}",
            setting="tier",
        )
    if given.is_batch and (given.rpm is not None or given.tpm is not None):
        raise UsageError(
            f"{named('rpm')} and {named('tpm')} pace single requests; leave them out with "
            f"{turned_on('batch')}",
        )


def _check_adaptive(given: RunSettings) -> None:
    for name in ("precision", "max_requests"):
        if getattr(given, name) is not None and not given.adaptive:
            raise UsageError(
                f"{named(name)} is for adaptive runs; add {turned_on('adaptive')}", setting=name
            )


def _check_top_logprobs(given: RunSettings) -> None:
    if given.top_logprobs is not None and not given.logprobs:
        raise UsageError(
            f"{named('top_logprobs')} stands beside {turned_on('logprobs')}; add it",
            setting="top_logprobs",
        )


def _check_shard(given: RunSettings) -> None:
    if given.shard.is_whole:
        return
    shard = f"{named('shard')} does not go together with "
    if given.adaptive:
        raise UsageError(
            f"{shard}{turned_on('adaptive')}, which chooses each sample by all replies so far: "
            "a shard has only its own"
        )


def _check_ray(given: RunSettings) -> None:
    ray = named("engine", "ray")
    if given.engine is None:
        if given.ray_address is not None or given.ray_workers is not None:
            raise UsageError(
                f"{named('ray_address')} and {named('ray_workers')} need {ray}; add it"
            )
        return
    if given.is_batch:
        raise UsageError(
            f"{ray} does not go together with {turned_on('batch')}: each asks in its own way"
        )
    if given.budget is not None:
        raise UsageError(
            f"{named('budget')} does not go together with {ray}, whose workers do not know what "
            "the others spend; leave out one of them"
        )


def _check_read(given: RunSettings) -> None:
    """A forced choice asks for probabilities: nothing is written, and nothing is drawn."""
    if given.reading != "likelihood":
        return
    others = {
        turned_on("batch"): given.is_batch,
        named("engine", str(given.engine)): given.engine is not None,
        named("effort"): given.effort,
        named("thinking"): given.thinking,
        named("temperature"): given.temperature,
        named("max_tokens"): given.max_tokens is not None,
        turned_on("logprobs"): given.logprobs,
        named("draws", str(given.draws)): given.draws > 1,
    }
    if wrong := next((name for name, is_given in others.items() if is_given), None):
        raise UsageError(
            f"{named('reading', 'likelihood')} does not go together with {wrong}; leave out one of "
            "them",
            setting="reading",
        )


TOGETHER: Sequence[Callable[[RunSettings], None]] = (
    *(_check_tier, _check_adaptive, _check_shard, _check_ray, _check_read),
    _check_top_logprobs,
)
"""Each raises `UsageError` with the setting that is wrong."""
