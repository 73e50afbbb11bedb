"""How far a model sees under each condition of a run."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import numpy as np
import pandas as pd

from harness.analysis.diagnosis import diagnosis, error_growth
from harness.analysis.stats import RESAMPLES, Bound, Curve, Sight, Span, Threshold, curve, sight
from harness.analysis.tables import NOT_SCORED, Run
from harness.columns import OUTCOMES, REACH, RUN, SIGHT
from harness.spec import Condition, condition_label

_SCORED = [place for place, outcome in enumerate(OUTCOMES) if outcome not in NOT_SCORED]
_DIGITS = 6


def conditions(run: Run) -> dict[str, Condition]:
    """Label -> condition, in the order of the run's cells."""
    return {condition_label(cell.condition): cell.condition for cell in run.manifest.cells}


def scored(run: Run, label: str) -> pd.DataFrame:
    """The scored samples of one condition: `length`, `index`, `correct`, `prompt`."""
    cells = run.manifest.cells
    places = [place for place, cell in enumerate(cells) if condition_label(cell.condition) == label]
    samples = run.samples
    of_condition = samples[samples["cell"].isin(places) & samples["outcome"].isin(_SCORED)]
    lengths = np.array([cell.length for cell in cells])
    return pd.DataFrame(
        {
            "length": lengths[of_condition["cell"].to_numpy()],
            "index": of_condition["index"].to_numpy(),
            "correct": of_condition["outcome"].to_numpy() == OUTCOMES.index("correct"),
            "prompt": of_condition["prompt"].to_numpy(),
        }
    )


def curve_of(run: Run, label: str, lengths: Collection[int] | None = None) -> Curve | None:
    """Accuracy over length (over `lengths` alone, if given) under one condition.

    `None` where nothing was scored.
    """
    samples = scored(run, label)
    if lengths is not None:
        samples = samples[samples["length"].isin(lengths)]
    if samples.empty:
        return None
    return curve(*(samples[name].to_numpy() for name in ("length", "index", "correct")))


def sights(
    run: Run, threshold: Threshold = Threshold(), *, resamples: int = RESAMPLES
) -> Iterator[tuple[str, Sight | None]]:
    """Each condition's label and how far the model sees under it."""
    for label in conditions(run):
        samples = curve_of(run, label)
        yield label, None if samples is None else sight(samples, threshold, resamples=resamples)


def reach_table(run: Run, threshold: Threshold = Threshold()) -> pd.DataFrame:
    """One row a condition: effective length, crossing, area, with their intervals as bounds.

    A length outside the tested range has one bound alone: `…_min` without `…_max` is beyond the
    longest one, `…_max` without `…_min` below the shortest. `error_growth` is of counts.
    """
    manifest, known = run.manifest, conditions(run)
    labels = np.array([condition_label(cell.condition) for cell in manifest.cells])
    errors = diagnosis(run)["median_abs_error"]
    rows = []
    for label, found in sights(run, threshold):
        of_condition = run.cells[labels == label]
        growth = error_growth(of_condition["length"], errors[labels == label])
        rows.append(
            {
                "model": manifest.model,
                "task": manifest.task,
                "task_version": manifest.task_version,
                **known[label],
                "n": int(of_condition["n"].sum()),
                "not_scored": int(of_condition[list(NOT_SCORED)].sum().sum()),
                "threshold": threshold.share,
                "threshold_of": "own accuracy" if threshold.relative else "accuracy",
                **(dict.fromkeys(SIGHT) if found is None else sight_columns(found)),
                "error_growth": growth,
            }
        )
    table = pd.DataFrame(rows, columns=[*RUN, *manifest.spec["axes"], *REACH])
    numbers = [*SIGHT, "error_growth"]
    table[numbers] = table[numbers].astype(float).round(_DIGITS)
    return table


def sight_columns(found: Sight) -> dict[str, Any]:
    """The numbers of a sight under their names in CSV files."""
    return {
        **_bounds("effective_length", found.effective_length, found.effective_length_ci),
        **_bounds("crossing_length", found.crossing_length, found.crossing_length_ci),
        "area": found.area,
        "area_ci_low": found.area_ci[0],
        "area_ci_high": found.area_ci[1],
    }


def _bounds(name: str, found: Bound, interval: Span) -> dict[str, float | None]:
    return {
        f"{name}_min": found.at_least,
        f"{name}_max": found.at_most,
        f"{name}_ci_low": interval[0].at_least,
        f"{name}_ci_high": interval[1].at_most,
    }
