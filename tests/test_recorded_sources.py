"""Several files of recorded replies: nothing is taken twice, and nothing replied is lost."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from eyechart.harness.analysis.samples.judged_run import read_run
from eyechart.harness.journal.manifest import read_manifest
from tests.conftest import Done, Lab, records

HEAD = "reply,target,length\n"


def log(lab: Lab, name: str, rows: Sequence[str]) -> Path:
    """A CSV file with a reply, a target and a length in each row."""
    path = lab.folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(HEAD + "".join(f"{row}\n" for row in rows))
    return path


def take(lab: Lab, *arguments: str | Path) -> Done:
    """`bench import` of recorded replies."""
    return lab.bench("import", *arguments, "-t", lab.plain, "-m", "them", "--out", lab.out)


def taken(lab: Lab) -> tuple[int, int]:
    """Replies and right ones of the only run."""
    cells = read_run(lab.the_run()).cells
    return int(cells["n"].sum()), int(cells["correct"].sum())


def test_equal_rows_of_two_files_are_not_lost(lab: Lab) -> None:
    """A second file alone is refused, since its rows may be the first ones; named beside the first,
    all of its rows are replies of their own, and each file is known from then on.
    """
    first = log(lab, "mon.csv", ["3,3,3", "3,3,3", "9,4,4"])
    second = log(lab, "tue.csv", ["3,3,3", "4,4,4", "5,5,5"])
    assert take(lab, first).code == 0
    before = (lab.the_run() / "samples.jsonl").read_bytes()
    take(lab, second).one_line(1, f"{second}: 1 row equals a row of mon.csv", "in one command")
    assert (lab.the_run() / "samples.jsonl").read_bytes() == before
    assert "3 new replies, 3 known before" in take(lab, first, second).err
    assert taken(lab) == (6, 5)
    for files in ((first, second), (second,), (first,)):
        done = take(lab, *files)
        assert (done.code, "0 new replies" in done.err) == (0, True)
    third = log(lab, "wed.csv", ["7,5,5"])
    assert "1 new reply, 0 known" in take(lab, third).err
    assert taken(lab) == (7, 5)


def test_a_file_that_grew_or_was_mended_adds_its_new_rows(lab: Lab) -> None:
    """Under the same name or another one; the older version is known as well."""
    rows = ["3,3,3", "x", "4,4,4"]
    assert take(lab, log(lab, "log.csv", rows)).code == 1
    old = log(lab, "old.csv", rows)
    grown = log(lab, "grown.csv", [*rows, "3,3,3"])
    assert "1 new reply, 2 known before" in take(lab, grown).err
    assert "0 new replies, 2 known before" in take(lab, old).err
    mended = log(lab, "log.csv", ["3,3,3", "5,5,5", "4,4,4", "3,3,3"])
    assert "1 new reply, 3 known before" in take(lab, mended).err
    changed = log(lab, "log.csv", ["3,3,3", "8,5,5", "4,4,4", "3,3,3"])
    take(lab, changed).one_line(1, f"{changed} lacks rows", "another name", "--out")
    assert taken(lab) == (4, 4)
    recorded = read_manifest(lab.the_run()).recorded
    assert recorded is not None
    assert str(recorded) == "recorded (log.csv)"
    assert [file.source for file in recorded.files] == [0, 0, 0]


def test_a_copy_in_one_command_is_taken_once(lab: Lab) -> None:
    """And said to be one."""
    log(lab, "new/log.csv", ["3,3,3", "4,4,4"])
    files = [log(lab, "log.csv", ["3,3,3"]), *(lab.folder / "new").iterdir()]
    done = take(lab, *files, files[1])
    assert f"{files[0]} is the beginning of {files[1]}" in done.err
    assert "2 new replies" in done.err


def test_each_file_says_who_recorded_it(lab: Lab) -> None:
    """A second one does not rename the first; the same one may be named anew, and says so."""
    first, second = log(lab, "a.csv", ["3,3,3"]), log(lab, "b.csv", ["4,4,4"])
    take(lab, first, "--recorded-by", "Ann", "--recorded-at", "2026-04")
    take(lab, first, second)
    assert str(read_manifest(lab.the_run()).recorded) == (
        "recorded (b.csv), by Ann in 2026-04 (a.csv)"
    )
    done = take(lab, second, "--recorded-by", "Bob")
    assert "recorded by Ann in 2026-04 or by Bob, and not asked" in done.out.replace("\n", " ")
    renamed = take(lab, first, "--recorded-by", "Anna")
    assert f"{first}: it was recorded by 'Ann' before, now by 'Anna'" in renamed.err
    assert "by Anna in 2026-04 or by Bob" in renamed.out.replace("\n", " ")


def test_a_row_keeps_what_was_read_from_it(lab: Lab) -> None:
    """Other fields of a row that the run has are not mixed into it."""
    path = log(lab, "log.csv", ["3,3,3", "4,4,4"])
    assert take(lab, path).code == 0
    done = take(lab, path, "--field", "output_tokens=target")
    assert done.code == 1
    assert f"{path}:2 and 1 more row: the run has this row with other fields" in done.err
    assert [one["output_tokens"] for one in records(lab.the_run())] == [None, None]


def test_an_index_is_of_one_row(lab: Lab) -> None:
    """Of its line, whatever the length; the same row in another file is the same reply."""
    first, second = lab.folder / "a.csv", lab.folder / "b.csv"
    head = "reply,target,length,line,index\n30,30,30,32,0\n"
    first.write_text(f"{head}31,31,31,32,0\n")
    second.write_text(f"{head}31,31,31,32,1\n")
    fixed = ("--axis", "item=a", "--axis", "delimiter=comma", "-m", "them", "--out", lab.out)
    done = lab.bench("import", first, second, "-t", "capacity/items", *fixed)
    assert f"{first}:3: the run has another row with index 0 on line 32" in done.err
    assert "2 new replies, 0 known before, 1 repeated, 1 row that cannot be used" in done.err


def test_a_reply_takes_the_place_of_an_error(lab: Lab) -> None:
    """Of the same sample, also in a later file; another error changes nothing."""
    first, second = lab.folder / "a.csv", lab.folder / "b.csv"
    head = "reply,error,target,length,index\n"
    first.write_text(f"{head},503,3,3,0\n3,,3,3,1\n")
    second.write_text(f"{head}3,,3,3,0\n,500,3,3,1\n4,,3,3,1\n")
    assert "2 new replies" in take(lab, first).err
    done = take(lab, second)
    assert "1 new reply, 1 known before, 1 row that cannot be used" in done.err
    assert f"{second}:4: the run has another reply to sample" in done.err
    assert taken(lab) == (2, 2)
