"""How often a model is right at a length that the user names, from the fitted curve."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eyechart.harness.analysis.effective_length import EffectiveLength

AT_COLUMNS = ("at", "accuracy", "ci_low", "ci_high", "p_reaches_threshold", "limited_by")
_SURE = 0.99
"""A probability that is not told from 1."""


@dataclass(frozen=True, slots=True)
class AtLength:
    """The accuracy at one length under one condition."""

    length: int
    """Symbols, in the task's unit."""
    accuracy: float | None
    """Mean of the posterior: 0 to 1. `None` where the length lies outside the lengths asked."""
    accuracy_ci: tuple[float, float] | None
    """The 95 % interval."""
    reaches: float | None
    """Probability that the accuracy is at least the threshold: 0 to 1. `None` also where something
    else than sight limits the effective length."""
    limited_by: str = ""
    """What limits it then."""

    @property
    def columns(self) -> dict[str, float | int | str | None]:
        """Names and values, as in JSON."""
        ends = self.accuracy_ci or (None, None)
        values = (self.length, self.accuracy, *ends, self.reaches, self.limited_by)
        return dict(zip(AT_COLUMNS, values, strict=True))

    @property
    def text(self) -> str:
        """`93 (81–98)`, in percent, or a dash."""
        if self.accuracy is None or self.accuracy_ci is None:
            return "–"
        return "{:.0f} ({:.0f}–{:.0f})".format(
            *(100 * share for share in (self.accuracy, *self.accuracy_ci))
        )

    @property
    def reaches_text(self) -> str:
        """`0.97`, `> 0.99`, or a dash."""
        if self.reaches is None:
            return "–"
        if self.reaches > _SURE:
            return f"> {_SURE}"
        return f"< {1 - _SURE:.2f}" if self.reaches < 1 - _SURE else f"{self.reaches:.2f}"


def at_length(estimate: EffectiveLength, length: int) -> AtLength:
    """The accuracy at a length, from the posterior that the effective length is taken from.

    Replies that fail for another cause than sight count as failures here, as they do in all
    accuracies. Where the answers agree with no falling curve, neither does this.
    """
    fitted, limit = estimate.fit, estimate.limit
    by = "" if limit.is_ranked else limit.by
    if not fitted.bins.shortest <= length <= fitted.bins.longest:
        return AtLength(length, None, None, None, by)
    mean, low, high = fitted.accuracy_at(length)
    reaches = float(fitted.reaches(np.array(float(length)))) if limit.is_ranked else None
    return AtLength(length, mean, (low, high), reaches, by)
