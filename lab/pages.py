"""Makes the page and the table of variants of each study here from its rows, as `bench lab` does.

python -m lab.pages
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

from eyechart_lab.variants.asking import read_csv
from eyechart_lab.variants.page import page
from eyechart_lab.variants.probing import InsideRow
from eyechart_lab.variants.reading import read_lab
from eyechart_lab.variants.results import results_of
from eyechart_lab.variants.tables import variants_text

HERE = Path(__file__).parents[1] / "results" / "laboratory"


def pages(folder: Path = HERE) -> Iterator[tuple[Path, str]]:
    """The files that are made from `NAME.yaml`, `NAME.csv` and `NAME_inside.csv`, with their
    contents.
    """
    for study in sorted(folder.glob("*.yaml")):
        spec = read_lab(study).spec
        found = results_of(read_csv(study.with_suffix(".csv")), spec.reference)
        inside = list(_inside(folder / f"{study.stem}_inside.csv"))
        yield folder / f"{study.stem}_variants.csv", variants_text(found, spec.reference)
        yield study.with_suffix(".html"), page(spec, found, inside)


def _inside(path: Path) -> Iterator[InsideRow]:
    if path.exists():
        with path.open(newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                numbers = {
                    "seed": int(row["seed"]),
                    "length": int(row["length"]),
                    "value": float(row["value"]),
                }
                yield InsideRow(**{**row, **numbers})  # type: ignore[arg-type]


def main() -> None:
    """Writes all of them."""
    for path, text in pages():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
