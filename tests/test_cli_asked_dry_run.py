"""`bench compare --ask --dry-run` and `bench gate --ask --dry-run`: what would be asked."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import right
from tests.test_analysis_family import right_to
from tests.test_face_asked_pair import LINES, Pair
from tests.test_plan_cost import priced

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Lab


@pytest.fixture
def pair(lab: Lab) -> Pair:
    """The second run lacks two lines of the first one."""
    found = Pair(lab)
    found.run("far", right_to(8), *LINES)
    found.run("near", right_to(8), "--lengths", "2,4", "--samples", "20")
    lab.monkeypatch.setenv("EYECHART_MODELS", priced(lab.folder, "near/x"))
    return found


def kept(lab: Lab) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in sorted(lab.folder.rglob("*")) if path.is_file()}


def test_the_first_wave_has_its_price_and_nothing_is_sent_or_written(pair: Pair) -> None:
    """The wave is what asking then begins with; the most is more than it takes."""
    before = kept(pair.lab)
    table = pair.lab.folder / "new" / "pairs.csv"
    done = pair.ask("--max-requests", "30", "--dry-run", "-o", str(table))
    assert (done.code, done.err) == (0, "")
    title, price, first, most = done.out.splitlines()
    assert title == "lab/ones:"
    assert price.startswith("  asking at most 30 samples")
    assert first.startswith("  near/x: about 30 samples, ")
    assert first.endswith(" in the first wave")
    assert most.startswith("  all waves: at most 30 samples, ")
    assert most.endswith(", all of them on the longest lines")
    found = json.loads(pair.ask("--max-requests", "30", "--dry-run", "--json").out)
    assert (kept(pair.lab), pair.asked) == (before, {"far": [], "near": []})
    one = found["asking"]
    (wave,) = one["first_wave"]
    assert (one["most_samples"], one["nothing"], wave["folder"]) == (30, "", str(pair.folders[1]))
    assert wave["expected"]["requests"] == one["most"]["requests"] == 30
    assert 0 < wave["expected"]["dollars"] == wave["expected"]["output_tokens"]
    assert one["most"]["dollars"] is None  # the other run has no price
    assert pair.ask("--max-requests", "30").code == 0
    assert len(pair.asked["near"]) == 30


def test_why_nothing_would_be_asked_is_said(lab: Lab) -> None:
    """A pair that is decided."""
    pair = Pair(lab)
    pair.run("far", right_to(16), *LINES)
    pair.run("near", right_to(2), *LINES)
    done = pair.ask("--dry-run")
    assert done.out.splitlines()[-1] == "  no sample is asked: the comparison is decided"
    one = json.loads(pair.ask("--dry-run", "--json").out)["asking"]
    assert (one["nothing"], one["first_wave"]) == ("the comparison is decided", [])


def test_a_dry_run_is_for_asking(pair: Pair) -> None:
    """One line without --ask."""
    refused = pair.lab.bench("compare", *pair.folders, "--dry-run")
    refused.one_line(2, "--dry-run is for --ask; add it")


def test_a_gate_says_what_it_would_ask(lab: Lab) -> None:
    """Of each task of the baseline; it writes no file and passes nothing."""
    pair = Pair(lab)
    pair.run("old", right_to(8), *LINES)
    file = lab.folder / "baseline.json"
    assert lab.bench("gate", "--save", file, pair.folders[0]).code == 0
    pair.run("new", right, "--lengths", "2,4,8,16", "--samples", "3")
    before = kept(lab)
    command: tuple[Any, ...] = ("gate", file, pair.folders[1], "-t", lab.ones, "--ask")
    junit = lab.folder / "new" / "gate.xml"
    done = lab.bench(*command, "--dry-run", "--junit", junit)
    assert (done.code, done.err) == (0, "")
    assert "  asking at most 68 samples: samples of the baseline" in done.out
    assert "  new/x: about 20 samples, " in done.out  # five on each line
    one = json.loads(lab.bench(*command, "--dry-run", "--json").out)["asking"]
    assert (one["tasks"], one["most_samples"], one["most"]["requests"]) == ("lab/ones", 68, 68)
    assert (kept(lab), pair.asked["new"]) == (before, [])
