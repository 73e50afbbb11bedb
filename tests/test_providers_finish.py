"""Why replies ended, in the words of vendors and servers."""

from __future__ import annotations

import pytest

from eyechart.providers.base import OverloadedError, ServerFaultError, TransientError, Usage
from eyechart.providers.finish import finish_of


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("stop", "stop STOP Stop FinishReason.STOP FINISH_REASON_STOP eos eos_token EosToken"),
        ("stop", "end_turn END_TURN EndTurn stop_sequence stop-sequence stop_str eogToken word"),
        ("stop", "STOP_CRITERIA_MET COMPLETE completed FINISHED end_of_text endoftext im_end done"),
        ("length", "length LENGTH max_tokens MAX_TOKENS maxTokens max-tokens maxtokens MaxTokens"),
        ("length", "FinishReason.MAX_TOKENS FINISH_REASON_MAX_TOKENS stop_reason:max_tokens"),
        ("length", "max_new_tokens max_output_tokens model_length model_context_window_exceeded"),
        ("length", "incomplete incomplete:max_output_tokens token_limit limit stopped_limit"),
        ("length", "ERROR_LIMIT context context_length length_capped max_length repetition"),
        ("content_filter", "content_filter content-filter contentFilter CONTENT_FILTERED SAFETY"),
        ("content_filter", "RECITATION PROHIBITED_CONTENT BLOCKLIST SPII IMAGE_SAFETY LANGUAGE"),
        ("content_filter", "IMAGE_PROHIBITED_CONTENT MODEL_ARMOR refusal guardrail_intervened"),
        ("content_filter", "ERROR_TOXIC sensitive moderation FinishReason.SAFETY risk_control"),
        ("content_filter", "content_filter:PROHIBITED_CONTENT incomplete:content_filter"),
        ("other", "tool_calls TOOL_CALL tool_use function_call MALFORMED_FUNCTION_CALL pause_turn"),
        ("other", "UNEXPECTED_TOOL_CALL OTHER FINISH_REASON_UNSPECIFIED unknown null not_finished"),
    ],
)
def test_the_words_of_vendors(kind: str, words: str) -> None:
    """Whatever their case, the name of their type before them, and the signs between them."""
    assert {word: finish_of(word) for word in words.split()} == dict.fromkeys(words.split(), kind)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (OverloadedError, "insufficient_system_resource,overloaded,rate_limit_exceeded,PREEMPTED"),
        (ServerFaultError, "abort,aborted,ABORTED,cancelled,USER_CANCEL,network_error,failed"),
        (ServerFaultError, "error,ERROR,timeout,TIMEOUT,time_limit,server_error,interrupted"),
        (ServerFaultError, "connection_lost,FinishReason.ERROR,context canceled"),
        (ServerFaultError, "context deadline exceeded,Internal Server Error"),
        (ServerFaultError, "FinishReason.MALFORMED_RESPONSE"),
    ],
)
def test_a_reply_that_was_broken_off_is_none(kind: type[TransientError], words: str) -> None:
    """It may be asked for again, later where the server has too much to do, and what it took is
    charged.
    """
    used = Usage(9, 5)
    for word in words.split(","):
        with pytest.raises(kind, match=f"the server broke the reply off: '{word}'") as it:
            finish_of(word, used)
        assert it.value.usage == used


@pytest.mark.parametrize(
    ("given", "finish"),
    [
        (None, None),
        ("", None),
        ({"type": "length", "length": 20}, "length"),
        ({"type": "stop", "matched": "max"}, "stop"),
        ({"reason": "max_output_tokens"}, "length"),
        ("{'type': 'length', 'length': 20}", "length"),
        ({}, "other"),
        (3, "other"),
        (["stop"], "other"),
    ],
)
def test_what_is_no_word(given: object, finish: str | None) -> None:
    """SGLang has objects, and a file may have anything."""
    assert finish_of(given) == finish
