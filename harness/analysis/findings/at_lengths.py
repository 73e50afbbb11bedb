"""Which models pass at lengths that the user names, and whose replies cost more to short rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from eyechart.harness.analysis.findings.finding import Finding, Kind
from eyechart.harness.analysis.length.at_length import LIKELY, VERDICTS, AtLength
from eyechart.harness.analysis.length.curve import threshold_text
from eyechart.harness.analysis.ranking.cost_at import CostAt
from eyechart.harness.spec.unit import counted

_MOST_NAMED = 8
"""Models that a sentence names."""


def suited(
    named: Sequence[tuple[str, AtLength | None]], length: int, threshold: float, unit: str
) -> Finding:
    """For which models an accuracy of `threshold` at a length is likely, open or unlikely. `named`
    is in the order of a standing; a model without a scored sample has `None`.
    """
    models: dict[str, list[str]] = {verdict: [] for verdict in (*VERDICTS, "")}
    for name, found in named:
        models["" if found is None else found.verdict].append(name)
    passes, is_open, fails, unknown = models.values()
    return SUITED(
        length=length,
        threshold=threshold,
        unit=unit,
        passes=passes,
        open=is_open,
        fails=fails,
        unknown=unknown,
    )


def longer_replies(costs: Mapping[str, Mapping[int, CostAt]], rows: str) -> Iterator[Finding]:
    """The models, by name, whose reply to a shorter row costs more; `costs` are those of a reply,
    by length. `rows` is what rows are called here.
    """
    for model, of_model in costs.items():
        known = [one.dollars for _, one in sorted(of_model.items()) if one.sign == "="]
        if any(longer < shorter for shorter, longer in pairwise(known)):
            yield LONGER_REPLIES(model=model, rows=rows)


def _suited(
    *,
    length: int,
    threshold: float,
    unit: str,
    passes: Sequence[str],
    open: Sequence[str],  # noqa: A002  the name of the fact
    fails: Sequence[str],
    unknown: Sequence[str],
) -> str:
    total = sum(map(len, (passes, open, fails, unknown)))
    rows = counted(f"{length:,}", unit, is_one=length == 1)
    count = f"{len(passes) or 'none'} of {total} model{'s' * (total > 1)}"
    text = (
        f"With {rows}, {count} surely {'pass' if len(passes) > 1 else 'passes'} (right on at least "
        f"{threshold_text(threshold)} of rows, with a probability of {LIKELY} or more)"
        f"{_names(passes)}"
    )
    rest = []
    if open:
        rest.append(f"for {len(open)} it is open{_names(open)}")
    if fails:
        rest.append(f"{len(fails)} surely {'does' if len(fails) == 1 else 'do'} not pass")
    if unknown:
        rest.append(f"for {len(unknown)} it is not known")
    more = "; ".join(rest)
    return f"{text}.{f' {more[0].upper()}{more[1:]}.' if more else ''}"


def _names(names: Sequence[str]) -> str:
    return f": {', '.join(names)}" if 0 < len(names) <= _MOST_NAMED else ""


SUITED = Kind(
    "passes at a length",
    "result",
    "which models reach the threshold at a length of `--at`, and for which that is open",
    _suited,
)


def _longer(*, model: str, rows: str) -> str:
    return f"{model} writes longer replies to shorter {rows}, so these can cost more."


LONGER_REPLIES = Kind(
    "longer replies", "note", "a model whose replies to shorter rows are longer", _longer
)
