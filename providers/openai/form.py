"""OpenAI's form of requests and replies: makes bodies, and reads JSON as a `Reply`.

Shared by all servers with this form, for chat and for plain completions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from eyechart.providers.base import (
    BadReplyError,
    FinishReason,
    ModelSettings,
    Reply,
    Request,
    Usage,
)
from eyechart.providers.catalog.endpoints import (
    OPEN_SERVER,
    VLLM,
    Endpoint,
    Thinking,
    thinking_fields,
)
from eyechart.providers.catalog.model_facts import ModelFacts
from eyechart.providers.catalog.price_list import offer
from eyechart.providers.documents import as_document, stops
from eyechart.providers.finish import finish_of, word_to_show
from eyechart.providers.http.errors import error_within
from eyechart.providers.openai.neutral import NeutralFields, neutral_of
from eyechart.providers.plugins.contract import is_count, kind

_READ_FROM_CACHE = (
    ("prompt_tokens_details", "cached_tokens"),  # OpenAI, Gemini, OpenRouter, vLLM, xAI, Groq
    ("prompt_cache_hit_tokens",),  # DeepSeek
    ("cached_tokens",),  # Moonshot
)
_WRITTEN_TO_CACHE = (("prompt_tokens_details", "cache_write_tokens"),)  # OpenAI, OpenRouter
_THOUGHT = (("completion_tokens_details", "reasoning_tokens"), ("reasoning_tokens",))
"""Paths of token counts in `usage`, the likeliest first."""
_TIERS = {"auto": None, "standard": "default", "on_demand": "default", "fast": "priority"}
"""A vendor's word for a tier -> ours, where they differ."""
_LONGEST_TIER = 32
_OTHER_NAMES = {"max_tokens": "max_completion_tokens"}
"""Parameter -> its name for newer models."""
_ABOVE_0 = 0.01
"""The temperature for servers that take no 0: the most probable token is then chosen as well."""


def body_of(request: Request, settings: ModelSettings) -> dict[str, Any]:
    """The body without model and sampling parameters."""
    if settings.api == "completions":
        body: dict[str, Any] = {
            "prompt": as_document(request.prompt),
            "stop": stops(request.prompt),
        }
        return body | ({"logprobs": settings.top_logprobs or 1} if settings.logprobs else {})
    system = [{"role": "system", "content": settings.system}] if settings.system else []
    body = {"messages": [*system, *request.messages]}
    top = {"top_logprobs": settings.top_logprobs} if settings.top_logprobs else {}
    return body | ({"logprobs": True, **top} if settings.logprobs else {})


class OpenAIForm:
    """Makes bodies with one server's parameter names, and without parameters that it lacks.

    These are known from `endpoints.yaml` and `models.yaml`, and from requests that it rejected.
    """

    def __init__(
        self,
        settings: ModelSettings,
        endpoint: Endpoint,
        facts: ModelFacts,
        *,
        uncached: bool = False,
    ) -> None:
        """`uncached` keeps prompts out of the vendor's cache. Hardly any two prompts share more
        than a few tokens, so paying to write them to the cache would be useless.
        """
        self._settings = settings
        wanted = asked_fields(settings, endpoint.thinking)
        self._more: dict[str, object] = wanted | dict(endpoint.uncached if uncached else {})
        if settings.tier is not None and (word := endpoint.tiers.get(settings.tier)) is not None:
            self._more["service_tier"] = word
        self._endpoint = endpoint
        self._facts = facts
        self.dropped: set[str] = {*endpoint.forced} - settings.params.keys()
        """Parameters that the server has rejected, or cannot be told."""
        self.neutral = NeutralFields(neutral_of(endpoint.neutral, settings.params))
        self._renamed: dict[str, str] = {}
        self._least = 0.0
        """The temperature that is sent for 0."""
        self._notes: dict[str, str] = {}
        """Parameter -> a line for the user on what is not sent as it was asked for."""
        asked_for = () if settings.effort is None else ("reasoning_effort",)
        self._kept = {*_OTHER_NAMES, *_OTHER_NAMES.values(), "service_tier", *asked_for}
        self._kept |= wanted.keys()
        """Parameters that are never left out."""

    def body(self, request: Request, *, bare: bool = False) -> dict[str, Any]:
        """The body without the model; a `bare` one leaves the sampling to the server."""
        body = body_of(request, self._settings)
        if not bare:
            body |= self.neutral.fields
        body["max_tokens"] = request.max_tokens
        if self._facts.effort is not None:
            body["reasoning_effort"] = self._facts.effort
        if request.temperature is not None:
            body["temperature"] = request.temperature or self._least
        if request.seed is not None:
            body["seed"] = request.seed
        body |= self._more
        if rename := {**self._endpoint.rename, **self._renamed}:
            body = {rename.get(name, name): value for name, value in body.items()}
        for name in (*self._endpoint.drop, *self.dropped):
            body.pop(name, None)
        return body

    def refuse_neutral(self) -> None:
        """From now on leaves out all neutral fields."""
        for name in tuple(self.neutral.fields):
            self._refuse(name, whole=True)

    def _refuse(self, name: str, *, whole: bool) -> None:
        self.neutral.refuse(name, whole=whole)
        self.dropped |= self.neutral.refused

    def adapt(self, name: str, message: str, *, whole: bool = True) -> bool:
        """From now on sends the parameter `name` with another value, or under the other name in the
        server's `message`, or not at all. `whole`: whether the server takes none of its values.

        Returns false for the limit of tokens and the tier, which are never left out because the
        cost depends on them, and for what the user asked for: an effort, thinking, a parameter, and
        a temperature above 0 whose value is refused.
        """
        if name in self.neutral.fields:
            self._refuse(name, whole=whole)
            return True
        other = next(
            (new for old, new in _OTHER_NAMES.items() if old == name and new in message), None
        )
        model, is_value = self._settings.model, name == "temperature" and not whole
        if other is not None:
            self._renamed[name] = other
            self._notes[name] = f"{model} takes {other!r} instead of {name!r}"
        elif name in self._kept or (is_value and self._settings.temperature):
            return False
        elif is_value and not self._least:
            self._least = _ABOVE_0
            self._notes[name] = f"{model} takes no {name!r} of 0; it is asked with {_ABOVE_0}"
        else:
            self.dropped.add(name)
            self._notes[name] = f"{model} does not take {name!r}; it is asked without"
        return True

    def new_notes(self) -> list[str]:
        """Lines for the user on what was adapted since the last time."""
        notes = [*self._notes.values(), self.neutral.new_note(self._settings.model)]
        self._notes.clear()
        return [note for note in notes if note]


def writes_cost(settings: ModelSettings, endpoint: Endpoint) -> bool:
    """Whether writing prompts to a cache costs more with this model, which does it by itself."""
    if not endpoint.uncached:
        return False
    prices = offer(settings.provider, settings.model).prices
    return prices is not None and prices.charges_writes


def vllm_form(settings: ModelSettings) -> OpenAIForm:
    """The form of vLLM, whose servers have no rules of their own."""
    return OpenAIForm(settings, VLLM, ModelFacts())


def asked_fields(settings: ModelSettings, forms: Thinking) -> dict[str, Any]:
    """The fields of a body that the user asks for: the parameters, and in them the wish for
    thinking, in one of the `forms`.
    """
    return _joined(settings.params, thinking_fields(settings.thinking, forms))


def _joined(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """Both mappings, and the mappings in them, as one; the second wins."""
    both = first.keys() & second.keys()
    inner = {
        name: _joined(first[name], second[name])
        for name in both
        if isinstance(first[name], Mapping) and isinstance(second[name], Mapping)
    }
    return {**first, **second, **inner}


def template_fields(settings: ModelSettings) -> dict[str, Any]:
    """The fields that the chat template of an open server gets."""
    fields = asked_fields(settings, OPEN_SERVER).get("chat_template_kwargs")
    return fields if isinstance(fields, dict) else {}


def path_of(settings: ModelSettings) -> str:
    """The path after the base URL to which such a body is sent."""
    return "/completions" if settings.api == "completions" else "/chat/completions"


def reply_of(read: Any, *, sent: Mapping[str, object] | None = None) -> Reply:
    """The first choice of `read`; `sent` is that of the reply.

    Raises:
        BadReplyError: it is not a completion, or has no choices.
        ProviderError: it contains an error.
    """
    if not isinstance(read, dict):
        raise error_within(read, "the reply is no JSON object")
    if read.get("error"):  # some routers forward an error with status 200
        raise error_within(read, "the reply is an error")
    choices, usage = read.get("choices"), _usage(read.get("usage"), read.get("service_tier"))
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise error_within(read, "the reply has no choices", usage)
    if choices[0].get("error"):  # and some put the error into the choice
        raise error_within(choices[0], "the reply's choice is an error")
    finish, word = _finish(choices[0], usage)
    message = choices[0].get("message")
    is_plain = isinstance(choices[0].get("text"), str)
    if is_plain:
        message = {"content": choices[0]["text"]}
    elif finish in ("length", "content_filter") and message is None:  # all of it was thinking
        message = {}
    if not isinstance(message, dict):
        raise BadReplyError("the reply's choice has no message", usage=usage)
    if not isinstance(content := message.get("content"), str | list | None):
        what = f"the reply's content is no text, but of the type {kind(content)}"
        raise BadReplyError(what, usage=usage)
    reasoning = message.get("reasoning_content") or message.get("reasoning")
    return Reply(
        text=_text(content),
        finish_reason=finish,
        finish_word=word,
        usage=usage,
        model=read.get("model") if isinstance(read.get("model"), str) else None,
        refusal=message.get("refusal") if isinstance(message.get("refusal"), str) else None,
        reasoning=reasoning if isinstance(reasoning, str) else None,
        logprobs=_logprobs(choices[0].get("logprobs")),
        top_logprobs=_top_logprobs(choices[0].get("logprobs")),
        sent=sent,
        sure_stop=is_plain,  # a stop sequence may have ended it
    )


def _finish(choice: dict[str, Any], usage: Usage | None) -> tuple[FinishReason | None, str | None]:
    """Why the choice ended, and `Reply.finish_word`. A router may translate the word of the server
    behind it to `stop`, so its own word counts where it says more.

    Raises:
        ServerFaultError: the reply was broken off.
    """
    more = choice.get("provider_specific_fields")
    own = choice.get("native_finish_reason") or (  # OpenRouter, LiteLLM
        more.get("native_finish_reason") if isinstance(more, dict) else None
    )
    given = choice.get("finish_reason")
    said, meant = finish_of(given, usage), finish_of(own, usage)
    is_own = meant not in (None, "other") and said in (None, "other", "stop")
    if is_own or said == meant:
        return meant, word_to_show(own)
    return said, word_to_show(given)


def _text(content: object) -> str:
    """Content as text; of a list of parts, as some vendors send it, the texts joined."""
    if isinstance(content, list):
        parts = (part.get("text") for part in content if isinstance(part, dict))
        return "".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else ""


def _logprobs(given: object) -> tuple[tuple[str, float], ...] | None:
    """Token and log probability: chat has a list of objects, completions have two lists."""
    if not isinstance(given, dict):
        return None
    try:
        if isinstance(given.get("content"), list):
            pairs = [(token["token"], token["logprob"]) for token in given["content"]]
        else:
            pairs = list(zip(given["tokens"], given["token_logprobs"], strict=True))
        if not all(isinstance(token, str) for token, _ in pairs):
            return None
        return tuple((token, float(value)) for token, value in pairs)
    except (KeyError, OverflowError, TypeError, ValueError):
        return None


def _top_logprobs(given: object) -> tuple[tuple[tuple[str, float], ...], ...] | None:
    """The most probable tokens at each place, if the server sent some: of a chat objects, of
    completions a mapping for each place. `None` where they do not belong to `_logprobs`.
    """
    if not isinstance(given, dict):
        return None
    try:
        if isinstance(given.get("content"), list):
            places = [
                [(one["token"], one["logprob"]) for one in place["top_logprobs"]]
                for place in given["content"]
            ]
        else:
            places = [list(place.items()) for place in given["top_logprobs"]]
        if not any(places) or len(places) != len(_logprobs(given) or ()):
            return None
        if not all(isinstance(token, str) for place in places for token, _ in place):
            return None
        return tuple(
            tuple(
                sorted(((token, float(value)) for token, value in place), key=lambda one: -one[1])
            )
            for place in places
        )
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError):
        return None


def _usage(usage: object, tier: object = None) -> Usage | None:
    """The billed tokens; some vendors count thinking only in the total."""
    if not isinstance(usage, dict):
        return None
    prompt_tokens = _whole(usage.get("prompt_tokens"))
    completion_tokens = _whole(usage.get("completion_tokens"))
    if prompt_tokens is None or completion_tokens is None:
        return None
    total = _whole(usage.get("total_tokens"))
    output_tokens = max(completion_tokens, 0 if total is None else total - prompt_tokens)
    thought = _count(usage, _THOUGHT)
    if not thought and output_tokens > completion_tokens:
        thought = output_tokens - completion_tokens
    read, write = _count(usage, _READ_FROM_CACHE), _count(usage, _WRITTEN_TO_CACHE)
    if (read or 0) + (write or 0) > prompt_tokens:
        read = write = None
    if thought is not None and thought > output_tokens:
        thought = None
    return Usage(prompt_tokens, output_tokens, read, write, thought, tier_of(tier))


def tier_of(word: object) -> str | None:
    """The tier for a vendor's word; `None` if it names none."""
    return _TIERS.get(word, word[:_LONGEST_TIER]) if isinstance(word, str) and word else None


def _count(usage: dict[str, Any], paths: Sequence[tuple[str, ...]]) -> int | None:
    """The first number of tokens at one of the paths."""
    for path in paths:
        figure: object = usage.get(path[0])
        if figure is None:
            continue
        for name in path[1:]:
            figure = figure.get(name) if isinstance(figure, dict) else None
        if (whole := _whole(figure)) is not None:
            return whole
    return None


def _whole(figure: object) -> int | None:
    """A number of tokens; the parser reads integers of more than 64 bits as floats."""
    if isinstance(figure, float) and figure.is_integer():
        figure = int(figure)
    return figure if is_count(figure) else None
