"""`bench leaderboard`: what is set side by side, what is not, and what stays."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from harness import journal
from harness.journal import Settings
from harness.leaderboard import BEGIN, END, Row, markdown, merge, read_rows, run_rows
from harness.session import Wanted
from harness.stats import Threshold
from harness.tables import read_run
from providers.base import BadRequestError, Request, StopRunError
from providers.scripted import ScriptedProvider
from tests.conftest import Done, Lab, right


def made(lab: Lab, model: str = "scripted/a", **more: object) -> Wanted:
    """A complete run."""
    wanted = lab.wanted(model=model, **more)  # type: ignore[arg-type]
    lab.asked(wanted)
    return wanted


def rows(wanted: Wanted) -> list[Row]:
    """The rows of one run."""
    return rows_of(wanted.folder)


def rows_of(folder: Path) -> list[Row]:
    """The same, by its folder."""
    found, left_out = run_rows(read_run(folder), Threshold())
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

    def test_rows_and_page(self, lab: Lab) -> None:
        """All runs under --out; the page beside the file."""
        made(lab)
        made(lab, "scripted/b")
        done = made_by(lab)
        assert (done.code, done.err) == (0, "")
        assert done.out.splitlines() == [
            f"{lab.out / 'leaderboard.csv'}: 4 rows",
            str(lab.out / "leaderboard.html"),
        ]
        assert [(row["condition"], row["model"]) for row in written(lab)] == [
            ("separator=comma", "scripted/a"),
            ("separator=comma", "scripted/b"),
            ("separator=none", "scripted/a"),
            ("separator=none", "scripted/b"),
        ]
        row = written(lab)[0]
        assert (row["n"], row["not_scored"], row["area"]) == ("8", "0", "1")
        assert (row["effective_length_min"], row["effective_length_max"]) == ("5", "")
        assert (row["accuracy_at_3"], row["accuracy_at_5"]) == ("1", "1")
        assert row["settings"] == "seed=0 temperature=0.0 max_tokens=auto api=chat"
        assert row["software"].startswith("eyechart=0.1.0 python=3.")
        assert len(row["fingerprint"]) == 16
        assert row["date"].startswith("20")
        assert row["command"].startswith("bench")

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
        assert made_by(lab).out.startswith(f"{lab.out / 'leaderboard.csv'}: 4 rows")

    def test_a_table_between_markers(self, lab: Lab) -> None:
        """The rest of the file is as it was; a row a task and model."""
        made(lab)
        readme = lab.folder / "README.md"
        readme.write_text(f"# Title\n\n{BEGIN}\nold\n{END}\n\nmore\n")
        made_by(lab, "--readme", readme)
        assert readme.read_text() == (
            f"# Title\n\n{BEGIN}\n"
            "| task | model | sees furthest (95 %) | sees least (95 %) | mean area |\n"
            "| --- | --- | --- | --- | ---: |\n"
            "| lab/ones | scripted/a | > 5 (< 3 to > 5), separator=none | – | 1.00 |\n"
            f"{END}\n\nmore\n"
        )

    def test_a_file_without_markers(self, lab: Lab) -> None:
        """Says what to put where."""
        made(lab)
        readme = lab.folder / "README.md"
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
        assert "the page lacks 2 of the rows: their runs are not here" in done.err
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
        (broken / journal.MANIFEST).write_text("{")
        done = made_by(lab)
        assert (done.code, len(done.err.splitlines())) == (0, 1)
        assert "left out" in done.err
        assert "2 rows" in done.out
        made_by(lab, broken).one_line(1, "cannot be read")

    def test_older_versions_of_a_task(self, lab: Lab) -> None:
        """The newest stays."""
        old = rows(made(lab))
        new = [row | {"task_version": "2", "model": "scripted/new"} for row in old]
        merged = merge([*old, *new])
        assert {row["model"] for row in merged.rows} == {"scripted/new"}
        assert len(merged.left_out) == 2
        assert "of version 1 of the task, and there are rows of 2" in merged.left_out[0]

    @pytest.mark.parametrize(
        ("more", "why"),
        [
            ({"settings": Settings(seed=1)}, "other rows of symbols"),
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
            f"scripted/odd on lab/ones, separator={name}" in line and why in line
            for name, line in zip(("comma", "none"), merged.left_out, strict=True)
        )

    def test_newcomers_drive_nobody_out(self, lab: Lab) -> None:
        """What the file has stays, however many others come with other data."""
        there = rows(made(lab, "scripted/there"))
        toys = [row for name in "ab" for row in rows(made(lab, f"scripted/{name}", samples=2))]
        merged = merge(toys, there)
        assert {row["model"] for row in merged.rows} == {"scripted/there"}
        assert "4 samples, and 8 elsewhere" in merged.left_out[0]

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
        later = [row | {"threshold": "0.5", "date": "1999", "model": "scripted/b"} for row in usual]
        merged = merge([*usual, *later])
        assert len(merged.rows) == 2
        assert "threshold is 0.5, and 0.85 elsewhere" in merged.left_out[0]

    def test_the_latest_of_one_model(self, lab: Lab) -> None:
        """A newer run replaces the older quietly; other settings are another row."""
        old = rows(made(lab))
        new = [row | {"date": "2999", "area": "0.5"} for row in old]
        merged = merge([*new, *old])
        assert [row["area"] for row in merged.rows] == ["0.5", "0.5"]
        assert merged.left_out == ()
        warm = [row | {"settings": "temperature=1"} for row in old]
        merged = merge([*old, *warm])
        assert len(merged.rows) == 4
        assert len(markdown(merged).splitlines()) == 4


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
    assert alone == "| lab/ones | scripted/b | > 5 (< 3 to > 5) | – | 1.00 |"


def test_controls_are_marked_and_not_shown(lab: Lab) -> None:
    """A model that always says the repeated symbol sees nothing."""
    command = ("run", "--task", "copying/first_last", "--lengths", "5,10", "--samples", "2")
    model = lab.fake(lambda _: "Final answer: 1")
    lab.bench(*command, "--axis", "position=first", "--model", model, "--out", lab.out)
    found = rows_of(lab.the_run())
    assert {row["condition"].rpartition("=")[2]: row["control"] for row in found} == {
        "zero": "",
        "absent": "yes",
    }
    (line,) = markdown(merge(found)).splitlines()[2:]
    assert line == "| copying/first_last | fake/model | < 5 (< 5 to 5) | – | 0.00 |"


def test_the_one_that_sees_furthest_has_the_longest_length(lab: Lab) -> None:
    """Not the larger area; areas over different lengths have no mean."""
    far, near = rows(made(lab))
    far |= {"effective_length_min": "20", "effective_length_max": "20", "accuracy_at_20": "1"}
    far["area"] = "0.5"
    (line,) = markdown(merge([far, near])).splitlines()[2:]
    assert line.split(" | ")[2].startswith("20 (")
    assert line.split(" | ")[4] == "– |"


def test_the_published_file_reads() -> None:
    """`results/leaderboard.csv` is a leaderboard, and nothing in it is left out."""
    published = read_rows(Path(__file__).parents[1] / "results" / "leaderboard.csv")
    merged = merge(published)
    assert merged.left_out == ()
    assert len(merged.rows) == len(published) > 0
