"""The verdict on a reply where nobody says how it ended.

Scoring as `bench` has it, copied from eyechart; these modules need Python alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .answer import PlainAnswerForm
from .extraction import extract
from .verdict import judge

if TYPE_CHECKING:
    from collections.abc import Mapping


def is_correct(doc: Mapping[str, Any], text: str) -> bool:
    """Whether `text` is the right reply to the sample `doc`.

    A reply of fewer bytes than it might have tokens was not cut off: a token has one byte at least.
    A longer one may have been, and lm-eval does not say; there only what follows the answer phrase
    counts, and it counts if it is right read as the end of a reply or as the place of a cut. What a
    text to be continued runs on with is left out first.
    """
    places = [place for stop in doc.get("stops") or () if (place := text.find(stop)) >= 0]
    text = text[: min(places, default=len(text))]
    answer = PlainAnswerForm(doc["answer"], doc["phrase"])
    ends = ["stop"]
    if not places and len(text.encode(errors="replace")) >= doc["budget"]:
        if not extract(text, answer).by_phrase:
            return False
        ends = ["stop", "length"]
    return any(
        judge(
            text=text,
            finish_reason=end,
            refusal=None,
            failure=None,
            target=doc["target"],
            answer=answer,
        ).outcome
        == "correct"
        for end in ends
    )
