"""The facts of a run's server: which of them say what its model is, and which only where it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_ADDRESS = "base_url"
_OF_MODEL = frozenset({"model", "root", "max_model_len", "owned_by", "meta"})
"""What a server says of its model; servers without a list of models say nothing of it."""


def addresses(server: Mapping[str, Any]) -> list[str]:
    """The addresses at which the model was asked; none of a server that had no fixed address."""
    given = server.get(_ADDRESS)
    return [one for one in (given if isinstance(given, list) else [given]) if isinstance(one, str)]


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """The names of the facts that differ, besides the address. What only one of the servers says of
    its model is no difference.
    """
    names = {*before, *now} - {_ADDRESS}
    if _says_model(before) != _says_model(now):
        names -= _OF_MODEL
    return sorted(name for name in names if before.get(name) != now.get(name))


def unknown_addresses(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """The new addresses where the model may be another one, as a server does not say what it is."""
    known = addresses(before)
    if not known or (_says_model(before) and _says_model(now)):
        return []
    return [address for address in addresses(now) if address not in known]


def silent_one(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """The addresses that do not say which model they have, for a message: of replicas, all."""
    silent = [*addresses(before)] if not _says_model(before) else []
    silent += [*addresses(now)] if not _says_model(now) else []
    return " or ".join(dict.fromkeys(silent))


def together(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """The facts of both, with all their addresses."""
    kept = {} if _says_model(now) else {n: before[n] for n in _OF_MODEL & before.keys()}
    facts = {**kept, **now}
    both = sorted({*addresses(before), *addresses(now)})
    if both and both != addresses(now):
        facts[_ADDRESS] = both
    return facts


def _says_model(server: Mapping[str, Any]) -> bool:
    return bool(server.get("model"))
