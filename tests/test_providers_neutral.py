"""A server is asked for the model's own probabilities, and what it takes less of is said."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from eyechart.harness.journal.manifest import MANIFEST, read_manifest
from eyechart.providers.base import BadRequestError, ModelSettings, Reply, Request
from eyechart.providers.catalog.endpoints import NEUTRAL, VLLM_NEUTRAL, endpoint_of, endpoints
from eyechart.providers.catalog.model_facts import ModelFacts
from eyechart.providers.openai.form import OpenAIForm, vllm_form
from eyechart.providers.registry.model_name import parse_model
from eyechart.providers.registry.registry import open_model
from tests.fake_server import Asked, FakeServer, Response, chat, fake_server

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import Lab

FIRST = {name: values[0] for name, values in NEUTRAL.items()}
RIGHT = Response(body=chat("Final answer: 2"))
UNKNOWN_NAMES = ("min_p", "repeat_penalty", "repetition_penalty", "top_k")


def ask(
    server: FakeServer, *, times: int = 1, at_once: int = 1, model: str = "m", **settings: Any
) -> tuple[list[Reply], list[str]]:
    """Replies of a model at the server, so many at once; and what the user is told."""
    told: list[str] = []

    async def main() -> list[Reply]:
        name = parse_model(model, base_urls=(server.base_url,))
        provider = open_model(
            name, ModelSettings("", base_urls=(server.base_url,), notify=told.append, **settings)
        )
        try:
            replies: list[Reply] = []
            for _ in range(times):
                wanted = (provider.complete(Request("How many?", 40)) for _ in range(at_once))
                replies += await asyncio.gather(*wanted)
            return replies
        finally:
            await provider.aclose()

    return asyncio.run(main()), told


def neutral_of(body: dict[str, Any]) -> dict[str, Any]:
    """The neutral fields of a body."""
    return {name: value for name, value in body.items() if name in NEUTRAL}


def always(response: Response) -> Callable[[Asked, int], Response]:
    return lambda _asked, _number: response


def strict(asked: Asked, _number: int) -> Response:
    """Names one field that OpenAI does not have, as strict gateways do."""
    unknown = next((name for name in asked.body if name in UNKNOWN_NAMES), None)
    if unknown is None:
        return RIGHT
    error = {"message": f"Unrecognized request argument supplied: '{unknown}'", "param": unknown}
    return Response(400, {"error": error})


class TestBodies:
    """What is sent, and to whom."""

    def test_an_unknown_server_gets_all(self) -> None:
        with fake_server(always(RIGHT)) as server:
            ((reply,), told) = ask(server)
        assert neutral_of(server.asked[0].body) == FIRST
        assert reply.sent == {"temperature": 0.0, **FIRST}
        assert reply.dropped_params == ()
        assert told == []

    def test_a_parameter_of_the_user_goes_over_them(self) -> None:
        """Of a penalty with two names none is left that says otherwise."""
        params = {"repetition_penalty": 1.2, "top_p": 0.9}
        with fake_server(always(RIGHT)) as server:
            ask(server, params=params)
        rest = FIRST.keys() - {"repeat_penalty", "repetition_penalty", "top_p"}
        assert neutral_of(server.asked[0].body) == {**{n: FIRST[n] for n in rest}, **params}

    @pytest.mark.parametrize("name", endpoints())
    def test_no_vendor_of_the_catalog_gets_one(self, name: str) -> None:
        """Also not where its own address is given; only servers on this machine get some."""
        endpoint = endpoints()[name]
        for urls in ((), (endpoint.base_url,)):
            there = endpoint_of("openai", urls) if urls else endpoint_of(name)
            body = OpenAIForm(ModelSettings("m"), there, ModelFacts()).body(Request("x", 9))
            assert bool(neutral_of(body)) == (endpoint.serves == "local server")

    def test_what_a_server_cannot_be_told_is_said_with_each_reply(self) -> None:
        """Ollama takes no penalty at this address."""
        form = OpenAIForm(ModelSettings("m"), endpoint_of("ollama"), ModelFacts())
        assert {"min_p", "repeat_penalty", "top_k"} <= form.dropped
        assert "repeat_penalty" not in form.body(Request("x", 9))
        own = ModelSettings("m", params={"repeat_penalty": 1.1})
        form = OpenAIForm(own, endpoint_of("ollama"), ModelFacts())
        assert form.body(Request("x", 9))["repeat_penalty"] == 1.1

    def test_a_server_is_known_by_the_name_that_the_user_gives(self) -> None:
        """At whatever address; llama.cpp has samplers that others lack."""
        elsewhere = ("http://10.0.0.1:9/v1",)
        assert endpoint_of("llamacpp", elsewhere).neutral["mirostat"] == [0]
        assert "repeat_penalty" in endpoint_of("ollama", elsewhere).forced
        assert endpoint_of("openai", elsewhere).neutral == NEUTRAL

    def test_vllm_is_asked_against_the_config_of_the_model(self) -> None:
        settings = ModelSettings("m", params={"repetition_penalty": 1.1})
        body = vllm_form(settings).body(Request("x", 9))
        assert body["repetition_penalty"] == 1.1
        assert body["top_k"] == -1
        assert vllm_form(ModelSettings("m")).body(Request("x", 9))["repetition_penalty"] == 1.0


class TestRefusals:
    """What is sent to a server that refuses a field or its value."""

    def test_fields_that_are_named_are_left_out_and_said_once(self) -> None:
        with fake_server(strict) as server:
            replies, told = ask(server, times=3)
        assert [reply.text for reply in replies] == ["Final answer: 2"] * 3
        assert len(server.asked) == 3 + len(UNKNOWN_NAMES)
        assert set(neutral_of(server.asked[-1].body)) == {*NEUTRAL} - {*UNKNOWN_NAMES}
        assert replies[0].dropped_params == UNKNOWN_NAMES
        names = "'min_p', 'repeat_penalty', 'repetition_penalty', 'top_k'"
        holds = "it is asked without, so its server's own values hold"
        assert told == [f"m does not take {names}; {holds}"]

    def test_vllm_is_asked_without_what_it_refuses(self) -> None:
        """An older one, or a proxy before it; a refusal that names nothing is tried without all."""

        def blunt(asked: Asked, _number: int) -> Response:
            return Response(422, {"detail": "no"}) if neutral_of(asked.body) else RIGHT

        with fake_server(strict) as server:
            replies, told = ask(server, times=2, model="vllm/m")
        refused = ("min_p", "repetition_penalty", "top_k")
        assert [reply.dropped_params for reply in replies] == [refused] * 2
        assert len(server.asked) == 2 + len(refused)
        assert len(told) == 1
        with fake_server(blunt) as server:
            replies, _ = ask(server, times=2, model="vllm/m")
        assert replies[1].dropped_params == tuple(sorted(VLLM_NEUTRAL))
        assert len(server.asked) == 3

    def test_many_requests_at_once_lose_no_field_that_is_taken(self) -> None:
        with fake_server(strict) as server:
            replies, told = ask(server, at_once=4)
        assert len(replies) == 4
        assert set(neutral_of(server.asked[-1].body)) == {*NEUTRAL} - {*UNKNOWN_NAMES}
        assert len(told) == 1

    def test_a_value_that_is_refused_gives_way_to_the_other(self) -> None:
        """SGLang has -1 for what others call 0."""

        def answer(asked: Asked, _number: int) -> Response:
            if asked.body["top_k"] == 0:
                return Response(400, {"message": "top_k must be -1 (disable), or at least 1"})
            return RIGHT

        with fake_server(answer) as server:
            replies, told = ask(server, times=2)
        assert [asked.body["top_k"] for asked in server.asked] == [0, -1, -1]
        assert replies[1].dropped_params == ()
        assert told == []

    def test_a_refusal_that_names_nothing_is_tried_without(self) -> None:
        def answer(asked: Asked, _number: int) -> Response:
            bad = Response(400, {"error": "additional properties are not allowed"})
            return bad if neutral_of(asked.body) else RIGHT

        with fake_server(answer) as server:
            replies, told = ask(server, times=3)
        assert len(replies) == 3
        assert len(server.asked) == 4
        assert replies[0].dropped_params == tuple(sorted(NEUTRAL))
        assert len(told) == 1

    def test_an_error_of_another_kind_stays_one(self) -> None:
        """It is asked once without them, and nothing is said of them."""
        told: list[str] = []
        with fake_server(always(Response(400, {"error": "no good"}))) as server:
            with pytest.raises(BadRequestError, match="no good"):
                _, told = ask(server)
            assert [bool(neutral_of(asked.body)) for asked in server.asked] == [True, False]
        assert told == []

    def test_errors_of_another_kind_are_tried_without_only_once(self) -> None:
        async def main(url: str) -> None:
            settings = ModelSettings("", base_urls=(url,))
            provider = open_model(parse_model("m", base_urls=(url,)), settings)
            for _ in range(3):
                with pytest.raises(BadRequestError, match="no good"):
                    await provider.complete(Request("How many?", 40))
            await provider.aclose()

        with fake_server(always(Response(400, {"error": "no good"}))) as server:
            asyncio.run(main(server.base_url))
        shown = [bool(neutral_of(asked.body)) for asked in server.asked]
        assert shown == [True, False, True, True]

    def test_once_they_were_taken_they_are_not_suspected(self) -> None:
        """An error of a later request is its own, also if it repeats what was sent."""

        def answer(asked: Asked, number: int) -> Response:
            return Response(400, {"error": f"no good: {asked.body}"}) if number else RIGHT

        with fake_server(answer) as server:
            with pytest.raises(BadRequestError, match="no good"):
                ask(server, times=2)
            assert len(server.asked) == 2


class TestRuns:
    """The manifest has what was sent and what was refused, and tables say it."""

    def run(self, lab: Lab, server: FakeServer, *more: str) -> Any:
        return lab.bench_run("--model", "m", "--base-url", server.base_url, *more)

    def test_what_a_server_refuses_is_said(self, lab: Lab) -> None:
        with fake_server(strict) as server:
            done = self.run(lab, server)
        assert done.err.count("it is asked without") == 1
        said = "server does not take min_p, repeat_penalty, repetition_penalty, top_k, so the"
        manifest = read_manifest(lab.the_run())
        assert manifest.refused == list(UNKNOWN_NAMES)
        assert manifest.sent["presence_penalty"] == 0.0
        assert "top_k" not in manifest.sent
        scored = lab.bench("score", "--all-findings", lab.the_run())
        assert said in " ".join(scored.out.split())

    def test_a_run_that_was_asked_without_them_goes_on_with_a_word(self, lab: Lab) -> None:
        """A folder of an earlier version is read, continued, and its user told."""
        with fake_server(always(RIGHT)) as server:
            self.run(lab, server, "--samples", "2")
            file = lab.the_run() / MANIFEST
            fields = json.loads(file.read_text())
            fields["sent"] = {"temperature": 0.0}
            del fields["refused"]
            file.write_text(json.dumps(fields))
            done = self.run(lab, server, "--samples", "3")
        assert done.code == 0, done
        said = " ".join(done.err.split())
        assert "earlier replies of this run were asked with another dry_multiplier and " in said
        assert "--fresh asks all again" in said
        assert read_manifest(lab.the_run()).sent == {"temperature": 0.0, **FIRST}

    def test_a_run_that_goes_on_as_before_says_nothing(self, lab: Lab) -> None:
        with fake_server(always(RIGHT)) as server:
            self.run(lab, server, "--samples", "2")
            assert "earlier replies" not in self.run(lab, server, "--samples", "3").err
