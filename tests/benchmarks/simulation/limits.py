"""How often a length is claimed where something else than sight makes replies fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product

import numpy as np

from eyechart.harness.analysis.length.curve import Floats
from eyechart.harness.analysis.length.limit import MIXED
from eyechart.harness.analysis.length.limits import ScoredSamples, scored_length
from eyechart.harness.score.outcomes import Cause, Outcome
from eyechart.harness.score.readings import Recount
from eyechart.harness.settings.judging import THRESHOLD
from tests.benchmarks.simulation.draws import (
    CORRELATION,
    LINES,
    Setting,
    answers,
    holds,
    normal_field,
    sample_lengths,
)
from tests.benchmarks.simulation.table import Column, Row, Simulation, Spread

SAMPLES = (5, 20, 40)
CURVES = (
    ("slope 4", 0.0),
    ("slope 1.5", CORRELATION),
    ("step", CORRELATION),
    ("plateau 86 %", 0.0),
    ("heavy tails", 0.0),
    ("recorded", CORRELATION),
)
"""Shape and correlation of rows. The constants of `analysis.limits` were chosen on the first."""
_THRESHOLD = THRESHOLD
_EARLY = 3.0
"""The other cause begins at the crossing over this."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What else than sight makes replies fail."""

    outcome: Outcome
    share: Callable[[Floats, Floats], Floats]
    """Lengths over the crossing, and which replies are right -> the share that fails so."""
    cause: str
    """What limits the length: the right answer."""
    has_answer: bool = False
    """Whether a reply that cannot be read has the right answer where the model sees."""


def always(share: float) -> Callable[[Floats, Floats], Floats]:
    """The same share at every length."""
    return lambda ratio, _: np.full_like(ratio, share)


def early(share: float) -> Callable[[Floats, Floats], Floats]:
    """This share from a third of the crossing on."""
    return lambda ratio, _: np.where(ratio > 1 / _EARLY, share, 0.0)


def blind(share: float) -> Callable[[Floats, Floats], Floats]:
    """This share of the replies of a model that does not see the row."""
    return lambda _, right: np.where(right > 0, 0.0, share)


SIGHT = Cause.SIGHT.value
FAULTS: Mapping[str, Fault] = {
    "none": Fault(Outcome.ERROR, always(0.0), SIGHT),
    "3 % cut off": Fault(Outcome.TRUNCATED, always(0.03), SIGHT),
    "3 % unread": Fault(Outcome.UNPARSED, always(0.03), SIGHT),
    "30 % refused": Fault(Outcome.REFUSED, always(0.3), Cause.REFUSAL.value),
    "30 % unread": Fault(Outcome.UNPARSED, always(0.3), Cause.FORM.value),
    "30 % unread, with the answer": Fault(Outcome.UNPARSED, always(0.3), Cause.FORM.value, True),
    "all unread": Fault(Outcome.UNPARSED, always(1.0), Cause.FORM.value),
    "early, 90 % cut off": Fault(Outcome.TRUNCATED, early(0.9), Cause.ROOM.value),
    "early, 40 % cut off": Fault(Outcome.TRUNCATED, early(0.4), Cause.ROOM.value),
    "early, all without room": Fault(Outcome.OVERFLOW, early(1.0), Cause.WINDOW.value),
    "early, 60 % unread, with the answer": Fault(
        Outcome.UNPARSED, early(0.6), Cause.FORM.value, True
    ),
    "blind, 50 % unread": Fault(Outcome.UNPARSED, blind(0.5), SIGHT),
    "blind, 90 % unread": Fault(Outcome.UNPARSED, blind(0.9), SIGHT),
    "early, all unread": Fault(Outcome.UNPARSED, early(1.0), Cause.FORM.value),
}


def simulate(fault: Fault, setting: Setting, run: int) -> tuple[float, ScoredSamples]:
    """The length to which the model sees, and its judged samples."""
    seed = setting.seed(run)
    truth = setting.family.draw(seed)
    lengths = sample_lengths(setting.samples, run)
    rng = np.random.default_rng([seed, 1])
    field = normal_field(rng, setting.samples, setting.rows)
    right = answers(truth, lengths, field)
    share = fault.share(lengths / truth.crossing, right)
    fails = rng.random(lengths.shape) < share
    outcomes = np.where(right > 0, Outcome.CORRECT.place, Outcome.INCORRECT.place)
    outcomes = np.where(fails, fault.outcome.place, outcomes)
    unread = np.where((right > 0) & fault.has_answer, Recount.MAY_BE_RIGHT, Recount.UNREAD)
    is_unread = fault.outcome is Outcome.UNPARSED
    readings = np.where(fails, unread if is_unread else Recount.LEFT_OUT, Recount.AS_JUDGED)
    indexes, places = np.indices(lengths.shape)
    scored = ScoredSamples(
        LINES,
        places.ravel(),
        indexes.ravel(),
        lengths.ravel(),
        outcomes.ravel(),
        readings.ravel(),
        has_same_rows=True,
    )
    return truth.crossing, scored


def measure(case: tuple[str, tuple[str, float], int], runs: int) -> Row:
    """One row of the table."""
    name, (curve, rows), samples = case
    fault, setting = FAULTS[name], Setting(curve, rows, samples)
    claimed, false, named, bounded = [], [], [], []
    for run in range(runs):
        crossing, scored = simulate(fault, setting, run)
        found = scored_length(scored, _THRESHOLD)
        claims = found.is_ranked
        claimed.append(claims)
        asked = LINES[0].low, LINES[-1].high
        false.append(claims and not holds(found.length_ci, crossing, asked))
        if not found.limit.is_ranked:
            named.append(found.limit.by in (fault.cause, MIXED))
            bounded.append(holds((found.length_ci[0], found.length_ci[1]), crossing, asked))
    return {
        "shape": name,
        "curve": f"{curve}, rows {'together' if rows else 'apart'}",
        "samples": samples,
        "claimed": float(np.mean(claimed)),
        "false": float(np.mean(false)),
        "named": float(np.mean(named)) if named else None,
        "bounded": float(np.mean(bounded)) if bounded else None,
        "runs": runs,
    }


def rows(_: Sequence[str], runs: int, spread: Spread) -> Iterator[Row]:
    """One row for each fault, curve and number of samples."""
    cases = product(FAULTS, CURVES, SAMPLES)
    yield from spread(partial(measure, runs=runs), cases)


SIMULATION = Simulation(
    "how often a length is claimed where something else than sight makes replies fail",
    (
        Column("shape", "what else fails"),
        Column("curve", "accuracy"),
        Column("samples", "samples of a line"),
        Column("claimed", "a length is claimed", ".2f"),
        Column("false", "falsely", ".3f"),
        Column("named", "else the cause is right", ".2f"),
        Column("bounded", "and the bound holds", ".2f"),
    ),
    rows,
)
