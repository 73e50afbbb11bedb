"""The findings of a comparison of two runs, or of two conditions of one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from eyechart.harness.analysis.comparison.comparability import are_named, setting_text
from eyechart.harness.analysis.comparison.comparison import Comparison
from eyechart.harness.analysis.comparison.comparison_text import verdict_text
from eyechart.harness.analysis.findings.finding import Finding, Kind, in_order, listed
from eyechart.harness.analysis.findings.not_known import under, which_of
from eyechart.harness.analysis.findings.of_run import beside
from eyechart.harness.analysis.length.effective_length import few
from eyechart.harness.analysis.length.tokens_of_row import PairTokens
from eyechart.harness.analysis.samples.reply_and_choice import known_and_not_said
from eyechart.harness.analysis.tables.tokens_text import OTHER_TOKENS, UNKNOWN_TOKENS, confounded
from eyechart.harness.settings.judging import MARGIN, Margin
from eyechart.harness.spec import varied_label
from eyechart.providers.naming import named

_TWO = 2


def of_pair(comparison: Comparison, margin: Margin | None = MARGIN) -> list[Finding]:
    """All that two sides show; `None` as `margin` leaves out whether they are equivalent."""
    is_of_runs = len(comparison.runs) == _TWO
    names = _names(comparison) if is_of_runs else [""]
    conditions = [one.condition for one in comparison.conditions] if is_of_runs else None
    of_runs = beside(zip(names, comparison.runs, strict=True), conditions)
    found = list(of_sides(comparison, margin))
    if not is_of_runs and any(one.kind == CONFOUNDED.name for one in found):
        said = OTHER_TOKENS.name, UNKNOWN_TOKENS.name  # of the axis that is compared
        of_runs = [one for one in of_runs if one.kind not in said]
    return in_order([*found, *of_runs])


def _names(comparison: Comparison) -> list[str]:
    return [comparison.first, comparison.second]


def of_sides(comparison: Comparison, margin: Margin | None = MARGIN) -> Iterator[Finding]:
    """What the comparison shows, without what each run shows by itself."""
    yield VERDICT(comparison=comparison, margin=margin)
    if known := known_and_not_said(comparison):
        yield known
    yield from asked_otherwise(_names(comparison), comparison.other_settings)
    yield from lines_apart(comparison)
    yield from few_pairs(comparison)
    conditions = comparison.conditions
    adaptive = [one for one in conditions if one.adaptive and one.is_paired]
    if adaptive:
        yield ADAPTIVE(
            samples=sum(line.n for compared in adaptive for line in compared.paired.lengths),
            found=len(adaptive),
            conditions=len(conditions),
        )
    if not comparison.is_paired:
        yield UNPAIRED()
    tokens = [compared.tokens for compared in conditions]
    if confounded(tokens, _names(comparison), comparison.unit):
        yield CONFOUNDED(tokens=tokens, sides=_names(comparison), unit=comparison.unit)


VERDICT = Kind(
    "verdict",
    "result",
    "who is right further, whether the two differ or are equivalent, or that this is open; and the "
    "numbers that this follows from",
    verdict_text,
)


def few_pairs(comparison: Comparison) -> Iterator[Finding]:
    """Under which conditions the pairs are of few replies or rows."""
    conditions = [compared.condition for compared in comparison.conditions]
    found = {
        varied_label(compared.condition, conditions): text
        for compared in comparison.conditions
        if compared.is_paired
        and (text := few(sum(row.n for row, _ in compared.lines), compared.rows))
    }
    if found:
        yield FEW_PAIRS(found=found, conditions=len(conditions))


def _few_pairs(*, found: Mapping[str, str], conditions: int) -> str:
    where = under(list(found), conditions)
    return f"The pairs{where} are few ({' or '.join(dict.fromkeys(found.values()))})."


FEW_PAIRS = Kind("few pairs", "warning", "two sides are compared on few rows", _few_pairs)


def lines_apart(comparison: Comparison) -> Iterator[Finding]:
    """A finding if one of two runs has conditions that the other one lacks, or lines that it lacks
    under a condition of both. Adaptive runs choose their lines, so nothing is said of them.
    """
    runs = comparison.runs
    if len(runs) != _TWO or any(one.adaptive for run in runs for one in run.conditions.values()):
        return
    first, second = ({(cell.condition, cell.line) for cell in run.manifest.cells} for run in runs)
    conditions = [{condition for condition, _ in cells} for cells in (first, second)]
    both = conditions[0] & conditions[1]
    found = {
        name: {
            "condition": len(own - both),
            "line": len({line for condition, line in cells if condition in both}),
        }
        for name, own, cells in zip(
            _names(comparison), conditions, (first - second, second - first), strict=True
        )
    }
    if any(any(counts.values()) for counts in found.values()):
        remedy = (
            f"ask both with the same {named('lengths')}, or import with {named('field', 'line=…')}"
            if any(counts["line"] for counts in found.values())
            else ""
        )
        yield LINES_APART(remedy, left_out=found)


def _apart(*, left_out: Mapping[str, Mapping[str, int]]) -> str:
    counts = " and ".join(
        f"{number} {what}{'s' * (number != 1)} of {name}"
        for name, found in left_out.items()
        for what, number in found.items()
        if number
    )
    return f"Left out: {counts}, which the other run does not have."


LINES_APART = Kind(
    "lines left out",
    "warning",
    "only one of two runs has some conditions or lines",
    _apart,
)


def _adaptive(*, samples: int, found: int, conditions: int) -> str:
    which = f" under {which_of(found, conditions)}" * (conditions > 1)
    return (
        f"At least one side is adaptive{which}, so lines are compared on the {samples:,} samples "
        "that both have there, and areas not at all."
    )


ADAPTIVE = Kind(
    "adaptive", "note", "an adaptive side is compared without areas, on shared samples", _adaptive
)


def _unpaired() -> str:
    return "Unpaired: the replies are to different rows."


UNPAIRED = Kind("unpaired", "note", "the replies of the two sides are to different rows", _unpaired)


def asked_otherwise(
    names: Sequence[str], settings: Mapping[str, Sequence[object]]
) -> Iterator[Finding]:
    """What named runs were asked with otherwise; a note where their names say it."""
    if settings:
        found = OTHER_SETTINGS(names=names, settings=settings)
        yield replace(found, level="note") if are_named(settings, names) else found


def _settings(*, names: Sequence[str], settings: Mapping[str, Sequence[object]]) -> str:
    each = [
        listed([*_values(setting, values, names)], f"values of {setting}")
        for setting, values in settings.items()
    ]
    runs = listed(names, "runs")
    return f"{runs} were asked with different settings: {'; '.join(each).rstrip('.')}."


def _values(setting: str, values: Sequence[object], names: Sequence[str]) -> Iterator[str]:
    """The text of each value; with more than two runs also the names of those that have it."""
    having: dict[str, list[str]] = {}
    for value, name in zip(values, names, strict=True):
        having.setdefault(setting_text(setting, value), []).append(name)
    for text, runs in having.items():
        yield text if len(names) == _TWO else f"{text} ({listed(runs, 'runs')})"


OTHER_SETTINGS = Kind(
    "other settings",
    "warning",
    "the runs were asked with other settings; a note where their names say it",
    _settings,
)


def _confounded(*, tokens: Sequence[PairTokens], sides: Sequence[str], unit: str) -> str:
    text = confounded(tokens, sides, unit)
    return f"{text[:1].upper()}{text[1:]}."


CONFOUNDED = Kind(
    "confounded with tokens",
    "note",
    "the two sides differ in tokens a symbol, or may do so",
    _confounded,
)
