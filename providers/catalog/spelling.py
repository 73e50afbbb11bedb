"""What a user meant who wrote the name of a known model almost right.

New models come with new numbers and new words, so a name that is not in the table is no mistake by
itself: one letter has to be wrong in a word that the table has, or nothing but the punctuation.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable, Mapping
from itertools import takewhile
from operator import eq

from eyechart.providers.catalog.endpoints import endpoints
from eyechart.providers.catalog.model_facts import known_models
from eyechart.providers.catalog.price_list import Offer, listed_models, offer

_BUILT_IN = ("tiny", "oracle")
_NEAR = 0.8
"""From which likeness on the name of a model is taken for a misspelt one, by `difflib`."""
_SHORT, _LONG = 5, 6
"""Letters from which a word may have one mistake of any kind, and two. In a shorter word only two
letters that changed places are a mistake: other short words are too near."""


def meant(given: str, environ: Mapping[str, str] = os.environ) -> str | None:
    """The name that `given`, a name without a provider, was probably meant to be; `None` where it
    is a model of OpenAI, or not near to any known one.
    """
    names = {name.removeprefix("openai/"): name for name in known_models(environ)}
    if _is_of(given, (name for name in names if "/" not in name)):
        return None
    for name, label in names.items():
        provider, _, model = label.partition("/")
        if _is_of(given, [model]):
            return f"{provider}/{given}"
        if _plain(model) == _plain(given):
            return name.removesuffix("*")
    words = {word for name in (*names.values(), *_BUILT_IN) for word in _words(name)}
    corrected = re.sub(r"[A-Za-z]+", lambda found: _corrected(found[0], words), given)
    if corrected != given:
        return _nearest(corrected, names)
    owners = {
        label.partition("/")[0]
        for label in names.values()
        if _words(label.partition("/")[2])[:1] == _words(given)[:1] != []
    }
    return f"{owners.pop()}/{given}" if len(owners) == 1 and "openai" not in owners else None


def near(provider: str, model: str, environ: Mapping[str, str] = os.environ) -> str | None:
    """The known model, `provider/model`, that one of the same provider was probably meant to be;
    `None` where it is known itself, is not near to any, or differs in numbers alone.
    """
    if provider == "azure":  # deployments have names of their users
        return None
    ours = [label.partition("/") for label in known_models(environ)]
    models = [name for of, _, name in ours if of == provider]
    if _is_of(model, models) or offer(provider, model, (), environ) != Offer():
        return None
    names = [name for name in models if not name.endswith("*")]
    close = difflib.get_close_matches(
        model, [*names, *listed_models(provider, environ)], n=1, cutoff=_NEAR
    )
    if not close or _words(close[0]) == _words(model):
        return None
    return f"{provider}/{close[0]}"


def vendor_of(model: str, environ: Mapping[str, str] = os.environ) -> str | None:
    """The provider that has a model of exactly this name; `None` where none is known to have it."""
    for label in known_models(environ):
        provider, _, name = label.partition("/")
        if name == model:
            return provider
    vendors = [name for name, one in endpoints(environ).items() if one.prices is not None]
    return next(
        (one for one in ("anthropic", *vendors) if model in listed_models(one, environ)), None
    )


def _nearest(corrected: str, names: Mapping[str, str]) -> str:
    """The known name that is nearest to `corrected`, which may be of a known family; "…" stands for
    the rest of a family's.
    """
    if corrected.partition(":")[0] in _BUILT_IN:
        return corrected
    for name, label in names.items():
        if _is_of(corrected, [label.partition("/")[2]]):
            return f"{name.rpartition('/')[0]}/{corrected}".lstrip("/")
    by_plain = {_plain(label.partition("/")[2]): name for name, label in names.items()}
    plain = _plain(corrected)

    def nearness(known: str) -> tuple[float, int]:
        matcher = difflib.SequenceMatcher(None, plain, known)
        same = takewhile(bool, map(eq, plain, known))
        return matcher.ratio(), sum(same)

    return by_plain[max(by_plain, key=nearness)].replace("*", "…")


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
    """The known word that `word` was meant to be; `word` itself where it is known or near none."""
    lower = word.lower()
    if lower in known:
        return word
    if len(lower) < _SHORT:
        swapped = (
            lower[:at] + lower[at + 1] + lower[at] + lower[at + 2 :] for at in range(len(lower) - 1)
        )
        return next((other for other in swapped if other in known), word)
    most = 2 if len(lower) >= _LONG else 1
    near = {other: _mistakes(lower, other) for other in sorted(known) if len(other) >= _SHORT - 1}
    best = min(near, key=near.__getitem__, default=word)
    return best if near.get(best, most + 1) <= most else word


def _mistakes(first: str, second: str) -> int:
    """Letters to add, leave out, replace, or exchange with their neighbour."""
    rows: list[list[int]] = [list(range(len(second) + 1))]
    for at, letter in enumerate(first):
        row = [at + 1]
        for place, other in enumerate(second):
            row.append(
                min(rows[-1][place + 1] + 1, row[-1] + 1, rows[-1][place] + (letter != other))
            )
            if at and place and letter == second[place - 1] and first[at - 1] == other:
                row[-1] = min(row[-1], rows[-2][place - 1] + 1)
        rows.append(row)
    return rows[-1][-1]
