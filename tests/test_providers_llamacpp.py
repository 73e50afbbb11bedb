"""llama.cpp's own server: what it has besides OpenAI's API, in replies as a real one sends them."""

from __future__ import annotations

import asyncio
import math
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from eyechart.providers.base import (
    Likelihood,
    ModelSettings,
    OverloadedError,
    Reply,
    Request,
    SetupError,
    Usage,
)
from eyechart.providers.descriptors import descriptor_of
from eyechart.providers.openai.llamacpp import OWNER
from eyechart.providers.registry.model_name import parse_model
from eyechart.providers.registry.registry import open_model
from tests.fake_server import Asked, FakeServer, Response, chat, fake_server

if TYPE_CHECKING:
    from tests.conftest import Lab

COUNT = Request("How many?", 8, options=("7", "81", "83"), opening="Final answer:")
NOT_FOUND = {"error": {"message": "File Not Found", "type": "not_found_error", "code": 404}}
META: dict[str, object] = {
    "vocab_type": 2, "n_vocab": 49152, "n_ctx": 4096, "n_ctx_train": 8192, "n_embd": 576,
    "n_params": 134515008, "size": 96576768, "ftype": "Q4_1",
}  # fmt: skip


def logprob(token: int) -> float:
    """That of a token, whatever stands before it."""
    return -token / 100


@dataclass
class LlamaServer:
    """A server whose tokens are characters; its list of the most probable ones has only "8"."""

    slots: int = 2
    least: float | None = None
    """The log-probability of `8`, if another than the usual one."""
    forces: bool = True
    """Whether a bias forces a token."""
    lacks: tuple[str, ...] = ()
    """Paths that an older one does not have."""
    most_at_once: int = 0
    """Most completions that it had to answer at the same time."""
    _now: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, asked: Asked, _number: int) -> Response:
        path = asked.path
        if path in self.lacks:
            return Response(404, NOT_FOUND)
        if path == "/v1/models":
            entry = {"id": "/models/m.gguf", "object": "model", "owned_by": OWNER, "meta": META}
            return Response(body={"models": [{"name": "m"}], "object": "list", "data": [entry]})
        if path == "/props":
            return Response(body={"total_slots": self.slots, "model_ftype": "Q4_1"})
        if path == "/apply-template":
            *_, last = asked.body["messages"]
            return Response(body={"prompt": f"<user>{last['content']}<assistant>"})
        if path == "/tokenize":  # ignores `prompt`, the name of vLLM
            text = asked.body.get("content", "")
            begin = [1] * asked.body.get("add_special", False)
            return Response(body={"tokens": [*begin, *map(ord, text)]})
        if path == "/v1/chat/completions":
            return Response(body=chat("Final answer: 7"))
        with self._lock:
            self._now += 1
            self.most_at_once = max(self.most_at_once, self._now)
        time.sleep(0.01)
        with self._lock:
            self._now -= 1
        return self.completion(asked.body)

    def completion(self, body: dict[str, Any]) -> Response:
        """One generated token: the forced one, or else a blank."""
        ((forced, bias),) = body["logit_bias"]
        assert bias > 1000
        given = forced if self.forces else ord(" ")
        place: dict[str, Any] = {**self.one(given), "top_logprobs": [self.one(ord("8"))]}
        usage: dict[str, object] = {
            "completion_tokens": 1,
            "prompt_tokens": len(body["prompt"]),
            "prompt_tokens_details": {"cached_tokens": 4},
        }
        choice = {"text": chr(given), "index": 0, "logprobs": {"content": [place]}}
        return Response(
            body={
                "choices": [{**choice, "finish_reason": "length"}],
                "model": "/models/m.gguf",
                "object": "text_completion",
                "usage": usage,
                "timings": {"cache_n": 4, "prompt_n": 1},
            }
        )

    def one(self, token: int) -> dict[str, Any]:
        """A token as it is listed; the server has -3.4e38 for the logarithm of 0."""
        value = logprob(token) if token != ord("8") or self.least is None else self.least
        return {"id": token, "token": chr(token), "bytes": [token], "logprob": value}


def score(server: FakeServer, model: str = "llamacpp/m", times: int = 1, **more: Any) -> Reply:
    """The last of some replies to `COUNT` that are asked for at once."""

    async def main() -> Reply:
        name = parse_model(model, base_urls=(server.base_url,))
        given = ModelSettings("m", base_urls=(server.base_url,), **more)
        provider = open_model(name, given)
        assert isinstance(provider, Likelihood)
        try:
            *_, last = await asyncio.gather(*(provider.score(COUNT) for _ in range(times)))
            return last
        finally:
            await provider.aclose()

    return asyncio.run(main())


def completions(server: FakeServer) -> list[dict[str, Any]]:
    return [one.body for one in server.asked if one.path == "/v1/completions"]


@pytest.mark.parametrize(
    ("model", "api", "text"),
    [
        ("llamacpp/m", "chat", "<user>How many?<assistant>Final answer:"),
        ("llamacpp/m", "completions", "How many?\nFinal answer:"),
        ("m", "completions", "How many?\nFinal answer:"),
    ],
)
def test_each_token_of_an_option_is_forced_once(model: str, api: str, text: str) -> None:
    """The server is known by its list of models, whatever it is called; nothing is echoed."""
    with fake_server(LlamaServer()) as server:
        reply = score(server, model, api=api)
    asked = [
        ("".join(map(chr, body["prompt"][1:])), chr(body["logit_bias"][0][0]))
        for body in completions(server)
    ]
    assert asked == [
        (text, " "),
        (f"{text} ", "7"),  # "8" came with it
        (f"{text} 8", "1"),
        (f"{text} 8", "3"),
    ]
    assert reply.options is not None
    assert [one.logprob for one in reply.options] == pytest.approx(
        [sum(map(logprob, option.encode())) for option in (" 7", " 81", " 83")]
    )
    assert [one.tokens for one in reply.options] == [2, 3, 3]
    assert reply.usage == Usage(len(text) + 1, 8)
    assert reply.sent is not None
    assert reply.sent["dry_multiplier"] == 0.0
    assert reply.sent.keys().isdisjoint({"logit_bias", "prompt"})


def test_as_many_samples_are_asked_at_once_as_there_are_slots() -> None:
    """Else the requests of several samples push each other's prompts out of the cache. No slot is
    named: a real server mixed prompts up then.
    """
    served = LlamaServer(slots=2)
    with fake_server(served) as server:
        score(server, times=6)
    bodies = completions(server)
    assert len(bodies) == 6 * 4
    assert not any("id_slot" in body for body in bodies)
    assert served.most_at_once == 2


def test_a_probability_of_0_is_the_least_one() -> None:
    with fake_server(LlamaServer(least=-3.4e38)) as server:
        reply = score(server)
    assert reply.options is not None
    assert reply.options[1].logprob == pytest.approx(math.log(2**-149) - 0.81, abs=0.1)


@pytest.mark.parametrize(
    ("served", "said"),
    [
        (LlamaServer(forces=False), "generated another token than"),
        (LlamaServer(lacks=("/tokenize",)), "no tokens of a text from /tokenize"),
        (LlamaServer(lacks=("/apply-template",)), "/apply-template.*api='completions'"),
    ],
)
def test_what_an_older_server_lacks_is_said_in_a_line(served: LlamaServer, said: str) -> None:
    with fake_server(served) as server, pytest.raises(SetupError, match=said):
        score(server)


def test_a_chat_of_another_server_has_no_options() -> None:
    def other(asked: Asked, number: int) -> Response:
        if asked.path == "/v1/models":
            return Response(body={"data": [{"id": "m", "owned_by": "vllm"}]})
        return LlamaServer()(asked, number)

    with fake_server(other) as server, pytest.raises(SetupError, match=r"is no llama\.cpp server"):
        score(server)


def test_a_server_that_is_busy_is_not_taken_for_another() -> None:
    def busy(_asked: Asked, _number: int) -> Response:
        return Response(503, {"error": {"message": "Loading model", "code": 503}})

    with fake_server(busy) as server, pytest.raises(OverloadedError, match="Loading model"):
        score(server)


def test_its_tokenizer_counts_and_its_window_is_known(lab: Lab) -> None:
    """A run knows tokens a symbol before it asks, from the name that most users give too."""
    with fake_server(LlamaServer()) as server:
        done = lab.bench_run("--model", "m", "--base-url", server.base_url)
    assert done.code == 0, done
    manifest = (lab.the_run() / "manifest.json").read_text()
    assert '"max_model_len":4096' in manifest.replace(" ", "")
    assert '"ftype":"Q4_1"' in manifest.replace(" ", "")
    assert "counted" in manifest
    (first, *_) = (one.body for one in server.asked if one.path == "/tokenize")
    assert first["content"].startswith("<user>")


def test_which_servers_are_asked_for_the_options_of_a_chat() -> None:
    here = ("http://127.0.0.1:8080/v1",)
    assert descriptor_of("llamacpp").likelihood(()) == ("chat", "completions")
    assert descriptor_of("llamacpp").likelihood(here) == ("chat", "completions")
    assert descriptor_of("openai").likelihood(()) == ()
