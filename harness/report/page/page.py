"""The page about runs: a self-contained HTML file that needs no network, and its charts as files.

Everything is a pure function of the runs' folders.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from markupsafe import Markup

from eyechart.harness.analysis.comparison.effects import Effect
from eyechart.harness.analysis.length.curve import threshold_text
from eyechart.harness.analysis.samples.details import RunDetails
from eyechart.harness.errors import JournalError
from eyechart.harness.journal.files import replace_file
from eyechart.harness.journal.record import Warn
from eyechart.harness.report.charts import looks
from eyechart.harness.report.charts.files import write_charts
from eyechart.harness.report.charts.panels import MOST_TALL, TALL, DrawMore
from eyechart.harness.report.page import page_tables as listed
from eyechart.harness.report.page.assets import environment, policy, read_asset, style
from eyechart.harness.report.page.origin import origin
from eyechart.harness.report.page.packed_samples import (
    CHUNK,
    FIELDS,
    PackedSamples,
    pack_samples,
    packed,
)
from eyechart.harness.report.page.page_section import PageSection, page_section_of
from eyechart.harness.report.page.page_tables import ReportTable
from eyechart.harness.report.page.section import UNITS, Section
from eyechart.harness.report.published.published_file import PublishedFile, read_reported
from eyechart.harness.report.ranking.rank_table import first_of, rank_tables
from eyechart.harness.score.outcomes import NOT_SCORED, OUTCOMES
from eyechart.harness.settings.judging import JudgeSettings

_SCRIPTS = ("page.js", "board.js", "narrow.js", "cards.js", "samples.js")
"""The parts of the page's script, in order."""
_LOADER = "load.js"
"""What unpacks the data and Vega, and then runs them: the other scripts are inert until then."""
_HIGHLIGHTS = 3
_MOST_PANELS = 4
"""More charts of one model in one figure are folded."""
_FEW_NOTES = 3
"""Notes after these are folded."""
_MOST_NAMED = 8
"""Models that the top of the page names outside the tables; more are folded."""


def write_report(
    of_tasks: Sequence[Section],
    out: Path,
    *,
    formats: Sequence[str] = ("html",),
    draw_more: Sequence[DrawMore] = (),
    title: str = "",
    at: Sequence[int] = (),
    warn: Warn,
) -> list[Path]:
    """Writes the page to `out`, and with `pdf`, `png` or `svg` its charts into a folder beside it;
    returns the paths of the written files.

    The page has the accuracy at each length `at` beside the effective lengths. What `draw_more`
    draws of a section stands under the accuracy of its runs.

    Prompts are made again by the tasks that `details.prompts_of` opens.

    Raises:
        JournalError: a file cannot be written.
    """
    published = read_reported()
    page_sections = [page_section_of(section, published, draw_more) for section in of_tasks]
    written = []
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        if "html" in formats:
            runs = [(one.section.name, run) for one in page_sections for run in one.section.runs]
            samples = pack_samples(runs)
            for unknown in samples.unknown:
                warn(f"prompts of {unknown}")
            page = _page(page_sections, runs, published, samples, title=title, at=at)
            replace_file(out, page.encode("utf-8", "replace"))
            written.append(out)
        picture_formats = [kind for kind in formats if kind != "html"]
        charts = [
            (page_section.section.name, [*page_section.top, *page_section.figures])
            for page_section in page_sections
        ]
        written += write_charts(charts, out.with_name(f"{out.stem}-charts"), picture_formats)
    except OSError as error:
        raise JournalError(f"cannot write {error.filename}: {error.strerror}") from error
    return written


def _page(
    page_sections: Sequence[PageSection],
    runs: Sequence[tuple[str, RunDetails]],
    published: Sequence[PublishedFile],
    samples: PackedSamples,
    *,
    title: str,
    at: Sequence[int],
) -> str:
    tables = [listed.reported_table(file) for file in published]
    script, bundle, loader = "".join(map(read_asset, _SCRIPTS)), _bundle(), read_asset(_LOADER)
    models = list(dict.fromkeys(run_details.name for _, run_details in runs))
    is_embedded = {
        details.run.model is not None and details.run.model.is_embedded for _, details in runs
    } == {True}
    tables_of_ranks = rank_tables([one.section for one in page_sections], at)
    return (
        environment()
        .get_template("page.html.j2")
        .render(
            policy=policy(loader, script, bundle),
            css=Markup(style()),  # noqa: S704  our own files
            script=Markup(script),  # noqa: S704  our own file
            loader=Markup(loader),  # noqa: S704  our own file
            bundle_is=read_asset("vega.js").partition("*/")[0].removeprefix("/*!").strip(),
            bundle=Markup(_packed_bundle()),  # noqa: S704  Vega's, as base64
            title=title or _title(models, is_embedded=is_embedded),
            models=models,
            lede=[str(one) for table in tables_of_ranks for one in table.of_tasks],
            is_embedded=is_embedded,
            notes_of=partial(_notes, {one.section.name: one.notes for one in page_sections}),
            few_notes=_FEW_NOTES,
            most_panels=_MOST_PANELS,
            most_named=_MOST_NAMED,
            tables=tables_of_ranks,
            by_name={one.section.name: one for one in page_sections},
            at=at,
            first=first_of(at),
            page_sections=page_sections,
            highlights=_highlights(page_sections),
            origins=[origin(section, run_details) for section, run_details in runs],
            samples=len(samples.columns["run"]),
            units=_units(page_sections),
            reported=list(zip(published, tables, strict=True)),
            data=Markup(packed(_data(page_sections, tables, samples))),  # noqa: S704  base64
            chunks=samples.chunks,
            index=samples.index,
            shapes=looks.SHAPES,
            dashes=looks.DASHES,
            threshold=threshold_text(
                (page_sections[0].section.judging if page_sections else JudgeSettings()).threshold
            ),
        )
    )


def _title(models: Sequence[str], *, is_embedded: bool) -> str:
    if len(models) != 1:
        return f"How far are {len(models)} models right?"
    which = ", the model that comes with Eyechart," if is_embedded else ""
    return f"How far is {models[0]}{which} right?"


def _notes(notes: Mapping[str, Sequence[str]], of: Sequence[Section]) -> list[tuple[str, str]]:
    """The notes on some sections, each one once, with the names of its sections."""
    found: dict[str, list[str]] = {}
    for section in of:
        for note in notes[section.name]:
            found.setdefault(note, []).append(section.name)
    return [(", ".join(names), note) for note, names in found.items()]


def _highlights(page_sections: Sequence[PageSection]) -> list[tuple[PageSection, Effect]]:
    """The effects that moved an effective length most, at most one of each section."""
    best = []
    for page_section in page_sections:
        moved = [effect for effect in page_section.effects if effect.fair and effect.shift]
        if moved:
            best.append((page_section, max(moved, key=lambda effect: abs(effect.shift))))
    best.sort(key=lambda pair: -abs(pair[1].shift))
    return best[:_HIGHLIGHTS]


_OF = {"characters": "of the prompt", "tokens": "of the row"}


def _units(page_sections: Sequence[PageSection]) -> list[tuple[str, str, bool]]:
    """The units of length, with their names, and whether any chart can show them. Tasks whose own
    units differ have `length` as its name.
    """
    own = {page_section.section.unit for page_section in page_sections}
    names = {unit: f"{unit} {_OF[unit]}" if unit in own else unit for unit in UNITS[1:]}
    names[UNITS[0]] = UNITS[0]
    if len(own) == 1:
        names[UNITS[0]] = next(iter(own))
    panels = [
        panel
        for page_section in page_sections
        for figure in page_section.top
        for panel in figure.panels
    ]
    rows = [row for panel in panels for row in panel.data["curve"]]
    return [
        (unit, names[unit], unit == UNITS[0] or any(row[f"x@{unit}"] is not None for row in rows))
        for unit in UNITS
    ]


def _data(
    page_sections: Sequence[PageSection],
    published_tables: Sequence[ReportTable],
    samples: PackedSamples,
) -> str:
    """The data of the page's script, as JSON."""
    page_figures = [
        (figure, page_section.section.unit_titles)
        for page_section in page_sections
        for figure in (*page_section.top, *page_section.figures)
    ]
    tables = [table for page_section in page_sections for table in page_section.tables]
    content = {
        "config": {**looks.config(), "aria": False},
        "figures": [
            {
                "spec": figure.spec,
                "lengths": figure.lengths,
                "units": titles,
                "panels": [panel.data for panel in figure.panels],
            }
            for figure, titles in page_figures
        ],
        "tables": [vars(table) for table in (*tables, *published_tables)],
        "runs": samples.runs,
        "outcomes": OUTCOMES,
        "fields": FIELDS,
        "chunk": CHUNK,
        "tall": {"share": TALL, "most": MOST_TALL},
        "unscored": NOT_SCORED,
        "tones": looks.OUTCOME_COLOURS,
    }
    write = partial(json.dumps, separators=(",", ":"), allow_nan=False, default=_number)
    try:
        return write(content)
    except ValueError:  # NaN or infinity is in it
        return write(_finite(content))


def _number(value: Any) -> Any:
    """A number of NumPy as one of Python."""
    return value.item()


def _finite(value: Any) -> Any:
    """`value` with `None` in place of NaN and infinity."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: _finite(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value


@lru_cache(maxsize=1)
@lru_cache(maxsize=1)
def _bundle() -> str:
    """Vega, Vega-Lite and vega-embed as one script."""
    bundle = read_asset("vega.js")
    return f"(() => {{\n{bundle}\n}})();"  # keeps its names out of the global scope


@lru_cache(maxsize=1)
def _packed_bundle() -> str:
    return packed(_bundle())
