"""Figures that others published: shown as reference, never mixed with measured figures.

They are CSV files in the wheel, or else in `results/reported` beside the package.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import pandas as pd

_SOURCES = {
    "barbero2024_copying": "Barbero et al. 2024, Transformers need glasses!, arXiv 2406.04267",
    "barbero2024_counting_abs_error": (
        "Barbero et al. 2024, Transformers need glasses!, arXiv 2406.04267, counting tasks"
    ),
    "men2024_rope_base_bound": "Men et al. 2024, Base of RoPE Bounds Context Length",
    "mtandhj2025_314_ones": "mtandhj 2025, counting 314 ones in three ways of writing",
    "zhang2024_letter_counting": "Zhang et al. 2024, arXiv 2410.19730",
}
_COUNTING = "barbero2024_counting_abs_error"
_TASKS = {
    "counting/sum": "sum of ones",
    "counting/ones": "ones in all-ones",
    "counting/bernoulli": "ones in 0/1, P(1)=0.7",
    "counting/words": "word in a sentence",
}
"""Our task -> its name in the counting file."""


@dataclass(frozen=True)
class Reported:
    """One file of published figures."""

    name: str
    source: str
    table: pd.DataFrame


def reported_root() -> Path:
    """The folder of the files: in the wheel, or else beside the package."""
    package = Path(str(files("harness")))
    in_wheel = package / "_reported"
    return in_wheel if in_wheel.is_dir() else package.parent / "results" / "reported"


def read_reported() -> list[Reported]:
    """Every file, in the order of their names; an empty list if there are none."""
    return [
        Reported(file.stem, _SOURCES.get(file.stem, ""), pd.read_csv(file, keep_default_na=False))
        for file in sorted(reported_root().glob("*.csv"))
    ]


def counting_errors(task: str, files: list[Reported]) -> pd.DataFrame | None:
    """The published mean errors of `task`: `model`, `strategy`, `length`, `abs_error`,
    `clipped_at_axis`.
    """
    for file in files:
        if file.name == _COUNTING and task in _TASKS:
            rows = file.table[file.table["task"] == _TASKS[task]]
            return None if rows.empty else rows.drop(columns="task")
    return None
