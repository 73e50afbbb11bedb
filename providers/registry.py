"""Provider names and the modules that implement them, imported on first use."""

from __future__ import annotations

import difflib
import importlib
import importlib.metadata
import importlib.util
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from eyechart.providers import plugins
from eyechart.providers.base import (
    BatchForm,
    BatchService,
    ModelSettings,
    Provider,
    SetupError,
    install,
)
from eyechart.providers.catalog.endpoints import (
    LOCAL,
    USER_FILE,
    Endpoint,
    address_problem,
    endpoints,
)
from eyechart.providers.catalog.model_facts import EFFORTS
from eyechart.providers.catalog.spelling import meant, vendor_of
from eyechart.providers.destinations import ANTHROPIC_KEY, AZURE_VARIABLES
from eyechart.providers.intervention import Intervention, read_intervention
from eyechart.providers.lm_eval.args import facts_of, label_of, read_args
from eyechart.providers.oracle import oracle_name
from eyechart.providers.plugins import BUILT_IN, INSIDES, PROVIDERS, Plugin, PluginError
from eyechart.providers.secrets import redact_address

FACTORIES = {
    "anthropic": "eyechart.providers.anthropic:open_provider",
    "azure": "eyechart.providers.openai.api:open_azure",
    "lm-eval": "eyechart.providers.lm_eval.bridge:open_provider",
    "oracle": "eyechart.providers.oracle:open_provider",
    "scripted": "eyechart.providers.scripted:open_provider",
    "tiny": "eyechart.providers.tiny.provider:open_provider",
    "vllm": "eyechart.providers.vllm.client:open_provider",
}
"""Provider -> `module:function`; the function takes `ModelSettings` and returns a `Provider`."""
COMPATIBLE = "eyechart.providers.openai.api:open_provider"
"""The same for all providers in `endpoints.yaml`."""
BATCH_FORMS = {"vllm": "eyechart.providers.openai.batch_form:open_vllm"}
"""Provider -> `module:function`; the function takes `ModelSettings` and returns a `BatchForm`."""
COMPATIBLE_FORM = "eyechart.providers.openai.batch_form:open_compatible"
"""The same for all providers in `endpoints.yaml`."""
COMPATIBLE_SERVICE = "eyechart.providers.openai.batch:open_service"
"""The function that returns a `BatchService` for the providers in `endpoints.yaml`."""
_FIXED = ("azure", "lm-eval", "oracle", "scripted", "tiny")
"""Providers that do not take the user's addresses."""
_WITHOUT_EFFORT = ("lm-eval", "oracle", "scripted", "tiny", "vllm")
"""Providers that do not ask for a reasoning effort."""
_EXTRAS = {
    "anthropic": "anthropic",
    "lm-eval": "lm_eval",
    "probe": "torch",
    "ray": "ray",
    "vllm": "vllm",
}
"""Extra -> the package that it installs."""


@dataclass(frozen=True, slots=True)
class ModelName:
    """The parts of `provider/model`."""

    provider: str
    model: str
    detail: str = ""
    """Distinguishes models whose provider and model are the same; empty if that is not needed."""
    plugin: Plugin | None = None
    """What adds the provider, if it is not built in."""
    called: str = ""
    """The user's name for it in tables and folders; empty for `asked_as`."""

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


def parse_model(
    given: str, model_args: Sequence[str] = (), base_urls: Sequence[str] = ()
) -> ModelName:
    """The name of a model, from `provider/model`, `tiny`, `oracle:LENGTH`, or the bare name of an
    OpenAI model; at `base_urls`, from any name that a server there has: without a known provider
    the model is `local/…`, as a server of the user's is not OpenAI.

    The detail of `lm-eval/TYPE` comes from `model_args`: see `providers.lm_eval.args.label_of`.

    Raises:
        SetupError: the name is empty, there is no such provider, the name is a known one misspelt,
            or the provider does not take model arguments.
    """
    openai = _endpoints()["openai"].base_url
    elsewhere = any(redact_address(url).rstrip("/") != openai for url in base_urls)
    name = _parse(given.strip(), has_server=elsewhere)
    if name.provider == "lm-eval":
        return replace(name, detail=label_of(read_args(model_args)))
    if model_args:
        raise SetupError(f"--model-arg is for models of lm-eval/, not of {name.provider}")
    return name


def known_facts(name: ModelName, model_args: Sequence[str]) -> dict[str, object]:
    """The provider's `facts` that are known before its model is loaded."""
    return facts_of(read_args(model_args)) if name.provider == "lm-eval" else {}


def _parse(given: str, *, has_server: bool) -> ModelName:
    if given.startswith(("oracle:", "oracle/")):
        return ModelName("oracle", oracle_name(given[len("oracle:") :]))
    provider, slash, model = given.partition("/")
    if not slash and provider in FACTORIES and provider != "tiny":
        example = "oracle:50" if provider == "oracle" else f"{provider}/…"
        raise SetupError(f"{provider!r} is a provider and no model: {example} names a model")
    if not provider or (slash and not model):
        raise SetupError(f"model {given!r} is not of the form provider/model")
    if provider == "tiny" and not slash:
        return ModelName("tiny", "tiny")
    known = [*FACTORIES, *_endpoints()]
    if slash and (provider in known or plugins.find(INSIDES, provider) is not None):
        return ModelName(provider, model)
    if slash or not has_server:
        plugin = plugins.find(PROVIDERS, provider)
        if plugin is not None and not slash:
            raise SetupError(f"{given!r} is a provider and no model: {given}/… names a model")
        if plugin is not None:
            return ModelName(provider, model, plugin=plugin)
    if has_server:
        return ModelName(LOCAL, given.removeprefix(f"{LOCAL}/"))
    _refuse_unknown(given, [*known, *plugins.installed(PROVIDERS, known).usable])
    return ModelName("openai", given)


def owner_of(called: str) -> str:
    """Whose the name of a model is that a user chose: `provider 'openai'`, or `model of openai`;
    empty where it is free.
    """
    provider, slash, _ = called.partition("/")
    known = {*FACTORIES, *_endpoints()}
    if provider in known or any(plugins.find(one, provider) for one in (INSIDES, PROVIDERS)):
        return f"the provider {provider!r}"
    vendor = None if slash else vendor_of(called)
    return "" if vendor is None else f"a model of {vendor}"


def _refuse_unknown(given: str, providers: Sequence[str]) -> None:
    """Raises `SetupError` where `given` names none of the providers, or is a model misspelt."""
    provider, slash, _ = given.partition("/")
    if slash and provider == LOCAL:
        raise SetupError(f"{given!r} is a model at a server of your own: add its --base-url")
    if slash:
        close = difflib.get_close_matches(provider, providers, n=1)
        guess = (
            f"did you mean {close[0]!r}?"
            if close
            else f"vllm/{given} starts a server of it, --base-url names one that runs; "
            "'bench models' lists the providers"
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
    has_replies(name)
    settings = checked(name, settings or ModelSettings(name.model))
    if name.plugin is not None:
        return plugins.open_plugin(name.plugin, settings)
    return cast("Provider", _load(FACTORIES.get(name.provider, COMPATIBLE))(settings))


def open_batch_form(name: ModelName, settings: ModelSettings) -> BatchForm:
    """The form of requests to `name` in batch files; needs neither key nor network.

    Raises:
        SetupError: the provider does not have OpenAI's form, or does not support the settings.
    """
    function = BATCH_FORMS.get(name.provider)
    if function is None and not _is_compatible(name):
        raise SetupError(
            f"{name.label} does not take the Batch form of OpenAI; that form is for openai/…, "
            "OpenAI-compatible vendors, and vllm/NAME, the name under which vLLM serves the model"
        )
    return cast("BatchForm", _load(function or COMPATIBLE_FORM)(checked(name, settings)))


def has_replies(name: ModelName) -> None:
    """Raises `SetupError` if the model is one that can be probed only."""
    if _is_compatible(name) and name.provider != LOCAL and name.provider not in _endpoints():
        raise SetupError(
            f"{name.label} is a model for 'bench probe'; ask it with --model lm-eval/hf "
            f"--model-arg pretrained={name.model}, or --model vllm/{name.model}"
        )


def _is_compatible(name: ModelName) -> bool:
    """Whether the provider is one of `endpoints.yaml`, or of the user's file."""
    return name.provider not in FACTORIES and name.plugin is None


def has_batches(name: ModelName) -> None:
    """Raises `SetupError` if no Batch API is known for the model's provider."""
    if not _is_compatible(name):
        is_vllm = name.provider == "vllm"
        hint = "'bench export batch' writes files for 'vllm run-batch'; " if is_vllm else ""
        raise SetupError(
            f"--batch is for openai/… and vendors or servers with a Batch API like OpenAI's, not "
            f"for {name.label}; {hint}leave out --batch"
        )


def check_tier(name: ModelName, tier: str | None, base_urls: Sequence[str] = ()) -> None:
    """Raises `SetupError` if the model's provider has no tier of that name; a plugin's says so
    itself, when it is opened.
    """
    if tier is None or name.plugin is not None:
        return
    known = {"default"} if name.provider == "anthropic" else set()
    if _is_compatible(name) and not base_urls:
        known = set(_endpoints()[name.provider].tiers)
    if tier not in known:
        other = f"; it has {' and '.join(sorted(known))}" if known else ""
        raise SetupError(f"{name.label} is not asked in a tier {tier!r}{other}; leave out --tier")


def check_intervention(
    name: ModelName, intervention: str | None, known: Collection[str] = ("tiny",)
) -> str | None:
    """The intervention, with its parts in the order of their names; `None` for one that changes
    nothing. `known` are the providers whose attention can be changed.

    Raises:
        SetupError: there is no such intervention, or the model is not asked in this process.
    """
    if read_intervention(intervention) == Intervention():
        return None
    if name.provider not in known:
        raise SetupError(
            f"{name.label} takes no --intervene, which is for {' and '.join(sorted(known))}; "
            "a server is started with other settings and named with --label"
        )
    return "+".join(sorted(part.strip() for part in (intervention or "").split("+")))


def check_effort(name: ModelName, effort: str | None, base_urls: Sequence[str] = ()) -> None:
    """Raises `SetupError` if the model's provider takes no reasoning effort, or is a vendor and no
    vendor has this one. A server of the user's may have words of its own.
    """
    if effort is None:
        return
    if name.provider in _WITHOUT_EFFORT:
        served = ", or ask its server: --model NAME --base-url …"
        hint = served if name.provider == "vllm" else ""
        raise SetupError(f"{name.label} takes no reasoning effort: leave out --effort{hint}")
    endpoint = _endpoints().get(name.provider)
    is_vendor = not base_urls and (endpoint is None or endpoint.prices is not None)
    if is_vendor and effort not in EFFORTS:
        close = difflib.get_close_matches(effort, EFFORTS, n=1)
        guess = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(EFFORTS)}"
        raise SetupError(f"{name.label} has no reasoning effort {effort!r} for --effort; {guess}")


def open_batches(name: ModelName, settings: ModelSettings) -> BatchService:
    """Opens the Batch API for the model `name`.

    Raises:
        SetupError: the model has no Batch API, or the key is missing.
    """
    has_batches(name)
    return cast("BatchService", _load(COMPATIBLE_SERVICE)(checked(name, settings)))


def _load(path: str) -> Callable[[ModelSettings], object]:
    """The function at `path`, `module:function`."""
    module_name, _, attribute = path.partition(":")
    return cast(
        "Callable[[ModelSettings], object]",
        getattr(importlib.import_module(module_name), attribute),
    )


def checked(name: ModelName, settings: ModelSettings) -> ModelSettings:
    """`settings` with the names in `name`; asks nothing. Raises `SetupError` if they contradict
    each other.
    """
    known = settings.known if name.provider == "oracle" else None  # no other may see the answers
    settings = replace(settings, model=name.model, provider=name.provider, known=known)
    if settings.base_urls and name.provider in _FIXED:
        raise SetupError(f"{name.provider} takes no --base-url")
    for url in settings.base_urls:
        if problem := address_problem(url):
            raise SetupError(f"--base-url {redact_address(url)!r} {problem}")
    if settings.server_args and name.provider != "vllm":
        raise SetupError(f"--vllm-arg is for models of vllm/, not of {name.provider}")
    check_effort(name, settings.effort, settings.base_urls)
    if settings.effort is not None and settings.api == "completions":
        raise SetupError("plain completions take no reasoning effort: leave out --effort or --api")
    if settings.system is not None and settings.api == "completions":
        raise SetupError("plain completions have no system prompt: leave out --system or --api")
    return settings


def _endpoints(environ: Mapping[str, str] = os.environ) -> dict[str, Endpoint]:
    """The endpoints of both files; raises `SetupError` if a name has a slash or is taken."""
    by_name = endpoints(environ)
    for name in by_name:
        if name in FACTORIES or "/" in name:
            problem = "has a slash" if "/" in name else "is a provider of its own"
            raise SetupError(f"endpoint {name!r} in {environ.get(USER_FILE)} {problem}; rename it")
    return by_name


def needs(environ: Mapping[str, str] = os.environ) -> list[tuple[str, str, str]]:
    """Each provider's name, title and needs; of a key only whether it is set."""

    def key(variable: str) -> str:
        return f"{variable} ({'set' if environ.get(variable) else 'not set'})"

    def extra(name: str) -> str:
        package = _EXTRAS[name]
        if importlib.util.find_spec(package):
            return f"{package} {importlib.metadata.version(package)}"
        return f"missing: {install(name)}"

    return [
        ("tiny", "the embedded model", "-"),
        ("oracle", "oracle:50 is right up to length 50, oracle:50/0.9 in 9 of 10", "-"),
        *(
            (
                name,
                endpoint.title,
                key(endpoint.key) if endpoint.key else redact_address(endpoint.base_url),
            )
            for name, endpoint in _endpoints(environ).items()
        ),
        ("anthropic", "Anthropic", f"{key(ANTHROPIC_KEY)}, {extra('anthropic')}"),
        ("vllm", "vLLM: a server that runs, or one of our own", f"--base-url, or {extra('vllm')}"),
        ("lm-eval", "models that lm-eval loads: hf, gguf, …", f"--model-arg, {extra('lm-eval')}"),
        (
            "hf",
            "a model of Hugging Face in a folder, for 'bench probe'",
            f"its folder, {extra('probe')}",
        ),
        ("azure", "a deployment on Azure OpenAI", ", ".join(map(key, AZURE_VARIABLES))),
        ("scripted", "replies from a text file, one on each line, in turn", "the file"),
    ]


@dataclass(frozen=True, slots=True)
class Listed:
    """A provider as `bench models` lists it."""

    provider: str
    what: str
    needs: str
    origin: str = BUILT_IN
    """Where it comes from: built in, or the distribution and its version."""


def listed() -> tuple[list[Listed], list[PluginError]]:
    """All providers, and why plugins are not used. Imports those of plugins."""
    rows = [Listed(*row) for row in needs()]
    built_in = [*FACTORIES, *plugins.installed(INSIDES, ()).usable, *endpoints({})]
    found = plugins.installed(PROVIDERS, built_in, _endpoints())
    errors = [*found.refused.values()]
    for name, plugin in found.usable.items():
        try:
            plugins.factory(plugin)
        except PluginError as error:
            errors.append(error)
        else:
            what = plugin.summary or plugin.value
            rows.append(Listed(name, what, f"see {plugin.distribution}", str(plugin)))
    return rows, errors
