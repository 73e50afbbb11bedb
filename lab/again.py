"""Trains a published study of the laboratory again, asks it, and says what no longer holds.

python -m lab.again stretch_ones

The same processor with the same torch gives the same numbers. Another one rounds in another order,
so the weights differ: then each verdict has to be the same, and each interval of a share has to
overlap the published one. Ends with 1 where one does not, or a model is missing.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

from eyechart_lab.variants.folders import ROOT, VARIANTS
from eyechart_lab.variants.lab_command import LabOptions, lab
from lab.pages import HERE

Row: TypeAlias = Mapping[str, str]
"""A row of a table of variants."""
_NAMES = "variant", "task", "condition"
_VERDICTS = "verdict", "within_verdict", "beyond_verdict"
_SHARES = {"within": "at the trained lengths", "beyond": "of longer rows"}


def differences(published: Sequence[Row], found: Sequence[Row]) -> Iterator[str]:
    """What of a published table does not hold of another one, in a line each."""
    before, after = (
        {tuple(row[name] for name in _NAMES): row for row in rows} for rows in (published, found)
    )
    for names in before.keys() ^ after.keys():
        yield f"{', '.join(names)}: only {'published' if names in before else 'found'}"
    for names in before.keys() & after.keys():
        old, new = before[names], after[names]
        for column in _VERDICTS:
            if old[column] != new[column]:
                yield f"{', '.join(names)}: {column} is {new[column]!r}, published {old[column]!r}"
        for share, of in _SHARES.items():
            if not _overlap(_interval(old, share), _interval(new, share)):
                said = f"{_said(new, share)}, published {_said(old, share)}"
                yield f"{', '.join(names)}: right {of} {said}"


def _interval(row: Row, share: str) -> tuple[float, float] | None:
    low, high = row[f"{share}_ci_low"], row[f"{share}_ci_high"]
    return (float(low), float(high)) if low and high else None


def _overlap(one: tuple[float, float] | None, other: tuple[float, float] | None) -> bool:
    if one is None or other is None:
        return one is other
    return one[0] <= other[1] and other[0] <= one[1]


def _said(row: Row, share: str) -> str:
    span = _interval(row, share)
    return (
        "without an interval" if span is None else f"{100 * span[0]:.0f} to {100 * span[1]:.0f} %"
    )


def again(study: Path, out: Path, published: Path) -> list[str]:
    """Trains and asks a study in the folder `out`; returns what of a published table does not
    hold of it.
    """
    wanted = LabOptions(out=out, jobs=1, device="cpu", dry_run=False, trusts=False, as_json=False)
    code = lab(study, wanted)
    missing = [f"the study ended with exit code {code}"] if code else []
    (table,) = (out / ROOT).glob(f"*/{VARIANTS}")
    return missing + sorted(differences(_rows(published), _rows(table)))


def _rows(path: Path) -> list[Row]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def main(names: Sequence[str]) -> int:
    """Trains the studies with these names; returns 1 if something of one does not hold."""
    found = []
    for name in names:
        with TemporaryDirectory() as folder:
            study, published = HERE / f"{name}.yaml", HERE / f"{name}_variants.csv"
            lines = again(study, Path(folder), published)
        found += lines
        sys.stdout.writelines(
            f"{name}: {line}\n" for line in lines or ["all that is published holds"]
        )
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
