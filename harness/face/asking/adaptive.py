"""Adaptive runs: the chooser of the waves, and how each condition ended."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

from eyechart.harness.analysis.adaptive.adaptive import Aim, NextWave, Step, choose
from eyechart.harness.analysis.adaptive.forecast import foreseen, middle
from eyechart.harness.analysis.samples.judged_run import JudgedRun, read_run
from eyechart.harness.errors import TaskError
from eyechart.harness.journal.manifest import MANIFEST, read_manifest
from eyechart.harness.plan.context_fit import CellFit
from eyechart.harness.plan.cost import estimate_tokens
from eyechart.harness.plan.plan import Plan, make_sample
from eyechart.harness.plan.selection import precision_text
from eyechart.harness.run.chooser import Wave
from eyechart.harness.run.run_request import RunRequest
from eyechart.harness.score.outcomes import Outcome
from eyechart.harness.settings.checks import COARSEST
from eyechart.harness.settings.judging import JudgeSettings
from eyechart.harness.settings.run_settings import RunSettings
from eyechart.harness.spec import MAX_LENGTH, CellKey, Condition, Line
from eyechart.providers.naming import named

_BATCH_WAVE = 120
"""Samples of a condition in a wave, if each wave may take a day."""
_FACTOR = 1.45
"""Ratio of the longest sample of each further line to that of the line before."""
_DIGITS_A_TOKEN = 3
"""Most digits that a tokenizer joins to one token; `estimate_tokens` counts each digit."""


@dataclass(frozen=True, slots=True)
class UnknownLength:
    """A condition whose effective length is not known as well as wanted."""

    text: str
    remedy: str
    """What helps; empty if the same command continues."""


@dataclass(frozen=True, slots=True)
class AllWaves:
    """What the waves of a run may ask together."""

    plan: Plan
    """The task's lines, each with as many samples as it may have."""
    longer: Sequence[Line]
    """Longer lines that may be asked after those of the task; empty where the window is not known.
    """
    present: Mapping[CellKey, int]
    """The cells of `plan` that have answers, each with the number of its answered samples."""
    foreseen: Sequence[Mapping[Line, int]]
    """The waves that a condition is expected to have; empty once the run has a plan."""
    unfinished: Sequence[Condition]
    """The conditions that are asked more."""
    limit: float
    """Most samples of a condition."""
    may_grow: bool
    """Whether longer lines may follow, because the window is not known before the server is asked.
    """

    @property
    def size(self) -> int:
        """Most requests, on the lines that are known."""
        plan = replace(self.plan, lines=[*self.plan.lines, *self.longer])
        most = self.limit * len(plan.conditions) * plan.draws
        return int(min(plan.size, most))

    @property
    def is_bounded(self) -> bool:
        """Whether no longer lines may follow those of the task."""
        return not self.unfinished or not (self.may_grow or self.longer)

    @property
    def cells(self) -> list[CellKey]:
        """The cells that may be asked more, those of the longest lines first."""
        return list(product(self.unfinished, reversed(self.plan.lines)))

    def dearest(
        self, most: int | None, fits: Mapping[CellKey, CellFit], cells: Sequence[CellKey]
    ) -> Plan | None:
        """The plan that costs most, with at most `most` new requests: on the first of `cells`, of
        which each costs at least as much as the next one. `fits` has the cells whose samples may
        have no room in the window; such samples are not sent. `None` where longer lines may follow.
        """
        if not self.is_bounded:
            return None
        plan, counts, left = self.plan, Counter(self.present), self._new(most)
        left_of = dict.fromkeys(plan.conditions, self.limit)
        for (condition, _), samples in self.present.items():
            left_of[condition] -= samples
        for key in cells:
            condition, _ = key
            room = plan.cell_size(*key) - counts[key]
            more = int(max(0, min(room, left, left_of[condition])))
            counts[key] += more
            if key not in fits or fits[key].longest.fits:
                left -= more
                left_of[condition] -= more
        return plan.with_counts(counts)

    def expected(self, most: int | None) -> Plan | None:
        """The plan of a model right to `right_to`, with at most `most` requests: wave by wave,
        as `choose` limits them. `None` once something is planned, unless nothing more is asked.
        """
        if self.unfinished and not self.foreseen:
            return None
        plan, counts, left = self.plan, Counter[CellKey](), self._new(most)
        for wave, condition in product(self.foreseen, plan.conditions):
            for line, samples in wave.items():
                allowed = int(min(samples, left))
                counts[condition, line] += allowed
                left -= allowed
        return plan.with_counts(counts)

    def _new(self, most: int | None) -> float:
        """Most new samples of a command with at most `most` requests."""
        return math.inf if most is None else most // self.plan.draws

    @property
    def right_to(self) -> int:
        """The length in the middle of the lines."""
        return middle(self.plan.lines)


@dataclass(frozen=True, slots=True)
class AdaptiveChooser:
    """Chooses the waves of the runs of a command, each from its run's folder."""

    aim: Aim
    further: bool
    """Whether lines beyond the task's may be added, as far as the model's window is known. A run
    that aims at the precision of a full run never has them: it asks no more samples than that run.
    """
    samples: int | None = None
    """Samples of a line in a full run, if not the task's own number."""
    judging: JudgeSettings = JudgeSettings()
    _further: dict[tuple[object, int], list[Line]] = field(default_factory=dict)
    _foreseen: dict[tuple[object, ...], Sequence[Mapping[Line, int]]] = field(default_factory=dict)

    def __call__(self, request: RunRequest, most: int | None) -> Wave:
        choice = self._choice(request, most)
        return Wave(choice.counts, _known(choice))

    def _choice(self, request: RunRequest, most: int | None) -> NextWave:
        return self._chosen(request, _present(request, self.judging), most)

    def _chosen(self, request: RunRequest, run: JudgedRun | None, most: int | None) -> NextWave:
        planned = 0 if run is None else sum(cell.samples for cell in run.manifest.cells)
        return choose(
            run,
            request.plan.conditions,
            self.lines(request, run),
            self._aim(request),
            most_requests=None if most is None else planned + most // request.plan.draws,
        )

    def _aim(self, request: RunRequest) -> Aim:
        """The aim for a run, whose samples or items limit what can be asked of a line."""
        plan = request.plan
        items = {line: plan.task.items_at(line.length) for line in plan.lines}
        known = {line: number for line, number in items.items() if number is not None}
        full = self.samples or plan.task.samples
        return replace(self.aim, full_samples=full, most_samples=plan.samples, items=known)

    def of_new_run(self, request: RunRequest, most: int | None) -> Mapping[CellKey, int]:
        """The first wave of a run without samples, whatever its folder has."""
        return self._chosen(request, None, most).counts

    def all_waves(self, request: RunRequest, *, is_fresh: bool) -> AllWaves:
        """What all waves of a run may ask."""
        run = None if is_fresh else _present(request, self.judging)
        plan, aim = request.plan, self._aim(request)
        limit = aim.most_requests(len(plan.lines))
        cells = [] if run is None else run.manifest.cells
        is_known = self._window(request, run) is not None
        return AllWaves(
            plan,
            self.lines(request, run)[len(plan.lines) :],
            {} if run is None else dict(_answered(run, plan)),
            [] if cells else self._expected(plan, aim),
            plan.conditions if run is None else self._unfinished(request, run),
            math.inf if limit is None else limit,
            may_grow=self.further and plan.task.spec.items is None and not is_known,
        )

    def _unfinished(self, request: RunRequest, run: JudgedRun) -> list[Condition]:
        """The conditions of a run whose last wave has no reply yet, or that are asked another."""
        steps = self._chosen(request, run, None).steps
        replied = dict(_replied(run))
        waiting = {
            cell.condition
            for cell in run.manifest.cells
            if cell.condition in steps and replied.get(cell.key, 0) < cell.samples * cell.draws
        }
        return [of for of, step in steps.items() if step.more or of in waiting]

    def _expected(self, plan: Plan, aim: Aim) -> Sequence[Mapping[Line, int]]:
        """What the models of a command are expected to be asked; computed once."""
        key = plan.task.name, tuple(plan.lines), aim.full_samples, aim.most_samples
        if key not in self._foreseen:
            self._foreseen[key] = foreseen(plan.lines, aim)
        return self._foreseen[key]

    def lines(self, request: RunRequest, run: JudgedRun | None) -> Sequence[Line]:
        """The lines that may be asked, ascending."""
        plan = request.plan
        window = self._window(request, run)
        if not self.further or plan.task.spec.items is not None or window is None:
            return plan.lines
        key = request.folder, window
        if key not in self._further:
            self._further[key] = _further_lines(request, window)
        return [*plan.lines, *self._further[key]]

    def _window(self, request: RunRequest, run: JudgedRun | None) -> int | None:
        server = request.known_facts if run is None else run.manifest.server
        return request.model.window(server)

    def ends(
        self, request: RunRequest, planned: RunRequest | None
    ) -> dict[Condition, str | UnknownLength]:
        """Condition -> its result, or why the result is not precise enough. `planned` is the run
        with its last wave; `None` if it was not begun.
        """
        run = _present(request, self.judging)
        choice = self._chosen(request, run, None)
        limited = {} if run is None else dict(_limited(run))
        present = {} if planned is None else planned.plan.sizes
        grown = {
            condition
            for (condition, line), size in request.plan.with_counts(choice.counts).sizes.items()
            if size > present.get((condition, line), 0)
        }
        return {
            condition: limited[condition]
            if condition in limited
            else step.found
            if step.is_known
            else self._unknown(step, goes_on=condition in grown)
            for condition, step in choice.steps.items()
        }

    def _unknown(self, step: Step, *, goes_on: bool) -> UnknownLength:
        """The message about a condition that is not known as well as wanted."""
        if goes_on:
            needs = "lines in doubt need" if step.is_narrow else "it needs"
            return UnknownLength(f"{step.found}; {needs} more samples", "")
        more = "add items" if step.needs_items else f"raise {named('samples')}"
        wanted = self.aim.precision
        helps = wanted is not None and wanted < step.octaves <= COARSEST and not step.is_narrow
        return UnknownLength(step.why, more + f" or raise {named('precision')}" * helps)

    def unknown(self, ends: Sequence[UnknownLength], limit: str, goes_on: str) -> Iterator[str]:
        """The message about conditions that are not known well enough, and what helps. `limit` is
        the limit at which the command ended, `goes_on` the way to ask more.
        """
        for remedy, count in Counter(end.remedy for end in ends).items():
            are = "conditions are" if count > 1 else "condition is"
            text = f"{count} {are} not known to {precision_text(self.aim.precision)}"
            yield f"{text}; {remedy}" if remedy else f"{text}{limit}; {goes_on}"


def adaptive_chooser(
    given: RunSettings, judging: JudgeSettings, *, further: bool
) -> AdaptiveChooser:
    """The chooser that the settings ask for, of effective lengths as they are judged; `further` as
    in `AdaptiveChooser`.
    """
    aim = Aim(given.precision, threshold=judging.threshold)
    waits = given.is_batch or given.engine is not None
    return AdaptiveChooser(
        replace(aim, wave=_BATCH_WAVE) if waits else aim,
        further and aim.precision is not None,
        given.samples,
        judging,
    )


def _limited(run: JudgedRun) -> Iterator[tuple[Condition, str]]:
    """The conditions whose length something else than sight limits, and what: more samples make it
    no better known.
    """
    for condition, judged in run.conditions.items():
        estimate = judged.effective_length()
        if estimate is not None and not estimate.limit.is_ranked:
            limit = estimate.limit
            yield condition, f"it is limited by {limit.said}: {limit.fact}"


def _known(choice: NextWave) -> str:
    """`1 of 2 known, widest 1.25 octaves`: the conditions that are done, and the widest interval of
    the others.
    """
    steps = choice.steps.values()
    widths = [step.octaves for step in steps if not step.is_known]
    widest = max(widths, default=0.0)
    known = f"{len(steps) - len(widths)} of {len(steps)} known"
    return f"{known}, widest {widest:.2f} octaves" if 0 < widest < math.inf else known


def _present(request: RunRequest, judging: JudgeSettings) -> JudgedRun | None:
    """The run as its folder has it, with its samples in order, so that the order of replies does
    not matter; `None` if there is none.

    Of a full plan only answered samples count, and all samples before them.
    """
    if not (request.folder / MANIFEST).exists():
        return None
    run, waves = read_run(request.folder, settings=judging), read_manifest(request.folder).adaptive
    samples = run.samples.sort_values(["cell", "index", "draw"], ignore_index=True)
    manifest = run.manifest
    answered = samples[samples["outcome"] != Outcome.ERROR.place]
    last = answered.groupby("cell")["index"].max()
    manifest.cells = [
        cell if cell.condition in waves else replace(cell, samples=int(last.get(place, -1)) + 1)
        for place, cell in enumerate(manifest.cells)
    ]
    return replace(run, samples=samples, manifest=manifest)


def _answered(run: JudgedRun, plan: Plan) -> Iterator[tuple[CellKey, int]]:
    """The cells of a plan that have answers, each with the number of its answered samples."""
    for (condition, line), replies in _replied(run):
        number = replies // plan.draws
        if number and condition in plan.conditions and line in plan.lines:
            yield (condition, line), number


def _replied(run: JudgedRun) -> Iterator[tuple[CellKey, int]]:
    """The cells of a run, each with the number of its replies; samples that do not fit count."""
    samples = run.samples[run.samples["outcome"] != Outcome.ERROR.place]
    sizes = samples.groupby("cell").size()
    for place, cell in enumerate(run.manifest.cells):
        yield cell.key, int(sizes.get(place, 0))


def _further_lines(request: RunRequest, window: int) -> list[Line]:
    """Lines after the plan's last one, up to the first that no condition has room for, or to the
    longest that the task can make.
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
