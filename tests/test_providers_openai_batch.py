"""What goes into batch files is what is sent directly, and their replies are read the same."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest

from eyechart.providers.base import (
    AuthError,
    BadReplyError,
    BadRequestError,
    BatchExpiredError,
    BrokenConnectionError,
    ModelSettings,
    PromptOverflowError,
    ProviderError,
    RateLimitError,
    RefusedError,
    Request,
    ServerFaultError,
    SetupError,
    UnknownModelError,
)
from eyechart.providers.batches import BatchState
from eyechart.providers.openai import batch
from eyechart.providers.openai.sdk import sdk_errors
from eyechart.providers.registry.model_name import parse_model
from eyechart.providers.registry.registry import open_batch_form, open_batches, open_model
from eyechart.providers.secrets import keep_secret
from tests.fake_server import Asked, Response, chat, fake_server

KEY = "sk-planted-0123456789"
SETTINGS: dict[str, dict[str, Any]] = {
    "plain": {},
    "system": {"system": "Be brief."},
    "logprobs": {"logprobs": True},
    "completions": {"api": "completions"},
}


@pytest.mark.parametrize("request_", [Request("Row AB: 1", 40), Request("Row C", 9, 0.7, 3)])
@pytest.mark.parametrize("how", SETTINGS)
@pytest.mark.parametrize(
    "model", ["my-model", "openai/o3-mini", "deepseek/deepseek-chat", "vllm/m"]
)
def test_bodies_are_those_of_direct_requests(model: str, how: str, request_: Request) -> None:
    """Word for word, for every provider and every way to ask; so is the address."""

    def answer(asked: Asked, _number: int) -> Response:
        if "/completions" in asked.path and "prompt" in asked.body:
            choices = [{"text": "7", "finish_reason": "stop"}]
            return Response(body={"model": "m", "choices": choices})
        return Response(body=chat("7"))

    name = parse_model(model)
    with fake_server(answer) as server:
        settings = ModelSettings(name.model, base_urls=(server.base_url,), **SETTINGS[how])
        provider = open_model(name, settings)

        async def main() -> None:
            await provider.complete(request_)
            await provider.aclose()

        asyncio.run(main())
    form = open_batch_form(name, settings)
    sent = server.asked[-1]
    assert form.body(request_) == sent.body
    assert form.url == sent.path


def test_a_vendors_habits_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nobody's address is given, the entries of endpoints.yaml count; no key is needed."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    form = open_batch_form(parse_model("gpt-4o"), ModelSettings("gpt-4o"))
    assert dict(form.body(Request("x", 9, seed=3))) == {
        "model": "gpt-4o",
        "messages": [{"role": "user", "content": "x"}],
        "max_completion_tokens": 9,
        "temperature": 0.0,
        "seed": 3,
    }
    assert "temperature" not in form.body(Request("x", 9, temperature=None))


def reply(line: Mapping[str, object]) -> Any:
    return open_batch_form(parse_model("gpt-4o"), ModelSettings("gpt-4o")).reply(line)


def test_a_reply_is_read_as_a_direct_one() -> None:
    """The same reading, whoever wrote the file."""
    body = chat("Final answer: 7", reasoning_content="hm")
    read = reply({"response": {"status_code": 200, "body": body}, "error": None})
    assert (read.text, read.reasoning, read.model) == ("Final answer: 7", "hm", "fake-model-1")
    assert (read.usage.prompt_tokens, read.usage.output_tokens) == (11, 3)


def response(**fields: object) -> dict[str, Any]:
    """A line with a body of the Responses API."""
    parts = [
        {"type": "output_text", "text": "Final "},
        {"type": "output_text", "text": "answer: 7"},
    ]
    output = [
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
        {"type": "message", "role": "assistant", "content": parts},
    ]
    usage: dict[str, object] = {"input_tokens": 11, "output_tokens": 9, "total_tokens": 20}
    usage |= {"output_tokens_details": {"reasoning_tokens": 6}}
    body = {"object": "response", "status": "completed", "model": "m", "output": output}
    return {"response": {"status_code": 200, "body": {**body, "usage": usage, **fields}}}


def test_a_reply_of_the_responses_api_is_read() -> None:
    """Its text, thinking and usage, and why it ended."""
    read = reply(response())
    assert (read.text, read.reasoning, read.model) == ("Final answer: 7", "hm", "m")
    assert (read.finish_reason, read.usage.output_tokens, read.usage.thought_tokens) == (
        *("stop", 9, 6),
    )
    for details, word in (
        ({"reason": "max_output_tokens"}, "length"),
        ({"reason": "content_filter"}, "content_filter"),
        (None, "length"),
    ):
        cut = reply(response(status="incomplete", incomplete_details=details, output=[]))
        assert (cut.text, cut.finish_reason) == ("", word)
    parts = [{"type": "refusal", "refusal": "no"}]
    refused = reply(response(output=[{"type": "message", "content": parts}]))
    assert (refused.text, refused.refusal) == ("", "no")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"status": "failed", "error": {"code": "server_error", "message": "oops"}}, "oops"),
        ({"status": "cancelled"}, "'cancelled'"),
        ({"status": "in_progress"}, "'in_progress'"),
    ],
)
def test_a_response_that_failed_is_no_reply(fields: dict[str, object], said: str) -> None:
    """Its error is shown, or its status."""
    with pytest.raises(ProviderError, match=said):
        reply(response(**fields))


def openai_error(status: int, message: str, code: str | None = None) -> dict[str, Any]:
    """An error as OpenAI writes it: in the body of the response."""
    error = {"message": message, "type": "invalid_request_error", "code": code}
    return {"response": {"status_code": status, "body": {"error": error}}, "error": None}


def vllm_error(message: str) -> dict[str, Any]:
    """An error as vLLM 0.32 writes it: beside a response without a body."""
    error = {"error": {"message": message, "type": "BadRequestError", "code": 400}}
    return {"response": {"status_code": 400, "body": None}, "error": error}


@pytest.mark.parametrize(
    ("line", "kind", "said"),
    [
        (openai_error(400, "bad", "context_length_exceeded"), PromptOverflowError, "400: bad"),
        (openai_error(400, "filtered", "content_filter"), RefusedError, "filtered"),
        (openai_error(400, "no such thing"), BadRequestError, "no such thing"),
        (
            openai_error(400, "`temperature` is deprecated for this model."),
            BadRequestError,
            "with the temperature 'none'",
        ),
        (openai_error(429, "slow down"), RateLimitError, "slow down"),
        (openai_error(500, "oops"), ServerFaultError, "oops"),
        (openai_error(401, "who?"), AuthError, "who?"),
        (vllm_error("This model's maximum context length is 9 tokens."), PromptOverflowError, "9"),
        (
            {"response": {"status_code": 400, "body": None}, "error": "URL /x was used."},
            BadRequestError,
            "URL /x was used.",
        ),
        (
            {"response": None, "error": {"code": "batch_expired", "message": "too late"}},
            BatchExpiredError,
            "batch_expired: too late",
        ),
        ({"response": None, "error": None}, BatchExpiredError, "no response"),
        ({"response": None, "error": {}}, BatchExpiredError, "no response"),
        ({}, BatchExpiredError, "no response"),
        ({"response": {"status_code": 200, "body": None}}, BadReplyError, "no JSON object"),
        ({"response": {"status_code": 200, "body": {}}}, BadReplyError, "no choices"),
        (
            {"response": {"status_code": 200, "body": chat("The row has", "abort")}},
            ServerFaultError,
            "broke the reply off: 'abort'",
        ),
        ({"response": {}}, ProviderError, "200"),
        ({"response": {"status_code": "x", "body": 3}}, ProviderError, "200"),
    ],
)
def test_errors_are_what_they_are_in_direct_runs(
    line: dict[str, object], kind: type[ProviderError], said: str
) -> None:
    """By the same reading; what was never asked is an error of its own."""
    with pytest.raises(kind) as caught:
        reply(line)
    assert said in str(caught.value)


@pytest.mark.parametrize("model", ["tiny", "anthropic/x", "azure/x", "scripted/x"])
def test_others_have_no_batch_form(model: str) -> None:
    """Said in one line."""
    with pytest.raises(SetupError, match="does not take the Batch form"):
        open_batch_form(parse_model(model), ModelSettings("x"))


def at(url: str, call: str, *arguments: object) -> Any:
    """What a method of the service gives at an address."""

    async def main() -> Any:
        service = open_batches(parse_model("m"), ModelSettings("m", base_urls=(url,)))
        try:
            return await getattr(service, call)(*arguments)
        finally:
            await service.aclose()

    return asyncio.run(main())


BATCH = {"id": "b", "object": "batch", "status": "IN_PROGRESS", "metadata": {"eyechart": "t"}}


def test_a_batch_may_say_little() -> None:
    """What vendors leave out is nothing; what they write in capitals is the same."""
    with fake_server(lambda *_: Response(body=BATCH)) as server:
        assert at(server.base_url, "state", "b") == BatchState("b", "in_progress")


def test_why_a_batch_failed() -> None:
    """A line each, with the line of the file and the code where they are given."""
    errors = [{"message": "no\n url", "line": 3, "code": "x"}, {"message": "bad"}, "odd"]
    body = {**BATCH, "status": "failed", "errors": {"object": "list", "data": errors}}
    with fake_server(lambda *_: Response(body=body)) as server:
        assert at(server.base_url, "state", "b").problems == ("line 3: no url (x)", "bad")


@pytest.mark.parametrize(
    ("call", "arguments"), [("state", ("b",)), ("create", ("f", "/v1/x", "t")), ("find", ("t", 0))]
)
@pytest.mark.parametrize("body", [b"<html>", b"[]", b"{}", b'{"id": 3, "status": "x"}', b'"x"'])
def test_what_is_no_batch_is_no_answer(call: str, arguments: tuple[object], body: bytes) -> None:
    """A proxy's page for one; it may be asked again."""
    with (
        fake_server(lambda *_: Response(body=body)) as server,
        pytest.raises(BadReplyError),
    ):
        at(server.base_url, call, *arguments)


def test_the_list_is_left_where_it_is_older_than_the_batch() -> None:
    """An account may have thousands."""

    def page(_asked: Asked, number: int) -> Response:
        batches = [{**BATCH, "id": f"b{number}", "metadata": None, "created_at": 10**9 - number}]
        return Response(body={"data": batches, "has_more": True})

    with fake_server(page) as server:
        assert at(server.base_url, "find", "t", 10**9 + 86_400 - 2.5) is None
    assert len(server.asked) == 4


@pytest.mark.parametrize(
    ("status", "kind"), [(404, SetupError), (401, AuthError), (429, RateLimitError)]
)
def test_errors_of_an_upload(tmp_path: Path, status: int, kind: type[ProviderError]) -> None:
    """Nobody takes files where there is no Batch API."""
    path = tmp_path / "requests.jsonl"
    path.write_text("{}\n")
    answer = Response(status=status, body={"error": {"message": "no"}})
    with fake_server_of_files(answer) as server, pytest.raises(kind):
        at(server.base_url, "upload", path)


def fake_server_of_files(answer: Response) -> Any:
    """One that reads no JSON: an upload is none."""
    return fake_server(lambda *_: answer, reads_json=False)


def test_a_file_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    """A download that breaks off leaves nothing."""
    path = tmp_path / "replies.jsonl"

    def answer(_asked: Asked, number: int) -> Response:
        return Response(body=b"x" * 10_000, cut=number == 0)

    with fake_server(answer) as server:
        with pytest.raises(ProviderError):
            at(server.base_url, "fetch", "f", path)
        assert list(tmp_path.iterdir()) == []
        at(server.base_url, "fetch", "f", path)
    assert path.read_bytes() == b"x" * 10_000


def test_a_file_that_is_gone_is_told_from_faults(tmp_path: Path) -> None:
    """404 is for good."""
    answer = Response(status=404, body={"error": {"message": f"no file for {KEY}"}})
    with fake_server(lambda *_: answer) as server, pytest.raises(UnknownModelError):
        at(server.base_url, "fetch", "f", tmp_path / "replies.jsonl")


def test_no_key_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither in an address nor in what a server says back."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    answer = Response(status=400, body={"error": {"message": f"bad {KEY}"}})
    with fake_server(lambda *_: answer) as server, pytest.raises(BadRequestError) as caught:
        at(server.base_url, "state", "b")
    assert KEY not in str(caught.value)
    url = f"http://user:{KEY}@127.0.0.1:1/v1"
    service = open_batches(parse_model("m"), ModelSettings("m", base_urls=(url,)))
    assert KEY not in service.address
    asyncio.run(service.aclose())


def test_every_error_of_the_sdk_is_mapped() -> None:
    """Whatever class the SDK raises, ours comes out, without the key."""
    keep_secret(KEY)
    kinds = [
        kind
        for kind in list(vars(openai).values())
        if isinstance(kind, type) and issubclass(kind, openai.OpenAIError)
    ]
    assert len(kinds) > 10
    for kind in kinds:
        error: Any = kind.__new__(kind)
        error.args = (f"said {KEY}",)
        error.response = httpx2.Response(418, text=KEY)
        with pytest.raises(ProviderError) as raised, sdk_errors("http://127.0.0.1:1/v1"):
            raise error
        assert KEY not in str(raised.value)
    for broken in (httpx2.ReadError, httpx2.DecodingError, httpx2.ReadTimeout):
        with pytest.raises(BrokenConnectionError), sdk_errors("http://127.0.0.1:1/v1"):
            raise broken(KEY)


def test_files_are_sent_as_the_user_asks_who(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the headers of all other requests."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    path = tmp_path / "requests.jsonl"
    path.write_text("{}\n")
    with fake_server_of_files(Response(body={"id": "file-1"})) as server:

        async def main(**given: str) -> None:
            settings = ModelSettings("m", base_urls=(server.base_url,), headers=given)
            service = open_batches(parse_model("m"), settings)
            assert await service.upload(path) == "file-1"
            await service.aclose()

        asyncio.run(main(Team="vision"))
        asyncio.run(main(authorization="Other me"))
        monkeypatch.delenv("OPENAI_API_KEY")
        asyncio.run(main(authorization="Other me"))
    first, *others = (asked.headers for asked in server.asked)
    assert first["content-type"].startswith("multipart/form-data")
    assert (first["authorization"], first["team"]) == (f"Bearer {KEY}", "vision")
    assert [one["authorization"] for one in others] == ["Other me"] * 2


def test_a_file_of_replies_is_kept_without_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Line by line, whatever pieces it comes in; the others stay as they are, byte for byte."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    path = tmp_path / "replies.jsonl"
    lines = [
        b'{"a":  1}',
        f'{{"said": "my \\"{KEY}\\""}}'.encode(),
        b"",
        f"torn {KEY} \xff".encode(),
    ]
    long = b'{"b": "' + b"x" * 300_000 + b'"}'
    with fake_server(lambda *_: Response(body=b"\n".join([long, *lines]))) as server:
        at(server.base_url, "fetch", "f", path)
    kept = path.read_bytes().split(b"\n")
    assert kept == [long, lines[0], b'{"said":"my \\"***\\""}', b"", "torn *** \xff".encode()]


def test_a_line_without_end_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And neither is a file without end."""
    path = tmp_path / "replies.jsonl"
    monkeypatch.setattr(batch, "_LINE", 1000)
    with fake_server(lambda *_: Response(body=b"x" * 200_000)) as server:
        with pytest.raises(BadReplyError, match="a line of the file is longer"):
            at(server.base_url, "fetch", "f", path)
        monkeypatch.setattr(batch, "_LINE", 10**6)
        monkeypatch.setattr(batch, "_FILE", 1000)
        with pytest.raises(BadReplyError, match="the file is longer"):
            at(server.base_url, "fetch", "f", path)
    assert list(tmp_path.iterdir()) == []


def test_a_file_may_lie_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Vendors send one on to where they keep files; the key does not go there."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    path = tmp_path / "replies.jsonl"
    with fake_server(lambda *_: Response(body=b"{}\n")) as store:
        there = store.base_url.replace("127.0.0.1", "localhost")
        sent_on = Response(302, b"", {"Location": f"{there}/file"})
        with fake_server(lambda *_: sent_on) as server:
            at(server.base_url, "fetch", "f", path)
            with pytest.raises(BadReplyError, match="redirects are not followed"):
                at(server.base_url, "state", "b")
    assert path.read_bytes() == b"{}\n"
    assert ["authorization" in asked.headers for asked in store.asked] == [False]
    assert all("authorization" in asked.headers for asked in server.asked)


@pytest.mark.parametrize("name", ["", ".", "..", "a\nb", "x" * 300, f"batch-{KEY}", "\ud83d", "é"])
def test_a_name_that_is_none_is_no_answer(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be written down and become a part of an address."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with (
        fake_server(lambda *_: Response(body={**BATCH, "id": name})) as server,
        pytest.raises(BadReplyError),
    ):
        at(server.base_url, "state", "b")
    files = {**BATCH, "output_file_id": name}
    with fake_server(lambda *_: Response(body=files)) as server:
        assert at(server.base_url, "state", "b").output_file is None


def test_a_list_of_batches_has_an_end() -> None:
    """Also where each page says that there is more."""
    page = {"data": [{**BATCH, "metadata": ["odd"]}], "has_more": True}
    with (
        pytest.MonkeyPatch.context() as patch,
        fake_server(lambda *_: Response(body=page)) as server,
    ):
        patch.setattr(batch, "_PAGES", 3)
        with pytest.raises(BadReplyError, match="does not end after 300"):
            at(server.base_url, "find", "t", 0)
    assert len(server.asked) == 3
