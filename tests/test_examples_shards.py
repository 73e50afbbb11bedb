"""The examples of shards: a Slurm array and a GitHub matrix."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from eyechart.harness.analysis.results import TABLE
from eyechart.harness.journal.manifest import find_runs

if TYPE_CHECKING:
    from tests.conftest import Lab

FOLDER = Path(__file__).parents[1] / "examples" / "shards"


@pytest.mark.skipif(sys.platform == "win32", reason="needs bash")
def test_an_array_of_two_jobs_is_the_run(lab: Lab) -> None:
    """The script as Slurm would start it, and then the merge."""
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
    assert [job.wait(60) for job in jobs] == [0, 0]
    assert lab.bench("merge", lab.out).code == 0
    whole = lab.folder / "whole"
    assert lab.bench_run("--model", "oracle:4", "--out", whole).code == 0
    (merged,), (alone,) = find_runs(lab.out), find_runs(whole)
    assert (merged / TABLE).read_bytes() == (alone / TABLE).read_bytes()


def test_the_workflow_asks_every_shard_and_merges_them(lab: Lab) -> None:
    """Its own commands, with the oracle in place of a vendor's model."""
    workflow = yaml.safe_load((FOLDER / "github.yml").read_text())
    ask, merge = workflow["jobs"]["ask"], workflow["jobs"]["merge"]
    shards = ask["strategy"]["matrix"]["shard"]
    (asking,) = [step["run"] for step in ask["steps"] if step.get("name") == "Ask the shard"]
    (merging,) = [step["run"] for step in merge["steps"] if step.get("name") == "Merge the shards"]
    lab.monkeypatch.chdir(lab.folder)
    (lab.folder / "shards").mkdir()
    for shard in shards:
        command = asking.replace("${{ matrix.shard }}", str(shard)).replace('"', "")
        command = command.replace("$TASK", str(lab.ones)).replace("$MODEL", "oracle:4")
        assert lab.bench(*command.split()[1:]).code == 0
        Path(f"shard-{shard}").rename(f"shards/shard-{shard}")
    names = [str(path) for path in sorted(Path("shards").iterdir())]
    words = merging.split()[1:]
    place = words.index("shards/*")
    assert lab.bench(*words[:place], *names, *words[place + 1 :]).code == 0
    (run,) = find_runs(Path("results"))
    assert (run / TABLE).is_file()
    assert max(shards) == len(shards) == int(asking.partition("}}/")[2].partition('"')[0])
