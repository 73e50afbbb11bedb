"""The work of `bench report`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from eyechart.harness.cli.documents import print_files
from eyechart.harness.cli.outputs import PAGE, check_drawing, check_output
from eyechart.harness.cli.readable import readable_runs
from eyechart.harness.cli.terminal import warn
from eyechart.harness.errors import COMPLETE, INCOMPLETE, UsageError
from eyechart.harness.settings.figure import DRAWN
from eyechart.harness.settings.judging import JudgeSettings

FORMATS = ("html", *DRAWN)


def report(
    folders: Sequence[Path],
    output: Path,
    formats: Sequence[str],
    judging: JudgeSettings,
    *,
    as_json: bool,
) -> int:
    """Writes the page of some runs, and its charts as pictures if `formats` asks for them."""
    from eyechart.harness.face.panels import sorted_out
    from eyechart.harness.report.page.page import write_report
    from eyechart.harness.report.page.section import sections

    kinds = [kind.strip() for option in formats for kind in option.split(",")]
    for kind in kinds:
        if kind not in FORMATS:
            raise UsageError(f"--format is one of {', '.join(FORMATS)}, not {kind!r}")
    check_output("-o", output, PAGE)
    named, beside = sorted_out(folders, warn)
    unread: list[str] = []
    runs = [*readable_runs(named, judging, unread)]
    for kind in kinds:
        check_drawing("--format", kind)
    shown = [run for run in {run.folder: run for run in runs}.values() if run.manifest.cells]
    written = write_report(
        sections(shown),
        output,
        formats=kinds,
        draw_more=[source.read(mine, runs, warn) for source, mine in beside],
        warn=warn,
    )
    print_files(written, as_json=as_json)
    return INCOMPLETE if unread else COMPLETE
