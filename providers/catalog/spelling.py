"""Finds the known model that a misspelt name was meant to be.

New models come with new numbers and new words, so a name that is not in the table is no mistake by
itself: a word of it has to be almost one of the table, or nothing but the punctuation is wrong.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping

from eyechart.providers.catalog.endpoints import DEFAULT
from eyechart.providers.catalog.model_facts import known_models
from eyechart.providers.catalog.price_list import Offer, listed_models, offer
from eyechart.providers.close_match import closest
from eyechart.providers.descriptors import BUILT_IN, descriptor_of, vendors

_NEAR = 0.8
"""From which likeness on a word, or the name of a model, is taken for a misspelt one."""


def meant(given: str, environ: Mapping[str, str] = os.environ) -> str | None:
    """The name that `given`, a name without a provider, was probably meant to be; `None` where it
    is a model of OpenAI, or not near to any known one.
    """
    names = {name.removeprefix(f"{DEFAULT}/"): name for name in known_models(environ)}
    if _is_of(given, (name for name in names if "/" not in name)):
        return None
    examples = [one.example for one in BUILT_IN.values() if one.example]
    words = {word for name in (*names.values(), *examples) for word in _words(name)}
    corrected = re.sub(r"[A-Za-z]+", lambda found: _corrected(found[0], words), given)
    for name, label in names.items():
        provider, _, model = label.partition("/")
        if _is_of(corrected, [model]):
            return f"{provider}/{corrected}".removeprefix(f"{DEFAULT}/")
        if _plain(model) == _plain(given):
            return name.removesuffix("*")
    if corrected != given:
        models = {label.partition("/")[2].removesuffix("*"): name for name, label in names.items()}
        nearest = closest(corrected, [*models, *examples], likeness=0) or given
        return models.get(nearest, nearest).replace("*", "…")
    owners = {
        label.partition("/")[0]
        for label in names.values()
        if _words(label.partition("/")[2])[:1] == _words(given)[:1] != []
    }
    return f"{owners.pop()}/{given}" if len(owners) == 1 and DEFAULT not in owners else None


def near(provider: str, model: str, environ: Mapping[str, str] = os.environ) -> str | None:
    """The known model of the same provider, `provider/model`, that was probably meant; `None` if
    the given model is known itself, is not similar to any, or differs only in numbers.
    """
    if descriptor_of(provider, environ).users_name_models:
        return None
    ours = [label.partition("/") for label in known_models(environ)]
    models = [name for of, _, name in ours if of == provider]
    if _is_of(model, models) or offer(provider, model, (), environ) != Offer():
        return None
    names = [name for name in models if not name.endswith("*")]
    close = closest(model, [*names, *listed_models(provider, environ)], likeness=_NEAR)
    return f"{provider}/{close}" if close and _words(close) != _words(model) else None


def vendor_of(model: str, environ: Mapping[str, str] = os.environ) -> str | None:
    """The provider that has a model of exactly this name; `None` where none is known to have it."""
    for label in known_models(environ):
        provider, _, name = label.partition("/")
        if name == model:
            return provider
    known = [*BUILT_IN.values(), *vendors(environ).values()]
    priced = [one.name for one in known if one.prices and not one.users_name_models]
    return next((one for one in priced if model in listed_models(one, environ)), None)


def _is_of(given: str, models: Iterable[str]) -> bool:
    return any(
        given.startswith(model[:-1]) if model.endswith("*") else given == model for model in models
    )


def _plain(name: str) -> str:
    """The letters and digits of a name."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _words(name: str) -> list[str]:
    return re.findall(r"[a-z]+", name.lower())


def _corrected(word: str, known: set[str]) -> str:
    """The known word that `word` was meant to be: one of the same letters, as `gpt` for `gtp`, or
    one that is near; `word` itself where it is known or near none.
    """
    lower = word.lower()
    if lower in known:
        return word
    same = (other for other in sorted(known) if sorted(other) == sorted(lower))
    return next(same, None) or closest(lower, sorted(known), likeness=_NEAR) or word
