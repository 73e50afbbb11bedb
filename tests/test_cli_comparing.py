"""`bench compare` as a person and a program see it, and the command that is named next."""

from __future__ import annotations

import csv
import json
import shlex
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest
from rich.cells import cell_len

from eyechart.harness.analysis.comparison.comparison_table import sized_table
from eyechart.harness.analysis.comparison.family import rank_runs
from eyechart.harness.analysis.comparison.length_difference import LengthDifference
from eyechart.harness.analysis.samples.judged_run import read_run
from eyechart.harness.cli.work import compare as comparing
from eyechart.harness.cli.work.next_command import followed as facts
from eyechart.harness.journal.manifest import MANIFEST
from eyechart.harness.spec.columns import COMPARISON
from eyechart.harness.task.catalogue import built_in_files
from eyechart.providers.base import AuthError, BadRequestError, Request
from tests.conftest import Done, Lab, plain, right
from tests.test_analysis_family import right_to, run


def three(lab: Lab) -> list[Path]:
    """Of one task; the second one is right furthest, the third one less far than both."""
    sees = (("a", 8), ("b", 16), ("c", 2))
    return [run(lab, name, right_to(length)).folder for name, length in sees]


def cells_of(out: str) -> list[list[str]]:
    """The cells of all tables, row by row."""
    rows = [line for line in out.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


def followed(lab: Lab, done: Done) -> Done:
    """What the command that is named next does."""
    (line,) = [line for line in done.out.splitlines() if line.startswith("next: ")]
    bench, *words = shlex.split(line.removeprefix("next: "))
    assert bench == "bench"
    return lab.bench(*words)


class TestManyRuns:
    """The work on many runs grows no faster than the number of pairs, and its progress is shown."""

    def test_each_difference_is_asked_once_for_its_sign(self, lab: Lab) -> None:
        """By the ranks of all runs together, and the rows of all pairs are one table."""
        ranking = rank_runs([read_run(folder) for folder in three(lab)])
        signs: list[int] = []
        sign_of = vars(LengthDifference)["further"].fget

        def counted(length: LengthDifference) -> int:
            signs.append(sign_of(length))
            return signs[-1]

        lab.monkeypatch.setattr(LengthDifference, "further", property(counted))
        assert [ranking.ranks(place) for place in range(3)] == [(1, 1), (2, 2), (3, 3)]
        assert signs == [1, 1, 1]
        tables: list[int] = []

        def sized(*arguments: Any) -> Any:
            tables.append(len(arguments[0]))
            return sized_table(*arguments)

        lab.monkeypatch.setattr(comparing, "sized_table", sized)
        folders = sorted({path.parent for path in lab.out.rglob(MANIFEST)})
        pairs = json.loads(lab.bench("compare", *folders, "--json").out)["pairs"]
        assert tables == [3]
        for pair in pairs:
            sides = {(row["first"], row["second"]) for row in pair["rows"]}
            assert sides == {(pair["first"], pair["second"])}
            assert [row["condition"] for row in pair["rows"]].count("all") == 2

    def test_a_terminal_sees_how_many_are_read_and_compared(self, lab: Lab) -> None:
        """On stderr, and of a file nothing."""
        folders = three(lab)
        assert lab.bench("compare", *folders).err == ""
        lab.monkeypatch.setenv("COLUMNS", "80")
        lab.monkeypatch.setattr(type(sys.stderr), "isatty", lambda _: True)
        shown = plain(lab.bench("compare", *folders).err)
        assert "runs read" in shown
        assert "pairs compared" in shown
        assert "3/3" in shown


class TestPair:
    """A pair of runs."""

    def test_lines_without_a_partner_are_said(self, lab: Lab) -> None:
        """With what helps; where both have the same lines there is no such sentence."""
        folders = []
        for model, lengths in (("oracle:4", "3,5"), ("oracle:5", "3,4,7")):
            out = lab.folder / lengths
            asked = ("--model", model, "--lengths", lengths, "--out", out)
            assert lab.bench_ask(*asked).code == 0
            folders += [path.parent for path in out.rglob("manifest.json")]
        done = lab.bench("compare", *folders)
        said = "Left out: 1 line of oracle/4 and 2 lines of oracle/5, which the other run"
        assert said in " ".join(done.out.split())
        same = lab.bench("compare", folders[0], folders[0])
        assert "Left out" not in same.out

    def test_a_table_that_is_no_comparison_is_not_lost(self, lab: Lab) -> None:
        """Another comparison is replaced."""
        folders = three(lab)[:2]
        log = lab.folder / "log.csv"
        log.write_text("mine\n1\n")
        lab.bench("compare", *folders, "-o", log).one_line(2, "would be lost")
        assert log.read_text() == "mine\n1\n"
        log.unlink()
        for _ in range(2):
            assert lab.bench("compare", *folders, "-o", log).code == 0


class TestSeveral:
    """Three runs and more."""

    def test_runs_and_pairs_have_letters(self, lab: Lab) -> None:
        """A is the run with the longest effective length; all fits eighty columns."""
        folders = three(lab)
        done = lab.bench("compare", *folders)
        assert (done.code, done.err) == (0, "")
        cells = cells_of(done.out)
        assert cells[0] == ["", "run", "rank", "right to (85 %)", "area in points", "compared"]
        assert [row[4:] for row in cells[1:3]] == [
            ["(B minus it,", "with B"],
            ["90 % interval)", ""],
        ]
        assert [[*row[:3], row[5]] for row in cells[3:6]] == [
            ["A", "scripted/b", "1", "better"],
            ["B", "scripted/a", "2", "–"],
            ["C", "scripted/c", "3", "worse"],
        ]
        assert cells[3][3] == "> 16"
        assert float(cells[4][3].split()[0]) > float(cells[5][3].split()[0])
        assert cells[6] == ["first", "second", "factor", "95 % interval", "p (Holm)", "found"]
        assert [(*row[:2], row[5]) for row in cells[7:]] == [
            ("A", "B", "A is further"),
            ("A", "C", "A is further"),
            ("B", "C", "B is further"),
        ]
        assert "The margin of the comparisons is 5 points, a factor of 1." in done.out
        assert "Holm's correction for 3 pairs" in done.out
        tables = [line for line in done.out.splitlines() if line.startswith(("|", "+"))]
        assert max(map(cell_len, tables)) <= 80

    def test_better_without_a_longer_length_is_explained(self, lab: Lab) -> None:
        """Two tables of one command must not seem to contradict each other, in any form."""

        def half(request: Request) -> str:
            is_even = int(request.sample_id.rpartition("index=")[2]) % 2 == 0
            return right(request) if is_even else right_to(8)(request)

        scripts = (("a", right_to(8)), ("b", half), ("c", right_to(8)))
        folders = [run(lab, name, script).folder for name, script in scripts]
        said = " ".join(lab.bench("compare", *folders).out.split())
        assert "no difference found" in said
        why = (
            "scripted/b is better than scripted/a though no difference was found between their "
            "effective lengths: “worse” and “better” are also about the areas"
        )
        assert why in said
        for form in ("markdown", "latex"):
            done = lab.bench("compare", *folders, "--format", form)
            assert why in " ".join(done.out.split())
        folders[1:] = [
            run(lab, name, right_to(sees)).folder for name, sees in (("d", 16), ("e", 2))
        ]
        assert "though no difference was found" not in lab.bench("compare", *folders).out

    def test_every_form_has_words_at_the_left_and_one_dash(self, lab: Lab) -> None:
        """Numbers are at the right; what is not known is a dash, and no minus sign."""
        folders = [run(lab, name, right_to(99)).folder for name in "abc"]
        in_terminal = cells_of(lab.bench("compare", *folders).out)
        assert ["A", "B", "–", "not limited", "1.000", "no difference found"] in in_terminal
        markdown = lab.bench("compare", *folders, "--format", "markdown").out
        assert "| --- | --- | ---: | ---: | ---: | --- |" in markdown
        assert "| – | not limited | 1.000 | no difference found |" in markdown
        assert "| --- | ---: | ---: | ---: | --- |" in markdown
        latex = lab.bench("compare", *folders, "--format", "latex").out
        assert r"\begin{tabular}{llrrrl}" in latex
        assert r"& -- & not limited & 1.000 & no difference found" in latex

    def test_several_conditions_are_columns(self, lab: Lab) -> None:
        """With how far each run sees under each of them; pairs go by the mean."""
        both = ("none", "comma")
        folders = [
            run(lab, name, right_to(length), separators=both).folder
            for name, length in (("a", 8), ("b", 16), ("c", 2))
        ]
        done = lab.bench("compare", *folders)
        cells = cells_of(done.out)
        assert cells[0][:5] == ["", "run", "rank", "right to (85 %)", "right to (85 %)"]
        assert cells[1][3:5] == ["with separator=none", "with separator=comma"]
        assert "mean of 2 conditions" in done.out

    def test_the_first_is_the_reference(self, lab: Lab) -> None:
        """The command fails where any of the others is what `--fail-if` names."""
        good, best, bad = (lab.folder / folder for folder in three(lab))
        done = lab.bench("compare", good, best, bad, "--fail-if", "worse")
        assert done.code == 3
        assert done.err == "bench: --fail-if worse: scripted/c is worse\n"
        assert lab.bench("compare", bad, good, best, "--fail-if", "worse").code == 0
        done = lab.bench("compare", best, good, bad, "--fail-if", "different")
        assert done.err.splitlines() == [
            "bench: --fail-if different: scripted/a is worse",
            "bench: --fail-if different: scripted/c is worse",
        ]

    def test_runs_of_other_tasks_are_named(self, lab: Lab) -> None:
        """As in a comparison of two."""
        other = lab.ones.with_name("other.yaml")
        other.write_bytes(lab.ones.read_bytes())
        folders = [*(lab.folder / folder for folder in three(lab)[:2])]
        assert lab.bench_ask("--model", "tiny", "--task", str(other), "--samples", "2").code == 0
        (last,) = (lab.out / "runs").glob("tiny/*/other@*")
        lab.bench("compare", *folders, last).one_line(
            2, "one is a run of lab/ones, the other of lab/other"
        )

    def test_the_folder_of_the_file_is_made(self, lab: Lab) -> None:
        """Or one line says that it cannot be, before anything is asked."""
        folders = three(lab)[:2]
        table = lab.folder / "new" / "tables" / "c.csv"
        assert lab.bench("compare", *folders, "-o", table).code == 0
        assert table.exists()
        done = lab.bench("compare", *folders, "--ask", "-o", table / "c.csv")
        done.one_line(1, "cannot write")

    def test_no_file_unless_asked(self, lab: Lab, tmp_path: Path) -> None:
        """And with `-o` all pairs."""
        lab.monkeypatch.chdir(tmp_path)
        folders = three(lab)
        before = set(tmp_path.rglob("*.csv"))
        lab.bench("compare", *folders)
        lab.bench("compare", *folders[:2])
        assert set(tmp_path.rglob("*.csv")) == before
        done = lab.bench("compare", *folders, "-o", "c.csv")
        assert "c.csv" in done.out.splitlines()
        with (tmp_path / "c.csv").open() as file:
            rows = list(csv.DictReader(file))
        pairs = list(dict.fromkeys((row["first"], row["second"]) for row in rows))
        assert pairs == [
            ("scripted/b", "scripted/a"),
            ("scripted/b", "scripted/c"),
            ("scripted/a", "scripted/c"),
        ]
        assert len(rows) == 3 * (4 + 2 + 2 + 2)

    def test_json_has_the_same_numbers(self, lab: Lab) -> None:
        """Those of the table, of the CSV file and of the runs' own files; one document."""
        folders = three(lab)
        printed = cells_of(lab.bench("compare", *folders).out)
        done = lab.bench("compare", *folders, "--json", "-o", lab.folder / "c.csv")
        assert (done.code, done.err) == (0, "")
        document = json.loads(done.out)
        assert [one["name"] for one in document["runs"]] == [row[1] for row in printed[3:6]]
        assert [one["reference"] for one in document["runs"]] == [False, True, False]
        assert [one["further_than"] for one in document["runs"]] == [
            ["scripted/a", "scripted/c"],
            ["scripted/c"],
            [],
        ]
        for row, pair in zip(printed[7:10], document["pairs"], strict=True):
            middle, low, high = (pair[f"factor{end}"] for end in ("", "_ci_low", "_ci_high"))
            assert row[2] == ("–" if middle is None else f"{middle:#.3g}".rstrip("."))
            ends = [f"{one:#.3g}".rstrip(".") for one in (low, high) if one is not None]
            assert row[3] == (f"at least {ends[0]}" if high is None else " to ".join(ends))
            assert low == pytest.approx(2 ** pair["ci_low"], rel=0.005)
            assert row[4] == ("< 0.001" if pair["p_holm"] < 0.001 else f"{pair['p_holm']:.3f}")
            assert (pair["further"] is not None) == ("further" in row[5])
        with (lab.folder / "c.csv").open() as file:
            of_file = list(csv.DictReader(file))
        of_json = [row for pair in document["pairs"] for row in pair["rows"]]
        assert [same(row) for row in of_json] == [same(row) for row in of_file]
        for pair in document["pairs"]:
            length, area = (row for row in pair["rows"] if row["condition"] == "all")
            assert {name: pair[name] for name in length} == length
            assert pair["area"] == area
            assert area["ci_low"] <= area["ci90_low"] <= area["difference"] <= area["ci90_high"]

    def test_json_of_a_nasty_name(self, lab: Lab) -> None:
        """It is escaped as JSON has it, so the document can be read."""
        folders = three(lab)
        path = folders[2] / MANIFEST
        name = '\x1b[2J\x9b\u202e\x7f\n"x'
        path.write_bytes(orjson.dumps(orjson.loads(path.read_bytes()) | {"model": name, "run": ""}))
        done = lab.bench("compare", *folders, "--json")
        assert done.out.isascii()
        assert "\x7f" not in done.out
        assert name in [one["name"] for one in json.loads(done.out)["runs"]]

    def test_a_pair_as_json(self, lab: Lab) -> None:
        """Two runs have no ranking, and one condition against another is a pair."""
        folders = three(lab)
        done = lab.bench("compare", *folders[:2], "--json", "--fail-if", "worse")
        document = json.loads(done.out)
        assert "runs" not in document
        (pair,) = document["pairs"]
        assert (pair["first"], pair["second"], pair["second_is"]) == (
            *("scripted/a", "scripted/b"),
            "better",
        )
        assert list(pair["rows"][0]) == list(COMPARISON)


def same(row: dict[str, Any]) -> dict[str, object]:
    """A row of a file, or of JSON, with its numbers as numbers."""
    read: dict[str, object] = {}
    for name, value in row.items():
        try:
            read[name] = None if value in ("", None) else round(float(value), 6)
        except ValueError:
            read[name] = value
    return read


class TestTwo:
    """Two runs."""

    def test_both_accuracies_have_their_intervals(self, lab: Lab) -> None:
        """And the difference; then both lengths, with the factor, and the areas."""
        folders = three(lab)
        done = lab.bench("compare", folders[0], folders[2])
        cells = cells_of(done.out)
        assert cells[0] == ["length", "first, %", "second, %", "difference, points", "p (Holm)"]
        assert cells[1][:3] == ["2", "100 (84–100)", "100 (84–100)"]
        assert cells[2][:3] == ["4", "100 (84–100)", "0 (0–16)"]
        assert cells[2][3].startswith("+100 (+")
        assert cells[2][4] == "< 0.001"
        assert cells[5] == ["20 pairs a line", "first", "second", "first against second"]
        assert cells[6][0] == "right to (85 %)"
        assert " times (" in cells[6][3]
        assert [cells[7][0], cells[8][0]] == ["near (5 %)", "apart (20 %)"]
        assert cells[9][0] == "area"
        tables = [line for line in done.out.splitlines() if line.startswith(("|", "+"))]
        assert max(map(cell_len, tables)) <= 80

    def test_lines_with_other_numbers_of_pairs_say_how_many(self, lab: Lab) -> None:
        """In a column."""

        def fails(request: Any) -> Any:
            lost = "length=4|" in request.sample_id and request.sample_id.endswith("=1")
            return BadRequestError("no") if lost else right(request)

        folders = [run(lab, "a", right).folder, run(lab, "b", fails).folder]
        cells = cells_of(lab.bench("compare", *folders).out)
        assert cells[0][:2] == ["length", "pairs"]
        assert [row[1] for row in cells[1:5]] == ["20", "19", "20", "20"]

    def test_a_factor_that_is_not_limited(self, lab: Lab) -> None:
        """Is a question mark."""
        folders = [run(lab, name, right).folder for name in "ab"]
        cells = cells_of(lab.bench("compare", *folders).out)
        assert cells[6][1:] == ["> 16", "> 16", "factor not limited"]


class TestNext:
    """The command that is named next is complete, and works."""

    def test_after_a_run(self, lab: Lab) -> None:
        """Its conditions are compared."""
        lab.monkeypatch.chdir(lab.folder)
        done = lab.bench_run("--model", lab.fake(right_to(3)))
        after = followed(lab, done)
        assert after.code == 0
        assert "separator=none against separator=comma" in after.out
        page = followed(lab, after)
        assert page.code == 0
        assert (lab.folder / "report.html").exists()

    def test_after_a_run_it_is_what_its_sentence_names(self, lab: Lab) -> None:
        """The default condition and the longest one, though they differ on the second axis."""
        wanted = lab.wanted(
            built_in_files()["counting/ones"],
            axes={"separator": ["none", "comma"], "strategy": ["direct", "cot_zero_shot"]},
            lengths=[4, 8, 16],
            samples=8,
        )

        def answers(request: Request) -> str:
            count = max(line.count("1") for line in request.prompt.splitlines())
            is_seen = count < 6 or "strategy=cot_zero_shot" in request.sample_id
            return f"Final answer: {count if is_seen else 999}"

        lab.asked(wanted, answers)
        assert facts(read_run(wanted.folder)).axis == "strategy=direct,cot_zero_shot"

    def test_after_a_run_of_one_condition(self, lab: Lab) -> None:
        """Its wrong replies are shown; of a run without one there is the page."""
        lab.monkeypatch.chdir(lab.folder)
        done = lab.bench_run("--model", lab.fake(lambda _: "Final answer: 9"), task=lab.plain)
        assert "outcome  incorrect" in followed(lab, done).out
        done = lab.bench_run("--model", lab.fake(right), "--fresh", task=lab.plain)
        assert "next: bench report " in done.out

    def test_after_several(self, lab: Lab) -> None:
        """Runs of one task are compared, others make a page."""
        lab.monkeypatch.chdir(lab.folder)
        folders = three(lab)
        after = followed(lab, lab.bench("score", *folders))
        assert "3 runs by effective length" in after.out
        lab.bench_ask("--model", lab.fake(right), task=lab.plain)
        plain_run = next((lab.out / "runs" / "fake").rglob("plain@*"))
        done = lab.bench("score", plain_run, folders[0])
        assert followed(lab, done).code == 0
        assert (lab.folder / "report.html").exists()

    def test_of_an_incomplete_run_it_is_the_run(self, lab: Lab) -> None:
        """After `bench score`, without --json; `bench run` itself has said so on stderr."""
        failing = iter(["Final answer: 1", AuthError("401")])
        few = ("--max-connections", "1", "--json")
        done = lab.bench_run("--model", lab.fake(lambda _: next(failing)), *few)
        assert done.code == 1
        assert "next: " not in done.out
        lab.fake(right)
        asked = followed(lab, lab.bench("score", lab.the_run()))
        assert (asked.code, asked.out.startswith("{")) == (0, False)
        assert read_run(lab.the_run()).missing == 0

    def test_of_a_part_that_is_complete(self, lab: Lab) -> None:
        """What an earlier command did not get is not the next thing to ask."""
        script = iter(["Final answer: 1", AuthError("401")])
        lab.bench_ask("--model", lab.fake(lambda _: next(script)), "--max-connections", "1")
        done = lab.bench_run("--model", lab.fake(right), "--lengths", "9")
        assert done.code == 0
        assert f"next: bench compare {lab.the_run()} --axis separator=none,comma" in done.out

    @pytest.mark.parametrize("name", ["a b", "it's", "$HOME"])
    def test_folders_are_quoted(self, lab: Lab, name: str) -> None:
        """The command can be copied."""
        out = lab.folder / name
        done = lab.bench_run("--model", lab.fake(right), "--out", out)
        assert followed(lab, done).code == 0


def test_a_pattern_finds_runs_of_models_with_a_slash(lab: Lab) -> None:
    """Quoted, so that no shell takes `**` for one folder; all verbs that judge runs take it."""
    for model in ("tiny", "oracle:9"):
        assert lab.bench_ask("--model", model, "--lengths", "3", "--samples", "2").code == 0
    pattern = f"{lab.out}/runs/**/ones@*"
    done = lab.bench("compare", pattern)
    assert (done.code, "oracle/9 against tiny" in done.out) == (0, True)
    assert lab.bench("score", pattern).out.count("right to (85 %)") == 2
    for every in (pattern, f"{lab.out}/**"):
        done = lab.bench("leaderboard", every, "-o", lab.folder / "board.csv")
        assert ("board.csv: 4 rows" in done.out, "left out" in done.err) == (True, False)
    (lab.out / "runs/tiny/up").symlink_to("../..")  # back to where it is
    (lab.out / "runs/.old").symlink_to("tiny")
    done = lab.bench("report", pattern, "-o", lab.folder / "page.html")
    assert (done.code, "named" in done.err) == (0, False)
    assert lab.bench("score", f"{lab.out}/runs/.o*/**/ones@*").out.count("right to (85 %)") == 1
    done = lab.bench("score", f"{lab.out}/runs/**/twos@*")
    done.one_line(1, "no run in", "twos@*", "'bench runs' lists the runs")
