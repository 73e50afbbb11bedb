"""Requests to `/v1/completions` for the probabilities of options, and their replies.

The text before the options and the text with each option are the prompts of one request. A server
says how probable each token of a prompt is in one of two ways: it repeats the prompt before its
continuation (`echo` with `logprobs`: vLLM, SGLang and others), or it lists the tokens beside it
(`prompt_logprobs`: vLLM). One token is generated, because not all servers generate none, and is
left out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from eyechart.providers.base import ModelSettings, Reply, Request, SetupError, sent_of
from eyechart.providers.documents import opened
from eyechart.providers.likelihood import scored_reply, shared_tokens, texts_with
from eyechart.providers.openai.form import reply_of

Tokens: TypeAlias = tuple[list[str], list[float]]
"""The tokens of a prompt and the logarithms of their probabilities; the first one is never used."""
_UNABLE = (
    "the server does not give the probabilities of a prompt's tokens, which reading by likelihood "
    "needs; vLLM and SGLang do"
)


def option_texts(request: Request) -> list[str]:
    """The text before the options, and the text with each of them."""
    text, texts = texts_with(opened(request.prompt, request.opening), request)
    return [text, *texts]


def echo_body(request: Request, settings: ModelSettings) -> dict[str, Any]:
    """The body for a server that repeats the prompt, without the model."""
    return {**_body(option_texts(request), settings), "echo": True, "logprobs": 1}


def listing_body(
    prompts: Sequence[str] | Sequence[Sequence[int]], settings: ModelSettings
) -> dict[str, Any]:
    """The body for vLLM, with the model; the prompts are texts or tokens."""
    return {"model": settings.model, **_body(prompts, settings), "prompt_logprobs": 0}


def _body(
    prompts: Sequence[str] | Sequence[Sequence[int]], settings: ModelSettings
) -> dict[str, Any]:
    return {"prompt": list(prompts), "max_tokens": 1, "temperature": 0.0, **settings.params}


def options_of(request: Request, read: Any, body: Mapping[str, Any]) -> Reply:
    """The reply to a request with this body.

    Raises:
        SetupError: the server does not know the probabilities of a prompt's tokens.
        ProviderError: see `form.reply_of`.
    """
    whole = reply_of(read)
    choices = sorted(read["choices"], key=_index)
    if len(choices) != len(body["prompt"]):
        raise SetupError(f"{_UNABLE} ({len(choices)} of {len(body['prompt'])} prompts)")
    generated = len(choices) if whole.usage is None else whole.usage.output_tokens
    find = _listed if "prompt_logprobs" in body else _echoed
    (tokens, _), *each = (find(choice, generated // len(choices)) for choice in choices)
    if not tokens:
        raise SetupError(f"{_UNABLE} (the prompt is not repeated)")
    shared = shared_tokens(tokens, [tokens for tokens, _ in each])
    logprobs = [logprobs[shared:] for _, logprobs in each]
    if not all(math.isfinite(value) for values in logprobs for value in values):
        raise SetupError(f"{_UNABLE} (one has none)")
    usage = None
    if whole.usage is not None:
        counts = {"prompt_tokens": shared, "output_tokens": sum(map(len, logprobs))}
        usage = type(whole.usage)(**counts, tier=whole.usage.tier)
    return scored_reply(request, logprobs, usage=usage, model=whole.model, sent=sent_of(body))


def _index(choice: Any) -> int:
    index = choice.get("index") if isinstance(choice, dict) else None
    return index if isinstance(index, int) else 0


def _echoed(choice: Any, generated: int) -> Tokens:
    """From a prompt that was repeated before `generated` tokens."""
    try:
        tokens = list(choice["logprobs"]["tokens"])
        logprobs = list(choice["logprobs"]["token_logprobs"])
        end = min(len(tokens), len(logprobs)) - generated
        return _typed(tokens[:end], logprobs[:end])
    except (KeyError, TypeError, ValueError) as error:
        raise SetupError(f"{_UNABLE} (no logprobs)") from error


def _listed(choice: Any, _generated: int) -> Tokens:
    """From the list of a prompt's tokens; it does not say which one is the first."""
    try:
        first, *others = choice["prompt_logprobs"]
        pairs = [next(iter(one.items())) for one in others]
        return _typed(
            ["", *(token for token, _ in pairs)], [first, *(v["logprob"] for _, v in pairs)]
        )
    except (KeyError, TypeError, ValueError, AttributeError, StopIteration) as error:
        raise SetupError(f"{_UNABLE} (no prompt_logprobs)") from error


def _typed(tokens: list[Any], logprobs: list[Any]) -> Tokens:
    """The columns with a NaN where a probability is missing, as that of the first token is."""
    return list(map(str, tokens)), [math.nan if one is None else float(one) for one in logprobs]
