"""What the terminal shows, as files: `docs/terminal-80.txt` and `docs/terminal-120.txt`.

    python -m tests.terminal            # says whether the files are what the commands print
    python -m tests.terminal --write    # writes them

The commands run in an empty folder on the embedded model.
"""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
from collections.abc import Iterator
from contextlib import chdir, contextmanager, redirect_stdout
from io import StringIO
from pathlib import Path
from unittest.mock import patch

from eyechart.harness.cli import app
from tests.remembered import remembered

DOCS = Path(__file__).parent.parent / "docs"
WIDTHS = (80, 120)
_LINES = "--model tiny --lengths 5,7,10,15,22,33,50 --samples 10"
_SPACED = "--task counting/bernoulli --axis strategy=cot_few_shot --axis separator=space"
_RUNS = "results/runs/tiny/counting"
COMMANDS = (
    f"bench run --task counting/words {_LINES}",
    f"bench run {_SPACED} {_LINES}",
    f"bench run {_SPACED} {_LINES} --max-tokens 28",
    f"bench run {_SPACED} {_LINES} --max-tokens 16",
    f"bench compare {_RUNS}/bernoulli@*",
    (
        "bench run --task counting/ones --axis separator=all --axis strategy=all --model tiny "
        "--lengths 5,20,50 --samples 4"
    ),
    f"bench run --task counting/words --axis strategy=all {_LINES}",
    f"bench compare {_RUNS}/words@* --axis strategy=direct,cot_few_shot",
    f"bench score {_RUNS}/words@*",
    "bench tasks",
)


def path_of(columns: int) -> Path:
    """The file of a width."""
    return DOCS / f"terminal-{columns}.txt"


@contextmanager
def _command(words: list[str], columns: int) -> Iterator[StringIO]:
    """Lets `app.main` see these words, and a terminal that is so wide, as a pipe."""
    out = StringIO()
    with (
        remembered(),
        patch.object(sys, "argv", words),
        patch.dict(os.environ, {"COLUMNS": str(columns)}),
        redirect_stdout(out),
    ):
        yield out


def printed(command: str, columns: int) -> str:
    """What a command prints on stdout in the current folder; raises where it fails."""
    words = [
        path
        for word in shlex.split(command)
        for path in (sorted(map(str, Path().glob(word))) if "*" in word else [word])
    ]
    with _command(words, columns) as out:
        try:
            app.main()
        except SystemExit as end:
            if end.code:
                raise RuntimeError(f"{command}: exit code {end.code}") from end
    return out.getvalue()


def screens(folder: Path) -> dict[int, str]:
    """Width -> the commands and what they print; `folder` is empty."""
    texts = {}
    for columns in WIDTHS:
        own = folder / str(columns)
        own.mkdir()
        with chdir(own):
            parts = [f"$ {command}\n{printed(command, columns)}" for command in COMMANDS]
            texts[columns] = "\n".join(parts)
    return texts


def main() -> int:
    """Writes the files, or compares them; returns the exit code."""
    with tempfile.TemporaryDirectory() as folder:
        texts = screens(Path(folder))
    differing = [
        columns
        for columns, text in texts.items()
        if not path_of(columns).exists() or path_of(columns).read_text(encoding="utf-8") != text
    ]
    if "--write" in sys.argv:
        for columns in differing:
            path_of(columns).write_text(texts[columns], encoding="utf-8")
        return 0
    return 1 if differing else 0


if __name__ == "__main__":
    raise SystemExit(main())
