"""Makes the page, the table and the file of all models that there are numbers for.

    python -m results.publish ../shared/recorded/dai2026_counting_capacity.jsonl.gz

They are `results/models.html`, `.md` and `.csv`: replies that Dai and Fan recorded, judged here;
the rows of `results/leaderboard.csv`, which were asked; and figures that others reported. Prices
are those of the catalog on the day of the command.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from eyechart.harness.analysis.ranking.cost_at import cost_at
from eyechart.harness.analysis.ranking.leaderboard import enter_standings, merge, run_rows
from eyechart.harness.analysis.ranking.leaderboard_file import Row, read_rows, write_leaderboard
from eyechart.harness.analysis.ranking.standing import standing
from eyechart.harness.analysis.samples.judged_run import read_run
from eyechart.harness.analysis.tables.tables import cost_at_columns
from eyechart.harness.journal.manifest import find_runs
from eyechart.harness.plan.cost import Spent
from eyechart.harness.report.ranking.ranks_page import ranks_markdown, ranks_page, reading
from eyechart.harness.spec.columns import COST, COST_A_REPLY
from eyechart.providers.base import Usage
from eyechart.providers.catalog.price_list import offer
from results.recorded.tables import published
from results.recorded.variants import read_file, variants
from results.reported_rows import reported_rows
from results.words import words

FOLDER = Path(__file__).parent
AT = (20, 50, 100, 200, 500)
FIRST = 200
HOME = {"Anthropic": "anthropic", "Google": "gemini", "OpenAI": "openai"}
"""Vendor -> its provider in the catalog; models whose names have a vendor before them were asked at
OpenRouter."""
KNOWN = {"vendor": "family", "parameters_billion": "parameters_billion"}
"""Our column -> that of the published capacities."""
UNITS = {"capacity/items": "items"}


def recorded_rows(path: Path, out: Path) -> list[Row]:
    """A row for each recorded model under the usual writing; the runs go under `out`."""
    variants(path, out)
    runs = [read_run(folder) for folder in find_runs(out / "length")]
    made = [(run, run_rows(run, AT)[0]) for run in runs]
    rows = [row for _, of_run in made for row in of_run]
    named = [(run.manifest.model, run) for run, _ in made]
    enter_standings(rows, {run.folder: of_run for run, of_run in made}, [standing(named)])
    costs = dict(_costs(path))
    for row in rows:
        known = published_of(row["model"])
        row.update({name: known[column] for name, column in KNOWN.items()})
        row["open_weights"] = "yes" if known["set"] == "open" else "no"
        row.update(dict.fromkeys((*COST, COST_A_REPLY), ""))
        row.update(costs.get(row["model"], {}))
        # of the day on which the command ran, and not of the replies
        row.update({"date": "", "software": row["software"].partition(" ")[0]})
    return rows


def published_of(model: str) -> Mapping[str, str]:
    """The row of a model's published capacity under the usual writing."""
    found = (row for key, row in published().items() if key[0] != "stimulus" and key[1] == model)
    return next(found)


def _costs(path: Path) -> Iterator[tuple[str, Row]]:
    """Model -> the columns of what its replies cost, by the tokens that were recorded."""
    of_models: dict[str, list[tuple[int, Usage]]] = {}
    for row in read_file(path):
        used = usage_of(row)
        if row["set"] != "stimulus" and used is not None:
            of_models.setdefault(row["model"], []).append((row["expected"], used))
    for model, replies in of_models.items():
        prices = offer(provider_of(model), model).prices
        if prices is None:
            continue
        spent = [
            Spent.of(length, prices, (used.prompt_tokens, used.output_tokens, used.thought_tokens))
            for length, used in replies
        ]
        total = sum(one.prompt + one.reply for one in spent)
        if total > 0:
            there = {length: one for length in AT if (one := cost_at(spent, length))}
            known = {
                name: value if isinstance(value, str) else f"{value:.6g}"
                for name, value in cost_at_columns(there).items()
            }
            each = f"{total / len(spent):.6g}"
            yield (
                model,
                {
                    "cost_usd": f"{total:.6g}",
                    "prices_of": prices.of,
                    COST_A_REPLY: each,
                    **known,
                },
            )


def provider_of(model: str) -> str:
    """Where a recorded model was asked."""
    return "openrouter" if "/" in model else HOME[published_of(model)["family"]]


def usage_of(row: Mapping[str, Any]) -> Usage | None:
    """The tokens of a recorded reply; `None` where they were not recorded. Google's API counts
    thinking beside the tokens of the reply, all others among them, and bills both.
    """
    asked, said, thought = (row[f"{what}_tokens"] for what in ("input", "output", "reasoning"))
    if asked is None or said is None:
        return None
    beside = (thought or 0) if row["api"] == "google_genai" else 0
    return Usage(asked, said + beside, thought_tokens=thought)


def made_from(path: Path, out: Path) -> dict[str, str]:
    """Name -> content of the files in `results/`; the runs go under `out`."""
    rows = [*recorded_rows(path, out), *read_rows(FOLDER / "leaderboard.csv"), *reported_rows()]
    file = out / "models.csv"
    write_leaderboard(file, merge(rows))
    kept = read_rows(file)
    said = words(kept)
    return {
        "models.csv": file.read_text(encoding="utf-8"),
        "models.md": _page_of(kept),
        "models.html": ranks_page(kept, UNITS, said),
    }


def _page_of(rows: Sequence[Row]) -> str:
    said = words(rows)
    lines = [f"# {said.title.format(FIRST)}", "", *(f"{text}\n" for text in said.lede)]
    lines += ["Words and columns are explained [below](#how-to-read-the-tables).", ""]
    lines += [ranks_markdown(rows, UNITS, FIRST, said), "## How to read the tables", ""]
    lines += [*(f"- **{name}**: {text}" for name, text in reading(rows)), ""]
    for heading, paragraphs in said.more:
        lines += [f"## {heading}", "", *(f"{text}\n" for text in paragraphs)]
    return "\n".join(lines).rstrip() + "\n"


def main() -> None:
    """Writes the files."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path, help="dai2026_counting_capacity.jsonl.gz")
    with tempfile.TemporaryDirectory() as scratch:
        made = made_from(parser.parse_args().file, Path(scratch))
    for name, content in made.items():
        (FOLDER / name).write_text(content, encoding="utf-8")
    sys.stdout.write(f"{', '.join(made)} are in {FOLDER}\n")


if __name__ == "__main__":
    main()
