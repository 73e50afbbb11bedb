"""`python -m tests.docs` shows which chapters differ from what they print; --write renews them."""

from __future__ import annotations

import argparse
import difflib
import sys
import tempfile
from pathlib import Path

from tests.docs import chapters, notebook
from tests.docs.scratch import ChapterError


def main(arguments: list[str] | None = None) -> int:
    """Shows which chapters differ from what their commands print, or writes them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", action="store_true", help="renew the chapters")
    parser.add_argument("chapters", nargs="*", type=Path, help="default: all")
    options = parser.parse_args(arguments)
    differing = 0
    for path in map(Path.resolve, options.chapters or [*chapters.chapters(), notebook.NOTEBOOK]):
        with tempfile.TemporaryDirectory() as folder:
            before, scratch = path.read_text(encoding="utf-8"), Path(folder).resolve()
            after = (notebook if path == notebook.NOTEBOOK else chapters).renew(path, scratch)
        if before == after:
            continue
        differing += 1
        name = str(path.relative_to(chapters.ROOT))
        sys.stdout.writelines(difflib.unified_diff(_lines(before), _lines(after), name, name))
        if options.write:
            path.write_text(after, encoding="utf-8")
    return int(differing > 0 and not options.write)


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except ChapterError as error:
        sys.exit(str(error))
