"""The seam between harness and provider: what is asked, what comes back, what can go wrong.

ProviderError
├── StopRunError              the whole run is pointless: stop at once, one clear line
│   ├── SetupError            a missing key, package, server or model folder
│   ├── AuthError             401, 403
│   └── UnknownModelError     404 for the model
├── SampleError               this sample only; asking again would not help
│   ├── PromptOverflowError   the prompt is longer than the model's window
│   ├── RefusedError          a content filter
│   └── BadRequestError       any other 400
└── TransientError            asking again may help
    ├── RateLimitError        429; may say when to come back
    ├── OverloadedError       503, 529, or any other 5xx that says when to come back
    ├── ServerFaultError      408, 409, any other 5xx: bad luck, not too much work
    ├── ReplyTimeoutError     no reply in time
    ├── BrokenConnectionError no connection, or one that broke
    ├── BadReplyError         a reply that is none: invalid JSON, no choices
    └── BatchExpiredError     a batch ended before it came to this request
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal, Protocol, TypeAlias

from providers.secrets import keep_secret
from providers.secrets import redact as redact  # noqa: PLC0414  part of the seam

FinishReason: TypeAlias = Literal["stop", "length", "content_filter", "other"]
Api: TypeAlias = Literal["chat", "completions"]
"""How a prompt is put: as a user's message, or as a text to be continued (for base models)."""


@dataclass(frozen=True, slots=True)
class Request:
    """One prompt on its way to a model."""

    prompt: str
    max_tokens: int
    """The most tokens the reply may have."""
    temperature: float = 0.0
    seed: int | None = None
    """For sampling on the provider's side, where it has one."""
    sample_id: str = ""
    """For the provider's own bookkeeping; never sent to a model."""
    prefix: str = ""
    """Requests of one prefix begin alike; a server that answered one has its beginning cached.
    Never sent either."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one exchange, as the provider counts them."""

    prompt_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model answered."""

    text: str
    """What the model said, without its hidden reasoning; empty where it said nothing."""
    finish_reason: FinishReason = "stop"
    usage: Usage | None = None
    model: str | None = None
    """The model's name as the reply gives it."""
    refusal: str | None = None
    """The provider's own refusal field."""
    reasoning: str | None = None
    """Hidden reasoning, where the provider shows it; never judged."""
    dropped_params: tuple[str, ...] = ()
    """Parameters that the server did not take and was asked without."""
    logprobs: tuple[tuple[str, float], ...] | None = None
    """Token and natural logarithm of its probability, for each token of the text; where asked."""


class Provider(Protocol):
    """Sends requests to one model. Safe to call from many asyncio tasks of one loop."""

    async def complete(self, request: Request) -> Reply:
        """The model's reply; raises a `ProviderError` and nothing else."""
        ...

    async def facts(self) -> Mapping[str, object]:
        """What answers: for the manifest. A resumed run with other facts is refused.

        `max_model_len`, where it is known, is the window: tokens of prompt and reply together.
        """
        ...

    async def count_tokens(self, prompts: Sequence[str]) -> list[int] | None:
        """Tokens of each prompt as the model would be sent it; `None` where nobody here knows.

        Raises a `ProviderError` and nothing else.
        """
        ...

    async def aclose(self) -> None:
        """Give back what was taken: connections, threads, servers."""
        ...


class BatchForm(Protocol):
    """Requests to one model, and its replies, as lines of batch files; nothing is sent here."""

    @property
    def url(self) -> str:
        """Where each request is to go: `/v1/chat/completions`."""
        ...

    @property
    def caution(self) -> str | None:
        """What the user should know before such a file is used, if anything."""
        ...

    def body(self, request: Request) -> Mapping[str, object]:
        """What `complete` would send for it, the model included."""
        ...

    def reply(self, line: Mapping[str, object]) -> Reply:
        """What a line of replies or errors says; raises a `ProviderError` and nothing else."""
        ...


@dataclass(frozen=True, slots=True)
class BatchState:
    """What a vendor says of one batch."""

    id: str
    status: str
    """`validating`, `in_progress`, `finalizing`, `cancelling`, or how it ended: `completed`,
    `failed` (nothing was asked), `expired`, `cancelled`."""
    total: int = 0
    completed: int = 0
    failed: int = 0
    """Requests."""
    output_file: str | None = None
    error_file: str | None = None
    """Names by which the vendor gives the files out."""
    problems: tuple[str, ...] = ()
    """Why it failed, a line each."""


class BatchService(Protocol):
    """A vendor's Batch API. Every method raises a `ProviderError` and nothing else."""

    @property
    def address(self) -> str:
        """Where it is, without keys."""
        ...

    async def facts(self) -> Mapping[str, object]:
        """As a `Provider` of the same model says them."""
        ...

    async def upload(self, file: Path) -> str:
        """The vendor's name for a file of requests."""
        ...

    async def create(self, file: str, url: str, token: str) -> BatchState:
        """Submits an uploaded file; the batch carries `token`, by which `find` knows it."""
        ...

    async def find(self, token: str, since_s: float) -> BatchState | None:
        """The batch that carries `token`, among those created since a moment of the epoch."""
        ...

    async def state(self, batch: str) -> BatchState:
        """How far a batch is; an `UnknownModelError` where there is none of that id."""
        ...

    async def fetch(self, file: str, to: Path) -> None:
        """Downloads a file, whole or not at all; `UnknownModelError` where it is gone."""
        ...

    async def aclose(self) -> None:
        """Closes the connections."""
        ...


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """How a provider is asked to open its model."""

    model: str
    """The model's name without the provider's."""
    provider: str = ""
    """The provider's name, for one that has several."""
    temperature: float = 0.0
    """What requests will ask for, so that a model that cannot is refused at once."""
    base_urls: tuple[str, ...] = ()
    """Where to find the model, instead of the provider's own address; several are replicas."""
    api: Api = "chat"
    system: str | None = None
    """A system prompt; of the chat form only."""
    logprobs: bool = False
    """Whether replies carry the probabilities of their tokens."""
    model_args: tuple[str, ...] = ()
    """`KEY=VALUE` for the library that loads the model, where one does."""
    server_args: tuple[str, ...] = ()
    """Handed to the server that the provider starts, where it starts one."""
    server_log: Path | None = None
    """Where that server's output goes."""
    notify: Callable[[str], None] = lambda _line: None
    """Takes a line that the user should see."""


class ProviderError(Exception):
    """Root of everything a provider raises. Its text is one line for the user, without keys."""

    exit_code: ClassVar[int] = 1
    """Of `bench`, where the error ends a command; see `harness.errors`."""

    def __init__(self, message: str) -> None:
        super().__init__(redact(message))


class StopRunError(ProviderError):
    """The whole run is pointless."""


class SetupError(StopRunError):
    """A key, package, server or model folder is missing."""

    exit_code = 2


class AuthError(StopRunError):
    """The key is refused."""


class UnknownModelError(StopRunError):
    """The provider has no such model."""


class SampleError(ProviderError):
    """This request can never be answered; the next one can."""


class PromptOverflowError(SampleError):
    """The prompt is longer than the model's window."""


class RefusedError(SampleError):
    """A content filter kept the prompt or the reply back."""


class BadRequestError(SampleError):
    """The provider rejects this request."""


class TransientError(ProviderError):
    """Asking again may help."""

    def __init__(
        self, message: str, *, retry_after_s: float | None = None, usage: Usage | None = None
    ) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s
        self.usage = usage
        """What was paid for nevertheless."""


class RateLimitError(TransientError):
    """429."""


class OverloadedError(TransientError):
    """503, 529, or any other 5xx that says when to come back."""


class ServerFaultError(TransientError):
    """408, 409, any other 5xx."""


class ReplyTimeoutError(TransientError):
    """No reply in time."""


class BrokenConnectionError(TransientError):
    """No connection, or one that broke."""


class BadReplyError(TransientError):
    """A reply that is none: invalid JSON, no choices."""


class BatchExpiredError(TransientError):
    """A batch ended before it came to this request."""


def environment_key(variable: str) -> str:
    """The key in an environment variable, without blanks around it; empty where there is none.

    Raises:
        SetupError: it holds what no header can carry.
    """
    key = os.environ.get(variable, "").strip()
    if not (key.isascii() and key.isprintable()):
        raise SetupError(f"{variable} holds characters that no key has; set it anew")
    keep_secret(key)
    return key


def install(extra: str) -> str:
    """What installs the packages of an extra: no index has this distribution, so from a clone."""
    return f"pip install -e '.[{extra}]' in a clone of the repository"
