"""What equal samples have in common is computed once: their fit, their effective length.

One command judges a run for its files, for the terminal and for the page; an adaptive run is fitted
before each wave; and conditions that a model answers alike have equal samples.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from threading import Lock
from typing import Concatenate, ParamSpec, TypeVar

from eyechart.harness.analysis.length.curve import Curve

MOST_KEPT = 128
"""Results of each function that are kept: those asked for last."""
_More = ParamSpec("_More")
_Result = TypeVar("_Result")


def kept_for_equal_samples(
    compute: Callable[Concatenate[Curve, _More], _Result],
) -> Callable[Concatenate[Curve, _More], _Result]:
    """`compute`, whose results are kept for samples with the same `Curve.digest` and the same other
    arguments, which must be hashable. The samples themselves are not kept. Nothing may change a
    result.
    """
    kept: dict[tuple[object, ...], _Result] = {}
    lock = Lock()

    @wraps(compute)
    def found(samples: Curve, /, *args: _More.args, **more: _More.kwargs) -> _Result:
        key = samples.digest, args, tuple(sorted(more.items()))
        with lock:
            if key in kept:
                kept[key] = kept.pop(key)  # the last is the latest
                return kept[key]
        result = compute(samples, *args, **more)
        with lock:
            kept[key] = result
            if len(kept) > MOST_KEPT:
                del kept[next(iter(kept))]
        return result

    return found
