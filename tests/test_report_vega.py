"""The script that draws the page's charts, and the extra that draws them as files."""

from __future__ import annotations

import re
from importlib.metadata import version
from typing import TYPE_CHECKING

import pytest

from eyechart.harness.cli import outputs
from eyechart.harness.settings.figure import DRAWN
from tests import vega_bundle

if TYPE_CHECKING:
    from tests.conftest import Lab

MADE_WITH = "1.9.0.post1"
"""The version of vl-convert-python that bundled the script."""


def test_the_script_says_what_it_holds() -> None:
    """In its first line; each package's licence is beside it."""
    text = vega_bundle.SCRIPT.read_text(encoding="utf-8")
    first = text.partition("\n")[0]
    assert first.startswith("/*! Vega 6.2.0, Vega-Lite 6.4, vega-embed 7.0.2, bundled by vl-")
    assert f"vl-convert-python {MADE_WITH}." in first
    assert "window.vegaEmbed=" in text
    licences = vega_bundle.LICENCES.read_text(encoding="utf-8")
    for name in ("vega", "vega-lite", "vega-embed", "vega-interpreter", "d3-array"):
        assert re.search(rf"^(?:.*, )?{name}(?:, .*)?$", licences, re.MULTILINE), name


@pytest.mark.published
def test_the_script_is_what_the_package_bundles() -> None:
    """Byte for byte with the version that made it; a newer one has the same major versions, so that
    a chart is the same on the page and as a file.
    """
    if version("vl-convert-python") == MADE_WITH:
        assert vega_bundle.script() == vega_bundle.SCRIPT.read_text(encoding="utf-8")
    assert vega_bundle.header().startswith(("/*! Vega 6.", "/*! Vega 7."))


def test_the_page_has_the_script_and_no_address(lab: Lab) -> None:
    """It works without a network and without the extra."""
    lab.asked(lab.wanted(lab.plain))
    lab.monkeypatch.setitem(vars(outputs), "find_spec", lambda _name: None)
    page = lab.folder / "page.html"
    assert lab.bench("report", lab.the_run(), "-o", page).code == 0
    assert "<!-- packed: Vega 6.2.0" in page.read_text()


@pytest.mark.parametrize("form", DRAWN)
def test_without_the_extra_no_chart_becomes_a_file(lab: Lab, form: str) -> None:
    """The message names it, and nothing is written."""
    lab.asked(lab.wanted(lab.plain))
    lab.monkeypatch.setitem(vars(outputs), "find_spec", lambda _name: None)
    page = lab.folder / "page.html"
    done = lab.bench("report", lab.the_run(), "-o", page, "--format", f"html,{form}")
    done.one_line(2, f"--format {form} needs the package vl-convert-python: ", "[charts]")
    assert not page.exists()
