"""The rows of the files of an import: read once, and parted by the model that they name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from eyechart.harness.journal.files import open_regular
from eyechart.harness.journal.manifest import find_runs
from eyechart.harness.satellites.recorded import files, sources
from tests.test_recorded import take
from tests.test_recorded_items import letters, said

if TYPE_CHECKING:
    import pytest

    from tests.conftest import Lab


def test_rows_that_name_no_model_are_said(lab: Lab) -> None:
    """With their number and a remedy that works, in a file in which others name one or several."""
    task = letters(lab, [2, 4, 2, 4])
    rows = [
        {"id": f"q{place}", "reply": "2", "model": model}
        for model, places in (("a", (0, 1)), (None, (2, 3)))
        for place in places
    ]
    path = said(lab, rows)
    each = ("import", path, "--task", task, "--field", "model=model", "--out", lab.out)
    done = lab.bench(*each)
    assert f"{path}:3 and 1 more row: the row names no model in the column 'model'" in done.err
    assert "import them with --model NAME --where model=" in done.err
    assert "2 new replies" in take(lab, path, task, "--where", "model=", model="b").err
    blank = said(lab, [row | {"model": row.get("model") or " "} for row in rows])
    assert lab.bench(*each[:1], blank, *each[2:]).err.count("names no model") == 1
    assert not (lab.out / "runs" / " ").exists()
    path = said(lab, rows)
    both = take(lab, path, task, model="c")
    assert "4 new replies" in both.err
    assert "2 rows of these name no model, as the others do" in both.err
    del rows[3]["model"]
    path = said(lab, [*rows, {"id": "q3", "reply": "2", "model": "other"}])
    several = take(lab, path, task, model="vendor/a")
    assert "2 new replies, 0 known before, 1 of other rows, 2 rows that" in several.err
    assert ":3 and 1 more row: the row names no model, and other rows name several" in several.err
    assert "2 new replies" in take(lab, path, task, "--where", "model=", model="d").err
    take(lab, path, task, "--where", "modle=", model="e").one_line(2, "'modle'", "'model'")


def test_names_that_differ_in_case_alone_share_no_run(lab: Lab) -> None:
    """Where a file system has one folder for both, no reply of the second joins the first."""
    task = letters(lab, [2, 4])
    path = said(lab, [{"id": f"q{place}", "reply": "2"} for place in (0, 1)])
    take(lab, path, task, model="them")
    replies = (lab.the_run() / "samples.jsonl").read_bytes()
    (lab.out / "runs" / "THEM").symlink_to(lab.out / "runs" / "them")  # as such a system has it
    other = said(lab, [{"id": f"q{place}", "reply": "4"} for place in (0, 1)])
    done = take(lab, other, task, model="THEM")
    done.one_line(1, "holds a run of them, which this file system does not tell apart from THEM")
    (lab.out / "runs" / "THEM").unlink()
    assert (lab.the_run() / "samples.jsonl").read_bytes() == replies


def test_a_key_in_place_of_a_model_is_refused(lab: Lab) -> None:
    """As an option or in a column, and no message shows it."""
    task, key = letters(lab, [2]), "sk-proj-AbC0123456789defghij"
    path = said(lab, [{"id": "q0", "reply": "2", "model": key}])
    each = lab.bench("import", path, "-t", task, "--field", "model=model", "--out", lab.out)
    for done in (take(lab, path, task, model=key), each, take(lab, path, task)):
        assert done.code != 0
        assert "has a key in it" in done.err
        assert key not in done.err + done.out
    assert not lab.out.exists()


def test_many_models_are_read_once(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is opened as often for twelve models as for one."""
    task, opened = letters(lab, [2]), []

    def counted(path: Path) -> BinaryIO:
        opened.append(path)
        return open_regular(path)

    for module in (files, sources):
        monkeypatch.setattr(module, "open_regular", counted)
    numbers = []
    for count in (1, 12):
        opened.clear()
        path = said(lab, [{"id": "q0", "reply": "2", "who": f"m{n}"} for n in range(count)])
        lab.bench("import", path, "-t", task, "--field", "model=who", "--out", lab.out / str(count))
        assert len(find_runs(lab.out / str(count))) == count
        numbers.append(opened.count(path))
    assert numbers[0] == numbers[1] > 0
