"""Sentences about a comparison."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from eyechart.harness.analysis.comparison.comparison import compare_runs
from eyechart.harness.analysis.comparison.comparison_text import (
    area_text,
    factor_span,
    factor_text,
    verdict_text,
)
from eyechart.harness.analysis.comparison.length_difference import LengthDifference
from eyechart.harness.analysis.comparison.paired_curves import PairedArea
from eyechart.harness.analysis.comparison.signed_text import (
    difference_text,
    points_text,
    printed,
    signed,
    signed_end,
    with_ends,
)
from eyechart.harness.analysis.length.interval import Bound
from eyechart.harness.analysis.samples.judged_run import read_run
from eyechart.harness.report.ranking.comparison_columns import area_rows, factor_cell
from eyechart.providers.base import Request
from tests.conftest import Lab, right
from tests.test_analysis_comparison import run, wrong_from

MOST_WORDS = 25
"""Words of one sentence, at most."""


def test_who_sees_further_is_named_first(lab: Lab) -> None:
    """Whichever run is given first."""
    sharp = read_run(run(lab, "scripted/sharp", samples=40))
    blind = read_run(run(lab, "scripted/blind", wrong_from(5), samples=40))
    for compared in (compare_runs(blind, sharp), compare_runs(sharp, blind)):
        sentence = verdict_text(compared)
        assert sentence.startswith(
            "scripted/sharp counts exactly further than scripted/blind on lab/ones: "
            "to more than 5 symbols "
            "against "
        )
        assert sentence.endswith(
            "Accuracy differs at length 5 (p < 0.001, exact McNemar with Holm's correction for 2 "
            "tests)."
        )


def test_no_difference_says_what_could_have_been_found(lab: Lab) -> None:
    """Both are right everywhere, so their lengths are not known."""
    first, second = (read_run(run(lab, f"scripted/{name}", samples=4)) for name in "ab")
    sentence = verdict_text(compare_runs(first, second))
    assert sentence.startswith(
        "It is open whether scripted/a and scripted/b differ on lab/ones. Both effective lengths "
        "lie beyond the longest line. Area 1.00 against 1.00"
    )
    assert ". With 4 pairs and 2 tests no difference can reach p < 0.05, however large." in sentence


@pytest.mark.parametrize(
    ("pairs", "shown"),
    [
        (6, "no difference can reach p < 0.05, however large"),
        (7, "even a fall from 90 % to 0 % may be missed"),
        (9, "a fall from 90 % to 7 % can be shown"),
    ],
)
def test_what_pairs_can_show(lab: Lab, pairs: int, shown: str) -> None:
    """Where all pairs but none of the other side are right, 7 reach p < 0.05 in two tests."""
    first, second = (read_run(run(lab, f"scripted/{name}", samples=pairs)) for name in "ab")
    said = verdict_text(compare_runs(first, second))
    assert f"With {pairs} pairs and 2 tests {shown}" in said
    third = read_run(run(lab, "scripted/c", lambda _: "Final answer: 9", samples=pairs))
    differ = "Accuracy differs at lengths 3, 5" in verdict_text(compare_runs(first, third))
    assert differ == (not shown.startswith("no"))


def test_a_sentence_has_the_differences_of_its_table(lab: Lab) -> None:
    """A difference is first minus second, and a factor first over second. If the second model
    counts exactly further, the sentence begins with it, and says whose the factor and areas are.
    """
    sharp = run(lab, "scripted/sharp", right)
    blind = run(lab, "scripted/blind", lambda _: "Final answer: 9")
    there = compare_runs(read_run(sharp), read_run(blind))
    back = compare_runs(read_run(blind), read_run(sharp))
    assert verdict_text(there).startswith(
        "scripted/sharp counts exactly further than scripted/blind"
    )
    start, _, end = verdict_text(there).partition(factor_text(there.length))
    assert "Area 1.00 against 0.00, difference +1.00 (95 % interval " in end
    of = f"The length of scripted/blind is {factor_span(back.length)} times that of scripted/sharp"
    said = verdict_text(back)
    assert said.startswith(f"{start.removesuffix(', ')}. {of} (95 %). Area of scripted/blind 0.00 ")
    (cells,) = area_rows(back.area)
    assert f"0.00 against 1.00 of scripted/sharp, difference {cells[-1].split()[0]} (95 %" in said
    assert factor_span(back.length) in factor_cell(back.length)


@pytest.mark.parametrize("model", [None, "m"], ids=["runs", "conditions"])
def test_the_factor_of_a_second_side_that_is_ahead(lab: Lab, model: str | None) -> None:
    """As the table has it, with its interval, and with the names it is of."""
    first, second = (read_run(run(lab, f"scripted/{name}", wrong_from(5))) for name in "ab")
    ends = np.array([[-3.0], [-1.0]])
    length = LengthDifference(Bound("=", 4.0), Bound("=", 26.0), -2.7, -3, -1, True, ends, 0.001)
    compared = replace(compare_runs(first, second), length=length, model=model)
    assert factor_cell(length) == "0.154 times (0.125 to 0.500)"
    word = "with" if model else "of"
    assert (
        f"to 26 symbols against 4. The length {word} scripted/a is 0.154 times that {word} "
        "scripted/b (95 % interval 0.125 to 0.500). Area "
    ) in verdict_text(compared)


def test_a_larger_area_is_called_that(lab: Lab) -> None:
    """A side that is worse everywhere but never reaches the threshold anywhere sees no less far."""
    none = run(lab, "scripted/a", lambda _: "Final answer: 9", samples=40)
    half = run(
        lab,
        "scripted/b",
        lambda request: (
            right(request) if request.sample_id.endswith(("0", "2", "4")) else "Final answer: 9"
        ),
        samples=40,
    )
    sentence = verdict_text(compare_runs(read_run(none), read_run(half)))
    assert sentence.startswith(
        "scripted/a and scripted/b differ on lab/ones, and scripted/b has the larger area. Area "
        "0.00 against 0.3"
    )
    assert ", difference -0.3" in sentence
    assert ", p 0.001). Both effective lengths lie below the shortest line" in sentence


@pytest.mark.parametrize(
    ("wrong", "lengths", "p"),
    [
        ({5: 10}, "length 5", "p 0.004"),
        ({3: 10, 5: 10}, "lengths 3, 5", "p 0.004"),
        ({3: 10, 5: 8}, "lengths 3, 5", "p 0.004 to 0.008"),
    ],
)
def test_the_p_values_of_the_lines(lab: Lab, wrong: dict[int, int], lengths: str, p: str) -> None:
    """The sentence has the least and the largest p of the lines, and one number if they are equal.
    `wrong`: length -> number of rows that the second model has wrong.
    """
    first = read_run(run(lab, "scripted/a", samples=10))

    def fails(request: Request) -> str:
        sample = request.sample_id
        is_wrong = any(
            f"length={length}" in sample and f"index={index}" in sample
            for length, rows in wrong.items()
            for index in range(rows)
        )
        return "Final answer: 9" if is_wrong else right(request)

    second = read_run(run(lab, "scripted/b", fails, samples=10))
    said = verdict_text(compare_runs(first, second))
    assert f"Accuracy differs at {lengths} ({p}, exact McNemar" in said


def test_two_lines_with_one_nominal_length_are_told_apart(lab: Lab) -> None:
    """Runs that were asked each other's lines have such ones; the sentence names both bands."""
    lab.with_bands()
    runs = []
    for name, script in (("a", right), ("b", lambda _: "Final answer: 99")):
        for lengths in ([2, 8, 32], [6, 8, 10]):
            model, axes = f"scripted/{name}", {"separator": ["none"]}
            wanted = lab.wanted(model=model, lengths=lengths, samples=20, axes=axes)
            lab.asked(wanted, script)
        runs.append(read_run(wanted.folder))
    said = verdict_text(compare_runs(*runs))
    assert "Accuracy differs at lengths 2, 6, 8 (5–16), 8 (7–8), 10, 32 (p < 0.001" in said


def test_lines_may_differ_where_areas_do_not(lab: Lab) -> None:
    """One model fails on one length, the other on another: there is no single threshold."""
    one = run(lab, "scripted/a", wrong_from(0, length=3))
    other = run(lab, "scripted/b", wrong_from(0, length=5))
    sentence = verdict_text(compare_runs(read_run(one), read_run(other)))
    assert sentence.startswith("scripted/a and scripted/b differ on lab/ones at single lengths. ")
    assert "at least one side has no single threshold" in sentence
    assert ". Accuracy differs at lengths 3, 5 (p < 0.001" in sentence


@pytest.mark.parametrize(
    ("middle", "low", "high", "text"),
    [
        (1.0, 0.5, 1.5, "a factor of 2.00 (95 % interval 1.41 to 2.83)"),
        (1.0, 0.5, math.inf, "a factor of 2.00 (95 %: at least 1.41)"),
        (-1.0, -math.inf, -0.5, "a factor of 0.500 (95 %: at most 0.707)"),
        (math.inf, 0.5, math.inf, "a factor of at least 1.41 (95 %)"),
        (-math.inf, -math.inf, -0.5, "a factor of at most 0.707 (95 %)"),
    ],
)
def test_a_factor_and_what_limits_it(middle: float, low: float, high: float, text: str) -> None:
    """Octaves are written as factors; an end that is not limited is left open, with the words of
    the table.
    """
    length, ends = Bound("=", 10.0), np.array([[low], [high]])
    found = LengthDifference(length, length, middle, low, high, True, ends, 1.0)
    assert factor_text(found) == text
    assert factor_span(found) in factor_cell(found)
    assert factor_span(found) in text


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (-0.5, 0.5, "). A factor of 1.6 would have been found with a power of 80 %"),
        (-0.5, math.inf, ": a factor of at least 0.707 (95 %). Area"),
    ],
)
def test_what_would_have_been_found(lab: Lab, low: float, high: float, text: str) -> None:
    """A factor is named where the interval has two ends, from which it follows."""
    first, second = (read_run(run(lab, f"scripted/{name}", wrong_from(5))) for name in "ab")
    compared = compare_runs(first, second)
    length, ends = Bound("=", 3.0), np.array([[low], [high]])
    octaves = 0.0 if math.isfinite(high) else math.inf
    difference = LengthDifference(length, length, octaves, low, high, True, ends, 1.0)
    assert text in verdict_text(replace(compared, length=difference), margin=None)


def test_the_change_names_its_interval_and_margin(lab: Lab) -> None:
    """First minus second, as in the table."""
    first, second = (
        read_run(folder)
        for folder in (run(lab, "scripted/a"), run(lab, "scripted/b", wrong_from(5)))
    )
    compared = compare_runs(first, second)
    assert compared.change(0.9) == "equivalent"
    sentence = verdict_text(compared, 0.9)
    assert ". The difference counts as none: their areas differ by +" in sentence
    said = "(90 % interval, scripted/a minus scripted/b). The margin is 90 points, a factor of "
    assert f"{said}1.58 in length over these lines." in sentence
    assert "counts as none" not in verdict_text(compared, 0.05)


def test_equal_runs_are_equivalent_in_few_words(lab: Lab) -> None:
    """The factor, which may be wide, says how exactly the lengths are known."""
    first, second = (
        read_run(run(lab, f"scripted/{name}", wrong_from(30), samples=60)) for name in "ab"
    )
    sentence = verdict_text(compare_runs(first, second))
    assert sentence.startswith(
        "scripted/a and scripted/b are equivalent on lab/ones. Their areas differ by -"
    )
    assert ". Their effective lengths differ by a factor of 1.00 (" in sentence
    assert "power" not in sentence
    assert max(len(one.split()) for one in sentence.split(". ")) <= MOST_WORDS


def test_one_condition_without_a_limit_is_counted(lab: Lab) -> None:
    """The mean over the conditions has none then, and the sentence says where."""

    def fails(request: Request) -> str:
        late = "separator=comma" in request.sample_id and "length=5" in request.sample_id
        return "Final answer: 9" if late else right(request)

    runs = []
    for name in "ab":
        wanted = lab.wanted(model=f"scripted/{name}", samples=40)
        lab.asked(wanted, fails)
        runs.append(read_run(wanted.folder))
    sentence = verdict_text(compare_runs(runs[0], runs[1]))
    assert "as they may lie beyond the tested lines under 1 of 2 conditions" in sentence
    assert "unknown" not in sentence


def test_what_a_line_can_show_goes_by_the_line_with_most_pairs(lab: Lab) -> None:
    """A line with two pairs can show nothing, and others can."""
    first = read_run(run(lab, "scripted/a", samples=60))
    few = lab.wanted(model="scripted/b", samples=60, lengths=[5], axes={"separator": ["none"]})
    lab.asked(few)
    lab.asked(lab.wanted(model="scripted/b", samples=2, axes={"separator": ["none"]}))
    sentence = verdict_text(compare_runs(first, read_run(few.folder)))
    assert "With the 60 pairs of the largest line and 2 tests a fall from 90 % to " in sentence


def test_a_difference_has_a_sign_unless_it_rounds_to_nothing() -> None:
    """Nothing has a plus."""
    assert [signed(value) for value in (3.4, -3.4, -0.4, 0.4)] == ["+3", "-3", "+0", "+0"]
    assert [signed(value, 1) for value in (-0.04, -0.06)] == ["+0.0", "-0.1"]


def test_the_end_of_an_interval_keeps_its_sign() -> None:
    """An end of +0.00 would say that 0 lies inside, though the difference is significant."""
    area = PairedArea(0.45, 0.48, (-0.05, -0.000495), (-0.045, -0.005), 0.045)
    ends = "(95 % interval -0.05 to -0.00, p 0.045)"
    assert area_text(area) == f"area 0.45 against 0.48, difference -0.03 {ends}"
    assert area_text(area.swapped).endswith("+0.03 (95 % interval +0.00 to +0.05, p 0.045)")
    assert area_rows(area)[0][-1] == "-0.03 (-0.05 to -0.00)"
    assert [signed_end(value, 2) for value in (-1e-9, 0.0, 0.0004)] == ["+0.00", "+0.00", "+0.00"]


def test_the_page_and_the_terminal_write_the_same_difference() -> None:
    """The page has the minus sign of print; the end of an interval keeps its sign on both."""
    assert points_text(-0.03, (-0.05, -0.004)) == "-3 (-5 to -0)"
    assert printed(points_text(-0.03, (-0.05, -0.004))) == "\u22123 (\u22125 to \u22120)"
    assert difference_text(-0.003, (-0.03, 0.02), 2) == "+0.00 (-0.03 to +0.02)"


def test_a_difference_keeps_its_sign_where_its_interval_leaves_out_0() -> None:
    """Else it would lie outside the interval."""
    assert with_ends(-0.003, (-0.006, -0.001), 2) == ("-0.00", "-0.01", "-0.00")
    assert with_ends(-0.003, (-0.03, 0.02), 2) == ("+0.00", "-0.03", "+0.02")
