"""The verdicts of a gate: each run of a baseline against the new run of the same task."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from eyechart.harness.analysis.comparability import setting_text
from eyechart.harness.analysis.comparison import Comparison, compare_runs
from eyechart.harness.analysis.findings.finding import Finding, Kind, in_order
from eyechart.harness.analysis.findings.pair import of_pair
from eyechart.harness.analysis.further import mean_difference
from eyechart.harness.analysis.judged_run import JudgedRun
from eyechart.harness.errors import COMPLETE, CompareError, UsageError
from eyechart.harness.face.asked_pair import BASELINE
from eyechart.providers.naming import named

WORSE, UNDECIDED = 3, 4
"""Exit codes of their own: a run is worse than the baseline; it is open whether one is."""
INCOMPLETE, NOT_COMPARABLE = "incomplete", "not comparable"
"""Verdicts besides those of a comparison, which never pass: the run lacks samples of the baseline;
something else than sight limits a length, or neither area can fall by more than the margin."""
MOST_WITHOUT = 0.05
"""Share of a baseline's samples that may lack a partner in a run."""


@dataclass(frozen=True)
class Gated:
    """The verdict on one run."""

    comparison: Comparison
    """The baseline is first."""
    margin: float
    without: int
    """Scored samples of the baseline without a scored partner in the run."""
    samples: int
    """Scored samples of the baseline."""
    other_settings: Mapping[str, tuple[object, object]]
    """What the run was asked otherwise than the baseline, with both values, its own first."""
    was_decided: bool = False
    """Whether the run was asked until the comparison was decided, and no further."""
    was_asked: bool = False
    """Whether the run was asked samples of the baseline, by this command."""

    @cached_property
    def by_sight(self) -> Comparison | None:
        """The comparison of the conditions that sight alone limits; `None` without any."""
        kept = tuple(one for one in self.comparison.conditions if not one.length.is_limited)
        if len(kept) == len(self.comparison.conditions):
            return self.comparison
        if not kept:
            return None
        length = mean_difference([one.length for one in kept])
        return replace(self.comparison, conditions=kept, length=length)

    @property
    def verdict(self) -> str:
        """What became of the model. A run that has a part of the baseline's samples, or whose
        length something else than sight limits, may be worse, and is nothing else. Of a baseline
        whose answers are nearly all wrong nothing can be worse.
        """
        by_sight = self.by_sight
        found = "undecided" if by_sight is None else by_sight.change(self.margin)
        if found == "worse":
            return found
        if self.without > MOST_WITHOUT * self.samples and not self.was_decided:
            return INCOMPLETE
        is_comparable = by_sight is self.comparison and not by_sight.is_at_floor(self.margin)
        return found if is_comparable else NOT_COMPARABLE

    @property
    def findings(self) -> list[Finding]:
        """What was found, why, what is missing, and what the run shows by itself."""
        shown = self.by_sight if self.verdict == "worse" and self.by_sight else self.comparison
        is_judged = self.verdict not in (INCOMPLETE, NOT_COMPARABLE)
        has_reason = is_judged or shown.is_at_floor(self.margin)
        found = of_pair(shown, self.margin if has_reason else None)
        if self.without:
            counts = {"without": self.without, "samples": self.samples}
            remedy = ""
            if not self.was_decided:
                remedy = (
                    "the same command asks on"
                    if self.was_asked
                    else "ask it with the same lengths, conditions and samples, or add --ask"
                )
            found.append(WITHOUT_PARTNER(remedy, **counts))
        if self.other_settings:
            found.append(OTHER_SETTINGS(settings=self.other_settings))
        return in_order(found)

    @property
    def sentences(self) -> list[str]:
        """The findings; the first with a capital, unless it begins with the name of the run."""
        first, *others = map(str, self.findings)
        is_name = first.startswith(self.comparison.second)
        return [first if is_name else first[:1].upper() + first[1:], *others]


def _without(*, without: int, samples: int) -> str:
    return f"{without:,} of {samples:,} samples of the baseline have no partner in the run."


WITHOUT_PARTNER = Kind(
    "without partner", "warning", "samples of a baseline that the run does not have", _without
)


def _settings(*, settings: Mapping[str, Sequence[object]]) -> str:
    mine, theirs = (
        ", ".join(setting_text(name, values[at]) for name, values in settings.items())
        for at in (0, 1)
    )
    return f"The run was asked with {mine}, and the baseline with {theirs}."


OTHER_SETTINGS = Kind(
    "other settings", "warning", "a run was asked otherwise than its baseline", _settings
)


def gate(
    baseline: Sequence[JudgedRun],
    runs: Sequence[JudgedRun],
    threshold: float,
    margin: float,
    decided: Collection[Path] = (),
    *,
    was_asked: bool = False,
) -> list[Gated]:
    """The verdict on the run of each task of the baseline; `decided` are the folders of runs that
    were asked until their comparison was decided; `was_asked`: this command asked the runs.

    Raises:
        UsageError: the runs are not those of the baseline's tasks.
        CompareError: a run cannot be compared with the baseline.
    """
    found = []
    for before in baseline:
        now = partner_of(before, runs)
        _check_reading(before, now)
        comparison = compare_runs(before, now, threshold, names=(BASELINE, now.manifest.model))
        scored = [one.curve.scored.sum() for one in before.conditions.values() if one.curve]
        paired = sum(one.paired.pair[0].scored.sum() for one in comparison.conditions)
        samples = int(sum(scored))
        without, was_decided = samples - int(paired), now.folder in decided
        settings = _other_settings(before, now)
        # a baseline has no replies to show
        alone = replace(comparison, runs=(now,))
        found.append(Gated(alone, margin, without, samples, settings, was_decided, was_asked))
    return found


def exit_code(gated: Sequence[Gated], *, fails_undecided: bool) -> int:
    """`WORSE` if a run is worse; `UNDECIDED` if a run cannot be judged, or if it is open what
    became of one and that counts as a failure.
    """
    verdicts = {one.verdict for one in gated}
    if "worse" in verdicts:
        return WORSE
    failing = {INCOMPLETE, NOT_COMPARABLE} | ({"undecided"} if fails_undecided else set())
    return UNDECIDED if verdicts & failing else COMPLETE


def _check_reading(before: JudgedRun, now: JudgedRun) -> None:
    """Raises `CompareError` where one has replies and the other forced choices: a difference would
    be one of the readings, and say nothing of a change of the model.
    """
    if bool(before.options) != bool(now.options):
        names = "replies", f"forced choices ({named('reading', 'likelihood')})"
        had, has = names if now.options else names[::-1]
        raise CompareError(
            f"{before.folder} has {had} on {before.manifest.task}, and {now.folder} has {has}: a "
            "gate compares one kind only; ask the run as the baseline was asked, or save a "
            "baseline that was asked like the run"
        )


def _other_settings(before: JudgedRun, now: JudgedRun) -> dict[str, tuple[object, object]]:
    old, new = before.manifest.settings, now.manifest.settings
    return {
        name: (new.get(name), old.get(name))
        for name in {**old, **new}
        if old.get(name) != new.get(name)
    }


def partner_of(before: JudgedRun, runs: Sequence[JudgedRun]) -> JudgedRun:
    """The run of the same task; of several, the one with the same settings."""
    task = before.manifest.task
    of_task = [run for run in runs if run.manifest.task == task]
    if not of_task:
        raise UsageError(f"none of the runs is one of {task}, which the baseline has")
    if len(of_task) > 1:
        of_task = [run for run in of_task if run.manifest.settings == before.manifest.settings]
    if len(of_task) != 1:
        count = f"{len(of_task)} of the runs of {task} have" if of_task else f"no run of {task} has"
        raise UsageError(f"{count} the settings of the baseline; name just one that has them")
    return of_task[0]
