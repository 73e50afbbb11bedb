"""Facts of a run's server: which ones identify its model, and which only say where it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_ADDRESS = "base_url"
_OF_MODEL = frozenset({"model", "root", "max_model_len", "owned_by", "meta"})
"""Facts that identify a server's model. A server without a list of models gives none."""


def addresses(server: Mapping[str, Any]) -> list[str]:
    """The addresses at which the model was asked; none for a server without a fixed address."""
    given = server.get(_ADDRESS)
    return [one for one in (given if isinstance(given, list) else [given]) if isinstance(one, str)]


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """The names of the facts that both servers give and that differ, except the address."""
    names = {*before, *now} - {_ADDRESS}
    if _says_model(before) != _says_model(now):
        names -= _OF_MODEL
    return sorted(name for name in names if before.get(name) != now.get(name))


def unknown_addresses(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """New addresses whose model may be another one, since a server does not identify it."""
    known = addresses(before)
    if not known or (_says_model(before) and _says_model(now)):
        return []
    return [address for address in addresses(now) if address not in known]


def silent_one(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """The addresses that do not identify their model, for a message; for replicas, all of them."""
    silent = [*addresses(before)] if not _says_model(before) else []
    silent += [*addresses(now)] if not _says_model(now) else []
    return " or ".join(dict.fromkeys(silent))


def together(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """The facts of both servers, with all their addresses."""
    kept = {} if _says_model(now) else {n: before[n] for n in _OF_MODEL & before.keys()}
    facts = {**kept, **now}
    both = sorted({*addresses(before), *addresses(now)})
    if both and both != addresses(now):
        facts[_ADDRESS] = both
    return facts


def _says_model(server: Mapping[str, Any]) -> bool:
    return bool(server.get("model"))
