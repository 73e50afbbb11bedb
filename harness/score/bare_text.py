"""Scores replies for other engines, by the fields of an exported sample.

The same scoring as in `bench`, copied from eyechart; these modules need only Python.
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from .answer_type import PlainAnswerForm
from .answers import extract
from .judge import judge
from .outcomes import Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping


def outcome_of(
    doc: Mapping[str, Any], text: str, *, finish_reason: str = "stop", failure: str | None = None
) -> Outcome:
    """The outcome of a reply to the sample `doc`; `finish_reason` and `failure` as for `judge`."""
    return judge(
        text=text,
        finish_reason=finish_reason,
        refusal=None,
        failure=failure,
        target=doc["target"],
        answer=form_of(doc),
        accept=doc.get("accept") or (),
    ).outcome


def is_correct(doc: Mapping[str, Any], text: str) -> bool:
    """Whether `text` is a correct reply to the sample `doc`, where its finish reason is unknown.

    `text` is first cut at the first of the `stops` of `doc`. If it has none of them and at least as
    many bytes as its `budget` of tokens, it may have been cut off, since a token has at least one
    byte; lm-eval does not tell. Then only an answer after the answer phrase counts, and it is
    correct if it is so either as a complete or as a cut-off reply.
    """
    places = [place for stop in doc.get("stops") or () if (place := text.find(stop)) >= 0]
    text = text[: min(places, default=len(text))]
    ends = ["stop"]
    if not places and len(text.encode(errors="replace")) >= doc["budget"]:
        if not extract(text, form_of(doc)).by_phrase:
            return False
        ends = ["stop", "length"]
    return any(outcome_of(doc, text, finish_reason=end) is Outcome.CORRECT for end in ends)


def form_of(doc: Mapping[str, Any]) -> PlainAnswerForm:
    """The form of the answer of the sample `doc`."""
    given: dict[str, Any] = {field.name: doc.get(field.name) for field in fields(PlainAnswerForm)}
    lists = {name: tuple(value) for name, value in given.items() if isinstance(value, list)}
    phrase = (doc["phrase"],) if isinstance(doc["phrase"], str) else tuple(doc["phrase"])
    return PlainAnswerForm(**given | lists | {"type": doc["answer"], "phrase": phrase})
