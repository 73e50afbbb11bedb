"""The descriptor of vLLM: servers that run, and one of our own."""

from __future__ import annotations

from collections.abc import Sequence

from eyechart.providers.catalog.endpoints import OPEN_SERVER
from eyechart.providers.descriptor import (
    Descriptor,
    Destination,
    Environment,
    Service,
    at,
    extra_needed,
    key_in,
)
from eyechart.providers.naming import named

VLLM_KEY = "VLLM_API_KEY"
"""The key that `vllm serve --api-key` requires."""


def _destination(
    addresses: Sequence[str], _model_args: Sequence[str], environ: Environment
) -> Destination | None:
    return at(addresses, key_in(VLLM_KEY, environ)) if addresses else None


def server_arguments(model_args: Sequence[str]) -> tuple[str, ...]:
    """The arguments of `vllm serve`, from `KEY=VALUE` or as they are typed there."""
    return tuple(one if one.startswith("-") else f"--{one}" for one in model_args)


DESCRIPTOR = Descriptor(
    name="vllm",
    title="vLLM: a server that runs, or one of our own",
    needs=lambda _environ: f"{named('base_url')}, or {extra_needed('vllm', 'vllm')}",
    opens="eyechart.providers.vllm.client:open_provider",
    batch_form="eyechart.providers.openai.batch_form:open_vllm",
    batch_hint="'bench export batch' writes files for 'vllm run-batch'",
    takes_model_args=True,
    known_facts=lambda given: {"server_args": list(server_arguments(given))} if given else {},
    efforts="none",
    thinking=lambda _addresses: OPEN_SERVER,
    takes_turns=True,
    takes_params=True,
    takes_headers=True,
    likelihood=lambda _addresses: ("chat", "completions"),
    effort_hint=f"ask its server: {named('model', 'NAME')} {named('base_url', '…')}",
    runs_here=True,
    is_free=True,
    counts_tokens="server",
    in_cluster="engine",
    destination=_destination,
    service=Service("engine", version="version"),
)
