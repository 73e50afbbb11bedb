"""Runs whose length is limited by something else than sight, or not known, through every door."""

from __future__ import annotations

import csv
import html
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from eyechart.harness.analysis.comparison.comparison import compare_conditions, compare_runs
from eyechart.harness.analysis.comparison.family import rank_runs
from eyechart.harness.analysis.findings.not_known import where_not_known
from eyechart.harness.analysis.findings.ranks import of_ranking, of_standing
from eyechart.harness.analysis.length.effective_length import EffectiveLength
from eyechart.harness.analysis.length.limit import Limit
from eyechart.harness.analysis.ranking.leaderboard import merge, run_rows
from eyechart.harness.analysis.ranking.standing import standing
from eyechart.harness.analysis.samples.judged_run import read_run
from eyechart.harness.face.python.result import RunComparison, load_run
from eyechart.harness.report.charts.effects import effects_of
from eyechart.harness.report.page.page_section import page_section_of
from eyechart.harness.report.page.page_tables import models_table, pairs_table
from eyechart.harness.report.ranking.readme import markdown
from eyechart.harness.score.outcomes import Cause
from eyechart.providers.base import RefusedError, Reply, Request
from tests.conftest import Lab, right
from tests.sentences import headline, moved_text, ranks, said
from tests.test_report_page import report, section_of

LENGTHS = [2, 4, 8, 16, 32]
CUT = Reply("", "length", reasoning="One, then a zero, then")
WRONG = "Final answer: 9999"
HEDGE = "It could be 1 or 2 or 3."
Fails = tuple[int, Reply | str | Exception]
"""The longest length that is right, and what is said beyond it."""


def limited(lab: Lab, name: str, by_separator: Mapping[str, Fails]) -> Path:
    """The run of a model that fails in a way of its own under each condition."""

    def reply(request: Request) -> Any:
        fields = dict(part.split("=") for part in request.sample_id.split("|")[1:])
        reach, said = by_separator[fields["separator"]]
        return right(request) if int(fields["length"]) <= reach else said

    wanted = lab.wanted(
        model=f"scripted/{name}",
        lengths=LENGTHS,
        samples=20,
        axes={"separator": list(by_separator)},
    )
    lab.asked(wanted, reply)
    return wanted.folder


def hedging(lab: Lab) -> Path:
    """Cannot be read beyond 2 without commas, and sees all with them."""
    return limited(lab, "hedging", {"none": (2, HEDGE), "comma": (32, WRONG)})


def one_line(text: str) -> str:
    return " ".join(text.split())


def test_the_headline_of_a_run_is_the_same_at_every_door(lab: Lab) -> None:
    """It has what is known, and for the other condition the fact and the lower bound."""
    folder = limited(lab, "some", {"none": (8, WRONG), "comma": (4, CUT)})
    text = headline(read_run(folder))
    assert re.fullmatch(
        r"scripted/some counts exactly to \d+ symbols \(95 % interval \d+ to \d+\) on lab/ones "
        r"with separator=none\..* It is not known how far scripted/some counts "
        r"exactly on lab/ones with "
        r"separator=comma: all 60 failing replies were cut off; it is right to at least 4 "
        r"symbols\.",
        text,
    )
    known, unknown = re.split(r" (?=It is not known)", text)
    scored = one_line(lab.bench("score", folder).out)
    assert known in scored
    assert unknown in scored
    unknown += " Remedy: give replies more tokens with --max-tokens"
    assert unknown in one_line(lab.bench("leaderboard", folder, "-o", lab.out / "board.csv").out)
    assert unknown in html.unescape(report(lab, folder))
    run = load_run(folder)
    assert {known, text[len(known) + 1 :]} <= {one.sentence for one in run.findings}
    assert unknown.replace("--max-tokens", "max_tokens") in html.unescape(run._repr_html_())
    assert "separator=comma: > 4 (4 to > 32, limited by room)" in repr(run)
    assert "limited by room" in run._repr_html_()
    chart = run.plot().to_dict()
    assert "> 4 (4 to > 32, limited by room)" in json.dumps(chart["datasets"])


def test_conditions_with_one_cause_are_one_fact(lab: Lab) -> None:
    """With the sum of their replies; those with several have each their own."""
    both = headline(
        read_run(limited(lab, "both", {"none": (8, CUT), "comma": (4, CUT)})),
    )
    assert both == (
        "It is not known how far scripted/both counts exactly on lab/ones: all "
        "100 failing replies were "
        "cut off; it is right to at least 4 to 8 symbols."
    )
    other = headline(
        read_run(limited(lab, "other", {"none": (8, CUT), "comma": (0, RefusedError("no"))})),
    )
    assert other == (
        "It is not known how far scripted/other counts exactly on lab/ones with "
        "separator=none: all 40 "
        "failing replies were cut off; it is right to at least 8 symbols; with "
        "separator=comma: all 100 failing replies were refused."
    )


def of_limit(lab: Lab, limit: Limit) -> EffectiveLength:
    found = load_run(hedging(lab)).effective_length["separator=none"]
    assert found is not None
    return replace(found, limit=limit)


def test_several_causes_are_said_in_words(lab: Lab) -> None:
    """`mixed` is the word of files. Of many conditions their number is given."""
    mixed = of_limit(lab, Limit("mixed", 30, None, {Cause.ROOM: 10, Cause.FORM: 20}))
    assert mixed.note == "limited by several causes"
    labels = [f"separator={number}" for number in range(5)]
    estimates: dict[str, EffectiveLength | None] = dict.fromkeys(labels[:4], mixed)
    assert where_not_known(estimates, "symbols", 6) == (
        " under 4 conditions: 80 of 120 failing replies were not readable, 40 cut off; it is "
        "right to at least 2 symbols"
    )
    assert where_not_known({**estimates, labels[4]: None}, "symbols", 6).endswith(
        "; with separator=4: no sample is scored"
    )
    assert where_not_known(dict.fromkeys(["a=1, b=2", "a=1, b=3"]), "symbols", 6) == (
        " with a=1, b=2 and with a=1, b=3: no sample is scored"
    )


def test_replies_up_to_different_lengths_are_not_counted_together(lab: Lab) -> None:
    """Each has its fact; of many conditions no numbers are said."""
    limits = [Limit("room", 10 + up_to, up_to, {Cause.ROOM: 10}) for up_to in (20, 40, 60, 80)]
    estimates = {f"hint={limit.up_to}": of_limit(lab, limit) for limit in limits}
    two: dict[str, EffectiveLength | None] = dict(list(estimates.items())[:2])
    assert where_not_known(two, "symbols", 5) == (
        " with hint=20: 10 of 30 failing replies up to length 20 were cut off; it is right to at "
        "least 2 symbols; with hint=40: 10 of 50 failing replies up to length 40 were cut "
        "off; it is right to at least 2 symbols"
    )
    assert where_not_known({**estimates}, "symbols", 4) == (
        ": failing replies were cut off; it is right to at least 2 symbols"
    )


def test_the_page_does_not_say_that_a_limited_condition_sees_less_far(lab: Lab) -> None:
    """Nor that its area is smaller; it says what limits it."""
    folder = hedging(lab)
    section = section_of(folder)
    (effect,) = effects_of(section)
    assert (effect.moved, effect.shift, effect.further) == (False, 0, 0)
    assert moved_text(section.runs[0].run) == (
        "With separator comma instead of none, it is not known whether scripted/hedging counts "
        "exactly further: none is limited by form."
    )
    compared = compare_conditions(section.runs[0].run, "separator", ("none", "comma"))
    assert compared.length.p is None
    page = report(lab, folder)
    assert "What moved the breaking point most" not in page
    table = pairs_table(section, [effect])
    rows: list[dict[str, Any]] = [dict(zip(table.columns, one, strict=True)) for one in table.rows]
    (row,) = (one for one in rows if one["measure"] == "effective_length")
    sides = [[row[f"value_{side}_bound"], row[f"value_{side}"]] for side in ("second", "first")]
    assert sides == [[">", 2], [">", 32]]
    assert row["p_holm"] is None


def test_many_limited_changes_are_counted(lab: Lab) -> None:
    """In one sentence."""
    fails = {"none": (2, HEDGE), "space": (4, WRONG), "comma": (4, WRONG)}
    folders = [limited(lab, "a", fails), limited(lab, "b", dict.fromkeys(fails, (4, WRONG)))]
    section = section_of(*folders)
    moved = page_section_of(section, []).moved
    assert moved["scripted/a"] == (
        "For 2 changes of separator it is not known whether scripted/a counts "
        "exactly further: something "
        "else than sight limits a length."
    )
    assert moved["scripted/b"].startswith("No change of separator shows a difference")


def three(lab: Lab) -> list[Path]:
    """The first is limited under one of two conditions, and is right furthest under the other."""
    return [
        limited(lab, "part", {"none": (32, WRONG), "comma": (2, CUT)}),
        limited(lab, "near", {"none": (2, WRONG), "comma": (2, WRONG)}),
        limited(lab, "far", {"none": (8, WRONG), "comma": (8, WRONG)}),
    ]


def test_a_run_is_not_ranked_on_a_part_of_its_conditions(lab: Lab) -> None:
    """It comes last, and the reason is said; Holm's correction is for the one pair that is left."""
    folders = three(lab)
    ranking = rank_runs([*map(read_run, folders)])
    assert [one.name for one in ranking.runs] == ["scripted/far", "scripted/near", "scripted/part"]
    assert [one.is_ranked for one in ranking.runs] == [True, True, False]
    text = ranks(ranking)
    assert text == (
        "scripted/far has the longest effective length on lab/ones in the mean of 2 conditions; it "
        "counts exactly further than scripted/near (same rows; 1 not ranked)."
    )
    unknown = said(of_ranking(ranking, 0.05), "not known")
    assert unknown == (
        "It is not known how far scripted/part counts exactly on lab/ones with "
        "separator=comma: all 80 "
        "failing replies were cut off; it is right to at least 2 symbols."
    )
    alone = compare_runs(read_run(folders[2]), read_run(folders[1])).length.p
    assert [one.length.p for one in ranking.comparisons.values()] == [alone, None, None]
    done = lab.bench("compare", *folders, "-o", lab.out / "compared.csv", "--all-findings")
    assert text in one_line(done.out)
    assert f"{unknown} Remedy: give replies more tokens" in one_line(done.out)
    assert "Holm's correction for" not in done.out.partition("McNemar")[0]
    document = json.loads(lab.bench("compare", *folders, "--json").out)
    assert [one["ranked"] for one in document["runs"]] == [True, True, False]
    assert [pair["p_holm"] for pair in document["pairs"]] == [alone, None, None]
    with (lab.out / "compared.csv").open() as file:
        whole = [
            row
            for row in csv.DictReader(file)
            if (row["condition"], row["measure"]) == ("all", "effective_length")
        ]
    assert [bool(row["p_holm"]) for row in whole] == [True, False, False]
    assert [row["limited_by_second"] for row in whole] == ["sight", "room", "room"]
    cells = [
        [cell.strip() for cell in line.split("|")][1:-1]
        for line in done.out.splitlines()
        if "comparable" in line
    ]
    assert [row[4:] for row in cells] == [["–", "not comparable"]] * 2


def test_two_runs_say_under_which_condition_one_is_limited(lab: Lab) -> None:
    """In the terminal and in Python; without a p-value of the lengths."""
    part, _, far = three(lab)
    compared = RunComparison(compare_runs(read_run(part), read_run(far)), 0.05)
    assert compared.findings[0].sentence.startswith(
        "scripted/part and scripted/far cannot be compared on lab/ones (mean of 2 conditions): "
        "scripted/part is limited by room with separator=comma (all 80 failing replies were cut "
        "off)."
    )
    out = lab.bench("compare", part, far).out
    assert compared.findings[0].sentence in one_line(out)
    assert re.search(r"\| > 2 \(.*\), limited by room \|", out)
    whole = compared.table[compared.table["condition"] == "all"]
    assert whole["p_holm"].isna().all()


def test_of_runs_that_are_all_limited_each_has_its_own_fact(lab: Lab) -> None:
    """The fact of the first one is not said of all."""
    folders = [
        limited(lab, "a", {"none": (4, CUT)}),
        limited(lab, "b", {"none": (8, HEDGE)}),
        limited(lab, "c", {"none": (0, RefusedError("no"))}),
    ]
    ranking = rank_runs([*map(read_run, folders)])
    assert ranks(ranking) == ("None of the 3 runs has a known effective length on lab/ones.")
    found = [one for one in of_ranking(ranking, 0.05) if one.kind == "not known"]
    assert [one.sentence.partition(": ")[2] for one in found] == [
        "all 60 failing replies were cut off; it is right to at least 4 symbols.",
        "all 40 failing replies were not readable; it is right to at least 8 symbols.",
        "all 100 failing replies were refused.",
    ]


def test_the_published_table_has_a_median_of_what_is_known(lab: Lab) -> None:
    """None of one length; of several it is said how many conditions are in it."""
    one, two = (
        limited(lab, name, {"none": (8, WRONG), "space": fails, "comma": (4, CUT)})
        for name, fails in (("one", (8, CUT)), ("two", (8, WRONG)))
    )
    for folder, text in ((one, "–"), (two, ", range over 2 of 3 conditions ")):
        new, _ = run_rows(read_run(folder))
        cell = markdown(merge(new)).splitlines()[2].split(" | ")[3]
        assert text in cell
        assert (cell == "–") == (folder == one)


def test_a_leaderboard_of_one_limited_run_says_why(lab: Lab) -> None:
    """And what helps, as the page does."""
    folder = limited(lab, "thinks", {"none": (4, CUT)})
    done = lab.bench("leaderboard", folder, "-o", lab.out / "board.csv")
    note = (
        "It is not known how far scripted/thinks counts exactly on lab/ones: all "
        "60 failing replies were cut "
        "off; it is right to at least 4 symbols. Remedy: give replies more tokens with --max-tokens"
    )
    assert note in one_line(done.out)
    assert note in (lab.out / "board.html").read_text()


def test_equal_models_are_named(lab: Lab) -> None:
    """Two are no `all 2 runs`."""
    folders = [limited(lab, name, {"none": (8, WRONG)}) for name in "ab"]
    section = section_of(*folders)
    assert said(of_standing(section.standing), "ranks").startswith(
        "scripted/a and scripted/b have the same effective length on lab/ones, "
    )


def test_a_length_that_is_not_known_is_not_known_in_a_comparison(lab: Lab) -> None:
    """With few replies the interval is open at both ends; the median is no length then."""
    run = read_run(limited(lab, "many", {"none": (8, WRONG), "comma": (8, WRONG)}))
    few = lab.wanted(model="scripted/two", lengths=[15, 16], samples=3)
    lab.asked(few, lambda request: right(request) if "length=15|" in request.sample_id else WRONG)
    compared = compare_conditions(read_run(few.folder), "separator", ("none", "comma"))
    assert (compared.length.first, compared.length.second) == (None, None)
    assert compare_conditions(run, "separator", ("none", "comma")).length.first is not None
    done = lab.bench("compare", few.folder, "--axis", "separator=none,comma")
    lines = [line for line in done.out.splitlines() if "right to (85 %)" in line]
    assert sum(line.count("not known") for line in lines) == 2


def uneven(length: int) -> bool:
    return length in (2, 16, 32)


def test_pairs_without_a_single_threshold_are_no_part_of_the_family(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others have the p-values that they have without that model, also among many models."""

    def asked(name: str, is_right: Callable[[int], bool]) -> Path:
        wanted = lab.wanted(
            model=f"scripted/{name}", lengths=LENGTHS, samples=20, axes={"separator": ["none"]}
        )

        def reply(request: Request) -> str:
            length = int(request.sample_id.partition("|length=")[2].partition("|")[0])
            return right(request) if is_right(length) else WRONG

        lab.asked(wanted, reply)
        return wanted.folder

    folders = [asked("near", lambda length: length <= 2), asked("far", lambda length: length <= 8)]
    folders.append(asked("uneven", uneven))
    section = section_of(*folders)
    alone = compare_runs(read_run(folders[1]), read_run(folders[0])).length.p
    for most in (12, 2):
        monkeypatch.setattr("eyechart.harness.analysis.ranking.standing.MOST_IN_PAIRS", most)
        found = standing([(one.name, one.run) for one in section.runs])
        assert (found.tests, found.apart) == (1, 0)
        p_values = {
            (one.first, one.second): one.length.p
            for one in found.ranking.comparisons.values()
            if one.length.p
        }
        assert p_values == {("scripted/far", "scripted/near"): alone}
        table = models_table(section, found)
        shown = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
        without = [row["found"] for row in shown if row["p (Holm)"] == "–"]
        assert without == ["not comparable"] * (len(shown) - 1)


def test_the_page_explains_a_certified_length(lab: Lab) -> None:
    """It is no tested length any more."""
    meaning = report(lab, hedging(lab)).partition('id="meaning"')[2].partition("</details>")[0]
    assert "the length is what the lines certify" in meaning
    assert "tested length" not in meaning


def test_what_helps_a_run_that_is_not_complete(lab: Lab) -> None:
    """After a stop by the first replies the same command stops again."""
    lab.bench_ask("--model", lab.fake(lambda _: HEDGE))
    warned = lab.bench("leaderboard", lab.the_run(), "-o", lab.out / "board.csv").err
    assert "the same command with --keep-going asks them" in warned
    assert "again" not in warned
