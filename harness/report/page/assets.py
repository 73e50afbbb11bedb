"""The files of which pages are made, and the style that all pages have."""

from __future__ import annotations

from pathlib import Path

from eyechart.harness.report.charts import looks

ASSETS = Path(__file__).parent.parent / "assets"


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
