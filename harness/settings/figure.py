"""The kinds of figures and tables for papers, and the settings of a figure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from eyechart.harness.errors import UsageError
from eyechart.harness.settings.checks import NumberRange

CHARTS = {
    "accuracy": "accuracy over length with 95 % intervals, by condition and by model",
    "lengths": "the effective lengths of all models with their intervals, and the near and apart "
    "lengths of answers that have them",
    "readings": "free text and forced choice of one model, and what a package reads off its states",
}
"""Kind of a chart -> what it shows."""
TABLE = "table"
KINDS = CHARTS | {
    TABLE: "the effective lengths and areas of all models and conditions, a row each, in LaTeX or "
    "Markdown",
}
"""Kind -> what it shows."""
DRAWN = {"pdf": b"%PDF", "png": b"\x89PNG", "svg": b"<svg"}
"""Forms of charts that an extra draws -> what such a file has at its beginning."""
TABLE_FORMS = ("latex", "markdown")
"""The languages of tables for papers."""
TABLES = dict(zip(("tex", "md"), TABLE_FORMS, strict=True))
"""Ending of a file -> the language of the table in it."""
INCH = 72
"""Units of a drawing in an inch: one is a point of a PDF."""
WIDTH = 3.25
"""Inches: a column of a paper in two columns."""
FONT = "Liberation Sans, Arial, Helvetica, sans-serif"
FONT_SIZE = 8.0
_NO_FONT = re.compile(r"[^\w ,.'\"()+-]")
"""The converter of charts aborts the process at `<` and `&`."""
_GOLDEN = 0.62
"""Height of a figure, as a share of its width."""
_INCHES = NumberRange(1, 20, is_whole=False, unit=" inches")
_POINTS = NumberRange(4, 24, is_whole=False, unit=" points")


@dataclass(frozen=True, slots=True)
class FigureStyle:
    """The size and the font of a figure for a paper. A size that no figure can have raises
    `UsageError`.
    """

    width: float = WIDTH
    """Inches, with all labels."""
    height: float | None = None
    """Inches, with all labels; `None` is what the figure needs."""
    font: str = FONT
    """Names of fonts, with commas between; the first that is there is used."""
    font_size: float = FONT_SIZE
    """Points."""

    def __post_init__(self) -> None:
        checked: tuple[tuple[str, Any, NumberRange], ...] = (
            ("width", self.width, _INCHES),
            ("height", WIDTH if self.height is None else self.height, _INCHES),
            ("font size", self.font_size, _POINTS),
        )
        for name, value, bound in checked:
            try:
                bound(value)
            except ValueError as error:
                raise UsageError(f"the {name} {error}") from None
        if not self.font.strip():
            raise UsageError("the font must have a name")
        if wrong := _NO_FONT.search(self.font):
            raise UsageError(
                f"the font {self.font!r} has {wrong[0]!r}, as no font does; leave it out"
            )

    @property
    def points_wide(self) -> float:
        return self.width * INCH

    def points_high(self, usual: float | None = None) -> float:
        """The height in points. Where the user gives none, it is `usual`, or a fixed share of the
        width if that is `None` too.
        """
        if self.height is not None:
            return self.height * INCH
        return self.points_wide * _GOLDEN if usual is None else usual
