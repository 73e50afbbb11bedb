"""One number that a probe reads off a model."""

from __future__ import annotations

from dataclasses import dataclass

ROUNDING = "_rounding"
"""The end of the name of a quantity whose value is how far rounding to bfloat16 alone moves the
quantity of the name before it, on the same row.
"""


@dataclass(frozen=True, slots=True)
class SampleReading:
    """The value of a quantity on one sample."""

    quantity: str
    value: float
    layer: int | None = None
    """The layer, from 0; of a stream, the layer before which it was read, and the number of layers
    for the stream after the last one."""
    head: int | None = None
    """The head, from 0; of rotary positions, the pair."""
