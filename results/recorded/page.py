"""The page of the folder, and the notice that goes with the figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from results.recorded.contrasts import contrasts
from results.recorded.differing import ALONE, KINDS, Difference, differences
from results.recorded.findings import findings
from results.recorded.picture import RULE
from results.recorded.tables import share, tables
from results.recorded.variants import Variant

FILE = "dai2026_counting_capacity.jsonl.gz"
NOTICE = """\
The figures here are derived from the data of Dai & Fan 2026, "Language models fail at extended
rule following" (arXiv 2605.02028), public repository txdai/llm-extended-rule-following at
5271bf3.

MIT License

Copyright (c) 2026 Tianxiang Dai

Permission is hereby granted, free of charge, to any person obtaining a copy of this software
and associated documentation files (the "Software"), to deal in the Software without
restriction, including without limitation the rights to use, copy, modify, merge, publish,
distribute, sublicense, and/or sell copies of the Software, and to permit persons to whom the
Software is furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or
substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING
BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND
NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM,
DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.
"""


def readme(found: Sequence[Variant]) -> str:
    """The page of the folder."""
    models, writings = tables(found)
    differing = differences(found)
    asked = [row for row in models if row["replies"]]
    lines = [
        f"# {len(asked)} models count the items of a row",
        "",
        (
            f"Dai & Fan 2026 (arXiv 2605.02028) asked {len(asked)} models in April 2026 how many "
            "items a row of one repeated item has, and published the replies under the MIT licence "
            "(`LICENSE`). This page, the tables and the picture are made from these replies by "
            "`python -m results.recorded FILE`; nothing was asked here, and the replies are not in "
            "this repository. [All models there are numbers for](../models.md) says for each how "
            "often it is right at 20 to 500 items, and what that predicts."
        ),
        "",
        (
            "![Where models stop counting exactly, they do not start guessing]"
            "(where_models_stop.svg)"
        ),
        "",
        (
            "[Where models stop counting exactly, they do not start guessing](three_lengths.md): "
            "what the three lengths show, and what they do not."
        ),
        "",
        "| file | what |",
        "| --- | --- |",
        (
            "| `models.csv` | the models: effective length at 85 %, near and apart length, "
            "with intervals, capacity "
            "(published and by our reading), area, replies unread, cut off or never given |"
        ),
        "| `writings.csv` | three models under eleven writings of the row, in the same columns |",
        "| `contrasts.csv` | the tests behind the sentences below |",
        "| `differing.csv` | the replies that our reading judges otherwise than the authors |",
        f"| `three_lengths.md`, `where_models_stop.svg` | the page and its picture. {RULE} |",
        "",
        (
            "`effective_length_bound` is `<` or `>` where a length is outside the tested "
            "lines, and `limited_by` what limits it: `room` where replies were cut off, so that "
            "only a lower bound is known. An effective length that is not known is empty. The "
            "lines of a model were chosen by its answers (doubling from 32 to the first "
            "failure, then "
            "bisection), so the areas of two models are over different lines. A single row "
            "of 8 items, "
            "which each variant was tried with first, is left out. One more model, "
            "qwen-2.5-coder-32b-instruct, was asked nothing else, and its reply is empty: it has a "
            "row in `models.csv`, of which only the published capacity is known."
        ),
        "",
        "## Findings",
        "",
        (
            "Accuracies are shares of exactly right replies on the lines that both have. "
            "Where both "
            "were asked the same rows the test is McNemar's, else Fisher's stratified by "
            "line, both "
            f"exact; p-values are corrected for all {len(contrasts(found))} tests by Holm's method."
        ),
        "",
        *(f"- {sentence}" for sentence in findings(found)),
        "",
        "## Every reply",
        "",
        (
            "The page of all runs has the replies in it, so it is made where it is wanted (4 MB). "
            "With `--runs` only the runs are written, and nothing in this folder:"
        ),
        "",
        "```bash",
        f"python -m results.recorded {FILE} --runs runs",
        "bench report $(find runs/length -name manifest.json -exec dirname {} +) -o page.html",
        "bench samples runs/length/runs/gpt-5.4/capacity/items@* --outcome incorrect",
        "```",
        "",
        "## Is the capacity the published one?",
        "",
        *_of_capacities(asked, writings, found),
        "",
        "## Replies that are judged otherwise",
        "",
        *_of_differences(differing),
        "",
    ]
    return "\n".join(lines)


def _of_capacities(
    models: Sequence[Mapping[str, Any]],
    writings: Sequence[Mapping[str, Any]],
    found: Sequence[Variant],
) -> Iterator[str]:
    unequal = [row for row in (*models, *writings) if row["capacity"] != row["capacity_published"]]
    of_models = sum(row["capacity"] != row["capacity_published"] for row in models)
    yield (
        f"It is for {share(len(models) - of_models, len(models))} models and "
        f"{share(len(writings) - len(unequal) + of_models, len(writings))} writings. The others:"
    )
    yield ""
    by_key = {(one.model, one.writing, one.set == "stimulus"): one for one in found}
    for row in unequal:
        item, delimiter = row.get("item", "a"), row.get("delimiter", "comma")
        one = by_key[row["model"], f"{item}, {delimiter}", "item" in row]
        trials = one.outcomes[row["capacity_published"]]
        count = Counter(outcome for outcome, _ in trials.values())
        why = ", ".join(
            f"{count[name]} {words}"
            for name, words in (("truncated", "cut off"), ("unparsed", "without a number"))
            if count[name]
        )
        writing = f" ({item}, {delimiter})" if "item" in row else ""
        yield (
            f"- {row['model']}{writing}: {row['capacity_published']} published, "
            f"{row['capacity']} here. Of the {len(trials)} replies on line "
            f"{row['capacity_published']}, {why} by our reading; the authors read a number in each."
        )


def _digits(one: Difference) -> int:
    return len(str(one.row["expected"]))


def _of_differences(differing: Sequence[Difference]) -> Iterator[str]:
    cut = [one for one in differing if one.row["cut_off"]]
    exact = sum(one.is_exact for one in cut)
    yield (
        f"{len(differing)} replies, all of them looked at: {len(cut)} that were cut off, in which "
        f"the authors read the last integer (it is the true count in {exact}), and "
        f"{len(differing) - len(cut)} whole ones. Of all other replies both readings are the same "
        f"number, or none. Our reading takes a number where the authors took another one in "
        f"{sum(one.answer is not None for one in differing)} replies."
    )
    yield ""
    alone = [one for one in cut if one.kind == ALONE]
    shorter = sum(len(str(one.row["parsed_by_authors"])) < _digits(one) for one in alone)
    yield (
        f"A cut-off reply that is a number alone stays cut off here ({len(alone)} replies): where "
        "the limit ended a reply, nothing in it shows whether its last digits are there, and half "
        "of a number would be judged as an answer. In these data no number looks like a half: "
        f"{shorter or 'none'} of the {len(alone)} {'have' if shorter > 1 else 'has'} fewer digits "
        f"than the true count, and {sum(one.is_exact for one in alone)} are the true count."
    )
    yield ""
    yield "| class | replies | true count by the authors' reading | who is right | why |"
    yield "| --- | ---: | ---: | --- | --- |"
    for kind, (right, why) in KINDS.items():
        of_kind = [one for one in differing if one.kind == kind]
        truth = sum(one.is_exact for one in of_kind)
        yield f"| {kind} | {len(of_kind)} | {truth} | {right} | {why} |"
