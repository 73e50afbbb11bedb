"""The quantities of each measure of a probe; `docs/measures.md` defines them, with sources."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from eyechart.harness.errors import UsageError
from eyechart.providers.close_match import did_you_mean

VARIANTS = {
    "at": ("symbol", "end"),
    "precision": ("", "_bfloat16"),
    "limit": ("0.3", "0.8"),
    "tenth": tuple(f"{number:02}" for number in range(1, 11)),
}
"""The meaning of the names in braces; any other stands for a word."""
_NAMES = {
    "answer": "probability greedy",
    "collapse": """
        heads_l1_{at}{precision} heads_linf_{at}{precision} weights_l1_end{precision}
        stream_l1_{at}{precision} stream_linf_{at}{precision} stream_relative_{at}{precision}
        final_l1_{at}{precision} final_linf_{at}{precision} final_relative_{at}{precision}
        stream_equal_{at}_bfloat16 final_equal_{at}_bfloat16
    """,
    "squashing": "slope row_slope tenth_{tenth} first_tenth last_tenth first_to_last",
    "attention": """
        sinks_{limit} first_token previous diagonal entropy entropy_share largest
        largest_end entropy_end attended_end row_weight_end
    """,
    "residual": "norm effective_rank rank_one_distance",
    "lipschitz": "largest_slope",
    "rotary": "query_norm key_norm query_norm_fast key_norm_fast",
    "counter": "error within_half r2 position_error position_within_half position_r2",
    "readout": """
        readable r2 control_readable position_readable position_r2
        best_readable best_control best_layer
        cosine cosine_largest random_cosine random_cosine_largest
        rank ranked_first same_token follows stays
    """,
    "maps": "spectral_norm_{map}",
}
QUANTITIES: Mapping[str, Sequence[str]] = {of: names.split() for of, names in _NAMES.items()}
"""Measure -> its quantities, as in `probe.csv`."""
MEASURES = tuple(QUANTITIES)
UNITS = {
    **dict.fromkeys(("entropy", "entropy_end"), "nats"),
    "attended_end": "tokens",
    "best_layer": "layer",
    **dict.fromkeys(("error", "position_error"), "symbols"),
}
"""Quantity -> its unit, where that is not 1."""
NAMED_ONLY = ("lipschitz", "readout")
"""Measures that are taken only if they are named: the one takes longer than all others together,
the other needs more rows of a line than a probe takes by itself."""


def check_measures(names: Sequence[str]) -> tuple[str, ...]:
    """The named measures, in their own order: the usual ones where none is named, and all of
    them for the name `all`.

    Raises:
        UsageError: there is no such measure.
    """
    for name in names:
        if name not in (*MEASURES, "all"):
            of = sorted(measure for measure, those in QUANTITIES.items() if name in those)
            known = f"it is a quantity of {' and '.join(of)}" if of else ""
            raise UsageError(f"no measure {name!r}; {known or did_you_mean(name, MEASURES)}")
    if not names:
        return tuple(name for name in MEASURES if name not in NAMED_ONLY)
    return tuple(name for name in MEASURES if name in names or "all" in names)


def _pattern(quantity: str) -> str:
    pieces = re.split(r"\{(\w+)\}", quantity)
    return "".join(
        (f"(?:{'|'.join(map(re.escape, VARIANTS[piece]))})" if piece in VARIANTS else r"\w+")
        if number % 2
        else re.escape(piece)
        for number, piece in enumerate(pieces)
    )


_PATTERNS = {of: re.compile("|".join(map(_pattern, those))) for of, those in QUANTITIES.items()}


def unit_of(measure: str, name: str) -> str:
    """The unit of a quantity; empty for a quantity of another version."""
    is_known = measure in _PATTERNS and _PATTERNS[measure].fullmatch(name)
    return UNITS.get(name, "1") if is_known else ""
