"""A byte order mark, with which some editors begin a file, is no part of its content."""

from __future__ import annotations

import json
from codecs import BOM_UTF8
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from eyechart.harness.analysis.ranking.leaderboard_file import read_rows
from eyechart.harness.analysis.samples.judged_run import read_run
from eyechart.harness.run.batch.files import reply_lines
from eyechart.harness.spec import exact_json
from tests.conftest import records

if TYPE_CHECKING:
    from tests.conftest import Lab

TASK = """\
version: 1
title: Words
items: words.jsonl
prompt: "{{ word }}"
answer: {type: integer, phrase_asked: false}
"""
REPLIES = {
    "r.jsonl": '{"item": "a", "reply": "3"}\n',
    "r.json": '[{"item": "a", "reply": "3"}]',
    "r.csv": "item,reply\na,3\n",
}


def marked(path: Path, text: str) -> Path:
    path.write_bytes(BOM_UTF8 + text.encode())
    return path


@pytest.mark.parametrize("replies", REPLIES)
def test_files_of_an_import(lab: Lab, replies: str) -> None:
    """The task, its items and the replies."""
    item = {"variables": {"word": "w"}, "target": 3, "length": 3, "metadata": {"id": "a"}}
    marked(lab.folder / "words.jsonl", json.dumps(item) + "\n")
    task = marked(lab.folder / "words.yaml", TASK)
    file = marked(lab.folder / replies, REPLIES[replies])
    done = lab.bench("import", file, "-t", task, "-m", "them", "--out", lab.out)
    assert done.code == 0, done.err
    assert read_run(lab.the_run()).cells["correct"].tolist() == [1]
    assert "\ufeff" not in lab.bench("tasks", "show", task).out


def test_files_of_a_run(lab: Lab) -> None:
    """The settings, the facts of models, a study and scripted replies."""
    marked(lab.folder / "bench.toml", f"out = {str(lab.out)!r}\nlengths = [3]\nsamples = 1\n")
    models = marked(lab.folder / "models.yaml", "scripted/x: {reasoning: false}\n")
    lab.monkeypatch.setenv("EYECHART_MODELS", str(models))
    lab.monkeypatch.chdir(lab.folder)
    marked(lab.folder / "said.txt", "3\n")
    study = {"name": "s", "title": "S", "models": ["scripted/said.txt"], "tasks": [str(lab.plain)]}
    file = marked(lab.folder / "s.yaml", json.dumps(study))
    done = lab.bench("run", file, "--trust")
    assert done.code == 0, done.err
    assert {one["reply"] for one in records(lab.the_run())} == {"3"}


def test_files_that_are_read_as_json_or_a_table(tmp_path: Path) -> None:
    """Replies of a batch, a leaderboard, and a baseline, which `exact_json` reads."""
    (line,) = reply_lines(marked(tmp_path / "r.jsonl", '{"custom_id": "a"}'))
    assert line.read == {"custom_id": "a"}
    assert exact_json.loads(BOM_UTF8 + b"[1]") == exact_json.loads("\ufeff[1]") == [1]
    assert read_rows(marked(tmp_path / "board.csv", "model,task\n")) == []
