"""The examples of shards: a Slurm array and a GitHub matrix."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from eyechart.harness.analysis.tables.results import TABLE
from eyechart.harness.journal.manifest import find_runs
from eyechart.harness.journal.record import journals
from tests.conftest import PATIENCE_S, records

if TYPE_CHECKING:
    from tests.conftest import Lab

FOLDER = Path(__file__).parents[1] / "examples" / "shards"


def words(lab: Lab, command: str) -> list[str]:
    """The words after `bench` of a command of the workflow, with a task and a model."""
    said = command.replace("$TASK", str(lab.ones)).replace("$MODEL", "oracle:4")
    return shlex.split(said, comments=True)[1:]


@pytest.mark.published
@pytest.mark.skipif(sys.platform == "win32", reason="needs bash")
def test_an_array_of_two_jobs_is_the_run(lab: Lab) -> None:
    """The script as Slurm would start it, both jobs at once, and then the whole."""
    programs = lab.folder / "bin"
    programs.mkdir()
    (programs / "bench").write_text(
        f'#!/bin/sh\nexec "{sys.executable}" -m eyechart.harness "$@"\n'
    )
    (programs / "bench").chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(FOLDER.parents[1]),
        "TASK": str(lab.ones),
        "MODEL": "oracle:4",
        "OUT": str(lab.out),
        "SLURM_ARRAY_TASK_COUNT": "2",
    }
    jobs = [
        subprocess.Popen(
            ["bash", FOLDER / "slurm.sh"],
            env=environment | {"SLURM_ARRAY_TASK_ID": str(number)},
            cwd=lab.folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for number in (1, 2)
    ]
    assert [job.wait(PATIENCE_S) for job in jobs] == [0, 0]
    (shared,) = find_runs(lab.out)
    assert len(journals(shared)) == 2
    assert lab.bench("score", shared).code == 0
    whole = lab.folder / "whole"
    assert lab.bench_run("--model", "oracle:4", "--out", whole).code == 0
    (alone,) = find_runs(whole)
    assert (shared / TABLE).read_bytes() == (alone / TABLE).read_bytes()


def test_the_workflow_asks_every_shard_and_shows_the_whole(lab: Lab) -> None:
    """Its own commands, with the oracle in place of a vendor's model; the files of all shards are
    put into one folder, one over the other.
    """
    workflow = yaml.safe_load((FOLDER / "github.yml").read_text())
    ask, whole = workflow["jobs"]["ask"], workflow["jobs"]["whole"]
    shards = ask["strategy"]["matrix"]["shard"]
    (asking,) = [step["run"] for step in ask["steps"] if step.get("name") == "Ask the shard"]
    (showing,) = [step["run"] for step in whole["steps"] if step.get("name") == "Show the whole"]
    (download,) = [step["with"] for step in whole["steps"] if "download" in step.get("uses", "")]
    assert download["merge-multiple"]
    lab.monkeypatch.chdir(lab.folder)
    for shard in shards:
        command = asking.replace("${{ matrix.shard }}", str(shard))
        assert lab.bench(*words(lab, command)).code == 0
        shutil.copytree(f"shard-{shard}", download["path"], dirs_exist_ok=True)
    done = lab.bench(*words(lab, showing))
    assert (done.code, "not scored" in done.out) == (0, False)
    (run,) = find_runs(Path(download["path"]))
    assert len(records(run)) == 16
    assert max(shards) == len(shards) == int(asking.partition("}}/")[2].partition('"')[0])
