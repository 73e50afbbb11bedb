"""The verdict on one sample, and how answers are compared with targets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from .outcomes import Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence

Target: TypeAlias = int | float | str


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of one sample."""

    outcome: Outcome
    answer: int | float | str | None = None
    """The answer that was read; `None` if the outcome is neither correct nor incorrect."""
    start: int = 0
    end: int = 0
    """The answer is `reply[start:end]`; 0, 0 if there is none."""
    signed_error: float | None = None
    """Integers and numbers: answer - target; an int for integers."""
    similarity: float | None = None
    """Texts and ordered lists: 1 - edit distance / length of the longer one, in words or items.
    Lists without order: shared items / length of the longer one."""
    first_divergence: int | None = None
    """Texts and ordered lists: index of the first word or item that differs, if one does."""
    ended: Literal["early", "late"] | None = None
    """Texts and lists: `early` with fewer words or items than the target, `late` with more."""
    why: str = ""
    """The reason, for an outcome other than correct and incorrect, or from a task's scorer."""

    @property
    def absolute_error(self) -> float | None:
        """Distance from the target, for integers and numbers."""
        return None if self.signed_error is None else abs(self.signed_error)


def right_or_wrong(*, right: bool) -> Outcome:
    return Outcome.CORRECT if right else Outcome.INCORRECT


def compare_parts(
    text: str, parts: Sequence[str], target: Sequence[str], start: int, end: int
) -> Verdict:
    """The verdict on `text`, by its words or items and those of the target."""
    if parts == target:
        return Verdict(Outcome.CORRECT, text, start, end, similarity=1.0)
    return Verdict(
        Outcome.INCORRECT,
        text,
        start,
        end,
        similarity=1 - edit_distance(parts, target) / max(len(parts), len(target)),
        first_divergence=_common_prefix(parts, target),
        ended=ended(parts, target),
    )


def most_similar(parts: Sequence[str], target: Sequence[str]) -> float:
    """The largest `similarity` that parts can have by those of them that the target has; fast."""
    known = set(target)
    both = min(sum(part in known for part in parts), len(target))
    return both / max(len(parts), len(target))


def ended(parts: Sequence[str], target: Sequence[str]) -> Literal["early", "late"] | None:
    """Whether `parts` are fewer or more than those of the target."""
    if len(parts) == len(target):
        return None
    return "early" if len(parts) < len(target) else "late"


def _common_prefix(left: Sequence[str], right: Sequence[str]) -> int:
    pairs = enumerate(zip(left, right, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(left), len(right)))


def edit_distance(left: Sequence[str], right: Sequence[str]) -> int:
    """Levenshtein's distance, in items.

    The bit-parallel algorithm of Myers (1999) as given by Hyyrö (2003): a column of the table is
    two integers with one bit for each row, so 10,000 words against 10,000 take 0.1 s. The common
    beginning and end are removed first.
    """
    start = _common_prefix(left, right)
    left, right = left[start:], right[start:]
    tail = _common_prefix(left[::-1], right[::-1])
    left, right = left[: len(left) - tail], right[: len(right) - tail]
    if len(left) > len(right):
        left, right = right, left
    if not left:
        return len(right)
    places: dict[str, int] = {}
    for row, item in enumerate(left):
        places[item] = places.get(item, 0) | 1 << row
    last_row = len(left) - 1
    every_row = (1 << len(left)) - 1
    rises, falls, distance = every_row, 0, len(left)
    for item in right:
        equal = places.get(item, 0)
        level = equal | falls
        diagonal = (((equal & rises) + rises) ^ rises) | equal
        up = falls | (every_row & ~(diagonal | rises))
        down = rises & diagonal
        distance += (up >> last_row & 1) - (down >> last_row & 1)
        up = (up << 1 | 1) & every_row
        down = down << 1 & every_row
        rises = down | (every_row & ~(level | up))
        falls = up & level
    return distance
