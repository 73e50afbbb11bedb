"""The anthropic provider against a local server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from eyechart.providers import base
from eyechart.providers.anthropic import AnthropicProvider, open_provider
from eyechart.providers.anthropic_descriptor import ANTHROPIC
from eyechart.providers.base import (
    AuthError,
    BadReplyError,
    BadRequestError,
    BrokenConnectionError,
    ModelSettings,
    OverloadedError,
    PromptOverflowError,
    RefusedError,
    Reply,
    Request,
    ServerFaultError,
    SetupError,
    StopRunError,
    UnknownModelError,
    Usage,
)
from eyechart.providers.catalog import model_facts
from tests.fake_server import Asked, FakeServer, Response, fake_server

KEY = "sk-ant-planted-0123456789"
USAGE = {"input_tokens": 11, "output_tokens": 3}
SEEN = Usage(11, 3, 0, 0)
NAME = "claude-haiku-4-5-20251001"


@pytest.fixture(autouse=True)
def _bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is set but the key."""
    monkeypatch.delenv("ANTHROPIC_BASE_URL", raising=False)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)


def message(*content: object, stop: str | None = "end_turn", **more: object) -> dict[str, Any]:
    """The body of an ordinary reply; a text stands for its block."""
    blocks = [{"type": "text", "text": one} if isinstance(one, str) else one for one in content]
    told = {"type": "message", "role": "assistant", "model": NAME, "usage": USAGE}
    return {**told, "content": blocks, "stop_reason": stop, **more}


def fault(status: int, kind: str, said: str, **headers: str) -> Response:
    """An error in the vendor's form."""
    return Response(status, {"type": "error", "error": {"type": kind, "message": said}}, headers)


def rejected(said: str) -> Response:
    return fault(400, "invalid_request_error", said)


def always(response: Response) -> Callable[[Asked, int], Response]:
    return lambda _asked, _number: response


def ask(
    server: FakeServer,
    settings: ModelSettings | None = None,
    *,
    times: int = 1,
    tokens: int = 40,
    think: int = 0,
    temperature: float | None = 0.0,
) -> list[Reply]:
    """Replies at `server`, one after another."""
    request = Request("How many?", tokens, temperature, think_tokens=think)

    async def main() -> list[Reply]:
        provider = open_provider(settings or own(server))
        try:
            return [await provider.complete(request) for _ in range(times)]
        finally:
            await provider.aclose()

    return asyncio.run(main())


def own(server: FakeServer, model: str = "claude-haiku-4-5", **settings: Any) -> ModelSettings:
    """Settings that point to `server` as an address of the user's own."""
    return ModelSettings(model, provider="anthropic", base_urls=(server.base_url,), **settings)


@pytest.fixture
def thinker(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """A model that has an entry as one that thinks."""
    file = tmp_path / "models.yaml"
    file.write_text("anthropic/thinker: {reasoning: true, think_tokens: 2000, effort: low}\n")
    monkeypatch.setenv(model_facts.USER_FILE, str(file))
    return "thinker"


def test_an_ordinary_exchange(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is sent is what was asked for, with the key, and the reply comes back whole."""
    with fake_server(always(Response(body=message("Final answer: 7")))) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.base_url)
        (reply,) = ask(server, ModelSettings("claude-haiku-4-5", system="Be brief."))
    assert reply == Reply("Final answer: 7", "stop", SEEN, NAME, sent=reply.sent, sure_stop=True)
    (asked,) = server.asked
    assert asked.path == "/v1/messages"
    assert KEY in " ".join(asked.headers.values())
    assert asked.body == {
        "model": "claude-haiku-4-5",
        "messages": [{"role": "user", "content": "How many?"}],
        "system": "Be brief.",
        "max_tokens": 40,
        "temperature": 0.0,
    }


@pytest.mark.parametrize("ending", ["", "/", "/v1", "/v1/"])
def test_an_address_of_ones_own_gets_no_secret(
    monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    """With or without /v1, it needs no key, and gets none."""
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")
    with fake_server(always(Response(body=message("7")))) as server:
        url = server.base_url.removesuffix("/v1") + ending
        ask(server, ModelSettings("m", base_urls=(url,)))
        monkeypatch.delenv("ANTHROPIC_API_KEY")
        ask(server, ModelSettings("m", base_urls=(url,)))
    assert [asked.path for asked in server.asked] == ["/v1/messages"] * 2
    for asked in server.asked:
        assert KEY not in str(asked.headers)


THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "s"}
CACHED = {"cache_creation_input_tokens": 100, "cache_read_input_tokens": 1000}


@pytest.mark.parametrize(
    ("body", "reply"),
    [
        (message("7", stop="stop_sequence"), Reply("7", "stop", SEEN, NAME)),
        (message(stop="max_tokens"), Reply("", "length", SEEN, NAME)),
        (message("7", stop="model_context_window_exceeded"), Reply("7", "length", SEEN, NAME)),
        (
            message(stop="refusal", stop_details={"type": "refusal", "explanation": "No."}),
            Reply("", "content_filter", SEEN, NAME, "No.", finish_word="refusal"),
        ),
        (message("7", stop="pause_turn"), Reply("7", "other", SEEN, NAME)),
        (message("7", stop=None), Reply("7", None, SEEN, NAME)),
        (
            message(THOUGHT, {"type": "redacted_thinking", "data": "x"}, "7", " eggs", 3),
            Reply("7 eggs", "stop", SEEN, NAME, None, "hm"),
        ),
        (message("7", usage=USAGE | CACHED), Reply("7", "stop", Usage(1111, 3, 1000, 100), NAME)),
        (
            message("7", usage=USAGE | dict.fromkeys(CACHED)),
            Reply("7", "stop", SEEN, NAME),
        ),
        (message("7", usage={"input_tokens": 11}), Reply("7", "stop", None, NAME)),
        ({"content": []}, Reply("", None)),
    ],
)
def test_unusual_replies_are_kept_as_they_are(body: object, reply: Reply) -> None:
    """Cut off, refused, with thoughts, in blocks, from a cache: each is told as it was."""
    with fake_server(always(Response(body=body))) as server:
        assert [replace(one, sent=None, sure_stop=False) for one in ask(server)] == [reply]


@pytest.mark.parametrize(
    ("response", "kind"),
    [
        (fault(401, "authentication_error", f"invalid x-api-key {KEY}"), AuthError),
        (fault(403, "permission_error", f"{KEY} may not"), AuthError),
        (fault(404, "not_found_error", "model: claude-9"), UnknownModelError),
        (fault(413, "request_too_large", "Request exceeds the size"), PromptOverflowError),
        (fault(429, "rate_limit_error", "slow down"), base.RateLimitError),
        (fault(500, "api_error", f"oops {KEY}"), ServerFaultError),
        (fault(529, "overloaded_error", "Overloaded"), OverloadedError),
        (rejected("prompt is too long: 201000 tokens > 200000 maximum"), PromptOverflowError),
        (rejected("Your credit balance is too low"), StopRunError),
        (rejected("Output blocked by content filtering policy"), RefusedError),
        (rejected(f"temperature: must be at most 1 {KEY}"), BadRequestError),
        (Response(400, b"oops"), BadRequestError),
        (Response(200, b"{not json"), BadReplyError),
        (Response(200, b""), BadReplyError),
        (Response(200, [1]), BadReplyError),
        (Response(200, {"type": "error", "error": {"message": "x"}}), BadReplyError),
        (Response(200, message("x" * 4000), cut=True), BrokenConnectionError),
    ],
)
def test_faults_are_told_apart(
    monkeypatch: pytest.MonkeyPatch, response: Response, kind: type[Exception]
) -> None:
    """Each fault of a real server is the error that has its consequence, and no key is shown."""
    with fake_server(always(response)) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.base_url)
        with pytest.raises(kind) as raised:
            ask(server, ModelSettings("claude-haiku-4-5"))
    assert type(raised.value) is kind
    assert KEY not in str(raised.value)
    assert len(server.asked) == 1, "the client must not ask again by itself"


def test_a_prompt_that_is_no_text_costs_its_own_sample() -> None:
    """Half a character, as a broken argument of the command leaves it, cannot be sent."""
    with fake_server(always(Response())) as server, pytest.raises(BadRequestError):
        ask(server, own(server, system="\ud800"))
    assert server.asked == []


def test_the_wait_that_the_server_asks_for_is_kept() -> None:
    """A 429's `Retry-After` reaches the runner."""
    slow = Response(429, {}, {"Retry-After": "7"})
    with fake_server(always(slow)) as server, pytest.raises(base.RateLimitError) as raised:
        ask(server)
    assert raised.value.retry_after_s == 7


def test_no_server_is_a_broken_connection() -> None:
    """A closed port is a transient error that names the address, without what stands before @."""
    with fake_server(always(Response())) as server:
        pass
    url = server.base_url.replace("://", "://user:secret@")
    with pytest.raises(BrokenConnectionError, match=r"127\.0\.0\.1") as raised:
        ask(server, ModelSettings("m", base_urls=(url,)))
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    "said",
    [
        "`temperature` is deprecated for this model.",
        "temperature: Extra inputs are not permitted",
        "`temperature` may only be set to 1 when thinking is enabled.",
        "this model does not support the parameter temperature",
        "`temperature` and `top_p` cannot both be specified for this model.",
    ],
)
def test_a_rejected_parameter_is_dropped_once_and_for_all(said: str) -> None:
    """The server names what it does not take; it is not sent again, and the user is told once."""

    def answer(asked: Asked, _number: int) -> Response:
        return rejected(said) if "temperature" in asked.body else Response(body=message("7"))

    told: list[str] = []
    with fake_server(answer) as server:
        replies = ask(server, own(server, notify=told.append), times=3)
    assert [reply.text for reply in replies] == ["7"] * 3
    assert len(server.asked) == 4
    assert told == ["claude-haiku-4-5 does not take 'temperature'; it is asked without"]
    assert [reply.dropped_params for reply in replies] == [("temperature",)] * 3


def test_a_temperature_out_of_range_names_what_helps() -> None:
    """It is the user's, so it is not left out."""
    with (
        fake_server(always(rejected("temperature: range: 0..1"))) as server,
        pytest.raises(BadRequestError, match=r"0\.\.1; with the temperature 'none'"),
    ):
        ask(server, own(server, temperature=3.0))
    assert len(server.asked) == 1


def test_a_reply_to_a_whole_request_has_no_dropped_parameter() -> None:
    """The record says only what was left out."""
    with fake_server(always(Response(body=message("7")))) as server:
        (reply,) = ask(server, own(server))
    assert server.asked[0].body["temperature"] == 0.0
    assert reply.dropped_params == ()


def test_thinking_models_are_asked_their_way(thinker: str) -> None:
    """By their entry in models.yaml: no temperature, and room to think on top of the reply's."""
    with fake_server(always(Response(body=message(THOUGHT, "7")))) as server:
        (reply,) = ask(server, own(server, thinker), tokens=102_000, think=2000, temperature=None)
    assert (reply.text, reply.reasoning) == ("7", "hm")
    body = server.asked[0].body
    assert "temperature" not in body
    assert body["max_tokens"] == 100_000 + 2000
    assert body["thinking"] == {"type": "enabled", "budget_tokens": 2000}
    assert body["output_config"] == {"effort": "low"}


@pytest.mark.parametrize(
    ("takes", "sent"),
    [
        ("adaptive", ["enabled", "adaptive", "adaptive"]),
        (None, ["enabled", "adaptive", None, None]),
    ],
)
def test_a_rejected_budget_gives_way(
    thinker: str, takes: str | None, sent: list[str | None]
) -> None:
    """Models that set themselves how long they think are let, and keep their room."""

    def answer(asked: Asked, _number: int) -> Response:
        kind = asked.body.get("thinking", {}).get("type")
        if kind == takes:
            return Response(body=message("7"))
        return rejected(f'"thinking.type.{kind}" is not supported for this model.')

    told: list[str] = []
    with fake_server(answer) as server:
        provider = own(server, thinker, notify=told.append)
        ask(server, provider, times=2, tokens=2040, think=2000, temperature=None)
    kinds = [asked.body.get("thinking", {}).get("type") for asked in server.asked]
    assert kinds == sent
    assert {asked.body["max_tokens"] for asked in server.asked} == {2040}
    assert len(told) == len(set(sent)) - 1


def test_a_budget_is_at_least_what_the_api_takes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A smaller entry is raised, and stays under max_tokens."""
    file = tmp_path / "models.yaml"
    file.write_text("anthropic/thinker: {reasoning: true, think_tokens: 10}\n")
    monkeypatch.setenv(model_facts.USER_FILE, str(file))
    with fake_server(always(Response(body=message("7")))) as server:
        ask(server, own(server, "thinker"), tokens=50, think=10)
    body = server.asked[0].body
    assert (body["thinking"]["budget_tokens"], body["max_tokens"]) == (1024, 1064)


def opened(model: str = "m", **settings: Any) -> AnthropicProvider:
    """The provider, asked nothing; it holds no connection."""
    return open_provider(ModelSettings(model, provider="anthropic", **settings))


def test_a_missing_key_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the model that needs none; a key that no header can hold is not shown."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", f"{KEY}\nx")
    with pytest.raises(SetupError, match="ANTHROPIC_API_KEY") as raised:
        opened()
    assert KEY not in str(raised.value)
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    with pytest.raises(SetupError, match=r"ANTHROPIC_API_KEY.*tiny"):
        opened()


@pytest.mark.parametrize(
    "settings",
    [
        {"base_urls": ("http://a", "http://b")},
        {"base_urls": ("http://user:secret@a:b",)},
    ],
)
def test_what_is_not_had_here_is_said_at_once(settings: Mapping[str, Any]) -> None:
    """Replicas, addresses that are none: one line, no secret."""
    with pytest.raises(SetupError) as raised:
        opened(**settings)
    assert "secret" not in str(raised.value)
    assert "\n" not in str(raised.value)


def test_facts_and_counts(thinker: str) -> None:
    """Facts say where and how the model was asked, without secrets; tokens are not counted."""
    there = opened(base_urls=("http://user:secret@127.0.0.1:1/v1",))
    assert asyncio.run(there.facts()) == {
        "engine": "anthropic",
        "base_url": "http://***@127.0.0.1:1",
    }
    assert asyncio.run(there.count_tokens(["x"])) is None
    assert asyncio.run(opened(thinker).facts()) == {
        "engine": "anthropic",
        "base_url": ANTHROPIC,
        "effort": "low",
    }
