"""The embedded model's replies, computed once in this process: chapters and screens ask it the same
samples again and again. That it repeats itself is tested where the model is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest import mock

from eyechart.providers.tiny.runtime import GeneratedReply, Sampling, TinyModel

_REPLIES: dict[tuple[Any, ...], GeneratedReply] = {}
"""Weights, prompt, limit and sampling -> the reply."""
_compute = TinyModel.generate


@contextmanager
def remembered() -> Iterator[None]:
    """Inside, `TinyModel.generate` computes no reply that it has given before."""
    with mock.patch.object(TinyModel, "generate", _generate):
        yield


def _generate(
    model: TinyModel,
    prompts: Sequence[Sequence[int]],
    max_new_tokens: Sequence[int],
    *,
    on_finished: Callable[[int, GeneratedReply], None],
    sampling: Sequence[Sampling | None],
    **how: Any,
) -> list[GeneratedReply]:
    asked = zip(map(tuple, prompts), max_new_tokens, sampling, strict=True)
    keys = [(model.weights_sha256, *one) for one in asked]
    new = [place for place, key in enumerate(keys) if key not in _REPLIES]

    def finished(index: int, reply: GeneratedReply) -> None:
        _REPLIES[keys[new[index]]] = reply
        on_finished(new[index], reply)

    for place in sorted({*range(len(keys))} - {*new}):
        on_finished(place, _REPLIES[keys[place]])
    _compute(
        model,
        [prompts[place] for place in new],
        [max_new_tokens[place] for place in new],
        on_finished=finished,
        sampling=[sampling[place] for place in new],
        **how,
    )
    return [_REPLIES[key] for key in keys]
