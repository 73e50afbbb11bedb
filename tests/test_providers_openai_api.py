"""The openai provider against a local server."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from eyechart.providers import base
from eyechart.providers.base import (
    AuthError,
    BadReplyError,
    BadRequestError,
    BrokenConnectionError,
    ModelSettings,
    OverloadedError,
    PromptOverflowError,
    RateLimitError,
    Reply,
    ReplyTimeoutError,
    Request,
    ServerFaultError,
    SetupError,
    Usage,
)
from eyechart.providers.catalog.endpoints import NEUTRAL
from eyechart.providers.http import client
from eyechart.providers.openai import api
from eyechart.providers.openai.form import reply_of
from eyechart.providers.registry.model_name import parse_model
from eyechart.providers.registry.registry import open_batch_form, open_model
from tests.fake_server import Asked, FakeServer, Response, chat, fake_server

KEY = "sk-planted-0123456789"
USED = ("prompt_tokens", "completion_tokens", "total_tokens")


def ask(
    server: FakeServer,
    request: Request | None = None,
    *,
    model: str = "openai/gpt-4o",
    times: int = 1,
    notify: Callable[[str], None] = lambda _line: None,
    effort: str | None = None,
) -> list[Reply]:
    """Replies of `model` at `server`, one after another."""

    async def main() -> list[Reply]:
        urls = (server.base_url,)
        settings = ModelSettings(model, base_urls=urls, notify=notify, effort=effort)
        provider = open_model(parse_model(model), settings)
        try:
            wanted = request or Request("How many?", 40)
            return [await provider.complete(wanted) for _ in range(times)]
        finally:
            await provider.aclose()

    return asyncio.run(main())


def always(response: Response) -> Callable[[Asked, int], Response]:
    return lambda _asked, _number: response


@pytest.mark.parametrize("model", ["openai/m", "vllm/m", "anthropic/m"])
def test_a_reply_that_trickles_in_has_an_end(monkeypatch: pytest.MonkeyPatch, model: str) -> None:
    """The limit is for the whole of it, not for each piece."""
    monkeypatch.setattr(client, "TIMEOUT_S", 0.3)

    async def main() -> None:
        hung_up = asyncio.Event()

        async def trickle(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
            with contextlib.suppress(ConnectionError):
                while True:
                    writer.write(b" ")
                    await writer.drain()
                    await asyncio.sleep(0.05)
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()
            hung_up.set()

        server = await asyncio.start_server(trickle, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        settings = ModelSettings("m", base_urls=(f"http://127.0.0.1:{port}/v1",))
        provider = open_model(parse_model(model), settings)
        with pytest.raises(ReplyTimeoutError, match="no reply within"):
            await provider.complete(Request("How many?", 40))
        await provider.aclose()
        await hung_up.wait()
        server.close()
        await server.wait_closed()

    asyncio.run(main())


def test_a_key_across_the_cut_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys are taken out before a text is shortened."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    page = f"<html>{'x' * 70}{KEY}</html>".encode()
    with (
        fake_server(always(Response(body=page))) as server,
        pytest.raises(BadReplyError) as raised,
    ):
        ask(server)
    assert "sk-pl" not in str(raised.value)


def test_an_ordinary_exchange(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is sent is what was asked for, and the reply comes back whole."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with fake_server(always(Response(body=chat("Final answer: 7")))) as server:
        (reply,) = ask(server)
    expected = Reply("Final answer: 7", "stop", Usage(11, 3), "fake-model-1", sent=reply.sent)
    assert reply == expected
    (asked,) = server.asked
    assert asked.path == "/v1/chat/completions"
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert asked.body == {
        "model": "gpt-4o",
        "messages": [{"role": "user", "content": "How many?"}],
        "max_tokens": 40,
        "temperature": 0.0,
        **{name: values[0] for name, values in NEUTRAL.items()},
    }


@pytest.mark.parametrize(
    ("body", "reply"),
    [
        (chat(None, "length"), Reply("", "length", Usage(11, 3), "fake-model-1")),
        (chat("1 1 1", "repetition"), Reply("1 1 1", "length", Usage(11, 3), "fake-model-1")),
        (
            chat(None, "RECITATION"),
            Reply("", "content_filter", Usage(11, 3), "fake-model-1", finish_word="RECITATION"),
        ),
        (
            {"choices": [{"finish_reason": "SAFETY"}]},
            Reply("", "content_filter", finish_word="SAFETY"),
        ),
        (chat(None, refusal="No."), Reply("", "stop", Usage(11, 3), "fake-model-1", "No.")),
        (
            chat("7", reasoning_content="hm"),
            Reply("7", "stop", Usage(11, 3), "fake-model-1", None, "hm"),
        ),
        (
            {"choices": [{"finish_reason": "length"}], "usage": {}},
            Reply("", "length"),
        ),
        (
            {"choices": [{"message": {"content": [{"type": "text", "text": "7"}]}}]},
            Reply("7", None),
        ),
        (chat("7", "tool_calls"), Reply("7", "other", Usage(11, 3), "fake-model-1")),
        (  # thinking is paid for, and counted in the total alone
            chat("7") | {"usage": dict(zip(USED, (32, 9, 1041), strict=True))},
            Reply("7", "stop", Usage(32, 1009, thought_tokens=1000), "fake-model-1"),
        ),
        (
            chat("7") | {"usage": dict(zip(USED, (32, 1009, 1041), strict=True))},
            Reply("7", "stop", Usage(32, 1009), "fake-model-1"),
        ),
        (  # more than 64 bits
            chat("7") | {"usage": dict(zip(USED, (32, 2**70, 41), strict=True))},
            Reply("7", "stop", Usage(32, 2**70), "fake-model-1"),
        ),
    ],
)
def test_unusual_replies_are_kept_as_they_are(body: object, reply: Reply) -> None:
    """Cut off, filtered, refused, with reasoning, in parts: nothing becomes an empty answer."""
    with fake_server(always(Response(body=body))) as server:
        assert [replace(one, sent=None) for one in ask(server)] == [reply]


@pytest.mark.parametrize(
    ("response", "kind"),
    [
        (Response(401, {"error": {"message": f"Incorrect API key: {KEY}"}}), AuthError),
        (Response(500, b"oops"), ServerFaultError),
        (Response(503, b"busy"), OverloadedError),
        (Response(500, b"busy", {"Retry-After": "1"}), OverloadedError),
        (Response(200, {"error": {"code": 429, "message": "slow down"}}), RateLimitError),
        (Response(200, {"error": "no good"}), BadReplyError),
        (
            Response(200, {"choices": [{"finish_reason": "error", "error": {"code": 502}}]}),
            ServerFaultError,
        ),
        (Response(200, {"choices": [{"finish_reason": "error", "message": {}}]}), ServerFaultError),
        (Response(body=chat("The row has", "insufficient_system_resource")), OverloadedError),
        (
            Response(
                200, {"choices": [{"finish_reason": "stop", "native_finish_reason": "abort"}]}
            ),
            ServerFaultError,
        ),
        (Response(429, {"error": {"message": "slow down"}}), base.RateLimitError),
        (Response(404, {"error": {"message": "no such model"}}), base.UnknownModelError),
        (Response(400, {"error": {"message": "maximum context length"}}), PromptOverflowError),
        (Response(400, {"error": {"message": "bad"}}), base.BadRequestError),
        (Response(200, b"{not json"), BadReplyError),
        (Response(200, {"choices": []}), BadReplyError),
        (Response(200, [1]), BadReplyError),
        (Response(200, {"choices": [{}]}), BadReplyError),
        (Response(200, chat(7)), BadReplyError),  # type: ignore[arg-type]
        (Response(200, chat({"text": "7"})), BadReplyError),  # type: ignore[arg-type]
        (Response(200, chat("x" * 4000), cut=True), BrokenConnectionError),
    ],
)
def test_faults_are_told_apart(
    monkeypatch: pytest.MonkeyPatch, response: Response, kind: type[Exception]
) -> None:
    """Each fault of a real server is the error that has its consequence, and no key is shown."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with fake_server(always(response)) as server, pytest.raises(kind) as raised:
        ask(server)
    assert type(raised.value) is kind
    assert KEY not in str(raised.value)
    unclear = kind is BadRequestError  # it may be about what makes sampling neutral
    assert sum(bool(one.body) for one in server.asked) == 1 + unclear, "the client must not retry"


def test_no_server_is_a_broken_connection() -> None:
    """A closed port is a transient error that names the address."""
    with fake_server(always(Response())) as server:
        pass
    with pytest.raises(BrokenConnectionError, match=r"127\.0\.0\.1"):
        ask(server)


def test_a_rejected_parameter_is_dropped_once_and_for_all() -> None:
    """The server names what it does not take; it is not sent again, and the user is told once."""

    def answer(asked: Asked, _number: int) -> Response:
        if "temperature" in asked.body:
            said = {"message": "Unsupported parameter: 'temperature'", "param": "temperature"}
            return Response(400, {"error": said})
        return Response(body=chat("7"))

    told: list[str] = []
    with fake_server(answer) as server:
        replies = ask(server, times=3, notify=told.append)
    assert [reply.text for reply in replies] == ["7"] * 3
    assert len(server.asked) == 4
    assert len(told) == 1
    assert "'temperature'" in told[0]


def test_a_refusal_that_a_router_forwards_is_one() -> None:
    """With status 200, and the server's own in the body."""
    said = {"code": 400, "message": "`temperature` is deprecated for this model."}
    with fake_server(refusing(Response(200, {"error": said}), "temperature")) as server:
        assert [reply.dropped_params for reply in ask(server)] == [("temperature",)]


def refusing(error: Response, *names: str) -> Callable[[Asked, int], Response]:
    """A server that answers with `error` whatever has one of `names`."""

    def answer(asked: Asked, _number: int) -> Response:
        return error if set(names) & set(asked.body) else Response(body=chat("7"))

    return answer


@pytest.mark.parametrize(
    ("error", "name"),
    [
        (
            Response(400, {"error": {"message": "Unknown parameter: 'seed'.", "param": "seed"}}),
            "seed",
        ),
        (
            Response(
                422, {"detail": [{"type": "extra_forbidden", "loc": ["body", "temperature"]}]}
            ),
            "temperature",
        ),
        (Response(400, {"error": {"message": "'logprobs' is not supported"}}), "logprobs"),
    ],
)
def test_what_was_left_out_is_said_with_each_reply(error: Response, name: str) -> None:
    """So that the journal knows what its replies were asked without."""
    with fake_server(refusing(error, name)) as server:

        async def main() -> Reply:
            settings = ModelSettings("m", base_urls=(server.base_url,), logprobs=True)
            provider = open_model(parse_model("m"), settings)
            try:
                return await provider.complete(Request("How many?", 40, seed=1))
            finally:
                await provider.aclose()

        assert asyncio.run(main()).dropped_params == (name,)


def test_the_limit_of_a_reply_is_renamed_and_never_dropped() -> None:
    """Without it there would be no limit to the cost."""
    wanted = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
    error = Response(400, {"error": {"message": wanted, "param": "max_tokens"}})
    with fake_server(refusing(error, "max_tokens")) as server:
        ask(server)
        assert server.asked[-1].body["max_completion_tokens"] == 40
    too_many = "'max_tokens' is too large: 5000. This model's maximum context length is 4096"
    for said in (too_many, "Unsupported parameter: 'max_tokens'"):
        error = Response(400, {"error": {"message": said, "param": "max_tokens"}})
        with fake_server(always(error)) as server:
            with pytest.raises(base.SampleError):
                ask(server)
            assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("model", "tier", "sent"),
    [
        ("openai/gpt-6-sol", None, {"prompt_cache_options": {"mode": "explicit"}}),
        (
            "openai/gpt-6-sol",
            "flex",
            {"prompt_cache_options": {"mode": "explicit"}, "service_tier": "flex"},
        ),
        ("openai/gpt-4o", "default", {"service_tier": "default"}),
        ("openai/gpt-4o", None, {}),
        ("groq/llama-3.3-70b-versatile", "default", {"service_tier": "on_demand"}),
        ("gemini/gemini-3.8-flash", "default", {}),
        ("gemini/gemini-3.8-flash", "flex", {"service_tier": "flex"}),
    ],
)
def test_tiers_and_caches_in_the_vendors_words(
    model: str, tier: str | None, sent: dict[str, object]
) -> None:
    """No prompt is written to a cache that costs more; the same in a batch."""
    name = parse_model(model)
    batch_form = open_batch_form(name, ModelSettings(name.model, tier=tier))
    body = batch_form.body(Request("How many?", 40))
    fields = ("prompt_cache_options", "service_tier")
    assert {field: body[field] for field in fields if field in body} == sent


def test_a_tier_that_the_model_lacks_stops_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is never left out, because the replies would cost more."""
    said = "Invalid service_tier argument: flex is not available for this model"
    error = Response(400, {"error": {"message": said, "param": "service_tier"}})
    own, good = tmp_path / "endpoints.yaml", Response(body=chat("7"))
    with fake_server(lambda asked, _: error if "service_tier" in asked.body else good) as it:
        own.write_text(f"lab: {{base_url: '{it.base_url}', tiers: {{flex: flex, default: null}}}}")
        monkeypatch.setenv("EYECHART_ENDPOINTS", str(own))

        async def main(tier: str) -> Reply:
            provider = open_model(parse_model("lab/m"), ModelSettings("m", tier=tier))
            try:
                return await provider.complete(Request("How many?", 40))
            finally:
                await provider.aclose()

        with pytest.raises(SetupError, match="m has no tier 'flex'; leave out tier"):
            asyncio.run(main("flex"))
        usage = asyncio.run(main("default")).usage
        assert usage is not None
        assert usage.tier == "default"


@pytest.mark.parametrize("key", ["bad\nkey-0123456789", "schlüssel-0123456789"])
@pytest.mark.parametrize(
    ("model", "variable"),
    [
        ("openai/m", "OPENAI_API_KEY"),
        ("anthropic/m", "ANTHROPIC_API_KEY"),
        ("vllm/m", "VLLM_API_KEY"),
    ],
)
def test_a_key_that_is_none_is_said_at_once_and_not_shown(
    key: str, model: str, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Instead of as a broken connection of each sample."""
    monkeypatch.setenv(variable, key)
    urls = ("http://127.0.0.1:1/v1",) if model == "vllm/m" else ()
    with pytest.raises(SetupError, match=variable) as caught:
        open_model(parse_model(model), ModelSettings("m", base_urls=urls))
    assert "0123456789" not in str(caught.value)


def test_only_a_text_to_continue_surely_stopped() -> None:
    """A stop sequence may have ended it at its most tokens."""
    text = {"choices": [{"text": " 7", "finish_reason": "stop"}]}
    assert [reply_of(body).sure_stop for body in (text, chat("7"))] == [True, False]


def test_half_a_character_does_not_spoil_a_reply() -> None:
    """A model may be cut off within one."""
    content = b'{"choices": [{"message": {"content": "\\ud83d 7"}, "finish_reason": {"odd": 1}}]}'
    with fake_server(always(Response(body=content))) as server:
        (reply,) = ask(server)
    assert reply.text.endswith(" 7")
    assert reply.finish_reason == "other"


def test_an_effort_that_was_asked_for_is_never_left_out() -> None:
    """A model of any name gets it; a server that refuses it is an error."""
    with fake_server(always(Response(body=chat("7")))) as server:
        ask(server, model="openai/mine", effort="low")
    assert server.asked[0].body["reasoning_effort"] == "low"
    said = {"message": "Unsupported parameter: 'reasoning_effort'", "param": "reasoning_effort"}
    refusing_server = fake_server(always(Response(400, {"error": said})))
    with refusing_server as server, pytest.raises(BadRequestError, match="reasoning_effort"):
        ask(server, model="openai/mine", effort="low")
    assert len(server.asked) == 1


def test_openai_itself_gets_its_own_parameter_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the vendor's address its entry in endpoints.yaml counts; at one's own it does not."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    settings = ModelSettings("gpt-4o", provider="openai")
    provider = api.open_provider(settings)
    sent = provider._form.body(Request("x", 9, seed=3))
    assert sent.pop("messages") == [{"role": "user", "content": "x"}]
    assert sent == {"max_completion_tokens": 9, "temperature": 0.0, "seed": 3}
    asyncio.run(provider.aclose())


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("ALL_PROXY", "socks5://127.0.0.1:1", "proxy socks5://127.0.0.1:1 of ALL_PROXY is no HTTP"),
        ("HTTPS_PROXY", "foo://127.0.0.1:1", "is no HTTP proxy"),
        ("SSL_CERT_FILE", "/nowhere", "No such file"),
    ],
)
@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_an_environment_that_no_client_bears(
    provider: str, variable: str, value: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is read before anything is asked; one line says where to look."""
    monkeypatch.setenv(f"{provider.upper()}_API_KEY", KEY)
    monkeypatch.setenv(variable, value)
    name = parse_model(f"{provider}/m")
    with pytest.raises(SetupError, match=rf"no client for https.*{said}.*SSL_CERT_FILE") as wrong:
        open_model(name, ModelSettings("m", provider))
    assert "\n" not in str(wrong.value)


def test_a_missing_key_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the variable to set and the model that needs none."""
    monkeypatch.delenv("GROQ_API_KEY", raising=False)
    with pytest.raises(SetupError, match=r"GROQ_API_KEY.*tiny"):
        open_model(parse_model("groq/some-model"))
