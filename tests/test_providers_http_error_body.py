"""What a reply of status 200 is that is an error, in the forms of servers and gateways."""

from __future__ import annotations

from typing import Any

import pytest

from eyechart.providers import anthropic
from eyechart.providers.base import (
    AuthError,
    BadReplyError,
    BadRequestError,
    OverloadedError,
    PromptOverflowError,
    RateLimitError,
    ServerFaultError,
    StopRunError,
    UnknownModelError,
)
from eyechart.providers.openai import form

LONG = "This model's maximum context length is 4096 tokens."
SAID = "it went wrong"


@pytest.mark.parametrize(
    ("read", "kind"),
    [
        ({"object": "error", "message": LONG, "code": 400}, PromptOverflowError),
        ({"object": "error", "message": SAID, "type": "BadRequestError"}, BadRequestError),
        ({"error": SAID}, BadReplyError),
        ({"error": {"message": SAID}}, BadReplyError),
        ({"error": {"message": SAID, "code": "400"}}, BadRequestError),
        ({"error": {"message": SAID, "code": 503}}, OverloadedError),
        ({"error": {"message": SAID, "status": "INVALID_ARGUMENT"}}, BadRequestError),
        ({"error": {"message": SAID, "type": "invalid_request_error"}}, BadRequestError),
        ([{"error": {"message": SAID, "code": 400}}], BadRequestError),
        ({"error": True, "message": SAID, "status_code": 422}, BadRequestError),
        (
            {"type": "error", "error": {"type": "overloaded_error", "message": SAID}},
            OverloadedError,
        ),
        ({"detail": SAID}, BadReplyError),
        ({"detail": [{"loc": ["body"], "msg": SAID}]}, BadReplyError),
        ({"errors": [{"code": 400, "message": SAID}], "success": False}, BadRequestError),
        ({"errors": [SAID]}, BadReplyError),
        ({"message": SAID, "code": "rate_limit_exceeded"}, RateLimitError),
        ({"message": SAID}, BadReplyError),
        ({"code": 404, "msg": SAID}, UnknownModelError),
        ({"code": 20012, "msg": SAID, "data": None}, BadReplyError),
        ({"success": False, "error_msg": SAID}, BadReplyError),
        ({"base_resp": {"status_code": 1004, "status_msg": SAID}, "choices": None}, BadReplyError),
        ({"statusCode": 401, "message": SAID}, AuthError),
        ({"code": 402, "error_message": SAID}, StopRunError),
        ({"choices": [{"error": {"message": SAID, "code": 500}}]}, ServerFaultError),
        ({"status": "error", "errors": {"reason": SAID, "code": 429}}, RateLimitError),
    ],
)
def test_the_servers_sentence_and_code_count(read: Any, kind: type[Exception]) -> None:
    """A code is a number, a number as text, or a word; one of 4xx is not asked again."""
    with pytest.raises(kind) as caught:
        form.reply_of(read)
    assert type(caught.value) is kind
    assert SAID in str(caught.value) or LONG in str(caught.value)
    if "choices" not in read:
        with pytest.raises(kind):
            anthropic.reply_of(read)


@pytest.mark.parametrize(
    "read",
    [{"result": "x" * 999, "key": 1}, {"choices": []}, ["x"], "x", {"message": {"content": "x"}}],
)
def test_an_unknown_form_is_shown(read: Any) -> None:
    """Its beginning, so that the user can see what answered; without keys."""
    with pytest.raises(BadReplyError, match=r"the reply .*; it begins '.*(x|choices)") as caught:
        form.reply_of(read)
    assert len(str(caught.value)) < 300
    with pytest.raises(BadReplyError) as caught:
        form.reply_of({"url": "http://user:pa55word@host", "result": "x"})
    assert "pa55word" not in str(caught.value)
