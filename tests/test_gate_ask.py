"""`bench gate --ask`: a run of few samples is asked rows of the baseline until it is decided."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from eyechart.harness.analysis.samples.judged_run import read_run
from eyechart.harness.errors import INTERRUPTED
from eyechart.providers.base import BadRequestError, Request
from tests.conftest import Done, Lab, right
from tests.test_analysis_family import right_to
from tests.test_face_asked_pair import LINES, Pair, lengths_of

FEW = ("--lengths", "2,4,8,16", "--samples", "3")
OF_BASELINE = 80


class Gate:
    """A baseline of 20 rows on four lines by a model that sees 8 symbols, and runs of few."""

    def __init__(self, lab: Lab) -> None:
        self.lab, self.pair = lab, Pair(lab)
        self.pair.run("old", right_to(8), *LINES)
        self.file = lab.folder / "baseline.json"
        assert lab.bench("gate", "--save", self.file, self.pair.folders[0]).code == 0

    @property
    def now(self) -> Path:
        return self.pair.folders[1]

    def run(self, sees: int, *options: str) -> None:
        """A run of few samples of the new model."""
        self.pair.run("new", right_to(sees), *(options or FEW))

    def ask(self, *options: str) -> Done:
        return self.lab.bench("gate", self.file, self.now, "--ask", "-t", self.lab.ones, *options)

    @property
    def asked(self) -> list[str]:
        """The samples that the new model was asked since its run."""
        return self.pair.asked["new"]


@pytest.fixture
def gate(lab: Lab) -> Gate:
    return Gate(lab)


@pytest.mark.parametrize(("sees", "verdict", "code"), [(2, "worse", 3), (8, "equivalent", 0)])
def test_a_run_of_few_samples_is_asked_until_it_is_decided(
    gate: Gate, sees: int, verdict: str, code: int
) -> None:
    """Only rows of the baseline, each once; a run that is worse needs few of them."""
    gate.run(sees)
    done = gate.ask()
    assert (done.code, done.out.splitlines()[0].endswith(f"  {verdict}")) == (code, True)
    said = " ".join(done.err.split())
    assert "asking at most 68 samples: samples of the baseline, the same number on each" in said
    assert "the comparison is decided decided: new/x is " + verdict in said
    assert len(gate.asked) == len(set(gate.asked)) <= OF_BASELINE - 12
    if verdict == "worse":
        assert len(gate.asked) < OF_BASELINE / 2
        known = len(gate.asked) + 12
        assert f"{80 - known} of 80 samples of the baseline have no" in " ".join(done.out.split())
    assert read_run(gate.now).missing == 0
    again, done = len(gate.asked), gate.ask()
    assert (done.code, len(gate.asked)) == (code, again)
    if again == OF_BASELINE - 12:
        assert "nothing is asked: no sample of the baseline is left" in done.err


def test_lines_that_the_run_lacks_are_asked(gate: Gate) -> None:
    """A run of the shortest line says nothing of the others."""
    gate.run(2, "--lengths", "2", "--samples", "20")
    assert gate.ask().code == 3
    assert lengths_of(gate.asked) <= {4, 8, 16}


def test_one_line_does_not_pass_a_gate(gate: Gate) -> None:
    """Though the run is as good as the baseline there."""
    gate.run(2, "--lengths", "2", "--samples", "20")
    assert gate.ask("--margin", "0.2").code == 3
    assert lengths_of(gate.asked) == {4, 8, 16}


def test_a_run_that_is_surely_worse_is_not_asked_what_had_no_reply(gate: Gate) -> None:
    """Nor anything else."""

    def fails(request: Request) -> str:
        if "length=16|" in request.sample_id and request.sample_id.endswith("index=9"):
            raise BadRequestError("not now")
        return right_to(2)(request)

    gate.pair.run("new", fails, "--lengths", "2,4,8,16", "--samples", "10", code=1)
    gate.pair.asked["new"].clear()
    assert gate.ask().code == 3
    assert gate.asked == []


def test_a_limit_leaves_the_run_incomplete(gate: Gate) -> None:
    """A gate that asked too little passes nothing, and its remedy asks on."""
    gate.run(8)
    done = gate.ask("--max-requests", "10")
    assert (done.code, done.out.splitlines()[0].endswith("  incomplete")) == (4, True)
    said = " ".join(done.err.split())
    assert "asked 10 samples, all that may be asked" in said
    assert "open: whether new/x is worse than the baseline" in said
    told = " ".join(done.out.split())
    assert "have no partner in the run. Remedy: the same command asks on." in told
    assert "--ask" not in told
    assert len(gate.asked) == 10


def test_what_is_incomplete_is_not_called_equivalent(gate: Gate) -> None:
    """Although the samples that both have would say so: the verdict is below."""
    gate.pair.run("new", right, "--lengths", "2,4,8,16", "--samples", "4")
    done = gate.ask("--max-requests", "1", "--margin", "0.29")
    assert (done.code, done.out.splitlines()[0].endswith("  incomplete")) == (4, True)
    assert "equivalent" not in done.err


def test_samples_without_a_reply_are_asked_first(gate: Gate) -> None:
    """Those of the run's own, however little they tell."""

    def fails(request: Request) -> str:
        if "length=2|" in request.sample_id:
            raise BadRequestError("not now")
        return right(request)

    gate.pair.run("new", fails, *FEW, code=1)
    gate.pair.asked["new"].clear()
    gate.pair.model("new", right)
    gate.ask("--max-requests", "3")
    assert lengths_of(gate.asked) == {2}
    assert len(gate.asked) == 3


def test_nothing_is_asked_where_nothing_can_be_compared(gate: Gate) -> None:
    """Another reading is refused before a request is sent."""
    choices = ("--model", "tiny", "--read", "likelihood", "--axis", "separator=none", *FEW)
    assert gate.lab.bench_ask(*choices).code == 0
    (folder,) = (gate.lab.out / "runs" / "tiny@likelihood" / "lab").iterdir()
    done = gate.lab.bench("gate", gate.file, folder, "--ask", "-t", gate.lab.ones)
    done.one_line(2, "a gate compares one kind only")


def test_a_run_that_fell_by_its_area_is_not_asked_on(gate: Gate) -> None:
    """Though its effective length has no upper limit."""

    def fails_half(request: Request) -> str:
        is_odd = int(request.sample_id.rpartition("index=")[2]) % 2
        return right(request) if is_odd else "Final answer: 99"

    gate.pair.run("new", fails_half, "--lengths", "2,4,8,16", "--samples", "10")
    done = gate.ask()
    assert done.code == 3
    assert len(gate.asked) < OF_BASELINE - 40


def test_the_reason_of_samples_without_a_reply_is_said(gate: Gate) -> None:
    """As `bench run` says it."""
    gate.run(8)

    def dead(request: Request) -> str:
        if "length=16|" in request.sample_id:
            raise BadRequestError("engine died")
        return right(request)

    gate.pair.model("new", dead)
    done = gate.ask()
    assert done.code == 4
    assert "no reply (the last: engine died), and the same command asks again" in " ".join(
        done.err.split()
    )


def test_an_interrupted_gate_says_so_to_pipelines(gate: Gate) -> None:
    """What was answered is saved, and the file of the pipeline has no verdict of before."""
    gate.run(8)

    def interrupts(_request: Request) -> str:
        raise KeyboardInterrupt

    gate.pair.model("new", interrupts)
    xml = gate.lab.folder / "gate.xml"
    xml.write_text('<testsuites><testsuite name="bench gate"/></testsuites>')
    done = gate.ask("--junit", str(xml))
    assert done.code == INTERRUPTED
    assert "the same command goes on" in done.err
    assert 'errors="1"' in xml.read_text()
    assert "The gate ended before its verdict (it was interrupted)" in xml.read_text()


def test_asking_and_saving_contradict(gate: Gate) -> None:
    """One line; options of asking are for asking alone."""
    gate.run(8)
    gate.lab.bench("gate", "--save", gate.lab.folder / "b.json", gate.now, "--ask").one_line(
        2, "leave out one of them"
    )
    gate.lab.bench("gate", gate.file, gate.now, "--budget", "1").one_line(
        2, "--budget is for --ask"
    )


def test_the_limit_is_that_of_all_tasks(gate: Gate) -> None:
    """And one asking is for all of them."""
    gate.run(8)
    other = gate.lab.ones.with_name("other.yaml")
    other.write_text(gate.lab.ones.read_text(encoding="utf-8"), encoding="utf-8")
    folders = list(gate.pair.folders)
    for name, lines in (("old", LINES), ("new", FEW)):
        gate.pair.run(name, right_to(8), *lines, "--task", str(other))
    news = [folders[1], gate.pair.folders[-1]]
    both = gate.lab.folder / "both.json"
    olds = [folders[0], gate.pair.folders[-2]]
    assert gate.lab.bench("gate", "--save", both, *olds).code == 0
    files = ("-t", f"{gate.lab.ones},{other}")
    done = gate.lab.bench("gate", both, *news, "--ask", *files, "--max-requests", "10")
    assert len(gate.asked) == 10
    said = " ".join(done.err.split())
    assert "asking at most 10 samples: samples of the baseline" in said
    assert "open: whether new/x is worse than the baseline on lab/other" in said
    told = json.loads(
        gate.lab.bench("gate", both, *news, "--ask", *files, "--dry-run", "--json").out
    )["asking"]
    assert told["tasks"] == "lab/ones, lab/other"
    assert {one["task"] for one in told["first_wave"]} == {"lab/ones", "lab/other"}
    assert gate.lab.bench("gate", both, *news, "--ask", *files).code == 0
