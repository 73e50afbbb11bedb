"""Conditions of an adaptive run whose accuracy stays near the threshold over many lengths."""

from __future__ import annotations

from collections.abc import Mapping

from eyechart.harness.analysis.findings.finding import Finding, Kind
from eyechart.harness.analysis.length.curve import threshold_text
from eyechart.harness.analysis.length.effective_length import EffectiveLength
from eyechart.harness.analysis.length.interval import span_text


def level(estimates: Mapping[str, EffectiveLength], threshold: float, unit: str) -> Finding | None:
    """The conditions, by label, whose replies allow more lengths than their interval."""
    found = {}
    for label, estimate in estimates.items():
        between = estimate.fit.level_between()
        if estimate.is_ranked and between not in (None, estimate.length_ci):
            found[label] = span_text(between), span_text(estimate.length_ci)
    return LEVEL(lengths=found, threshold=threshold, unit=unit) if found else None


def _level(*, lengths: Mapping[str, tuple[str, str]], threshold: float, unit: str) -> str:
    allowed = "; ".join(
        f"{between} {unit}{f' with {label}' if label else ''} (the interval is {interval})"
        for label, (between, interval) in lengths.items()
    )
    return (
        f"The accuracy may stay near {threshold_text(threshold)} over many lengths: the replies "
        f"alone allow an effective length of {allowed}. An adaptive run may end when one of these "
        "lengths looks better by chance."
    )


LEVEL = Kind(
    "near the threshold",
    "note",
    "in an adaptive run the replies alone allow more lengths than the interval has",
    _level,
)
