"""Makes the script that draws the page's charts: Vega, Vega-Lite and vega-embed in one file.

    python -m tests.vega_bundle [FOLDER]

writes `harness/report/assets/vega.js` with the package vl-convert-python, an extra. With the
`node_modules` of `npm install vega@6 vega-lite@6 vega-embed@7` in FOLDER it also writes
`vega-licences.txt`, the licences of all packages that are part of the script.
"""

from __future__ import annotations

import sys
from importlib.metadata import version
from pathlib import Path

import vl_convert

ASSETS = Path(__file__).parents[1] / "harness/report/assets"
SCRIPT, LICENCES = ASSETS / "vega.js", ASSETS / "vega-licences.txt"
_ENTRY = "window.vegaEmbed = vegaEmbed;"
_OF_COMMANDS = {
    *("ansi-regex", "ansi-styles", "cliui", "commander", "emoji-regex", "escalade", "iconv-lite"),
    *("get-caller-file", "get-east-asian-width", "rw", "safer-buffer", "string-width", "tslib"),
    *("strip-ansi", "wrap-ansi", "y18n", "yargs", "yargs-parser"),
}
"""Packages of the same folder that are for the command line only."""


def header() -> str:
    """The first line of the script: what it holds, in which versions."""
    vega, embed = vl_convert.get_vega_version(), vl_convert.get_vega_embed_version()
    lite = vl_convert.get_vegalite_versions()[-1]
    return (
        f"/*! Vega {vega}, Vega-Lite {lite}, vega-embed {embed}, bundled by vl-convert-python "
        f"{version('vl-convert-python')}. Copyright University of Washington Interactive Data Lab "
        "and others; licences in vega-licences.txt. */\n"
    )


def script() -> str:
    """The whole file."""
    return header() + vl_convert.javascript_bundle(_ENTRY).rstrip("\n") + "\n"


def licences(packages: Path) -> str:
    """Each licence once, below the packages that have it; `packages` is a `node_modules`."""
    texts: dict[str, list[str]] = {}
    for folder in sorted(packages.iterdir()):
        if folder.name in _OF_COMMANDS or folder.name.startswith((".", "@")):
            continue
        (file,) = sorted(folder.glob("LICEN[CS]E*"))
        text = "\n".join(line.rstrip() for line in file.read_text().strip().splitlines())
        texts.setdefault(text, []).append(folder.name)
    return "\n".join(f"{', '.join(names)}\n\n{text}\n\n" for text, names in texts.items())


if __name__ == "__main__":
    SCRIPT.write_text(script(), encoding="utf-8")
    if sys.argv[1:]:
        LICENCES.write_text(licences(Path(sys.argv[1]) / "node_modules"), encoding="utf-8")
