"""Makes what is in this folder from the replies that Dai and Fan recorded.

    python -m results.recorded ../shared/recorded/dai2026_counting_capacity.jsonl.gz

The replies are not committed; what follows from them is. With `--runs FOLDER` the runs are kept
there, for `bench report`, `bench samples` and the rest.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from results.recorded.contrasts import contrast_rows, contrasts
from results.recorded.differing import difference_rows, differences
from results.recorded.page import NOTICE, readme
from results.recorded.picture import picture
from results.recorded.tables import csv_of, tables
from results.recorded.variants import read_file, variants

FOLDER = Path(__file__).parent


def made_from(path: Path, out: Path) -> dict[str, str]:
    """Name -> content of every file in `results/recorded/`; the runs go under `out`."""
    found = variants(read_file(path), path.name.partition(".")[0], out)
    models, writings = tables(found)
    return {
        "models.csv": csv_of(models),
        "writings.csv": csv_of(writings),
        "contrasts.csv": csv_of(contrast_rows(contrasts(found))),
        "differing.csv": csv_of(difference_rows(differences(found))),
        "where_models_stop.svg": picture(models),
        "README.md": readme(found),
        "LICENSE": NOTICE,
    }


def main() -> None:
    """Writes the files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path, help="dai2026_counting_capacity.jsonl.gz")
    parser.add_argument("--runs", type=Path, help="where the runs are kept")
    given_arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        out = given_arguments.runs or Path(scratch)
        for name, content in made_from(given_arguments.file, out).items():
            FOLDER.mkdir(exist_ok=True)
            (FOLDER / name).write_text(content, encoding="utf-8")


if __name__ == "__main__":
    main()
