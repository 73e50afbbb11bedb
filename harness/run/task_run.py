"""One model on one task, sample by sample: sends what is pending, keeps what comes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from harness.journal import journal
from harness.journal.journal import Journal
from harness.plan.cost import Budget
from harness.run import pool
from harness.run.batch.pending import refuse_if_under_way
from harness.run.open_run import Judge, OpenRun, Recorder, Wanted
from providers.base import Provider
from providers.catalog.model_facts import model_facts

__all__ = ["Wanted", "run_task"]


async def run_task(
    wanted: Wanted,
    provider: Provider,
    *,
    limits: pool.Limits,
    warn: journal.Warn,
    budget: Budget | None = None,
    judge: Judge | None = None,
    started: Callable[[pool.Progress, int], None] = lambda _progress, _pending: None,
) -> None:
    """Asks everything of `wanted` that its run has no answer to yet.

    `started` is told the progress to watch and how many samples are pending; with `judge` the
    progress counts the correct answers. Whatever is raised or cancelled on the way, each reply that
    came is in the journal and the manifest says what the run was meant to have.

    Raises:
        StopRunError: the provider gives up on the run, or another model answers than before.
        JournalError: the run's folder cannot be used.
        TaskError: a sample cannot be made.
    """
    with Journal(wanted.folder, warn) as book:
        run = OpenRun(wanted, book, warn)
        pending = run.pending
        progress = pool.Progress(budget=budget or Budget())
        if not pending:  # nobody need be there
            run.see()
            run.save()
            started(progress, pending)
            return
        refuse_if_under_way(wanted.folder)
        run.meet(await provider.facts())
        await run.measure(provider)
        if run.manifest.answered_by:  # should another model answer now, one reply shows it
            limits = replace(limits, first_connections=1)
        record = Recorder(book, run.manifest, warn, progress=progress, judge=judge)
        started(progress, pending)
        try:
            await pool.run(
                run.samples(record),
                provider,
                record,
                temperature=wanted.settings.temperature,
                seed=wanted.settings.seed,
                system=wanted.settings.system or "",
                think_tokens=model_facts(wanted.model).room_to_think,
                limits=limits,
                progress=progress,
                say=warn,
            )
            if not progress.budget.exhausted:
                run.seen()
        finally:
            run.save()
