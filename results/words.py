"""What the page of all models says in words: what its numbers predict and what they do not.

Every figure is computed from the published tables.
"""

from __future__ import annotations

import csv
import statistics
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from eyechart.harness.analysis.ranking.leaderboard_file import Row
from eyechart.harness.report.ranking.ranks_page import Words
from eyechart.harness.spec.columns import (
    ACCURACY_AT,
    COST_A_REPLY,
    RECORDED,
    REPORTED,
)

FOLDER = Path(__file__).parent / "recorded"
FIRST = 200
_USUAL = ("a", "comma")
_BOTH = "gpt-4o-mini"
"""The model that both Dai & Fan and Zhang et al. asked."""


def words(rows: Sequence[Row]) -> Words:
    """Title, first line, and the section on what counting predicts, for `rows` of all models."""
    recorded = [row for row in rows if row["kind"] == RECORDED]
    of_task = {row["model"] for row in rows if row["task"] == "capacity/items"}
    unread = sorted(of_task - {row["model"] for row in recorded})
    return Words(
        title="Which model for a list of {} items?",
        lede=(_beyond_chance(recorded),),
        more=(
            (
                "What counting predicts, and what it does not",
                (
                    (
                        "A model that fails here at 200 cannot be trusted to keep 200 equal items "
                        "apart. A model that passes has shown that it can, and no more. "
                        f"{len(recorded)} models counted the items of a row: Dai & Fan recorded "
                        "the replies in April 2026, and Eyechart judged them"
                        f"{_without_replies(unread)}."
                    ),
                    _of_claims(),
                    _not_a_list(),
                    _of_writing(),
                    _of_order(),
                    _of_retest(recorded),
                    _of_nearness(recorded),
                    _of_letters(rows, recorded),
                    _of_capacities(rows, recorded),
                    _of_costs(recorded),
                ),
            ),
        ),
        first=FIRST,
        rows="lists",
        beside=_of_names_and_prices(recorded),
    )


def _without_replies(models: Sequence[str]) -> str:
    """The models that have a published figure and no replies to judge; empty without any."""
    if not models:
        return ""
    return f"; of {len(models)} more ({', '.join(models)}) there is only the published figure"


def _beyond_chance(recorded: Sequence[Row]) -> str:
    """What the probabilities leave out, with the largest factors that were seen."""
    first = {row["model"]: row for row in recorded}
    again = [
        _factor([first[model], of[_USUAL]]) for model, of in _writings().items() if _USUAL in of
    ]
    writings = [_factor(list(of.values())) for of in _writings().values()]
    return (
        "The task: count the items of a list such as “a, a, a, a”. When a model was asked again, "
        f"its length differed by a factor of up to {max(again):.1f}; when the list was written in "
        f"another way, of up to {max(writings):.1f} ({len(again)} models)."
    )


def _factor(rows: Sequence[Mapping[str, str]]) -> float:
    lengths = [_length(row) for row in rows]
    return max(lengths) / min(lengths)


def _of_claims() -> str:
    return (
        "How often “surely passes” is said of a model that does not pass was "
        "[simulated](simulations/README.md#rows-in-pieces), at once and in pieces."
    )


def _not_a_list() -> str:
    return (
        "A length here does not promise that a model works with so many records. The row is one "
        "item, repeated: a, a, a, … The question is how many there are, and no reply had to find, "
        "sort, copy or change an item. The length says up to where a model still tells n equal "
        "items from n + 1."
    )


def _writings() -> dict[str, dict[tuple[str, str], Mapping[str, str]]]:
    """Model -> item and delimiter -> the row of `writings.csv`."""
    found: dict[str, dict[tuple[str, str], Mapping[str, str]]] = {}
    with (FOLDER / "writings.csv").open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            found.setdefault(row["model"], {})[row["item"], row["delimiter"]] = row
    return found


def _length(row: Mapping[str, str]) -> float:
    return float(row["effective_length"])


def _text(row: Mapping[str, str]) -> str:
    return " ".join(filter(None, (row["effective_length_bound"], row["effective_length"])))


def _of_writing() -> str:
    told = []
    for model, of in _writings().items():
        least, most = min(of.values(), key=_length), max(of.values(), key=_length)
        names = ["{item}, {delimiter}".format_map(row) for row in (least, most)]
        told.append(
            f"{model} counts to {_text(least)} ({names[0]}) or to {_text(most)} ({names[1]})"
        )
    return (
        "A list in another form is another task. From the worst to the best of eleven writings "
        f"(item, delimiter) {'; '.join(told)}."
    )


def _of_order() -> str:
    of = _writings()
    writings = [writing for writing in next(iter(of.values())) if writing != _USUAL]

    def order(writing: tuple[str, str]) -> list[str]:
        return sorted(of, key=lambda model: -_length(of[model][writing]))

    same = sum(order(writing) == order(_USUAL) for writing in writings)
    last = order(_USUAL)[-1]
    is_last = sum(order(writing)[-1] == last for writing in writings)
    return (
        "One writing does not say which of two close models is ahead. Three models have the order "
        f"that they have with {', '.join(_USUAL)} in {same} of {len(writings)} other writings; "
        f"{last} is the last one in {is_last} of these."
    )


def _of_retest(recorded: Sequence[Row]) -> str:
    first = {row["model"]: row for row in recorded}
    told = [
        f"{model} {_text(first[model])} and {_text(of[_USUAL])}"
        for model, of in _writings().items()
    ]
    return (
        "A difference between two models that is smaller than their intervals says nothing. "
        f"Asked twice, the same model gave: {'; '.join(told)}."
    )


def _of_nearness(recorded: Sequence[Row]) -> str:
    able = [row for row in recorded if float(row["capacity"] or 0)]
    exact = [float(row[f"{ACCURACY_AT}{float(row['capacity']):g}"]) for row in able]
    share = 100 * statistics.median(exact)
    shorter = sum(float(row["capacity"]) < float(row["effective_length"] or 0) for row in able)
    return (
        "Most models are nearly right further than they are exactly right. Where being off by a "
        "few does no harm, take the capacity, a column of models.csv: the longest line with a mean "
        f"error of at most 5 %. {len(able)} of {len(recorded)} models have one, and there the "
        f"median model is exactly right in {share:.0f} % of its replies. Of {shorter} models the "
        "capacity is the shorter length, since a single wild reply raises a mean error; take the "
        "exact length of these."
    )


def _of_capacities(rows: Sequence[Row], recorded: Sequence[Row]) -> str:
    """Of which models the capacity here is another than the published one, and why."""
    published = {
        row["model"]: row["capacity"]
        for row in rows
        if row["kind"] == REPORTED and row["task"] == "capacity/items"
    }
    told = [
        f"{row['model']} ({published[row['model']]} published, {row['capacity']} here)"
        for row in recorded
        if row["capacity"] and float(row["capacity"]) != float(published[row["model"]])
    ]
    return (
        f"Our capacity differs from the published one for {len(told)} models: {', '.join(told)}. "
        "At the published capacity some replies of these models were cut off, or had no number on "
        "their last line. Such a reply is not right here; Dai & Fan read the last integer anywhere "
        "in a reply. [Each case](recorded/README.md#is-the-capacity-the-published-one) says whose "
        "reading is right."
    )


def _of_costs(recorded: Sequence[Row]) -> str:
    priced = [row for row in recorded if row[COST_A_REPLY]]
    return (
        f"The cost of replies is known of {len(priced)} of {len(recorded)} models: the recorded "
        "tokens, with those of thinking, at catalog prices. Of the others the "
        "tokens or the prices are not known. A prompt of your own is longer or shorter than that "
        "of Dai & Fan; bench run with --dry-run says how much it costs."
    )


def _of_names_and_prices(recorded: Sequence[Row]) -> str:
    """Of which day they are, how `bench` asks such a model, and what that leaves open."""
    months = {row["collected"] for row in recorded}
    days = {row["prices_of"].partition(" ")[0] for row in recorded} - {""}
    return (
        f"Names are those of the recording ({_range(months)}), prices those of the catalog "
        f"({_range(days)}). bench asks a model by its provider and its name: anthropic/claude-…, "
        "or openrouter/google/gemini-… where the name has a vendor before it. Whether a model is "
        "still sold is not known here."
    )


def _range(days: Collection[str]) -> str:
    return " to ".join(dict.fromkeys((min(days), max(days))))


def _of_letters(rows: Sequence[Row], recorded: Sequence[Row]) -> str:
    mine = next(row for row in recorded if row["model"] == _BOTH)
    theirs = next(
        row
        for row in rows
        if row["kind"] == REPORTED
        and row["model"] == _BOTH
        and row["condition"] == "format=comma_space,letter=a,strategy=direct"
    )
    share = float(theirs[f"{ACCURACY_AT}25"])
    return (
        f"A length here says little of counting among other items. {_BOTH} counts to {_text(mine)} "
        "equal items. Asked to count one letter in random strings of 20 to 30 letters a and b, it "
        f"was right in {100 * share:.0f} % (Zhang et al. 2024; written with comma and space, with "
        "another prompt and in another year). To know how a model does on your own list, ask it "
        "that: a task of your own is a file."
    )
