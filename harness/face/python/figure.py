"""Figures for papers in Python."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from eyechart.harness.analysis.samples.judged_run import JudgedRun, read_run
from eyechart.harness.errors import UsageError
from eyechart.harness.face.options.arguments import argument
from eyechart.harness.face.options.run_options import as_warning
from eyechart.harness.face.panels import added_kinds, sorted_out
from eyechart.harness.face.python.result import Run
from eyechart.harness.report.page.section import sections
from eyechart.harness.report.paper.figures import paper_figures
from eyechart.harness.settings.checks import full_text, path
from eyechart.harness.settings.figure import FONT, FONT_SIZE, WIDTH, FigureStyle
from eyechart.harness.settings.judging import JudgeSettings

if TYPE_CHECKING:
    import altair as alt


def figures(
    kind: str,
    runs: Run | str | Path | Sequence[Run | str | Path],
    *,
    width: float = WIDTH,
    height: float | None = None,
    font: str = FONT,
    font_size: float = FONT_SIZE,
) -> dict[str, alt.TopLevelMixin]:
    """The figures for a paper of this kind, as `bench figure` draws them: task, model and condition
    -> an Altair chart with its data in `datasets`, and in `usermeta` the notes for its caption.

    `kind` is `accuracy`, `lengths` or `readings`, or one that a package adds: eyechart-lab `probe`
    and `first`. `runs` are one or several; folders of such a package stand beside those of runs.
    `width` and `height` are in inches with all labels, `font_size` in points. All are judged by
    the settings of the first `Run` among `runs`, and without one by the defaults.

    Raises:
        JournalError: a folder has no run, or it cannot be read.
        UsageError: there is no such kind, no such size, or nothing to draw.
    """
    import altair as alt  # noqa: PLC0415  slow to import

    style = FigureStyle(width, height, argument("font", font, full_text), font_size)
    given = [runs] if isinstance(runs, Run | str | Path) else list(runs)
    if not given:
        raise UsageError("runs is empty; name at least one run")
    folders = [one.folder if isinstance(one, Run) else argument("runs", one, path) for one in given]
    named, beside = sorted_out(folders, as_warning)
    judged = _judged(given, named)
    draw_more = [source.read(mine, judged, as_warning) for source, mine in beside]
    kind = argument("kind", kind, full_text)
    drawn = paper_figures(kind, sections(judged), style, draw_more, added_kinds())
    return {
        figure.title: (alt.VConcatChart if "vconcat" in figure.spec else alt.LayerChart).from_dict(
            figure.spec, validate=False
        )
        for figure in drawn
    }


def _judged(runs: Sequence[Run | str | Path], named: Sequence[Path]) -> list[JudgedRun]:
    """The runs of these folders, read where only a folder is given."""
    there = {one.folder: one.judged for one in runs if isinstance(one, Run)}
    judging = next((one.settings for one in there.values()), JudgeSettings())
    return [
        there[folder].judged_by(judging)
        if folder in there
        else read_run(folder, as_warning, judging)
        for folder in named
    ]
