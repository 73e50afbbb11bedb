"""What a user asks of a model, held against what its provider takes."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from eyechart.providers.base import ModelSettings, SetupError
from eyechart.providers.catalog.endpoints import kind_of_thinking, thinking_fields
from eyechart.providers.catalog.model_facts import EFFORTS, ModelFacts
from eyechart.providers.close_match import did_you_mean
from eyechart.providers.descriptor import Environment
from eyechart.providers.naming import named
from eyechart.providers.registry.model_name import ModelName, check_addresses
from eyechart.providers.secrets import keep_key


def checked(name: ModelName, settings: ModelSettings) -> ModelSettings:
    """`settings` with the names in `name`; raises `SetupError` if they contradict each other."""
    one = name.descriptor
    known = settings.known if one.gets_answers else None
    settings = replace(settings, model=name.model, provider=name.provider, known=known)
    check_addresses(name, settings.base_urls)
    effort, thinking = asked_thinking(
        name, settings.effort or settings.thinking, settings.base_urls
    )
    settings = replace(settings, effort=effort, thinking=thinking)
    check_params(name, settings.params)
    if settings.headers and not one.takes_headers:
        raise SetupError(f"{name.label} takes no {named('header')}; leave it out")
    check_no_field_twice(name, thinking, settings.params, settings.base_urls)
    if settings.logprobs and not one.gives_logprobs:
        raise SetupError(
            f"{name.label} gives no probabilities of tokens; leave out {named('logprobs')}"
        )
    if settings.api == "completions":
        _check_completions(name, settings)
    return settings


def _check_completions(name: ModelName, settings: ModelSettings) -> None:
    """Raises `SetupError` where something does not go together with a text to continue."""
    api = named("api", "completions")
    if not name.descriptor.takes_completions:
        raise SetupError(f"{name.provider} takes chats only; leave out {api}")
    if (settings.effort, settings.thinking) != (None, None):
        raise SetupError(
            f"a text to continue takes no wish for thoughts: leave out {named('thinking')}, or "
            f"{api}"
        )
    if settings.system is not None:
        raise SetupError(
            f"a text to continue has no system prompt: leave out {api}, or give an empty "
            f"{named('system')}, also where the prompt is the task's"
        )


def check_tier(name: ModelName, tier: str | None, base_urls: Sequence[str] = ()) -> None:
    """Raises `SetupError` if the model's provider has no tier of that name; a plugin's says so
    itself, when it is opened.
    """
    known = name.descriptor.tiers(base_urls)
    if tier is not None and known is not None and tier not in known:
        other = f"; it has {' and '.join(sorted(known))}" if known else ""
        raise SetupError(
            f"{name.label} is not asked in a tier {tier!r}{other}; leave out {named('tier')}"
        )


def asked_thinking(
    name: ModelName, thinking: str | None, base_urls: Sequence[str] = ()
) -> tuple[str | None, str | None]:
    """The effort and the kind of thinking that `--thinking` asks for. A word, such as `low`, is an
    effort; `on`, `off` or a number is one too where the provider knows it as an effort. A server of
    the user's may have words of its own.

    Raises:
        SetupError: the model's provider cannot be asked so.
    """
    if thinking is None:
        return None, None
    one = name.descriptor
    forms = one.thinking(base_urls)
    is_word = thinking not in ("on", "off") and not thinking.isdecimal()
    has_words = one.efforts != "none"
    form = (thinking if has_words else None) if is_word else forms.get(kind_of_thinking(thinking))
    if form is None:
        kinds = {"on": "on", "off": "off", "tokens": "a number of tokens"}
        known = [words for kind, words in kinds.items() if kind in forms]
        known += ["an effort such as low"] * has_words
        hint = f"; {one.effort_hint}" if one.effort_hint and is_word else ""
        raise SetupError(
            f"{name.label} takes {' or '.join(known) or 'nothing'} for {named('thinking')}, not "
            f"{thinking!r}{hint}"
        )
    if is_word and one.efforts == "listed" and not base_urls and thinking not in EFFORTS:
        guess = did_you_mean(thinking, EFFORTS, f"there are on, off, {', '.join(EFFORTS)}")
        raise SetupError(
            f"{name.label} has no effort {thinking!r} for {named('thinking')}; {guess}"
        )
    return (form, None) if isinstance(form, str) else (None, thinking)


_TOOLS = ("tools", "tool_choice", "parallel_tool_calls", "functions", "function_call")
REFUSED_PARAMS = {
    **dict.fromkeys(("model", "messages", "prompt", "stop"), "it is set for each request"),
    **dict.fromkeys(("stream", "stream_options"), "replies are not streamed"),
    **dict.fromkeys(("n", "best_of"), "a request has one reply"),
    **dict.fromkeys(_TOOLS, "tools are not run, and a reply that calls one has no answer"),
    **dict.fromkeys(("modalities", "audio"), "a reply is a text"),
    "echo": "the prompt would stand in the reply",
    **dict.fromkeys(("max_tokens", "max_completion_tokens"), f"{named('max_tokens')} sets it"),
    "temperature": f"{named('temperature')} sets it",
    "seed": f"{named('seed')} sets it",
    "system": f"{named('system')} sets it",
    "logprobs": f"{named('logprobs')} sets it",
    "top_logprobs": f"{named('logprobs')} sets it",
    "reasoning_effort": f"{named('thinking')} sets it",
    "service_tier": f"{named('tier')} sets it",
}
"""Field of a body that `params` cannot set -> why not."""
_FIELDS_IN = "extra_body"
"""A field whose fields some servers take for fields of the body."""


def check_params(name: ModelName, params: Mapping[str, object]) -> None:
    """Raises `SetupError` if the model's provider takes no such fields in its requests."""
    if params and not name.descriptor.takes_params:
        raise SetupError(
            f"{name.label} takes no {named('params')}: its requests have no further fields; leave "
            "it out"
        )
    inner = params.get(_FIELDS_IN)
    within = {f"{_FIELDS_IN}.{one}": one for one in inner} if isinstance(inner, Mapping) else {}
    for given, inner_name in {**{one: one for one in params}, **within}.items():
        if (why := REFUSED_PARAMS.get(inner_name)) is not None:
            raise SetupError(f"{named('params', given)} cannot be given here: {why}")


def check_no_field_twice(
    name: ModelName,
    thinking: str | None,
    params: Mapping[str, object],
    base_urls: Sequence[str] = (),
) -> None:
    """Raises `SetupError` if `params` set a field by which `thinking` is asked for."""
    wish = thinking_fields(thinking, name.descriptor.thinking(base_urls))
    if field := _set_twice(wish, params):
        raise SetupError(
            f"{named('params', field)} is what {named('thinking')} sets for {name.label}; leave "
            "out one of them"
        )


def _set_twice(first: Mapping[str, object], second: Mapping[str, object]) -> str:
    """A field that both mappings set, with dots between the names of fields in fields."""
    for name in (name for name in first if name in second):  # in an order that is always the same
        one, other = first[name], second[name]
        if not isinstance(one, Mapping) or not isinstance(other, Mapping):
            return name
        if inner := _set_twice(one, other):
            return f"{name}.{inner}"
    return ""


def takes_temperature(name: ModelName, facts: ModelFacts, base_urls: Sequence[str]) -> bool:
    """Whether a temperature is sent to the model."""
    one = name.descriptor
    takes = not facts.reasoning or one.thinking_takes_temperature(base_urls)
    return one.takes_temperature and takes


_VARIABLE = r"\$(?:\{(?=\w+\}))?([A-Za-z_]\w*)\}?"
"""`$NAME` or `${NAME}` in the value of a header."""


def read_headers(given: Sequence[str], environ: Environment = os.environ) -> dict[str, str]:
    """The headers `NAME=VALUE`, with the values of the variables `$NAME` in them, which no text has
    from now on.

    Raises:
        SetupError: a variable is not set, or holds what no header can have.
    """
    found = {}
    for one in given:
        name, _, value = one.partition("=")
        for variable in re.findall(_VARIABLE, value):
            if not (kept := environ.get(variable, "").strip()):
                raise SetupError(f"{named('header', name)}: the variable {variable} is not set")
            if not (kept.isascii() and kept.isprintable()):
                raise SetupError(f"{variable} holds characters that no header has; set it anew")
            keep_key(kept)
        value = re.sub(_VARIABLE, lambda match: environ[match[1]].strip(), value)
        keep_key(value)
        found["Authorization" if name.lower() == "authorization" else name] = value
    return found
