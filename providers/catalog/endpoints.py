"""OpenAI-compatible servers, from `endpoints.yaml` and from a file of the user's."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, JsonValue, field_validator

from eyechart.providers.catalog.overridable import entries
from eyechart.providers.secrets import keep_address, redact_address

USER_FILE = "EYECHART_ENDPOINTS"
"""Environment variable that names the user's own file."""
DEFAULT = "openai"
"""The provider of a model that was named without one, and the endpoint whose key a server of the
user's gets."""
LOCAL = "local"
"""The same at an address of the user's."""


ThinkingKind: TypeAlias = Literal["on", "off", "tokens"]
"""What a request can ask of a model's thinking: that it thinks, that it does not, or at most how
many tokens."""
Thinking: TypeAlias = Mapping[ThinkingKind, str | Mapping[str, JsonValue]]
"""How a server is asked for each kind: a reasoning effort, or fields of the body, in which
`$TOKENS` stands for the number."""
OPEN_SERVER: Thinking = {
    "on": {"chat_template_kwargs": {"enable_thinking": True, "thinking": True}},
    "off": {"chat_template_kwargs": {"enable_thinking": False, "thinking": False}},
    "tokens": {
        "chat_template_kwargs": {
            "enable_thinking": True,
            "thinking": True,
            "thinking_budget": "$TOKENS",
        },
        "thinking_token_budget": "$TOKENS",
    },
}
"""The forms of vLLM, SGLang and llama.cpp. Chat templates have one of the two switches and ignore
the other. vLLM keeps to `thinking_token_budget` if it was started with a reasoning config; in
SGLang the budget is up to the template."""
Neutral: TypeAlias = Mapping[str, Sequence[JsonValue]]
"""Fields of a body that ask for the probabilities of the model itself, without penalties and
without leaving tokens out; each with the values that mean it, of which a server takes one."""
REPEATS = ("repeat_penalty", "repetition_penalty")
"""The two names of the penalty on tokens that came before."""
NEUTRAL: Neutral = {
    "top_p": [1.0],
    "top_k": [0, -1],
    "min_p": [0.0],
    "repeat_penalty": [1.0],
    "repetition_penalty": [1.0],
    "presence_penalty": [0.0],
    "frequency_penalty": [0.0],
    "typical_p": [1.0],
    "xtc_probability": [0.0],
    "dry_multiplier": [0.0],
}
"""For a server that is not known: its own defaults may be others, as the penalty of 1.1 in
llama-cpp-python, and whoever starts llama.cpp may set each of the last three, which change replies
at a temperature of 0 too. vLLM, SGLang and llama.cpp ignore the names that they do not know. No
more than one of `REPEATS` is known to any of them."""
VLLM_NEUTRAL: Neutral = {
    "top_p": [1.0],
    "top_k": [-1],
    "min_p": [0.0],
    "repetition_penalty": [1.0],
    "presence_penalty": [0.0],
    "frequency_penalty": [0.0],
}
"""vLLM takes what is not sent from the `generation_config.json` of the model."""
ITS_OWN: Thinking = {"on": {}, "off": {}, "tokens": {}}
"""For a provider whose own code makes the fields of all three kinds."""


def kind_of_thinking(thinking: str) -> ThinkingKind:
    """The kind of `on`, `off`, or a number of tokens in digits."""
    return "on" if thinking == "on" else "off" if thinking == "off" else "tokens"


def thinking_fields(thinking: str | None, forms: Thinking) -> dict[str, Any]:
    """The fields of a body that ask for `thinking` in one of the `forms`; empty if nothing is asked
    for, or if an effort asks for it.
    """
    form = None if thinking is None else forms.get(kind_of_thinking(thinking))
    return {} if form is None or isinstance(form, str) else _filled(form, int_of(thinking))


def int_of(thinking: str | None) -> int | None:
    """The number of tokens that `thinking` is; `None` if it is none."""
    return int(thinking) if thinking is not None and thinking.isdecimal() else None


def _filled(form: Any, tokens: int | None) -> Any:
    if isinstance(form, Mapping):
        return {name: _filled(value, tokens) for name, value in form.items()}
    return tokens if form == "$TOKENS" else form


class Endpoint(BaseModel):
    """One server or vendor."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    title: str = ""
    base_url: str
    key: str | None = None
    """Name of the environment variable with the key; `None` if no key is needed."""
    address: str | None = None
    """Name of the environment variable in which the vendor's own SDK finds another address, with
    the path that the SDK appends to it; `None` if there is none."""
    drop: tuple[str, ...] = ()
    """Request parameters that the server does not accept."""
    rename: Mapping[str, str] = {}
    """Request parameter -> the server's name for it."""
    tiers: Mapping[str, str | None] = {}
    """Our word for a tier -> the vendor's `service_tier`; `None` where that is left out."""
    thinking: Thinking = Field(default_factory=dict)
    neutral: Neutral = {}
    """What makes its sampling neutral; empty for a vendor that refuses unknown parameters."""
    likelihood: tuple[Literal["chat", "completions"], ...] = ("completions",)
    """The forms of requests in which a server of the user's gives the probabilities of options."""
    forced: tuple[str, ...] = ()
    """Parameters of sampling that it cannot be told, so that its own values hold."""
    uncached: Mapping[str, Mapping[str, str]] = {}
    """Fields of a request that keep its prompt out of a cache to which writing costs more."""
    prices: str | None = None
    """The vendor's name in the list of prices; `None` if the list does not have it."""
    serves: Literal["own models", "other models", "local server"] | None = None
    """Whether a vendor made the models that it serves; `local server` for a program that runs on
    the user's machine; `None` if that is not known."""
    developer: str = ""
    """The name under which a vendor publishes its own models."""
    weights: Literal["open", "closed", "unknown"] = "unknown"
    """The kind of all models that it serves; unknown where there are both kinds."""

    @field_validator("thinking", mode="before")
    @classmethod
    def _has_words(cls, thinking: object) -> object:
        """YAML reads `on` and `off` without quotes as true and false."""
        if not isinstance(thinking, Mapping):
            return thinking
        words = {True: "on", False: "off"}
        return {words.get(name, name): form for name, form in thinking.items()}

    @field_validator("base_url")
    @classmethod
    def _is_an_address(cls, url: str) -> str:
        if problem := address_problem(url):
            raise ValueError(f"{redact_address(url)!r} {problem}")
        return url

    @field_validator("key")
    @classmethod
    def _is_a_variable(cls, key: str | None) -> str | None:
        if key is not None and not re.fullmatch(r"[A-Z_][A-Z0-9_]*", key):
            raise ValueError("name the environment variable of the key, in capitals, not the key")
        return key

    @field_validator("address")
    @classmethod
    def _begins_with_a_variable(cls, address: str | None) -> str | None:
        name = r"[A-Z_][A-Z0-9_]*"
        if address is not None and not re.fullmatch(rf"{name}( {name})*(/[\w./-]+)?", address):
            raise ValueError("name the environment variables of the address, and /path after them")
        return address

    def moved(self, environ: Mapping[str, str]) -> tuple[str, str]:
        """The variable that names another address than the vendor's, and that address; two empty
        texts where none does.
        """
        variables, slash, path = (self.address or "").partition("/")
        given = {name: environ.get(name, "").strip().rstrip("/") for name in variables.split()}
        variable, url = next(((name, url) for name, url in given.items() if url), ("", ""))
        if url and not url.endswith(slash + path):
            url += slash + path
        return ("", "") if url in ("", self.base_url) else (variable, url)


_APPENDED = re.compile(r"(?<=[^/])/*(/(?:(?:chat/)?completions|responses|messages|models))/*$")
"""The path of a request at the end of an address."""


def address_problem(url: str) -> str | None:
    """What is wrong with the address of a server; `None` if nothing is. Registers its password and
    keys as secret.

    A query is refused because paths are appended to the address, and a fragment because it is never
    sent; both are mostly meant to be keys.
    """
    keep_address(url)
    if not url.startswith(("http://", "https://")):
        return "does not begin with http:// or https://"
    for mark, name, code in (("#", "fragment", "%23"), ("?", "query", "%3F")):
        if mark in url.rpartition("@")[0]:
            return f"has a {mark} before its @: in a password it is written {code}"
        if mark in url:
            return (
                f"has a {name}, which no request would carry: leave it out; a key belongs into the "
                "environment variable that the provider reads ('bench models' lists them)"
            )
    if appended := _APPENDED.search(url):
        right = redact_address(url[: appended.start()])
        return f"ends in {appended[1]}, which each request appends; did you mean {right!r}?"
    try:
        parts = urlsplit(url)
        valid = bool((parts.hostname or "").encode("idna")) and parts.port != 0
        valid = valid and url.isprintable() and " " not in url
    except ValueError:
        valid = False
    return None if valid else "is no address"


VLLM = Endpoint(base_url="http://127.0.0.1:8000/v1", thinking=OPEN_SERVER, neutral=VLLM_NEUTRAL)
"""vLLM's own server at the address where it starts."""


def endpoints(environ: Mapping[str, str] = os.environ) -> dict[str, Endpoint]:
    """Name -> endpoint; raises `SetupError` on a mistake in the user's file."""
    return entries("endpoints.yaml", USER_FILE, Endpoint, environ)


def endpoint_of(
    provider: str, base_urls: Sequence[str] = (), environ: Mapping[str, str] = os.environ
) -> Endpoint:
    """The endpoint of a provider. At the user's own addresses the vendor's rules do not apply; only
    the key is the same. What such a server takes of sampling is known where it is a known one, by
    its address or by the provider's name.
    """
    known = endpoints(environ)
    endpoint = known.get(provider) or known[DEFAULT]
    if not base_urls:
        return endpoint
    places = {urlsplit(one.base_url).netloc: one for one in known.values()}
    there = [places[place] for url in base_urls if (place := urlsplit(url).netloc) in places]
    named = [endpoint] if endpoint.serves == "local server" else []
    like = next(iter((*there, *named)), Endpoint(base_url=base_urls[0], neutral=NEUTRAL))
    return Endpoint(
        base_url=base_urls[0],
        key=endpoint.key,
        thinking=OPEN_SERVER,
        neutral=like.neutral,
        forced=like.forced,
    )
