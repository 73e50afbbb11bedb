"""Which models can be given a row of a certain length, and how sure that is: in one sentence."""

from __future__ import annotations

from collections.abc import Sequence

from eyechart.harness.analysis.at_length import LIKELY, VERDICTS, AtLength
from eyechart.harness.spec.unit import counted

_MOST_NAMED = 8
_TWO = 2


def suited(
    named: Sequence[tuple[str, AtLength | None]], length: int, threshold: str, unit: str
) -> str:
    """For how many models an accuracy of `threshold` at a length is likely, open or unlikely, and
    which they are, where they are few. `named` is in the order of a standing; a model without a
    scored sample has `None`.
    """
    by_verdict: dict[str, list[str]] = {verdict: [] for verdict in (*VERDICTS, "")}
    for name, found in named:
        by_verdict["" if found is None else found.verdict].append(name)
    likely, unsure, unlikely, unknown = by_verdict.values()
    rows = counted(f"{length:,}", unit, is_one=length == 1)
    count = f"{len(likely) or 'none'} of {len(named)} model{'s' * (len(named) > 1)}"
    text = (
        f"With a probability of {LIKELY} or more, {count} {'is' if len(likely) < _TWO else 'are'} "
        f"right on at least {threshold} of rows with {rows}{_names(likely)}"
    )
    rest = []
    if unsure:
        rest.append(f"for {len(unsure)} it is open{_names(unsure)}")
    if unlikely:
        rest.append(f"{len(unlikely)} {'is' if len(unlikely) == 1 else 'are'} not")
    if unknown:
        rest.append(f"for {len(unknown)} it is not known")
    more = "; ".join(rest)
    return f"{text}.{f' {more[0].upper()}{more[1:]}.' if more else ''}"


def _names(names: Sequence[str]) -> str:
    return f": {', '.join(names)}" if 0 < len(names) <= _MOST_NAMED else ""
