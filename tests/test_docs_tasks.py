"""The chapters about tasks and answers say what is so: parts of files are tried in whole files."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import yaml

from eyechart.harness.score.answers import TYPES
from eyechart.harness.spec.answer import Answer
from eyechart.harness.task.generator import load_items
from tests.docs.chapters import ROOT, read_blocks

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Lab

CHAPTERS = ("answers.md", "around.md", "tasks.md")
TEXTS = [(ROOT / "docs" / name).read_text(encoding="utf-8") for name in CHAPTERS]
BLOCKS = [block for text in TEXTS for block in read_blocks(text)]
FILES = {name: block.text for block in BLOCKS if (name := block.argument("file"))}
PARTS = [block for block in BLOCKS if block.argument("part of")]


def part(first_word: str) -> str:
    """The part of a task file that begins so."""
    (text,) = [block.text for block in PARTS if block.text.startswith(first_word)]
    return text


def test_every_type_of_answer_has_an_example() -> None:
    """The table of types is written by code."""
    yamls = [block.text for block in BLOCKS if block.language == "yaml"]
    given = [answer for text in yamls if (answer := yaml.safe_load(text).get("answer"))]
    answers = [
        Answer.model_validate({"type": one} if isinstance(one, str) else one) for one in given
    ]
    assert {answer.type for answer in answers} == set(TYPES)


def test_the_items_are_items(tmp_path: Path) -> None:
    """Each line of the examples is read as an item."""
    parts = [block.text for block in PARTS if block.argument("part of") == "capitals.jsonl"]
    lines = "".join([FILES["capitals.jsonl"], *parts])
    (tmp_path / "items.jsonl").write_text(lines, encoding="utf-8")
    items = load_items(tmp_path / "task.yaml", "items.jsonl", Answer(type="text"))
    assert sum(map(len, items.values())) == len(lines.splitlines()) == 4
    assert "metadata" in json.loads(lines.splitlines()[-1])


def test_the_tasks_are_sound(lab: Lab) -> None:
    """The first example, those of a generator, of turns, with an axis, amid text, and with a
    scorer.
    """
    folder = lab.folder / "mine"
    folder.mkdir()
    for name, text in FILES.items():
        (folder / name).write_text(text)
    ready = FILES["capitals.yaml"]
    (folder / "system.yaml").write_text(ready + part("system:"))
    (folder / "scored.yaml").write_text(ready.replace("answer: text\n", part("scorer:")))
    prompt = "prompt: 'How many in {{ label }}: {{ sequence }}? {{ phrase }}'\nanswer: integer\n"
    head = "version: 1\ntitle: Marks\n"
    (folder / "marks.yaml").write_text(f"{head}{part('generator:')}{prompt}")
    generator, amid, separated = map(part, ("generator:", "axes:\n  context:", "axes:\n  sep"))
    (folder / "amid.yaml").write_text(f"{head}{generator}{amid}answer: integer\n")
    (folder / "separated.yaml").write_text(f"{head}{generator}{separated}{prompt}")
    done = lab.bench("tasks", "check", folder)
    assert (done.code, done.err) == (0, "")
    assert done.out.count(": sound (") == 7
