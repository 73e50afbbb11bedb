"""Verbs and panels of the page join by entry points: ours, and those of other packages."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from typer.main import get_command

from eyechart.harness.cli import app
from eyechart.providers.plugins.plugins import (
    ENGINES,
    PANELS,
    VERBS,
    PluginError,
    find,
    installed,
    named,
)
from tests.plugged import plug

if TYPE_CHECKING:
    from tests.conftest import Lab

GREETS = """\
import typer

app = typer.Typer()


@app.command(short_help="Greet somebody.")
def greet(name: str) -> None:
    print(f"good morning, {name}")
"""
DRAWS = """\
from eyechart.harness.report.charts.panels import Figure, Panel


class Panels:
    what = "a note"

    def has(self, folder):
        return (folder / "note.txt").is_file()

    def read(self, folders, runs, warn):
        text = folders[0].joinpath("note.txt").read_text()
        spec = {"mark": "point", "height": 100, "data": {"name": "noted"}}
        return lambda section: [
            Figure("noted", text, spec, (Panel(runs[0].manifest.model, "", {"noted": []}),))
        ]


PANELS = Panels()
"""


def test_a_package_adds_a_verb(lab: Lab, site: Path) -> None:
    """The list, its help and the verb itself."""
    plug(site, "acme-greet", {VERBS: {"greet": "greeting:app"}}, files={"greeting.py": GREETS})
    assert "  greet        Greet somebody.\n" in lab.bench("--help").out
    assert lab.bench("greet", "Ada").out == "good morning, Ada\n"
    assert "completion" not in lab.bench("greet", "--help").out
    assert lab.bench("help", "greet").out == lab.bench("greet", "--help").out


def test_a_verb_of_the_laboratory_says_what_it_comes_with(lab: Lab) -> None:
    lab.monkeypatch.setattr(app, "verb", lambda _name: None)
    lab.monkeypatch.setattr(app, "command", lambda: get_command(app.app))  # none joined before
    for words in (["probe", "--model", "tiny"], ["rope"], ["lab", "x.yaml", "--help"]):
        lab.bench(*words).one_line(2, f"'bench {words[0]}' comes with eyechart-lab: pip install")
    lab.bench("prob").one_line(2, "no such command 'prob'")


def test_a_broken_verb_takes_nothing_else_down(lab: Lab, site: Path) -> None:
    """It is named in a line; asked for, it is the error."""
    plug(site, "acme-gone", {VERBS: {"gone": "gone_module:app"}})
    plug(site, "acme-odd", {VERBS: {"odd": "odd_module:app"}}, files={"odd_module.py": "app = 7\n"})
    plug(site, "acme-run", {VERBS: {"run": "greeting:app"}}, files={"greeting.py": GREETS})
    done = lab.bench("--help")
    assert done.code == 0
    assert "importing it raised ModuleNotFoundError" in done.err
    assert "it is an int, and should be a typer.Typer" in done.err
    assert "'run' is built in, and that one is used" in done.err
    assert "  gone  " not in done.out
    assert "  gate " in done.out
    assert lab.bench("tasks").code == 0
    done = lab.bench("odd")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "acme-odd 1.0, entry point 'odd = odd_module:app'" in done.err


def test_ours_cannot_be_replaced(lab: Lab, site: Path) -> None:
    """A package with the name of one of our verbs is named, and ours is used."""
    plug(site, "acme-gate", {VERBS: {"gate": "greeting:app"}}, files={"greeting.py": GREETS})
    found = find(VERBS, "gate")
    assert found is not None
    assert found.distribution == "eyechart"
    assert installed(VERBS, ()).usable["gate"].distribution == "eyechart"
    done = lab.bench("--help")
    assert "acme-gate 1.0" in done.err
    assert "Compare runs with a saved baseline, for pipelines." in done.out


def test_a_package_draws_on_the_page(lab: Lab, site: Path) -> None:
    """Its folder is named beside a run, and its figure stands on the page."""
    plug(site, "acme-note", {PANELS: {"note": "drawing:PANELS"}}, files={"drawing.py": DRAWS})
    plug(site, "acme-half", {PANELS: {"half": "halved:PANELS"}}, files={"halved.py": "PANELS = 1"})
    assert lab.bench_run().code == 0
    folder = lab.the_run()
    note = lab.folder / "note"
    note.mkdir()
    (note / "note.txt").write_text("Seen by a microscope")
    page = lab.folder / "page.html"
    done = lab.bench("report", folder, note, "-o", page)
    assert done.code == 0
    assert "it has no what, has, read" in done.err
    assert "Seen by a microscope" in page.read_text()
    done = lab.bench("report", note, "-o", page)
    assert done.code == 2
    assert f"{note} is a note: name its run too" in done.err


def test_an_engine_that_is_missing_is_said() -> None:
    """In one line that names the group."""
    with pytest.raises(
        PluginError, match=r"no entry point .none. of eyechart\.engines is installed"
    ):
        named(ENGINES, "none")
