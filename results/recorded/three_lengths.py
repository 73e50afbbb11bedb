"""The page on what is left where exact counting ends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from eyechart.harness.analysis.order.order import CONSTANT, HEAPED, REVERSED, OrderOfLine
from results.recorded.picture import LENGTHS, RULE, costs, length_text, shown_models
from results.recorded.tables import share, tables
from results.recorded.variants import Variant

_FEWEST = 12
"""Replies of a line that is looked at."""
_ORDERED, _GUESSES = 0.025, 0.6
"""The p-value to which a line is ordered, and the share of pairs below which it hardly is."""
_FAR = 60
"""Ladders beyond it are long enough to compare the lengths of a model."""


def three_lengths(found: Sequence[Variant]) -> str:
    """The page."""
    models, _ = tables(found)
    asked = [row for row in models if row["replies"]]
    lines = list(_lines(found))
    wrong = [line for exact, line in lines if not exact]
    shares = np.array([line.share for line in wrong])
    ordered = sum(line.p <= _ORDERED for line in wrong)
    text = [
        "# Where models stop counting exactly, they do not start guessing",
        "",
        (
            "How long may a row be for a model to count it? The answer depends on what is asked of "
            f"the count. {len(asked)} models were asked how many items a row of one repeated item "
            "has, and three lengths follow from the same replies:"
        ),
        "",
        "- *exact*: the model is right in 85 % of its replies,",
        "- *near*: it is off by at most 5 % in as many,",
        (
            "- *apart*: of two rows that differ by a fifth, its answers say in 75 % of pairs which "
            "one is longer; chance is half."
        ),
        "",
        (
            "**Where no answer is exact, answers still have the right order: of pairs of rows that "
            f"differ by about a fifth, {100 * np.median(shares):.0f} % are ordered right** (median "
            f"of {len(wrong)} lines). On a quarter of these lines it is "
            f"{100 * np.quantile(shares, 0.25):.0f} % or less. What ends at the effective length "
            "is exactness."
        ),
        "",
        "![Three lengths of the best and the cheapest model of each vendor](where_models_stop.svg)",
        "",
        "## What was found",
        "",
        *(f"- {sentence}" for sentence in _sentences(asked, lines)),
        (
            f"- {share(ordered, len(wrong))} lines without an exact answer are ordered by more "
            f"than chance (permutation test, one-sided, p ≤ {_ORDERED:g}; "
            f"{_ORDERED * len(wrong):.0f} would be by chance). On {(shares < _GUESSES).sum()} of "
            f"the {len(wrong)} fewer than {100 * _GUESSES:.0f} % of the pairs are right: there "
            "little is left."
        ),
        "",
        "## Three lengths",
        "",
        f"In items, with 95 % intervals. {RULE} All models: [`models.csv`](models.csv).",
        "",
        "| model | exact | near | apart |",
        "| --- | ---: | ---: | ---: |",
        *(
            f"| {row['model']} | {' | '.join(_cell(row, name) for name in LENGTHS)} |"
            for row in shown_models(models, costs())
        ),
        "",
        (
            "`>` and `<`: beyond the rows that were asked; –: not known. An end of an interval "
            "that is beyond them is left out."
        ),
        "",
        "## What it does not show",
        "",
        (
            "- **That models see how many items there are.** In these rows a longer prompt has the "
            "larger count. No reply tells counting from knowing how long the prompt is. Rows of "
            "fixed length would ([`counting/density`](../../docs/prompts.md#countingdensity)), "
            "and these models were not asked about any."
        ),
        (
            "- **Which model tells rows apart furthest.** The rows of a model end soon after it "
            f"failed to be exact: for {_beyond(asked)} models the apart length is beyond "
            "their rows. So `>` does not compare between models."
        ),
        (
            "- **That answers are good.** Order is not accuracy. Answers that are all 15 % too "
            "small keep their order."
        ),
        (
            "- **Anything of other items, other prompts or later versions** of these models: 16 "
            "rows a line, one reply a row, April 2026. A fifth, 75 % and 5 % are conventions."
        ),
        "",
        "## How it was computed",
        "",
        (
            "[Near and apart](../../docs/near.md) defines the lengths, and "
            "[simulations](../simulations/README.md#near-and-apart) with known truths show how "
            "often their intervals hold and how often order is claimed that is not there. Rows are "
            "the unit. An answer that cannot be read is a tie. A line has the replies to 16 rows "
            f"that differ by up to ±20 %; lines with fewer than {_FEWEST} replies are left out "
            "here. `python -m results.recorded FILE` makes this page from the recorded replies."
        ),
        "",
        "## To cite",
        "",
        (
            "The replies: Dai & Fan 2026, *Language models fail at extended rule following*, arXiv "
            "2605.02028, data under the MIT licence ([`LICENSE`](LICENSE)). The three lengths: "
            "Eyechart, [`CITATION.cff`](../../CITATION.cff), with the version."
        ),
        "",
    ]
    return "\n".join(text)


def _lines(found: Sequence[Variant]) -> Iterator[tuple[int, OrderOfLine]]:
    """How many answers are exact, and the order, of the lines of all models."""
    for one in found:
        order = one.judged.order
        if one.set == "stimulus" or order is None:
            continue
        cells = one.judged.cells
        for place, line in order.lines.items():
            if cells["n"][place] >= _FEWEST and not np.isnan(line.share):
                yield int(cells["correct"][place]), line


def _sentences(
    asked: Sequence[Mapping[str, Any]], lines: Sequence[tuple[int, OrderOfLine]]
) -> Iterator[str]:
    told = _further(asked, "apart_length", "effective_length")
    yield (
        f"In {share(told, len(asked))} models the whole interval of the apart length is above that "
        f"of the exact length; in {_further(asked, 'effective_length', 'apart_length') or 'none'} "
        f"it is below. The whole interval of the near length is above it in "
        f"{_further(asked, 'near_length', 'effective_length')}."
    )
    ratios = [
        float(row["apart_length"]) / float(row["effective_length"])
        for row in asked
        if row["apart_length"] and row["effective_length"] and not row["effective_length_bound"]
        if float(row["apart_length"]) >= _FAR and row["apart_length_bound"] != "<"
    ]
    yield (
        f"The apart length is {np.median(ratios):.1f} times the exact one: the median of "
        f"{len(ratios)} models with an exact length, and an apart length from {_FAR} items on. It "
        "is at least that, since the end of the rows counts where the apart length is beyond them."
    )
    count = {name: sum(line.pattern == name for _, line in lines) for name in (HEAPED, CONSTANT)}
    heaped = [line.share for _, line in lines if line.pattern == HEAPED]
    no_other = not sum(line.pattern == REVERSED for _, line in lines)
    yield (
        f"Rounding keeps the order. On {count[HEAPED]} of {len(lines)} lines most answers are "
        f"multiples of ten, and still {100 * np.median(heaped):.0f} % of pairs are in order "
        f"(median). On {count[CONSTANT]} nearly all answers are one number, and on "
        f"{'none' if no_other else 'some'} the order is reversed."
    )


def _further(rows: Sequence[Mapping[str, Any]], first: str, second: str) -> int:
    """In how many rows the interval of the first length is above that of the second."""
    return sum(
        float(row[f"{first}_ci_low"]) > float(row[f"{second}_ci_high"])
        for row in rows
        if row[f"{first}_ci_low"] != "" and row[f"{second}_ci_high"] != ""
    )


def _beyond(rows: Sequence[Mapping[str, Any]]) -> str:
    return share(sum(row["apart_length_bound"] == ">" for row in rows), len(rows))


def _cell(row: Mapping[str, Any], name: str) -> str:
    """`546 (435 to 644)`, `> 1,141 (at least 1,048)`."""
    low, high = (
        row[f"{name}_ci_{end}"] and f"{row[f'{name}_ci_{end}']:,.0f}" for end in ("low", "high")
    )
    ends = f"{low} to {high}" if low and high else low and f"at least {low}"
    ends = ends or (high and f"at most {high}")
    return length_text(row, name) + (f" ({ends})" if ends else "")
