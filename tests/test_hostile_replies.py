"""Whatever a server says, readers of it raise a `ProviderError` or nothing."""

from __future__ import annotations

import json
import re
from typing import Any

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from eyechart.providers import anthropic
from eyechart.providers.base import (
    BadReplyError,
    BadRequestError,
    ModelSettings,
    ProviderError,
    SetupError,
    Usage,
)
from eyechart.providers.http import bodies
from eyechart.providers.http.errors import error_of, refused_parameters, retry_after_s
from eyechart.providers.openai import batch, form
from eyechart.providers.registry.model_name import parse_model
from eyechart.providers.registry.registry import open_batch_form

MANY = settings(max_examples=80, deadline=None)
HALF = "\ud83d"
"""Half a character, as JSON can hold it and UTF-8 cannot."""
NAMES = re.findall(
    r"\w+",
    "error code message type status detail param choices content text finish_reason usage "
    "prompt_tokens completion_tokens total_tokens model refusal reasoning reasoning_content "
    "logprobs token logprob tokens token_logprobs id data errors line request_counts total "
    "completed failed metadata output_file_id error_file_id stop_reason stop_details explanation "
    "thinking input_tokens output_tokens response status_code body custom_id created_at",
)


def nested(value: object, depth: int) -> object:
    """A value in so many lists."""
    for _ in range(depth):
        value = [value]
    return value


LEAF = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(10**300, 10**400)
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(["stop", "error", HALF, "2" * 400, "text", "a\nb"])
)
DEEP = st.builds(nested, LEAF, st.sampled_from([5, 250, 700, 960, 990]))
ANY = st.recursive(
    LEAF | DEEP,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=5), inner, max_size=6)
    ),
    max_leaves=20,
)


def table(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """A table with some of the fields, each as it may be or as it may not."""
    return st.fixed_dictionaries(
        {}, optional={name: value | LEAF | DEEP for name, value in fields.items()}
    )


PARTS = st.lists(table(type=st.sampled_from(["text", "thinking"]), text=LEAF, thinking=LEAF))
USAGE = table(
    prompt_tokens=LEAF,
    completion_tokens=LEAF,
    total_tokens=LEAF,
    input_tokens=LEAF,
    output_tokens=LEAF,
)
LOGPROBS = table(
    content=st.lists(table(token=LEAF, logprob=LEAF)),
    tokens=st.lists(LEAF),
    token_logprobs=st.lists(LEAF),
)
CHOICE = table(
    message=table(content=PARTS, refusal=LEAF, reasoning=LEAF),
    text=LEAF,
    finish_reason=LEAF,
    logprobs=LOGPROBS,
    error=ANY,
)
REPLY = ANY | table(
    choices=st.lists(CHOICE, min_size=1),
    usage=USAGE,
    model=LEAF,
    content=PARTS,
    stop_reason=LEAF,
    stop_details=table(explanation=LEAF),
)
BATCH = ANY | table(
    id=st.text(),
    status=st.text(),
    errors=table(data=st.lists(table(line=LEAF, message=LEAF, code=LEAF))),
    request_counts=table(total=LEAF, completed=LEAF, failed=LEAF),
    output_file_id=LEAF,
    metadata=ANY,
)
WAITS = (
    st.text(max_size=40)
    | st.floats().map(str)
    | st.sampled_from(["0", "1e999", "-1e999", "9" * 500, "1e308", "inf", "-nan", "٣", "1_0", "1h"])
    | st.builds(
        "{}{}{}{}".format,
        st.sampled_from(
            [
                *("Thu, 01 Jan 2026 00:00:00 ", "Fri, 31 Dec 9999 23:59:59 ", "1 Jan 1 0:0:0 "),
                *("2026-01-01T00:00:00", "9999-12-31T23:59:59.9", "0001-01-01T00:00:00"),
            ]
        ),
        st.sampled_from(["", "+", "-", "GMT", "Z", "+00:00", "-23:59"]),
        st.integers(min_value=0) | st.just(""),
        st.just(""),
    )
)
HEADERS = st.dictionaries(
    st.sampled_from(
        [
            *("Retry-After", "retry-after-ms", "x-ratelimit-remaining", "x-ratelimit-reset"),
            *("anthropic-ratelimit-x-remaining", "anthropic-ratelimit-x-reset", "Location"),
        ]
    ),
    WAITS,
)


def as_json(value: object) -> str:
    """A body; of what is nested too deeply for Python, one that is as well."""
    try:
        return json.dumps(value)
    except RecursionError:
        return "[" * 60_000


@MANY
@given(REPLY)
@example(
    {
        "choices": [
            {
                "message": {"content": HALF, "refusal": HALF, "reasoning": HALF},
                "finish_reason": HALF,
                "logprobs": {"content": [{"token": HALF, "logprob": -1.0}]},
            }
        ],
        "model": HALF,
    }
)
@example({"choices": [{"text": HALF, "finish_reason": HALF}], "model": HALF})
@example({"error": {"code": HALF, "message": HALF}})
@example({"choices": [{"error": {"code": HALF, "message": HALF}}]})
@example(
    {
        "content": [{"type": "text", "text": HALF}, {"type": "thinking", "thinking": HALF}],
        "stop_reason": HALF,
        "stop_details": {"explanation": HALF},
        "model": HALF,
    }
)
def test_replies(read: object) -> None:
    """Of OpenAI's form and Anthropic's; what is read of one is text and whole numbers that JSON can
    hold.
    """
    for reader in (form.reply_of, anthropic.reply_of):
        try:
            reply = reader(read)
        except ProviderError as error:
            assert "\n" not in str(error)  # noqa: PT017
            orjson.dumps(str(error))
            continue
        for text in (reply.text, reply.model, reply.refusal, reply.reasoning):
            assert text is None or isinstance(text, str)
        assert reply.usage is None or min(reply.usage.prompt_tokens, reply.usage.output_tokens) >= 0
        assert all(isinstance(token, str) for token, _ in reply.logprobs or ())
        orjson.dumps([reply.text, reply.model, reply.refusal, reply.reasoning, reply.finish_reason])
        orjson.dumps([token for token, _ in reply.logprobs or ()])


@MANY
@given(st.binary() | REPLY.map(lambda value: as_json(value).encode()))
@example(b'"\\ud83d')
def test_bodies(content: bytes) -> None:
    """Of any bytes."""
    try:
        bodies.read_json(content)
    except ProviderError as error:
        assert "not JSON" in str(error)  # noqa: PT017
        orjson.dumps(str(error))


@MANY
@given(
    st.integers(100, 599),
    st.text() | REPLY.map(as_json),
    HEADERS,
)
@example(400, as_json({"error": {"code": HALF, "message": f"{HALF} is no text"}}), {})
@example(500, HALF, {})
@example(302, "", {"Location": f"http://{HALF}"})
def test_errors(status: int, body: str, headers: dict[str, str]) -> None:
    """Of any status, body and headers; one line, and never too long."""
    error = error_of(status, body, headers)
    assert isinstance(error, ProviderError)
    assert len(str(error)) < 1000
    orjson.dumps(str(error))
    refused_parameters(body, ["seed", "max_tokens", "(["])


@MANY
@given(HEADERS)
def test_waits(headers: dict[str, str]) -> None:
    """None, or a time that can be waited for."""
    wait_s = retry_after_s(headers)
    assert wait_s is None or 0 <= wait_s <= 1e10


@MANY
@given(ANY | table(response=table(status_code=LEAF, body=REPLY), error=ANY))
@example({"error": {"code": HALF, "message": HALF}})
@example({"error": HALF})
@example({"response": {"status_code": 400, "body": {"error": {"message": HALF}}}})
@example({"response": {"status_code": 200, "body": {"choices": [{"text": HALF}], "model": HALF}}})
def test_lines_of_batches(line: object) -> None:
    """Of any object."""
    form = open_batch_form(parse_model("gpt-4o"), ModelSettings("gpt-4o"))
    if isinstance(line, dict):
        try:
            reply = form.reply(line)
        except ProviderError as error:
            assert len(str(error)) < 1000  # noqa: PT017
            orjson.dumps(str(error))
        else:
            orjson.dumps([reply.text, reply.model])


@MANY
@given(BATCH)
@example({"id": "0", "status": HALF})
@example({"id": HALF, "status": "completed"})
@example({"id": "0", "status": "failed", "errors": {"data": [{"code": HALF, "message": HALF}]}})
@example({"id": "0", "status": "failed", "errors": {"data": [{"line": HALF, "message": ""}]}})
@example({"id": "0", "status": "completed", "output_file_id": HALF, "error_file_id": HALF})
def test_states_of_batches(read: object) -> None:
    """Of any object; what is known of a batch can be kept."""
    try:
        state = batch._state(read)
    except ProviderError:
        return
    assert state.id
    assert all(isinstance(line, str) for line in state.problems)
    orjson.dumps([state.id, state.status, state.output_file, state.error_file, state.problems])


@pytest.mark.parametrize("error", [SetupError, BadRequestError, BadReplyError])
def test_messages(error: type[ProviderError]) -> None:
    """Half a character in a message is shown as U+FFFD; two halves that meet are one character."""
    assert str(error(f"a {HALF} b")) == "a \ufffd b"
    assert str(error(f"{HALF}\ude00")) == "\U0001f600"


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"prompt_tokens": 1, "completion_tokens": 2}, Usage(1, 2)),
        ({"prompt_tokens": True, "completion_tokens": 2}, None),
        ({"prompt_tokens": -1, "completion_tokens": 2}, None),
        ({"prompt_tokens": 1.5, "completion_tokens": 2}, None),
        ({"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": -5}, Usage(1, 2)),
        ([], None),
    ],
)
def test_usage(usage: object, expected: Usage | None) -> None:
    """Whole numbers from 0 on, or nothing."""
    assert form._usage(usage) == expected
    if isinstance(usage, dict):
        renamed = dict(zip(("input_tokens", "output_tokens"), usage.values(), strict=False))
        no_cache = expected and replace(expected, cache_read_tokens=0, cache_write_tokens=0)
        assert anthropic._usage(renamed) == no_cache
