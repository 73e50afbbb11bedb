"""What the README shows is what is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness import verbs
from harness.leaderboard import merge, read_rows
from harness.readme import BEGIN, END, markdown

README = Path(__file__).parent.parent / "README.md"


def test_the_task_list_is_the_real_one(capsys: pytest.CaptureFixture[str]) -> None:
    """The block between the markers is what `bench tasks` prints."""
    verbs.list_tasks()
    listed = capsys.readouterr().out.rstrip()
    text = README.read_text(encoding="utf-8")
    match = re.search(r"<!-- bench tasks -->\n```text\n(.*?)\n```\n<!-- end -->", text, re.DOTALL)
    assert match is not None, "the README has no list of tasks"
    assert match[1] == listed


def test_the_leaderboard_is_the_published_one() -> None:
    """The block between the markers is what `bench leaderboard --readme` writes there."""
    published = merge(read_rows(README.parent / "results" / "leaderboard.csv"))
    assert f"{BEGIN}\n{markdown(published)}\n{END}" in README.read_text(encoding="utf-8")


def test_the_example_task_works(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The README's own task and generator pass `bench tasks check`."""
    text = README.read_text(encoding="utf-8")
    (task,) = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    (generator,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (tmp_path / "my_task.yaml").write_text(task, encoding="utf-8")
    (tmp_path / "marks.py").write_text(generator, encoding="utf-8")
    assert verbs.check_tasks(str(tmp_path / "my_task.yaml")) == 0
    assert "sound" in capsys.readouterr().out
