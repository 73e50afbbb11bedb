"""The tables of `bench leaderboard` and of a study on the screen."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from eyechart.harness.analysis.ranking.leaderboard_file import read_rows
from eyechart.harness.analysis.samples.judged_run import read_run
from eyechart.harness.report.page.section import Section, sections
from tests.conftest import Lab
from tests.test_cli_recorded_runs import recorded

NAMES = [f"scripted/model-number-{number}" for number in range(10)]


def sections_of(lab: Lab, names: list[str]) -> list[Section]:
    """The runs of several models on one task, under two conditions."""
    folders = []
    for name in names:
        wanted = lab.wanted(model=name)
        lab.asked(wanted)
        folders.append(wanted.folder)
    return sections([*map(read_run, folders)])


def cells_of(text: str) -> list[list[str]]:
    """The cells of the rows of all tables in a text."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_many_models_have_no_ranks(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """`1–125` says nothing; nor do the counts of others, where none is told from another one."""
    folders = [section.runs[0].run.folder for section in sections_of(lab, ["scripted/a"])]
    folders += [section.runs[0].run.folder for section in sections_of(lab, ["scripted/b"])]
    path = lab.folder / "board.csv"
    few = lab.bench("leaderboard", *folders, "-o", path, "--at", "4").out
    assert cells_of(few)[0][:2] == ["rank", "model"]
    assert " surely pass" in few
    monkeypatch.setattr("eyechart.harness.analysis.ranking.standing.MOST_IN_PAIRS", 1)
    many = lab.bench("leaderboard", *folders, "-o", path).out
    heads = [cell for row in cells_of(many) if row[0] == "model" for cell in row]
    assert "ahead / open / behind" not in heads
    page = path.with_suffix(".html").read_text(encoding="utf-8")
    assert ">ahead / open / behind</th>" not in page
    assert ">rank</th>" not in page


def test_the_table_of_a_paper_has_the_numbers_of_the_terminal(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ranks of few models alone; names are escaped, and the unit is named."""
    names = ["scripted/a_b", "scripted/c"]
    folders = [one.run.folder for part in sections_of(lab, names) for one in part.runs]
    path = lab.folder / "board.csv"
    arguments: list[str | Path] = ["leaderboard", *folders, "-o", path, "--at", "4"]
    few = lab.bench(*arguments, "--format", "latex")
    assert few.code == 0
    assert few.out.startswith("% needs \\usepackage{booktabs}\n")
    heads = r"right to (85 \%) & near (5 \%) & right at 4, \% & P(≥ 85 \% at 4)"
    assert rf"rank & model & {heads} \\" in few.out
    assert "separator none (the default), in symbols, with 95" in few.out
    assert r"    1--2 & scripted/a\_b & $>$ 5 (from 3)$^{\dagger}$ & " in few.out
    assert "{llrrrr}" in few.out
    assert r"\par\footnotesize $^{\dagger}$ not sure: 4 rows" in few.out
    assert read_rows(path)
    monkeypatch.setattr("eyechart.harness.analysis.ranking.standing.MOST_IN_PAIRS", 1)
    many = lab.bench(*arguments, "--format", "markdown")
    columns = next(row for row in cells_of(many.out) if row[0] in ("rank", "model"))
    assert columns[0] == "model"
    lab.bench(*arguments, "--format", "html").one_line(2, "--format is one of latex, markdown")
    lab.bench(*arguments, "--format", "latex", "--json").one_line(2, "--format does not go")
    alone = lab.bench("leaderboard", folders[0], "-o", path.with_name("one.csv"), "--format=latex")
    assert "task & model & right to" in alone.out


def test_every_door_marks_adaptive_and_recorded(lab: Lab) -> None:
    """A table of a paper would mix them with others unmarked."""
    axes = ("--axis", "separator=none")
    lab.bench_run("--model", "tiny", "--adaptive", "--max-requests", "30", *axes)
    lab.bench_run("--model", "oracle:9", "--lengths", "5,10", *axes)
    recorded(lab, "a", 50, (32, 64))
    recorded(lab, "b", 33, (32, 64))
    board = ("leaderboard", "--out", lab.out, "-o", lab.folder / "board.csv")
    doors = [lab.bench(*board, "--format", form).out for form in ("latex", "markdown")]
    doors.append(lab.bench(*board).out)
    doors.append((lab.folder / "board.html").read_text(encoding="utf-8"))
    for shown in doors:
        for name in ("tiny, adaptive", "a, recorded", "b, recorded"):
            assert re.search(rf"[ >]{name}[ <]", shown), name
        assert "oracle:9," not in shown


def test_the_table_of_a_paper_alone_writes_nothing(lab: Lab) -> None:
    """Without -o: neither a file nor a page, whatever the file in --out has; options of these are
    refused.
    """
    folders = [one.run.folder for one in sections_of(lab, ["scripted/a", "scripted/b"])[0].runs]
    board = lab.out / "leaderboard.csv"
    arguments: list[str | Path] = ["leaderboard", "--out", lab.out, *folders]
    written = lab.bench(*arguments, "-o", board, "--format", "latex")
    assert board.exists()
    before = {path: path.read_bytes() for path in sorted(lab.folder.rglob("*")) if path.is_file()}
    page = board.with_suffix(".html")
    assert page in before
    several = [[], folders[:1]]
    for more in several:  # one run: the file has rows of others
        named: list[str | Path] = ["leaderboard", "--out", lab.out, *more, "--format", "latex"]
        done = lab.bench(*named)
        assert done.code == 0
        assert (done.out == written.out) is not bool(more)
    after = {path: path.read_bytes() for path in sorted(lab.folder.rglob("*")) if path.is_file()}
    assert after == before
    options: list[list[str | Path]] = [["--readme", lab.folder / "README.md"], ["--ranks-only"]]
    for option in options:
        refused = lab.bench(*arguments, "--format", "latex", *option)
        refused.one_line(2, f"{option[0]} is for files; add -o")
    nothing = lab.bench("leaderboard", "--out", lab.folder / "none", "--format", "latex")
    nothing.one_line(2, "no run under")


def test_a_file_to_which_no_row_is_added_stays(lab: Lab) -> None:
    """Its ranks and its page too, where the runs of its rows are not here."""
    board = lab.folder / "board.csv"
    for model in ("oracle:9", "oracle:4"):
        assert lab.bench_run("--model", model, "--lengths", "2,4,8").code == 0
    assert lab.bench("leaderboard", "--out", lab.out, "-o", board).code == 0
    other = lab.out / "other"
    before = board.read_bytes(), board.with_suffix(".html").read_bytes()
    assert lab.bench_run("--model", "tiny", "--lengths", "2,4", "--out", other).code == 0
    done = lab.bench("leaderboard", "--out", other, "-o", board)
    assert (done.code, "no row is added to" in done.err) == (2, True)
    assert (board.read_bytes(), board.with_suffix(".html").read_bytes()) == before
