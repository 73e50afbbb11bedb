"""All settings of judging: how runs are read, and what their results are held against.

Command line, `bench.toml`, environment and Python build a `JudgeSettings`. A new setting is a field
here; help texts, files, variables and chapters follow. Like `RunSettings` it needs no NumPy, since
`bench --help` does not wait for that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, TypedDict

from eyechart.harness.errors import UNDECIDED, WORSE
from eyechart.harness.settings.checks import NumberRange, OneOf, number_of, path, shown
from eyechart.harness.settings.setting import (
    Judged,
    Setting,
    declared,
    on_or_off,
    read_each,
    setting,
)

THRESHOLD = 0.85
"""Accuracy from which a model is right to a length."""
Margin: TypeAlias = float | str
"""Up to which difference two sides are equivalent: of areas, as a share, or of effective lengths,
as a factor such as `1.2x`. `analysis/length/margin.py` makes each of the other.
"""
MARGIN = 0.05
NEAR = 0.05
"""How far a near answer is from its target at most, as a share of the target."""
LEAST_THRESHOLD, MOST_THRESHOLD = 0.02, 0.995
UNJUDGED = NOT_WHOLE, NOT_COMPARABLE = "incomplete", "not comparable"
"""Verdicts besides those of a comparison, which never pass: the second side lacks samples of the
first; something else than sight limits a length, or neither area can fall by more than the margin.
"""
_NOT_JUDGED = dict.fromkeys(UNJUDGED, UNDECIDED)
FAILING: Mapping[str, Mapping[str, int]] = {
    "worse": {"worse": WORSE, **_NOT_JUDGED},
    "undecided": {"worse": WORSE, "undecided": UNDECIDED, **_NOT_JUDGED},
    "different": {"worse": WORSE, "better": WORSE, **_NOT_JUDGED},
    "not-equivalent": {"worse": WORSE, "better": WORSE, "undecided": UNDECIDED, **_NOT_JUDGED},
}
"""Value of `--fail-if` -> the verdicts that fail, with the exit code of each."""


class _Threshold:
    """The check of a threshold."""

    bound = NumberRange(LEAST_THRESHOLD, MOST_THRESHOLD, is_whole=False)

    def __call__(self, given: Any) -> float:
        try:
            return float(self.bound(given))
        except ValueError as error:
            is_one = NumberRange(MOST_THRESHOLD, 1, is_whole=False).allows(given)
            remedy = ": no number of samples can show that an accuracy is 1; 0.95 or 0.99 can be"
            raise ValueError(f"{error}{f'{remedy} shown' if is_one else ''}") from None


class _Margin:
    """The check of a margin."""

    bound = NumberRange(0.001, 0.999, is_whole=False)
    factors = NumberRange(1.01, 100, is_whole=False)
    demand = f"{bound.demand}, or a factor of length from 1.01x to 100x"

    def __call__(self, given: Any) -> Margin:
        if self.bound.allows(given):
            return float(given)
        factor = number_of(given[:-1]) if isinstance(given, str) and given[-1:] == "x" else None
        if not self.factors.allows(factor):
            raise ValueError(f"must be {self.demand}, not {shown(given)}")
        return f"{factor:g}x"


def factor_of(margin: Margin) -> float | None:
    """The factor of length of a checked margin; `None` for one that is a share."""
    return float(margin[:-1]) if isinstance(margin, str) else None


def _tasks(given: Any) -> str:
    return "" if given == "" else str(path(given))


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeSettings:
    """How runs are read and judged: `JudgeSettings.read` checks the values."""

    threshold: float = setting(
        _Threshold(),
        "Accuracy from which a model is right to a length.",
        "SHARE",
        THRESHOLD,
        of="runs",
    )
    near: float = setting(
        NumberRange(0, 0.99, is_whole=False),
        "How far a number may be from its target to count as near, as a share of the target.",
        "SHARE",
        NEAR,
        of="runs",
    )
    margin: Margin = setting(
        _Margin(),
        "Up to which difference both are equivalent: of areas, or of lengths by a factor, as 1.2x.",
        "SHARE|FACTORx",
        MARGIN,
        form=_Margin.demand,
        of="pairs",
    )
    fail_if: str | None = setting(
        OneOf(*FAILING),
        "Which verdicts end with exit code 3 or 4: --help lists them.",
        "|".join(FAILING),
        once=True,
        of="pairs",
    )
    tasks: str = setting(
        _tasks,
        "Your own task files, to make prompts again.",
        "NAME[,NAME]",
        "",
        option="task",
        short="t",
        once=True,
        of="samples",
    )
    run_kept_code: bool = on_or_off(
        "Execute the generators that came with the runs, to make items again, and the scorers that "
        "they name. Only for runs that you trust.",
        once=True,
        of="samples",
    )

    @property
    def of_runs(self) -> dict[str, Any]:
        """The settings that a row of a table says it was made with: name -> value."""
        return {name: getattr(self, name) for name in OF_RUNS}

    @classmethod
    def read(cls, **given: Any) -> JudgeSettings:
        """The settings with these values, by name; raises `UsageError` as `RunSettings.read`."""
        return cls(**read_each(JUDGING, given))


JUDGING: Mapping[str, Setting] = declared(JudgeSettings)
"""Name -> the setting, in the order of the help text."""


def _of(kind: Judged) -> tuple[str, ...]:
    return tuple(name for name, one in JUDGING.items() if one.of == kind)


OF_SAMPLES, OF_RUNS, OF_PAIRS = _of("samples"), _of("runs"), _of("pairs")
"""The names of the settings of each kind."""
JUDGED = (*OF_RUNS, *OF_SAMPLES)
"""Those of a verb that judges runs; one that compares them has all."""


class RunJudgingArguments(TypedDict, total=False):
    """The settings of `OF_RUNS` as arguments in Python."""

    threshold: float
    near: float


class JudgingArguments(RunJudgingArguments, total=False):
    """Those of `JUDGED`."""

    tasks: str | Path
    run_kept_code: bool


class PairJudgingArguments(JudgingArguments, total=False):
    """Those of two sides; Python has no exit code that `fail_if` could set."""

    margin: float | str
