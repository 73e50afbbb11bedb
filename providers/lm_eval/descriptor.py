"""The descriptor of lm-eval, which loads models of many kinds."""

from __future__ import annotations

from collections.abc import Sequence

from eyechart.providers.descriptor import (
    Descriptor,
    Destination,
    Environment,
    Service,
    extra_needed,
)
from eyechart.providers.lm_eval.args import facts_of, label_of, read_args
from eyechart.providers.naming import named


def _destination(
    _addresses: Sequence[str], model_args: Sequence[str], _environ: Environment
) -> Destination | None:
    url = read_args(model_args).get("base_url")
    return None if url is None else Destination((url,), "the key that lm-eval reads")


DESCRIPTOR = Descriptor(
    name="lm-eval",
    title="models that lm-eval loads: hf, gguf, …",
    needs=lambda _environ: f"{named('model_args')}, {extra_needed('lm-eval', 'lm_eval')}",
    opens="eyechart.providers.lm_eval.bridge:open_provider",
    model_args=lambda given: label_of(read_args(given)),
    known_facts=lambda given: facts_of(read_args(given)),
    takes_address=False,
    efforts="none",
    likelihood=lambda _addresses: ("chat", "completions"),
    runs_here=True,
    in_cluster="gpu",
    destination=_destination,
    service=Service("engine", version="lm_eval"),
)
