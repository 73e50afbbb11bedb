"""Several runs of one task, and conditions of one run, compared as one family."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from eyechart.harness.analysis.comparison.comparison import compare_runs
from eyechart.harness.analysis.comparison.comparison_text import verdict_text
from eyechart.harness.analysis.comparison.family import corrected, in_family, longest, rank_runs
from eyechart.harness.analysis.comparison.length_difference import (
    fitted_side,
    sides_difference,
)
from eyechart.harness.analysis.comparison.paired_curves import holm
from eyechart.harness.analysis.comparison.power import FROM, smallest_fall
from eyechart.harness.analysis.findings.ranks import _ranks
from eyechart.harness.analysis.findings.right_to import correction
from eyechart.harness.analysis.length.interval import Bound
from eyechart.harness.analysis.length.limit import MIXED, Limit
from eyechart.harness.analysis.samples.judged_run import JudgedRun, read_run
from eyechart.harness.errors import CompareError
from eyechart.harness.settings.judging import THRESHOLD
from eyechart.harness.spec import Settings
from eyechart.providers.base import BadRequestError, Request
from tests.conftest import DEFAULTS, Lab, right
from tests.curves import length_difference
from tests.sentences import headline, ranks
from tests.simulated import logistic, simulated

LENGTHS = [2, 4, 8, 16]


def right_to(length: int, separator: str = "") -> Callable[[Request], str]:
    """Right up to `length`; with another separator than `separator` always."""

    def script(request: Request) -> str:
        fields = dict(part.split("=") for part in request.sample_id.split("|")[1:])
        wrong = int(fields["length"]) > length and separator in ("", fields["separator"])
        return "Final answer: 99" if wrong else right(request)

    return script


def one_of_two(request: Request) -> str:
    """Right in every second row, at all lengths."""
    return right(request) if request.sample_id.endswith(("0", "2", "4")) else "Final answer: 99"


def run(
    lab: Lab,
    name: str,
    script: Callable[[Request], str],
    *,
    separators: tuple[str, ...] = ("none",),
    settings: Settings = DEFAULTS,
    lengths: Sequence[int] = LENGTHS,
    samples: int = 20,
) -> JudgedRun:
    """A run of `ONES`, with so many samples a line."""
    wanted = lab.wanted(
        model=f"scripted/{name}",
        lengths=lengths,
        samples=samples,
        axes={"separator": list(separators)},
        settings=settings,
    )
    lab.asked(wanted, script)
    return read_run(wanted.folder)


def slips(request: Request) -> str:
    """Right up to 8, but for one answer at that length."""
    one = "length=8|" in request.sample_id and request.sample_id.endswith("=7")
    return "Final answer: 99" if one else right_to(8)(request)


class TestFamily:
    """Which p-values are corrected together."""

    def test_lengths_are_corrected_over_all_pairs(self) -> None:
        """By Holm's method; a difference that is no longer significant is not shown."""
        far, near = simulated(logistic(80), 20), simulated(logistic(34), 20, 1)
        one = length_difference(far, near, THRESHOLD)
        assert one.further == 1
        assert one.p is not None
        assert 0.002 < one.p < 0.05
        same = corrected([one] * 40)
        assert {difference.p for difference in same} == {40 * one.p}
        assert {difference.further for difference in same} == {0}
        assert corrected([one]) == [one]
        assert corrected([one], 40)[0].p == pytest.approx(40 * one.p)

    def test_holm_of_some_tests_of_a_family(self) -> None:
        """As if the others had larger p-values."""
        assert holm([0.01, 0.02], 4) == [0.04, 0.06]
        assert holm([0.01, 0.02, 1, 1])[:2] == [0.04, 0.06]

    def test_lines_are_corrected_over_all_comparisons(self, lab: Lab) -> None:
        """Their number is that of all lines together."""
        alone = compare_runs(run(lab, "a", right_to(16)), run(lab, "b", right_to(4)))
        both = in_family([alone, alone])
        before = [p for _, p in alone.lines]
        after = [p for _, p in both[0].lines]
        assert min(after) == pytest.approx(2 * min(before))
        assert [p for _, p in both[1].lines] == after

    @pytest.mark.parametrize(("sees", "said"), [(4, "Holm's correction for "), (16, "pairs and ")])
    def test_the_sentence_has_the_number_of_tests_of_the_correction(
        self, lab: Lab, sees: int, said: str
    ) -> None:
        """And the fall that so many tests can show."""
        alone = compare_runs(run(lab, "a", right_to(16)), run(lab, "b", right_to(sees)))
        count, pairs = len(alone.lines), max(line.n for line, _ in alone.lines)
        family = in_family([alone] * 3)[0]
        assert f"{said}{count} tests" in verdict_text(alone, None)
        assert "this pair alone" not in verdict_text(alone, None)
        alone_text = "Intervals are those of this pair alone"
        assert alone_text in verdict_text(family, None)
        length = replace(family.length, limits=(Limit(MIXED), Limit()))
        assert alone_text not in verdict_text(replace(family, length=length), None)
        assert f"{said}{3 * count} tests of all compared runs" in verdict_text(family, None)
        assert f"{said}{3 * count} tests of all compared runs" in verdict_text(family.swapped, None)
        if sees > 4:
            fall = smallest_fall(pairs, 3 * count)
            assert fall is not None
            assert fall != smallest_fall(pairs, count)
            assert f"from 90 % to {100 * (FROM - fall):.0f} %" in verdict_text(family, None)

    def test_exchanged_sides(self, lab: Lab) -> None:
        """All numbers of a comparison change their sign, or their side."""
        first, second = run(lab, "a", right_to(16)), run(lab, "b", right_to(4))
        forth, back = compare_runs(first, second), compare_runs(second, first)
        exchanged = forth.swapped
        assert (exchanged.first, exchanged.second) == (back.first, back.second)
        assert exchanged.length.further == back.length.further == -1
        assert exchanged.length.low == pytest.approx(back.length.low)
        assert exchanged.area == back.area
        assert [line for line, _ in exchanged.lines] == [line for line, _ in back.lines]
        assert exchanged.change(0.05) == back.change(0.05) == "better"


class TestRanking:
    """Three runs and more."""

    def test_the_longest_comes_first(self, lab: Lab) -> None:
        """Whatever the order of the command; the first of that is the reference."""
        runs = [run(lab, name, right_to(n)) for name, n in (("a", 4), ("b", 16), ("c", 4))]
        ranking = rank_runs(runs)
        assert [one.name for one in ranking.runs] == ["scripted/b", "scripted/a", "scripted/c"]
        assert ranking.runs[ranking.reference].name == "scripted/a"
        assert list(ranking.comparisons) == [(0, 1), (0, 2), (1, 2)]
        assert [ranking.further_than(place) for place in range(3)] == [[1, 2], [], []]
        others = {
            ranking.runs[place].name: comparison.change(0.05)
            for place, comparison in ranking.against_reference
        }
        assert others == {"scripted/b": "better", "scripted/c": "equivalent"}
        said = ranks(ranking)
        assert said.startswith("scripted/b has the longest effective length on lab/ones, more than")
        assert said.endswith(
            "it counts exactly further than each of the 2 others (same rows, "
            "Holm's correction for 3 pairs)."
        )

    def test_a_length_beyond_the_lines_may_be_longer(self, lab: Lab) -> None:
        """So what is longest is not known where a run was asked short lines only."""
        runs = [run(lab, "a", right_to(16)), run(lab, "b", right_to(99), lengths=LENGTHS[:2])]
        ranking = rank_runs(runs)
        assert "has the longest known effective length" in ranks(ranking)

    def test_nothing_shown_is_said(self, lab: Lab) -> None:
        """Equal runs."""
        ranking = rank_runs([run(lab, name, right_to(4)) for name in "abc"])
        said = ranks(ranking)
        assert said.startswith(
            "scripted/a, scripted/b and scripted/c have the same effective length on lab/ones, "
        )
        assert "; no difference between them is shown (same rows, Holm's" in said
        assert {one.length.p for one in ranking.comparisons.values()} == {1.0}

    def test_a_longer_length_alone_shows_nothing(self, lab: Lab) -> None:
        """One wrong answer of twenty makes it a little shorter."""
        runs = [
            run(lab, name, script)
            for name, script in (("a", right_to(8)), ("b", slips), ("c", slips))
        ]
        ranking = rank_runs(runs)
        assert ranks(ranking).startswith("scripted/a has the longest effective length on")
        assert "it is not shown to count exactly further than any of the 2 others" in ranks(ranking)

    def test_equal_ones_are_named_together(self, lab: Lab) -> None:
        """Two of three, or four of five."""
        runs = [run(lab, name, right_to(n)) for name, n in (("a", 16), ("b", 2), ("c", 16))]
        assert ranks(rank_runs(runs)).startswith(
            "scripted/a and scripted/c cannot be ordered on lab/ones: their effective lengths lie "
            "beyond the longest line asked; they count exactly further than scripted/b (same rows, "
        )
        known = _ranks(rank_runs(runs), [{2}, set(), set()], tests=3, unpaired=0)
        assert "; only scripted/a counts exactly further than scripted/b (same" in str(known)
        more = [run(lab, name, right_to(16)) for name in "de"]
        assert ranks(rank_runs([*runs, *more])).startswith("4 runs cannot be ordered ")
        below = [run(lab, name, right_to(1)) for name in "fg"]
        assert ranks(rank_runs(below)) == (
            "scripted/f and scripted/g cannot be ordered on lab/ones: their effective lengths lie "
            "below the shortest line asked (same rows)."
        )
        same = [run(lab, name, right_to(4)) for name in "hi"]
        assert ranks(rank_runs([*same, *below])).startswith(
            "scripted/h and scripted/i have the longest effective length on lab/ones, "
        )

    def test_some_are_named(self, lab: Lab) -> None:
        """Those that are shown to see less far."""
        scripts = (("a", right_to(8)), ("b", slips), ("c", right_to(2)))
        runs = [run(lab, name, script) for name, script in scripts]
        said = ranks(rank_runs(runs))
        assert (
            "it counts exactly further than scripted/c, and is not shown to "
            "count exactly further than 1 other" in said
        )

    def test_only_conditions_that_all_have(self, lab: Lab) -> None:
        """Without one there is nothing to rank."""
        both = ("none", "comma")
        runs = [
            run(lab, "a", right_to(16), separators=both),
            run(lab, "b", right_to(8), separators=both),
            run(lab, "c", right_to(2), separators=("comma",)),
        ]
        ranking = rank_runs(runs)
        assert [condition.label for condition in ranking.conditions] == ["separator=comma"]
        for comparison in ranking.comparisons.values():
            assert len(comparison.conditions) == 1
        other = run(lab, "d", right_to(2), separators=("space",))
        with pytest.raises(CompareError, match="the 4 runs have no condition in common"):
            rank_runs([*runs, other])

    def test_several_conditions_are_ranked_by_their_mean(self, lab: Lab) -> None:
        """And the sentence says so."""
        both = ("none", "comma")
        runs = [
            run(lab, name, right_to(n), separators=both)
            for name, n in (("a", 2), ("b", 16), ("c", 4))
        ]
        assert " in the mean of 2 conditions; it counts exactly further" in ranks(rank_runs(runs))

    def test_runs_of_one_model_are_named_by_what_differs(self, lab: Lab) -> None:
        """Their settings."""
        runs = [
            run(lab, "a", right_to(4), settings=Settings(temperature=temperature))
            for temperature in (0.0, 0.5, 1.0)
        ]
        assert {one.name for one in rank_runs([*runs, run(lab, "b", right_to(2))]).runs} == {
            *(f"scripted/a (temperature={temperature})" for temperature in (0.0, 0.5, 1.0)),
            "scripted/b",
        }


class TestSentence:
    """What a single run found."""

    def test_one_condition(self, lab: Lab) -> None:
        """Its length with the interval."""
        said = headline(run(lab, "a", right_to(4)))
        assert said.startswith("scripted/a counts exactly to ")
        assert ") on lab/ones" in said
        assert " symbols (95 % interval " in said

    @pytest.mark.parametrize(
        ("script", "beyond"),
        [
            (one_of_two, r"less than 2 symbols \(95 % interval < 2 to \d"),
            (right, r"more than 8 symbols \(95 % interval \d to > 8\)"),
        ],
        ids=["below", "above"],
    )
    def test_beyond_an_end_of_the_lines_the_interval_begins_or_ends_there_too(
        self, lab: Lab, script: Callable[[Request], str], beyond: str
    ) -> None:
        """`less than 2 (at most 5)` would read as a contradiction."""
        said = headline(run(lab, "a", script, lengths=[2, 4, 8], samples=6))
        assert re.match(f"scripted/a counts exactly to {beyond}", said), said
        assert "not sure" not in said  # the table says it

    def test_answers_that_count_have_three_lengths(self, lab: Lab) -> None:
        """As far as they say more than the exact one."""

        def near(request: Request) -> str:
            number = int(right(request).rpartition(" ")[2])
            return f"Final answer: {number + (number > 30)}"  # one too many, and in order

        said = headline(run(lab, "a", near, lengths=[10, 20, 40, 80], samples=12))
        begins = r"( \(95 % interval from \d+\))?"
        assert re.fullmatch(
            r"scripted/a counts exactly to \d+ symbols \(95 % interval .*\) on lab/ones, "
            rf"within 5 % beyond 80, the longest tested{begins}, and distinguishes rows that "
            r"differ by a fifth, beyond \d+, the longest pair tested\.",
            said,
        )

    def test_answers_that_are_near_again_are_said(self, lab: Lab) -> None:
        """A number rounded to tens is off by 16 % at 31, and by 1.5 % at 310."""

        def rounded(request: Request) -> str:
            number = int(right(request).rpartition(" ")[2])
            return f"Final answer: {number if number < 25 else (number + 6) // 10 * 10}"

        lengths = [10, 20, 31, 41, 51, 160, 310]
        said = headline(run(lab, "a", rounded, lengths=lengths, samples=20))
        assert re.search(r"within 5 % to \d+ \(.*\) and again beyond \d+,", said), said

    def test_the_default_is_the_headline(self, lab: Lab) -> None:
        """The longest of several is only the longest seen, and is compared with the others."""
        separators = ("none", "space", "comma")
        said = headline(run(lab, "a", right_to(2, "none"), separators=separators))
        assert said.startswith("scripted/a counts exactly to ")
        assert (
            "; the longest length seen under 3 conditions is more than 16 symbols, with "
            "separator=space, and as long with separator=comma. Tests show that it is longer than"
        ) in said
        assert "Tests show that it is longer than with 1 of the 2 other conditions" in said
        assert said.endswith("(same rows, Holm's correction for 3 pairs).")

    def test_several_of_equal_length_are_counted(self, lab: Lab) -> None:
        """Where the default is one of them, it is the only one that is named."""
        said = headline(run(lab, "a", right_to(4), separators=("none", "space", "comma")))
        assert (
            " on lab/ones with separator=none, the default, and as far under the 2 other "
            "conditions. No difference"
        ) in said

    def test_without_the_default_the_longest_is_one_that_was_seen(self, lab: Lab) -> None:
        """Nothing is the headline, unless all lengths are equal: then none is the longest."""
        script = right_to(2, "space")
        said = headline(run(lab, "a", script, separators=("space", "comma")))
        assert said.startswith(
            "The longest length seen under 2 conditions by scripted/a on lab/ones is "
        )
        said = headline(run(lab, "b", right_to(4), separators=("space", "comma")))
        assert said.startswith("scripted/b counts exactly to ")
        assert " on lab/ones with separator=space, and as far with separator=comma. No" in said

    def test_no_difference(self, lab: Lab) -> None:
        """Is said to be none."""
        said = headline(run(lab, "a", right_to(4), separators=("none", "comma")))
        assert "No difference from the other condition is shown (same rows)." in said

    @pytest.mark.parametrize("separators", [("none",), ("none", "comma")])
    def test_few_replies_show_nothing(self, lab: Lab, separators: tuple[str, ...]) -> None:
        """If the interval is open at both ends, no length is said: it is not known."""
        few: dict[str, Any] = {"separators": separators, "lengths": [15, 16], "samples": 3}
        said = headline(run(lab, "a", right_to(15), **few))
        assert said == (
            "It is not known how far scripted/a counts exactly on lab/ones: with "
            "so few replies the 95 % "
            "interval is < 15 to > 16."
        )

    def test_all_beyond_the_longest_line(self, lab: Lab) -> None:
        """Nothing is the longest."""
        said = headline(run(lab, "a", right, separators=("none", "comma")))
        assert said.startswith("scripted/a counts exactly to more than 16 symbols on lab/ones")
        assert said.endswith(
            " under both conditions. With separator=none it distinguishes rows that differ by "
            "a fifth, beyond 16, the longest pair tested."
        )

    def test_conditions_that_are_not_shown_do_not_count(self, lab: Lab) -> None:
        """The sentence is about those above it."""
        judged = run(lab, "a", right_to(2, "none"), separators=("none", "comma"))
        (none, _) = judged.conditions
        assert headline(judged, conditions=[none]).startswith("scripted/a counts exactly to ")

    def test_controls_are_left_out(self, lab: Lab) -> None:
        """A row without an odd symbol shows nothing."""
        task = ("--task", "copying/first_last", "--lengths", "10,20", "--samples", "4")
        done = lab.bench("run", *task, "--model", lab.fake(lambda _: "1"), "--out", lab.out)
        assert done.code == 0
        said = headline(read_run(lab.the_run()))
        assert said == (
            "fake/model copies exactly to less than 10 symbols on "
            "copying/first_last under both conditions (controls are left out)."
        )

        def first_only(request: Request) -> str:
            wrong = "position=last" in request.sample_id
            return "no" if wrong else f"Final answer: {'01'['odd=absent' in request.sample_id]}"

        lab.bench_ask(*task, "--model", lab.fake(first_only), "--out", lab.out, "--fresh")
        said = headline(read_run(lab.the_run()))
        assert said.endswith("(same rows; controls are left out).")

    def test_nothing_scored(self, lab: Lab) -> None:
        """Nothing is known."""
        wanted = lab.wanted(lab.plain)
        lab.asked(wanted, lambda _: BadRequestError("no"))
        assert headline(read_run(wanted.folder)) == (
            "No sample of lab/plain is scored, so it is not known how far scripted/test is right."
        )

    def test_lengths_in_words(self) -> None:
        """With what they are bounds of."""
        bounds = Bound("<", 5), Bound("=", 29), Bound(">", 500)
        assert [bound.counted("symbols") for bound in (*bounds, Bound(">", 1))] == [
            "less than 5 symbols",
            "29 symbols",
            "more than 500 symbols",
            "more than 1 symbol",
        ]
        assert longest(bounds) == 2
        assert longest([Bound("=", 500), Bound(">", 500)]) == 1
        assert longest([Bound("=", 5), Bound("=", 5)]) == 0


def test_many_equal_runs_are_rarely_told_apart() -> None:
    """Twenty families of five equal models: the best is shown to count exactly further in
    few of them.
    """
    false = 0
    for seed in range(20):
        curves = [simulated(logistic(60), 20, 100 * seed + place) for place in range(5)]
        sides = [fitted_side(curve, THRESHOLD) for curve in curves]
        differences = corrected(
            [
                sides_difference(one, other)
                for place, one in enumerate(sides)
                for other in sides[:place]
            ]
        )
        false += any(difference.further for difference in differences)
        assert all(0 <= difference.p <= 1 for difference in differences if difference.p is not None)
    assert false <= 3


def test_thousands_of_pairs_have_a_comma() -> None:
    """As all numbers of sentences have."""
    assert correction(7626, 7356) == (
        "unpaired: other rows in 7,356 of 7,626 pairs, Holm's correction for 7,626 pairs"
    )


def test_few_pairs_are_said_of_three_runs_too(lab: Lab) -> None:
    """With the names of the runs, each once."""
    folders = [run(lab, name, right_to(8), samples=2).folder for name in "abc"]
    assert "The pairs are few (not sure: 2 rows)" in lab.bench("compare", *folders[:2]).out
    printed = " ".join(lab.bench("compare", *folders, "--all-findings").out.split())
    assert "scripted/a, scripted/b and scripted/c: The pairs are few (not sure: 2 rows)" in printed
