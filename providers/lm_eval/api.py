"""lm-eval's models behind a server: lm-eval writes the request, this module reads the reply.

lm-eval keeps only the text of a reply, and treats a reply without text as an empty one. So lm-eval
builds the request, this module sends it, and the reply's JSON is read as that of any other
provider: with finish reason, refusal and number of tokens. Failed requests are not repeated here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from msgspec.structs import replace

from eyechart.providers import anthropic
from eyechart.providers.base import (
    BadReplyError,
    BadRequestError,
    BrokenConnectionError,
    ModelSettings,
    PromptOverflowError,
    Reply,
    ReplyTimeoutError,
    Request,
    SetupError,
)
from eyechart.providers.catalog.endpoints import NEUTRAL
from eyechart.providers.documents import as_document, stops
from eyechart.providers.http.client import Client
from eyechart.providers.http.errors import error_of
from eyechart.providers.lm_eval.args import is_secret
from eyechart.providers.lm_eval.loading import one_line
from eyechart.providers.naming import named
from eyechart.providers.openai.form import reply_of
from eyechart.providers.openai.neutral import NeutralFields
from eyechart.providers.secrets import keep_secret, redact_address


class ApiModel:
    """One model at one address. Takes any number of requests at once."""

    def __init__(self, lm: Any, kind: str, settings: ModelSettings, over_http: type) -> None:
        self._lm = lm
        self._kind = kind
        self._settings = settings
        self._chat = _takes_messages(lm)
        inherited = getattr(over_http, "model_call", None)
        self._sends_itself = getattr(type(lm), "model_call", None) is not inherited
        """Whether lm-eval's class sends requests in its own way, through a vendor's SDK."""
        self._url = str(lm.base_url or "")
        self._client: Client | None = None
        self._has_notified = False
        if settings.api == "completions" and self._chat:
            raise SetupError(
                f"lm-eval's {kind} has the chat form only: leave out {named('api', 'completions')}"
            )
        if not self._sends_itself:
            self._check_address()
        self._message(Request("1", 1))  # fails at once if the template is missing

    def _check_address(self) -> None:
        """Raises `SetupError` if the address or the headers are missing; keeps keys secret."""
        if not self._url.startswith(("http://", "https://")):
            path = "chat/completions" if self._chat else "completions"
            address = named("model_args", f"base_url=http://…/v1/{path}")
            raise SetupError(f"lm-eval's {self._kind} needs an address: {address}")
        try:
            headers = dict(self._lm.header)
        except Exception as error:  # lm-eval's property raises if its key is missing
            raise SetupError(f"lm-eval's {self._kind}: {one_line(error)}") from error
        for name, value in headers.items():
            if is_secret(name):
                keep_secret(str(value))

    async def complete(self, request: Request) -> Reply:
        message, lm = self._message(request), self._lm
        if self._sends_tokens and len(message) + request.max_tokens > lm.max_length:
            raise PromptOverflowError(
                f"the prompt has {len(message)} tokens and the reply may have"
                f" {request.max_tokens}, but the window has {lm.max_length}; if the model's window"
                f" is larger, give {named('model_args', 'max_length=N')}"
            )
        arguments: dict[str, Any] = {
            "max_gen_toks": request.max_tokens,
            "temperature": request.temperature,
            "do_sample": (request.temperature or 0) > 0,
        }
        if self._settings.api == "completions":
            arguments["until"] = stops(request.prompt)
        if self._sends_itself:
            with self._errors():
                read = await asyncio.to_thread(
                    lm.model_call, [message], generate=True, gen_kwargs=arguments
                )
            return self._read(read)
        body = lm._create_payload(  # noqa: SLF001  the body that its model_call sends
            lm.create_message([message]),
            generate=True,
            gen_kwargs=arguments,
            seed=lm._seed if request.seed is None else request.seed,  # noqa: SLF001
            eos=lm.eos_string if lm.tokenizer is not None else getattr(lm, "_eos_string", None),
        )
        if not body.get("stop", True):  # some servers reject an empty list
            del body["stop"]
        reply = self._read(await self._post(body))
        sent = body.get("temperature", request.temperature)
        return reply if sent == request.temperature else self._at_other_temperature(reply, sent)

    def _at_other_temperature(self, reply: Reply, temperature: object) -> Reply:
        """The reply, marked as one at another temperature: lm-eval sets it for some models."""
        if not self._has_notified:
            self._has_notified = True
            self._settings.notify(f"lm-eval asks {self._lm.model!r} at temperature {temperature}")
        return replace(reply, dropped_params=("temperature",))

    def _message(self, request: Request) -> Any:
        """The prompt in the form that lm-eval's class takes: messages, a text, or token ids.

        Raises:
            SetupError: the class or its tokenizer has no chat template.
        """
        lm, settings = self._lm, self._settings
        if settings.api == "completions":
            text: Any = as_document(request.prompt)
        else:
            if not (self._chat or (lm.tokenizer is not None and lm.tokenized_requests)):
                raise SetupError(
                    f"lm-eval's {self._kind} takes no messages: use "
                    f"{named('api', 'completions')}, or give it a"
                    f" tokenizer with a chat template ({named('model_args', 'tokenizer=…')})"
                )
            system = [{"role": "system", "content": settings.system}] if settings.system else []
            try:
                text = lm.apply_chat_template(
                    [*system, {"role": "user", "content": request.prompt}],
                    add_generation_prompt=True,
                )
            except Exception as error:  # any error of a tokenizer without a template
                raise SetupError(
                    f"lm-eval's {self._kind} has no chat template for this ({one_line(error)});"
                    f" use {named('api', 'completions')}"
                ) from error
        if not self._sends_tokens:
            return text
        return lm.tok_encode(text, add_special_tokens=lm.add_bos_token)

    @property
    def _sends_tokens(self) -> bool:
        """Whether prompts are sent as token ids, so that their number is known."""
        return bool(self._lm.tokenized_requests) and not self._chat

    async def _post(self, body: Mapping[str, Any]) -> Any:
        """Sends `body`; returns the reply's JSON. Raises a `ProviderError` and nothing else."""
        if self._client is None:
            self._client = Client(
                self._url,
                given=self._lm.header,
                verifies=bool(self._lm.verify_certificate),
                within_s=self._lm.timeout,
            )
        return await self._client.post("", body)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Raises errors of lm-eval's own request as errors of `providers.base`."""
        address = redact_address(self._url) if self._url else self._kind
        try:
            yield
        except OSError as error:
            status = getattr(getattr(error, "response", None), "status_code", None)
            if isinstance(status, int):  # of `requests`, whose errors are OSErrors
                response = error.response  # type: ignore[attr-defined]
                raise error_of(status, response.text, response.headers) from error
            if "Timeout" in type(error).__name__:
                raise ReplyTimeoutError(f"{address}: {one_line(error)}") from error
            raise BrokenConnectionError(f"no connection to {address}: {one_line(error)}") from error
        except (TypeError, UnicodeEncodeError) as error:  # a lone surrogate, for example
            raise BadRequestError(f"the prompt cannot be sent: {one_line(error)}") from error
        except Exception as error:  # any error of a vendor's SDK that lm-eval uses
            status = getattr(error, "status_code", None)
            if isinstance(status, int):
                raise error_of(status, str(error), {}) from error
            raise BadReplyError(f"lm-eval's {self._kind} failed with {one_line(error)}") from error

    def _read(self, read: Any) -> Reply:
        """The reply in `read`, JSON in the form of OpenAI, Anthropic or SGLang."""
        if isinstance(read, dict) and "choices" not in read and not read.get("error"):
            if isinstance(read.get("content"), list):
                return self._without_thinking(anthropic.reply_of(read))
            if isinstance(read.get("text"), str):
                read = _of_sglang(read)
        return self._without_thinking(reply_of(read))

    def _without_thinking(self, reply: Reply) -> Reply:
        """The reply with thinking moved out of its text, if the user gave `think_end_token`."""
        end = getattr(self._lm, "think_end_token", None)
        if not end or end not in reply.text:
            return reply
        thinking, _, text = reply.text.rpartition(end)
        return replace(reply, text=text.lstrip(), reasoning=reply.reasoning or thinking)

    def facts(self) -> dict[str, object]:
        """The window, only if prompts are sent as tokens: otherwise lm-eval does not use its value,
        which is a default and says nothing about the server.
        """
        return {"max_model_len": self._lm.max_length} if self._sends_tokens else {}

    def count_tokens(self, prompts: list[str]) -> list[int] | None:
        """Number of tokens of each prompt; `None` if only the server has the tokenizer."""
        if not self._sends_tokens:
            return None
        return [len(self._message(Request(prompt, 1))) for prompt in prompts]

    async def aclose(self) -> None:
        if self._client is not None:
            await self._client.aclose()


class LlamaServer:
    """lm-eval's `gguf`, a llama.cpp server, with the methods of lm-eval's other types for servers.

    The requests of lm-eval's own class have no limit of tokens, always the same temperature, and
    are sent up to three times.
    """

    tokenizer = None
    tokenized_requests = False
    verify_certificate = True
    timeout = 300
    header: Mapping[str, str] = {}
    model = "gguf"
    _seed = None

    def __init__(self, lm: Any) -> None:
        self.base_url = f"{str(lm.base_url).rstrip('/')}/v1/completions"

    def create_message(self, messages: list[str]) -> str:
        """The only prompt, as it is."""
        return messages[0]

    def _create_payload(
        self, messages: str, *, gen_kwargs: Mapping[str, Any], seed: int | None, **_: object
    ) -> dict[str, Any]:
        body = {
            "prompt": messages,
            "max_tokens": gen_kwargs["max_gen_toks"],
            "temperature": gen_kwargs["temperature"],
            "stop": gen_kwargs.get("until", []),
            "seed": seed,
            **NeutralFields(NEUTRAL).fields,
        }
        return {name: value for name, value in body.items() if value is not None}


def _takes_messages(lm: Any) -> bool:
    """Whether bodies of lm-eval's class have messages, as in the chat form."""
    probe = [{"role": "user", "content": "1"}]
    try:
        body = lm._create_payload(  # noqa: SLF001
            probe, generate=True, gen_kwargs={"max_gen_toks": 1, "temperature": 0.0}, seed=0
        )
    except Exception:  # noqa: BLE001  a class that takes texts may raise any error
        return False
    return "messages" in body


def _of_sglang(read: Mapping[str, Any]) -> dict[str, Any]:
    """A reply in SGLang's own form, converted to OpenAI's."""
    meta_info = read.get("meta_info")
    meta_info = meta_info if isinstance(meta_info, dict) else {}
    return {
        "choices": [{"text": read["text"], "finish_reason": meta_info.get("finish_reason")}],
        "usage": meta_info,
    }
