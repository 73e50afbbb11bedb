"""What became of the samples of a run at the server, and how its replies came about."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from eyechart.harness.analysis.findings.finding import MOST_NAMES, Finding, Kind
from eyechart.harness.analysis.length.effective_length import EffectiveLength
from eyechart.harness.analysis.length.interval import span_text
from eyechart.harness.analysis.samples.draws import DrawSummary
from eyechart.harness.analysis.samples.drift import drift
from eyechart.harness.analysis.samples.judged_run import JudgedCondition, JudgedRun
from eyechart.harness.score.outcomes import NOT_SCORED, Outcome
from eyechart.harness.spec import FEWEST_DIFFERENT
from eyechart.providers.naming import turned_on

_FEWEST_STEPS, _LEAST_STEP = 3, 3
"""Of two lengths nobody expects what is between them; doubled lengths are all even."""
_MUCH_LOWER = 2**0.25


def cuts(run: JudgedRun) -> Iterator[Finding]:
    """Prompts that the server cut, or may have cut."""
    if run.judge.cuts:
        yield _cut_prompts(run)
    if counts := [run.one_counts[one.condition] for one in run.shown(run.one_counts)]:
        yield ONE_COUNT(
            "if it cuts them, raise its window (Ollama: num_ctx)",
            fewest=min(one.tokens for one in counts),
            most=max(one.tokens for one in counts),
            shortest=min(one.shortest for one in counts),
            longest=max(one.longest for one in counts),
        )


def doubts(run: JudgedRun) -> Iterator[Finding]:
    """Why the numbers of a run may be wrong: several models, a change in its course, samples
    without a score.
    """
    if len(models := run.manifest.answered_by) > 1:
        yield SEVERAL_MODELS(models=sorted(models))
    if (found := drift(run)) is not None:
        yield DRIFT(f"{turned_on('fresh')} asks everything again", **found._asdict())
    if run.missing:
        planned = int(run.cells["n"].sum()) + run.missing
        yield NOT_ALL_SCORED(missing=run.missing, samples=planned, outcomes=_not_scored(run))


def lost(
    judged: Mapping[str, JudgedCondition],
    estimates: Mapping[str, EffectiveLength],
    unit: str,
) -> Iterator[Finding]:
    """The conditions, by label, whose interval would begin at a shorter length if the samples
    without a reply had wrong ones.
    """
    for label, estimate in estimates.items():
        if not estimate.is_ranked or estimate.length_ci[0].sign == "<":
            continue
        allowed = judged[label].with_errors_wrong()
        if allowed is not None and is_in_doubt(estimate, allowed):
            yield LOST(
                "ask them again with the same command",
                condition=label,
                begins=allowed.length_ci[0].words,
                interval=span_text(estimate.length_ci),
                unit=unit,
            )


def is_in_doubt(estimate: EffectiveLength, allowed: EffectiveLength) -> bool:
    """Whether an interval would begin much lower if all lost replies were wrong, which is
    `allowed`. Where a server loses the wrong replies, that lower end still holds (simulated).
    """
    would, begins = allowed.length_ci[0], estimate.length_ci[0]
    return would.sign == "<" or would.length < begins.length / _MUCH_LOWER


def steps(run: JudgedRun, judged: Mapping[str, JudgedCondition]) -> Iterator[Finding]:
    """Exact lengths that are all multiples of one number; of a task with bands with the remedy."""
    can_have_bands = run.spec.usual_spread != "none" and run.manifest.recorded is None
    remedy = f"leave out {turned_on('exact')}: bands have all lengths" if can_have_bands else ""
    for label, one in judged.items():
        lines = [cell.line for cell in one.planned]
        if len(lines) < _FEWEST_STEPS or not all(line.is_exact for line in lines):
            continue
        if (step := math.gcd(*(line.length for line in lines))) >= _LEAST_STEP:
            yield STEPS(remedy, condition=label, step=step, unit=run.spec.unit)
            return


def repeated(judged: Mapping[str, JudgedCondition], unit: str) -> Iterator[Finding]:
    """The line of ready items with the fewest different prompts, where these are too few."""
    found = []
    for label, one in judged.items():
        lines = one.asked.keys[:, :-1]
        for line in np.unique(lines, axis=0):
            prompts = one.asked.prompts[(lines == line).all(axis=1)]
            different = len(np.unique(prompts))
            found.append((different / len(prompts), label, int(line[0]), different, len(prompts)))
    share, label, length, different, samples = min(found, default=(1.0, "", 0, 0, 0))
    if share < FEWEST_DIFFERENT:
        facts = {"condition": label, "length": length, "unit": unit}
        yield REPEATED(different=different, samples=samples, **facts)


def origins(run: JudgedRun) -> Iterator[Finding]:
    """How the replies of a run came about."""
    manifest = run.manifest
    if run.drawn is not None:
        yield DRAWS(**asdict(run.drawn))
    if (recorded := manifest.recorded) is not None:
        collected = dict.fromkeys((file.by, file.at) for file in recorded.latest)
        origins = [{"by": by, "at": at} for by, at in collected]
        yield RECORDED(origins=origins, files=[file.name for file in recorded.latest])
    if manifest.refused_sampling:
        yield REFUSED_SETTINGS(settings=list(manifest.refused_sampling))


def _cut_prompts(run: JudgedRun) -> Finding:
    of_cuts = [place for one in run.shown(run.judge.cuts) for place in one.places]
    samples = run.samples[run.samples["cell"].isin(of_cuts)]
    is_cut = samples["outcome"] == Outcome.OVERFLOW.place
    records, most = samples["record"][is_cut].nunique(), samples["prompt_tokens"][is_cut].max()
    return CUT_PROMPTS(prompts=int(records), tokens=float(most))


def _cut(*, prompts: int, tokens: float) -> str:
    count = "1 prompt" if prompts == 1 else f"{prompts:,} prompts"
    return (
        f"The server cut {count} without an error: by its count none of these has more than "
        f"{tokens:,.0f} tokens, however long it is."
    )


CUT_PROMPTS = Kind("cut prompts", "warning", "the server cut prompts without an error", _cut)


def _one_count(*, fewest: int, most: int, shortest: int, longest: int) -> str:
    tokens = f"{fewest:,}" if fewest == most else f"{fewest:,} to {most:,}"
    return (
        f"The server counts {tokens} tokens in prompts of {shortest:,} as of {longest:,} "
        "characters: it cuts them, or these are no counts of them."
    )


ONE_COUNT = Kind(
    "one count",
    "warning",
    "the server counts short and long prompts alike, so it may have cut them",
    _one_count,
)


def _several(*, models: Sequence[str]) -> str:
    """The first of many names: `m1, m2, m3 and 4 others`."""
    rest = len(models) - MOST_NAMES
    others = f" and {rest} other{'s' * (rest > 1)}" if rest > 0 else ""
    return (
        f"The replies come from {len(models)} models ({', '.join(models[:MOST_NAMES])}{others}), "
        "so the numbers are those of no single one."
    )


SEVERAL_MODELS = Kind("several models", "warning", "several models replied", _several)


def _drift(*, difference: float, p: float) -> str:
    worse = difference < 0
    return (
        f"The replies became {'worse' if worse else 'better'} in the course of the run: at equal "
        f"lengths the accuracy on the later half of its rows is {abs(100 * difference):.0f} points "
        f"{'lower' if worse else 'higher'} (p = {p:.2g}), so the server may have changed."
    )


DRIFT = Kind(
    "drift", "warning", "replies became worse, or better, in the course of the run", _drift
)


def _not_all_scored(*, missing: int, samples: int, outcomes: Mapping[str, int]) -> str:
    are = "is" if missing == 1 else "are"
    return f"{missing:,} of {samples:,} samples {are} not scored: {_counts_text(outcomes)}."


def not_scored_text(run: JudgedRun) -> str:
    """The samples of a run that are not scored, by outcome: `error 1, not run 8`."""
    return _counts_text(_not_scored(run))


def _not_scored(run: JudgedRun) -> dict[str, int]:
    counts = {name: int(run.cells[name].sum()) for name in NOT_SCORED}
    return {name: n for name, n in counts.items() if n}


def _counts_text(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {n:,}" for name, n in counts.items())


NOT_ALL_SCORED = Kind("not scored", "warning", "samples have no reply that counts", _not_all_scored)


def _lost(*, condition: str, begins: str, interval: str, unit: str) -> str:
    of = f" with {condition}" if condition else ""
    return (
        f"The samples without a reply may hide wrong ones: were all of them wrong, the interval of "
        f"the effective length{of}, {interval} {unit}, would begin at {begins}."
    )


LOST = Kind(
    "lost replies",
    "warning",
    "if the samples without a reply were wrong, an interval would begin at a shorter length",
    _lost,
)


def _steps(*, condition: str, step: int, unit: str) -> str:
    of = f" with {condition}" if condition else ""
    return (
        f"All lengths{of} are multiples of {step} {unit}: where the accuracy rises and falls with "
        "such a period, as with groups of tokens, other lengths may be answered worse."
    )


def _repeated(*, condition: str, length: int, unit: str, different: int, samples: int) -> str:
    of = f" with {condition}" if condition else ""
    prompts = "1 prompt" if different == 1 else f"{different:,} different prompts"
    return (
        f"The {samples:,} samples at {length:,} {unit}{of} have only {prompts}: equal prompts say "
        "less than different ones, so the intervals are too narrow."
    )


REPEATED = Kind("repeated prompts", "warning", "samples of a line have equal prompts", _repeated)


STEPS = Kind("steps", "note", "all lengths asked are exact multiples of one number", _steps)


def _draws(**facts: Any) -> str:
    return str(DrawSummary(**facts))


DRAWS = Kind(
    "draws", "result", "what several replies to each prompt say: pass@k, majority, variance", _draws
)


def _recorded(*, origins: Sequence[Mapping[str, str]], files: Sequence[str]) -> str:
    """The names of the files would keep apart what several runs have in common."""
    del files
    said = [
        "".join((f" by {one['by']}" if one["by"] else "", f" in {one['at']}" if one["at"] else ""))
        for one in origins
    ]
    return f"The replies were recorded{' or'.join(filter(None, said))}, and not asked here."


RECORDED = Kind("recorded", "note", "who collected the replies, and when", _recorded)


def _refused_settings(*, settings: Sequence[str]) -> str:
    return f"The server does not take {', '.join(settings)}, so the server's own values hold."


REFUSED_SETTINGS = Kind(
    "refused settings",
    "note",
    "settings of sampling that the server does not take",
    _refused_settings,
)
