"""Settings that need another one, and settings that do not go together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from eyechart.harness.errors import UsageError
from eyechart.providers.naming import ON, named

Given: TypeAlias = Mapping[str, Any]
"""Name -> value, of the settings that differ from their default."""
Side: TypeAlias = tuple[str, str]
"""A setting, and the value that counts: "" is any that differs from the default."""
_ADAPTIVE, _RAY, _BATCH = ("adaptive", ON), ("engine", ""), ("tier", "batch")
_NEEDS: Mapping[str, Side] = {
    "precision": _ADAPTIVE,
    "max_requests": _ADAPTIVE,
}
_WRITTEN_OR_DRAWN = (
    *(_BATCH, _RAY, ("thinking", ""), ("temperature", "")),
    *(("max_tokens", ""), ("logprobs", ""), ("draws", "")),
)
"""A forced choice asks for probabilities: nothing is written, and nothing is drawn."""
_CONFLICTS: Iterable[tuple[Side, Side, str]] = (
    *((pace, _BATCH, ": it is for single requests") for pace in (("rpm", ""), ("tpm", ""))),
    (
        *(("shard", ""), _ADAPTIVE),
        ", which chooses each sample by all replies so far: a shard has only its own",
    ),
    (("shard", ""), _BATCH, ": batches share a run's rows"),
    (("shard", ""), ("fresh", ON), ", which moves the whole run; use another folder"),
    (_RAY, _BATCH, ": each asks in its own way"),
    (("budget", ""), _RAY, ": no worker knows what the others spend"),
    *((("reading", "likelihood"), other, "") for other in _WRITTEN_OR_DRAWN),
)
"""Two settings that do not go together, and why not."""


def check_together(given: Given) -> None:
    """Raises `UsageError` for the first setting that lacks what it needs, or that stands beside one
    it does not go together with.
    """
    for name, needed in _NEEDS.items():
        if name in given and not _has(given, needed):
            raise UsageError(f"{named(name)} needs {named(*needed)}; add it", setting=name)
    for one, other, why in _CONFLICTS:
        if _has(given, one) and _has(given, other):
            raise UsageError(
                f"{_shown(given, one)} does not go together with {_shown(given, other)}{why}; "
                "leave out one of them",
                setting=one[0],
            )
    most, draws = given.get("max_requests"), given.get("draws", 1)
    if most is not None and most < draws:
        raise UsageError(
            f"{named('max_requests', str(most))} is less than the {draws} requests of a sample "
            f"with {named('draws', str(draws))}; raise one or lower the other",
            setting="max_requests",
        )


def _has(given: Given, side: Side) -> bool:
    name, value = side
    return name in given and value in ("", str(given[name]))


def _shown(given: Given, side: Side) -> str:
    """The setting as a message names it, with its value where that is one number or word."""
    name, value = side
    is_short = isinstance(given[name], int | str)
    return named(name, value or (str(given[name]) if is_short else ""))
