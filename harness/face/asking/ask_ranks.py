"""Asks several runs until their order, or the best of them, is decided, or the price is spent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from eyechart.harness.analysis.adaptive.next_pairs import Counts, full_run, next_wave
from eyechart.harness.analysis.adaptive.next_ranked import (
    BEST,
    QUESTIONS,
    RANKS,
    asked_pairs,
    lines_of_all,
    more_of_open,
    open_pairs,
    why_none_is_open,
    with_lines_of_all,
)
from eyechart.harness.analysis.comparison.comparison import Comparison
from eyechart.harness.analysis.comparison.family import Ranking, conditions_of_all, rank_runs
from eyechart.harness.analysis.samples.judged_run import JudgedRun
from eyechart.harness.errors import NoneSharedError, UsageError
from eyechart.harness.face.asking.ask_pair import AskedPair, AskUntilDecided
from eyechart.harness.face.asking.ask_run import AskedRun, Limits
from eyechart.harness.journal.record import Warn
from eyechart.harness.settings.judging import JudgeSettings
from eyechart.providers.naming import named

_OPEN = {
    RANKS: "the runs whose order is open are asked",
    BEST: "the runs that may be right furthest are asked",
}


class AskedRanks(AskUntilDecided):
    """Three runs or more: those in an open pair are asked, see `open_pairs`."""

    def __init__(
        self,
        folders: Sequence[Path],
        limits: Limits,
        judging: JudgeSettings,
        *,
        warn: Warn,
        question: str,
    ) -> None:
        """Nothing is sent yet.

        Raises:
            EyechartError: a run cannot be read or asked again, or two cannot be compared.
            SetupError: a model is not there.
        """
        asked = [AskedRun(folder, limits, judging, warn) for folder in folders]
        self._question = question
        super().__init__(asked, limits, judging)
        self._ranking(self.runs)

    def _most(self, limit: int | None) -> int:
        return sum(map(full_run, self.runs)) // 2 if limit is None else limit

    def _first(self) -> str:
        runs = self.runs
        lacks = self._lack(self._lacked(runs, self._ranking(runs)))
        on = "on lines that only other runs have"
        if lacks >= self.price:
            return f"only samples {on} ({lacks:,})"
        first = f"first {lacks:,} {on}; then " if lacks else ""
        return f"{first}{_OPEN[self._question]}"

    def _ranking(self, runs: Sequence[JudgedRun]) -> Ranking | None:
        """`None` where two runs have no scored sample in common, and can be asked the same ones."""
        try:
            return rank_runs(runs)
        except NoneSharedError:
            if self._lack(self._lacked(runs, None)):
                return None
            raise

    def _lacked(self, runs: Sequence[JudgedRun], ranking: Ranking | None) -> Sequence[Counts]:
        if ranking is None:
            return _of_each(runs, with_lines_of_all(runs, conditions_of_all(runs)))
        return _of_each(runs, lines_of_all(ranking, self._question, self._margin))

    def _comparisons(self, runs: Sequence[JudgedRun]) -> Sequence[Comparison]:
        if (ranking := self._ranking(runs)) is None:
            return []
        return [ranking.comparisons[pair] for pair in asked_pairs(ranking, self._question)]

    def _decided(self, runs: Sequence[JudgedRun]) -> str:
        return why_none_is_open(rank_runs(runs), self._question, self._margin)

    def _wanted(self, runs: Sequence[JudgedRun]) -> Sequence[Counts] | None:
        ranking = self._ranking(runs)
        lacked = self._lacked(runs, ranking)
        if ranking is None or self._lack(lacked):
            return lacked
        pairs = open_pairs(ranking, self._question, self._margin)
        if not pairs:
            return None
        wave = next_wave(self._budget.requests or 0, self.waves)
        return _of_each(runs, more_of_open(ranking, pairs, wave))


def _of_each(runs: Sequence[JudgedRun], wanted: Mapping[Path, Counts]) -> list[Counts]:
    """What each run is to have; nothing for one that is not asked."""
    return [wanted.get(run.folder, {}) for run in runs]


def asking_of(
    folders: Sequence[Path],
    limits: Limits,
    judging: JudgeSettings,
    *,
    warn: Warn,
    question: str | None = None,
) -> AskUntilDecided:
    """How runs are asked: two until their comparison is decided, and several until a question is
    answered (default: in which order they are).

    Raises:
        UsageError: there is no such question, or it has two runs; see also `AskedRanks`.
    """
    if question is not None and question not in QUESTIONS:
        names = " or ".join(QUESTIONS)
        raise UsageError(f"{named('settle')} is {names}, not {question!r}")
    if len(folders) > 2:  # noqa: PLR2004  two are a pair
        settle = question or RANKS
        return AskedRanks(folders, limits, judging, warn=warn, question=settle)
    if question is not None:
        raise UsageError(f"{named('settle')} is for three runs or more; leave it out")
    return AskedPair(folders, limits, judging, warn)
