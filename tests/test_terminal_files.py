"""The files in `docs/` that show the terminal are what the commands print."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.cells import cell_len

from tests.terminal import COMMANDS, WIDTHS, path_of, screens


@pytest.mark.published
def test_the_screens_are_printed_by_their_commands(tmp_path: Path) -> None:
    """Otherwise `python -m tests.terminal --write` renews them."""
    for columns, text in screens(tmp_path).items():
        assert path_of(columns).read_text(encoding="utf-8") == text


@pytest.mark.parametrize("columns", WIDTHS)
def test_the_screens_fit(columns: int) -> None:
    """All lines but commands, and paths, which are whole."""
    lines = path_of(columns).read_text(encoding="utf-8").splitlines()
    assert [line[2:] for line in lines if line.startswith("$ ")] == [*COMMANDS]
    wide = [line for line in lines if cell_len(line) > columns]
    assert [line for line in wide if not line.startswith(("$ ", "next: bench "))] == []
