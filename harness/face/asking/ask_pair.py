"""Asks runs until comparisons are decided: both of a pair, or those of a saved baseline.

`bench compare --ask` and `bench gate --ask` use it. The next command goes on from what was asked.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path

from eyechart.harness.analysis.adaptive.next_pairs import (
    WAVES,
    Counts,
    full_run,
    is_decided,
    is_found,
    is_surely_worse,
    missing_pairs,
    more_of_baseline,
    more_pairs,
    next_wave,
    planned,
)
from eyechart.harness.analysis.comparison.comparability import check_same_task, names_of
from eyechart.harness.analysis.comparison.comparison import Comparison, compare_runs
from eyechart.harness.analysis.comparison.comparison_text import decisions
from eyechart.harness.analysis.comparison.gate import BASELINE
from eyechart.harness.analysis.samples.judged_run import JudgedRun
from eyechart.harness.errors import NoneSharedError
from eyechart.harness.face.asking.ask_run import AskedRequest, AskedRun, Limits
from eyechart.harness.face.asking.engine import Loop, RunNotices
from eyechart.harness.journal.record import Warn
from eyechart.harness.plan.cost import Budget
from eyechart.harness.settings.judging import JudgeSettings
from eyechart.harness.spec.dollars import dollars_text
from eyechart.providers.naming import named

_ALL = "all that may be asked"
_NONE_LEFT = "no sample of the baseline is left"


class AskUntilDecided(ABC):
    """Runs that are asked until their comparison is decided, or the price is spent."""

    def __init__(
        self, asked_runs: Sequence[AskedRun], limits: Limits, judging: JudgeSettings
    ) -> None:
        self._asked_runs, self._limits = asked_runs, limits
        self._margin = judging.margin
        self.price = self._most(limits.requests)
        self._budget = Budget(limit=limits.budget, requests=self.price)
        self.asked = 0
        self.waves = 0
        self.is_decided = False
        """Whether asking ended because all comparisons were decided."""
        self.is_short = False
        """Whether asking ended because samples that were asked have no reply."""

    @property
    def runs(self) -> list[JudgedRun]:
        """The runs that are asked, as they are now."""
        return [one.read() for one in self._asked_runs]

    @abstractmethod
    def _most(self, limit: int | None) -> int:
        """Samples to ask, at most; `limit` is that of the user, if there is one."""

    @abstractmethod
    def _wanted(self, runs: Sequence[JudgedRun]) -> Sequence[Counts] | None:
        """What each run is to have after the next wave; `None` where the comparison is decided."""

    def _decided(self, runs: Sequence[JudgedRun]) -> str:
        """Why asking ends where `_wanted` is nothing."""
        changes = {one.change(self._margin) for one in self._comparisons(runs)}
        if "undecided" in changes:
            return "more samples would not decide the comparison"
        return "the comparison is decided"

    @abstractmethod
    def _first(self) -> str:
        """What is asked before anything else, and what after it."""

    @abstractmethod
    def _comparisons(self, runs: Sequence[JudgedRun]) -> Sequence[Comparison]:
        """The pairs that are to be decided."""

    def after(self) -> str:
        """Which pairs are decided, equivalent or open, see `decisions`; may be empty."""
        return decisions(self._comparisons(self.runs), self._margin)

    def before(self) -> str:
        """What asking may cost, said before anything is sent."""
        if not self.price:
            return f"nothing is asked: {_NONE_LEFT}"
        dollars = self.price * max(float(run.samples["cost"].mean()) for run in self.runs)
        cost = f" (about {dollars_text(dollars)})" if math.isfinite(dollars) else ""
        limits = [f"{self.price:,} sample{'s' * (self.price > 1)}{cost}"]
        if self._limits.budget is not None:
            limits.append(dollars_text(self._limits.budget))
        return (
            f"asking at most {' and '.join(limits)}: {self._first()}, in "
            f"{WAVES} waves; {named('max_requests')} sets another limit"
        )

    @property
    def tasks(self) -> str:
        """The tasks of the runs."""
        return ", ".join(dict.fromkeys(run.manifest.task for run in self.runs))

    def first_wave(self) -> list[AskedRequest] | str:
        """What the runs would be asked next, or why nothing is asked; sends nothing."""
        if not self.price:
            return _NONE_LEFT
        wanted = self._next(self.runs)
        if isinstance(wanted, str):
            return wanted
        left, found = self.price, []
        for one, counts, lack in zip(self._asked_runs, wanted, self._lacks(wanted), strict=True):
            if lack and left:
                found.append(one.to_ask(counts, left))
                left -= min(lack, left)
        return found

    def longest_first(self) -> Iterator[Iterator[AskedRequest]]:
        """For each run and condition all that may be asked, as if it were asked on one line: on
        the longest one, and then on each shorter one.
        """
        for one in self._asked_runs:
            cells = [key for run in self._with_lines() for key in planned(run)]
            for condition in one.read().conditions:
                lines = sorted({line for of, line in cells if of == condition}, reverse=True)
                yield (one.on_line((condition, line), self.price) for line in lines)

    def _with_lines(self) -> Sequence[JudgedRun]:
        """The runs whose lines are asked."""
        return self.runs

    def ask(self, talk: RunNotices, loop: Loop) -> str:
        """Asks wave after wave, and writes the tables of the runs; returns how many samples were
        asked, and why no more.

        Raises:
            ProviderError: a model cannot be asked. What was answered is saved.
        """
        why = self._ask(talk, loop)
        if not self.waves:
            return f"no further samples are asked: {why}"
        asked = f"asked {self.asked:,} sample{'s' * (self.asked != 1)}"
        return f"{asked}{', ' if why == _ALL else ': '}{why}"

    def _ask(self, talk: RunNotices, loop: Loop) -> str:
        """Returns why it ended."""
        while True:
            wanted = self._next(self.runs)
            if isinstance(wanted, str):
                return wanted
            before, left, unanswered = self._lacks(wanted), self._budget.requests or 0, 0
            self.waves += 1
            for one, counts, lack in zip(self._asked_runs, wanted, before, strict=True):
                if lack:
                    self._budget, without = one.ask(counts, self._budget, talk, loop)
                    unanswered += without
            answered = sum(before) - self._lack(wanted)
            # samples of the same length on two lines have one reply
            self.asked += min(answered, left - (self._budget.requests or 0))
            if unanswered:
                limit = self._limit()
                self.is_short = not limit
                return limit or self._without_reply(unanswered)

    def _without_reply(self, count: int) -> str:
        failures = [one.last_failure for one in self._asked_runs if one.last_failure]
        why = f" (the last: {failures[-1]})" if failures else ""
        samples = "1 sample has" if count == 1 else f"{count:,} samples have"
        return f"{samples} no reply{why}, and the same command asks again"

    def _lacks(self, wanted: Sequence[Counts]) -> list[int]:
        """How many of the wanted samples have no reply, in each run that is asked."""
        pairs = zip(self._asked_runs, wanted, strict=True)
        return [one.lacks(counts) for one, counts in pairs]

    def _over(self) -> str:
        """Why nothing more can be asked, though the comparison is not sure enough to end before."""
        what = f"all {WAVES} waves are asked"
        if self.waves < WAVES:
            left = self._budget.requests or 0
            are = "sample left is" if left == 1 else "samples left are"
            what = f"no line has more samples, or the {left:,} {are} fewer than a wave asks"
        return f"{what}; nothing was sure enough to end earlier"

    def _limit(self) -> str:
        """The limit that is reached; empty where none is."""
        given = self._limits.budget
        if self._budget.exhausted and given is not None:
            return f"the budget of {dollars_text(given)} is spent"
        if self._budget.has_requests:
            return ""
        return _ALL if self.asked == self.price else f"the limit of {self.price:,} is reached"

    def _next(self, runs: Sequence[JudgedRun]) -> Sequence[Counts] | str:
        """What the runs are to have next, or why nothing more is asked."""
        wanted = self._wanted(runs)
        if wanted is None:
            self.is_decided = True
            return self._decided(runs)
        if limit := self._limit():
            return limit
        return wanted if self.waves < WAVES and self._lack(wanted) else self._over()

    def _lack(self, wanted: Sequence[Counts]) -> int:
        """How many of the wanted samples have no reply."""
        return sum(self._lacks(wanted))

    def _is_decided(self, comparison: Comparison, lack: int) -> bool:
        """Whether the samples that a run lacks, and others, are not needed."""
        decided = is_found if lack else is_decided
        return decided(comparison, self._margin)


class AskedPair(AskUntilDecided):
    """Both runs of a comparison."""

    def __init__(
        self,
        folders: Sequence[Path],
        limits: Limits,
        judging: JudgeSettings,
        warn: Warn,
    ) -> None:
        """Nothing is sent yet.

        Raises:
            EyechartError: a run cannot be read or asked again, or both are of other tasks.
            SetupError: a model is not there.
        """
        asked = [AskedRun(folder, limits, judging, warn) for folder in folders]
        runs = [one.read() for one in asked]
        check_same_task(*runs)
        self._names = names_of(runs)
        super().__init__(asked, limits, judging)

    def _most(self, limit: int | None) -> int:
        return max(map(full_run, self.runs)) if limit is None else limit

    def _first(self) -> str:
        first, second = self.runs
        lacks = self._lacks(missing_pairs(first, second))
        counts = [
            f"{lack:,} of {name}" for name, lack in zip(self._names, lacks, strict=True) if lack
        ]
        if not counts:
            return "those that tell most"
        if sum(lacks) >= self.price:
            return f"only what the other run has ({' and '.join(counts)})"
        return f"first {' and '.join(counts)}, which the other run has; then those that tell most"

    def _comparisons(self, runs: Sequence[JudgedRun]) -> Sequence[Comparison]:
        first, second = runs
        return [compare_runs(first, second)]

    def _wanted(self, runs: Sequence[JudgedRun]) -> Sequence[Counts] | None:
        first, second = runs
        lacked = missing_pairs(first, second)
        try:
            (comparison,) = self._comparisons(runs)
        except NoneSharedError:
            if self._lack(lacked):
                return lacked
            raise
        lack = self._lack(lacked)
        if self._is_decided(comparison, lack):
            return None
        if lack:
            return lacked
        wave = next_wave(self._budget.requests or 0, self.waves)
        return more_pairs(first, second, comparison, wave)


class BaselineAsking(AskUntilDecided):
    """Runs that are asked rows of a saved baseline, of whose model nothing more can be had."""

    def __init__(
        self,
        baseline: Sequence[JudgedRun],
        asked: Sequence[AskedRun],
        limits: Limits,
        judging: JudgeSettings,
    ) -> None:
        """`asked` are the runs of the tasks of `baseline`, in its order. Nothing is sent yet.

        Raises:
            CompareError: a run cannot be compared with the baseline.
        """
        self._baseline = baseline
        self.decided: set[Path] = set()
        """The folders of the runs that are asked no more, because their comparison is decided."""
        super().__init__(asked, limits, judging)
        self._comparisons(self.runs)

    def _most(self, limit: int | None) -> int:
        pairs = zip(self._baseline, self.runs, strict=True)
        missing = self._lack([more_of_baseline(before, now, waves=1) for before, now in pairs])
        return missing if limit is None else min(missing, limit)

    def _first(self) -> str:
        return "samples of the baseline, the same number on each line"

    def _over(self) -> str:
        return "all samples of the baseline are asked"

    def _with_lines(self) -> Sequence[JudgedRun]:
        return self._baseline

    def _comparisons(self, runs: Sequence[JudgedRun]) -> Sequence[Comparison]:
        return [
            compare_runs(before, now, names=(BASELINE, now.manifest.model))
            for before, now in zip(self._baseline, runs, strict=True)
        ]

    def after(self) -> str:
        """What became of each run, which a gate asks for, or that it is open."""
        said = []
        runs = self.runs
        for now, comparison in zip(runs, self._comparisons(runs), strict=True):
            change, name = comparison.change(self._margin), comparison.second
            on = f" on {comparison.task}" * (len(runs) > 1)
            if change == "undecided":
                said.append(f"open: whether {name} is worse than {BASELINE}{on}")
            elif now.folder in self.decided:  # the verdict says what fewer samples are enough for
                to = "to" if change == "equivalent" else "than"
                said.append(f"decided: {name} is {change} {to} {BASELINE}{on}")
        return "; ".join(said)

    def _wanted(self, runs: Sequence[JudgedRun]) -> Sequence[Counts] | None:
        wanted: list[Counts] = []
        self.decided.clear()
        comparisons = self._comparisons(runs)
        of_runs = zip(self._baseline, runs, self._asked_runs, comparisons, strict=True)
        for before, now, asked, comparison in of_runs:
            counts = planned(now)
            lack = asked.lacks(counts)
            if self._is_decided(comparison, lack) or is_surely_worse(comparison):
                self.decided.add(now.folder)
                wanted.append({})
            else:
                more = more_of_baseline(before, now, WAVES - self.waves)
                wanted.append(counts if lack else more)
        return wanted if len(self.decided) < len(runs) else None
