"""The names of models, and their providers, which are imported on first use."""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

from eyechart.providers import plugins
from eyechart.providers.base import ModelSettings, Provider, SetupError
from eyechart.providers.batches import BatchForm, BatchService
from eyechart.providers.catalog.endpoints import (
    DEFAULT,
    LOCAL,
    address_problem,
    endpoints,
    kind_of_thinking,
    thinking_fields,
)
from eyechart.providers.catalog.model_facts import EFFORTS, ModelFacts
from eyechart.providers.catalog.spelling import meant, vendor_of
from eyechart.providers.close_match import did_you_mean
from eyechart.providers.descriptor import NOTHING, Descriptor, Destination, Environment
from eyechart.providers.descriptors import BUILT_IN, descriptor_of, plugin_descriptor, vendors
from eyechart.providers.naming import named
from eyechart.providers.plugins import INSIDES, PROVIDERS, Plugin, PluginError
from eyechart.providers.secrets import A_KEY, holds_key, keep_key, redact_address


@dataclass(frozen=True, slots=True)
class ModelName:
    """The parts of `provider/model`."""

    provider: str
    model: str
    detail: str = ""
    """Distinguishes models whose provider and model are the same; empty if that is not needed."""
    plugin: Plugin | None = None
    """What adds the provider, if it is not built in."""
    function: object = field(default=None, compare=False, repr=False)
    """The function or the object of a Python program that is the model."""
    called: str = ""
    """Its name in tables and folders: that of the user, or of the files; empty for `asked_as`."""

    @property
    def label(self) -> str:
        """The model's name in tables and folders."""
        return self.called or self.asked_as

    @property
    def asked_as(self) -> str:
        """`provider/model`; `tiny` for the embedded model."""
        if self.model == self.provider and self.plugin is None:
            return self.provider
        return "/".join(filter(None, (self.provider, self.model, self.detail)))

    @property
    def descriptor(self) -> Descriptor:
        """What is known of the provider."""
        if self.plugin is not None:
            return plugin_descriptor(self.plugin)
        return descriptor_of(self.provider)

    @property
    def is_code(self) -> bool:
        """Whether the model is a function or an object of Python."""
        return self.descriptor.executes is not None

    @property
    def executes(self) -> str:
        """The file of code that is executed to ask the model; empty where there is none."""
        executes = self.descriptor.executes
        return "" if executes is None else executes(self.model)

    def known_facts(self, model_args: Sequence[str] = ()) -> dict[str, object]:
        """Facts of the model that are known before it is opened."""
        if self.function is None and not self.executes:
            return self.descriptor.known_facts(model_args)
        from eyechart.providers.function import fingerprint  # noqa: PLC0415  quick for others

        if self.function is not None:
            return fingerprint.facts_of(self.function)
        with suppress(OSError):  # it is missed where it is opened
            return fingerprint.facts_of_file(Path(self.executes).expanduser().read_bytes())
        return {}

    def destination(
        self, base_urls: Sequence[str] = (), model_args: Sequence[str] = ()
    ) -> Destination | None:
        """Where requests go: to the user's addresses where there are some. `None` where the model
        computes on this machine, or where only a plugin knows.
        """
        _check_addresses(self, base_urls)
        return self.descriptor.destination(base_urls, model_args, os.environ)


def parse_model(
    given: str, model_args: Sequence[str] = (), base_urls: Sequence[str] = ()
) -> ModelName:
    """The name of a model, from `provider/model`, `tiny`, `oracle:LENGTH`, or the bare name of an
    OpenAI model; at `base_urls`, from any name that a server there has: without a known provider
    the model is `local/…`, as a server of the user's is not OpenAI.

    The detail of `lm-eval/TYPE` comes from `model_args`: see `providers.lm_eval.args.label_of`.

    Raises:
        SetupError: the name is empty or has a key in it, there is no such provider, the name is a
            known one misspelt, or the provider does not take model arguments.
    """
    if holds_key(given):
        raise SetupError(f"{named('model')} {A_KEY}")
    own = vendors()[DEFAULT].base_url
    elsewhere = any(redact_address(url).rstrip("/") != own for url in base_urls)
    name = _parse(given.strip(), has_server=elsewhere)
    read = name.descriptor.model_args
    if read is not None:
        return replace(name, detail=read(model_args))
    if model_args and not name.descriptor.takes_model_args:
        takers = _takers(lambda one: one.takes_model_args or one.model_args is not None)
        raise SetupError(f"{named('model_args')} is for models of {takers}, not of {name.provider}")
    return name


def address_in_environment(given: str, model_args: Sequence[str] = ()) -> tuple[str, str]:
    """The environment variable that says where a model is asked in place of its vendor's address,
    and that address; two empty texts where none does. The variable of OpenAI is for every name that
    no other provider has, as `base_urls` of `parse_model` are.

    Raises:
        SetupError: the variable has no address.
    """
    known = vendors()
    try:
        descriptor = parse_model(given, model_args).descriptor
    except SetupError:
        descriptor = known[DEFAULT]
    variable, url = descriptor.moved(os.environ)
    if variable and (problem := address_problem(url)):
        raise SetupError(f"{variable} {redact_address(url)!r} {problem}")
    return variable, url


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


def _takers(takes: Callable[[Descriptor], bool]) -> str:
    """The built-in providers that take an option."""
    return " and ".join(f"{one.name}/" for one in BUILT_IN.values() if takes(one))


def _parse(given: str, *, has_server: bool) -> ModelName:
    if (read := _built_in(given)) is not None:
        return read
    provider, slash, model = given.partition("/")
    known = [*BUILT_IN, *vendors()]
    bare = [name for name, one in BUILT_IN.items() if one.bare and re.fullmatch(one.bare, given)]
    if bare and provider not in known:
        return _labelled(ModelName(bare[0], given))
    if not provider or (slash and not model):
        raise SetupError(f"model {given!r} is not of the form provider/model")
    if slash and provider in known:
        return _labelled(ModelName(provider, model))
    if slash or not has_server:
        plugin = plugins.find(PROVIDERS, provider)
        if plugin is not None and not slash:
            raise SetupError(f"{given!r} is a provider and no model: {given}/… names a model")
        if plugin is not None:
            return ModelName(provider, model, plugin=plugin)
    if slash and plugins.find(INSIDES, provider) is not None:
        return ModelName(provider, model)
    if has_server:
        return ModelName(LOCAL, given.removeprefix(f"{LOCAL}/"))
    _refuse_unknown(given, [*known, *plugins.installed(PROVIDERS, known).usable])
    return ModelName(DEFAULT, given)


def _labelled(name: ModelName) -> ModelName:
    """The model with the label that its provider gives it, if that is not its name."""
    read = name.descriptor.read_label
    return name if read is None else replace(name, called=f"{name.provider}/{read(name.model)}")


def _built_in(given: str) -> ModelName | None:
    """The model that is named by a built-in provider alone, or in a form of the provider's own;
    `None` where `given` is neither. Raises `SetupError` for a provider alone that means no model.
    """
    for name, one in BUILT_IN.items():
        if one.read_model is not None and given.startswith((f"{name}:", f"{name}/")):
            return ModelName(name, one.read_model(given[len(name) + 1 :]))
        if given == name and one.only_model:
            return ModelName(name, one.only_model)
        if given == name and one.opens:
            raise SetupError(f"{name!r} is a provider and no model: {one.named} names a model")
    return None


def owner_of(called: str) -> str:
    """The owner of a name: `provider 'openai'`, or `model of openai`; empty if it is free."""
    provider, slash, _ = called.partition("/")
    known = {*BUILT_IN, *vendors()}
    if provider in known or any(plugins.find(one, provider) for one in (INSIDES, PROVIDERS)):
        return f"the provider {provider!r}"
    vendor = None if slash else vendor_of(called)
    return "" if vendor is None else f"a model of {vendor}"


_PROVIDER_OF = {"google": "gemini"}
"""Vendor -> its provider, where that has another name."""


def _refuse_unknown(given: str, providers: Sequence[str]) -> None:
    """Raises `SetupError` where `given` names none of the providers, or is a model misspelt."""
    provider, slash, model = given.partition("/")
    if slash and provider == LOCAL:
        raise SetupError(
            f"{given!r} is a model at a server of your own: add its {named('base_url')}"
        )
    if slash and (own := _PROVIDER_OF.get(provider)) is not None:
        raise SetupError(
            f"unknown provider {provider!r} in {given!r}; did you mean '{own}/{model}' or "
            f"'openrouter/{given}'?"
        )
    if slash:
        guess = did_you_mean(
            provider,
            providers,
            f"vllm/{given} starts a server of it, {named('base_url')} names one that runs; "
            "'bench models' lists the providers",
        )
        raise SetupError(f"unknown provider {provider!r} in {given!r}; {guess}")
    if (likely := meant(given)) is not None:
        raise SetupError(
            f"unknown model {given!r}; did you mean {likely!r}? Where OpenAI has this one, write "
            f"openai/{given}"
        )


def open_model(name: ModelName, settings: ModelSettings | None = None) -> Provider:
    """Opens the provider of `name` with `settings`, whose model and provider are those of `name`.

    Raises:
        SetupError: a package, key or file that the provider needs is missing, or it does not
            support the settings.
    """
    settings = checked(name, settings or ModelSettings(name.model))
    if name.plugin is not None:
        return plugins.open_plugin(name.plugin, settings)
    if name.function is not None:
        from eyechart.providers.function.provider import open_function  # noqa: PLC0415  asyncio

        return open_function(name.function, settings)
    return cast("Provider", _load(name.descriptor.opens)(settings))


def open_batch_form(name: ModelName, settings: ModelSettings) -> BatchForm:
    """The form of requests to `name` in batch files; needs neither key nor network.

    Raises:
        SetupError: the provider does not have OpenAI's form, or does not support the settings.
    """
    function = name.descriptor.batch_form
    if not function:
        raise SetupError(
            f"{name.label} does not take the Batch form of OpenAI; that form is for openai/…, "
            "OpenAI-compatible vendors, and vllm/NAME, the name under which vLLM serves the model"
        )
    return cast("BatchForm", _load(function)(checked(name, settings)))


def has_batches(name: ModelName) -> None:
    """Raises `SetupError` if no Batch API is known for the model's provider."""
    if not name.descriptor.batch_service:
        hint = f"{name.descriptor.batch_hint}; " if name.descriptor.batch_hint else ""
        raise SetupError(
            f"{named('tier', 'batch')} is for openai/… and vendors or servers with a Batch API "
            f"like OpenAI's, not for {name.label}; {hint}leave out {named('tier', 'batch')}"
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


def open_batches(name: ModelName, settings: ModelSettings) -> BatchService:
    """Opens the Batch API for the model `name`.

    Raises:
        SetupError: the model has no Batch API, or the key is missing.
    """
    has_batches(name)
    return cast("BatchService", _load(name.descriptor.batch_service)(checked(name, settings)))


def _load(path: str) -> Callable[[ModelSettings], object]:
    """The function at `path`, `module:function`."""
    module_name, _, attribute = path.partition(":")
    return cast(
        "Callable[[ModelSettings], object]",
        getattr(importlib.import_module(module_name), attribute),
    )


def checked(name: ModelName, settings: ModelSettings) -> ModelSettings:
    """`settings` with the names in `name`; raises `SetupError` if they contradict each other."""
    one = name.descriptor
    known = settings.known if one.gets_answers else None
    settings = replace(settings, model=name.model, provider=name.provider, known=known)
    _check_addresses(name, settings.base_urls)
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


def _check_addresses(name: ModelName, base_urls: Sequence[str]) -> None:
    """Raises `SetupError` for an address that no server can have, or that the provider ignores."""
    if base_urls and not name.descriptor.takes_address:
        raise SetupError(f"{name.provider} takes no {named('base_url')}")
    for url in base_urls:
        if problem := address_problem(url):
            raise SetupError(f"{named('base_url')} {redact_address(url)!r} {problem}")


def needs(environ: Environment = os.environ) -> list[tuple[str, str, str]]:
    """Name, title and needs of all providers but those of plugins: first those that need nothing,
    then vendors.
    """
    ours, theirs = (
        [(one.name, one.title, one.needs(environ)) for one in group.values()]
        for group in (BUILT_IN, vendors(environ))
    )
    free = [row for row in ours if row[-1] == NOTHING]
    return [*free, *theirs, *(row for row in ours if row not in free)]


@dataclass(frozen=True, slots=True)
class ListedProvider:
    """A provider as `bench models` lists it."""

    provider: str
    what: str
    needs: str
    origin: str = plugins.BUILT_IN
    """Where it comes from: built in, or the distribution and its version."""


def listed() -> tuple[list[ListedProvider], list[PluginError]]:
    """All providers, and why plugins are not used. Imports those of plugins."""
    rows = [ListedProvider(*row) for row in needs()]
    taken = [*BUILT_IN, *endpoints({})]
    found = plugins.installed(PROVIDERS, taken, vendors())
    errors = [*found.refused.values()]
    for name, plugin in found.usable.items():
        try:
            plugins.factory(plugin)
        except PluginError as error:
            errors.append(error)
        else:
            one = plugin_descriptor(plugin)
            rows.append(ListedProvider(name, one.title, one.needs(os.environ), str(plugin)))
    return rows, errors
