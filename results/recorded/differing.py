"""The replies that are judged otherwise here than their authors read them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from results.recorded.variants import Variant

ALONE = "cut off, a number alone"


@dataclass(frozen=True)
class Difference:
    """A reply that is judged otherwise here than the authors read it."""

    variant: Variant
    centre: int
    trial: int
    outcome: str
    answer: int | None

    @property
    def row(self) -> dict[str, Any]:
        """What was recorded."""
        return self.variant.rows[self.centre][self.trial]

    @property
    def text(self) -> str:
        """The reply."""
        return str(self.row["reply"])

    @property
    def kind(self) -> str:
        """The class of the reply, see `KINDS`."""
        if self.row["cut_off"]:
            return ALONE if self.text.strip().isdecimal() else "cut off"
        return WHOLE[self.row["model"]]

    @property
    def is_exact(self) -> bool:
        """Whether the authors' reading is the true count."""
        return bool(self.row["parsed_by_authors"] == self.row["expected"])


WHOLE = {
    "gemini-2.5-flash": "another subject",
    "deepseek/deepseek-r1": "another subject",
    "z-ai/glm-5.1": "noise",
    "deepseek/deepseek-chat": "corrects itself",
    "minimax/minimax-m2.7": "more after the number",
    "mistralai/mixtral-8x7b-instruct": "more after the number",
    "qwen/qwen3-235b-a22b": "a number without a space before it",
}
"""Model -> the class of its whole replies that are read otherwise; each of the 13 was looked at."""
KINDS = {
    "cut off": (
        "ours",
        (
            "The reply ends in the middle of counting or thinking. The last integer in it "
            "is where the "
            "count had come to, the number of a line, or part of a sum."
        ),
    ),
    ALONE: (
        "the authors",
        (
            "The reply is a number and nothing else, and its limit went into thinking that is not "
            "shown. By our rule a cut-off reply is read only behind the phrase of the "
            "answer; here that rule is more careful than it need be."
        ),
    ),
    "another subject": (
        "ours",
        (
            "The reply is about something else (advice on writing, other tasks of "
            "mathematics), and "
            "the integer comes from a formula or the number of a list item."
        ),
    ),
    "noise": ("ours", "Digits and signs without a sentence."),
    "corrects itself": (
        "neither",
        (
            "The reply gives a count, and a note that repeats it and rejects another one. "
            "The authors "
            "read the rejected count, because it stands last; our reading sees two numbers."
        ),
    ),
    "more after the number": (
        "the authors",
        (
            "The count stands alone on the first line, and a sentence or a program follows. Our "
            "reading takes the last line."
        ),
    ),
    "a number without a space before it": (
        "the authors",
        "The reply ends with the count, glued to the word before it.",
    ),
}
"""Class -> who reads it rightly, and what the replies are."""


def differences(found: Iterable[Variant]) -> list[Difference]:
    """Every reply that is judged otherwise."""
    return [
        Difference(variant, centre, trial, *judged)
        for variant in found
        for centre, trials in variant.outcomes.items()
        for trial, judged in trials.items()
        if judged[1] != variant.rows[centre][trial]["parsed_by_authors"]
    ]


def difference_rows(found: Sequence[Difference]) -> list[dict[str, Any]]:
    """The differing replies, without their texts."""
    return [
        {
            "set": one.row["set"],
            "model": one.row["model"],
            "writing": one.variant.writing,
            "centre": one.centre,
            "trial": one.trial,
            "true_count": one.row["expected"],
            "read_by_authors": one.row["parsed_by_authors"],
            "outcome_here": one.outcome,
            "class": one.kind,
            "right": KINDS[one.kind][0],
        }
        for one in found
    ]
