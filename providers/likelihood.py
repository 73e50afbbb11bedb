"""Options of a forced choice as text and as tokens, for all providers that score them.

The probability of an option is that of its tokens after those of the text before it. Which tokens
these are is read from the whole: text and option are tokenized together, as they would be in a
reply, and what goes beyond the tokens of the text alone is the option (the rule of
lm-evaluation-harness, `_encode_pair`; blanks at the end of the text go with the option there too).
Where the end of the text and the beginning of an option are one token, all options count from the
last token before it: so the same characters are compared.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TypeVar

from eyechart.providers.base import BadReplyError, Reply, Request, ScoredOption, Usage

_Token = TypeVar("_Token", int, str)
_MOST_TOGETHER = 1.5
"""Probability of options that exclude each other, none of which begins with another: at most 1, and
the rounding of a server of few bits."""


def texts_with(before: str, request: Request) -> tuple[str, list[str]]:
    """The text before the options, and the text with each of them. A blank lies between, unless
    the text is empty or ends with white space, as before a reply that begins with the option.
    """
    text = before.rstrip(" ")
    gap = before[len(text) :] or " " * bool(text and not text.endswith("\n"))
    return text, [f"{text}{gap}{option}" for option in request.options]


def shared_tokens(before: Sequence[_Token], wholes: Sequence[Sequence[_Token]]) -> int:
    """How many tokens the text before the options and all texts with an option begin with alike.

    Raises:
        BadReplyError: there is none, or an option has no token of its own.
    """
    shared = len(before)
    for whole in wholes:
        if whole[:shared] != before[:shared]:
            pairs = enumerate(zip(before, whole, strict=False))
            differs = (at for at, (one, two) in pairs if one != two)
            shared = min(shared, next(differs, len(whole)))
    if not shared or any(len(whole) == shared for whole in wholes):
        raise BadReplyError("the tokens of an option cannot be told from those of the prompt")
    return shared


def scored_reply(
    request: Request,
    logprobs: Sequence[Sequence[float]],
    *,
    usage: Usage | None = None,
    model: str | None = None,
    sent: Mapping[str, object] | None = None,
) -> Reply:
    """The reply to `score`, from the log-probabilities of the tokens of each option. Its usage
    counts the tokens before the options once, as the prompt, and the tokens of all options as the
    output.

    Raises:
        BadReplyError: options that exclude each other are too probable together.
    """
    scored = [
        ScoredOption(option, sum(values), len(values))
        for option, values in zip(request.options, logprobs, strict=True)
    ]
    apart = [
        one.logprob
        for one in scored
        if not any(one.text.startswith(other.text) for other in scored if other is not one)
    ]
    if (total := sum(math.exp(min(logprob, 0.0)) for logprob in apart)) > _MOST_TOGETHER:
        raise BadReplyError(
            f"{len(apart)} options that exclude each other have the probability {total:.4g} "
            "together, where 1 is the most"
        )
    return reply_with(scored, usage=usage, model=model, sent=sent)


def reply_with(
    scored: Sequence[ScoredOption],
    *,
    usage: Usage | None = None,
    model: str | None = None,
    sent: Mapping[str, object] | None = None,
) -> Reply:
    """The reply with these options. Its text is the most probable one, of equal ones the last."""
    best = max(reversed(scored), key=lambda one: one.logprob)
    return Reply(best.text, usage=usage, model=model, sent=sent, options=tuple(scored))


_SURE = 0.9


def choosing_reply(request: Request, chosen: str) -> Reply:
    """A made-up reply: the option `chosen` has a probability of 0.9; the others share the rest."""
    others = (1 - _SURE) / (len(request.options) - 1)
    return scored_reply(
        request, [[math.log(_SURE if option == chosen else others)] for option in request.options]
    )
