"""What HTTP errors mean for a run."""

from __future__ import annotations

import json
import time

import pytest

from eyechart.providers.base import (
    AuthError,
    BadReplyError,
    BadRequestError,
    OverloadedError,
    PromptOverflowError,
    RateLimitError,
    RefusedError,
    ServerFaultError,
    StopRunError,
    TransientError,
    UnknownModelError,
)
from eyechart.providers.http.errors import error_of, refused_parameters, retry_after_s


def body(message: str, **more: str) -> str:
    return json.dumps({"error": {"message": message, **more}})


@pytest.mark.parametrize(
    ("status", "text", "kind"),
    [
        (401, body("Incorrect API key provided"), AuthError),
        (403, body("Country not supported"), AuthError),
        (402, body("Insufficient Balance"), StopRunError),
        (429, body("You exceeded your current quota", code="insufficient_quota"), StopRunError),
        (429, body("Rate limit reached for gpt-4o"), RateLimitError),
        (429, body("Limit 3/min; add a payment method at /account/billing"), RateLimitError),
        (429, body("You exceeded your current quota. Please retry in 2s."), RateLimitError),
        (429, body("You exceeded your current quota, please check your plan"), StopRunError),
        (429, json.dumps({"message": "Insufficient balance", "code": 1113}), StopRunError),
        (429, body("Your account is out of credits"), StopRunError),
        (429, body("You exceeded your current quota of 3 requests per minute"), RateLimitError),
        (400, body("账户余额不足"), StopRunError),
        (404, body("The model `gpt-9` does not exist", code="model_not_found"), UnknownModelError),
        (400, body("model foo not found"), UnknownModelError),
        (400, body("This model's maximum context length is 4096 tokens."), PromptOverflowError),
        (400, body("too long", code="context_length_exceeded"), PromptOverflowError),
        (400, body("prompt is too long: 210000 tokens > 200000 maximum"), PromptOverflowError),
        (413, "Request Entity Too Large", PromptOverflowError),
        (400, body("blocked", code="content_filter"), RefusedError),
        (403, body("Input was flagged", flagged_input="x"), RefusedError),
        (403, body("Content violates usage guidelines. Failed check: SAFETY"), RefusedError),
        (403, body("Prompt blocked by guardrail"), RefusedError),
        (403, json.dumps({"error": "Content violates usage guidelines."}), RefusedError),
        (
            400,
            body("input length and `max_tokens` exceed context limit: 9 > 8"),
            PromptOverflowError,
        ),
        (403, body("Your account was suspended for violating our terms"), AuthError),
        (403, "<html>Sorry, you have been blocked</html>", AuthError),
        (403, "<html>This content is blocked</html>", AuthError),
        (403, body("Your account was suspended: content policy violations"), AuthError),
        (403, body("access to this content is blocked in your region"), AuthError),
        (403, body("Content-Type header of the request was blocked"), AuthError),
        (401, body("Your prompt was blocked because the key is invalid"), AuthError),
        (403, body("no", code="usage_policy_violation"), RefusedError),
        (400, body("Invalid input: 'seed' violates the schema"), BadRequestError),
        (400, body("Missing parameter: 'messages'", code="invalid_prompt"), BadRequestError),
        (400, body("Your account was flagged as suspicious"), BadRequestError),
        (400, body("The input may contain sensitive information."), RefusedError),
        (400, body("`max_tokens` must be less than the `context_window`"), BadRequestError),
        (400, body("max_tokens (9000) exceeds the model's maximum output"), BadRequestError),
        (400, body("max_tokens exceeds the model token limit"), BadRequestError),
        (400, body("Content Exists Risk"), RefusedError),
        (400, body("Invalid prompt: your prompt was flagged", code="invalid_prompt"), RefusedError),
        (400, body("Input data may be unsafe", code="data_inspection_failed"), RefusedError),
        (400, body("Input data may be unsafe", code="DataInspectionFailed"), RefusedError),
        (400, body("unsafe", code="1301"), RefusedError),
        (400, body("maximum prompt length is 131072 but yours has 200000"), PromptOverflowError),
        (422, body("`inputs` tokens + `max_new_tokens` must be <= 8193"), PromptOverflowError),
        (422, body("`inputs` must have less than 4095 tokens"), PromptOverflowError),
        (400, body("Range of input length should be [1, 30720]"), PromptOverflowError),
        (400, body("Your request exceeded model token limit: 8192"), PromptOverflowError),
        (400, body("Please reduce the length of the messages"), PromptOverflowError),
        (400, body("temperature must be a number"), BadRequestError),
        (400, body("API key not valid. Please pass one.", status="INVALID_ARGUMENT"), AuthError),
        (400, body("Incorrect API key provided"), AuthError),
        (
            400,
            body("'max_tokens' is too large: 50000. This model's maximum context length is 4096"),
            BadRequestError,
        ),
        (413, body("Request too large: tokens per minute (TPM): Limit 6000"), BadRequestError),
        (400, body("Model m: unknown parameter 'seed'"), BadRequestError),
        (400, body("The model `m` does not support this; unknown field seed"), BadRequestError),
        (400, body("The model `gpt-4.1:x` does not exist"), UnknownModelError),
        (400, body("Unsupported parameter: 'safety_identifier'"), BadRequestError),
        (400, body("rejected as a result of our safety system"), RefusedError),
        (422, json.dumps({"detail": [{"msg": "field required"}]}), BadRequestError),
        (408, "", ServerFaultError),
        (409, "", ServerFaultError),
        (500, "<html>oops</html>", ServerFaultError),
        (503, body("the engine is overloaded"), OverloadedError),
        (498, body("capacity_exceeded"), OverloadedError),
        (529, body("Overloaded", type="overloaded_error"), OverloadedError),
    ],
)
def test_each_status_has_its_consequence(status: int, text: str, kind: type[Exception]) -> None:
    """What stops the run, costs a sample, or may be asked again, by status and body."""
    assert type(error_of(status, text, {})) is kind


def test_a_key_in_the_body_is_not_repeated() -> None:
    """Servers quote the key they refuse; we do not."""
    key = "sk-planted-123"
    error = error_of(401, body(f"Incorrect API key provided: {key}"), {}, secret=key)
    assert "planted" not in str(error)
    assert "***" in str(error)


@pytest.mark.parametrize(
    ("headers", "wait_s"),
    [
        ({"Retry-After": "25"}, 25),
        ({"retry-after": "0.5"}, 0.5),
        ({"Retry-After": "Thu, 01 Jan 1970 00:02:00 GMT"}, 20),
        ({"Retry-After": "Thu, 01 Jan 1970 00:00:00 GMT"}, None),
        ({"Retry-After": "0"}, 0),
        ({"Retry-After": "soon"}, None),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "1.2.3s"}, None),
        ({"Retry-After": "nan"}, None),
        ({"Retry-After": "inf"}, None),
        ({"Retry-After": "1e999"}, 1e10),
        ({"Retry-After": "9" * 400}, 1e10),
        ({"retry-after-ms": "1e999"}, 1e10),
        ({"retry-after-ms": "soon", "retry-after": "9"}, 9),
        ({"Retry-After": "Thu, 01 Jan 2026 00:00:00 +99999999999999999999"}, None),
        ({"Retry-After": "Fri, 31 Dec 9999 23:59:59 -2359"}, 1e10),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "0001-01-01T00:00:00+23:59"}, 0),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1e999"}, 1e10),
        ({"Retry-After": "-3"}, None),
        ({"retry-after-ms": "-3"}, None),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "1m2s"}, 62),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "120ms"}, 0.12),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1700000000500"}, 1.7e9 - 99.5),
        (
            {
                "anthropic-ratelimit-tokens-remaining": "0",
                "anthropic-ratelimit-tokens-reset": "1970-01-01T00:02:00Z",
            },
            20,
        ),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "soon"}, None),
        ({"x-ratelimit-remaining-tokens": "7", "x-ratelimit-reset-tokens": "9s"}, None),
        ({}, None),
    ],
)
def test_servers_say_when_to_come_back(headers: dict[str, str], wait_s: float | None) -> None:
    """Seconds, dates, milliseconds and the vendors' reset headers are all read."""
    assert retry_after_s(headers, now_s=100) == (None if wait_s is None else pytest.approx(wait_s))


def test_the_wait_travels_with_the_error() -> None:
    """The runner learns it from the error."""
    error = error_of(429, "", {"Retry-After": "7"})
    assert isinstance(error, TransientError)
    assert error.retry_after_s == 7


@pytest.mark.parametrize(
    ("text", "names", "is_unknown"),
    [
        (
            body("Unsupported parameter: 'temperature' is not supported", param="temperature"),
            ["temperature"],
            True,
        ),
        (body("Unsupported parameter: 'max_tokens' is not supported."), ["max_tokens"], True),
        (body("Unrecognized request argument supplied", param="seed"), ["seed"], True),
        (body("Unrecognized request arguments supplied: seed, top_p"), ["seed", "top_p"], True),
        (body("'top_k' is unknown", param="top_k"), [], True),
        (body("'temperature' must be at most 2"), ["temperature"], False),
        (body("`temperature` is deprecated for this model."), ["temperature"], True),
        (body("invalid temperature: only 1 is allowed for this model"), ["temperature"], False),
        (
            body("gpt-5 models don't support temperature=0.0. Only temperature=1 is supported"),
            ["temperature"],
            True,
        ),
        (body("`temperature` must be strictly positive"), ["temperature"], False),
        (body("temperature must be in (0,1]"), ["temperature"], False),
        (body("temperature参数非法。请检查文档。"), ["temperature"], False),
        (
            body("`temperature` and `top_p` cannot both be specified"),
            ["temperature", "top_p"],
            False,
        ),
        (
            json.dumps({"detail": "body -> top_p\n  Extra inputs are not permitted"}),
            ["top_p"],
            True,
        ),
        (body("the seed of the trouble is elsewhere"), [], False),
        (body("invalid request", param="messages") + " temperature", [], False),
        (json.dumps({"error": "no: {'messages': [], 'temperature': 0}"}), [], False),
        (body("the context window is exceeded; temperature was 0"), [], False),
        ("not json", [], False),
        ("[]", [], False),
    ],
)
def test_a_refused_parameter_is_named(text: str, names: list[str], is_unknown: bool) -> None:
    """Only a parameter that we sent, in the words of any vendor or gateway."""
    sent = ("temperature", "max_tokens", "seed", "top_p")
    assert refused_parameters(text, sent) == (names, is_unknown)


def test_a_parameter_that_was_taken_is_refused_by_its_name_in_quotes_alone() -> None:
    """A router may ask another server; an error of sampling is none of the parameter."""
    for said, names in (
        ("'top_p' is not supported", ["top_p"]),
        ("'top_p' must be 1", []),
        ("unknown error while sampling with top_p", []),
    ):
        assert refused_parameters(body(said), ["top_p"], ["top_p"])[0] == names


def test_a_wait_may_stand_in_the_body() -> None:
    """As Gemini has it; a header wins over it."""
    text = json.dumps({"error": {"code": 429, "details": [{"retryDelay": "21.5s"}]}})
    for headers, wait_s in (({}, 21.5), ({"Retry-After": "3"}, 3)):
        error = error_of(429, text, headers)
        assert isinstance(error, RateLimitError)
        assert error.retry_after_s == wait_s


@pytest.mark.parametrize("status", [400, 429, 500, 503])
@pytest.mark.parametrize(
    "text",
    [
        "[" * 60_000,
        '{"error": ' + "[" * 900 + "]" * 900 + "}",
        '{"error": {"message": ' + "[" * 900 + "]" * 900 + ', "code": ' + "{}}}",
        '{"error": {"message": ' + "9" * 4000 + "}}",
        '{"error": ' + "9" * 5000 + "}",
    ],
    ids=["torn", "nested", "nested message", "long number", "no number"],
)
def test_json_that_python_cannot_hold_is_an_error_like_others(status: int, text: str) -> None:
    """Its status says what it means."""
    known = {400: BadRequestError, 429: RateLimitError, 500: ServerFaultError, 503: OverloadedError}
    assert type(error_of(status, text, {})) is known[status]


def test_a_wait_in_a_body_has_an_end() -> None:
    """Whatever number of digits it has."""
    error = error_of(429, f"Please retry in {'9' * 500}s.", {})
    assert isinstance(error, RateLimitError)
    assert error.retry_after_s == 1e10


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_says_where_to(status: int) -> None:
    """Without what else is in the address."""
    to = {"Location": "https://user:planted-1@other.example/v1?key=planted-2"}
    error = error_of(status, "<html>moved</html>", to)
    assert type(error) is BadReplyError
    assert "'https://***@other.example/v1?***'" in str(error)
    assert "planted" not in str(error)
    assert type(error_of(status, "", {})) is BadReplyError


PIECES = (
    *("model ", "max_x_", "max_a_tokens", "prompt ", "input ", "content ", "api key ", "violat"),
    *('"param":[', '"param":"', "retry in 1", "context", "?key", "://a", "basic ", "\\", "'", "1"),
    *("unknown ", "{", "[", " "),
)


@pytest.mark.parametrize("status", [400, 429])
@pytest.mark.parametrize("piece", PIECES)
def test_long_bodies_take_no_time(status: int, piece: str) -> None:
    """Of a long body no more is looked at than 64 KiB, and that at once."""
    text = piece * (2**18 // len(piece))
    began_s = time.process_time()
    error_of(status, text, {})
    if status == 400:  # it goes by the text alone
        refused_parameters(f"unknown {text}", ["seed"])
    assert time.process_time() - began_s < 2
