"""Makes what is in this folder from the replies that Dai and Fan recorded.

    python -m results.recorded ../shared/recorded/dai2026_counting_capacity.jsonl.gz

The replies are not committed; what follows from them is. With `--runs FOLDER` it writes only the
runs, into that folder, for `bench report`, `bench samples` and the rest.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from eyechart.harness.journal.manifest import find_runs
from results.recorded.contrasts import contrast_rows, contrasts
from results.recorded.differing import difference_rows, differences
from results.recorded.page import NOTICE, readme
from results.recorded.picture import costs, picture
from results.recorded.tables import csv_of, tables
from results.recorded.three_lengths import three_lengths
from results.recorded.variants import variants

FOLDER = Path(__file__).parent


def made_from(path: Path, out: Path) -> dict[str, str]:
    """Name -> content of every file in `results/recorded/`; the runs go under `out`."""
    found = variants(path, out)
    models, writings = tables(found)
    return {
        "models.csv": csv_of(models),
        "writings.csv": csv_of(writings),
        "contrasts.csv": csv_of(contrast_rows(contrasts(found))),
        "differing.csv": csv_of(difference_rows(differences(found))),
        "where_models_stop.svg": picture(models, costs()),
        "README.md": readme(found),
        "three_lengths.md": three_lengths(found),
        "LICENSE": NOTICE,
    }


def main() -> None:
    """Writes the files, or with `--runs` the runs."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path, help="dai2026_counting_capacity.jsonl.gz")
    parser.add_argument("--runs", type=Path, metavar="FOLDER", help="write only the runs, there")
    given_arguments = parser.parse_args()
    if given_arguments.runs is not None:
        variants(given_arguments.file, given_arguments.runs)
        for folder in sorted(given_arguments.runs.iterdir()):
            sys.stdout.write(f"{len(find_runs(folder))} runs are in {folder}\n")
        return
    with tempfile.TemporaryDirectory() as scratch:
        made = made_from(given_arguments.file, Path(scratch))
    for name, content in made.items():
        (FOLDER / name).write_text(content, encoding="utf-8")
    sys.stdout.write(f"{', '.join(made)} are in {FOLDER}\n")


if __name__ == "__main__":
    main()
