"""The reference of a task file's keys is whole, and each of its examples opens.

That it is what the models say today is tested in `tests/test_docs.py`, as for every chapter.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from eyechart.harness.spec.answer import TYPES, Answer
from eyechart.harness.spec.task_file import Axis, Separator, TaskSpec
from eyechart.harness.task.catalogue import open_task
from tests.docs.chapters import ROOT, read_blocks

TEXT = (ROOT / "docs" / "task-file.md").read_text(encoding="utf-8")
BLOCKS = list(read_blocks(TEXT))
FILES = {name: block.text for block in BLOCKS if (name := block.argument("file"))}
_PLACES = {
    "The keys of the file": "",
    "The keys of an axis": "axes.AXIS.",
    "The keys of a separator": "axes.AXIS.values.VALUE.",
    "The keys of an answer": "answer.",
}
"""A section -> where its keys stand in a file."""


def examples() -> Iterator[tuple[str, str]]:
    """Each key with an example: its own, that of its section, or else the whole file."""
    for section in TEXT.split("\n## ")[1:]:
        heading, _, text = section.partition("\n")
        parts = [one.text for one in read_blocks(text) if one.argument("part of") == "marks.yaml"]
        for key, own in re.findall(r"^- `(\w+)` \(.*?(?: Example: `(.*)`)?$", text, re.MULTILINE):
            yield f"{_PLACES[heading]}{key}", own or "".join(parts) or FILES["marks.yaml"]


EXAMPLES = dict(examples())
TARGETS: dict[str, object] = {
    "integer": 3,
    "number": 3.5,
    "symbol": "x",
    "code": "A17",
    "text": "two words",
    "choice": "green",
    "list": ["a", "b"],
}


def test_every_key_of_every_model_has_an_example() -> None:
    """No key of a task file is without one."""
    keys = [
        *TaskSpec.model_fields,
        *(f"axes.AXIS.{key}" for key in Axis.model_fields),
        *(f"axes.AXIS.values.VALUE.{key}" for key in Separator.model_fields),
        *(f"answer.{key}" for key in Answer.model_fields),
    ]
    assert list(EXAMPLES) == keys


@pytest.mark.parametrize("key", EXAMPLES)
def test_an_example_opens_in_the_whole_file(key: str, tmp_path: Path) -> None:
    """Its items are drawn and its prompts are made; the example has the key that it is for."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    example = yaml.safe_load(EXAMPLES[key])
    data = yaml.safe_load(FILES["marks.yaml"])
    kept = {name: value for name, value in data.items() if name not in example}
    if "items" in example:
        kept = without_generator(kept)
    if key.startswith("answer.") and (kind := example["answer"]["type"]) != "integer":
        item = {"variables": {"label": "BAD", "symbols": ["!"]}, "length": 1}
        (tmp_path / "typed.jsonl").write_text(json.dumps({**item, "target": TARGETS[kind]}) + "\n")
        kept = {**without_generator(kept), "items": "typed.jsonl"}
    path = tmp_path / "example.yaml"
    others = yaml.safe_dump(kept) if kept else ""
    path.write_text(f"{others}{EXAMPLES[key].rstrip()}\n", encoding="utf-8")
    spec = open_task("mine/example", path).spec
    found: object = example
    for part in key.split("."):
        assert isinstance(found, dict)
        found = next(iter(found.values())) if part.isupper() else found[part]
    assert spec.model_dump(exclude_unset=True).keys() >= example.keys()


def without_generator(data: dict[str, object]) -> dict[str, object]:
    """A task file that waits for ready items."""
    keys = ("generator", "params", "lengths", "samples")
    return {name: value for name, value in data.items() if name not in keys}


def test_the_targets_here_have_every_type() -> None:
    """Else an example of a new type would be tried with another one's target."""
    assert set(TARGETS) == set(TYPES)
