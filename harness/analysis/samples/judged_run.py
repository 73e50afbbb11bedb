"""One judged run: the only place that interprets a journal.

It decides which conditions a run has, their order, which are controls, and their curves and
effective lengths. `judged_samples` decides which record of a sample counts. The terminal, the page,
the leaderboard, comparisons and exports all use this module. It is a pure function of the run's
folder.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from eyechart.harness.analysis.length.curve import Curve, Floats, check_chance, curve
from eyechart.harness.analysis.length.effective_length import EffectiveLength, effective_length
from eyechart.harness.analysis.length.limits import (
    Choices,
    Copies,
    Numbers,
    ScoredSamples,
    scored_length,
)
from eyechart.harness.analysis.length.tokens_of_row import (
    Source,
    TokensASymbol,
    fitted,
    of_prompts,
    writes_rows,
)
from eyechart.harness.analysis.order.copies import order_of_copies
from eyechart.harness.analysis.order.d_prime import DPrime, d_prime
from eyechart.harness.analysis.order.near import near_length
from eyechart.harness.analysis.order.order import Order, order, order_of_control
from eyechart.harness.analysis.samples.cut_prompts import OneCount
from eyechart.harness.analysis.samples.draws import DrawSummary, drawn, mean_pass_at, rows_of
from eyechart.harness.analysis.samples.judged_samples import judged_samples, target_mark
from eyechart.harness.analysis.samples.remedies import MOST_RECORDS, ReplyRemedies, context_of
from eyechart.harness.analysis.samples.sample_set import SampleSet, asked_of
from eyechart.harness.analysis.samples.verdicts import Judge, judge_of_run
from eyechart.harness.analysis.tables.cell_table import cell_table
from eyechart.harness.analysis.tables.confidence import (
    Calibration,
    ForcedChoices,
    calibration,
    chosen_of,
    confidence,
)
from eyechart.harness.analysis.tables.diagnosis import diagnosis, error_growth
from eyechart.harness.errors import JournalError
from eyechart.harness.journal.judged_before import check_journal
from eyechart.harness.journal.manifest import Manifest, most_of, read_manifest
from eyechart.harness.journal.record import Record, Warn, read_records
from eyechart.harness.journal.server import addresses
from eyechart.harness.plan.plan import Plan
from eyechart.harness.plan.resolved_model import ResolvedModel, resolve_model
from eyechart.harness.score.outcomes import ANSWERED, OUTCOMES, SCORED_PLACES, Cause, Outcome
from eyechart.harness.settings.judging import JudgeSettings
from eyechart.harness.spec import Cell, Condition, TaskSpec, columns, token_counts
from eyechart.harness.spec.dollars import dollars_text
from eyechart.harness.spec.worked_examples import number_of

_IN_FINGERPRINT = ("index", "true_length", "prompt", "target")
"""The columns of `JudgedRun.samples` that say what a sample is."""


@dataclass(frozen=True, slots=True)
class RunCost:
    """What the replies of a run, or of a part of it, cost, without attempts that failed."""

    dollars: float
    unknown: int
    """Samples with a record whose tokens are not known: they are not counted."""
    prices_of: str
    """The date of the prices, and the list that they are from."""
    a_reply: float
    """Mean dollars of a reply whose tokens are known."""

    @property
    def of_day(self) -> str:
        """The date of the prices alone."""
        return self.prices_of.partition(" ")[0]

    def __str__(self) -> str:
        return dollars_text(self.dollars)


def model_of(manifest: Manifest) -> ResolvedModel:
    """The model of a run, at the addresses where it was asked."""
    return resolve_model(manifest.asked_as, addresses=addresses(manifest.server))


@dataclass(frozen=True, eq=False)
class JudgedRun:
    """One run with the verdict on each of its samples."""

    folder: Path
    manifest: Manifest
    samples: pd.DataFrame
    """One row for each sample of a cell that has a record; cells whose bands overlap may share
    samples: `cell` (place in `manifest.cells`), `index`, `outcome` (place in `OUTCOMES`), `reading`
    (see `score.readings`), `record` (number of the record that counts, from 0, in the journal),
    `true_length`, `prompt` (its hash),
    `target` (see `target_mark`), `wanted` (the target, if it is a number), `answer` (place in
    `answers`; -1 where no integer was read), `signed_error` (of integers; infinite where too large
    for a float), `collapsed` (1, 0 or -1, see `diagnosis.collapsed`), `first_divergence` (of
    texts), `off` and `nearer` (of copies, see `copies.CopyCredit`), `prompt_tokens`,
    `output_tokens`, `thinking_tokens`, `options` (their number; 0 for a reply), `confidence`,
    `brier` and `tied` (see `forced_choice.Belief`), `margin` (see `RightRank`), `offered` (tells
    pairs of options apart; 0 for other numbers of options), `cost` (dollars). NaN where a value is
    unknown. A row for each `draw`, from 1; where there are several, `said` and `text` tell the
    answers that were read and the replies apart."""
    answers: Sequence[int]
    """The distinct integers that were read as answers, ascending."""
    judge: Judge
    """What has given the verdicts."""
    times: tuple[float, float] | None = None
    """Times of the first and the last record, in seconds since 1970; `None` where unknown."""
    model: ResolvedModel | None = None
    """The catalog's facts about the model, at the addresses where it was asked."""
    one_counts: Mapping[Condition, OneCount] = field(default_factory=dict)
    """Conditions whose prompts have one number of tokens, however long they are."""
    settings: JudgeSettings = JudgeSettings()
    """How it was read, and is judged."""

    def judged_by(self, settings: JudgeSettings) -> JudgedRun:
        """The same verdicts under other settings; itself where they are its own."""
        return self if settings == self.settings else replace(self, settings=settings)

    @cached_property
    def real_folder(self) -> Path:
        """Its folder, wherever links lead."""
        return self.folder.resolve()

    @property
    def prices_of(self) -> str:
        """The date and the name of the price list used for `cost`; empty if there is none."""
        prices = None if self.model is None else self.model.prices
        return "" if prices is None else prices.of

    @cached_property
    def cost(self) -> RunCost | None:
        """What all replies cost; `None` if no reply's cost is known."""
        return self.cost_at(range(len(self.manifest.cells)))

    def cost_at(self, places: Collection[int]) -> RunCost | None:
        """What the replies in the cells at `places` cost."""
        taken = "cell", "record", "cost"
        cells, records, costs = (self.samples[name].to_numpy() for name in taken)
        in_cells = np.flatnonzero(np.isin(cells, list(places)))
        _, firsts = np.unique(records[in_cells], return_index=True)
        costs = costs[in_cells[np.sort(firsts)]]
        known = costs[~np.isnan(costs)]
        total, unknown = float(known.sum()), len(costs) - len(known)
        return RunCost(total, unknown, self.prices_of, total / len(known)) if len(known) else None

    def may_change_tokens(self, axis: str) -> bool:
        """Whether the values of an axis may change in how many tokens the model reads a row: see
        `writes_rows`.
        """
        has_tokenizer = self.model is None or self.model.has_tokenizer
        return has_tokenizer and writes_rows(self.spec, axis)

    @cached_property
    def options(self) -> tuple[int, ...]:
        """The distinct numbers of options that were chosen from; empty where replies are read."""
        counts = np.unique(self.samples["options"].to_numpy())
        return tuple(counts[counts > 0].tolist())

    @property
    def chance(self) -> float:
        """The share of its samples that guesses have right; 0 where replies are read."""
        counts = self.samples["options"].to_numpy()
        return float((1 / counts[counts > 0]).mean()) if self.options else 0.0

    @property
    def draws(self) -> int:
        """How often a sample is asked, at most."""
        return max((cell.draws for cell in self.manifest.cells), default=1)

    @cached_property
    def drawn(self) -> DrawSummary | None:
        """What several draws say, without controls; `None` where each prompt is asked once."""
        return drawn(self._shown_samples) if self.draws > 1 else None

    def pass_at(self, k: int) -> float | None:
        """See `draws.mean_pass_at`; without controls."""
        passed = mean_pass_at(k, rows_of(self._shown_samples))
        return None if passed is None else passed[0]

    @property
    def _shown_samples(self) -> pd.DataFrame:
        """The samples of all conditions but controls, unless there is nothing else."""
        shown = without_controls(self.shown())
        return self.samples[self.samples["cell"].isin([at for one in shown for at in one.places])]

    def shown(self, conditions: Collection[Condition] | None = None) -> list[JudgedCondition]:
        """The conditions of the run, only those of `conditions` if given."""
        parts = self.conditions.items()
        return [one for key, one in parts if conditions is None or key in conditions]

    @cached_property
    def spec(self) -> TaskSpec:
        """The task's spec at the time of the run."""
        return self.manifest.task_spec()

    @property
    def has_given_rows(self) -> bool:
        """Whether the rows are those of somebody's data: ready items, or recorded replies."""
        return self.spec.items is not None or self.manifest.recorded is not None

    @cached_property
    def cells(self) -> pd.DataFrame:
        """The columns of `table.csv`, one row for each cell, in the order of `manifest.cells`."""
        return cell_table(self.manifest, self.samples)

    def fingerprint(self, places: Collection[int] | None = None) -> str | None:
        """Hash of the prompts and targets of the cells, or of those at `places`; `None` where a
        sample has no record. The same samples give the same hash, whoever was asked.
        """
        cells = self.manifest.cells
        first = self.samples[self.samples["draw"] == 1].sort_values(["cell", "index"])
        data = first[list(_IN_FINGERPRINT)].to_numpy(np.uint64).astype("<u8")
        ends = np.searchsorted(first["cell"].to_numpy(), range(len(cells) + 1))
        found = []
        for place in range(len(cells)) if places is None else places:
            cell, rows = cells[place], data[ends[place] : ends[place + 1]]
            if len(rows) < cell.samples:
                return None
            found.append((cell.condition.label, *astuple(cell.line), rows.tobytes()))
        return hashlib.sha256(repr(sorted(found)).encode()).hexdigest()[:16]

    @cached_property
    def outcomes(self) -> npt.NDArray[np.int64]:
        """How many samples of each cell have each outcome: shape (cells, outcomes)."""
        return self.cells[list(OUTCOMES)].to_numpy(np.int64)

    @cached_property
    def diagnosis(self) -> pd.DataFrame:
        """One row for each cell, see `diagnosis.diagnosis` and `confidence.confidence`."""
        size = len(self.manifest.cells)
        signs = diagnosis(self.samples, self.answers, size)
        return pd.DataFrame({**signs, **confidence(chosen_of(self.samples), size)})

    @cached_property
    def conditions(self) -> dict[Condition, JudgedCondition]:
        """Condition -> its part of the run, in the order of the task file."""
        places: dict[Condition, list[int]] = {}
        for place, cell in enumerate(self.manifest.cells):
            places.setdefault(cell.condition, []).append(place)
        return {
            condition: JudgedCondition(self, condition, tuple(its_places))
            for condition, its_places in places.items()
        }

    @cached_property
    def line_names(self) -> list[str]:
        """The nominal length of each cell, with its band if several lines have that length."""
        cells = self.manifest.cells
        counts = Counter((cell.condition, cell.length) for cell in cells)
        return [
            str(cell.length)
            if counts[cell.condition, cell.length] == 1
            else f"{cell.length}:{cell.line.low}-{cell.line.high}"
            for cell in cells
        ]

    @property
    def missing(self) -> int:
        """Number of samples without a reply."""
        return int(np.delete(self.outcomes, SCORED_PLACES, axis=1).sum())

    def lacking(self, plan: Plan) -> int:
        """How many requests of a plan of its task have no reply."""
        sizes = plan.sizes
        cells, indexes, draws, outcomes = (
            self.samples[name].to_numpy() for name in ("cell", "index", "draw", "outcome")
        )
        planned = np.array([sizes.get(cell.key, 0) for cell in self.manifest.cells], int)[cells]
        of_shard = indexes % plan.shard.of == plan.shard.number - 1
        wanted = (indexes < planned) & of_shard & (draws <= plan.draws)
        return plan.size - int((wanted & (outcomes != Outcome.ERROR.place)).sum())

    @property
    def has_nothing_readable(self) -> bool:
        """Whether there are replies, and none can be read: the same command stops again."""
        return bool(self.cells["n"].any()) and not any(self.cells[one].any() for one in ANSWERED)


@dataclass(frozen=True, eq=False)
class JudgedCondition:
    """The part of a run under one condition."""

    run: JudgedRun
    condition: Condition
    places: tuple[int, ...]
    """Places of this condition's cells in `manifest.cells`, by line."""
    _estimates: dict[frozenset[int], EffectiveLength | None] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """`separator=comma,strategy=direct`, or `-`."""
        return self.condition.label

    @property
    def adaptive(self) -> bool:
        """Whether the samples were chosen by the replies. An adaptive condition has no area, since
        most of its samples are where the accuracy falls.
        """
        return self.condition in self.run.manifest.adaptive

    @property
    def planned(self) -> list[Cell]:
        """The condition's cells in the manifest."""
        return [self.run.manifest.cells[place] for place in self.places]

    @cached_property
    def cells(self) -> pd.DataFrame:
        """The condition's rows of `table.csv`, by line."""
        return self.run.cells.iloc[list(self.places)]

    @cached_property
    def scored_cells(self) -> pd.DataFrame:
        """The rows of `cells` with a scored sample: these have an accuracy."""
        return self.cells[self.cells["n"].to_numpy() > 0]

    @property
    def lengths(self) -> list[int]:
        """Nominal lengths with a scored sample, ascending; each once."""
        return sorted({int(length) for length in self.scored_cells["length"]})

    @cached_property
    def asked(self) -> SampleSet:
        """The condition's samples that have a record, in the same order in all runs."""
        lines = np.array([astuple(cell.line) for cell in self.run.manifest.cells], np.int64)
        return asked_of(self.run.samples, self.recorded, lines)

    @property
    def recorded(self) -> npt.NDArray[np.bool_]:
        """Which of `JudgedRun.samples` are the condition's."""
        return np.isin(self.run.samples["cell"].to_numpy(), self.places)

    def _scored_in(self, places: Collection[int]) -> ScoredSamples | None:
        """The scored samples of the cells at `places`; `None` where nothing was scored. Empty rows,
        of length 0, are judged and listed, but have no place on a logarithmic axis and are left
        out.
        """
        samples, planned = self.run.samples, self.run.manifest.cells
        cells, outcomes = samples["cell"].to_numpy(), samples["outcome"].to_numpy()
        has_log = [place for place in places if planned[place].line.low > 0]
        scored = np.isin(cells, has_log) & np.isin(outcomes, SCORED_PLACES)
        if not scored.any():
            return None
        taken = ("index", "true_length", "reading", "options", "wanted", "signed_error")
        indexes, lengths, readings, options, wanted, errors = (
            samples[name].to_numpy()[scored] for name in taken
        )
        off, nearer, margins, offered = (
            samples[name].to_numpy()[scored] for name in ("off", "nearer", "margin", "offered")
        )
        lines = [cell.line for cell in planned]
        places = cells[scored]
        given = self.run.has_given_rows
        rows = not given and len(np.unique(places)) > 1, given
        chances = np.where(options > 0, 1 / np.maximum(options, 1), 0.0) if options.any() else None
        scores = (indexes, lengths, outcomes[scored], readings, chances)
        unanswered = self._unanswered(int(lengths.max()))
        read: tuple[Numbers | None, Copies | None, Choices | None]
        if options.any():
            read = None, None, Choices(margins, offered)
        else:
            copies = None if np.isnan(off).any() else Copies(off, nearer)
            read = Numbers(wanted, wanted + errors), copies, None
        return ScoredSamples(lines, places, *scores, *rows, unanswered, *read)

    def with_errors_wrong(self) -> EffectiveLength | None:
        """The effective length if all samples without a reply had wrong ones, which bounds what
        their loss hides; `None` where none was lost.
        """
        samples, lines = self.run.samples, [cell.line for cell in self.run.manifest.cells]
        cells, outcomes = samples["cell"].to_numpy(), samples["outcome"].to_numpy()
        here = np.isin(cells, [place for place in self.places if lines[place].low > 0])
        if not (lost := here & (outcomes == Outcome.ERROR.place)).any():
            return None
        kept = lost | (here & np.isin(outcomes, SCORED_PLACES))
        lengths, indexes = (samples[name].to_numpy()[kept] for name in ("true_length", "index"))
        found = curve(
            lengths,
            indexes,
            outcomes[kept] == Outcome.CORRECT.place,
            lines=lines,
            places=cells[kept],
            own_rows=self.run.has_given_rows,
        )
        return effective_length(found, self.run.settings.threshold)

    def _unanswered(self, longest: int) -> int:
        """How many samples of lines beyond the length `longest` got no reply."""
        samples, planned = self.run.samples, self.run.manifest.cells
        longer = [place for place in self.places if planned[place].line.low > longest]
        failed = samples["outcome"].to_numpy() == Outcome.ERROR.place
        return int((np.isin(samples["cell"].to_numpy(), longer) & failed).sum())

    @cached_property
    def cost(self) -> RunCost | None:
        """What the replies cost; `None` if no reply's cost is known."""
        return self.run.cost_at(self.places)

    @cached_property
    def tokens_a_symbol(self) -> TokensASymbol | None:
        """By how many tokens a prompt grows with each symbol; `None` where it is not known."""
        prompts = token_counts.read(self.run.manifest.counted.get(self.label, ""))
        source: Source = "scored" if self.run.options else "usage"
        own_texts = number_of(self.run.spec, self.condition) > 0
        uncounted = *self.run.judge.cuts, *self.run.one_counts
        if (known := of_prompts(prompts)) or self.condition in uncounted:
            return known
        return fitted(*self._prompt_tokens, source, own_texts=own_texts)

    @property
    def _prompt_tokens(self) -> tuple[Floats, Floats, npt.NDArray[np.int64]]:
        """The length, the prompt tokens (NaN where unknown) and the row of each reply."""
        row = "record" if self.run.has_given_rows else "index"
        cells, records, lengths, tokens, rows = (
            self.run.samples[name].to_numpy()
            for name in ("cell", "record", "true_length", "prompt_tokens", row)
        )
        first_draw = self.run.samples["draw"].to_numpy() == 1
        places = np.flatnonzero(np.isin(cells, self.places) & first_draw)
        once = places[np.unique(records[places], return_index=True)[1]]
        return lengths[once].astype(float), tokens[once], rows[once]

    @cached_property
    def calibration(self) -> Calibration | None:
        """See `confidence.calibration`; `None` where replies are read."""
        if not self.run.options:
            return None
        chosen = self.chosen_at(self.places)
        if self.run.has_given_rows:  # each sample is a row of its own
            chosen = chosen._replace(rows=np.arange(len(chosen.right)))
        return calibration(chosen)

    def chosen_at(self, places: Collection[int]) -> ForcedChoices:
        """The forced choices of the cells at `places`, each once."""
        samples = self.run.samples
        return chosen_of(samples[samples["cell"].isin(places)].drop_duplicates("record"))

    @cached_property
    def curve(self) -> Curve | None:
        """Accuracy over length; `None` where nothing was scored."""
        return None if self.scored is None else self.scored.curve

    @cached_property
    def scored(self) -> ScoredSamples | None:
        """The scored samples; `None` where nothing was scored."""
        return self._scored_in(self.places)

    @cached_property
    def order(self) -> Order | None:
        """Whether the answers order the rows, or tell them from others; `None` where they are
        neither counts nor copies nor choices that have a control.
        """
        if self.scored is None:
            return None
        if self.scored.copies is not None:
            return order_of_copies(self.scored)
        conditions = len(self.run.conditions)
        if self.of_control is not None and self.of_control.scored is not None:
            return order_of_control(self.scored, self.of_control.scored, conditions)
        return order(self.scored, conditions)

    @cached_property
    def of_control(self) -> JudgedCondition | None:
        """Its control: the first one that differs from it in one axis; `None` for a control."""
        if self.control:
            return None
        others = self.run.conditions.values()
        return next((one for one in others if one.control and self._differs_once(one)), None)

    def _differs_once(self, other: JudgedCondition) -> bool:
        return sum(other.condition[axis] != value for axis, value in self.condition.items()) == 1

    def d_prime(self, place: int) -> DPrime | None:
        """How well the cell at `place` is told from that of the control; `None` without one."""
        control, cells = self.of_control, self.run.manifest.cells
        places = control.places if control else ()
        beside = next((one for one in places if cells[one].line == cells[place].line), None)
        if beside is None:
            return None
        hits, n = self._share_of(place, Outcome.CORRECT)
        false_alarms, controls = self._share_of(beside, Outcome.INCORRECT)
        return d_prime(hits, n, false_alarms, controls)

    def _share_of(self, place: int, outcome: Outcome) -> tuple[float, int]:
        """In how many scored rows of a cell the replies have this outcome, in the mean of their
        draws, and how many there are.
        """
        cells, indexes, outcomes = (
            self.run.samples[name].to_numpy() for name in ("cell", "index", "outcome")
        )
        here = (cells == place) & np.isin(outcomes, SCORED_PLACES)
        if not here.any():
            return 0.0, 0
        row = np.unique(indexes[here], return_inverse=True)[1]
        means = np.bincount(row, outcomes[here] == outcome.place) / np.bincount(row)
        return float(means.sum()), len(means)

    def effective_length(self, places: Collection[int] | None = None) -> EffectiveLength | None:
        """The effective length, from the cells at `places` alone if given; `None` where nothing was
        scored.

        Estimates are kept: that of the same cells is computed once.
        """
        scored_places = frozenset(self.scored_cells.index)
        chosen = scored_places if places is None else scored_places & set(places)
        if chosen not in self._estimates:
            threshold = self.run.settings.threshold
            scored = self.scored if places is None else self._scored_in(chosen)
            if scored is not None:
                check_chance(scored.curve, threshold)
            estimate = None if scored is None else scored_length(scored, threshold)
            if estimate is not None and not (limit := estimate.limit).is_ranked:
                more = self._remedies(limit.others)
                estimate = replace(estimate, limit=replace(limit, remedies=limit.remedies + more))
            self._estimates[chosen] = estimate
        return self._estimates[chosen]

    @cached_property
    def near_length(self) -> EffectiveLength | None:
        """The length to which answers are near, by `JudgeSettings.near`; `None` where nothing was
        scored, or answers are neither counts nor copies.
        """
        exact, judging = self.effective_length(), self.run.settings
        if exact is None or self.scored is None:
            return None
        return near_length(self.scored, exact, judging.threshold, judging.near)

    def _remedies(self, causes: Collection[Cause]) -> tuple[str, ...]:
        """What the user can do about replies that failed for these causes."""
        manifest, samples = self.run.manifest, self.run.samples
        if manifest.recorded is not None:
            return ()
        of_causes = [one.place for one in Outcome if one.about.cause in causes]
        failed = samples["cell"].isin(self.places) & samples["outcome"].isin(of_causes)
        places = [int(place) for place in np.flatnonzero(failed)[-MOST_RECORDS:]]
        records = [record for _, record in each_counted(self.run, places)]
        context = context_of(self.run.spec, self.condition)
        asked = ReplyRemedies(model_of(manifest), manifest.settings, manifest.server, context)
        return asked.of(causes, records)

    @property
    def error_growth(self) -> float | None:
        """See `diagnosis.error_growth`; `None` for answers that are texts."""
        errors = self.run.diagnosis["median_abs_error"].to_numpy()[list(self.places)]
        return error_growth(self.cells["length"], errors)

    @cached_property
    def control(self) -> bool:
        """Whether each target is the repeated symbol: a model need not see anything else."""
        repeated = self.run.spec.params.get("repeated")
        if not isinstance(repeated, str):
            return False
        cells, targets = (self.run.samples[name].to_numpy() for name in ("cell", "target"))
        targets = targets[np.isin(cells, self.places)]
        return bool(len(targets) and (targets == target_mark(repeated)).all())


def without_controls(judged: list[JudgedCondition]) -> list[JudgedCondition]:
    """Without the controls, unless there is nothing else."""
    return [one for one in judged if not one.control] or judged


def read_run(
    folder: Path, warn: Warn | None = None, settings: JudgeSettings = JudgeSettings()
) -> JudgedRun:
    """Reads the run in `folder` and judges all of its records again.

    A task's own scorer is loaded from its file. A file that only the run names is executed only
    with `settings.run_kept_code`, see `verdicts.scorer_of`.

    Raises:
        JournalError: there is no run or it cannot be read, or an axis of its task has the name of a
            column.
    """
    manifest = read_manifest(folder)
    check_journal(folder)
    spec = manifest.task_spec()
    for axis in spec.axes:
        if table := columns.table_of(axis, with_axes=True):
            raise JournalError(
                f"{folder}: the axis {axis!r} of its task has the name of a column of {table}; "
                "rename the axis in the task file and run that"
            )
    manifest.cells = _sorted(manifest.cells, spec)
    judge = judge_of_run(folder, manifest, settings)
    model = model_of(manifest)
    judged = judged_samples(folder, manifest, spec, warn, judge=judge, model=model)
    if judged.beyond:
        every = most_of([*manifest.cells, *judged.beyond])
        manifest.cells = _sorted(every.values(), spec)
        judged = judged_samples(folder, manifest, spec, None, judge=judge, model=model)
    conditions = dict.fromkeys(cell.condition for cell in manifest.cells)
    manifest.adaptive = [one for one in conditions if one in judged.chosen]
    found = judged.table, judged.answers, judged.judge, judged.times, model
    return JudgedRun(folder, manifest, *found, judged.one_counts, settings)


def part_of(run: JudgedRun, keeps: Callable[[Cell], bool]) -> JudgedRun:
    """The run restricted to these cells."""
    cells = run.manifest.cells
    places = [place for place, cell in enumerate(cells) if keeps(cell)]
    if len(places) == len(cells):
        return run
    conditions = {cells[place].condition for place in places}
    manifest = replace(
        run.manifest,
        cells=[cells[place] for place in places],
        adaptive=[one for one in run.manifest.adaptive if one in conditions],
    )
    kept = run.samples[run.samples["cell"].isin(places)]
    numbers = {place: number for number, place in enumerate(places)}
    samples = kept.assign(cell=kept["cell"].map(numbers)).reset_index(drop=True)
    return replace(run, manifest=manifest, samples=samples)


def _sorted(cells: Iterable[Cell], spec: TaskSpec) -> list[Cell]:
    return sorted(cells, key=lambda cell: (_rank(cell.condition, spec), cell.line))


def _rank(condition: Condition, spec: TaskSpec) -> tuple[int, ...]:
    """Sorts conditions by the order of the values in the task file."""
    return tuple(list(spec.axes[axis].values).index(name) for axis, name in condition.items())


def each_counted(
    run: JudgedRun, places: Collection[int] | None = None
) -> Iterator[tuple[int, Record]]:
    """Place in `run.samples`, and the record that counts, for all samples or for `places`, in the
    order of the journal. It is read again, because records are too large to keep in memory.
    """
    numbers = run.samples["record"].to_numpy()
    places_of: dict[int, list[int]] = {}
    for place in range(len(numbers)) if places is None else places:
        places_of.setdefault(int(numbers[place]), []).append(place)
    for number, record in enumerate(read_records(run.folder)):
        for place in places_of.get(number, ()):
            yield place, record
