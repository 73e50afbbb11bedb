"""Models of lm-eval's that ask a server: its way to write a request, our way to read the reply.

lm-eval keeps of a reply its text only, and makes an empty one of whatever has none. So the request
is built by lm-eval's class, sent from here, and the JSON read as every other provider's is: the
finish reason, the refusal and the tokens survive. Nothing is tried again here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import aiohttp

from providers import anthropic
from providers.base import (
    BadReplyError,
    BadRequestError,
    BrokenConnectionError,
    ModelSettings,
    PromptOverflowError,
    ProviderError,
    Reply,
    ReplyTimeoutError,
    Request,
    SetupError,
)
from providers.documents import as_document, stops
from providers.http.bodies import ACCEPTED, OK, read_body
from providers.http.errors import error_of
from providers.lm_eval.args import is_secret
from providers.lm_eval.loading import one_line
from providers.openai.form import read_json, reply_of
from providers.secrets import keep_secret, redact_address


class ApiModel:
    """One model behind one address. Any number of requests at once."""

    def __init__(self, lm: Any, kind: str, settings: ModelSettings, over_http: type) -> None:
        self._lm = lm
        self._kind = kind
        self._settings = settings
        self._chat = _takes_messages(lm)
        theirs = getattr(over_http, "model_call", None)
        self._own = getattr(type(lm), "model_call", None) is not theirs
        """It sends its requests itself."""
        self._url = str(lm.base_url or "")
        self._session: aiohttp.ClientSession | None = None
        self._told = False
        if settings.api == "completions" and self._chat:
            raise SetupError(
                f"lm-eval's {kind} has the chat form only: leave out --api completions"
            )
        if not self._own:
            self._check_address()
        self._message(Request("1", 1))  # a missing template is said now

    def _check_address(self) -> None:
        if not self._url.startswith(("http://", "https://")):
            raise SetupError(
                f"lm-eval's {self._kind} needs an address: --model-arg base_url=http://…/v1/"
                f"{'chat/completions' if self._chat else 'completions'}"
            )
        try:
            headers = dict(self._lm.header)
        except Exception as error:  # a property of theirs; it raises where its key is missing
            raise SetupError(f"lm-eval's {self._kind}: {one_line(error)}") from error
        for name, value in headers.items():
            if is_secret(name):
                keep_secret(str(value))

    async def complete(self, request: Request) -> Reply:
        """The model's reply; raises a `ProviderError` and nothing else."""
        message, lm = self._message(request), self._lm
        if self._sends_tokens and len(message) + request.max_tokens > lm.max_length:
            raise PromptOverflowError(
                f"the prompt has {len(message)} tokens, and {lm.max_length} are to take them and"
                f" {request.max_tokens} of reply; has it more? --model-arg max_length=N"
            )
        wanted: dict[str, Any] = {
            "max_gen_toks": request.max_tokens,
            "temperature": request.temperature,
            "do_sample": request.temperature > 0,
        }
        if self._settings.api == "completions":
            wanted["until"] = stops(request.prompt)
        if self._own:
            with self._errors():
                read = await asyncio.to_thread(
                    lm.model_call, [message], generate=True, gen_kwargs=wanted
                )
            return self._read(read)
        body = lm._create_payload(  # noqa: SLF001  what its model_call sends
            lm.create_message([message]),
            generate=True,
            gen_kwargs=wanted,
            seed=lm._seed if request.seed is None else request.seed,  # noqa: SLF001
            eos=lm.eos_string if lm.tokenizer is not None else getattr(lm, "_eos_string", None),
        )
        if not body.get("stop", True):  # some servers want one at least
            del body["stop"]
        reply = self._read(await self._post(body))
        asked = body.get("temperature", request.temperature)
        return reply if asked == request.temperature else self._warmer(reply, asked)

    def _warmer(self, reply: Reply, asked: object) -> Reply:
        """lm-eval asks some models at a temperature of its own; the record says so."""
        if not self._told:
            self._told = True
            self._settings.notify(f"lm-eval asks {self._lm.model!r} at temperature {asked}")
        return replace(reply, dropped_params=("temperature",))

    def _message(self, request: Request) -> Any:
        """The prompt in whatever form the model's class wants it."""
        lm, settings = self._lm, self._settings
        if settings.api == "completions":
            text: Any = as_document(request.prompt)
        else:
            if not (self._chat or (lm.tokenizer is not None and lm.tokenized_requests)):
                raise SetupError(
                    f"lm-eval's {self._kind} takes texts: use --api completions, or give it a"
                    " tokenizer with a chat template (--model-arg tokenizer=…)"
                )
            system = [{"role": "system", "content": settings.system}] if settings.system else []
            try:
                text = lm.apply_chat_template(
                    [*system, {"role": "user", "content": request.prompt}],
                    add_generation_prompt=True,
                )
            except Exception as error:  # the tokenizer's own, where it has no template
                raise SetupError(
                    f"lm-eval's {self._kind} has no chat template for this ({one_line(error)});"
                    " use --api completions"
                ) from error
        if not self._sends_tokens:
            return text
        return lm.tok_encode(text, add_special_tokens=lm.add_bos_token)

    @property
    def _sends_tokens(self) -> bool:
        return bool(self._lm.tokenized_requests) and not self._chat

    async def _post(self, body: Mapping[str, Any]) -> Any:
        session = self._session or self._open()
        with self._errors():
            async with session.post(
                self._url,
                json=body,
                headers={**self._lm.header, "Accept-Encoding": ACCEPTED},
                ssl=bool(self._lm.verify_certificate),
                allow_redirects=False,
            ) as response:
                content = await read_body(response)
        if response.status != OK:
            raise error_of(response.status, content.decode(errors="replace"), response.headers)
        return read_json(content)

    def _open(self) -> aiohttp.ClientSession:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=self._lm.timeout),
            trust_env=True,
            auto_decompress=False,
        )
        return self._session

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """The client's errors as ours, and those of a class that sends for itself."""
        where = redact_address(self._url) if self._url else self._kind
        try:
            yield
        except ProviderError:
            raise
        except TimeoutError as error:
            raise ReplyTimeoutError(f"{where}: no reply within {self._lm.timeout} s") from error
        except (aiohttp.ClientError, OSError) as error:
            status = getattr(getattr(error, "response", None), "status_code", None)
            if isinstance(status, int):  # of requests, whose errors are OSErrors
                response = error.response  # type: ignore[union-attr]
                raise error_of(status, response.text, response.headers) from error
            if "Timeout" in type(error).__name__:
                raise ReplyTimeoutError(f"{where}: {one_line(error)}") from error
            raise BrokenConnectionError(f"no connection to {where}: {one_line(error)}") from error
        except (TypeError, UnicodeEncodeError) as error:  # half a character
            raise BadRequestError(f"the prompt cannot be sent: {one_line(error)}") from error
        except Exception as error:  # of a vendor's SDK that lm-eval calls
            status = getattr(error, "status_code", None)
            if isinstance(status, int):
                raise error_of(status, str(error), {}) from error
            raise BadReplyError(f"lm-eval's {self._kind} failed with {one_line(error)}") from error

    def _read(self, read: Any) -> Reply:
        """A reply's JSON, in the form of OpenAI, Anthropic or SGLang."""
        if isinstance(read, dict) and "choices" not in read and not read.get("error"):
            if isinstance(read.get("content"), list):
                return self._answered(anthropic.reply_of(read))
            if isinstance(read.get("text"), str):
                read = _of_sglang(read)
        return self._answered(reply_of(read))

    def _answered(self, reply: Reply) -> Reply:
        """The reply without its thinking, where the user says what ends that."""
        end = getattr(self._lm, "think_end_token", None)
        if not end or end not in reply.text:
            return reply
        thoughts, _, said = reply.text.rpartition(end)
        return replace(reply, text=said.lstrip(), reasoning=reply.reasoning or thoughts)

    def facts(self) -> dict[str, object]:
        """The window only where lm-eval keeps to it: its default is no fact about the server."""
        return {"max_model_len": self._lm.max_length} if self._sends_tokens else {}

    def count_tokens(self, prompts: list[str]) -> list[int] | None:
        """Only the server knows, unless it is sent tokens."""
        if not self._sends_tokens:
            return None
        return [len(self._message(Request(prompt, 1))) for prompt in prompts]

    async def aclose(self) -> None:
        if self._session is not None:
            await self._session.close()


class LlamaServer:
    """lm-eval's `gguf`, a llama.cpp server, in the form of its other types that ask one.

    Its own requests have no limit of tokens, one temperature, and are tried three times.
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
        }
        return {name: value for name, value in body.items() if value is not None}


def _takes_messages(lm: Any) -> bool:
    """Whether the class puts messages into a body as they are."""
    probe = [{"role": "user", "content": "1"}]
    try:
        body = lm._create_payload(  # noqa: SLF001
            probe, generate=True, gen_kwargs={"max_gen_toks": 1, "temperature": 0.0}, seed=0
        )
    except Exception:  # noqa: BLE001  a class that takes texts may fail in any way
        return False
    return "messages" in body


def _of_sglang(read: Mapping[str, Any]) -> dict[str, Any]:
    """SGLang's own form as OpenAI's."""
    about = read.get("meta_info")
    about = about if isinstance(about, dict) else {}
    finish = about.get("finish_reason")
    return {
        "choices": [
            {
                "text": read["text"],
                "finish_reason": finish.get("type") if isinstance(finish, dict) else None,
            }
        ],
        "usage": about,
    }
