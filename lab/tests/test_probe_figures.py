"""What other verbs show of a probe, and what they say of its options."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import eyechart
from eyechart.harness.cli import outputs
from eyechart.harness.settings.figure import DRAWN, INCH, WIDTH
from eyechart_lab.probe.figures import ProbePanels
from tests.conftest import Lab
from tests.test_report_paper import _size, charts, figure
from tests.test_run_turns import sums
from tests.vega_lite import check_valid

__all__ = ["sums"]


def test_the_help_of_figures_names_those_of_probes(lab: Lab) -> None:
    """All kinds, as `bench figure` takes them."""
    said = " ".join(lab.bench("figure", "--help").out.split())
    assert f"eyechart-lab adds {' and '.join(ProbePanels.kinds)}, of probes" in said


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore")
def test_a_measure_of_a_probe_stands_below_the_curve(lab: Lab) -> None:
    """Over the same lengths, of the same width as other figures."""
    run = eyechart.run("counting/words", "tiny", lengths=[5, 20, 40], samples=2, out=lab.out).folder
    asked = ("--task", "counting/words", "--lengths", "5,20", "--samples", "2")
    measures = ("--measure", "attention", "--out", lab.out)
    assert lab.bench("probe", *asked, *measures, "--model", "tiny").code == 0
    probe = next((lab.out / "probes" / "tiny" / "counting").iterdir())
    found = charts("probe", run, probe)
    assert "counting/words: tiny, Attention sinks" in found
    check_valid(found["counting/words: tiny, Attention sinks"])
    for spec in found.values():
        assert _size(spec)[0] == pytest.approx(WIDTH * INCH, abs=1.5)
        upper, lower = spec["vconcat"]
        assert upper["width"] == lower["width"]
        assert {"curve", "inside"} <= set(spec["datasets"])
        assert spec["usermeta"]["notes"]
    written = figure(lab, "probe", run, probe, "-o", lab.folder / "p.pdf")
    assert written == [lab.folder / "p.pdf"]
    lab.bench("figure", "probe", probe).one_line(2, "is a probe: name its run too")


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore")
def test_what_a_probe_reads_is_beside_both_readings(lab: Lab) -> None:
    """The share of counts that its table has, at the lengths of both readings."""
    asked = ("--task", "counting/bernoulli", "--model", "tiny", "--exact", "--lengths", "10,20,40")
    few = ("--samples", "2", "--axis", "separator=none", "--out", lab.out)
    for more in ((), ("--read", "likelihood")):
        assert lab.bench("run", *asked, *few, *more).code == 0
    assert lab.bench("probe", *asked, *few, "--measure", "counter").code == 0
    (table,) = lab.out.rglob("probe.csv")
    folders = [path.parent for path in (lab.out / "runs").rglob("manifest.json")]
    (spec,) = charts("readings", *folders, table.parent).values()
    frame = pd.read_csv(table).query("quantity == 'within_half'")
    best = frame.groupby("length")["value"].max()
    curve = [row for row in spec["datasets"]["curve"] if row["colour"] == "read off the states"]
    assert [row["length"] for row in curve] == list(best.index)
    assert len(curve) > 1
    assert [row["y"] for row in curve] == pytest.approx(list(best))
    (said,) = spec["usermeta"]["notes"]
    assert said.startswith("read off the states: Share of the counts so far")


def test_a_conversation_is_not_probed(lab: Lab, sums: Path) -> None:
    """The message says who asks one."""
    done = lab.bench("probe", "--out", lab.folder / "x", "--task", sums, "--model", "tiny")
    done.one_line(2, "several turns", "'bench run' and Inspect do")


def test_without_a_probe_nothing_is_drawn(lab: Lab) -> None:
    """The message names what makes one."""
    lab.bench_run("--lengths", "3", "--samples", "2")
    for kind, said in (("probe", "no probe of these runs is here"), ("first", "--measure readout")):
        lab.bench("figure", kind, lab.the_run()).one_line(2, said, "'bench probe")


@pytest.mark.parametrize("form", DRAWN)
def test_without_the_extra_no_chart_becomes_a_file(lab: Lab, form: str) -> None:
    """The message names it."""
    lab.monkeypatch.setitem(vars(outputs), "find_spec", lambda _name: None)
    rope = lab.bench("rope", "-o", lab.folder / f"rope.{form}")
    assert rope.code == 2
    if form == "svg":
        rope.one_line(2, "--output svg needs the package vl-convert-python: ")
