"""The chapter about tasks says what is so: its examples are tried."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import yaml

import harness
from harness.answer import Answer
from harness.score.answer import AnswerType
from harness.task.generator import load_items

if TYPE_CHECKING:
    from tests.conftest import Lab

TEXT = (Path(harness.__file__).parents[1] / "docs" / "tasks.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    """The examples in a language, in order."""
    found = re.findall(rf"^```{language}\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    assert found
    return [str(block) for block in found]


def test_every_type_of_answer_has_an_example() -> None:
    """And is in the table."""
    given = [yaml.safe_load(block).get("answer") for block in blocks("yaml")]
    answers = [
        Answer.model_validate({"type": one} if isinstance(one, str) else one)
        for one in given
        if one is not None
    ]
    assert {answer.type for answer in answers} == set(get_args(AnswerType))
    assert re.findall(r"^\| `(\w+)` \| .* \| it ", TEXT, re.MULTILINE) == list(get_args(AnswerType))


def test_the_items_are_items(tmp_path: Path) -> None:
    """Each line of the examples is read as an item."""
    lines = "".join(blocks("json"))
    (tmp_path / "items.jsonl").write_text(lines, encoding="utf-8")
    items = load_items(tmp_path / "task.yaml", "items.jsonl", Answer(type="text"))
    assert sum(map(len, items.values())) == len(lines.splitlines()) == 4
    assert "metadata" in json.loads(lines.splitlines()[-1])


def test_the_tasks_are_sound(lab: Lab) -> None:
    """The first example, the one of a generator, and the one of a scorer."""
    ready, generated, *more = blocks("yaml")
    row, score = blocks("python")
    scored = next(block for block in more if block.startswith("scorer:"))
    system = next(block for block in more if block.startswith("system:"))
    folder = lab.folder / "mine"
    folder.mkdir()
    (folder / "capitals.jsonl").write_text(blocks("json")[0])
    (folder / "marks.py").write_text(row)
    (folder / "colors.py").write_text(score)
    (folder / "ready.yaml").write_text(ready + system)
    (folder / "scored.yaml").write_text(ready.replace("answer: text\n", scored))
    prompt = "prompt: 'How many in {{ label }}: {{ sequence }}? {{ phrase }}'\nanswer: integer\n"
    head = "version: 1\ntitle: Marks\n"
    (folder / "generated.yaml").write_text(f"{head}{generated}{prompt}")
    done = lab.bench("tasks", "check", folder)
    assert (done.code, done.err) == (0, "")
    assert done.out.count(": sound (") == 3
