"""The interface between harness and providers: requests, replies and errors.

ProviderError
├── StopRunError              no request of the run can succeed: the run stops at once
│   ├── SetupError            a missing key, package, server or model folder
│   ├── AuthError             401, 403
│   └── UnknownModelError     404 for the model
├── SampleError               this sample only; another try cannot succeed
│   ├── PromptOverflowError   the prompt is longer than the model's window
│   ├── RefusedError          a content filter
│   └── BadRequestError       any other 400
└── TransientError            another try may succeed
    ├── RateLimitError        429; may have a time to wait
    ├── OverloadedError       503, 529, or any other 5xx with a time to wait
    ├── ServerFaultError      408, 409, any other 5xx: a fault, not overload
    ├── ReplyTimeoutError     no reply in time
    ├── BrokenConnectionError no connection, or one that broke
    │   └── ConnectError      no connection could be made
    ├── BadReplyError         an invalid reply: invalid JSON, no choices
    └── BatchExpiredError     a batch ended before this request was processed
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, TypeAlias, runtime_checkable

import msgspec
from msgspec.structs import force_setattr

from eyechart.providers.naming import in_python, named
from eyechart.providers.secrets import keep_key, redact

FinishReason: TypeAlias = Literal["stop", "length", "content_filter", "other"]
Api: TypeAlias = Literal["chat", "completions"]
"""How a prompt is sent: as a user's message, or as a text to continue (for base models)."""
TIMEOUT_S = 600.0
"""Longest wait for one reply, in seconds; long replies take minutes."""


class Request(msgspec.Struct, frozen=True, gc=False):
    """One prompt for a model, with its limits. A frozen dataclass would take ten times as long to
    make.
    """

    prompt: str
    max_tokens: int
    """Most tokens of the reply, with its thinking."""
    temperature: float | None = 0.0
    """`None`: none is sent."""
    seed: int | None = None
    """Seed of the provider's sampling, if it supports one."""
    sample_id: str = ""
    """For the provider's own use; never sent to a model."""
    prefix: str = ""
    """Requests with the same prefix begin with the same text. A server that answered one of them
    has this text in its cache. Never sent to a model.
    """
    think_tokens: int = 0
    """The tokens of `max_tokens` that are meant for thinking, for vendors that ask for the number.
    """
    options: tuple[str, ...] = ()
    """For `score`: the replies whose probabilities are asked for, without the `opening`; the right
    one is the first."""
    opening: str = ""
    """For `score`: the words with which each reply begins; empty if the prompt ends with them."""
    history: tuple[tuple[str, str], ...] = ()
    """Earlier turns of the conversation: what was asked, and the reply. Only for providers whose
    descriptor has `takes_turns`."""

    @property
    def messages(self) -> list[dict[str, str]]:
        """The conversation as a chat, without a system prompt; the prompt comes last."""
        messages = []
        for asked, reply in self.history:
            messages += [
                {"role": "user", "content": asked},
                {"role": "assistant", "content": reply},
            ]
        return [*messages, {"role": "user", "content": self.prompt}]

    @property
    def text(self) -> str:
        """All texts that are sent for this request, without a system prompt."""
        if not self.history:
            return self.prompt
        return "\n".join((*(text for turn in self.history for text in turn), self.prompt))


_NO_PARAM = re.compile(r"model|messages|prompt|stop|seed|max_\w*tokens")
_is_no_param = lru_cache(maxsize=1024)(_NO_PARAM.fullmatch)


def sent_of(body: Mapping[str, object]) -> dict[str, object]:
    """The parameters in the body of a request: what is the same for all prompts of a run. Not the
    seed, since each draw has another.
    """
    return {name: value for name, value in body.items() if not _is_no_param(name)}


_SAMPLING = re.compile(
    r"temperature|top_[kp]|min_p|typical_p|xtc_probability|dry_multiplier|mirostat|top_n_sigma"
    r"|dynatemp_range|\w+_penalty"
)


def resampled(before: Mapping[str, object], now: Mapping[str, object]) -> list[str]:
    """The parameters of two requests by which their replies are drawn otherwise, sorted."""
    return [name for name in sampling_of({*before, *now}) if before.get(name) != now.get(name)]


def sampling_of(names: Iterable[str]) -> list[str]:
    """Those of the parameters by which replies are drawn, sorted."""
    return sorted(filter(_SAMPLING.fullmatch, names))


class Usage(msgspec.Struct, frozen=True, gc=False):
    """Tokens of one exchange, as the provider counts them; `None` if it does not report them."""

    prompt_tokens: int
    """All tokens of the prompt."""
    output_tokens: int
    """All billed tokens of the reply, with its thinking."""
    cache_read_tokens: int | None = None
    """Tokens of the prompt that came from a cache."""
    cache_write_tokens: int | None = None
    """Tokens of the prompt that were written to a cache."""
    thought_tokens: int | None = None
    """Tokens of the thinking."""
    tier: str | None = None
    """The tier that served the request: `default`, `flex`, `priority`, `batch`, or another."""


@dataclass(frozen=True, slots=True)
class ScoredOption:
    """An option of a request, with its probability after the prompt and the opening."""

    text: str
    logprob: float
    """Natural logarithm of the probability: the sum over its tokens."""
    tokens: int


class Reply(msgspec.Struct, frozen=True, gc=False):
    """A model's reply."""

    text: str
    """The text of the reply, without hidden reasoning; may be empty."""
    finish_reason: FinishReason | None = "stop"
    """Why it ended; `None` if the server does not say."""
    usage: Usage | None = None
    model: str | None = None
    """The model's name in the reply."""
    refusal: str | None = None
    """The provider's own refusal field."""
    reasoning: str | None = None
    """Hidden reasoning, if the provider returns it; never scored."""
    dropped_params: tuple[str, ...] = ()
    """Parameters that were left out because the server does not accept them."""
    sent: Mapping[str, object] | None = None
    """The parameters of the request as they were sent: the body without model, prompt and limit of
    tokens. `None` if the provider does not say."""
    logprobs: tuple[tuple[str, float], ...] | None = None
    """Token and natural logarithm of its probability, for each token of the text; if requested."""
    top_logprobs: tuple[tuple[tuple[str, float], ...], ...] | None = None
    """For each token of `logprobs` the most probable tokens there with theirs, the most probable
    one first; if requested."""
    options: tuple[ScoredOption, ...] | None = None
    """From `score`: the options in the order of the request; `text` is the most probable one."""
    sure_stop: bool = False
    """Whether the finish reason `stop` holds also for a reply with exactly the most tokens that it
    may have, because the provider saw how it ended. Otherwise such a reply counts as cut off, since
    some servers say `stop` of every reply."""
    finish_word: str | None = None
    """The server's own word for why it ended, of a filter or where that is not known."""

    def __post_init__(self) -> None:
        """Replaces lone surrogates in the texts, so that each text can be stored and read back
        unchanged. A field of a wrong type stays as it is, for `providers.plugins.contract`.
        """
        for name in ("text", "finish_word", "model", "refusal", "reasoning"):
            value = getattr(self, name)
            if isinstance(value, str) and not value.isascii():
                force_setattr(self, name, storable(value))
        if self.logprobs is not None:
            with suppress(TypeError, ValueError, AttributeError):
                logprobs = tuple((storable(token), logprob) for token, logprob in self.logprobs)
                force_setattr(self, "logprobs", logprobs)
        if self.top_logprobs is not None:
            with suppress(TypeError, ValueError, AttributeError):
                top = tuple(
                    tuple((storable(token), logprob) for token, logprob in place)
                    for place in self.top_logprobs
                )
                force_setattr(self, "top_logprobs", top)


class Facts(Protocol):
    """Facts about a model, and where it is served."""

    async def facts(self) -> Mapping[str, object]:
        """Facts about the model and its server, for the manifest. They must not change in a run.

        `max_model_len`, if known, is the context window: most tokens of prompt and reply together.
        """
        ...

    async def count_tokens(self, prompts: Sequence[str]) -> list[int] | None:
        """Number of tokens of each prompt as it would be sent; `None` if unknown.

        Raises a `ProviderError` and nothing else.
        """
        ...


class Provider(Facts, Protocol):
    """Sends requests to one model. Safe to call from many asyncio tasks of one loop."""

    async def complete(self, request: Request) -> Reply:
        """The model's reply; raises a `ProviderError` and nothing else."""
        ...

    async def aclose(self) -> None:
        """Closes connections, and ends threads and servers."""
        ...


@runtime_checkable
class Likelihood(Protocol):
    """What a provider can do besides, if its descriptor says so."""

    async def score(self, request: Request) -> Reply:
        """The probabilities of the request's options; raises a `ProviderError` and nothing else."""
        ...


@dataclass(frozen=True, slots=True)
class OracleAnswer:
    """The oracle's knowledge of a sample."""

    length: int
    """Symbols in the row."""
    right: str
    wrong: str
    """A right and a wrong reply; of a sample in turns, those of the last turn."""
    earlier: tuple[str, ...] = ()
    """Right replies of the turns before the last one, where their answers are known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerSettings:
    """What affects a model's answers besides the prompt and the limit of tokens."""

    temperature: float | None = 0.0
    """Temperature of all requests, `None` if none is sent; a model that does not support it is
    refused at once."""
    api: Api | None = "chat"
    """`None` for recorded replies, of which it is not known."""
    system: str | None = None
    """A system prompt; only for `api` chat."""
    effort: str | None = None
    """The reasoning effort to ask for; `None` leaves it to the catalog. Only for `api` chat."""
    thinking: str | None = None
    """`on`, `off`, or the most tokens of thinking, as digits; `None` leaves it to the model."""
    params: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of each request's body, as they are sent."""

    def shared(self) -> dict[str, Any]:
        """The settings of this class by name, for another of its subclasses."""
        return {one.name: getattr(self, one.name) for one in fields(AnswerSettings)}


@dataclass(frozen=True, slots=True)
class ModelSettings(AnswerSettings):
    """Settings with which a provider opens its model."""

    model: str
    """The model's name without the provider's."""
    provider: str = ""
    """The provider's name, for one that has several."""
    base_urls: tuple[str, ...] = ()
    """The user's addresses of the model, instead of the provider's own; several are replicas."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Further headers of each request; never stored."""
    tier: str | None = None
    """The vendor's tier to ask for, `default` or `flex`; `None` leaves it to the vendor."""
    logprobs: bool = False
    """Whether replies carry the probabilities of their tokens."""
    top_logprobs: int = 0
    """How many of the most probable tokens at each place replies carry; only with `logprobs`."""
    model_args: tuple[str, ...] = ()
    """`KEY=VALUE` for the library that loads the model, or the server that the provider starts."""
    server_log: Path | None = None
    """File for the output of that server."""
    device: str | None = None
    """Where a model in this process runs: `cpu`, `cuda`, `mps`; `None` for the best."""
    trust_remote_code: bool = False
    """Whether Python code in the model's folder may be executed."""
    known: Callable[[str], OracleAnswer] | None = None
    """Sample id -> the oracle's knowledge. Only the oracle gets it, see `registry.registry`."""
    notify: Callable[[str], None] = lambda _line: None
    """Called with a line for the user."""

    def refuse_all_but(self, *supported: str) -> None:
        """For a provider that supports only the settings with these names.

        Raises:
            SetupError: another setting is given.
        """
        usual = ModelSettings(self.model)
        for name, setting in _SETTINGS.items():
            if name not in supported and getattr(self, name) != getattr(usual, name):
                label = f"{self.provider}/{self.model}" if self.provider else self.model
                raise SetupError(f"{label} does not support {named(setting)}; leave it out")


_SETTINGS = {
    **{one.name: one.name for one in fields(AnswerSettings)},
    "effort": "thinking",
    "tier": "tier",
    **dict.fromkeys(("logprobs", "top_logprobs"), "logprobs"),
    "base_urls": "base_url",
    "headers": "header",
    "model_args": "model_args",
}
"""Field -> the setting of a run that gives it."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """A prompt as the model gets it."""

    ids: tuple[int, ...]
    spans: tuple[tuple[int, int] | None, ...]
    """For each token the characters of the prompt it stands for, as (start, end); `None` for tokens
    of the chat template and special tokens."""


class ProviderError(Exception):
    """Base of all errors of providers. The message is one line for the user, without keys and
    without lone surrogates.
    """

    exit_code: ClassVar[int] = 1
    """Exit code of `bench` if the error ends a command, see `eyechart.harness.errors`."""

    def __init__(self, message: str) -> None:
        self.lines: tuple[str, ...] = (storable(redact(message)),)
        super().__init__(in_python(self.lines[0]))


class StopRunError(ProviderError):
    """No request of the run can succeed."""


class SetupError(StopRunError):
    """A key, package, server or model folder is missing."""

    exit_code = 2


class AuthError(StopRunError):
    """The server does not accept the key."""


class UnknownModelError(StopRunError):
    """The provider has no such model."""


class SampleError(ProviderError):
    """This request can never be answered; others can."""


class PromptOverflowError(SampleError):
    """The prompt is longer than the model's window."""


class RefusedError(SampleError):
    """A content filter blocked the prompt or the reply."""


class BadRequestError(SampleError):
    """The provider rejects this request."""


class TransientError(ProviderError):
    """Another try may succeed."""

    def __init__(
        self,
        message: str,
        *,
        retry_after_s: float | None = None,
        usage: Usage | None = None,
        means: SampleError | None = None,
    ) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s
        self.means = means
        """What it is if another try ends alike: by its status the server is at fault, and by its
        words the request."""
        self.usage = usage
        """Tokens that were billed although there is no reply."""


class RateLimitError(TransientError):
    """429."""


class OverloadedError(TransientError):
    """Status 503 or 529, or another 5xx whose response names a time to wait."""


class ServerFaultError(TransientError):
    """408, 409, any other 5xx."""


class ReplyTimeoutError(TransientError):
    """No reply in time."""


class BrokenConnectionError(TransientError):
    """No connection, or one that broke."""


class ConnectError(BrokenConnectionError):
    """No connection could be made: nobody listens, or there is no such address."""


class BadReplyError(TransientError):
    """An invalid reply: invalid JSON, no choices."""


class BatchExpiredError(TransientError):
    """A batch ended before this request was processed."""


def storable(text: str) -> str:
    """The text with each lone surrogate, which UTF-8 lacks, replaced by U+FFFD.

    The JSON of a server has a lone surrogate if a reply was cut off within a character.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def environment_key(variable: str) -> str:
    """The key in an environment variable, without surrounding blanks; empty if there is none.

    Raises:
        SetupError: it has characters that an HTTP header cannot have.
    """
    key = os.environ.get(variable, "").strip()
    if not (key.isascii() and key.isprintable()):
        raise SetupError(f"{variable} holds characters that no key has; set it anew")
    keep_key(key)
    return key


def install(extra: str) -> str:
    """The command that installs an extra, from a clone: the distribution is not on an index."""
    return f"pip install -e '.[{extra}]' in a clone of the repository"
