"""`eyechart.compare`: two runs on the same samples, which may be asked more until it is decided."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from eyechart.harness.analysis.comparison import MARGIN, compare_runs
from eyechart.harness.analysis.in_tokens import OWN
from eyechart.harness.errors import CompareError, UsageError
from eyechart.harness.face.arguments import argument, knows_its_arguments
from eyechart.harness.face.ask import NoDisplay, notices, run_anywhere
from eyechart.harness.face.asked_pair import AskedPair
from eyechart.harness.face.asked_run import Limits
from eyechart.harness.face.engine import Talk
from eyechart.harness.face.result import Run, RunComparison, load_run, read_unit
from eyechart.harness.journal.record import Warn
from eyechart.harness.settings.checks import path
from eyechart.harness.settings.run_settings import SETTINGS, RunSettings


@knows_its_arguments
def compare(
    first: Run | str | Path,
    second: Run | str | Path,
    *,
    margin: float = MARGIN,
    unit: str = OWN,
    ask: bool = False,
    max_requests: int | None = None,
    budget: float | None = None,
    base_url: str | Sequence[str] = (),
    max_connections: int = 64,
    tasks: str | Path = "",
    run_kept_code: bool = False,
    warn: Warn | None = None,
) -> RunComparison:
    """Compares two runs, or the runs in two folders, on the same samples; recorded replies to
    different rows are compared unpaired. With `unit="tokens"` effective lengths are in tokens of
    the row.

    With `ask`, both runs are asked more until their comparison is decided, or `max_requests`
    samples (default: those of a full run) or `budget` dollars are spent; `base_url` is that of the
    server of both. Replies are added to the folders of the runs. `tasks` and `run_kept_code` are
    those of `load_run`, `warn` is that of `run`.

    Raises:
        CompareError: they cannot be compared; the error says why.
        JournalError: a folder has no run, or it cannot be read.
        UsageError: a run cannot be asked again, or an argument of asking stands without `ask`.
        ProviderError: a model cannot be asked. What was answered is saved.
    """
    read = partial(load_run, tasks=tasks, run_kept_code=run_kept_code)
    left, right = (
        one if isinstance(one, Run) else read(argument(name, one, path))
        for name, one in (("first", first), ("second", second))
    )
    if left.folder.resolve() == right.folder.resolve():
        raise CompareError(f"{left.folder} is both runs; Run.compare compares its conditions")
    in_tokens = read_unit(unit)
    if ask:
        settings = RunSettings.read(
            budget=budget, base_url=base_url, max_connections=max_connections
        )
        limits = Limits(
            requests=SETTINGS["max_requests"].read(max_requests),
            budget=settings.budget,
            base_url=settings.base_url,
            max_connections=settings.max_connections,
            tasks=str(tasks),
            run_kept_code=run_kept_code,
        )
        with notices(warn) as notify:
            pair = AskedPair((left.folder, right.folder), limits, left.threshold, margin, notify)
            pair.ask(Talk(NoDisplay(), notify, notify), run_anywhere)
        left, right = (
            read(one.folder, threshold=one.threshold.share, relative=one.threshold.relative)
            for one in (left, right)
        )
    elif max_requests is not None or budget is not None or base_url:
        raise UsageError("max_requests, budget and base_url are for ask=True; add it")
    compared = compare_runs(
        left.judged, right.judged, left.threshold, unpaired=True, in_tokens=in_tokens
    )
    return RunComparison(compared, margin)
