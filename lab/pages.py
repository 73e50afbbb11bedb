"""Makes the page and the table of variants of each published study from its rows, as `bench lab`
does, and the list of mechanisms in docs/variants.md from `eyechart_lab.variants.choices`.

python -m lab.pages
"""

from __future__ import annotations

import csv
import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path

from eyechart_lab.variants.asking import read_csv
from eyechart_lab.variants.choices import CHOICES, NoPositions
from eyechart_lab.variants.mechanism import Mechanism
from eyechart_lab.variants.probing import InsideRow
from eyechart_lab.variants.reading import read_lab
from eyechart_lab.variants.results.page import page
from eyechart_lab.variants.results.results import results_of
from eyechart_lab.variants.results.tables import variants_text

HERE = Path(__file__).parents[1] / "results" / "laboratory"
CHAPTER = Path(__file__).parents[1] / "docs" / "variants.md"
_BEGIN, _END = "<!-- mechanisms -->\n", "<!-- end of mechanisms -->"
_ADDRESSES = {
    r"\b(\d{4}\.\d{5})\b": r"[\1](https://arxiv.org/abs/\1)",
    r"\b(kexue\.fm/archives/\d+)": r"[\1](https://\1)",
}
"""What a source names -> its link."""


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


def chapter() -> str:
    """The chapter, with the list of mechanisms as it follows from them."""
    before, _, rest = CHAPTER.read_text(encoding="utf-8").partition(_BEGIN)
    _, _, after = rest.partition(_END)
    lines = []
    for field, choice in CHOICES.items():
        lines += ["", f"`{field}`:", ""]
        for kind in choice.kinds:
            if kind is NoPositions and field != "positions":  # nothing to explain
                continue
            source = kind.source
            for pattern, link in _ADDRESSES.items():
                source = re.sub(pattern, link, source)
            what = " ".join(inspect.cleandoc(kind.__doc__ or "").split())
            source = f" {source}." if source else ""
            differs = f" *Differs:* {kind.differs}." if kind.differs else ""
            lines.append(f"- `{written(kind)}`: {what}{source}{differs}")
    return "".join([before, _BEGIN, "\n".join(lines), "\n\n", _END, after])


def written(kind: type[Mechanism]) -> str:
    """A choice as a study has it, with all that it takes."""
    given = {
        name: kind.example if field.is_required() else field.default
        for name, field in kind.model_fields.items()
        if field.is_required() or field.default is not None
    }
    inside = ", ".join(f"{name}: {_plain(value)}" for name, value in given.items())
    if not given or kind.flat:
        return f"{{{inside}}}" if given else kind.name
    if list(given) == [kind.short]:
        (value,) = given.values()
        return f"{{{kind.name}: {_plain(value)}}}"
    return f"{{{kind.name}: {{{inside}}}}}"


def _plain(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else json.dumps(value).strip('"')


def main() -> None:
    """Writes all of them."""
    for path, text in [*pages(), (CHAPTER, chapter())]:
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
