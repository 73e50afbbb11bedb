"""Why a reply ended: the words of all servers, vendors and files for it, as one of our few."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Literal, TypeAlias

from eyechart.providers.base import FinishReason, OverloadedError, ServerFaultError, Usage
from eyechart.providers.secrets import redact

_Ending: TypeAlias = FinishReason | Literal["broken_off", "overloaded"]
_NAMES = re.compile(r"^(?:finish|stop|done)_reason_")
_FILTERED = (
    r"filter|safety|harm|blocked|blocklist|prohibit|recitation|refus|guardrail|moderat|sensitive"
    r"|spii|toxic|polic|armor|jailbreak|unsafe|risk|^language$"
)
_OVERLOADED = r"rate_?limit|quota|unavailable|resource|load|preempt|evict"
_BROKEN_OFF = (
    r"abort|cancel|interrupt|time_?d?_?out|time_?limit|deadline|network|connect|killed|shut_?down"
    r"|crash|malformed"
)
_CUT_OFF = (
    r"(?:^|_)max|length|limit|window|context|truncat|incomplete|unfinished|exceed|repetition"
    r"|cut_?off"
)
_ENDED = r"stop|eos|(?:^|_)eo[tgs](?:$|_)|(?:^|_)end|complet|finish|done|^word$"
_KINDS: tuple[tuple[_Ending, str], ...] = (
    ("other", r"tool|function|pause|^not_|^(?:other|unknown|unspecified|null)$"),
    ("content_filter", _FILTERED),
    ("overloaded", _OVERLOADED),
    ("broken_off", _BROKEN_OFF),
    ("length", _CUT_OFF),
    ("broken_off", r"error|fail|exception|internal|server"),
    ("stop", _ENDED),
)
"""A kind of ending, and parts of the words for it, in the order in which they are tried: `length`
of `error_limit` (Cohere), but not of `context canceled`. A word is compared as `max_tokens` is
written: without case, and with one `_` for all that is no letter or digit."""
_SHOWN = 100


def finish_of(given: object, usage: Usage | None = None) -> FinishReason | None:
    """Our word for `given`: a word, also with the name of its type before it
    (`FinishReason.MAX_TOKENS`) or with more behind it (`content_filter: BLOCKLIST`), or an object
    that has it (SGLang's `{"type": "length"}`). An unknown word is `other`; `None` says nothing.

    Raises:
        ServerFaultError: the server broke the reply off, so that it is none; `usage` was billed.
        OverloadedError: the same, and its word speaks of load.
    """
    given = _word(given)
    if given is None or given == "":
        return None
    ending = (_ending(given) or "other") if isinstance(given, str) else "other"
    if ending == "broken_off" or ending == "overloaded":  # noqa: PLR1714  mypy narrows by these
        word = redact(str(given))[:_SHOWN]
        kind = OverloadedError if ending == "overloaded" else ServerFaultError
        raise kind(f"the server broke the reply off: {word!r}", usage=usage)
    return ending


def is_ending(given: object) -> bool:
    """Whether `given` is a word that is known to say why a reply ended."""
    return isinstance(given, str) and _ending(given) is not None


def word_to_show(given: object) -> str | None:
    """The server's word for why a reply ended, where ours does not say enough: that of a filter, or
    one that is not known; else `None`.
    """
    word = _word(given)
    if not isinstance(word, str) or not word or _ending(word) not in (None, "content_filter"):
        return None
    return " ".join(redact(word).split())[:_SHOWN]


def _word(given: object) -> object:
    if isinstance(given, Mapping):
        return given.get("type") or given.get("reason") or "other"
    return given


@lru_cache(maxsize=1024)
def _ending(word: str) -> _Ending | None:
    """What a word means; `None` for one that is not known."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", word[:_SHOWN]).lower()
    plain = _NAMES.sub("", re.sub(r"[^a-z0-9]+", "_", words).strip("_"))
    return next((kind for kind, parts in _KINDS if re.search(parts, plain)), None)
