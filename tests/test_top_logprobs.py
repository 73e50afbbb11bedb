"""The most probable tokens beside those of a reply: asked for, kept and shown."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from eyechart import load_run
from eyechart.harness.analysis.samples.probabilities import logprobs_text
from eyechart.harness.journal.record import read_records
from eyechart.providers.base import Reply
from eyechart.providers.openai.form import reply_of
from eyechart.providers.plugins.contract import reply_problems
from tests.conftest import Lab
from tests.fake_server import Asked, Response, chat, fake_server

CHAT = {
    "content": [
        {
            "token": "Final answer: 2",
            "logprob": -0.25,
            "top_logprobs": [
                {"token": "Final answer: 3", "logprob": -1.75},
                {"token": "Final answer: 2", "logprob": -0.25},
            ],
        }
    ]
}
COMPLETIONS = {
    "tokens": ["Final answer: 2"],
    "token_logprobs": [-0.25],
    "top_logprobs": [{"Final answer: 3": -1.75, "Final answer: 2": -0.25}],
}
TOP = (("Final answer: 2", -0.25), ("Final answer: 3", -1.75))


def body_with(logprobs: object, *, is_chat: bool = True) -> dict[str, Any]:
    body = chat("Final answer: 2")
    choice = body["choices"][0]
    choice["logprobs"] = logprobs
    if not is_chat:
        choice["text"] = choice.pop("message")["content"]
    return body


@pytest.mark.parametrize("api", ["chat", "completions"])
def test_they_are_asked_for_kept_and_shown(lab: Lab, api: str) -> None:
    """In the order of their probabilities, whatever the server's."""
    logprobs = CHAT if api == "chat" else COMPLETIONS

    def answer(asked: Asked, _number: int) -> Response:
        if not asked.path.endswith("/completions"):
            return Response(404, {})
        return Response(body=body_with(logprobs, is_chat=api == "chat"))

    with fake_server(answer) as server:
        done = lab.bench_run(
            *("--model", "m8", "--base-url", server.base_url, "--samples", "1", "--api", api),
            *("--logprobs", "2"),
        )
        sent = next(one.body for one in server.asked if one.body)
    assert done.code == 0, done.err
    wish = {"logprobs": True, "top_logprobs": 2} if api == "chat" else {"logprobs": 2}
    assert wish.items() <= sent.items()
    folder = lab.the_run()
    for record in read_records(folder):
        assert record.top_logprobs == (TOP,)
        best, rival = (f"{value}  {text!r}" for text, value in TOP)
        assert logprobs_text(record) == f"   {best}   of {best}, {rival}"
    line, *_ = lab.bench("samples", folder, "--json").out.splitlines()
    listed = [[list(pair) for pair in TOP]]
    assert orjson.loads(line)["top_logprobs"] == listed
    assert load_run(folder, tasks=lab.ones).samples["top_logprobs"][0] == listed


@pytest.mark.parametrize(
    "spoilt",
    [
        {"top_logprobs": None},
        {"top_logprobs": []},
        {"top_logprobs": [{"a": "x"}]},
        {"top_logprobs": [[1]]},
        {"top_logprobs": 5},
    ],
)
def test_what_a_server_sends_amiss_is_left_out(spoilt: dict[str, Any]) -> None:
    """And the log-probabilities of the reply stay."""
    reply = reply_of(body_with(COMPLETIONS | spoilt, is_chat=False))
    assert reply.top_logprobs is None
    assert reply.logprobs == (("Final answer: 2", -0.25),)


def test_they_need_log_probabilities(lab: Lab) -> None:
    done = lab.bench_run("--logprobs", "21")
    done.one_line(2, "--logprobs must be a whole number from 0 to 20, not 21")


def test_a_plugin_that_gives_others_is_told() -> None:
    sound = Reply("a", logprobs=(("a", -0.5),), top_logprobs=((("a", -0.5), ("b", -1.0)),))
    assert not reply_problems(sound)
    for wrong in ((), ((("a", 0.5),),), ((("a",),),), 5):
        problems = reply_problems(Reply("a", logprobs=(("a", -0.5),), top_logprobs=wrong))  # type: ignore[arg-type]
        assert list(problems) == ["top_logprobs"]
