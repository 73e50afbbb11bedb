"""Reads the fields of rows in the forms of other tools: batches, and lm-eval."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from eyechart.harness.satellites.recorded.fields import DRAW, Row, RowError, prompt_text
from eyechart.providers.base import BadReplyError, ProviderError
from eyechart.providers.batches import BatchForm


def is_request(row: Row) -> bool:
    """Whether a row is a request of OpenAI's Batch form, and no reply."""
    return "custom_id" in row and "body" in row and not row.keys() & {"response", "error"}


def prompt_of_request(row: Row) -> str | None:
    """The prompt of a request, if it is a text; for a chat, the last message of the user."""
    body = row["body"]
    if not isinstance(body, dict):
        return None
    given = next((body[name] for name in ("messages", "prompt", "input") if name in body), None)
    return None if given is None else prompt_text(given)


def one_reply_each(row: Row) -> Iterator[Row]:
    """The row; of lm-eval's `repeats`, which are several replies to one prompt, a row for each."""
    resps = row.get("resps") if "doc_id" in row else None
    of_one = resps[0] if isinstance(resps, list) and len(resps) == 1 else None
    if not isinstance(of_one, list) or len(of_one) < 2:  # noqa: PLR2004  one reply
        yield row
        return
    for number, reply in enumerate(of_one, start=1):
        yield {**row, "resps": [[reply]], DRAW: number}


def fields_of(row: Row, batch_form: Callable[[], BatchForm], prompts: Mapping[str, str]) -> Row:
    """Field -> value of a row in the form of another tool; empty for other rows. `prompts` has the
    prompts of batch requests, by custom_id.

    Raises:
        RowError: the row has several replies.
    """
    if "custom_id" in row and row.keys() & {"response", "error"}:
        return _of_batch(row, batch_form(), prompts)
    if "custom_id" in row and isinstance(row.get("result"), dict):
        return _of_message_batch(row)
    if "doc_id" in row and row.keys() & {"resps", "filtered_resps"}:
        return _of_lm_eval(row)
    return {}


def _of_batch(row: Row, form: BatchForm, prompts: Mapping[str, str]) -> Row:
    custom_id = str(row["custom_id"])
    sample = {"id": custom_id, "item": custom_id, "prompt": prompts.get(custom_id)}
    try:
        reply = form.reply(row)
    except BadReplyError as error:
        raise RowError(
            "the row's response is not of /v1/chat/completions, /v1/completions or /v1/responses: "
            f"{error}"
        ) from None
    except ProviderError as error:
        return {**sample, "error": str(error) or type(error).__name__}
    usage = reply.usage
    return {
        **sample,
        "reply": reply.text,
        "finish_reason": reply.finish_reason,
        "refusal": reply.refusal,
        "reasoning": reply.reasoning,
        "model": reply.model,
        "prompt_tokens": None if usage is None else usage.prompt_tokens,
        "output_tokens": None if usage is None else usage.output_tokens,
        "thought_tokens": None if usage is None else usage.thought_tokens,
    }


def _of_message_batch(row: Row) -> Row:
    """A line of results of Anthropic's Message Batches."""
    result, custom_id = row["result"], str(row["custom_id"])
    sample = {"id": custom_id, "item": custom_id}
    message = result.get("message")
    if not isinstance(message, dict):
        return {**sample, "error": result.get("error") or str(result.get("type", "no message"))}
    usage = message["usage"] if isinstance(message.get("usage"), dict) else {}
    names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    counts = [count for name in names if isinstance(count := usage.get(name), int)]
    return {
        **sample,
        "reply": _texts(message, "text"),
        "finish_reason": message.get("stop_reason"),
        "reasoning": _texts(message, "thinking") or None,
        "model": message.get("model"),
        "prompt_tokens": sum(counts) if counts else None,
        "output_tokens": usage.get("output_tokens"),
    }


def _texts(message: Row, kind: str) -> str:
    """The texts of all parts of a message that are of one kind, joined."""
    parts = (part for part in _flat(message.get("content")) if isinstance(part, dict))
    return "".join(str(part.get(kind, "")) for part in parts if part.get("type") == kind)


def _of_lm_eval(row: Row) -> Row:
    """A line of `samples_TASK.jsonl`; documents that Eyechart exported have the sample's id."""
    doc = row.get("doc")
    replies = _flat(row.get("resps") or row.get("filtered_resps"))
    if len(replies) != 1 or not isinstance(replies[0], str):
        texts = sum(isinstance(reply, str) for reply in replies)
        raise RowError(f"the row has {texts} replies that are texts, where a sample takes one")
    return {
        "reply": replies[0],
        "id": doc.get("id") if isinstance(doc, dict) else None,
        "item": row["doc_id"],
        "prompt": _lm_eval_prompt(row.get("arguments")),
        "target": row.get("target"),
        DRAW: row.get(DRAW, 1),
    }


def _flat(value: Any) -> list[Any]:
    if not isinstance(value, list):
        return [] if value is None else [value]
    return [one for part in value for one in _flat(part)]


def _lm_eval_prompt(arguments: Any) -> str | None:
    """The prompt of the only request: the first of its arguments."""
    if isinstance(arguments, dict):
        arguments = next(iter(arguments.values()), None)
        first = arguments.get("arg_0") if isinstance(arguments, dict) else None
    else:
        first = arguments[0] if isinstance(arguments, list) and arguments else None
        first = first[0] if isinstance(first, list) and first else first
    return None if first is None else prompt_text(first)
