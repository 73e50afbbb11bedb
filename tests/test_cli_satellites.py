"""Verbs and panels of the page join by entry points: ours, and those of other packages."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import typer
from typer.main import get_command

import eyechart
from eyechart.harness.cli import app
from eyechart.providers.plugins.contract import PluginError
from eyechart.providers.plugins.plugins import (
    ENGINES,
    PANELS,
    VERBS,
    find,
    installed,
    named,
)
from tests.plugged import EXAMPLES, plug, plug_example
from tests.test_imports import loaded

if TYPE_CHECKING:
    from tests.conftest import Lab

GREETS = """\
\"""Greet somebody.\"""

import typer

app = typer.Typer()


@app.command()
def greet(name: str) -> None:
    print(f"good morning, {name}")
"""
DRAWS = """\
from eyechart.harness.report.charts.panels import Figure, Panel


class Panels:
    what = "a note"
    kinds = {"note": "no note of these runs is here"}

    def has(self, folder):
        return (folder / "note.txt").is_file()

    def read(self, folders, runs, warn):
        text = folders[0].joinpath("note.txt").read_text()
        spec = {"mark": "point", "height": 100, "data": {"name": "noted"}}
        panel = Panel(runs[0].manifest.model, "", {"noted": []})
        return lambda section: [Figure("noted", text, spec, (panel,), kinds=("note",))]


PANELS = Panels()
"""


def test_a_package_adds_a_verb(lab: Lab, site: Path) -> None:
    """The list, its help and the verb itself."""
    plug(site, "acme-greet", {VERBS: {"greet": "greeting:app"}}, files={"greeting.py": GREETS})
    assert "  greet        Greet somebody.\n" in lab.bench("--help").out
    assert "greeting" not in sys.modules, "the list imports no verb"
    assert lab.bench("greet", "Ada").out == "good morning, Ada\n"
    assert "completion" not in lab.bench("greet", "--help").out
    assert lab.bench("help", "greet").out == lab.bench("greet", "--help").out


def test_the_list_imports_no_verb(site: Path) -> None:
    """Neither one of ours nor one of a package, nor the package."""
    verbs = {
        "greet": "acme.verbs.greet:app",
        "plain": "acme.plain:app",
        "folder": "acme.verbs:app",
        "gone": "acme.gone:app",
    }
    files = {
        "acme/__init__.py": "raise RuntimeError",
        "acme/plain.py": "import typer\n",
        "acme/verbs/__init__.py": '# -*- coding: utf-8 -*-\n\n"""Greet all.\n\nMore.\n"""\n',
        "acme/verbs/greet.py": GREETS,
    }
    plug(site, "acme", {VERBS: verbs}, files=files, summary="Says things")
    code = (
        f"import sys\nsys.path.insert(0, {str(site)!r})\n"
        "from eyechart.harness.cli import main\nsys.argv = ['bench', '--help']\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code\n"
        "from eyechart.harness.cli.parsing.loading import FOLDER, OWN, lines\n"
        "from eyechart.providers.plugins.plugins import VERBS, installed\n"
        "verbs = {f'{FOLDER}.{name}' for name in OWN}\n"
        "verbs |= {one.module for one in installed(VERBS, ()).usable.values()}\n"
        "assert len(verbs) > 15, verbs\n"
        "assert not {'acme', 'msgspec', *verbs} & set(sys.modules)\n"
        "said = lines()\nassert all(said.values()), said\n"
        f"print(*(said[name] for name in {[*verbs]!r}), sep=', ')"
    )
    assert loaded(code) == "Greet somebody., Says things, Greet all., Says things"


def test_the_example(lab: Lab, site: Path) -> None:
    """A verb of fewer than 60 lines, of modules that packages may import."""
    lab.monkeypatch.setattr(sys, "path", plug_example("eyechart-pooled", site))
    assert "  pooled       Add up the right answers of several seeds.\n" in lab.bench("--help").out
    for seed in ("0", "1"):
        lab.bench_ask("--seed", seed)
    runs = str(lab.out / "runs" / "**" / "ones@*")
    lines = lab.bench("pooled", runs).out.splitlines()
    assert ["3", "16", "4", "10", "%", "to", "49", "%"] in [
        line.replace("|", " ").split() for line in lines
    ]
    rows = json.loads(lab.bench("pooled", runs, "--json").out)["rows"]
    assert [(row["length"], row["n"], row["correct"]) for row in rows] == [(3, 16, 4), (5, 16, 4)]
    (first, _) = lab.out.glob("runs/**/ones@*")
    lab.bench("pooled", first, first).one_line(2, "the same seed")
    lab.bench_ask("--seed", "2", task=lab.plain)
    lab.bench("pooled", str(lab.out / "runs" / "**" / "*@*")).one_line(2, "not all of one model")
    assert len((EXAMPLES / "eyechart-pooled" / "eyechart_pooled.py").read_text().splitlines()) < 60


def test_a_shell_completes_verbs_beside_a_broken_one(lab: Lab, site: Path) -> None:
    """Which it is not told of."""
    plug(site, "acme-gone", {VERBS: {"gate2": "gone_module:app"}})
    asked = typer.Context(app.command(), resilient_parsing=True)
    found = [one.value for one in app.command().shell_complete(asked, "ga")]
    assert found == ["gate"]
    lab.bench("gate2").one_line(2, "importing it raised ModuleNotFoundError")


def test_a_verb_of_the_laboratory_says_what_it_comes_with(lab: Lab) -> None:
    lab.monkeypatch.setattr(app, "verb", lambda _name, **_more: None)
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
    assert "'run' is built in, and that one is used" in done.err
    assert {"gone", "odd", "gate"} <= {line[:7].strip() for line in done.out.splitlines()}
    assert lab.bench("tasks").code == 0
    lab.bench("gone").one_line(2, "acme-gone 1.0", "importing it raised ModuleNotFoundError")
    place = "acme-odd 1.0, entry point 'odd = odd_module:app'"
    lab.bench("odd").one_line(2, place, "it is an int, and should be a typer.Typer")


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


def test_a_package_adds_a_kind_of_figure(lab: Lab, site: Path) -> None:
    """Below the curve of the run; the message of a kind without any is the package's."""
    plug(site, "acme-note", {PANELS: {"note": "drawing:PANELS"}}, files={"drawing.py": DRAWS})
    assert lab.bench_ask("--axis", "separator=none").code == 0
    run = lab.the_run()
    lab.bench("figure", "note", run).one_line(2, "no note of these runs is here")
    lab.bench("figure", "notes", run).one_line(2, "no figure 'notes'; did you mean 'note'?")
    note = lab.folder / "note"
    note.mkdir()
    (note / "note.txt").write_text("Seen by a microscope")
    (spec,) = (chart.to_dict() for chart in eyechart.figures("note", [run, note]).values())
    assert len(spec["vconcat"]) == 2
    assert {"curve", "noted"} <= set(spec["datasets"])


def test_a_package_draws_on_the_page(lab: Lab, site: Path) -> None:
    """Its folder is named beside a run, and its figure stands on the page."""
    plug(site, "acme-note", {PANELS: {"note": "drawing:PANELS"}}, files={"drawing.py": DRAWS})
    plug(site, "acme-half", {PANELS: {"half": "halved:PANELS"}}, files={"halved.py": "PANELS = 1"})
    assert lab.bench_ask().code == 0
    folder = lab.the_run()
    note = lab.folder / "note"
    note.mkdir()
    (note / "note.txt").write_text("Seen by a microscope")
    page = lab.folder / "page.html"
    done = lab.bench("report", folder, note, "-o", page)
    assert done.code == 0
    assert "it has no what, kinds, has, read" in done.err
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
