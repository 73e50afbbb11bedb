"""A task file of the user's own is at hand after it was run here; a stranger's run names none."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from eyechart.harness.plan import own_tasks
from eyechart.harness.spec import exact_json
from eyechart.harness.task.catalogue import Task, open_task
from eyechart.harness.task.functions import load_module
from tests.conftest import Lab

MARKER = "import pathlib\npathlib.Path(__file__).with_name('executed').touch()\n"
SCORER = (
    "def score(reply, item):\n    return 'correct' if str(item.target) in reply else 'incorrect'\n"
)


@pytest.fixture
def records(lab: Lab) -> Path:
    """The folder of the user's cache."""
    folder = lab.folder / "cache"
    lab.monkeypatch.setattr(own_tasks, "cache_folder", lambda: folder)
    return folder


@pytest.fixture(params=["samples", "report"])
def shows_prompts(request: pytest.FixtureRequest, lab: Lab) -> Callable[[], bool]:
    """Whether a verb shows the prompts of the only run."""

    def shows() -> bool:
        if request.param == "samples":
            done = lab.bench("samples", lab.the_run())
            assert done.code == 0, done.err
            assert ("prompts are not shown" in done.err) == ("How many ones" not in done.out)
            return "How many ones" in done.out
        page = lab.folder / "page.html"
        done = lab.bench("report", lab.the_run(), "-o", page)
        assert done.code == 0, done.err
        return "name its file with --task" not in done.err

    return shows


def opened(lab: Lab) -> Task:
    return open_task("lab/plain", lab.plain, trial=False)


class TestAfterARun:
    """`bench samples` and the page make the prompts again."""

    def test_the_file_need_not_be_named(
        self, lab: Lab, records: Path, shows_prompts: Callable[[], bool]
    ) -> None:
        lab.bench_ask(task=lab.plain)
        assert shows_prompts()
        assert len(list((records / "tasks").iterdir())) == 1

    @pytest.mark.parametrize("change", ["code", "task", "gone", "record"])
    def test_not_where_anything_has_changed(
        self, lab: Lab, records: Path, shows_prompts: Callable[[], bool], change: str
    ) -> None:
        """What is there now was not run by the user, so it is not executed."""
        lab.bench_ask(task=lab.plain)
        rows = lab.plain.with_name("rows.py")
        if change == "code":
            rows.write_text(rows.read_text() + MARKER)
        elif change == "task":
            lab.plain.write_text(lab.plain.read_text().replace("version: 3", "version: 4"))
        elif change == "gone":
            lab.plain.unlink()
        else:
            next((records / "tasks").iterdir()).write_bytes(b"[]")
        load_module.cache_clear()  # as in a new process
        assert not shows_prompts()
        assert not rows.with_name("executed").exists()

    def test_not_of_a_run_whose_code_was_another(self, lab: Lab, records: Path) -> None:
        """The record is of the newest code; the run has the hash of its own."""
        assert not records.exists()
        lab.bench_ask(task=lab.plain)
        rows = lab.plain.with_name("rows.py")
        rows.write_text(rows.read_text() + "# another\n")
        own_tasks.remember(opened(lab))
        assert "prompts are not shown" in lab.bench("samples", lab.the_run()).err


class TestAStrangersRun:
    """It names no code that the user has not run here."""

    def test_its_task_file_is_not_opened(self, lab: Lab, records: Path) -> None:
        """Also where it lies at the path that the manifest names, with the hash that it names."""
        lab.bench_ask(task=lab.plain)
        shutil.rmtree(records)
        rows = lab.plain.with_name("rows.py")
        rows.write_text(rows.read_text() + MARKER)
        load_module.cache_clear()  # as in a new process
        done = lab.bench("samples", lab.the_run())
        assert "the task file of lab/plain is not at hand" in done.err
        assert not rows.with_name("executed").exists()

    def test_it_cannot_name_another_file(self, lab: Lab, records: Path) -> None:
        """The path of the record counts, not that of the manifest."""
        assert not records.exists()
        lab.bench_ask(task=lab.plain)
        strange = lab.folder / "strange"
        shutil.copytree(lab.plain.parent, strange)
        (strange / "rows.py").write_text(MARKER + (strange / "rows.py").read_text())
        file = lab.the_run() / "manifest.json"
        manifest = exact_json.loads(file.read_bytes())
        manifest["file"] = str(strange / "plain.yaml")
        file.write_bytes(exact_json.dumps(manifest))
        assert "How many ones" in lab.bench("samples", lab.the_run()).out
        assert not (strange / "executed").exists()


class TestScorer:
    """A task's own scorer is code as well."""

    def test_runs_are_judged_without_naming_the_file(self, lab: Lab, records: Path) -> None:
        """The scorer is the one that was run; a changed one is refused, as an unknown one is."""
        lab.plain.write_text(f"{lab.plain.read_text()}scorer: score.py:score\n")
        scorer = lab.plain.with_name("score.py")
        scorer.write_text(SCORER)
        assert lab.bench_ask(task=lab.plain).code == 0
        lab.monkeypatch.setattr(
            "eyechart.harness.analysis.samples.verdicts.is_loaded", lambda *_: False
        )
        assert lab.bench("score", lab.the_run()).code == 0
        assert lab.bench("samples", lab.the_run()).code == 0
        scorer.write_text(SCORER + MARKER)
        assert "--task" in lab.bench("score", lab.the_run()).err
        scorer.write_text(SCORER)
        assert lab.bench("score", lab.the_run()).code == 0
        shutil.rmtree(records)
        assert "--task" in lab.bench("score", lab.the_run()).err
        assert not scorer.with_name("executed").exists()


class TestRecords:
    """The folder of the records."""

    def test_installed_tasks_need_none(self, lab: Lab, records: Path) -> None:
        asked = ("--task", "counting/ones", "--model", "oracle:5", "--lengths", "5,6")
        assert lab.bench_ask(*asked).code == 0
        assert not records.exists()

    def test_the_oldest_are_removed(
        self, lab: Lab, records: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(own_tasks, "_MOST", 2)
        folder = records / "tasks"
        folder.mkdir(parents=True)
        for age, name in enumerate(("newer", "older", "oldest")):
            (folder / name).touch()
            os.utime(folder / name, (1e9 - age, 1e9 - age))
        own_tasks.remember(opened(lab))
        assert {"newer"} < {file.name for file in folder.iterdir()}
        assert len(list(folder.iterdir())) == 2
        assert own_tasks.remembered("lab/plain", opened(lab).spec.digest()) is not None
        assert own_tasks.remembered("lab/plain", "*") is None
