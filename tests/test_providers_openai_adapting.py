"""A parameter that a server refuses is corrected or left out, for all requests and once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import pytest

from eyechart.providers.base import BadRequestError, ModelSettings, Reply, Request
from eyechart.providers.catalog.endpoints import NEUTRAL, OPEN_SERVER, Endpoint
from eyechart.providers.catalog.model_facts import ModelFacts
from eyechart.providers.openai.adapting import AdaptingClient
from eyechart.providers.openai.form import OpenAIForm
from eyechart.providers.openai.remedies import Remedies

Body: TypeAlias = Mapping[str, Any]
OPEN = Endpoint(base_url="http://127.0.0.1:9/v1", neutral=NEUTRAL, thinking=OPEN_SERVER)


class Server:
    """A server that answers a body with what `refusal` says of it, or with a reply."""

    def __init__(self, refusal: Callable[[Body], str], *, at_once: int = 1) -> None:
        self.refusal, self.at_once = refusal, at_once
        self.bodies: list[Body] = []
        self.told: list[str] = []
        self.have_come = asyncio.Event()

    async def send(self, body: dict[str, Any], _sent: Body) -> Reply:
        """The first `at_once` requests are answered when all of them have come."""
        self.bodies.append(body)
        if len(self.bodies) >= self.at_once:
            self.have_come.set()
        await self.have_come.wait()
        if refusal := self.refusal(body):
            raise BadRequestError(refusal)
        return Reply("7")

    async def ask(self, times: int = 1, **settings: Any) -> list[Reply]:
        given = ModelSettings("m", notify=self.told.append, **settings)
        facts = ModelFacts().asked_for(given.effort)
        form = OpenAIForm(given, OPEN, facts)
        asking = AdaptingClient(form, given, Remedies(given, None))
        request = Request("How many?", 40, temperature=given.temperature)
        return await asyncio.gather(*(asking.complete(request, self.send) for _ in range(times)))


def if_sent(name: str, said: str) -> Callable[[Body], str]:
    """The refusal of whatever has a parameter."""
    return lambda body: said if name in body else ""


@pytest.mark.parametrize(
    "said",
    [
        "`temperature` is deprecated for this model.",
        "invalid temperature: only 1 is allowed for this model",
        "gpt-5 models don't support temperature=0.0. Only temperature=1 is supported.",
        "Unsupported value: 'temperature' does not support 0 with this model.",
        "Unrecognized request arguments supplied: temperature, top_k",
        "Temperature is not permitted",
        "with max_tokens=40, temperature is an unexpected field",
        "openrouter does not support parameters: ['temperature'], for model=m",
    ],
)
def test_a_temperature_that_is_refused_is_not_sent(said: str) -> None:
    """In the words of vendors and gateways; the user is told once."""
    server = Server(if_sent("temperature", said))
    replies = asyncio.run(server.ask(2))
    assert [reply.dropped_params for reply in replies] == [("temperature",)] * 2
    assert server.told == ["m does not take 'temperature'; it is asked without"]
    assert server.bodies[-1].keys() >= {"top_p", "top_k", "max_tokens"}


@pytest.mark.parametrize(
    "said",
    ["`temperature` must be strictly positive", "temperature must be in (0,1]"],
)
def test_a_temperature_of_0_that_is_refused_becomes_a_small_one(said: str) -> None:
    """Without one the server's own would hold, which is mostly 1."""
    server = Server(lambda body: "" if body.get("temperature") else said, at_once=3)
    replies = asyncio.run(server.ask(3))
    assert [reply.dropped_params for reply in replies] == [()] * 3
    assert server.bodies[-1]["temperature"] == 0.01
    assert server.told == ["m takes no 'temperature' of 0; it is asked with 0.01"]


def test_requests_in_flight_are_asked_again() -> None:
    """All have the old body when the first refusal comes; none is lost, and none asked thrice."""
    said = "invalid top_p: only 0.95 is allowed for this model"
    server = Server(if_sent("top_p", said), at_once=8)
    replies = asyncio.run(server.ask(8))
    assert [reply.dropped_params for reply in replies] == [("top_p",)] * 8
    assert len(server.bodies) == 16
    assert len(server.told) == 1


def test_of_two_parameters_the_neutral_one_gives_way() -> None:
    """The temperature stays, unless the other is the user's."""
    said = "`temperature` and `top_p` cannot both be specified for this model."
    for params, left_out in (({}, "top_p"), ({"top_p": 0.9}, "temperature")):
        server = Server(lambda body: said if {"temperature", "top_p"} <= body.keys() else "")
        (reply,) = asyncio.run(server.ask(params=params))
        assert reply.dropped_params == (left_out,)


def test_a_server_that_refuses_everything_comes_to_an_end() -> None:
    """Each parameter is tried without once, and the error is the last one."""
    server = Server(lambda body: f"{min(set(body) - {'messages'})} is not supported")
    with pytest.raises(BadRequestError, match="max_tokens is not supported"):
        asyncio.run(server.ask(4))
    assert len(server.bodies) <= 4 * (len(NEUTRAL) + 3)
    always = Server(lambda _body: "`temperature` is deprecated")
    with pytest.raises(BadRequestError, match="is deprecated"):
        asyncio.run(always.ask(4))
    assert len(always.bodies) <= 4 * 3


@pytest.mark.parametrize(
    ("settings", "said", "remedy"),
    [
        ({"params": {"top_p": 0.9}}, "top_p must be 1", "leave out the param 'top_p'"),
        ({"effort": "low"}, "reasoning_effort is unknown", "leave out the effort 'low'"),
        ({"thinking": "off"}, "unknown chat_template_kwargs", "leave out thinking 'off'"),
        ({"temperature": 3.0}, "temperature must be at most 2", "with the temperature 'none'"),
        (
            {"temperature": 0.5, "params": {"top_p": 0.9}},
            "top_p and temperature cannot both be given",
            "with the temperature 'none'",
        ),
    ],
)
def test_what_the_user_asked_for_is_not_left_out(
    settings: dict[str, Any], said: str, remedy: str
) -> None:
    """The error names what was given instead."""
    server = Server(lambda _body: said)
    with pytest.raises(BadRequestError, match=f"{said}; {remedy}"):
        asyncio.run(server.ask(**settings))
    assert len(server.bodies) == 1
    assert server.told == []


def test_an_error_that_repeats_the_request_is_none_of_its_parameters() -> None:
    """Nothing is left out for it, and nothing said."""
    server = Server(lambda body: f"no good: {dict(body)}")
    with pytest.raises(BadRequestError, match="no good"):
        asyncio.run(server.ask())
    assert len(server.bodies) == 1
    assert server.told == []
