"""`bench gate`: runs against a saved baseline, with exit codes for pipelines."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from eyechart.harness.analysis.comparison.comparison import compare_runs
from eyechart.harness.analysis.comparison.gate import unlucky
from eyechart.harness.analysis.samples.judged_run import read_run
from eyechart.harness.journal.manifest import MANIFEST
from eyechart.harness.satellites.gate.baseline import read_baseline
from eyechart.harness.satellites.gate.outputs import GateRow, summary
from eyechart.providers.base import Request
from eyechart.providers.scripted import ScriptedProvider
from tests.conftest import DEFAULTS, Lab, right
from tests.test_analysis_family import LENGTHS, right_to, run

_READINGS = ("tiny", "tiny@likelihood")


@pytest.fixture
def before(lab: Lab) -> Path:
    """The baseline: a model that sees 8 symbols."""
    path = lab.folder / "baseline.json"
    done = lab.bench("gate", "--save", path, run(lab, "a", right_to(8)).folder)
    assert (done.code, "baseline.json: 1 run, " in done.out) == (0, True)
    return path


@pytest.mark.parametrize(
    ("sees", "verdict", "code"), [(8, "equivalent", 0), (2, "worse", 3), (16, "better", 0)]
)
def test_exit_codes(lab: Lab, before: Path, sees: int, verdict: str, code: int) -> None:
    """One of its own says that a run is worse."""
    now = run(lab, "b", right_to(sees)).folder
    done = lab.bench("gate", before, now)
    assert done.code == code
    assert done.out.splitlines()[0].endswith(f"  {verdict}")
    assert lab.bench("gate", before, now, "--fail-if", "undecided").code == code


def test_adaptive_runs_pass_within_a_factor(lab: Lab) -> None:
    """They have no area, and the sentence names the margin that goes by lengths."""
    path = lab.folder / "baseline.json"
    asked = ("--task", lab.ones, "--axis", "separator=none", "--lengths", "5,10,20,40,80")
    folders = []
    for name, sees in (("first", 20), ("same", 20), ("worse", 5)):
        more = ("--adaptive", "--precision", "0.5", "--out", lab.folder / name)
        done = lab.bench("run", *asked, "--model", lab.fake(right_to(sees)), *more)
        assert done.code == 0
        folders.append(next((lab.folder / name).rglob(MANIFEST)).parent)
    first, same, worse = folders
    assert lab.bench("gate", "--save", path, first).code == 0
    done = lab.bench("gate", path, same)
    assert (done.code, done.out.splitlines()[0].endswith("  undecided")) == (0, True)
    assert "--margin 1.5x holds the lengths against a factor" in " ".join(done.out.split())
    assert " rows of both 1" not in done.out
    done = lab.bench("gate", path, same, "--margin", "1.5x", "--fail-if", "undecided")
    assert (done.code, done.out.splitlines()[0].endswith("  equivalent")) == (0, True)
    assert lab.bench("gate", path, worse, "--margin", "1.5x").code == 3


def test_a_gate_is_the_comparison_with_one_side_saved(lab: Lab, before: Path) -> None:
    """`bench gate` prints the tables and the verdict of `bench compare`. A baseline has no answers,
    so near and apart lengths are not printed.
    """
    old, now = run(lab, "a", right_to(8)).folder, run(lab, "b", right_to(2)).folder
    done, compared = lab.bench("gate", before, now), lab.bench("compare", old, now)
    tables = [
        line
        for line in compared.out.splitlines()
        if line.startswith(("|", "+")) and not line.startswith(("| near", "| apart"))
    ]
    assert [line for line in done.out.splitlines() if line.startswith(("|", "+"))] == tables
    said = " ".join(done.out.split())
    assert "scripted/b on lab/ones: right to " in said
    assert (
        "; of all rows 25 % instead of 75 %. The baseline counts exactly further than scripted/b"
        in said
    )
    assert "difference was found" not in said
    assert "shows a difference" not in said
    back = lab.folder / "back.json"
    lab.bench("gate", "--save", back, now)
    assert lab.bench("gate", back, old).code == 0
    assert lab.bench("gate", back, old, "--fail-if", "different").code == 3


def test_a_fall_that_the_area_shows_says_so(lab: Lab, before: Path) -> None:
    """Nothing in it reads as if no difference was found."""

    def half(request: Request) -> str:
        is_odd = int(request.sample_id.rpartition("index=")[2]) % 3 == 0
        return "Final answer: 99" if is_odd else right_to(8)(request)

    done = lab.bench("gate", before, run(lab, "b", half).folder)
    said = " ".join(done.out.split())
    assert (done.code, done.out.splitlines()[0].endswith("  worse")) == (3, True)
    assert "difference was found" not in said


def test_a_model_that_is_wrong_everywhere_is_no_baseline(lab: Lab) -> None:
    """Nothing could be worse, so nothing is called equivalent; a model that sees is better."""
    path = lab.folder / "baseline.json"
    old, new = (run(lab, name, right_to(0)).folder for name in ("a", "b"))
    saved = lab.bench("gate", "--save", path, old)
    assert saved.code == 0
    said = "no run can be found worse, and only a better one passes"
    assert said in " ".join(saved.out.split())
    done = lab.bench("gate", path, new)
    assert (done.code, done.out.splitlines()[0].endswith("  not comparable")) == (4, True)
    for one in (done, lab.bench("compare", old, new)):
        said = " ".join(one.out.split())
        assert "so none can fall by more than the margin" in said
        assert "equivalent" not in said
    better = lab.bench("gate", path, run(lab, "c", right_to(8)).folder)
    assert (better.code, better.out.splitlines()[0].endswith("  better")) == (0, True)


@pytest.mark.parametrize(
    ("draws", "wrong", "said"),
    [
        (1, "draw=2", "up to 7 of 100 such baselines of a task call an unchanged model worse"),
        (4, "draw=2", "up to 3 of 100 such baselines of a task call an unchanged model worse"),
        (4, "index=0", ""),
    ],
)
def test_a_baseline_says_how_likely_it_is_unlucky(
    lab: Lab, draws: int, wrong: str, said: str
) -> None:
    """Where replies vary or may do so; one reply a row has a remedy. Runs need no draws."""

    def script(request: Request) -> str:
        return "Final answer: 99" if wrong in request.sample_id else right_to(8)(request)

    asked = ("--lengths", "2,4,8", "--samples", "5", "--axis", "separator=none")
    for out, more in (("old", ("--draws", draws)), ("new", ())):
        model = lab.fake(ScriptedProvider(script))
        command = ("--model", model, *asked, *more, "--out", lab.folder / out)
        assert lab.bench_ask(*command).code == 0
    old, new = (next((lab.folder / out / "runs").rglob("manifest.json")) for out in ("old", "new"))
    path = lab.folder / "base.json"
    done = lab.bench("gate", "--save", path, old.parent)
    line = done.out.partition("\n")[2]
    assert done.err == ""
    assert bool(line) == bool(said)
    assert said in line
    assert ("save a run with --draws 4, which is unlucky less often" in line) == (draws == 1)
    compared = lab.bench("gate", path, new.parent)
    assert "5 pairs a line" in compared.out
    assert "have no partner" not in compared.out


def test_more_replies_make_an_unlucky_baseline_rarer() -> None:
    """The chance of one beside which more than a tenth of unchanged runs are called worse."""
    shares = [unlucky(draws) for draws in (1, 4, 10)]
    assert shares == pytest.approx([0.068, 0.034, 0.007], abs=0.0005)


def test_a_baseline_is_as_good_as_its_run(lab: Lab, before: Path) -> None:
    """The comparison has the same numbers."""
    old, new = run(lab, "a", right_to(8)), run(lab, "b", right_to(4))
    (saved,) = read_baseline(before)
    expected, found = (
        compare_runs(read_run(new.folder), one) for one in (read_run(old.folder), saved)
    )
    assert (found.length, found.area) == (expected.length, expected.area)
    assert found.lines == expected.lines
    assert saved.missing == 0


def test_a_run_of_a_part_passes_no_gate(lab: Lab, before: Path) -> None:
    """As of a server that died early; its sentences do not call it equivalent."""
    folder = run(lab, "part", right_to(8), lengths=LENGTHS[:3]).folder
    done = lab.bench("gate", before, folder)
    assert (done.code, done.out.splitlines()[0].endswith("  incomplete")) == (4, True)
    assert "have no partner in" in " ".join(done.out.split())
    assert "of 60 rows of both 100 % as before" in " ".join(done.out.split())
    assert "equivalent" not in done.out


def refuses(length: int) -> Callable[[Request], str]:
    """A model that refuses rows with commas beyond a length, and sees the others less far."""

    def script(request: Request) -> str:
        fields = dict(part.split("=") for part in request.sample_id.split("|")[1:])
        if int(fields["length"]) <= length:
            return right(request)
        return (
            "I'm sorry, I can't help with that."
            if fields["separator"] == "comma"
            else "Final answer: 99"
        )

    return script


def test_a_fall_is_found_beside_another_limit(lab: Lab) -> None:
    """A condition that refusals limit hides no fall in the other one, and passes alone neither."""
    path, both = lab.folder / "both.json", ("none", "comma")
    lab.bench("gate", "--save", path, run(lab, "a", right_to(16), separators=both).folder)
    fallen = run(lab, "b", refuses(2), separators=both).folder
    done = lab.bench("gate", path, fallen)
    assert (done.code, done.out.splitlines()[0].endswith("  worse")) == (3, True)
    only = lab.folder / "only.json"
    lab.bench("gate", "--save", only, run(lab, "c", right_to(16), separators=("comma",)).folder)
    done = lab.bench("gate", only, fallen)
    assert (done.code, done.out.splitlines()[0].endswith("  not comparable")) == (4, True)
    saved = lab.bench("gate", "--save", lab.folder / "fallen.json", fallen)
    assert "is limited by refusal, so no run can be compared with" in " ".join(saved.out.split())


def test_other_settings_are_said_by_every_door(lab: Lab, before: Path) -> None:
    """By gate, compare of two and of three, and leaderboard: both values of each setting, also
    system prompts, since the comparison of prompts does not include them. A model that the names
    have is not repeated, and where they have the settings it is a note.
    """
    settings = replace(DEFAULTS, system="Look twice.", max_tokens=9000)
    old = run(lab, "a", right_to(8)).folder
    other = run(lab, "d", right_to(8), settings=settings).folder
    same = run(lab, "a", right_to(8), settings=settings).folder
    models = "model=scripted/a and model=scripted/d; "
    found = "max_tokens=auto and max_tokens=9000; system=none and system=Look twice."
    for command, name, of_models in (
        (("gate", before, other), "The baseline", models),
        (("compare", old, other), "scripted/a", ""),
    ):
        printed = " ".join(lab.bench(*command).out.split())
        line = f"{name} and scripted/d were asked with different settings: {of_models}{found}"
        assert line in printed
        assert f"{line}." not in printed

    def levels(found: list[dict[str, Any]]) -> list[str]:
        return [one["level"] for one in found if one["kind"] == "other settings"]

    gate = json.loads(lab.bench("gate", before, other, "--json").out)["runs"][0]["comparison"]
    assert levels(gate["findings"]) == ["warning"]
    for name, (folders, level) in {
        "two": ((old, other), "warning"),
        "named": ((old, same), "note"),
        "three": ((old, other, same), "warning"),
    }.items():
        shown = json.loads(lab.bench("compare", *folders, "--json").out)
        of_all = shown["pairs"][0] if len(folders) == 2 else shown
        if len(folders) > 2:
            assert "max_tokens=auto (scripted/a (" in of_all["findings"][1]["sentence"]
        assert levels(of_all["findings"]) == [level], name
        output = lab.folder / f"{name}.csv"
        shown = json.loads(lab.bench("leaderboard", *folders, "-o", output, "--json").out)
        assert levels(shown["ranks"][0]["findings"]) == [level], name


class TestReadings:
    """Replies and forced choices are two measures of a model."""

    @pytest.fixture
    def readings(self, lab: Lab) -> tuple[Path, Path]:
        """Both readings of the embedded model."""
        asked = ("--axis", "separator=none", "--lengths", "5,10", "--samples", "4")
        for reading in ("reply", "likelihood"):
            wanted = ("--task", "counting/ones", "--model", "tiny", *asked, "--read", reading)
            assert lab.bench_ask(*wanted, "--out", lab.out).code == 0
        said, chosen = (next((lab.out / "runs" / n / "counting").iterdir()) for n in _READINGS)
        return said, chosen

    @pytest.mark.parametrize("first", [0, 1])
    def test_one_is_no_baseline_of_the_other(
        self, lab: Lab, readings: tuple[Path, Path], first: int
    ) -> None:
        """In one line, with the code of runs that cannot be compared."""
        base, other = readings[first], readings[1 - first]
        path = lab.folder / "base.json"
        assert lab.bench("gate", "--save", path, base).code == 0
        done = lab.bench("gate", path, other)
        line = done.one_line(2, "replies", "forced choices (--read likelihood)", "one kind only")
        assert done.out == ""
        assert str(other) in line
        assert lab.bench("gate", path, base, other).code == 0

    def test_the_reading_and_chance_are_said(self, lab: Lab, readings: tuple[Path, Path]) -> None:
        """As everywhere else."""
        path = lab.folder / "base.json"
        lab.bench("gate", "--save", path, readings[1])
        printed = " ".join(lab.bench("gate", path, readings[1], "--all-findings").out.split())
        assert "Read by likelihood over 11 options (9 % are right by chance)" in printed

    def test_a_threshold_that_guesses_reach_saves_nothing(
        self, lab: Lab, readings: tuple[Path, Path]
    ) -> None:
        """The line says so before a baseline is written."""
        path = lab.folder / "base.json"
        done = lab.bench("gate", "--save", path, readings[1], "--threshold", "0.05")
        done.one_line(2, "--threshold 0.05 is not above chance")
        assert not path.exists()


def test_what_pipelines_read(lab: Lab, before: Path) -> None:
    """JUnit, a summary that is appended, and JSON have the verdict of the terminal."""
    now = run(lab, "b", right_to(2)).folder
    xml, summary = lab.folder / "new" / "gate.xml", lab.folder / "summary.md"
    summary.write_text("# Mine\n")
    arguments = ("gate", before, now, "--junit", xml, "--summary", summary)
    document = json.loads(lab.bench(*arguments, "--json").out)
    (one,) = document["runs"]
    assert (document["exit_code"], one["verdict"]) == (3, "worse")
    assert (document["threshold"], document["margin"]) == (0.85, 0.05)
    assert one["comparison"]["second_is"] == "worse"
    suite = ET.parse(xml).getroot()  # noqa: S314  we wrote it
    assert (suite.get("tests"), suite.get("failures")) == ("1", "1")
    (failure,) = suite.iter("failure")
    assert "counts exactly further than" in (failure.text or "")
    text = summary.read_text()
    assert text.startswith("# Mine\n\n| task |")  # else Markdown has no table there
    assert "**worse**" in text
    lab.bench(*arguments)
    assert summary.read_text() == text + text.removeprefix("# Mine\n")


def test_near_answers_are_not_asked_for(lab: Lab, before: Path) -> None:
    """A baseline has no answers, so no number depends on how near they are."""
    now = run(lab, "b", right_to(2)).folder
    lab.bench("gate", before, now, "--near", "0.2").one_line(2, "no such option: --near")
    rows = json.loads(lab.bench("gate", before, now, "--json").out)["runs"][0]["comparison"]["rows"]
    assert {row["measure"] for row in rows} == {"accuracy", "effective_length", "area"}


def test_what_pipelines_read_takes_no_other_file_away(lab: Lab, before: Path) -> None:
    """JUnit replaces JUnit, and a summary is appended to Markdown; the baseline is neither."""
    now = run(lab, "b", right_to(8)).folder
    mine = lab.folder / "mine.xml"
    mine.write_text("<letter/>")
    bare = before.rename(before.with_name("baseline"))
    files = [bare, mine, now / "manifest.json", now / "samples.jsonl"]
    kept = [path.read_bytes() for path in files]
    for path in files:
        done = lab.bench("gate", bare, now, "--junit", path)
        done.one_line(2, f"--junit {str(path)!r} is there and was not written by this option")
    for path in (now / "manifest.json", now / "samples.jsonl", now / "table.csv"):
        lab.bench("gate", bare, now, "--summary", path).one_line(2, "Markdown", ".md or .txt")
    again = bare.parent / "x" / ".." / bare.name
    (bare.parent / "x").mkdir()
    lab.bench("gate", bare, now, "--summary", again).one_line(2, "is the baseline, and would be")
    assert [path.read_bytes() for path in files] == kept
    mine.write_text('<testsuites name="pytest"><testsuite name="pytest"/></testsuites>')
    lab.bench("gate", bare, now, "--junit", mine).one_line(2, "was not written by this option")
    linked, hard, other = (lab.folder / f"{name}.md" for name in ("linked", "hard", "other"))
    linked.symlink_to(now / "samples.jsonl")
    hard.hardlink_to(bare)
    other.write_text("{}")
    for path in (linked, hard, other):
        lab.bench("gate", bare, now, "--summary", path).one_line(
            2, "it must be no link and no data"
        )
    assert [path.read_bytes() for path in files if path != mine] == kept[:1] + kept[2:]
    for option in ("--junit", "--summary"):
        inside = now / "kept" / "new.txt"
        lab.bench("gate", bare, now, option, inside).one_line(2, "is in the folder of a run")
        assert not inside.exists()
    xml, step = lab.folder / "gate.xml", lab.folder / "step"
    for path in (xml, step):
        path.write_text("")
    assert lab.bench("gate", bare, now, "--junit", xml, "--summary", step).code == 0
    assert lab.bench("gate", bare, now, "--junit", xml, "--summary", step).code == 0


def test_names_are_no_markdown() -> None:
    """A task or a model can have any name."""
    name = "a|b`c`[d](http://e)<img src=x>"
    text = summary([GateRow(name, "worse", [f"{name} is worse."], name)])
    assert text.splitlines()[2].count(" | ") == 4
    assert not any(one in text for one in ("a|b", "`c`", "[d](", "<img", " http://"))


def test_a_gate_without_a_verdict_says_so_to_pipelines(lab: Lab, before: Path) -> None:
    """Both files, though it ended with an error; no task passes or fails there."""
    xml, summary = lab.folder / "gate.xml", lab.folder / "summary.md"
    done = lab.bench("gate", before, lab.folder / "away", "--junit", xml, "--summary", summary)
    assert done.code == 1
    suite = ET.parse(xml).getroot()  # noqa: S314  we wrote it
    assert [suite.get(name) for name in ("tests", "failures", "errors")] == ["1", "0", "1"]
    (error,) = suite.iter("error")
    assert error.get("message") == "no verdict"
    assert "The gate ended before its verdict (no run in " in (error.text or "")
    assert "| lab/ones | **no verdict** | – | – | – |" in summary.read_text()
    assert summary.read_text().startswith("| task |")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("nothing.json", "RUN"), 1, "no baseline at nothing.json"),
        (("ones.yaml", "RUN"), 1, "is no baseline"),
        (("BASE", "nowhere"), 1, "no run in nowhere"),
        (("BASE", "OTHER"), 2, "which the baseline has; name the runs of all its tasks, or save"),
        (("BASE", "RUN", "--margin", "2"), 2, "--margin must be a number from 0.001"),
        (
            ("BASE", "RUN", "--fail-if", "bad"),
            2,
            "--fail-if must be worse, undecided, different or",
        ),
        (("--save", "ones.yaml", "RUN"), 2, "is no baseline; to keep it, name another file"),
        (("BASE", "RUN", "--save", "BASE"), 2, "--save takes no value, and the baseline is named"),
        (("new.json", "RUN", "--save", "new.json"), 2, "new.json is no folder of a run; --save"),
        (("BASE", "RUN", "--save", "ones.yaml"), 2, "named once, before the runs: bench gate --s"),
        (("--save", "new.json", "RUN", "TWIN"), 2, "with the same settings; name one"),
        (
            ("--save", "new.json", "RUN", "--junit", "x.xml"),
            2,
            "compares no runs, which --junit is",
        ),
        (("--save", "new.json", "RUN", "--fail-if", "worse"), 2, "which --fail-if is for; leave"),
    ],
)
def test_mistakes_have_other_codes(
    lab: Lab, before: Path, arguments: tuple[str, ...], code: int, said: str
) -> None:
    """None of them is that of a regression."""
    other = lab.wanted(lab.plain)
    lab.run(other)
    names = {"RUN": run(lab, "a", right_to(8)).folder, "BASE": before, "OTHER": other.folder}
    names |= {"ones.yaml": lab.ones, "TWIN": run(lab, "twin", right_to(4)).folder}
    done = lab.bench("gate", *(names.get(word, word) for word in arguments))
    assert done.code == code
    assert said in done.err
    assert lab.ones.read_text().startswith("version")


def test_only_a_baseline_of_the_same_model_and_task_is_replaced(lab: Lab, before: Path) -> None:
    """So that a wrong name costs none; the same command renews one, whatever it is like."""
    content = before.read_bytes()
    done = lab.bench("gate", "--save", before, run(lab, "b", right_to(8)).folder)
    done.one_line(2, "is a baseline of scripted/a on lab/ones, of which no run is given; name")
    assert before.read_bytes() == content
    for damage in (0, 99):
        before.write_bytes(content[: len(content) - damage])
        assert lab.bench("gate", "--save", before, lab.out / "runs/scripted/a/lab/*").code == 0
        assert len(read_baseline(before)) == 1


def test_a_baseline_tells_nothing_of_the_machine(lab: Lab) -> None:
    """Of texts it has the system prompt alone, which shapes the answers; a line says so."""
    path = lab.folder / "baseline.json"
    done = lab.bench(
        "gate",
        "--save",
        path,
        run(lab, "a", right_to(8), settings=replace(DEFAULTS, system="Be s.")).folder,
    )
    assert (done.code, "has the text of the system prompt" in done.err) == (0, True)
    assert str(lab.folder) not in path.read_text()
    assert lab.bench("gate", "--save", path, run(lab, "a", right_to(8)).folder).err == ""


def test_a_damaged_baseline_is_named(lab: Lab, before: Path) -> None:
    """In one line, with the remedy; also a number that no column can hold."""
    now, text = run(lab, "a", right_to(8)).folder, before.read_text()
    for old, new in (('"readings":"', '"readings":"x'), ('"targets":[', f'"targets":[{2**63},')):
        before.write_text(text.replace(old, new, 1))
        lab.bench("gate", before, now).one_line(1, "is damaged")
