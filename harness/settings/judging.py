"""What runs are judged by, unless the user says otherwise."""

from __future__ import annotations

THRESHOLD = 0.85
"""Accuracy from which a length counts as seen."""
MARGIN = 0.05
"""Difference of areas up to which two sides are equivalent."""
WITHIN = 0.05
"""How far a near answer is from its target at most, as a share of the target."""
