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
    "dai2026_counting_capacity": "Dai & Fan 2026, arXiv 2605.02028, capacity of 126 models",
    "dai2026_stimulus_capacity": "Dai & Fan 2026, arXiv 2605.02028, eleven writings of the row",
    "men2024_rope_base_bound": "Men et al. 2024, Base of RoPE Bounds Context Length",
    "mtandhj2025_314_ones": "mtandhj 2025, counting 314 ones in three ways of writing",
    "mtandhj2025_rope_base_sweep": "mtandhj 2025, counting y in x,y,y under ten bases of RoPE",
    "zhang2024_letter_counting": "Zhang et al. 2024, arXiv 2410.19730",
}
_READINGS = {
    "barbero2024_copying": "the paper's ✓ as 1 and its ✗ as 0",
    "barbero2024_counting_abs_error": "digitised from a figure; clipped_at_axis: at its edge",
    "dai2026_counting_capacity": "from the authors' own data",
    "dai2026_stimulus_capacity": "from the authors' own data",
    "men2024_rope_base_bound": "its table 2",
    "mtandhj2025_314_ones": "the notes' table",
    "mtandhj2025_rope_base_sweep": (
        "digitised from a figure; model, lengths and number of samples are not stated there"
    ),
    "zhang2024_letter_counting": "its tables",
}
"""Name of a file -> how its numbers were read from the publication."""


@dataclass(frozen=True)
class PublishedFile:
    """One file of published figures."""

    name: str
    source: str
    reading: str
    """How its numbers were read from the publication."""
    table: pd.DataFrame

    @property
    def cited(self) -> str:
        return "; ".join(filter(None, (self.source, self.reading)))


def reported_root() -> Path:
    """The folder of the files: in the wheel, or else beside the package."""
    package = Path(str(files("eyechart")))
    in_wheel = package / "reported"
    return in_wheel if in_wheel.is_dir() else package.parent / "results" / "reported"


def read_reported() -> list[PublishedFile]:
    """Every file, in the order of their names; an empty list if there are none."""
    return [
        PublishedFile(
            file.stem,
            _SOURCES.get(file.stem, ""),
            _READINGS.get(file.stem, ""),
            pd.read_csv(file, keep_default_na=False),
        )
        for file in sorted(reported_root().glob("*.csv"))
    ]
