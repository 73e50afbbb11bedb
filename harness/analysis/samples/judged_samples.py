"""The verdict on each sample of a run, as a table: which record of a sample counts."""

from __future__ import annotations

import math
import zlib
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from struct import Struct
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from eyechart.harness.analysis.samples.cut_prompts import Cut, OneCount, cut_prompts, one_count
from eyechart.harness.analysis.samples.right_inside import settle
from eyechart.harness.analysis.samples.verdicts import Judge, counts_of
from eyechart.harness.analysis.tables.diagnosis import collapsed
from eyechart.harness.journal.line_finder import LineFinder
from eyechart.harness.journal.manifest import Manifest, together
from eyechart.harness.journal.record import Record, Warn, chosen_records, read_records
from eyechart.harness.journal.thoughts import thinking_tokens
from eyechart.harness.plan.cost import whole_cost
from eyechart.harness.plan.resolved_model import ResolvedModel
from eyechart.harness.score.copies import copied
from eyechart.harness.score.forced_choice import WeighedOption, belief, ranked
from eyechart.harness.score.outcomes import SCORED_PLACES, Outcome
from eyechart.harness.score.readings import Recount, reading_of
from eyechart.harness.score.verdict import Verdict
from eyechart.harness.spec import (
    MAX_LENGTH,
    MAX_SAMPLES,
    Cell,
    CellKey,
    Condition,
    Line,
    TaskSpec,
    line_start,
)

_COLUMNS = {
    "cell": "i",
    "index": "i",
    "outcome": "b",
    "reading": "b",
    "record": "i",
    "true_length": "i",
    "prompt": "Q",
    "target": "q",
    "wanted": "d",
    "answer": "i",
    "signed_error": "d",
    "collapsed": "b",
    "first_divergence": "d",
    "off": "d",
    "nearer": "d",
    "prompt_tokens": "d",
    "output_tokens": "d",
    "thinking_tokens": "d",
    "options": "i",
    "confidence": "d",
    "brier": "d",
    "tied": "b",
    "margin": "d",
    "offered": "I",
    "cost": "d",
    "draw": "i",
    "said": "I",
    "text": "I",
    "chars": "q",
    "tokens": "q",
    "cached": "q",
    "at": "d",
}
"""Column of `JudgedRun.samples` -> its type, in the letters that `struct` and NumPy share."""
_COUNTS = ("chars", "tokens", "cached")
"""Those of `verdicts.counts_of`."""
_OWN = (*_COUNTS, "at")
"""Those that only this module needs."""
_ROW = Struct(f"<{''.join(_COLUMNS.values())}")
_DTYPE = np.dtype([(name, f"<{letter}") for name, letter in _COLUMNS.items()])
_NAN = float("nan")
_OF_CUT = {
    "outcome": Outcome.OVERFLOW.place,
    "reading": Recount.LEFT_OUT,
    "answer": -1,
    "signed_error": _NAN,
    "collapsed": -1,
    "first_divergence": _NAN,
    "said": 0,
}
"""Column -> value of a sample whose prompt was cut: its answer is one to another row."""
_NO_CHOICE = (_NAN, _NAN, False, _NAN, 0)
_TWO = 2
_OUTCOME, _AT = map(list(_COLUMNS).index, ("outcome", "at"))
"""Places of two values in a row."""
_KINDS = {Outcome.ERROR.place: 0, Outcome.OVERFLOW.place: 1}
"""Outcome -> its rank among several records of a sample; 2 for all others."""


def _comes_first(new: Sequence[Any], old: Sequence[Any]) -> bool:
    """Whether of two rows of a sample the one that is read later counts.

    A reply counts before a prompt that did not fit, and both before a failed request. Of several
    replies the first in time counts, so neither the names of journals nor their order matter; of
    several failed requests the last.
    """
    kind, old_kind = _KINDS.get(new[_OUTCOME], 2), _KINDS.get(old[_OUTCOME], 2)
    if kind != old_kind:
        return kind > old_kind
    return bool(new[_AT] < old[_AT] if kind else new[_AT] >= old[_AT])


@dataclass(frozen=True, eq=False)
class JudgedSamples:
    """What a journal says after all of its records are judged."""

    table: pd.DataFrame
    """See `JudgedRun.samples`."""
    answers: list[int]
    """See `JudgedRun.answers`."""
    times: tuple[float, float] | None
    """See `JudgedRun.times`."""
    chosen: set[Condition]
    """The conditions with a sample that was chosen by answers."""
    beyond: list[Cell]
    """Cells of the records that are in no cell of the manifest, as a journal that was copied into
    the folder may have.
    """
    judge: Judge
    """What gives these verdicts, now that it is known where prompts were cut."""
    one_counts: Mapping[Condition, OneCount]
    """See `JudgedRun.one_counts`."""


def judged_samples(
    folder: Path,
    manifest: Manifest,
    spec: TaskSpec,
    warn: Warn | None,
    *,
    judge: Judge,
    model: ResolvedModel,
) -> JudgedSamples:
    """Judges all records; keeps the row of the one that counts for each sample."""
    prices = model.prices
    answer, kind, repeated = spec.answer, spec.answer.kind, spec.params.get("repeated")
    places = {cell.key: place for place, cell in enumerate(manifest.cells)}
    start = line_start(manifest.settings.seed, manifest.task)
    finder = LineFinder((cell.line for cell in manifest.cells), start)
    chosen: set[Condition] = set()
    beyond = dict[CellKey, Cell]()
    sizes = [cell.samples for cell in manifest.cells]
    draws = [cell.draws for cell in manifest.cells]
    has_draws = max(draws, default=1) > 1
    rows: list[array[int]] = [array("i") for _ in manifest.cells]
    table = bytearray()
    answers: dict[int, int] = {}
    first_s, last_s = math.inf, -math.inf
    is_read = manifest.settings.read == "likelihood"
    records = chosen_records(folder, warn) if is_read else read_records(folder, warn)
    for number, record in enumerate(records):
        if record is None:
            continue
        if record.at is not None:
            first_s, last_s = min(first_s, record.at), max(last_s, record.at)
        condition, length, index = record.condition, record.length, record.index
        in_cells = [
            place
            for line in finder.of(record)
            if (place := places.get((condition, line))) is not None
            and index < sizes[place]
            and record.draw <= draws[place]
        ]
        if not kind.fits(record.target):
            continue
        if not in_cells:
            if (cell := _cell_of(record, spec, start)) is not None and manifest.recorded is None:
                beyond[cell.key] = together(beyond.get(cell.key, cell), cell)
            continue
        if record.chosen:
            chosen.add(condition)
        verdict = judge.verdict(record)
        right = record.target, *(record.accept or ())
        outcome = verdict.outcome.place
        values = (
            index,
            outcome,
            reading_of(record.reply or "", verdict, answer, right, repeated),
            number,
            length,
            int(record.prompt_hash, 16),
            target_mark(record.target),
            as_float(record.target),
            answers.setdefault(verdict.answer, len(answers))
            if isinstance(verdict.answer, int)
            else -1,
            as_float(verdict.signed_error),
            collapsed(verdict, record.target, repeated),
            as_float(verdict.first_divergence),
            *copied(verdict, record.target, length, int(record.prompt_hash, 16), answer),
            as_float(record.prompt_tokens),
            as_float(record.output_tokens),
            as_float(thinking_tokens(record)),
            len(record.options or ()),
            *(_NO_CHOICE if record.options is None else _choice(record.options)),
            _NAN if prices is None else as_float(whole_cost(prices, record)),
            record.draw,
            *((answer_mark(verdict), text_mark(record)) if has_draws else (0, 0)),
            *counts_of(record),
            math.inf if record.at is None else record.at,
        )
        for place in in_cells:
            slot = index * draws[place] + record.draw - 1
            _keep(_ROW.pack(place, *values), table, rows[place], slot)
    judged = np.frombuffer(table, _DTYPE)
    judged["answer"] = _ascending(answers)[judged["answer"]]
    of_condition = _cells_of(manifest)
    given = spec.items is not None or manifest.recorded is not None
    cuts, one_counts = _cuts_in(judged, of_condition, given=given)
    settle(judged, of_condition, folder, judge)
    # without a copy of the bytes
    columns = {name: judged[name] for name in _COLUMNS if name not in _OWN}
    return JudgedSamples(
        pd.DataFrame(columns, copy=False),
        sorted(answers),
        (first_s, last_s) if first_s <= last_s else None,
        chosen,
        list(beyond.values()),
        replace(judge, cuts=cuts),
        one_counts,
    )


def _cell_of(record: Record, spec: TaskSpec, start: int) -> Cell | None:
    """The smallest cell with the sample of an answer, on the line that asked it; `None` for a
    failed request, and for a condition that the task lacks.
    """
    condition, length, index = record.condition, record.length, record.index
    if (
        record.is_error
        or not spec.has_condition(condition)
        or length > MAX_LENGTH
        or index >= MAX_SAMPLES
    ):
        return None
    line = Line.exact(length) if record.band is None else Line(*record.band)
    if not line.low <= line.length <= line.high <= MAX_LENGTH:
        return None
    return (
        Cell(condition, line, index + 1, record.draw)
        if line.length_of(index, start) == length
        else None
    )


def _keep(row: bytes, table: bytearray, numbers: array[int], slot: int) -> None:
    """Adds a row to the table, unless the one of the same sample counts, whose number is in
    `numbers` at its `slot`.
    """
    if slot >= len(numbers):
        numbers.extend([-1] * (slot + 1 - len(numbers)))
    if numbers[slot] < 0:
        numbers[slot] = len(table) // _ROW.size
        table += row
        return
    at = numbers[slot] * _ROW.size
    if _comes_first(_ROW.unpack(row), _ROW.unpack_from(table, at)):
        table[at : at + _ROW.size] = row


def _ascending(answers: Mapping[int, int]) -> npt.NDArray[np.int32]:
    """The place of each answer among the sorted ones, by its number; at the end -1, for none."""
    places = np.empty(len(answers) + 1, np.int32)
    places[-1] = -1
    places[[answers[answer] for answer in sorted(answers)]] = np.arange(len(answers))
    return places


def _cells_of(manifest: Manifest) -> dict[Condition, list[int]]:
    """The places of each condition's cells."""
    places: dict[Condition, list[int]] = {}
    for place, cell in enumerate(manifest.cells):
        places.setdefault(cell.condition, []).append(place)
    return places


def _cuts_in(
    judged: npt.NDArray[np.void], places: Mapping[Condition, Sequence[int]], *, given: bool
) -> tuple[dict[Condition, Cut], dict[Condition, OneCount]]:
    """Where the server cut prompts, and where all have one count. The rows of samples whose prompt
    was cut get the outcome `overflow`.
    """
    cuts, one_counts = {}, {}
    for condition, of_condition in places.items():
        rows = np.flatnonzero(np.isin(judged["cell"], of_condition))
        counts = [judged[name][rows].astype(float) for name in _COUNTS]
        if (same := one_count(*counts)) is not None:
            one_counts[condition] = same
        if (cut := cut_prompts(*counts, given=given)) is None:
            continue
        cuts[condition] = cut
        replied = np.isin(judged["outcome"][rows], SCORED_PLACES)
        for name, value in _OF_CUT.items():
            judged[name][rows[cut.holds(*counts) & replied]] = value
    return cuts, one_counts


def _choice(options: Sequence[WeighedOption]) -> tuple[float, float, bool, float, int]:
    """`Belief`, the margin of the right option, and a number that tells sets of options apart."""
    texts = sorted(option.text for option in options)
    return *belief(options), ranked(options).margin, target_mark(texts) if len(texts) == _TWO else 0


def slots(samples: pd.DataFrame, draws: int | npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The place of each of a cell's `samples`, from 0: by index, and then by draw."""
    index, draw = (samples[name].to_numpy(np.int64) for name in ("index", "draw"))
    places: npt.NDArray[np.int64] = index * draws + draw - 1
    return places


def target_mark(target: object) -> int:
    """A number that tells targets apart, the same in every process."""
    return zlib.crc32(repr(target).encode(errors="surrogatepass"))


def answer_mark(verdict: Verdict) -> int:
    """A number that tells the answers that were read apart; 0 for none."""
    return 0 if verdict.answer is None else target_mark(verdict.answer) or 1


def text_mark(record: Record) -> int:
    """A checksum of the text of a reply: equal texts have equal numbers."""
    return target_mark((record.reply, record.refusal))


def as_float(value: object) -> float:
    """`value` as a float: NaN if it is not a number, infinity if it is too large for a float."""
    if not isinstance(value, int | float):
        return _NAN
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
