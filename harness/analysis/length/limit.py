"""What limits an effective length: sight, or something else that makes replies fail."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from eyechart.harness.score.outcomes import Cause

MIXED = "mixed"
"""Several causes together limit the length."""
LENGTHS = "lengths"
"""The longest line asked limits it: the accuracy never falls below the threshold."""
LIMITS = (*(cause.value for cause in Cause), MIXED, LENGTHS)
OF_MISREAD = (
    "change 'answer' in the task file, which may have a list of phrases, 'case: false' or another "
    "type"
)
"""The remedy for wrong replies that have the right answer in them."""
RANKED = (Cause.SIGHT.value, LENGTHS)
"""A length that is limited by one of these is a property of the model."""


@dataclass(frozen=True, slots=True)
class Limit:
    by: str = Cause.SIGHT.value
    """One of `LIMITS`."""
    failing: int = 0
    """Replies that are not correct, up to the length that the other readings allow."""
    up_to: int | None = None
    """That length; `None` where all lengths asked are counted."""
    causes: Mapping[Cause, int] = field(default_factory=dict)
    """How many of them failed for each cause other than sight."""
    remedies: tuple[str, ...] = ()
    """What the user can do; nothing for a ranked length, and for recorded replies only what is in
    the task file."""
    misread: int = 0
    """Replies of the cause `form` that were read as wrong and have the right answer in them."""

    @property
    def is_ranked(self) -> bool:
        """Whether the length is a property of the model."""
        return self.by in RANKED

    @property
    def said(self) -> str:
        return "several causes" if self.by == MIXED else self.by

    @property
    def is_misread(self) -> bool:
        """Whether most replies of the cause `form` were read as wrong answers."""
        return 2 * self.misread > self.causes.get(Cause.FORM, 0)

    @property
    def others(self) -> list[Cause]:
        """The causes for which something else than the task file may help."""
        return [one for one in self.causes if one is not Cause.FORM or not self.is_misread]

    def happened(self, cause: Cause) -> str:
        """What happened to the replies that failed for a cause."""
        is_misread = cause is Cause.FORM and self.is_misread
        return "wrong with the right answer in them" if is_misread else cause.said

    @property
    def fact(self) -> str:
        """`22 of 30 failing replies up to length 40 were cut off`; empty for a ranked length."""
        if self.is_ranked:
            return ""
        if self.by == Cause.ERROR:
            return f"{self.failing:,} of the longer rows got no reply"
        (first, count), *others = self.causes.items()
        more = "".join(f", {number:,} {self.happened(cause)}" for cause, number in others)
        where = "" if self.up_to is None else f" up to length {self.up_to:,}"
        # where a prompt was too long, there is no reply
        one, several = (
            ("sample", "samples") if Cause.WINDOW in self.causes else ("reply", "replies")
        )
        if self.failing == 1:
            return f"the only failing {one}{where} was {self.happened(first)}"
        of = f"{count:,} of" if count < self.failing else "all"
        are = "was" if count == 1 and not others else "were"
        return f"{of} {self.failing:,} failing {several}{where} {are} {self.happened(first)}{more}"
