"""Prices and windows of vendors' models, from the package `genai-prices`.

The package is imported on first use, because it is slow. A newer list that `update` has fetched
wins over the package's own.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from eyechart.providers.base import ProviderError
from eyechart.providers.catalog.prices import DEFAULT, Prices, Rates, Steps, Timetable
from eyechart.providers.descriptors import descriptor_of
from eyechart.providers.secrets import redact_address

if TYPE_CHECKING:
    from genai_prices import types

PACKAGE = "genai-prices"
_CONTEXTS = {
    DEFAULT: {},
    "flex": {"service_tier": "flex"},
    "priority": {"service_tier": "priority"},
    "batch": {"processing": "batch"},
}
"""Our word for a tier -> what the list calls it."""
_CHECKED = re.compile(
    r"(?:checked|verified)(?: \w+)? on (20\d\d-\d\d-\d\d)|as of (20\d\d-\d\d-\d\d)"
)
_LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)
_KINDS = ("input", "cache_read", "cache_write", "output", "output_reasoning")


class UpdateError(ProviderError):
    """The list of prices was not updated."""


@dataclass(frozen=True, slots=True)
class Offer:
    """The entry of a model in the list."""

    prices: Prices | None = None
    window: int | None = None
    """Most tokens of its prompts."""


@dataclass(frozen=True, slots=True)
class _PriceData:
    providers: Sequence[types.Provider]
    as_of: date
    source: str


def offer(
    provider: str,
    model: str,
    addresses: Sequence[str] = (),
    environ: Mapping[str, str] = os.environ,
) -> Offer:
    """What the list says of a model of `provider`; at `addresses`, of the vendor that has them.

    Raises:
        SetupError: the user's file of endpoints has a mistake.
    """
    one = descriptor_of(provider, environ)
    is_at_home = set(map(_address, addresses)) <= {_address(one.base_url)}
    if is_at_home or (one.prices and not one.takes_address):
        if one.prices is None:
            return Offer()
        return _offer(one.prices, "", model, str(updated_file(environ)))
    return _offer("", addresses[0], model, str(updated_file(environ)))


def listed_models(provider: str, environ: Mapping[str, str] = os.environ) -> list[str]:
    """The names of the models that the list has of a provider; none where it does not have it."""
    vendor = descriptor_of(provider, environ).prices
    if vendor is None:
        return []
    data = _price_data(updated_file(environ))
    return [model.id for one in data.providers if one.id == vendor for model in one.models]


def _address(url: str) -> str:
    """An address as it is kept in a run."""
    return redact_address(url).rstrip("/")


@cache
def _offer(vendor: str, address: str, model: str, updated: str) -> Offer:
    from genai_prices.data_snapshot import DataSnapshot  # noqa: PLC0415  slow

    data = _price_data(Path(updated))
    snapshot = DataSnapshot(list(data.providers), from_auto_update=False)
    try:
        _, found = snapshot.find_provider_model(model, None, vendor or None, address or None)
    except LookupError:
        return Offer()
    window = found.context_window
    tiers = {
        tier: timetable
        for tier, context in _CONTEXTS.items()
        if (timetable := _timetable(found, context)) is not None
    }
    if DEFAULT not in tiers:
        return Offer(None, window)
    return Offer(Prices(tiers, data.as_of, data.source), window)


def _timetable(model: types.ModelInfo, context: Mapping[str, str]) -> Timetable | None:
    """The rates of a tier at all days and hours where they change; `None` where none are known."""
    from genai_prices import types  # noqa: PLC0415  slow

    conditions = model.prices if isinstance(model.prices, list) else []
    variants = [
        variant
        for variant in model.price_variants or ()
        if context and variant.when.items() <= context.items()
    ]
    if context and not any(_has_rates(variant.prices) for variant in variants):
        return None
    constraints = [*(one.constraint for one in conditions), *(one.constraint for one in variants)]
    starts = {one.start_date for one in constraints if isinstance(one, types.StartDateConstraint)}
    spans = [one for one in constraints if isinstance(one, types.TimeOfDateConstraint)]
    ends = [end for span in spans for end in (span.start_time, span.end_time)]
    seconds = sorted({0, *(end.hour * 3600 + end.minute * 60 + end.second for end in ends)})
    days = [_LONG_AGO, *(datetime(d.year, d.month, d.day, tzinfo=UTC) for d in sorted(starts))]
    rows: list[tuple[Steps, ...]] = []
    for day in days:
        at = [_steps(model.get_prices(day + timedelta(seconds=s), context)) for s in seconds]
        known = [steps for steps in at if steps is not None]
        if len(known) < len(at):
            return None
        rows.append(tuple(known))
    first, *later = (day.timestamp() for day in days)
    del first  # the oldest prices hold for all time before
    return Timetable((float("-inf"), *later), tuple(seconds), tuple(rows))


def _has_rates(prices: types.ModelPrice) -> bool:
    return any(getattr(prices, f"{kind}_mtok") is not None for kind in _KINDS)


def _steps(price: types.ModelPrice) -> Steps | None:
    """The rates for all lengths of prompts; `None` unless prompts and replies have a price."""
    given = {kind: getattr(price, f"{kind}_mtok") for kind in _KINDS}
    if given["input"] is None or given["output"] is None:
        return None
    starts = sorted({tier.start for one in given.values() for tier in getattr(one, "tiers", ())})
    request = float(_at(price.requests_kcount, -1) or 0) * 1000

    def rates(above: int) -> Rates:
        fresh, read, write, said, thought = (_at(given[kind], above) for kind in _KINDS)
        return Rates(
            fresh=fresh or 0.0,
            cache_read=(fresh if read is None else read) or 0.0,
            cache_write=(fresh if write is None else write) or 0.0,
            said=said or 0.0,
            thought=(said if thought is None else thought) or 0.0,
            request=request,
        )

    return tuple((above, rates(above)) for above in (-1, *starts))


def _at(price: Any, above: int) -> float | None:
    """A price for prompts of more than `above` tokens."""
    if price is None:
        return None
    tiers = [tier.price for tier in getattr(price, "tiers", ()) if tier.start <= above]
    return float(tiers[-1] if tiers else getattr(price, "base", price))


@cache
def _price_data(updated: Path) -> _PriceData:
    """The list that was fetched, where it is the newer one, else that of the package."""
    from genai_prices.data_snapshot import get_snapshot  # noqa: PLC0415  slow

    bundled = get_snapshot().providers
    data = _PriceData(bundled, _checked(bundled), f"{PACKAGE} {version(PACKAGE)}")
    with suppress(OSError, ValueError, KeyError, TypeError):  # no such file, or an older form
        kept = orjson.loads(updated.read_bytes())
        fetched = date.fromisoformat(kept["fetched"])
        if fetched > data.as_of:
            return _PriceData(_providers(kept["providers"]), fetched, f"{PACKAGE}, updated")
    return data


def _checked(providers: Sequence[types.Provider]) -> date:
    """The newest day on which a vendor's page was checked, by the comments in the list."""
    comments = [provider.price_comments or "" for provider in providers]
    for provider in providers:
        comments += (model.price_comments or "" for model in provider.models)
    found = (match for text in comments for match in _CHECKED.findall(text))
    return max(date.fromisoformat(one or other) for one, other in found)


def _providers(raw: object) -> list[types.Provider]:
    """Raises `ValueError` if `raw` is no list of prices."""
    from genai_prices.types import _providers_from_raw  # noqa: PLC0415  slow; the updater's own

    return _providers_from_raw(raw)


def _model_count(raw: object) -> int:
    """The number of models in the list `raw`; raises `ValueError` if it is no list of prices."""
    models = sum(len(provider.models) for provider in _providers(raw))
    if not models:
        raise ValueError("it has no models")
    return models


def cache_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """The folder for files of this user, outside of all runs."""
    folder = environ.get("XDG_CACHE_HOME") or Path(environ.get("HOME") or Path.home()) / ".cache"
    return Path(folder) / "eyechart"


def updated_file(environ: Mapping[str, str] = os.environ) -> Path:
    """Where a newer list is kept."""
    return cache_folder(environ) / "prices.json"


def update(today: date, environ: Mapping[str, str] = os.environ) -> tuple[Path, int]:
    """Fetches the newest list; returns the file in which it is kept, and its number of models.

    Raises:
        UpdateError: there is no network, or what came is no list, or it cannot be kept.
    """
    import httpx2  # noqa: PLC0415  slow
    from genai_prices import UpdatePrices  # noqa: PLC0415  slow

    updater = UpdatePrices()
    path = updated_file(environ)
    try:
        fetched = httpx2.get(updater.url, timeout=updater.request_timeout)
        raw = orjson.loads(fetched.raise_for_status().content)
        models = _model_count(raw)
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        part.write_bytes(orjson.dumps({"fetched": today.isoformat(), "providers": raw}))
        part.replace(path)
    except (httpx2.HTTPError, ValueError, OSError) as error:
        what = re.sub(r"^\[Errno -?\d+\] ", "", " ".join(str(error).split()))
        data = _price_data(path)
        raise UpdateError(
            f"the list of prices was not updated from {updater.url}: "
            f"{what or type(error).__name__}; in use are the prices of {data.as_of} ({data.source})"
        ) from error
    forget()
    return path, models


def forget() -> None:
    """Forgets what was read, so that the files are read again."""
    _price_data.cache_clear()
    _offer.cache_clear()
