"""The types of answers: one class each, and a new one goes through every door."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING

from eyechart.harness.score.answers import TYPES
from tests.one_more import with_entry

if TYPE_CHECKING:
    from pathlib import Path

WORD = """class Word(AnswerType):
    name = "word"
    meaning = "one word, whatever its case"
    target = "word"
    right = "is the same word"
    nothing = "no word"

    def read(self, line, form):
        word = re.search(r"[a-z]+", line.bare, re.IGNORECASE)
        if word is None or not line.by_phrase:
            return self.nothing
        return FoundAnswer(word[0].lower(), *word.span())

    def wrong(self, target, form, accept):
        yield "longer", f"{target}s", None


from .integers import FoundAnswer
"""
TASK = """version: 1
title: A word
items: items.jsonl
prompt: "After {{ phrase }} say {{ said }}."
answer: word
"""
ITEMS = [{"variables": {"said": word}, "target": word, "length": 1} for word in ("tea", "milk")]
SHOW_DOCS = """
from pathlib import Path
from eyechart.harness.task.schema import text
from tests.docs.generated import with_tables
Path("docs.md").write_text(with_tables("<!-- answers -->\\n<!-- end -->\\n") + text())
"""
RUN = "out/runs/scripted/*/mine/word@1-*"


def test_every_type_is_described() -> None:
    """In the words of the documentation."""
    for name, kind in TYPES.items():
        assert kind.name == name
        assert kind.meaning
        assert kind.target
        assert kind.right
        assert set(kind.needed) <= set(kind.fields)
        assert len(set(kind.fields)) == len(kind.fields)


def test_a_new_type_is_one_class(tmp_path: Path) -> None:
    """It is checked, asked, judged, shown and documented."""
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "word.yaml").write_text(TASK)
    (folder / "items.jsonl").write_text("".join(json.dumps(item) + "\n" for item in ITEMS))
    (tmp_path / "replies.txt").write_text("Final answer: **TEA**\nFinal answer: 7\n")
    steps: list[list[str] | str] = [
        ["tasks", "check", "mine"],
        ["run", "--task", "mine", "--model", "scripted/replies.txt", "--out", "out"],
        ["samples", RUN, "--json"],
        SHOW_DOCS,
    ]
    checked, asked, shown = with_entry(tmp_path, "answers", "TYPES: Mapping", WORD, steps)
    assert [code for code, _, _ in (checked, asked, shown)] == [0] * 3, (checked, asked, shown)
    (table,) = tmp_path.glob(f"{RUN}/table.csv")
    with table.open(encoding="utf-8") as file:
        (row,) = csv.DictReader(file)
    assert [row[name] for name in ("n", "correct", "unparsed", "mean_abs_error")] == [*"211", ""]
    samples = list(map(json.loads, shown[1].splitlines()))
    assert [(one["answer"], one["why"]) for one in samples] == [
        ("tea", ""),
        (None, "no word after the answer phrase"),
    ]
    docs = (tmp_path / "docs.md").read_text(encoding="utf-8")
    assert "| `word` | word | it is the same word |" in docs
    assert "`word`: one word, whatever its case." in docs
