"""What is known of a provider before its module is imported: one descriptor stands beside each.

`providers.descriptors` lists them. Nobody compares the names of providers: who wants to know
something of one asks its descriptor.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from eyechart.providers.base import Api, install
from eyechart.providers.catalog.endpoints import Thinking
from eyechart.providers.secrets import redact_address

Environment: TypeAlias = Mapping[str, str]
"""Environment variables."""
NOTHING = "-"
"""What `bench models` says of a provider without needs."""


@dataclass(frozen=True, slots=True)
class Destination:
    """The servers that a command asks."""

    addresses: tuple[str, ...]
    key: str = ""
    """What goes along: `the key in OPENAI_API_KEY`; "" where no key does."""
    variable: str = ""
    """The environment variable that names the address in place of the vendor's own."""

    def __str__(self) -> str:
        """`https://api.openai.com/v1, with the key in OPENAI_API_KEY`; never with a password."""
        where = " and ".join(map(redact_address, self.addresses))
        source = f", from {self.variable}" if self.variable else ""
        return f"{where}{source}, {f'with {self.key}' if self.key else 'without a key'}"


@dataclass(frozen=True, slots=True)
class Service:
    """Who makes the models that a provider serves, and who runs the server."""

    kind: Literal["", "ours", "own models", "other models", "local server", "engine"] = ""
    """`ours`: a model of this package. `own models`: a company serves those that it makes; `other
    models`: a company serves those of others. `local server`: a program on the user's machine.
    `engine`: a library that runs models. Empty: not known."""
    developer: str = ""
    """The name under which the maker publishes its models, where all are of one maker."""
    weights: Literal["open", "closed", "unknown"] = "unknown"
    """The kind of all its models; unknown where there are both kinds."""
    host: str = ""
    """The host of a company; empty where each customer has another one."""
    version: str = ""
    """The fact of a run's server that has the version of an engine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Descriptor:
    """A provider: what it takes, what it needs, and how it is opened.

    What most providers have is the default, so that a new one says little:

        DESCRIPTOR = Descriptor(
            name="acme", title="Acme", opens="eyechart.providers.acme:open_provider"
        )
    """

    name: str
    title: str = ""
    """What it is, in a line of `bench models`."""
    needs: Callable[[Environment], str] = lambda _environ: NOTHING
    """What it needs, in the same line; of a key only whether it is set."""
    opens: str = ""
    """`module:function`, which takes `ModelSettings` and returns a `Provider`; empty for a plugin.
    """
    batch_form: str = ""
    """`module:function`, which takes `ModelSettings` and returns a `BatchForm`."""
    batch_service: str = ""
    """`module:function`, which takes `ModelSettings` and returns a `BatchService`."""
    batch_hint: str = ""
    """What takes the place of `batch`, if something does."""

    example: str = ""
    """The name of a model, for messages: `oracle:50`; empty for `NAME/…`."""
    only_model: str = ""
    """The model that the name of the provider alone means; empty where it means none."""
    read_model: Callable[[str], str] | None = None
    """The name of a model as tables and folders have it, from the given one, which may follow a
    colon too; raises `SetupError`. `None`: as it is given, after a slash."""
    read_label: Callable[[str], str] | None = None
    """The name of a model in tables and folders, after that of the provider, from the name by which
    it is asked; `None`: they are the same."""
    bare: str = ""
    """The pattern of names of its models that are given without that of the provider."""
    executes: Callable[[str], str] | None = None
    """For models that are functions or objects of Python: the file that is executed to ask one, by
    its name; empty for one of this program."""
    models_are_files: bool = False
    """Whether a model's name is a path on this machine: then the facts of its weights say which
    model it is, and the user may give it another name."""
    model_args: Callable[[Sequence[str]], str] | None = None
    """What `model_args` adds to the name of a model; raises `SetupError`. `None`: it takes none.
    """
    takes_model_args: bool = False
    """Whether it starts a server, whose arguments are `model_args`."""
    known_facts: Callable[[Sequence[str]], dict[str, object]] = lambda _model_args: {}
    """The facts of a model that its `model_args` show, before it is loaded."""
    users_name_models: bool = False
    """Whether users choose the names of models, so that none is misspelt."""

    takes_address: bool = True
    """Whether `base_url` names its servers."""
    efforts: Literal["none", "listed", "any"] = "listed"
    """The reasoning efforts that it takes: those of vendors, or also words of its own."""
    effort_hint: str = ""
    """How such a model is asked for a reasoning effort all the same, if it can be."""
    thinking: Callable[[Sequence[str]], Thinking] = lambda _addresses: {}
    """The kinds of thinking that a request can ask for, each with its form, by the addresses of the
    user; empty if a request cannot ask for thinking."""
    takes_params: bool = False
    """Whether a request takes further fields, `params`."""
    takes_headers: bool = False
    """Whether a request takes further headers."""
    takes_temperature: bool = True
    """Whether a request to a model can have a temperature."""
    thinking_takes_temperature: Callable[[Sequence[str]], bool] = lambda _addresses: True
    """Whether a request to a model that thinks has a temperature, by the addresses of the user."""
    tiers: Callable[[Sequence[str]], Collection[str] | None] = lambda _addresses: ()
    """The tiers of single requests at the addresses of the user, or at its own where there are
    none; `None`: the provider checks them itself."""
    likelihood: Callable[[Sequence[str]], Collection[Api]] = lambda _addresses: ()
    """The forms of requests in which it gives the probabilities of options, see
    `providers.base.Likelihood`, by the addresses of the user."""
    takes_completions: bool = True
    """Whether it takes texts to continue, not only chats."""
    gives_logprobs: bool = True
    """Whether replies can have the probabilities of their tokens."""
    takes_turns: bool = False
    """Whether a chat can have earlier turns, see `Request.history`."""
    gets_answers: bool = False
    """Whether it is given what is right for each sample."""

    runs_here: bool = False
    """Whether its models compute on this machine where no address is given."""
    is_free: bool = False
    """Whether nobody sends a bill, so that nobody misses a price."""
    has_tokenizer: bool = True
    """Whether its models read a row as tokens, so that a tokenizer can have an effect."""
    counts_tokens: Literal["", "here", "server"] = ""
    """Where it counts the tokens of prompts without cost: in this process, or at a server at an
    address of the user's. Empty: a count is not free, or not possible."""
    in_cluster: Literal["", "node", "gpu", "engine"] = "node"
    """What Ray gives to each of its workers: a node, a GPU where there is one, or, where no address
    is given, an engine of vLLM. Empty: it answers from this process alone."""
    destination: Callable[[Sequence[str], Sequence[str], Environment], Destination | None] = (
        lambda _addresses, _model_args, _environ: None
    )
    """Where requests go, from the addresses of the user and `model_args`; `None` where a model
    computes here, or where the provider alone knows."""
    moved: Callable[[Environment], tuple[str, str]] = lambda _environ: ("", "")
    """The environment variable that names another address than its own, and that address, which is
    asked as one of the user's; two empty texts where none does."""
    prices: str | None = None
    """Its name in the list of prices; `None` if the list does not have it."""
    base_url: str = ""
    """The address whose models have these prices; empty where no single address has."""
    service: Service = Service()

    @property
    def named(self) -> str:
        """How a model of it is written."""
        return self.example or f"{self.name}/…"

    def computes_here(self, addresses: Sequence[str]) -> bool:
        """Whether a model computes on this machine; `addresses` are those of the user."""
        return self.runs_here and not addresses

    def is_engine(self, addresses: Sequence[str]) -> bool:
        """Whether Ray runs its models in engines of vLLM."""
        return self.in_cluster == "engine" and not addresses


def key_in(variable: str | None, environ: Environment) -> str:
    """`the key in OPENAI_API_KEY`; empty where the variable is not set."""
    return f"the key in {variable}" if variable and environ.get(variable, "").strip() else ""


def at(addresses: Sequence[str], key: str) -> Destination:
    """The user's addresses with `key`; one that has a password of its own does not get it."""
    passwords = ["the password in the address"] * any("@" in url for url in addresses)
    keys = [key] * any("@" not in url for url in addresses)
    return Destination(tuple(addresses), " and ".join(filter(None, [*passwords, *keys])))


def key_needed(variable: str, environ: Environment = os.environ) -> str:
    """`OPENAI_API_KEY (set)`."""
    return f"{variable} ({'set' if environ.get(variable) else 'not set'})"


def extra_needed(extra: str, package: str) -> str:
    """The package of an extra with its version, or how it is installed."""
    if importlib.util.find_spec(package):
        return f"{package} {importlib.metadata.version(package)}"
    return f"missing: {install(extra)}"
