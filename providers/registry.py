"""Who answers: provider names and the modules behind them, imported on first use."""

from __future__ import annotations

import difflib
import importlib
import importlib.metadata
import importlib.util
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from providers.base import (
    BatchForm,
    BatchService,
    ModelSettings,
    Provider,
    SetupError,
    install,
)
from providers.catalog.endpoints import USER_FILE, Endpoint, address_problem, endpoints
from providers.lm_eval.args import facts_of, label_of, read_args
from providers.secrets import redact_address

FACTORIES = {
    "anthropic": "providers.anthropic:open_provider",
    "azure": "providers.openai.api:open_azure",
    "lm-eval": "providers.lm_eval.bridge:open_provider",
    "scripted": "providers.scripted:open_provider",
    "tiny": "providers.tiny.provider:open_provider",
    "vllm": "providers.vllm.client:open_provider",
}
"""Provider -> `module:function` that takes `ModelSettings` and gives a `Provider`."""
COMPATIBLE = "providers.openai.api:open_provider"
"""The same for every name in `endpoints.yaml`."""
BATCH_FORMS = {"vllm": "providers.openai.batch_form:open_vllm"}
"""Provider -> `module:function` that takes `ModelSettings` and gives a `BatchForm`."""
COMPATIBLE_FORM = "providers.openai.batch_form:open_compatible"
"""The same for every name in `endpoints.yaml`."""
COMPATIBLE_SERVICE = "providers.openai.batch:open_service"
"""The function that gives a `BatchService` for those names."""
_FIXED = ("azure", "lm-eval", "scripted", "tiny")
"""Those that are where they are: no address can be given."""
_EXTRAS = {"anthropic": "anthropic", "lm-eval": "lm_eval", "vllm": "vllm"}
"""Provider, and the extra that it needs, -> the package."""


@dataclass(frozen=True, slots=True)
class ModelName:
    """`provider/model`, taken apart."""

    provider: str
    model: str
    detail: str = ""
    """What else tells models apart, where the name alone does not."""

    @property
    def label(self) -> str:
        """How the model is written in tables and folders; `tiny` for the embedded one."""
        if self.model == self.provider:
            return self.provider
        return "/".join(filter(None, (self.provider, self.model, self.detail)))


def parse_model(given: str, model_args: Sequence[str] = ()) -> ModelName:
    """What `given` names: `provider/model`, the embedded `tiny`, or a bare name of OpenAI's.

    Of `lm-eval/TYPE` the arguments say which model it is: see `providers.lm_eval.args.label_of`.

    Raises:
        SetupError: empty, no provider of that name, or arguments that it does not take.
    """
    name = _parse(given)
    if name.provider == "lm-eval":
        return replace(name, detail=label_of(read_args(model_args)))
    if model_args:
        raise SetupError(f"--model-arg is for models of lm-eval/, not of {name.provider}")
    return name


def known_facts(name: ModelName, model_args: Sequence[str]) -> dict[str, object]:
    """Those of the provider's `facts` that are known before it is opened."""
    return facts_of(read_args(model_args)) if name.provider == "lm-eval" else {}


def _parse(given: str) -> ModelName:
    provider, slash, model = given.strip().partition("/")
    if not slash and provider in FACTORIES and provider != "tiny":
        raise SetupError(f"{provider!r} is a provider and no model: {provider}/… names one of its")
    if not provider or (slash and not model):
        raise SetupError(f"model {given!r} is not of the form provider/model")
    if not slash:
        return ModelName("tiny", "tiny") if provider == "tiny" else ModelName("openai", provider)
    known = [*FACTORIES, *_endpoints()]
    if provider not in known:
        close = difflib.get_close_matches(provider, known, n=1)
        guess = f"did you mean {close[0]!r}?" if close else "'bench models' lists the providers"
        raise SetupError(f"unknown provider {provider!r} in {given!r}; {guess}")
    return ModelName(provider, model)


def open_model(name: ModelName, settings: ModelSettings | None = None) -> Provider:
    """The provider behind `name`, ready to be asked as `settings` say; `settings.model` is its own.

    Raises:
        SetupError: a package, key or file that the provider needs is missing, or it cannot be
            asked in that way.
    """
    settings = _checked(name, settings or ModelSettings(name.model))
    return cast("Provider", _load(FACTORIES.get(name.provider, COMPATIBLE))(settings))


def open_batch_form(name: ModelName, settings: ModelSettings) -> BatchForm:
    """How the model behind `name` is asked in batch files; needs neither key nor network.

    Raises:
        SetupError: it is not asked in OpenAI's form, or cannot be asked in that way.
    """
    place = BATCH_FORMS.get(name.provider)
    if place is None and name.provider in FACTORIES:
        raise SetupError(
            f"{name.label} is not asked in the Batch form of OpenAI's; that is for openai/…, "
            "OpenAI-compatible vendors, and vllm/NAME, the name under which vLLM serves the model"
        )
    return cast("BatchForm", _load(place or COMPATIBLE_FORM)(_checked(name, settings)))


def has_batches(name: ModelName) -> None:
    """Raises `SetupError` where no Batch API is known for the model's provider."""
    if name.provider in FACTORIES:
        own = "'bench export batch' writes files for 'vllm run-batch'; " * (name.provider == "vllm")
        raise SetupError(
            f"--batch is for openai/… and vendors or servers with a Batch API like OpenAI's, not "
            f"for {name.label}; {own}leave out --batch"
        )


def open_batches(name: ModelName, settings: ModelSettings) -> BatchService:
    """The Batch API where the model behind `name` is.

    Raises:
        SetupError: there is none, or a key that it needs is missing.
    """
    has_batches(name)
    return cast("BatchService", _load(COMPATIBLE_SERVICE)(_checked(name, settings)))


def _load(place: str) -> Callable[[ModelSettings], object]:
    """The function at `module:function`."""
    module_name, _, attribute = place.partition(":")
    return cast(
        "Callable[[ModelSettings], object]",
        getattr(importlib.import_module(module_name), attribute),
    )


def _checked(name: ModelName, settings: ModelSettings) -> ModelSettings:
    """`settings` with the names in `name`; raises `SetupError` where they do not go together."""
    settings = replace(settings, model=name.model, provider=name.provider)
    if settings.base_urls and name.provider in _FIXED:
        raise SetupError(f"{name.provider} takes no --base-url")
    for url in settings.base_urls:
        if problem := address_problem(url):
            raise SetupError(f"--base-url {redact_address(url)!r} {problem}")
    if settings.server_args and name.provider != "vllm":
        raise SetupError(f"--vllm-arg is for models of vllm/, not of {name.provider}")
    if settings.system is not None and settings.api == "completions":
        raise SetupError("plain completions have no system prompt: leave out --system or --api")
    return settings


def _endpoints(environ: Mapping[str, str] = os.environ) -> dict[str, Endpoint]:
    """Those of the files; raises `SetupError` on a name by which none can be asked."""
    found = endpoints(environ)
    for name in found:
        if name in FACTORIES or "/" in name:
            what = "has a slash" if "/" in name else "is a provider of its own"
            raise SetupError(f"endpoint {name!r} in {environ.get(USER_FILE)} {what}; rename it")
    return found


def needs(environ: Mapping[str, str] = os.environ) -> list[tuple[str, str, str]]:
    """Provider, what it is, and what it needs; of a key only whether it is set."""

    def key(variable: str) -> str:
        return f"{variable} ({'set' if environ.get(variable) else 'not set'})"

    def extra(name: str) -> str:
        package = _EXTRAS[name]
        if importlib.util.find_spec(package):
            return f"{package} {importlib.metadata.version(package)}"
        return f"missing: {install(name)}"

    azure = ("AZURE_OPENAI_ENDPOINT", "AZURE_OPENAI_API_KEY", "OPENAI_API_VERSION")
    return [
        ("tiny", "the embedded model", "-"),
        *(
            (
                name,
                endpoint.title,
                key(endpoint.key) if endpoint.key else redact_address(endpoint.base_url),
            )
            for name, endpoint in _endpoints(environ).items()
        ),
        ("anthropic", "Anthropic", f"{key('ANTHROPIC_API_KEY')}, {extra('anthropic')}"),
        ("vllm", "vLLM: servers that run, or one started here", f"--base-url, or {extra('vllm')}"),
        ("lm-eval", "whatever lm-eval loads: hf, gguf, …", f"--model-arg, {extra('lm-eval')}"),
        ("azure", "a deployment on Azure OpenAI", ", ".join(map(key, azure))),
        ("scripted", "replies from a text file, one a line, in turn", "the file"),
    ]
