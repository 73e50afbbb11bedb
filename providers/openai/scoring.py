"""Requests to `/v1/completions` for the probabilities of options, and their replies.

The text before the options and the text with each option are the prompts of one request. A server
says how probable each token of a prompt is in one of two ways: it repeats the prompt before its
continuation (`echo` with `logprobs`: vLLM, SGLang and others), or it lists the tokens beside it
(`prompt_logprobs`: vLLM). One token is generated, because not all servers generate none, and is
left out.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, TypeAlias

from eyechart.providers.base import (
    BadReplyError,
    BadRequestError,
    ModelSettings,
    Reply,
    Request,
    ServerFaultError,
    SetupError,
    Usage,
    sent_of,
)
from eyechart.providers.documents import opened
from eyechart.providers.likelihood import scored_reply, shared_tokens, texts_with
from eyechart.providers.naming import named
from eyechart.providers.openai.form import reply_of

Tokens: TypeAlias = tuple[list[str], list[float]]
"""The tokens of a prompt and the logarithms of their probabilities; the first one is never used."""
_UNABLE = (
    "the server does not give the probabilities of a prompt's tokens, which "
    f"{named('reading', 'likelihood')} needs and vLLM, SGLang and llama.cpp have"
)
_INSTEAD = f"use {named('reading', 'reply')}"
_ROUNDING = 1e-3
"""A log-probability above 0 by so much is the rounding of a server."""


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


class UnreadableError(Exception):
    """Options whose probabilities a reply does not have; the message says why."""


class OptionScores:
    """Probabilities of options from the servers of one model.

    Until one reply has been good, a server that has none is an error of the run; afterwards it is
    one of the sample.
    """

    def __init__(self) -> None:
        self._has_read = False

    async def of(self, scoring: Awaitable[Reply]) -> Reply:
        """The reply with the options.

        Raises:
            SetupError: the server does not know the probabilities of a prompt's tokens.
            ProviderError: see `form.reply_of`; or a probability cannot be true.
        """
        try:
            reply = await scoring
        except (BadRequestError, ServerFaultError) as error:
            refuses = isinstance(error, BadRequestError) or "logprobs" in str(error)
            if self._has_read or not refuses:  # llama-cpp-python's server refuses with a 500
                raise
            raise SetupError(f"{_UNABLE} ({error}); {_INSTEAD}") from error
        except UnreadableError as error:
            if self._has_read:
                raise BadReplyError(
                    f"the probabilities of the options are missing: {error}"
                ) from error
            raise SetupError(f"{_UNABLE} ({error}); {_INSTEAD}") from error
        self._has_read = True
        return reply


async def options_of(request: Request, body: Mapping[str, Any], sending: Awaitable[Any]) -> Reply:
    """The reply to a request whose body is sent, from what the server says."""
    read = await sending
    whole = reply_of(read)
    prompts = body["prompt"]
    choices = choices_of(read, len(prompts))
    if "prompt_logprobs" in body:
        each = [_listed(choice) for choice in choices]
    else:
        each = [_echoed(choice) for choice in choices]
        ends = _ends(prompts, [tokens for tokens, _ in each], whole.usage)
        each = [(one[:end], logs[:end]) for (one, logs), end in zip(each, ends, strict=True)]
    (tokens, _), *each = each
    shared = shared_tokens(tokens, [tokens for tokens, _ in each])
    return reply_from(request, whole, body, shared, [logprobs[shared:] for _, logprobs in each])


def reply_from(
    request: Request,
    whole: Reply,
    body: Mapping[str, Any],
    shared: int,
    logprobs: Sequence[Sequence[float]],
) -> Reply:
    """The reply with the log-probabilities of the tokens of each option, after the `shared` first
    tokens; `whole` is the server's reply to `body`.

    Raises:
        UnreadableError: no token of an option has a probability.
        BadReplyError: a probability cannot be true.
    """
    _check(logprobs)
    usage = None
    if whole.usage is not None:
        counts = {"prompt_tokens": shared, "output_tokens": sum(map(len, logprobs))}
        usage = type(whole.usage)(**counts, tier=whole.usage.tier)
    return scored_reply(request, logprobs, usage=usage, model=whole.model, sent=sent_of(body))


def choices_of(read: Any, prompts: int) -> list[Any]:
    """The choices of a reply in the order of the prompts; raises `UnreadableError` if some are
    missing.
    """
    choices = sorted(read["choices"], key=_index)
    if len(choices) != prompts:
        raise UnreadableError(f"the reply has {len(choices)} of {prompts} prompts")
    return choices


def _check(logprobs: Sequence[Sequence[float]]) -> None:
    values = [value for each in logprobs for value in each]
    if not any(map(math.isfinite, values)):
        given = " or ".join(dict.fromkeys(map(_given, values)))
        raise UnreadableError(f"each token of the options has {given or 'none'}")
    for value in values:
        if not math.isfinite(value) or value > _ROUNDING:
            raise BadReplyError(f"a token of an option has {_given(value)}")
    for each in logprobs:
        if not math.isfinite(sum(each)):
            raise BadReplyError("the sum of the log-probabilities of an option is not finite")


def _given(logprob: float) -> str:
    is_none = math.isnan(logprob)
    return "no log-probability (null or NaN)" if is_none else f"the log-probability {logprob}"


def _index(choice: Any) -> int:
    index = choice.get("index") if isinstance(choice, dict) else None
    return index if isinstance(index, int) else 0


def _ends(
    prompts: Sequence[str], each: Sequence[Sequence[str]], usage: Usage | None
) -> Sequence[int]:
    """How many of the tokens repeated for each prompt are those of the prompt. The last one may
    have been generated, and the model may have ended instead.

    Where tokens do not join to the prompt, because one of them is a part of a character, the usage
    says whether each prompt got one, or none; it must agree with the tokens.
    """
    ends = [_end(prompt, tokens) for prompt, tokens in zip(prompts, each, strict=True)]
    found = [end for end in ends if end is not None]
    if len(found) == len(ends):
        return found
    if usage is not None and usage.output_tokens in (0, len(prompts)):
        generated = usage.output_tokens
        if usage.prompt_tokens + generated == sum(map(len, each)):
            return [len(tokens) - generated // len(prompts) for tokens in each]
    raise UnreadableError("the repeated tokens are not those of the prompt")


def _end(prompt: str, tokens: Sequence[str]) -> int | None:
    texts = [("".join(tokens[:count]), count) for count in (len(tokens), len(tokens) - 1)]
    same = (count for text, count in texts if text == prompt)
    behind_a_mark = (count for text, count in texts if text.endswith(prompt))
    return next(same, next(behind_a_mark, None))


def _echoed(choice: Any) -> Tokens:
    """Of a prompt that was repeated, and of what was generated."""
    try:
        logprobs = choice["logprobs"]
        return _typed(list(logprobs["tokens"]), list(logprobs["token_logprobs"]))
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise UnreadableError("no logprobs") from error


def _listed(choice: Any) -> Tokens:
    """From the list of a prompt's tokens; it does not say which one is the first."""
    try:
        first, *others = choice["prompt_logprobs"]
        pairs = [next(iter(one.items())) for one in others]
        return _typed(
            ["", *(token for token, _ in pairs)], [first, *(v["logprob"] for _, v in pairs)]
        )
    except (
        LookupError,
        TypeError,
        ValueError,
        OverflowError,
        AttributeError,
        StopIteration,
    ) as error:
        raise UnreadableError("no prompt_logprobs") from error


def _typed(tokens: list[Any], logprobs: list[Any]) -> Tokens:
    """The columns with a NaN where a probability is missing, as that of the first token is."""
    if len(tokens) != len(logprobs):
        raise BadReplyError(f"{len(tokens)} tokens have {len(logprobs)} log-probabilities")
    return list(map(str, tokens)), [math.nan if one is None else float(one) for one in logprobs]
