"""`eyechart.compare`: runs on the same samples, which may be asked more until it is decided."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias, Unpack, overload

from eyechart.harness.analysis.comparison.comparison import compare_runs
from eyechart.harness.analysis.comparison.family import rank_runs
from eyechart.harness.analysis.samples.judged_run import read_run
from eyechart.harness.errors import CompareError, UsageError
from eyechart.harness.face.asking.ask_ranks import asking_of
from eyechart.harness.face.asking.ask_run import Limits
from eyechart.harness.face.asking.engine import RunNotices
from eyechart.harness.face.options.arguments import argument, knows_its_arguments
from eyechart.harness.face.options.run_options import as_warning
from eyechart.harness.face.python.ask import NoDisplay, notices, run_anywhere
from eyechart.harness.face.python.ranking import RunRanking
from eyechart.harness.face.python.result import Run, RunComparison
from eyechart.harness.journal.record import Warn
from eyechart.harness.settings.checks import path
from eyechart.harness.settings.judging import JudgeSettings, PairJudgingArguments
from eyechart.harness.settings.run_settings import SETTINGS, RunSettings

OneRun: TypeAlias = Run | str | Path
"""A run, or its folder."""
_TWO = 2


class CompareArguments(PairJudgingArguments, total=False):
    """The types of the arguments of `compare` besides the runs."""

    ask: bool
    settle: str | None
    max_requests: int | None
    budget: float | None
    base_url: str | Sequence[str]
    header: str | Sequence[str]
    max_connections: int | None
    warn: Warn | None


@overload
def compare(first: OneRun, second: OneRun, **given: Unpack[CompareArguments]) -> RunComparison: ...
@overload
def compare(first: Sequence[OneRun], **given: Unpack[CompareArguments]) -> RunRanking: ...


@knows_its_arguments
def compare(
    first: OneRun | Sequence[OneRun],
    second: OneRun | None = None,
    *,
    ask: bool = False,
    settle: str | None = None,
    max_requests: int | None = None,
    budget: float | None = None,
    base_url: str | Sequence[str] = (),
    header: str | Sequence[str] = (),
    max_connections: int | None = None,
    warn: Warn | None = None,
    **judging: Unpack[PairJudgingArguments],
) -> RunComparison | RunRanking:
    """Compares two runs, or the runs in two folders, on the same samples; recorded replies to
    different rows are compared unpaired. A list of runs or folders in place of `first` is ranked,
    and each pair of them compared. All are judged by the settings of the first `Run`,
    unless others are given.

    With `ask`, the runs are asked more until their comparison is decided, or `max_requests` samples
    (default: half as many as full runs of all have) or `budget` dollars are spent; `base_url` and
    `header`, which no run keeps, are those of the server of all. Of three runs or more those whose
    order is open are asked, and with `settle="best"` those that may be right furthest. Replies are
    added to the folders of the runs.
    The arguments of judging are those of `load_run` and `Run.compare`, `warn` is that of `run`.

    Raises:
        CompareError: they cannot be compared; the error says why.
        JournalError: a folder has no run, or it cannot be read.
        UsageError: a run cannot be asked again, or an argument of asking stands without `ask`.
        ProviderError: a model cannot be asked. What was answered is saved.
    """
    given = _named(first, second)
    leader = given[0][1]
    usual = leader.judged.settings.of_runs if isinstance(leader, Run) else {}
    settings = JudgeSettings.read(**usual | judging)
    runs = [
        one.judged.judged_by(settings)
        if isinstance(one, Run)
        else read_run(argument(name, one, path), as_warning, settings)
        for name, one in given
    ]
    folders = [one.real_folder for one in runs]
    for one in runs:
        if folders.count(one.real_folder) > 1:
            said = f"{one.folder} is given {folders.count(one.real_folder)} times"
            raise CompareError(f"{said}; Run.compare compares two conditions of one run")
    if ask:
        most = {} if max_connections is None else {"max_connections": max_connections}
        limited = RunSettings.read(budget=budget, base_url=base_url, header=header, **most)
        limits = Limits(
            requests=SETTINGS["max_requests"].read(max_requests),
            budget=limited.budget,
            base_url=limited.base_url,
            header=limited.header,
            max_connections=limited.max_connections if most else None,
        )
        with notices(warn) as notify:
            asking = asking_of(
                [one.folder for one in runs],
                limits,
                settings,
                warn=notify,
                question=settle,
            )
            done = asking.ask(RunNotices(NoDisplay(), notify, notify), run_anywhere)
            if asking.is_short:
                notify(done)
        runs = [read_run(one.folder, as_warning, one.settings) for one in runs]
    elif any((settle, base_url, header)) or (max_requests, budget) != (None, None):
        asking_alone = "settle, max_requests, budget, base_url and header"
        raise UsageError(f"{asking_alone} are for ask=True; add it")
    if second is None:
        return RunRanking(rank_runs(runs), settings.margin)
    compared = compare_runs(runs[0], runs[1], unpaired=True)
    return RunComparison(compared, settings.margin)


def _named(
    first: OneRun | Sequence[OneRun], second: OneRun | None
) -> list[tuple[str, OneRun | None]]:
    """The runs that are compared, each with the name of its argument; raises `UsageError` if there
    are fewer than two, or one stands beside a list.
    """
    if isinstance(first, Run | str | Path) or not isinstance(first, Sequence):
        return [("first", first), ("second", second)]
    if second is not None:
        raise UsageError("second stands beside a list of runs; add it to the list")
    if len(first) < _TWO:
        raise UsageError(f"a list of runs must have two or more, not {len(first)}")
    return [("each run of the list", one) for one in first]
