"""The names of models: what a user writes, and the provider that it means."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from eyechart.providers.base import SetupError
from eyechart.providers.catalog.endpoints import DEFAULT, LOCAL, address_problem
from eyechart.providers.catalog.spelling import meant, vendor_of
from eyechart.providers.close_match import did_you_mean
from eyechart.providers.descriptor import Descriptor, Destination
from eyechart.providers.descriptors import (
    BUILT_IN,
    descriptor_of,
    plugin_descriptor,
    provider_names,
)
from eyechart.providers.naming import named
from eyechart.providers.plugins import plugins
from eyechart.providers.plugins.plugins import INSIDES, PROVIDERS, Plugin
from eyechart.providers.secrets import A_KEY, holds_key, redact_address


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
        check_addresses(self, base_urls)
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
    own = descriptor_of(DEFAULT).base_url
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
    try:
        descriptor = parse_model(given, model_args).descriptor
    except SetupError:
        descriptor = descriptor_of(DEFAULT)
    variable, url = descriptor.moved(os.environ)
    if variable and (problem := address_problem(url)):
        raise SetupError(f"{variable} {redact_address(url)!r} {problem}")
    return variable, url


def _takers(takes: Callable[[Descriptor], bool]) -> str:
    """The built-in providers that take an option."""
    return " and ".join(f"{one.name}/" for one in BUILT_IN.values() if takes(one))


def _parse(given: str, *, has_server: bool) -> ModelName:
    if (read := _built_in(given)) is not None:
        return read
    provider, slash, model = given.partition("/")
    known = provider_names()
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
    """The model that `given` means to a built-in provider: the provider's name alone (`tiny`), or a
    form that only it has (`oracle:50`). `None` for any other text.

    Raises:
        SetupError: `given` is the name of a provider that has more than one model.
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
    if provider in provider_names() or any(
        plugins.find(one, provider) for one in (INSIDES, PROVIDERS)
    ):
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
    module, _, name = given.partition(":")
    file = f"{module.replace('.', '/')}.py"
    if name and os.path.isfile(file):  # noqa: PTH113  Path raises for names that are too long
        raise SetupError(
            f"unknown model {given!r}; for a function in a Python file write {file}:{name}. Where "
            f"OpenAI has this one, write openai/{given}"
        )
    if (likely := meant(given)) is not None:
        raise SetupError(
            f"unknown model {given!r}; did you mean {likely!r}? Where OpenAI has this one, write "
            f"openai/{given}"
        )


def check_addresses(name: ModelName, base_urls: Sequence[str]) -> None:
    """Raises `SetupError` for an address that no server can have, or that the provider ignores."""
    if base_urls and not name.descriptor.takes_address:
        raise SetupError(f"{name.provider} takes no {named('base_url')}")
    for url in base_urls:
        if problem := address_problem(url):
            raise SetupError(f"{named('base_url')} {redact_address(url)!r} {problem}")
