"""What a row says in the form of another tool, and the sample that it gives."""

from __future__ import annotations

import re

import pytest

from eyechart.harness.satellites.recorded.fields import RowError, RowMark, integer, recorded_reply
from eyechart.harness.satellites.recorded.forms import fields_of
from eyechart.harness.satellites.recorded.samples import SampleFinder
from eyechart.harness.task.catalogue import built_in_files, open_task
from eyechart.providers.base import ModelSettings
from eyechart.providers.batches import BatchForm
from eyechart.providers.registry.model_name import parse_model
from eyechart.providers.registry.registry import open_batch_form


def _no_batch() -> BatchForm:
    raise AssertionError("no row has the form of OpenAI's batches")


def test_results_of_messages_are_read_whole() -> None:
    """Usage with what came from caches, thinking, and why there is no message."""
    usage = {"input_tokens": 5, "cache_read_input_tokens": 6, "output_tokens": 4}
    parts = [{"type": "thinking", "thinking": "so"}, {"type": "text", "text": "3"}]
    message = {"content": parts, "stop_reason": "max_tokens", "model": "c", "usage": usage}
    fields = fields_of({"custom_id": "a", "result": {"message": message}}, _no_batch, {})
    reply = recorded_reply(fields, (), RowMark(0, "", ""))
    assert (reply.reply, reply.finish_reason, reply.reasoning) == ("3", "length", "so")
    assert (reply.prompt_tokens, reply.output_tokens, reply.item) == (11, 4, "a")
    for result, why in (
        ({"type": "expired"}, "expired"),
        ({"error": {"type": "x"}}, '{"type":"x"}'),
    ):
        failed = fields_of({"custom_id": "a", "result": result}, _no_batch, {})
        assert recorded_reply(failed, (), RowMark(0, "", "")).error == why
    odd = {"content": "3", "usage": [3]}
    assert fields_of({"custom_id": "a", "result": {"message": odd}}, _no_batch, {})["reply"] == ""


def test_a_batch_of_another_endpoint_is_refused_by_name() -> None:
    """A row whose response has another form is no failed request."""
    form = open_batch_form(parse_model("openai/x"), ModelSettings("x"))
    row = {"custom_id": "a", "response": {"status_code": 200, "body": {"object": "list"}}}
    with pytest.raises(RowError, match=r"is not of /v1/chat/completions.*has no choices"):
        fields_of(row, lambda: form, {})


@pytest.mark.parametrize(
    ("task", "target", "length", "why"),
    [
        ("counting/bernoulli", "-3", "5", "is -3, and no sample of counting/bernoulli is below 0"),
        ("counting/bernoulli", 6, "5", "6 is more than its length 5"),
        ("counting/bernoulli", "five", "5", "'five' is no integer"),
        ("counting/bernoulli", [5], "5", "[5] is no integer"),
        ("counting/bernoulli", 5, "0", "5 is more than its length 0"),
        ("memory/running_sum", "\N{MINUS SIGN}212.0", "5", None),
        ("spelling/letters_in_words", "6", "3", None),
        ("counting/bernoulli", "0", "5", None),
    ],
)
def test_targets_that_no_sample_has(
    task: str, target: object, length: str, why: str | None
) -> None:
    """As the task's own samples show: none of counts is below 0 or beyond the row."""
    opened = open_task(task, built_in_files()[task])
    fixed = {axis: next(iter(of.values)) for axis, of in opened.spec.axes.items()}
    values = {"reply": "3", "target": target, "length": length}
    reply = recorded_reply(values, (), RowMark(0, "", ""))
    if why is None:
        assert SampleFinder(opened, fixed).of(reply).target == integer(target)
        return
    with pytest.raises(RowError, match=re.escape(why)):
        SampleFinder(opened, fixed).of(reply)
