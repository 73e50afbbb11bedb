"""The descriptor of the embedded model."""

from __future__ import annotations

from eyechart.providers.descriptor import Descriptor, Service

DESCRIPTOR = Descriptor(
    name="tiny",
    title="the embedded model",
    opens="eyechart.providers.tiny.provider:open_provider",
    only_model="tiny",
    example="tiny",
    takes_address=False,
    gives_logprobs=False,
    efforts="none",
    likelihood=lambda _addresses: ("chat", "completions"),
    runs_here=True,
    is_free=True,
    counts_tokens="here",
    service=Service("ours", "eyechart", "open"),
)
