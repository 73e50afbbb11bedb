"""The files of which pages are made: style, templates with their filters, and scripts."""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from eyechart.harness.analysis.tables.cells import INVISIBLE
from eyechart.harness.report.charts import looks

ASSETS = Path(__file__).parent.parent / "assets"
_LINK = re.compile(r"\[([^\]]+)\]\(([^)\s]+)\)")


def style() -> str:
    """CSS with the colours of our pages."""
    return _colours() + read_asset("page.css") + read_asset("board.css")


def read_asset(name: str) -> str:
    """The text of a file in `assets/`."""
    return (ASSETS / name).read_text(encoding="utf-8")


def _colours() -> str:
    def rules(inks: dict[str, str]) -> str:
        return ";".join(f"--{name}:{colour}" for name, colour in inks.items())

    return (
        f":root{{{rules(looks.LIGHT)}}}\n"
        f"@media screen and (prefers-color-scheme:dark){{:root{{{rules(looks.DARK)}}}}}\n"
    )


@cache
def environment() -> Environment:
    """The templates of the pages, each compiled once."""
    templates = Environment(
        loader=FileSystemLoader(ASSETS),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters["visible"] = visible
    templates.filters["linked"] = linked
    return templates


def visible(text: object) -> str:
    """`text` with invisible characters, and those that reverse text, written as `[U+202E]`."""
    return INVISIBLE.sub(lambda match: f"[U+{ord(match[0]):04X}]", str(text))


def linked(text: str) -> Markup:
    """`text` as HTML, with its links of the form `[words](target)`."""
    parts = _LINK.split(visible(text))
    links = zip(parts[1::3], parts[2::3], parts[3::3], strict=True)
    made = [Markup('<a href="{}">{}</a>{}').format(to, said, rest) for said, to, rest in links]
    return Markup("").join([escape(parts[0]), *made])


def policy(*scripts: str) -> str:
    """The Content-Security-Policy: only these scripts may run, and nothing may be fetched."""
    hashes = " ".join(f"'sha256-{_sha256(script)}'" for script in scripts)
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _sha256(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
