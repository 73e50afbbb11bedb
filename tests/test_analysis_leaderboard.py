"""`bench leaderboard`: what is set side by side, what is not, and what stays."""

from __future__ import annotations

import csv
import json
import re
import shutil
import time
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt

from eyechart.harness import errors
from eyechart.harness.analysis.ranking.leaderboard import merge, run_rows
from eyechart.harness.analysis.ranking.leaderboard_file import (
    Row,
    left_out_lines,
    only_writer,
    read_rows,
    write_leaderboard,
)
from eyechart.harness.analysis.samples.judged_run import JudgedRun, read_run
from eyechart.harness.cli.work import leaderboard
from eyechart.harness.journal.manifest import MANIFEST
from eyechart.harness.report.ranking.readme import BEGIN, END, markdown, put_into
from eyechart.harness.run.run_request import RunRequest
from eyechart.harness.spec import MAX_LENGTH, Condition, Settings
from eyechart.providers.base import BadRequestError, Request, StopRunError
from eyechart.providers.scripted import ScriptedProvider
from tests.conftest import Done, Lab, mark_chosen, right, wait_for
from tests.forked import Forked


def made(lab: Lab, model: str = "scripted/a", **more: object) -> RunRequest:
    """A complete run."""
    wanted = lab.wanted(model=model, **more)  # type: ignore[arg-type]
    lab.asked(wanted)
    return wanted


def rows(wanted: RunRequest) -> list[Row]:
    """The rows of one run."""
    return rows_of(wanted.folder)


def rows_of(folder: Path) -> list[Row]:
    """The same, by its folder."""
    found, left_out = run_rows(read_run(folder))
    assert left_out == []
    return found


def written(lab: Lab) -> list[Row]:
    """The rows of the file."""
    with (lab.out / "leaderboard.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def made_by(lab: Lab, *arguments: str | Path) -> Done:
    """The command over all runs of the laboratory."""
    return lab.bench("leaderboard", *arguments, "--out", lab.out, "--task", lab.ones.parent)


class TestCommand:
    """A row a model, task and condition."""

    def test_a_page_of_others_is_not_lost_to_named_runs(self, lab: Lab) -> None:
        """Unless the file is named; a run of the same models and tasks is added without a word."""
        folders = [made(lab).folder, made(lab, "scripted/b").folder]
        assert made_by(lab).code == 0
        page = lab.out / "leaderboard.html"
        before = page.read_bytes(), written(lab)
        made_by(lab, folders[0]).one_line(
            2, "leaderboard.csv has 2 rows of other models or tasks, which its page would lose; "
        )
        assert (page.read_bytes(), written(lab)) == before
        assert made_by(lab, folders[0], "-o", lab.out / "leaderboard.csv").code == 0
        assert page.read_bytes() != before[0]
        assert len(written(lab)) == len(before[1])
        assert made_by(lab, *folders).code == 0
        assert made_by(lab, lab.folder).code == 1

    def test_rows_and_page(self, lab: Lab) -> None:
        """All runs under --out; the page beside the file."""
        made(lab)
        made(lab, "scripted/b")
        done = made_by(lab)
        assert (done.code, done.err) == (0, "")
        assert done.out.splitlines()[-2:] == [
            f"{lab.out / 'leaderboard.csv'}: 4 rows",
            str(lab.out / "leaderboard.html"),
        ]
        assert "| rank | model      | right to (85 %) |" in done.out
        assert re.search(r"^\| +1–2 \| scripted/a \| +> 5 ", done.out, re.MULTILINE)
        assert [(row["condition"], row["model"]) for row in written(lab)] == [
            ("separator=comma", "scripted/a"),
            ("separator=comma", "scripted/b"),
            ("separator=none", "scripted/a"),
            ("separator=none", "scripted/b"),
        ]
        row = written(lab)[0]
        assert (row["n"], row["not_scored"], row["area"]) == ("8", "0", "1")
        assert (row["effective_length"], row["effective_length_bound"]) == ("5", ">")
        assert (row["tested_length"], row["tested_length_bound"]) == ("5", ">")
        assert (row["one_threshold"], row["default"], row["control"]) == ("yes", "", "")
        assert [row["default"] for row in written(lab)] == ["", "", "yes", "yes"]
        assert (row["accuracy_at_3"], row["accuracy_at_5"]) == ("1", "1")
        assert row["settings"] == "seed=0 temperature=0.0 max_tokens=auto api=chat"
        assert row["software"].startswith("eyechart=0.1.0 python=3.")
        assert len(row["fingerprint"]) == 16
        assert row["date"].startswith("20")
        assert row["command"].startswith("bench")

    def test_whole_numbers_keep_all_digits(self, lab: Lab) -> None:
        """Also the longest length there is; other numbers have six digits."""
        lengths = [3, MAX_LENGTH]
        wanted = lab.wanted(lengths=lengths, samples=1, axes={"separator": ["none"]})
        lab.asked(wanted)
        (row,) = rows(wanted)
        assert (row["tested_length"], row["tested_length_bound"]) == ("1000000", ">")
        assert (row["area"], row["area_ci_low"]) == ("1", "0.297613")

    def test_again_is_the_same(self, lab: Lab) -> None:
        """The file is its own memory, byte for byte."""
        made(lab)
        made_by(lab)
        before = (lab.out / "leaderboard.csv").read_bytes()
        assert made_by(lab).code == 0
        assert (lab.out / "leaderboard.csv").read_bytes() == before

    def test_rows_whose_runs_are_elsewhere_stay(self, lab: Lab) -> None:
        """Raw runs are not published; their rows are."""
        one = made(lab)
        made_by(lab)
        one.folder.rename(lab.folder / "away")
        made(lab, "scripted/b")
        assert f"\n{lab.out / 'leaderboard.csv'}: 4 rows\n" in made_by(lab).out

    def test_a_table_between_markers(self, lab: Lab) -> None:
        """The rest of the file is as it was; a row a task and model."""
        made(lab)
        readme = lab.folder / "README.md"
        readme.write_text(f"# Title\n\n{BEGIN}\nold\n{END}\n\nmore\n")
        made_by(lab, "--readme", readme)
        assert readme.read_text() == (
            f"# Title\n\n{BEGIN}\n"
            "| task | model | right to (95 % interval) | median over conditions | mean area |\n"
            "| --- | --- | --- | --- | ---: |\n"
            "| lab/ones | scripted/a | > 5 (3 to > 5, not sure: 4 rows), separator=none | > 5, "
            "range over 2 "
            "conditions > 5 | 1.00 |\n"
            f"{END}\n\nmore\n"
        )

    def test_a_file_without_markers(self, lab: Lab) -> None:
        """Says what to put where; or that there is no file."""
        made(lab)
        readme = lab.folder / "README.md"
        missing = made_by(lab, "--readme", readme).one_line(2, "README.md cannot be read: No such")
        assert "Errno" not in missing
        readme.write_text("# Title\n")
        done = made_by(lab, "--readme", readme)
        assert done.code == 2
        assert BEGIN in done.err
        assert not (lab.out / "leaderboard.csv").exists()

    def test_the_page_goes_beside_a_csv_file(self, lab: Lab) -> None:
        """So the file is none of another kind."""
        made(lab)
        done = lab.bench("leaderboard", "--out", lab.out, "-o", lab.out / "board.html")
        done.one_line(2, "board.html", "no .csv file")

    def test_the_page_has_what_is_there(self, lab: Lab) -> None:
        """Rows of runs that are elsewhere are counted; left-out runs are not drawn."""
        away = made(lab)
        made_by(lab)
        away.folder.rename(lab.folder / "away")
        made(lab, "scripted/b")
        made(lab, "scripted/odd", samples=2)
        done = made_by(lab)
        assert (
            "2 of the rows have no rank and no part of the page: their runs are not here"
            in done.err
        )
        page = (lab.out / "leaderboard.html").read_text()
        assert "scripted/b" in page
        assert "scripted/odd" not in page

    def test_no_run(self, lab: Lab) -> None:
        """One line."""
        made_by(lab).one_line(2, "no run under")

    def test_a_number_that_is_none(self, lab: Lab) -> None:
        """With its line and column."""
        made(lab)
        made_by(lab)
        path = lab.out / "leaderboard.csv"
        path.write_text(path.read_text().replace(",0.85,", ",many,", 1))
        made_by(lab).one_line(2, "leaderboard.csv:2: threshold is no number: 'many'")

    @pytest.mark.parametrize("content", ["a,b\n1,2\n", "task\ncounting\n", "\xff\n1\n"])
    def test_another_file_is_not_overwritten(self, lab: Lab, content: str) -> None:
        """What is no leaderboard stays as it is."""
        made(lab)
        path = lab.out / "leaderboard.csv"
        path.write_bytes(content.encode("latin-1"))
        made_by(lab).one_line(2, "leaderboard.csv")
        assert path.read_bytes() == content.encode("latin-1")


class TestLeftOut:
    """What does not belong together is not merged, and the reason is said."""

    def test_a_run_that_is_not_complete(self, lab: Lab) -> None:
        """With how much is missing."""

        def script(request: Request) -> str:
            if "index=1" in request.sample_id:
                raise StopRunError("enough")
            return right(request)

        with pytest.raises(StopRunError):
            lab.run(lab.wanted(), ScriptedProvider(script), max_connections=1)
        done = made_by(lab)
        assert done.code == 0
        assert "separator=none: 6 samples were never asked" in done.err
        assert "0 rows" in done.out

    def test_nothing_scored(self, lab: Lab) -> None:
        """Is not the same as nothing asked."""
        lab.run(lab.wanted(), ScriptedProvider(lambda _: BadRequestError("x")))
        assert "separator=none: no sample was scored" in made_by(lab).err

    def test_a_manifest_that_cannot_be_read(self, lab: Lab) -> None:
        """Costs its run where all are taken, and stops where it was named."""
        made(lab)
        broken = made(lab, "scripted/b").folder
        (broken / MANIFEST).write_text("{")
        done = made_by(lab)
        assert (done.code, len(done.err.splitlines())) == (0, 1)
        assert "left out" in done.err
        assert "2 rows" in done.out
        made_by(lab, broken).one_line(1, "left out", "cannot be read")
        assert made_by(lab, "--format", "markdown").code == 0

    def test_no_manifest_that_can_be_read(self, lab: Lab) -> None:
        """Ends with 1 in the terminal, with --json and with --format; nothing is written."""
        (made(lab).folder / MANIFEST).write_text("{")
        made_by(lab).one_line(1, "left out", "cannot be read")
        done = made_by(lab, "--json")
        assert (done.code, json.loads(done.out)["file"]) == (1, None)
        done = made_by(lab, "--format", "markdown")
        assert (done.code, done.out) == (1, "")
        assert not (lab.out / "leaderboard.csv").exists()

    def test_a_manifest_that_cannot_be_read_beside_a_sound_one(self, lab: Lab) -> None:
        """Costs its own run alone, also where both were named; the exit code tells."""
        sound = made(lab).folder
        broken = made(lab, "scripted/b").folder
        (broken / MANIFEST).write_text("{")
        done = made_by(lab, broken, sound, lab.folder / "nothing")
        assert (done.code, len(done.err.splitlines())) == (1, 2)
        assert "cannot be read" in done.err
        assert "no run in" in done.err
        assert "2 rows" in done.out
        assert {row["model"] for row in written(lab)} == {"scripted/a"}
        assert made_by(lab, sound, sound).code == 0

    def test_older_versions_of_a_task(self, lab: Lab) -> None:
        """The newest stays."""
        old = rows(made(lab))
        new = [row | {"task_version": "2", "model": "scripted/new"} for row in old]
        merged = merge([*old, *new])
        assert {row["model"] for row in merged.rows} == {"scripted/new"}
        assert len(merged.left_out) == 2
        assert "of version 1 of the task, and there are rows of 2" in str(merged.left_out[0])

    @pytest.mark.parametrize(
        ("more", "why"),
        [
            ({"settings": Settings(seed=1)}, "seed=1, and seed=0 elsewhere"),
            ({"samples": 5}, "10 samples, and 8 elsewhere"),
            ({"lengths": [3, 7]}, "lengths 3, 7, and 3, 5 elsewhere"),
        ],
    )
    def test_other_data(self, lab: Lab, more: dict[str, object], why: str) -> None:
        """What most models have stays."""
        usual = [rows(made(lab, f"scripted/{name}")) for name in "ab"]
        odd = rows(made(lab, "scripted/odd", **more))
        merged = merge([*odd, *usual[0], *usual[1]])
        assert {row["model"] for row in merged.rows} == {"scripted/a", "scripted/b"}
        assert all(
            f"scripted/odd on lab/ones, separator={name}" in str(line) and why in str(line)
            for name, line in zip(("comma", "none"), merged.left_out, strict=True)
        )

    def test_many_rows_of_one_kind_of_reason_are_one_line(self, lab: Lab) -> None:
        """With their number and the first of them; a few have a line each."""
        usual = [rows(made(lab, f"scripted/{name}")) for name in "abc"]
        odd = [rows(made(lab, f"scripted/{name}", lengths=[3, 7])) for name in "xy"]
        merged = merge([row for run in (*odd, *usual) for row in run])
        (line,) = left_out_lines(merged.left_out)
        assert line == (
            "4 rows with other lengths: scripted/x on lab/ones, separator=comma: lengths 3, 7, and "
            "3, 5 elsewhere; and 3 more"
        )
        assert left_out_lines(merged.left_out[:3]) == [str(one) for one in merged.left_out[:3]]

    def test_newcomers_drive_nobody_out(self, lab: Lab) -> None:
        """What the file has stays, however many others come with other data."""
        there = rows(made(lab, "scripted/there"))
        toys = [row for name in "ab" for row in rows(made(lab, f"scripted/{name}", samples=2))]
        merged = merge(toys, there)
        assert {row["model"] for row in merged.rows} == {"scripted/there"}
        assert "4 samples, and 8 elsewhere" in str(merged.left_out[0])

    def test_a_changed_prompt_renews_the_rows_of_all_models(self, lab: Lab) -> None:
        """Without a new version of the task; where one model is asked again, the others stay."""
        old = [row for name in "ab" for row in rows(made(lab, f"scripted/{name}"))]
        new = [
            row | {"fingerprint": "0" * 16, "date": row["date"][:-6] + ".5+00:00"} for row in old
        ]
        merged = merge([*new, *old], old)
        assert {row["fingerprint"] for row in merged.rows} == {"0" * 16}
        assert len(merged.rows) == len(old)
        assert "its prompts are not those of the others" in str(merged.left_out[0])
        one = [row for row in new if row["model"] == "scripted/a"]
        fewer = [row | {"n": "3"} for row in new]
        earlier = [row | {"date": "1999-01-01T00:00:00+00:00"} for row in new]
        for less in (one, fewer, earlier):
            kept = merge(less, old).rows
            assert {row["fingerprint"] for row in kept} == {row["fingerprint"] for row in old}

    def test_another_threshold_of_the_same_runs(self, lab: Lab) -> None:
        """The whole file changes to it."""
        made(lab)
        made_by(lab)
        done = made_by(lab, "--threshold", "0.5")
        assert done.err == ""
        assert {row["threshold"] for row in written(lab)} == {"0.5"}

    def test_another_threshold(self, lab: Lab) -> None:
        """Effective lengths of two thresholds are no column."""
        usual = rows(made(lab))
        early = "1999-01-01T00:00:00+00:00"
        later = [row | {"threshold": "0.5", "date": early, "model": "scripted/b"} for row in usual]
        merged = merge([*usual, *later])
        assert len(merged.rows) == 2
        assert "threshold is 0.5, and 0.85 elsewhere" in str(merged.left_out[0])

    def test_the_latest_of_one_model(self, lab: Lab) -> None:
        """A newer run replaces the older quietly; other settings are another row."""
        old = rows(made(lab))
        new = [row | {"date": old[0]["date"][:-6] + ".5+00:00", "area": "0.5"} for row in old]
        merged = merge([*new, *old])
        assert [row["area"] for row in merged.rows] == ["0.5", "0.5"]
        assert merged.left_out == ()
        warm = [row | {"settings": "temperature=1"} for row in old]
        merged = merge([*old, *warm])
        assert len(merged.rows) == 4
        assert len(markdown(merged).splitlines()) == 4


class TestDates:
    """The latest row of a model wins, and the future is not later than now."""

    def test_a_row_from_the_future_does_not_beat_a_run_that_is_here(self, lab: Lab) -> None:
        """It is said, and replaced for good."""
        made(lab)
        made_by(lab)
        path = lab.out / "leaderboard.csv"
        there = written(lab)[0]["date"]
        for date in ("2999-01-01T00:00:00+00:00", "2999-01-01", "tomorrow"):
            path.write_text(path.read_text().replace(there, date).replace(",8,0,", ",7,1,"))
            done = made_by(lab)
            assert done.code == 0
            said = [line.partition(", separator=")[0] for line in done.err.splitlines()]
            assert {*said} == {"bench: scripted/a on lab/ones"}
            assert done.err.count(f"dated {date!r}, which is no date or lies in the future") == 2
            assert {(row["date"], row["n"]) for row in written(lab)} == {(there, "8")}
        assert made_by(lab).err == ""

    def test_it_stays_where_the_run_is_elsewhere(self, lab: Lab) -> None:
        """There is nothing to put in its place; it is said again."""
        old = [row | {"date": "2999-01-01"} for row in rows(made(lab))]
        merged = merge([], old)
        assert (len(merged.rows), len(merged.ahead)) == (2, 2)

    def test_a_run_is_named_in_place_of_which_a_later_one_is_ranked(self, lab: Lab) -> None:
        """In one line, with the later run; or with the date of the file's row, if that is later."""
        older, newer = made(lab).folder, lab.folder / "newer"
        shutil.copytree(older, newer)
        manifest = json.loads((older / MANIFEST).read_text())
        (older / MANIFEST).write_text(json.dumps(manifest | {"updated": "2020-01-01T00:00:00"}))
        board = lab.folder / "board.csv"
        said = f"bench: left out: {older}: of runs with equal settings the latest is ranked: "
        for named in ((older, newer, newer), (newer, older)):
            done = made_by(lab, *named, "-o", board)
            assert (done.code, done.err) == (0, f"{said}{newer}\n")
        done = made_by(lab, older, "-o", board)
        assert done.err.startswith(f"{said}the file has a row of {manifest['updated']}\n")
        assert done.code == 2

    def test_clocks_may_differ_by_a_day(self, lab: Lab) -> None:
        """A row of this morning on the other side of the earth is later than yesterday's."""
        old = rows(made(lab))
        now = datetime.fromisoformat(old[0]["date"])
        for hours, wins in ((23, "0.5"), (25, "1")):
            date = (now + timedelta(hours=hours)).isoformat()
            new = [row | {"date": date, "area": "0.5"} for row in old]
            assert {row["area"] for row in merge([*new, *old], now=now).rows} == {wins}

    def test_dates_are_compared_as_times(self, lab: Lab) -> None:
        """23:00 in Tokyo is before 20:00 in Greenwich."""
        old = rows(made(lab))
        late = [row | {"date": "2020-05-05T20:00:00+00:00", "area": "0.5"} for row in old]
        early = [row | {"date": "2020-05-05T23:00:00+09:00"} for row in old]
        assert {row["area"] for row in merge([*late, *early]).rows} == {"0.5"}


NAMES = (
    "<!-- end -->",
    "a\n<!-- end -->\nb",
    "[x](https://evil.example)|y",
    "<script>alert(1)</script>",
    "`a` *b* _c_ ~~d~~ $e$ \\ &lt;",
    "=cmd|' /C calc'!A0",
    "'=1+1",
    "-",
    "\t@x\r\u202e\x1b[2J",
    "\udcff",
)
"""What a server may call its model."""


class TestNames:
    """No name that a model or server gives itself does anything to the files."""

    def entries(self, lab: Lab) -> list[Row]:
        return [row | {"model": name, "server": name} for name in NAMES for row in rows(made(lab))]

    def test_the_file_gives_every_name_back(self, lab: Lab) -> None:
        """And is the same when it is written again; no cell is a formula."""
        path = lab.out / "leaderboard.csv"
        write_leaderboard(path, merge(self.entries(lab)))
        first = path.read_bytes()
        read = read_rows(path)
        assert {row["model"] for row in read} == {row["server"] for row in read} == set(NAMES)
        write_leaderboard(path, merge([], read))
        assert path.read_bytes() == first
        assert not set(first.decode()) & set("\r\t\x1b\u202e")
        for row in csv.reader(first.decode().splitlines()):
            for cell in row:
                assert cell == "-" or not cell.startswith(("=", "+", "@", "-"))

    def test_the_table_has_a_line_a_model_and_shows_its_name(self, lab: Lab) -> None:
        """A Markdown library finds the names as texts: no link, no HTML, no further column."""
        table = markdown(merge(self.entries(lab)))
        assert len(table.splitlines()) == 2 + len(NAMES)
        tokens = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(table)
        assert tokens[0].type == "table_open"
        inline = [token for token in tokens if token.type == "inline"]
        assert len(inline) == 5 * (1 + len(NAMES))
        parts = {part.type for token in inline for part in token.children or ()}
        assert parts <= {"text", "text_special"}
        shown = {"".join(part.content for part in token.children or ()) for token in inline}
        for name in NAMES:
            assert name.encode("unicode_escape").decode().replace("\\\\", "\\") in shown

    def test_a_readme_does_not_grow(self, lab: Lab) -> None:
        """The same table again leaves the same file."""
        readme = lab.folder / "README.md"
        readme.write_text(f"# Title\n\n{BEGIN}\n{END}\n\nmore\n")
        table = markdown(merge(self.entries(lab)))
        put_into(readme, table)
        once = readme.read_text()
        put_into(readme, table)
        assert readme.read_text() == once
        assert once.endswith(f" |\n{END}\n\nmore\n")


class TestReadme:
    """Where the table goes, and that the rest of the file is left alone."""

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            (f"{BEGIN}\n{END}\n{BEGIN}\n{END}\n", ("on lines 1 and 3", "leave one")),
            (f"{END}\n\n{BEGIN}\n", ("x.md:3", "not followed by its own")),
            (f"{BEGIN}\n<!-- bench tasks -->\n{END}\n", ("x.md:1", "not followed")),
            (f"{BEGIN}\n|a|\n{END}\nb|\n{END}\n", ("on lines 3 and 5", "leave the one")),
            (f"{BEGIN}\n", ("has no place", BEGIN, END)),
            (f"text {BEGIN} {END}\n", ("has no place", "lines of their own")),
        ],
    )
    def test_markers_that_are_no_one_place(
        self, lab: Lab, text: str, words: tuple[str, ...]
    ) -> None:
        """One line with their lines and the remedy; nothing is written."""
        made(lab)
        readme = lab.folder / "x.md"
        readme.write_text(text)
        made_by(lab, "--readme", readme).one_line(2, *words)
        assert readme.read_text() == text
        assert not (lab.out / "leaderboard.csv").exists()

    def test_other_blocks_have_the_same_end(self, tmp_path: Path) -> None:
        """Blocks of ours, and comments of other tools, before and after."""
        block, other = "<!-- bench tasks -->\nx\n<!-- end -->\n", "<!-- toc -->\n<!-- end -->\n"
        readme = tmp_path / "x.md"
        readme.write_text(f"{block}{BEGIN}\n{END}\n{other}{block}")
        put_into(readme, "| a |")
        assert readme.read_text() == f"{block}{BEGIN}\n| a |\n{END}\n{other}{block}"

    def test_through_a_link(self, tmp_path: Path) -> None:
        """The file that the link leads to is replaced, with its permissions; the link stays."""
        real = tmp_path / "deep" / "README.md"
        real.parent.mkdir()
        real.write_text(f"{BEGIN}\n{END}\n")
        real.chmod(0o640)
        link = tmp_path / "README.md"
        link.symlink_to(real)
        put_into(link, "| a |")
        assert link.is_symlink()
        assert real.read_text() == f"{BEGIN}\n| a |\n{END}\n"
        assert real.stat().st_mode & 0o777 == 0o640

    def test_line_ends_stay(self, tmp_path: Path) -> None:
        """As the file has them."""
        readme = tmp_path / "x.md"
        readme.write_bytes(f"a\r\n{BEGIN}\r\n{END}\r\nb\r\n".encode())
        put_into(readme, "| a |\n| - |")
        assert readme.read_bytes() == (f"a\r\n{BEGIN}\r\n| a |\r\n| - |\r\n{END}\r\nb\r\n".encode())


class TestAtOnce:
    """Two commands on one file: one after the other."""

    def test_no_row_is_lost(self, lab: Lab) -> None:
        """Two processes add ten rows each, at once."""
        (row, _) = rows(made(lab))
        path, rounds, go = lab.folder / "board.csv", 10, lab.folder / "go"

        def add(name: str) -> None:
            (lab.folder / name / "ready").touch()
            while not go.exists():
                time.sleep(0.0005)
            for turn in range(rounds):
                mine = row | {"model": f"{name}/{turn}"}
                with only_writer(path, print, quiet_s=600):
                    write_leaderboard(path, merge([mine], read_rows(path)))

        writers = []
        for name in "ab":
            (lab.folder / name).mkdir()
            writers.append(Forked(partial(add, name), lab.folder / name))
            wait_for((lab.folder / name / "ready").exists, writers[-1])
        go.touch()
        for writer in writers:
            assert writer.communicate(timeout=900) == (b"", b"")
            assert writer.returncode == 0
        models = {row["model"] for row in read_rows(path)}
        assert models == {f"{name}/{turn}" for name in "ab" for turn in range(rounds)}

    def test_the_command_holds_the_lock_from_reading_to_writing(self, lab: Lab) -> None:
        """What another one writes while it judges runs is there afterwards."""
        made(lab)
        path = lab.out / "leaderboard.csv"
        (other, _) = [row | {"model": "scripted/other"} for row in rows(made(lab, "scripted/b"))]

        def judged(folder: Path, *given: Any) -> JudgedRun:
            with only_writer(path, print):
                write_leaderboard(path, merge([other], read_rows(path)))
            return read_run(folder, *given)

        lab.monkeypatch.setattr(leaderboard, "read_run", judged)
        assert made_by(lab).code == 0
        assert {row["model"] for row in written(lab)} == {
            *("scripted/a", "scripted/b", "scripted/other")
        }

    def test_waiting_is_said_and_has_an_end(self, lab: Lab) -> None:
        """One line that says who is waited for, one that says what to do."""
        path = lab.folder / "board.csv"
        said: list[str] = []
        with only_writer(path, said.append):
            assert said == []
            with (
                pytest.raises(errors.JournalError, match="end it, or use another -o"),
                only_writer(path, said.append, quiet_s=0.0, patience_s=0.05),
            ):
                pass
        assert said == [f"waiting for another command that writes {path}"]
        with only_writer(path, said.append, quiet_s=0.0):
            assert len(said) == 1

    def test_a_link_and_its_file_have_one_lock(self, tmp_path: Path) -> None:
        """Since they are one file; and it is written through the link."""
        real, link = tmp_path / "deep" / "board.csv", tmp_path / "link.csv"
        real.parent.mkdir()
        link.symlink_to(real)
        write_leaderboard(link, merge([]))
        assert link.is_symlink()
        with (
            only_writer(real, print),
            pytest.raises(errors.JournalError),
            only_writer(link, lambda _: None, quiet_s=0.0, patience_s=0.0),
        ):
            pass

    def test_a_folder_that_cannot_be_written(self, lab: Lab) -> None:
        """One line."""
        made(lab)
        (lab.folder / "file").write_text("")
        done = made_by(lab, "-o", lab.folder / "file" / "board.csv")
        done.one_line(2, "board.csv")


WRONG_CELLS = [
    (",accuracy_at_3,", ",accuracy_at_three,", "no column of a leaderboard"),
    (",threshold,", ",limit,", "it has no 'threshold'"),
    ("lab/ones,1,", "lab/ones,1,1,", "it has more fields than columns"),
    (",8,0,0.85,", ",8.5,0,0.85,", "n is no whole number: '8.5'"),
    (",8,0,0.85,", ",8,,0.85,", "not_scored is no whole number: ''"),
    (",8,0,0.85,", ",8,0,,", "threshold is empty"),
    (",8,0,0.85,", ",8,0,1e999,", "threshold is no number: '1e999'"),
    ("lab/ones,1,", f"lab/ones,{'9' * 5000},", "task_version is no whole number"),
    (",lengths,4,yes,", ",nothing,4,yes,", "limited_by is not sight or form or room"),
    (",lengths,4,yes,", ",lengths,-4,yes,", "rows is no whole number: '-4'"),
    (",5,>,3,", ",5,=,3,", "effective_length_bound is not empty or < or >: '='"),
    (",yes,0.", ",maybe,0.", "one_threshold is not no or yes: 'maybe'"),
]
"""What stands in a row -> what stands there instead, and what is said."""


class TestFile:
    """A file that was changed by hand, or by somebody else."""

    def test_a_cell_that_is_none(self, lab: Lab) -> None:
        """One line with its place."""
        made(lab)
        made_by(lab)
        path = lab.out / "leaderboard.csv"
        text = path.read_text()
        for old, new, words in WRONG_CELLS:
            assert old in text
            path.write_text(text.replace(old, new, 1))
            made_by(lab).one_line(2, "leaderboard.csv:2: ", words)


def test_the_table_has_the_better_model_first(lab: Lab) -> None:
    """By the mean area over the conditions that both have; axes that do not vary are left out."""
    full = rows(made(lab, "scripted/a"))
    part = rows(made(lab, "scripted/b", axes={"separator": ["none"]}))
    worse = [row | {"area": "0.25"} for row in full if "none" in row["condition"]]
    better = [row for row in full if "comma" in row["condition"]]
    lines = markdown(merge([*worse, *better, *part])).splitlines()[2:]
    assert [line.split(" | ")[1] for line in lines] == ["scripted/b", "scripted/a"]
    assert [line.split(" | ")[-1] for line in lines] == ["1.00 |", "0.25 |"]
    assert lines[0].split(" | ")[3] == "–"
    alone = markdown(merge(part)).splitlines()[2]
    assert alone == "| lab/ones | scripted/b | > 5 (3 to > 5, not sure: 4 rows) | – | 1.00 |"


def test_the_file_has_the_largest_area_first(lab: Lab) -> None:
    """Within each task and condition."""
    (row,) = rows(made(lab, axes={"separator": ["none"]}))
    areas = {"a": "0.25", "b": "0.75", "c": "0.5"}
    merged = merge([row | {"model": name, "area": area} for name, area in areas.items()])
    assert [row["model"] for row in merged.rows] == ["b", "c", "a"]


def test_controls_are_marked_and_not_shown(lab: Lab) -> None:
    """A model that always says the repeated symbol sees nothing."""
    command = (
        "run",
        "--task",
        "copying/first_last",
        "--lengths",
        "5,10",
        "--exact",
        "--samples",
        "2",
    )
    model = lab.fake(lambda _: "Final answer: 1")
    lab.bench(*command, "--axis", "position=first", "--model", model, "--out", lab.out)
    found = rows_of(lab.the_run())
    controls = {Condition.read(row["condition"])["odd"]: row["control"] for row in found}
    assert controls == {"zero": "", "absent": "yes"}
    (line,) = markdown(merge(found)).splitlines()[2:]
    assert (
        line
        == "| copying/first_last | fake/model | not known (< 5 to 5, only 4 replies) | – | 0.00 |"
    )


def of_condition(row: Row, value: str, length: int, **more: str) -> Row:
    """`row` with another condition and another effective length, which is within the range."""
    return row | {
        "condition": f"separator={value}",
        "default": "yes" if value == "none" else "",
        "effective_length": str(length),
        "effective_length_bound": "",
        "effective_length_ci_low": str(length - 1),
        "effective_length_ci_high": str(length + 1),
        "limited_by": "sight",
        "rows": "",
        **more,
    }


def shown(*found: Row) -> list[str]:
    """The cells after task and model in the README table of one model."""
    (line,) = markdown(merge(found)).splitlines()[2:]
    return line.strip("| ").split(" | ")[2:]


def test_one_condition_of_a_task_is_the_default(lab: Lab) -> None:
    """The one with the first default value of every axis, whatever was asked."""
    text = lab.ones.read_text()
    assert "default: [none, comma]" in text
    wanted = made(lab, axes={"separator": ["comma", "none", "space"]})
    by_condition = {row["condition"]: row["default"] for row in rows(wanted)}
    assert by_condition == {"separator=none": "yes", "separator=space": "", "separator=comma": ""}


class TestShown:
    """How far a model sees, in the table of a README."""

    def test_the_default_condition_is_shown(self, lab: Lab) -> None:
        """With its name and interval; of the others the median and the range, without names."""
        row = rows(made(lab))[0]
        found = shown(
            of_condition(row, "none", 20),
            of_condition(row, "comma", 50),
            of_condition(row, "space", 10),
        )
        assert found[:2] == [
            "20 (19 to 21), separator=none",
            "20, range over 3 conditions 10 to 50",
        ]

    def test_without_the_default_the_first_is_shown(self, lab: Lab) -> None:
        """In the order of the file."""
        row = rows(made(lab))[0]
        found = shown(of_condition(row, "space", 10), of_condition(row, "comma", 40))
        assert found[0] == "40 (39 to 41), separator=comma"

    @pytest.mark.parametrize(
        ("length", "bound", "words"),
        [
            ("40", "", "20, range over 2 conditions 10 to 40"),
            ("500", ">", "10, range over 2 conditions 10 to > 500"),
            ("5", "<", "< 5, range over 2 conditions < 5 to 10"),
            ("10", "", "10, range over 2 conditions 10"),
            ("10", ">", "10, range over 2 conditions 10 to > 10"),
        ],
    )
    def test_the_median_of_two(self, lab: Lab, length: str, bound: str, words: str) -> None:
        """Their geometric mean; the shorter where one is only a bound."""
        row = rows(made(lab))[0]
        other = {"effective_length": length, "effective_length_bound": bound}
        found = shown(of_condition(row, "none", 10), of_condition(row, "comma", 10, **other))
        assert found[1] == words

    def test_no_single_threshold_is_said(self, lab: Lab) -> None:
        """Beside the length, which is then the tested length."""
        row = of_condition(rows(made(lab))[0], "none", 20, one_threshold="no")
        assert shown(row)[0] == "20 (19 to 21, no single threshold)"

    def test_an_end_outside_the_tested_range(self, lab: Lab) -> None:
        """It is empty in the file, and has a sign in the table."""
        open_ends = {"effective_length_ci_low": "", "effective_length_ci_high": ""}
        row = of_condition(rows(made(lab))[0], "none", 4, **open_ends)
        assert shown(row)[0] == "4 (< 3 to > 5)"

    def test_areas_over_different_lengths_have_no_mean(self, lab: Lab) -> None:
        """Longer lengths would make the area smaller."""
        one, other = rows(made(lab))
        assert shown(one, other)[2] == "1.00"
        assert shown(one, other | {"accuracy_at_20": "1"})[2] == "–"


def test_the_published_file_reads() -> None:
    """`results/leaderboard.csv` is a leaderboard, and nothing in it is left out."""
    published = read_rows(Path(__file__).parents[1] / "results" / "leaderboard.csv")
    merged = merge(published)
    assert merged.left_out == ()
    assert len(merged.rows) == len(published) > 0


class TestAdaptive:
    """Adaptive rows have no area, and are compared with each other only."""

    @staticmethod
    def made(lab: Lab, model: str, *, sees: int = 99, **more: object) -> Row:
        """The row of a run on a model that miscounts rows of more than `sees` symbols."""

        def reply(request: Request) -> str:
            row = request.prompt.splitlines()[-1]
            return f"Final answer: {row.count('1') + (len(row) > sees)}"

        given = {"axes": {"separator": ["none"]}, **more}
        wanted = lab.wanted(model=model, **given)  # type: ignore[arg-type]
        lab.asked(wanted, reply)
        mark_chosen(wanted.folder, "none")
        (row,) = rows(wanted)
        return row

    def test_an_adaptive_row_has_no_area(self, lab: Lab) -> None:
        """In the file as in the row; the file is read again."""
        row = self.made(lab, "scripted/a")
        assert (row["adaptive"], row["area"], row["area_ci_low"], row["area_ci_high"]) == (
            *("yes", "", ""),
            "",
        )
        assert row["effective_length"]
        done = made_by(lab)
        assert done.code == 0
        assert [(row["adaptive"], row["area"]) for row in written(lab)] == [("yes", "")]
        assert made_by(lab).code == 0

    def test_other_samples_of_the_same_seed_are_compared(self, lab: Lab) -> None:
        """Rows are sorted by how far the models are right; another seed is left out."""
        near = self.made(lab, "scripted/a", sees=4, samples=60)
        far = self.made(lab, "scripted/b", sees=99, samples=70)
        other = self.made(lab, "scripted/c", settings=Settings(seed=1))
        assert near["fingerprint"] != far["fingerprint"]
        board = merge([near, other], before=[far])
        assert [row["model"] for row in board.rows] == ["scripted/b", "scripted/a"]
        assert left_out_lines(board.left_out) == [
            "scripted/c on lab/ones, separator=none: seed=1, and seed=0 elsewhere",
        ]
        assert [line.split(" | ")[1] for line in markdown(board).splitlines()[2:]] == [
            "scripted/b, adaptive",
            "scripted/a, adaptive",
        ]

    def test_a_run_that_grew_replaces_its_row(self, lab: Lab) -> None:
        """Although its samples are others."""
        before = self.made(lab, "scripted/a")
        after = self.made(lab, "scripted/a", samples=9)
        assert before["n"] != after["n"]
        board = merge([after], before=[before])
        assert [row["n"] for row in board.rows] == [after["n"]]
        assert board.left_out == ()

    @pytest.mark.parametrize("is_adaptive", [True, False])
    def test_both_kinds_stand_in_one_file(self, lab: Lab, *, is_adaptive: bool) -> None:
        """Whichever came first; rows say which kind they are, and nothing mixes the two."""
        chosen = self.made(lab, "scripted/a")
        full = rows(made(lab, "scripted/b"))
        before, new = ([chosen], full) if is_adaptive else (full, [chosen])
        board = merge(new, before=before)
        assert board.left_out == ()
        assert [
            (row["condition"], row["model"], row["adaptive"], bool(row["area"]))
            for row in board.rows
        ] == [
            ("separator=comma", "scripted/b", "", True),
            ("separator=none", "scripted/b", "", True),
            ("separator=none", "scripted/a", "yes", False),
        ]
        lines = markdown(board).splitlines()[2:]
        assert [line.split(" | ")[1] for line in lines] == ["scripted/b", "scripted/a, adaptive"]
        assert "range over 2 conditions" in lines[0]
        assert [line.split(" | ")[3:] for line in lines][1] == ["–", "– |"]
        path = lab.folder / "board.csv"
        write_leaderboard(path, board)
        assert merge((), before=read_rows(path)).rows == tuple(read_rows(path))

    def test_a_run_with_conditions_of_both_kinds(self, lab: Lab) -> None:
        """It has a row of each kind, and no median over both."""
        wanted = made(lab, "scripted/a")
        mark_chosen(wanted.folder, "comma")
        board = merge(rows(wanted))
        assert [(row["condition"], row["adaptive"]) for row in board.rows] == [
            ("separator=comma", "yes"),
            ("separator=none", ""),
        ]
        assert [line.split(" | ")[1:4:2] for line in markdown(board).splitlines()[2:]] == [
            ["scripted/a", "–"],
            ["scripted/a, adaptive", "–"],
        ]

    def test_another_threshold_is_left_out(self, lab: Lab) -> None:
        """As of full runs."""
        row = self.made(lab, "scripted/a")
        board = merge([{**row, "model": "scripted/b", "threshold": "0.5"}], before=[row])
        (reason,) = board.left_out
        assert "threshold is 0.5, and 0.85 elsewhere" in str(reason)

    @pytest.mark.parametrize(
        ("change", "problem"),
        [
            ({"area": "0.5"}, "an adaptive condition has an area"),
            ({"adaptive": ""}, "area is empty"),
        ],
        ids=str,
    )
    def test_a_file_that_mixes_them_up(
        self, lab: Lab, change: dict[str, str], problem: str
    ) -> None:
        """Its line is named."""
        row = self.made(lab, "scripted/a")
        path = lab.folder / "board.csv"
        write_leaderboard(path, merge([row]))
        (read,) = read_rows(path)
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(read))
            writer.writeheader()
            writer.writerow({**read, **change})
        with pytest.raises(errors.LeaderboardError, match=problem):
            read_rows(path)
