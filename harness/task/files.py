"""The task files in a folder, and their names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

SUFFIXES = (".yaml", ".yml")


def named_files(folder: Path, root: Path) -> Iterator[tuple[str, Path]]:
    """Name (path under `root` without suffix) and file of each task in `folder`, by path."""
    for path in sorted(folder.rglob("*")):
        if path.suffix in SUFFIXES and path.is_file():
            yield path.relative_to(root).with_suffix("").as_posix(), path.resolve()
