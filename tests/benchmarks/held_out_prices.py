"""How near the price of a reply at a length is to that of replies there, with their line left out.

    python -m tests.benchmarks.held_out_prices ../shared/recorded/dai2026_counting_capacity.jsonl.gz

Of each recorded model one line after the other is left out: between others, beyond all shorter
ones, and below all longer ones. A bound is right where the mean price is not more than a tenth
beyond it, a price without a sign where the mean is within a quarter of it.
"""

from __future__ import annotations

import argparse
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from eyechart.harness.analysis.ranking.cost_at import CostAt, cost_at
from eyechart.harness.plan.cost import Spent
from eyechart.providers.catalog.price_list import offer
from results.publish import provider_of, usage_of
from results.recorded.variants import read_file
from tests.benchmarks.measure import show

LEAST, FEW = 16, 8
"""Fewest replies that a price is made from, and that a line has which is left out."""
FAR = 10
"""A line is left out that is at most so many times longer or shorter than the nearest row."""


def lines_of_models(path: Path) -> Iterator[dict[int, list[Spent]]]:
    """For each model with prices: line -> what its replies cost."""
    models: dict[str, dict[int, list[Spent]]] = defaultdict(lambda: defaultdict(list))
    for row in read_file(path):
        used = usage_of(row)
        prices = offer(provider_of(row["model"]), row["model"]).prices
        if row["set"] != "stimulus" and used is not None and prices is not None:
            tokens = used.prompt_tokens, used.output_tokens, used.thought_tokens
            spent = Spent.of(row["expected"], prices, tokens)
            models[row["model"]][row["centre"]].append(spent)
    for lines in models.values():
        if sum(one.prompt + one.reply for line in lines.values() for one in line) > 0:
            yield dict(sorted(lines.items()))


def is_right(found: CostAt, true: float) -> bool:
    """Whether the mean price of a line that was left out agrees."""
    ratio = true / found.dollars
    return {"=": 0.8 <= ratio <= 1.25, ">": ratio >= 0.9, "<": ratio <= 1.1}[found.sign]


def left_out(lines: dict[int, list[Spent]]) -> Iterator[tuple[str, Sequence[Spent], list[Spent]]]:
    """Where a line lies, its replies, and those of the others that a price is made from."""
    names = list(lines)
    for place, name in enumerate(names):
        held = lines[name]
        if len(held) < FEW:
            continue
        parts = {"beyond": names[:place], "below": names[place + 1 :]}
        if 0 < place < len(names) - 1:
            parts["between"] = [*parts["beyond"], *parts["below"]]
        for where, rest in parts.items():
            seen = [one for other in rest for one in lines[other]]
            if len(seen) >= LEAST:
                yield where, held, seen


def main() -> None:
    """Prints how many prices and bounds are right."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path, help="dai2026_counting_capacity.jsonl.gz")
    counts: Counter[tuple[str, str]] = Counter()
    right: Counter[tuple[str, str]] = Counter()
    for lines in lines_of_models(parser.parse_args().file):
        for where, held, seen in left_out(lines):
            length = round(statistics.mean(one.length for one in held))
            ends = min(one.length for one in seen), max(one.length for one in seen)
            is_inside = ends[0] <= length <= ends[1]
            is_far = not ends[0] / FAR <= length <= ends[1] * FAR
            if is_inside != (where == "between") or is_far:
                continue
            if (found := cost_at(seen, length)) is not None:
                key = where, found.sign
                counts[key] += 1
                right[key] += is_right(
                    found, statistics.mean(one.prompt + one.reply for one in held)
                )
    rows = [[*key, str(right[key]), str(count)] for key, count in sorted(counts.items())]
    show(["the line", "sign", "right", "of"], rows)


if __name__ == "__main__":
    main()
