"""The examples of docs/python.md run as they are, one after another."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parent.parent / "docs" / "python.md"


def test_the_examples_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a folder of their own, on the embedded model."""
    monkeypatch.chdir(tmp_path)
    examples = re.findall(r"(?ms)^```python\n(.*?)^```$", PAGE.read_text("utf-8"))
    assert len(examples) == 7
    names: dict[str, object] = {}
    for place, example in enumerate(examples):
        exec(compile(example, f"{PAGE.name}, example {place}", "exec"), names)  # noqa: S102
    said = capsys.readouterr().out
    assert "unknown task 'counting/one'; did you mean 'counting/ones'?" in said
    assert "Ones in a row of ones" in said
    assert (tmp_path / "accuracy.html").exists()
