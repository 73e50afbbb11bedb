"""The example of a gate in GitHub: its steps as a runner would start them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from eyechart.harness.errors import INCOMPLETE, WORSE
from eyechart.harness.journal.manifest import find_runs, read_manifest

if TYPE_CHECKING:
    from tests.conftest import Lab

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "examples" / "gate"
ACTION: dict[str, Any] = yaml.safe_load((FOLDER / "action.yml").read_text())
WORKFLOW: dict[str, Any] = yaml.safe_load((FOLDER / "workflow.yml").read_text())
_INPUT = re.compile(r"\$\{\{ inputs\.([a-z-]+) \}\}")

bash = pytest.mark.skipif(sys.platform == "win32", reason="needs bash")


class Runner:
    """Runs the action's steps in a folder, with a `pip` that only writes down what it installs."""

    def __init__(self, lab: Lab) -> None:
        self.folder = lab.folder / "checkout"
        programs = lab.folder / "bin"
        for folder in (self.folder, programs):
            folder.mkdir()
        self.installed = lab.folder / "installed"
        self.summary = lab.folder / "summary"
        scripts = {
            "bench": f'exec "{sys.executable}" -m eyechart.harness "$@"',
            "python": f'printf "%s\\n" "$*" >> "{self.installed}"',
        }
        for name, script in scripts.items():
            (programs / name).write_text(f"#!/bin/sh\n{script}\n")
            (programs / name).chmod(0o755)
        self._given = {
            "install": "eyechart==0.1.0",
            "task": str(lab.ones),
            "arguments": "--samples 20",
        }
        self._environment = {
            **os.environ,
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "GITHUB_STEP_SUMMARY": str(self.summary),
        }

    def run(self, **inputs: str) -> tuple[int, str]:
        """Runs the steps up to the first that fails; returns its code and all that was said."""
        defaults = {name: one.get("default", "") for name, one in ACTION["inputs"].items()}
        inputs = {name.replace("_", "-"): value for name, value in inputs.items()}
        values = {**defaults, **self._given, **inputs}
        shutil.rmtree(self.folder / "eyechart-gate", ignore_errors=True)  # a new checkout
        said = ""
        for step in ACTION["runs"]["steps"]:
            done = subprocess.run(
                ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
                env=self._environment
                | {
                    name: _INPUT.sub(lambda found: values[found[1]], value)
                    for name, value in step["env"].items()
                },
                cwd=self.folder,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
            said += done.stdout
            if done.returncode:
                return done.returncode, said
        return 0, said


@bash
@pytest.mark.published
def test_a_first_run_makes_the_baseline_of_the_next_ones(lab: Lab) -> None:
    """The same model passes, and one that is right less far fails and is in the summary."""
    runner = Runner(lab)
    code, said = runner.run(model="oracle:4", save="true", draws="2")
    assert code == 0, said
    assert (runner.folder / "eyechart-baseline.json").is_file()
    (folder,) = find_runs(runner.folder / "eyechart-gate")
    assert {cell.draws for cell in read_manifest(folder).cells} == {2}
    code, said = runner.run(model="oracle:4")
    assert code == 0, said
    code, said = runner.run(model="oracle:1")
    assert code == WORSE, said
    assert "**worse**" in runner.summary.read_text()
    assert (runner.folder / "eyechart-gate.xml").is_file()


@bash
def test_without_a_baseline_nothing_is_asked(lab: Lab) -> None:
    """One line says how it is made."""
    runner = Runner(lab)
    code, said = runner.run(model="oracle:4")
    assert code == INCOMPLETE
    assert said.count("\n") == 1
    assert "make it with save: true, and commit it" in said
    assert not (runner.folder / "eyechart-gate").exists()


@bash
def test_a_wheel_or_a_name_on_an_index_is_installed(lab: Lab) -> None:
    """The index is named where one is given; an empty one is pip's own."""
    runner = Runner(lab)
    runner.run(model="oracle:4", install="dist/a wheel.whl")
    runner.run(model="oracle:4", index_url="https://example.org/simple")
    assert runner.installed.read_text().splitlines() == [
        "-m pip install -q dist/a wheel.whl",
        "-m pip install -q --index-url https://example.org/simple eyechart==0.1.0",
    ]


def test_the_workflow_gives_inputs_that_the_action_has() -> None:
    """All that it requires; and each input is used by a step."""
    (step,) = (one for one in WORKFLOW["jobs"]["gate"]["steps"] if one.get("uses", "")[:2] == "./")
    required = {name for name, one in ACTION["inputs"].items() if one.get("required")}
    assert required <= set(step["with"]) <= set(ACTION["inputs"])
    texts = [value for one in ACTION["runs"]["steps"] for value in one["env"].values()]
    assert set(_INPUT.findall(" ".join(texts))) == set(ACTION["inputs"])
