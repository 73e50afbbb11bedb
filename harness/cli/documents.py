"""What `--json` prints: one document, with the numbers of the tables. docs/json.md has its keys."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eyechart.harness.cli.terminal import echo
from eyechart.harness.settings.spelling import as_option
from eyechart.providers.naming import spelled

if TYPE_CHECKING:
    import pandas as pd


def json_text(value: object, indent: int | None = None) -> str:
    """`value` as JSON, in characters that no terminal interprets; an infinite number is null."""
    text = json.dumps(_plain(value), indent=indent, allow_nan=False)
    return text.replace("\x7f", "\\u007f")


def print_document(document: Mapping[str, Any]) -> None:
    echo(*json_text(document, indent=2).split("\n"))


def _plain(value: Any) -> Any:
    """`value` as Python's own type, if it is a number of NumPy."""
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, str):
        return spelled(value, as_option)
    value = value.item() if hasattr(value, "item") else value
    return None if isinstance(value, float) and not math.isfinite(value) else value


def rows_of(table: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a table; unknown is null."""
    rows = table.astype(object).where(table.notna(), None).to_dict("records")
    return [{str(name): value for name, value in row.items()} for row in rows]


def print_files(paths: Iterable[Path], *, as_json: bool) -> None:
    """Prints the files that a verb has written, a line each, or as one document."""
    if as_json:
        print_document({"files": [*map(str, paths)]})
    else:
        echo(*map(str, paths))
