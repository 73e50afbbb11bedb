"""Runs to one page: a self-contained HTML file that needs no network, and charts as PNG and SVG.

Everything is a pure function of the runs' folders.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import vl_convert
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from harness.analysis.judged_run import JudgedRun
from harness.analysis.stats import Threshold
from harness.columns import OUTCOMES
from harness.errors import JournalError
from harness.journal.files import replace_file
from harness.report import figures, listed, looks
from harness.report.effects import Effect, effects, finding, gaps
from harness.report.files import write_charts
from harness.report.listed import Listed
from harness.report.origin import origin
from harness.report.paged import CHUNK, FIELDS, Paged, paged
from harness.report.panels import Figure
from harness.report.reported import Reported, read_reported
from harness.report.section import UNITS, Section, sections

_PAGE = Path(__file__).parent / "assets"
_HIGHLIGHTS = 3
Warn = Callable[[str], None]


@dataclass(frozen=True)
class Part:
    """One section with all that is shown of it."""

    section: Section
    effects: Sequence[Effect]
    accuracy: Figure
    figures: Sequence[Figure]
    findings: Mapping[str, str]
    """What moved the breaking point, by model."""
    gaps: Sequence[str]
    """How the models differ."""
    tables: Sequence[Listed]

    @property
    def beside(self) -> bool:
        """Whether each model has one panel, with its finding below."""
        return len(self.findings) > 1 and len(self.accuracy.panels) == len(self.findings)

    @property
    def outcomes(self) -> set[str]:
        """Outcomes that occurred."""
        cells = [shown.run.cells for shown in self.section.runs]
        return {name for name in OUTCOMES if any(table[name].any() for table in cells)}

    @property
    def anchor(self) -> str:
        """Its place on the page."""
        return re.sub(r"[^a-z0-9]+", "-", self.section.name.lower()).strip("-") or "task"


def write_report(
    runs: Sequence[JudgedRun],
    out: Path,
    *,
    formats: Sequence[str] = ("html",),
    threshold: Threshold = Threshold(),
    tasks: str = "",
    warn: Warn,
) -> list[Path]:
    """Writes the page to `out`, and with `png` or `svg` its charts into a folder beside it; the
    paths that were written.

    `tasks` names task files besides the built-in ones, as `--task` does, so that prompts can be
    made again.

    Raises:
        JournalError: nothing can be written.
    """
    runs = [run for run in {run.folder: run for run in runs}.values() if run.manifest.cells]
    published = read_reported()
    parts = [_part(section, published) for section in sections(runs, threshold)]
    written = []
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        if "html" in formats:
            replace_file(out, _page(parts, published, tasks, warn).encode("utf-8", "replace"))
            written.append(out)
        wanted = [kind for kind in formats if kind != "html"]
        shown = [(part.section.name, [part.accuracy, *part.figures]) for part in parts]
        written += write_charts(shown, out.with_name(f"{out.stem}-charts"), wanted)
    except OSError as error:
        raise JournalError(f"cannot write {error.filename}: {error.strerror}") from error
    return written


def _part(section: Section, published: list[Reported]) -> Part:
    found, between = effects(section), gaps(section)
    of_models = [effect for gap in between for effect in gap.effects]
    beside = figures.published_figure(section, published)
    return Part(
        section,
        found,
        figures.accuracy_figure(section),
        [
            *figures.effect_figures(section, found),
            figures.outcomes_figure(section),
            *figures.answer_figures(section),
            *([beside] if beside else []),
        ],
        {shown.name: finding(section, shown, found) for shown in section.runs},
        [str(gap) for gap in between],
        [
            table
            for table in (
                listed.estimates_table(section),
                listed.pairs_table(section, [*found, *of_models]),
                listed.diagnosis_listed(section),
                listed.cells_table(section),
            )
            if table.rows
        ],
    )


def _page(parts: Sequence[Part], published: Sequence[Reported], tasks: str, warn: Warn) -> str:
    every = [(part.section.name, shown) for part in parts for shown in part.section.runs]
    browser = paged(every, tasks)
    for task in browser.unknown:
        warn(f"prompts of {task} are not shown: name its file with --task")
    tables = [listed.reported_table(file) for file in published]
    script, bundle = _read("page.js"), _bundle()
    models = list(dict.fromkeys(shown.name for _, shown in every))
    return (
        _environment()
        .get_template("page.html.j2")
        .render(
            policy=_policy(script, bundle),
            css=Markup(_colours() + _read("page.css")),  # noqa: S704  our own file
            script=Markup(script),  # noqa: S704  our own file
            bundle=Markup(bundle),  # noqa: S704  Vega's
            title=_title(models),
            models=models,
            parts=parts,
            highlights=_highlights(parts),
            origins=[origin(section, shown) for section, shown in every],
            samples=len(browser.columns["run"]),
            units=_units(parts),
            reported=list(zip(published, tables, strict=True)),
            data=Markup(_data(parts, tables, browser)),  # noqa: S704  escaped there
            chunks=browser.chunks,
            index=browser.index,
            outcomes=OUTCOMES,
            inks=looks.OUTCOME_INKS,
            shapes=looks.SHAPES,
            dashes=looks.DASHES,
            threshold=parts[0].section.threshold if parts else Threshold(),
        )
    )


def _title(models: Sequence[str]) -> str:
    return (
        f"How far does {models[0]} see?"
        if len(models) == 1
        else (f"How far do {len(models)} models see?")
    )


def _highlights(parts: Sequence[Part]) -> list[tuple[Part, Effect]]:
    """What moved an effective length most, one effect a section."""
    best = []
    for part in parts:
        moved = [effect for effect in part.effects if effect.fair and effect.shift]
        if moved:
            best.append((part, max(moved, key=lambda one: abs(one.shift))))
    best.sort(key=lambda pair: -abs(pair[1].shift))
    return best[:_HIGHLIGHTS]


def _units(parts: Sequence[Part]) -> list[tuple[str, bool]]:
    """Units of length, and whether any chart can show them."""
    rows = [row for part in parts for panel in part.accuracy.panels for row in panel.data["curve"]]
    return [
        (unit, unit == UNITS[0] or any(row[f"x@{unit}"] is not None for row in rows))
        for unit in UNITS
    ]


def _data(parts: Sequence[Part], tables: Sequence[Listed], browser: Paged) -> str:
    """All that the script reads, as JSON that no HTML can end."""
    shown = [figure for part in parts for figure in (part.accuracy, *part.figures)]
    every = [table for part in parts for table in part.tables]
    said = {
        "config": {**looks.config(), "aria": False},
        "figures": [
            {
                "spec": figure.spec,
                "lengths": figure.lengths,
                "panels": [panel.data for panel in figure.panels],
            }
            for figure in shown
        ],
        "tables": [asdict(table) for table in (*every, *tables)],
        "runs": browser.runs,
        "outcomes": OUTCOMES,
        "fields": FIELDS,
        "chunk": CHUNK,
        "tones": {
            name: f"var(--s{place})" if place else "var(--ghost)"
            for name, place in looks.OUTCOME_INKS.items()
        },
    }
    text = json.dumps(_finite(said), separators=(",", ":"), allow_nan=False, default=_number)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _number(value: Any) -> Any:
    """NumPy's numbers as Python's."""
    return value.item()


def _finite(value: Any) -> Any:
    """`value` with nothing where a number is none."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: _finite(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return value


def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(_PAGE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["visible"] = visible
    return made


_UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)


def visible(text: object) -> str:
    """`text` with characters that cannot be seen, or that turn text around, as `U+202E`."""
    return _UNSEEN.sub(lambda match: f"[U+{ord(match[0]):04X}]", str(text))


def _read(name: str) -> str:
    return (_PAGE / name).read_text(encoding="utf-8")


@lru_cache(maxsize=1)
def _bundle() -> str:
    """Vega, Vega-Lite and vega-embed as one script that no HTML can end."""
    bundle = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;").replace(
        "</script", "<\\/script"
    )
    return f"(() => {{\n{bundle}\n}})();"  # its many names stay its own


def _policy(*scripts: str) -> str:
    """Nothing but these scripts may run, and nothing may be fetched."""
    hashes = " ".join(f"'sha256-{_sha256(script)}'" for script in scripts)
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _sha256(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _colours() -> str:
    def rules(inks: dict[str, str]) -> str:
        return ";".join(f"--{name}:{colour}" for name, colour in inks.items())

    return (
        f":root{{{rules(looks.LIGHT)}}}\n"
        f"@media screen and (prefers-color-scheme:dark){{:root{{{rules(looks.DARK)}}}}}\n"
    )
