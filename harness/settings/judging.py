"""What runs are judged by, unless the user says otherwise."""

from __future__ import annotations

THRESHOLD = 0.85
"""Accuracy from which a length counts as seen."""
MARGIN = 0.05
"""Difference of areas up to which two sides are equivalent."""
