"""The system prompt of a task: sent where no option has another, and part of the run's identity."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from eyechart.harness.errors import UsageError
from eyechart.harness.plan.plan import Plan, plan
from eyechart.harness.plan.selection import system_prompt
from eyechart.harness.satellites.export.lm_eval.writer import export
from eyechart.harness.task.catalogue import open_task

if TYPE_CHECKING:
    from tests.conftest import Lab

TASK = """\
version: 1
title: Echo
items: echo.jsonl
{system}prompt: 'Say {{{{ n }}}} after "{{{{ phrase }}}}".'
answer: integer
"""


def planned(folder: Path, name: str, system: str = "") -> Plan:
    """The plan of a task of one item, with `system` as lines of its file."""
    (folder / "echo.jsonl").write_text('{"variables": {"n": 3}, "target": 3, "length": 1}\n')
    file = folder / f"{name}.yaml"
    file.write_text(TASK.format(system=system))
    return plan(open_task(f"x/{name}", file))


def test_an_option_overrides_the_task(tmp_path: Path) -> None:
    """An empty option asks without; without an option the task's is sent."""
    plans = [planned(tmp_path, "a", "system: Be brief.\n")]
    assert system_prompt(plans, None) == "Be brief."
    assert system_prompt(plans, "Be long.") == "Be long."
    assert system_prompt(plans, "") == ""
    assert system_prompt([planned(tmp_path, "b")], None) is None


def test_tasks_of_one_command_share_it(tmp_path: Path) -> None:
    """The model is opened once, with one system prompt."""
    plans = [planned(tmp_path, "a", "system: Be brief.\n"), planned(tmp_path, "b")]
    with pytest.raises(UsageError, match="'x/a' and 'x/b' have different system prompts"):
        system_prompt(plans, None)
    assert system_prompt(plans, "Be long.") == "Be long."


def test_it_is_in_the_identity_and_in_the_settings_of_a_run(lab: Lab) -> None:
    """Runs with and without it are two."""
    out = lab.folder / "results"
    specs = [planned(lab.folder, "a", system).task.spec for system in ("", "system: Be brief.\n")]
    assert specs[0].digest() != specs[1].digest()
    for extra in ((), ("--system", "Be long.")):
        done = lab.bench(
            *("run", "--task", lab.folder / "a.yaml", "--model", "tiny", "--out", out), *extra
        )
        assert done.code == 0
    manifests = (out / "runs" / "tiny").glob("*/a@1-*/manifest.json")
    sent = {json.loads(path.read_text())["settings"]["system"] for path in manifests}
    assert sent == {"Be brief.", "Be long."}


def test_lm_eval_has_none_per_task(tmp_path: Path) -> None:
    """It is refused, with what does the same."""
    with pytest.raises(UsageError, match="give lm-eval --system_instruction"):
        export([planned(tmp_path, "a", "system: Be brief.\n")], tmp_path / "out", api="chat")
