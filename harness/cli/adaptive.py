"""`bench run --adaptive`: the chooser of the waves, and why each condition ended."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from harness.analysis.adaptive import Aim, choose
from harness.analysis.judged_run import JudgedRun, read_run
from harness.columns import OUTCOMES
from harness.errors import TaskError
from harness.face.run_options import RunOptions
from harness.journal.manifest import MANIFEST
from harness.plan.cost import estimate_tokens
from harness.plan.plan import make_sample
from harness.run.chooser import Wave
from harness.run.run_request import RunRequest
from harness.spec import MAX_LENGTH, Condition, Line

_BATCH_WAVE = 120
"""Samples of a condition in a wave, where each wave may take a day."""
_FACTOR = 1.45
"""How much longer the longest sample of a further line is than that of the line before."""
_DIGITS_A_TOKEN = 3
"""Digits that a tokenizer takes together, at most; `estimate_tokens` counts each."""


@dataclass(frozen=True, slots=True)
class AdaptiveChooser:
    """Chooses the waves of the runs of a command, each from its run's folder."""

    aim: Aim
    further: bool
    """Whether there are lines beyond the task's, as far as the model's window is known."""
    _further: dict[tuple[object, int], list[Line]] = field(default_factory=dict)

    def __call__(self, request: RunRequest, most: int | None) -> Wave:
        """See `Chooser`."""
        run = _present(request)
        planned = 0 if run is None else sum(cell.samples for cell in run.manifest.cells)
        lines = self.lines(request, run)
        choice = choose(
            run,
            request.plan.conditions,
            lines,
            replace(self.aim.on(lines), most_samples=request.plan.samples),
            most_requests=None if most is None else planned + most,
        )
        return Wave(choice.counts, choice.done)

    def most(self, request: RunRequest) -> int:
        """How many samples of a run may be asked in all."""
        return replace(request.plan, lines=self.lines(request, _present(request))).size

    def lines(self, request: RunRequest, run: JudgedRun | None) -> Sequence[Line]:
        """The lines that may be asked, ascending."""
        plan = request.plan
        server = request.known_facts if run is None else run.manifest.server
        window = request.model.window(server)
        if not self.further or plan.task.spec.items is not None or window is None:
            return plan.lines
        key = request.folder, window
        if key not in self._further:
            self._further[key] = _further_lines(request, window)
        return [*plan.lines, *self._further[key]]

    def ends(self, request: RunRequest, planned: RunRequest) -> dict[Condition, str]:
        """Condition -> why nothing more is asked of it; empty where something is. `planned` is the
        run with its last wave.
        """
        wave, present = self(request, None), planned.plan.sizes
        grown = {
            condition
            for (condition, line), size in request.plan.with_counts(wave.counts).sizes.items()
            if size > present.get((condition, line), 0)
        }
        no_items = "every item of the lines near the crossing was asked"
        return {
            condition: "" if condition in grown else wave.done.get(condition, no_items)
            for condition in request.plan.conditions
        }


def adaptive_chooser(options: RunOptions, *, further: bool) -> AdaptiveChooser:
    """The chooser that the options ask for; `further` as in `AdaptiveChooser`."""
    aim = Aim(options.precision)
    return AdaptiveChooser(replace(aim, wave=_BATCH_WAVE) if options.batch else aim, further)


def _present(request: RunRequest) -> JudgedRun | None:
    """The run as its folder has it, with its samples in order, so that it does not matter which
    reply came first; `None` where there is none.

    Of a full plan only what has an answer counts, and what lies before it.
    """
    if not (request.folder / MANIFEST).exists():
        return None
    run = read_run(request.folder)
    samples = run.samples.sort_values(["cell", "index"], ignore_index=True)
    manifest = run.manifest
    answered = samples[samples["outcome"] != OUTCOMES.index("error")]
    last = answered.groupby("cell")["index"].max()
    manifest.cells = [
        cell
        if cell.condition in manifest.adaptive
        else replace(cell, samples=int(last.get(place, -1)) + 1)
        for place, cell in enumerate(manifest.cells)
    ]
    return replace(run, samples=samples, manifest=manifest)


def _further_lines(request: RunRequest, window: int) -> list[Line]:
    """Lines that go on from the plan's last one, up to the first that no condition has room for,
    or to the longest that the task can make.
    """
    plan = request.plan
    last = plan.lines[-1]
    lines: list[Line] = []
    while True:
        high = max(last.high + 1, math.floor(last.high * _FACTOR))
        if high > MAX_LENGTH:
            return lines
        try:
            tokens = min(
                estimate_tokens(
                    make_sample(plan.task, condition, Line.exact(high), 0, plan.seed).prompt
                )
                for condition in plan.conditions
            )
        except TaskError:
            return lines
        low = last.high + 1
        last = Line.exact(high) if last.is_exact else Line(math.isqrt(low * high), low, high)
        lines.append(last)
        if tokens > window * _DIGITS_A_TOKEN:
            return lines
