"""The vllm provider against local servers that answer as vLLM does."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import ExitStack
from typing import Any, TypeVar

import orjson
import pytest

from eyechart.providers import base
from eyechart.providers.base import ModelSettings, Reply, Request, SetupError, Usage
from eyechart.providers.catalog.endpoints import VLLM_NEUTRAL
from eyechart.providers.registry.model_name import parse_model
from eyechart.providers.registry.registry import open_model
from eyechart.providers.vllm.client import VllmProvider
from tests.fake_server import Asked, Response, chat, fake_server

KEY = "token-planted-0123456789"
Result = TypeVar("Result")


class Vllm:
    """A server that says of itself what it is told to."""

    def __init__(self, answer: Callable[[Asked, int], Response] | None = None, **facts: Any):
        self.facts = {"id": "m", "root": "/models/m", "max_model_len": 4096, **facts}
        self._answer = answer or (lambda _asked, _number: Response(body=chat("Final answer: 7")))

    def __call__(self, asked: Asked, number: int) -> Response:
        if asked.path == "/v1/models":
            shown = {name: value for name, value in self.facts.items() if name != "template"}
            return Response(body={"data": [shown]})
        if asked.path == "/version":
            return Response(body={"version": self.facts.get("version", "0.32.0")})
        if asked.path == "/tokenize":
            text = asked.body.get("prompt") or asked.body["messages"][-1]["content"]
            tokens = [*self.facts.get("template", b"<user>"), *text.encode()]
            return Response(body={"count": len(tokens), "tokens": tokens})
        return self._answer(asked, number)


def use(
    work: Callable[[VllmProvider], Awaitable[Result]],
    *servers: Callable[[Asked, int], Response],
    **settings: Any,
) -> tuple[Result, list[list[Asked]]]:
    """What `work` comes to with the provider of these servers, and what each was asked."""
    with ExitStack() as stack:
        running = [stack.enter_context(fake_server(server)) for server in servers]
        urls = tuple(server.base_url for server in running)

        async def main() -> Result:
            provider = open_model(
                parse_model("vllm/m"), ModelSettings("m", base_urls=urls, **settings)
            )
            assert isinstance(provider, VllmProvider)
            try:
                return await work(provider)
            finally:
                await provider.aclose()

        return asyncio.run(main()), [server.asked for server in running]


async def ask(provider: VllmProvider) -> Reply:
    return await provider.complete(Request("How many?\nRow A: 11", 40))


async def facts(provider: VllmProvider) -> Mapping[str, object]:
    return await provider.facts()


def test_an_ordinary_exchange(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is sent is what was asked for, with the key where one is set."""
    monkeypatch.setenv("VLLM_API_KEY", KEY)
    reply, ((asked,),) = use(ask, Vllm())
    expected = Reply("Final answer: 7", "stop", Usage(11, 3), "fake-model-1", sent=reply.sent)
    assert reply == expected
    assert asked.path == "/v1/chat/completions"
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert asked.body == {
        "model": "m",
        "messages": [{"role": "user", "content": "How many?\nRow A: 11"}],
        "max_tokens": 40,
        "temperature": 0.0,
        **{name: values[0] for name, values in VLLM_NEUTRAL.items()},
    }


def test_a_system_prompt_goes_first() -> None:
    """As a message of its own."""
    _, ((asked,),) = use(ask, Vllm(), system="Count well.")
    assert [message["role"] for message in asked.body["messages"]] == ["system", "user"]


def test_base_models_continue_a_text_and_are_stopped() -> None:
    """Plain completions: a prompt with a cue, stop sequences, probabilities as two lists."""

    def answer(_asked: Asked, _number: int) -> Response:
        choice = {
            "text": " 2",
            "finish_reason": "stop",
            "logprobs": {"tokens": [" 2"], "token_logprobs": [-0.25]},
        }
        return Response(body={"model": "m", "choices": [choice]})

    reply, ((asked,),) = use(ask, Vllm(answer), api="completions", logprobs=True)
    assert (reply.text, reply.logprobs) == (" 2", ((" 2", -0.25),))
    assert asked.path == "/v1/completions"
    assert asked.body["prompt"] == "How many?\nRow A: 11\nAnswer:"
    assert "\nRow" in asked.body["stop"]


@pytest.mark.parametrize(
    ("status", "said"),
    [(401, "; set VLLM_API_KEY$"), (404, "without /completions needs api='chat'$")],
)
def test_a_server_without_completions_or_access(
    monkeypatch: pytest.MonkeyPatch, status: int, said: str
) -> None:
    """The line ends with what helps."""
    monkeypatch.delenv("VLLM_API_KEY", raising=False)
    closed = Vllm(lambda _asked, _number: Response(status, {"error": {"message": "no"}}))
    with pytest.raises(base.StopRunError, match=said):
        use(ask, closed, api="completions")


def test_probabilities_of_a_chat() -> None:
    """Token by token."""
    body = chat("7")
    body["choices"][0]["logprobs"] = {"content": [{"token": "7", "logprob": -0.5, "bytes": [55]}]}
    reply, ((asked,),) = use(ask, Vllm(lambda _a, _n: Response(body=body)), logprobs=True)
    assert reply.logprobs == (("7", -0.5),)
    assert asked.body["logprobs"] is True


@pytest.mark.parametrize(
    ("response", "error"),
    [
        (Response(401, {"error": "Unauthorized"}), base.AuthError),
        (Response(404, {"error": {"message": "The model `m` does not exist."}}), base.StopRunError),
        (
            Response(400, {"error": {"message": "maximum context length is 64 tokens"}}),
            base.PromptOverflowError,
        ),
        (Response(400, {"error": {"message": "bad"}}), base.BadRequestError),
        (Response(429, {"error": {"message": "slow down"}}), base.RateLimitError),
        (Response(503, b"busy"), base.OverloadedError),
        (Response(200, b"{not json"), base.BadReplyError),
        (Response(200, {"choices": []}), base.BadReplyError),
        (Response(200, chat("7"), cut=True), base.BrokenConnectionError),
    ],
)
def test_faults_are_told_apart(
    response: Response, error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each comes out as its own error, and none shows the key."""
    monkeypatch.setenv("VLLM_API_KEY", KEY)
    response.headers = {"Retry-After": "3", "X-Key": KEY}
    with pytest.raises(error) as caught:
        use(ask, Vllm(lambda _asked, _number: response))
    assert KEY not in str(caught.value)
    if isinstance(caught.value, base.RateLimitError):
        assert caught.value.retry_after_s == 3


def test_no_server_is_a_broken_connection() -> None:
    """Or, before the run, a wrong set-up."""

    async def main() -> None:
        provider = VllmProvider(ModelSettings("m", base_urls=("http://127.0.0.1:1/v1",)))
        with pytest.raises(base.BrokenConnectionError, match=r"127\.0\.0\.1:1"):
            await ask(provider)
        with pytest.raises(SetupError, match="is it running"):
            await provider.facts()
        await provider.aclose()

    asyncio.run(main())


def test_a_prompt_that_is_no_text_costs_its_sample() -> None:
    """Half a character cannot be sent."""

    async def broken(provider: VllmProvider) -> Reply:
        return await provider.complete(Request("\ud83d", 40))

    with pytest.raises(base.BadRequestError):
        use(broken, Vllm())


def test_the_server_says_what_it_is() -> None:
    """Model, window, version, and what its template makes of a message."""
    found, _ = use(facts, Vllm())
    assert found["max_model_len"] == 4096
    assert found["version"] == "0.32.0"
    assert (found["model"], found["root"]) == ("m", "/models/m")
    other, _ = use(facts, Vllm(template=b"[INST]"))
    assert found["chat_template_sha256"] != other["chat_template_sha256"]


@pytest.mark.parametrize(
    ("servers", "said"),
    [
        ([Vllm(id="other")], "serves 'other', not 'm'"),
        ([Vllm(), Vllm(max_model_len=64)], "max_model_len"),
        ([Vllm(), Vllm(version="0.8.0")], "no replicas: version"),
        ([lambda _asked, _number: Response(body=[])], "no vLLM server"),
        ([lambda _asked, _number: Response(500, b"down")], "is it running"),
    ],
)
def test_a_wrong_server_is_said_at_once(
    servers: list[Callable[[Asked, int], Response]], said: str
) -> None:
    """Another model, replicas that are none, no vLLM."""
    with pytest.raises(SetupError, match=said):
        use(facts, *servers)


def test_what_a_server_says_of_itself_may_be_anything() -> None:
    """What is none of it is not known; all of it can be written down."""
    nested: list[Any] = []
    for _ in range(500):
        nested = [nested]
    odd = Vllm(max_model_len=2**70, root=nested, version={"x": nested}, template=b"")
    found, _ = use(facts, odd)
    assert (found["max_model_len"], found["root"], found["version"]) == (None, None, None)
    assert orjson.loads(orjson.dumps(found)) == found

    def tokenizing(asked: Asked, number: int) -> Response:
        tokens = Response(body={"count": "many", "tokens": nested})
        return tokens if asked.path == "/tokenize" else Vllm()(asked, number)

    found, _ = use(facts, tokenizing)
    assert found["chat_template_sha256"] is None
    counted, _ = use(lambda provider: provider.count_tokens(["1"]), tokenizing)
    assert counted is None


@pytest.mark.parametrize("data", [{"m": 1}, ["m"], [[]], [{"id": []}], [{"root": "m"}], "m", 5])
def test_a_list_of_models_that_is_none_is_said(data: object) -> None:
    """In one line, as where there is another server."""
    with pytest.raises(SetupError, match=r"no vLLM server|serves"):
        use(facts, lambda _asked, _number: Response(body={"data": data}))


def test_replicas_share_the_work() -> None:
    """Different prefixes go to different servers, equal ones to the same."""

    async def work(provider: VllmProvider) -> None:
        for _ in range(2):
            await asyncio.gather(
                *(provider.complete(Request(f"row {row}", 5, prefix=str(row))) for row in range(4))
            )

    _, (first, second) = use(work, Vllm(), Vllm())
    rows = [{one.body["messages"][0]["content"] for one in asked} for asked in (first, second)]
    assert len(first) == len(second) == 4
    assert not rows[0] & rows[1]


def test_tokens_are_counted_by_the_server() -> None:
    """With its template in a chat; nobody knows where it has no tokenizer to ask."""

    async def count(provider: VllmProvider) -> list[int] | None:
        return await provider.count_tokens(["12345", "1"])

    counted, _ = use(count, Vllm())
    assert counted == [11, 7]
    counted, _ = use(count, lambda _asked, _number: Response(404, {}))
    assert counted is None


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"model_args": ("--x",), "base_urls": ("http://127.0.0.1:1/v1",)}, "model_args"),
        ({"base_urls": ("127.0.0.1:1/v1",)}, "http://"),
        ({"base_urls": ("http://127.0.0.1:1/v1",), "api": "completions", "system": "x"}, "system"),
    ],
)
def test_settings_that_go_nowhere_are_refused(settings: dict[str, Any], said: str) -> None:
    """Before anything is asked."""
    with pytest.raises(SetupError, match=said):
        open_model(parse_model("vllm/m"), ModelSettings("m", **settings))
