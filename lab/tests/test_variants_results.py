"""What the seeds of a study say, its sentences, and its page."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eyechart.harness.analysis.length.interval import Bound
from eyechart.harness.errors import EyechartError
from eyechart_lab.variants.asking import LabCell, read_csv
from eyechart_lab.variants.results.page import page
from eyechart_lab.variants.results.results import Result, length_text, results_of
from eyechart_lab.variants.results.seeds import (
    SeedLength,
    fewest_seeds,
    interval,
    length_interval,
    mean_length,
    permutation_p,
    share_of,
    smallest_p,
)
from eyechart_lab.variants.results.tables import csv_text, variants_text
from eyechart_lab.variants.results.words import (
    ceilings_text,
    method,
    sentence,
    shared_training,
    summary,
)
from eyechart_lab.variants.study import LabSpec


def seen(*lengths: float, width: float = 1.1) -> list[SeedLength]:
    """How far the models of several seeds see."""
    return [
        SeedLength(Bound("=", one), (Bound("=", one / width), Bound("=", one * width)))
        for one in lengths
    ]


def p_of(first: list[SeedLength], second: list[SeedLength]) -> float:
    """The p-value of how far two variants see."""
    return permutation_p([one.log for one in first], [one.log for one in second])


class TestSeeds:
    """A seed of training is the unit."""

    def test_the_smallest_p(self) -> None:
        """Of three seeds against three the extremest two of twenty splits remain."""
        assert smallest_p(3, 3) == pytest.approx(0.1)
        assert p_of(seen(10, 11, 12), seen(20, 21, 22)) == pytest.approx(0.1)
        assert p_of(seen(20, 21, 22, 23), seen(1, 2, 3, 4)) == pytest.approx(2 / 70)

    def test_no_difference(self) -> None:
        """Equal models give p = 1, those that interleave a large one."""
        assert p_of(seen(10, 10, 10), seen(10, 10, 10)) == 1
        assert p_of(seen(10, 12, 14), seen(11, 13, 15)) > 0.5

    @pytest.mark.parametrize(("comparisons", "seeds"), [(1, 4), (6, 5), (7, 6)])
    def test_how_many_seeds_are_needed(self, comparisons: int, seeds: int) -> None:
        """One fewer cannot be below 5 % after Holm's correction."""
        assert fewest_seeds(comparisons) == seeds
        assert smallest_p(seeds, seeds) * comparisons <= 0.05
        assert smallest_p(seeds - 1, seeds - 1) * comparisons > 0.05

    def test_drawn_splits_are_as_good_as_all(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Where there are too many to count."""
        first, second = seen(10, 14, 18, 22, 13), seen(12, 20, 24, 26, 30)
        every = p_of(first, second)
        monkeypatch.setattr("eyechart_lab.variants.results.seeds._ALL_SPLITS", 251)
        several = p_of(first, second)
        assert several == p_of(first, second)
        assert several == pytest.approx(every, abs=0.08)

    def test_the_interval(self) -> None:
        """It is wider with fewer seeds, never as narrow as that over rows, and open at bounds."""
        assert length_interval(seen(10, 12), 1, 100) is None
        low, high = length_interval(seen(20, 20, 20), 1, 100) or (None, None)
        assert low is not None
        assert high is not None
        assert [low.length, high.length] == pytest.approx([20 / 1.1, 22])
        few, many = (
            length_interval(seen(10, 20, 40), 1, 900),
            length_interval(seen(10, 20, 40) * 3, 1, 900),
        )
        assert few is not None
        assert many is not None
        assert few[0].length < many[0].length < 20 < many[1].length < few[1].length
        above = [SeedLength(Bound(">", 100), (Bound("=", 90), Bound("=", 100)))] * 3
        low, high = length_interval(above, 1, 100) or (None, None)
        assert high == Bound(">", 100)
        assert low is not None
        assert low.length == pytest.approx(94.87, abs=0.01)

    def test_the_mean_is_a_bound_where_a_seed_is(self) -> None:
        """The geometric mean; with a seed that sees to the end it is at least that."""
        assert str(mean_length(seen(10, 40), 1, 100)) == "20"
        above = SeedLength(Bound(">", 100), (Bound("=", 100), Bound("=", 100)))
        below = SeedLength(Bound("<", 1), (Bound("=", 1), Bound("=", 1)))
        assert str(mean_length([*seen(25), above], 1, 100)) == "> 50"
        assert mean_length([*seen(25), below, above], 1, 100) is None
        assert length_interval([*seen(25), below, above], 1, 100) is None
        assert length_interval([*seen(25, 26), above], 1, 100) is not None


@pytest.mark.parametrize(
    ("count", "spread", "error"), [(3, 0.3, 0.1), (6, 0.3, 0.1), (4, 0.05, 0.2)]
)
def test_intervals_and_tests_hold_as_often_as_they_say(
    count: int, spread: float, error: float
) -> None:
    """Models of known lengths, with an error that they share since they are asked the same rows."""
    rng = np.random.default_rng(count)
    held = found = 0
    rounds = 1000

    def models(shared: float) -> list[SeedLength]:
        logs = np.log(50) + shared + rng.normal(0, spread, count)
        return seen(*np.exp(logs), width=float(np.exp(1.96 * error)))

    for _ in range(rounds):
        shared = float(rng.normal(0, error))
        first, second = models(shared), models(shared)
        low, high = length_interval(first, 1, 10_000) or (Bound("=", 0), Bound("=", 0))
        held += low.length <= 50 <= high.length
        found += p_of(first, second) <= 0.05
    assert held >= 0.94 * rounds
    assert found <= 0.06 * rounds


@pytest.mark.parametrize(
    ("count", "spread", "difficulty", "middle", "least"),
    [
        (3, 0.5, 0.5, -1.0, 0.94),
        (6, 1.0, 0.5, -1.0, 0.94),
        (6, 0.2, 1.0, -1.0, 0.94),
        (6, 0.5, 0.0, -1.0, 0.94),
        (6, 2.0, 0.5, -3.0, 0.8),  # one model of a few does nearly all
    ],
)
def test_shares_hold_as_often_as_they_say(
    count: int, spread: float, difficulty: float, middle: float, least: float
) -> None:
    """Of models of other skill, which are asked the same rows, some harder than others."""
    rng = np.random.default_rng(count)
    rows, rounds = 120, 1000

    def right(skill: Any, row: Any) -> Any:
        return 1 / (1 + np.exp(-(middle + skill + row)))

    truth = right(rng.normal(0, spread, 10_000)[:, None], rng.normal(0, difficulty, 500)).mean()
    held = found = 0
    for _ in range(rounds):
        chances = right(rng.normal(0, spread, (2 * count, 1)), rng.normal(0, difficulty, rows))
        models = [share_of(int(one), rows) for one in (rng.random(chances.shape) < chances).sum(1)]
        low, high = interval(models[:count]) or (1.0, 0.0)
        held += low <= truth <= high
        found += permutation_p(models[:count], models[count:]) <= 0.05
    assert held >= least * rounds
    assert found <= 0.065 * rounds


def cells(
    variant: str,
    lengths: list[float | None],
    accuracy: float = 1.0,
    *,
    trained: bool = True,
    beyond: float = 0.0,
    ceiling: float = 1.0,
) -> list[LabCell]:
    """The rows of a variant: for each seed how far it sees; two lines, one of them trained. Of the
    longer one the training had a share `ceiling` of the answers.
    """
    found = []
    for seed, length in enumerate(lengths):
        for at in (10, 80):
            right = accuracy if at == 10 else beyond
            found.append(
                LabCell(
                    variant=variant,
                    seed=seed,
                    task="counting/ones",
                    condition="separator=none",
                    read="reply",
                    training="trained" if trained else "diverged",
                    steps=100,
                    loss=0.1,
                    trained_to=20,
                    length=at if trained else None,
                    length_low=at if trained else None,
                    length_high=at if trained else None,
                    n=20 if trained else 0,
                    correct=round(20 * right) if trained else 0,
                    accuracy=right if trained else None,
                    ceiling=(1.0 if at == 10 else ceiling) if trained else None,
                    effective_length=length if trained else None,
                    effective_length_ci_low=None if length is None else length / 1.1,
                    effective_length_ci_high=None if length is None else length * 1.1,
                )
            )
    return found


def said(*rows: list[LabCell], of: str = "new") -> str:
    """The sentence about a variant, compared with `old`."""
    results = results_of([cell for one in rows for cell in one], "old")
    (one,) = [result for result in results if result.variant == of]
    return sentence(one, "old")


class TestWords:
    """What is said of a variant is carried by its numbers."""

    old = cells("old", [20, 20.5, 21, 20.2])

    def test_learned_and_beyond(self) -> None:
        """An interval above the longest trained row, and a difference over seeds."""
        line = said(self.old, cells("new", [50, 55, 60, 52]))
        assert "learned the trained lengths (to 20, asked at 10) in 4 of 4 seeds" in line
        assert (
            "beyond the trained lengths; is right farther than old over seeds (p = 0.029)" in line
        )
        assert line.endswith(
            "; right on 0 % of longer rows (0 to 16 %), no difference to old found (p = 1)."
        )
        assert "not beyond" not in line

    def test_worse(self) -> None:
        """The other direction."""
        assert "is right less far than old over seeds" in said(
            self.old, cells("new", [8, 9, 9.5, 8.2])
        )

    def test_not_learned_is_not_a_failure_to_extrapolate(self) -> None:
        """Nothing is said of lengths beyond a training that did not teach."""
        line = said(self.old, cells("new", [None, None, None, None], 0.5))
        assert "did not reach 95 % at the trained lengths (to 20, asked at 10) in 4 of 4" in line
        assert "with 50 % right there" in line
        assert "beyond" not in line

    def test_learned_and_not_beyond(self) -> None:
        """The interval ends within the trained lengths."""
        line = said(self.old, cells("new", [12, 13, 12.5, 12.2]))
        assert "not beyond the trained lengths" in line

    def test_no_difference(self) -> None:
        """Seeds that interleave."""
        assert "no difference to old found" in said(self.old, cells("new", [20.1, 20.4, 21.2, 20]))

    def test_too_few_seeds(self) -> None:
        """With three of each p cannot be below 0.1."""
        line = said(cells("old", [20, 21, 22]), cells("new", [50, 55, 60]))
        assert "a difference to old: p is 0.1, and no p below 0.1 is possible" in line

    def test_two_seeds_have_no_interval(self) -> None:
        """They say how far they see, and no more."""
        line = said(cells("old", [20, 21]), cells("new", [50, 55]))
        assert "without an interval over fewer than 3 models" in line

    def test_a_training_that_diverged(self) -> None:
        """It is said, and nothing of lengths."""
        line = said(self.old, cells("new", [None] * 4, trained=False))
        assert line == ("new: the training diverged in 4 of 4 seeds, so there is no trained model.")

    def test_some_trainings_that_diverged(self) -> None:
        """How far the others see is not mixed with them, and they are not compared."""
        new = cells("new", [None], trained=False)
        new += [replace(cell, seed=cell.seed + 1) for cell in cells("new", [50, 55, 60, 52])]
        line = said(self.old, new)
        assert line.startswith(
            "new: the training diverged in 1 of 5 seeds, learned the trained lengths (to 20, asked "
            "at 10) in 4 of 5 seeds"
        )
        assert "; is right to 54.1 (46.2 to 63.4) in the other 4, beyond the trained" in line
        assert "farther than old over seeds (p = 0.029)" in line

    def test_a_reference_that_diverged(self) -> None:
        """There is nothing to compare with."""
        line = said(cells("old", [None] * 4, trained=False), cells("new", [50, 55, 60, 52]))
        assert "; nothing to compare it with, since no length of old is known; right on" in line
        assert "p =" not in line

    def test_no_line_within_the_trained_lengths(self) -> None:
        """Then it is not known whether they were learned."""
        far = [cell for cell in cells("new", [50, 55, 60]) if cell.length == 80]
        line = said(self.old, far)
        asked = "new: was asked no line within the trained lengths (to 20)"
        assert line.startswith(f"{asked}; is right to")
        assert "95 %" not in line

    def test_how_variants_are_compared(self) -> None:
        """The test, its smallest p and the seeds that are needed; nothing for a single variant."""
        results = results_of([*self.old, *cells("new", [1, 2, 3, 4])], "old")
        assert (
            "p cannot be below 0.029, and one of them can be called better from 4 seeds on"
            in method(results, "old")
        )
        far = cells("far", [50, 55, None, None])
        results = results_of([*self.old, *cells("new", [1, 2, 3, 4]), *far], "old")
        said = method(results, "old")
        assert "p cannot be below 0.057 (0.067 where fewer lengths are known), and one" in said
        alone = method(results_of(self.old, "old"), "old")
        assert "falls below 85 %" in alone
        assert "p cannot" not in alone


def test_the_rows_are_read_as_they_were_written(tmp_path: Path) -> None:
    """Also those of a model that was not asked."""
    rows = [*cells("new", [20.5, 21]), *cells("old", [None], trained=False)]
    (tmp_path / "lab.csv").write_text(csv_text(LabCell, rows), encoding="utf-8")
    again = read_csv(tmp_path / "lab.csv")
    assert csv_text(LabCell, again) == csv_text(LabCell, rows)
    assert again[-1].length is None
    (tmp_path / "other.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    with pytest.raises(EyechartError, match="cannot be read as the results of a study"):
        read_csv(tmp_path / "other.csv")


def test_a_row_for_each_variant() -> None:
    """How far it sees, its p, and its sentence; what is not known is empty."""
    new = cells("new", [None] * 4, trained=False)
    results = results_of([*TestWords.old, *new, *cells("far", [50, 55, 60, 52])], "old")
    old, untrained, far = csv.DictReader(variants_text(results, "old").splitlines())
    assert (far["effective_length"], far["effective_length_bound"]) == ("54.1217", "")
    assert (far["effective_length_ci_low"], far["p"]) == ("46.2181", "0.0285714")
    assert (far["learned"], far["diverged"], far["verdict"]) == ("4", "0", "better")
    assert [one["read"] for one in (old, untrained, far)] == ["reply"] * 3
    assert untrained["verdict"] == "not trained"
    assert not any(
        untrained[name]
        for name in ("effective_length", "effective_length_ci_low", "p", "smallest_p")
    )
    assert old["p"] == ""
    assert untrained["said"].endswith("diverged in 4 of 4 seeds, so there is no trained model.")


SPEC = LabSpec.model_validate(
    {
        "name": "small",
        "title": "<b>bold</b>",
        "seeds": 2,
        "training": {"steps": 1500, "rows": 8},
        "tasks": [{"task": "counting/ones", "trained": [1, 20]}],
        "variants": {"old": {"layers": 1}, "new": {"positions": "none", "layers": 3}},
    }
)


def test_variants_with_the_trained_weights_of_the_reference_are_named() -> None:
    """They are no independent models, and changes of signs cannot help where seeds are few."""
    rope: dict[str, Any] = {"positions": {"rope": {"base": 10000}}}
    variants = {"old": rope, "far": {**rope, "stretch": {"ntk": 2}}, "none": {"positions": "none"}}
    given = SPEC.model_dump(mode="json") | {"variants": variants}
    shared = LabSpec.model_validate({**given, "seeds": 6})
    said = shared_training(shared)
    assert said.startswith("Asked with the trained weights of old: far. ")
    assert said.endswith(
        "Changes of signs over 6 pairs would allow for that, but with so few seeds their p cannot "
        "be below 0.062 after the correction for 2 variants."
    )
    results = results_of([*cells("old", [20, 21]), *cells("far", [9, 8])], "old")
    assert said in page(shared, results)
    assert shared_training(shared.model_copy(update={"seeds": 7})).endswith("allow for that.")
    assert shared_training(SPEC) == ""


def test_the_page_has_sentences_tables_and_curves() -> None:
    """It is complete in itself, and no text of the file is code in it."""
    results: list[Result] = results_of([*cells("old", [20, 21]), *cells("new", [9, 8])], "old")
    text = page(SPEC, results)
    assert "&lt;b&gt;bold" in text
    assert "<svg" in text
    assert text.count("<tr>") == 3
    assert all(sentence(one, "old") in text for one in results)
    assert method(results, "old") in text
    assert "trained on rows to 20, asked to 80" in text
    assert "http-equiv" in text
    assert "<script" not in text


def test_a_length_that_is_not_known_counts_for_nothing() -> None:
    """A model that is right somewhere has some length, which no threshold tells; one that is right
    nowhere sees nothing.
    """
    old = cells("old", [20, 21, 20, 22, 20, 21])
    result = results_of([*old, *cells("new", [40, 41, 42, 43, None, None])], "old")[1]
    assert (result.unknown, len(result.seen)) == (2, 4)
    assert str(result.length) == "41.5"
    said = sentence(result, "old")
    assert "the length of 2 of 6 seeds is not known, and counts for nothing" in said
    assert "is right to 41.5" in said
    assert "in the other 4" in said
    nothing = results_of([*old, *cells("new", [None] * 6, 0.5)], "old")[1]
    assert (nothing.unknown, nothing.by_length.verdict) == (0, "worse")
    unknown = results_of([*old, *cells("new", [None] * 6)], "old")[1]
    assert (unknown.length, unknown.by_length.verdict, length_text(unknown)) == (
        None,
        "not known",
        "not known",
    )
    assert summary([unknown], "old").startswith("No length is known: new.")


def test_a_bound_below_the_longest_line_is_not_known() -> None:
    """Something else than sight ends its curve there; a bound at the longest line counts."""
    rows = cells("old", [30, 80, 80])
    above = [replace(cell, effective_length_bound=">") for cell in rows if cell.seed != 1]
    (result,) = results_of([*above, *(cell for cell in rows if cell.seed == 1)], "old")
    assert result.unknown == 1
    assert [str(one.length) for one in result.seen] == ["> 80", "80"]
    assert str(result.length) == "> 80"


def test_bounds_on_both_sides_have_no_mean() -> None:
    """It is said so, and the models are compared at their bounds."""
    new = cells("new", [30, 30, 80, None])
    new = [
        replace(cell, accuracy=0.5, correct=10)
        if cell.seed == 3
        else replace(cell, effective_length_bound=">" if cell.seed == 2 else "")
        for cell in new
    ]
    result = results_of([*TestWords.old, *new], "old")[1]
    assert (result.length, result.span, length_text(result)) == (None, None, "not known")
    assert result.by_length.verdict == "no difference"
    assert (
        "; some models see less than 10, others more than 80, so the mean length is not known; no "
        "difference to old found" in sentence(result, "old")
    )
    assert "<svg" in page(SPEC, [result])


@pytest.mark.parametrize(
    ("lengths", "p", "verdict"),
    [([40, 41, 42, 43, 44, 45], 1 / 28, "better"), ([20, 21] * 3, 2 / 28, "no difference")],
)
def test_seeds_are_too_few_only_if_no_lengths_could_differ(
    lengths: list[float | None], p: float, verdict: str
) -> None:
    """Holm corrects the smaller p of two by 2, the larger by 1: two known lengths against six,
    whose p is at least 1 / 28, can be enough.
    """
    rows = [*cells("old", [20, 21, 20, 22, 20, 21]), *cells("other", lengths)]
    few = results_of([*rows, *cells("few", [50, 51, None, None, None, None])], "old")[2]
    assert (few.unknown, few.by_length.verdict) == (4, verdict)
    assert few.by_length.p == pytest.approx(p)
    assert few.by_length.smallest_p == pytest.approx(1 / 28)


def test_longer_rows_are_compared_where_no_length_is_known() -> None:
    """By the share of right answers, also of models whose curve has no threshold."""
    old = cells("old", [20, 21, 20, 22], beyond=0.3)
    new = cells("new", [None] * 4, beyond=0.9)
    untrained = cells("gone", [None] * 4, trained=False)
    results = results_of([*old, *new, *untrained], "old")
    first, second, third = csv.DictReader(variants_text(results, "old").splitlines())
    assert (first["beyond"], first["beyond_p"], first["beyond_verdict"]) == ("0.3", "", "")
    assert (second["beyond"], second["beyond_p"]) == ("0.9", "0.0285714")
    assert (second["verdict"], second["beyond_verdict"]) == ("not known", "better")
    assert (third["beyond"], third["beyond_verdict"]) == ("", "not trained")
    assert second["said"].endswith(
        "; right on 90 % of longer rows (70 to 97 %), more often than old over seeds (p = 0.029)."
    )
    assert (
        "right on more of the longer rows than old over seeds: new" in page(SPEC, results).lower()
    )
    worse = results_of([*new, *cells("less", [20] * 4, beyond=0.1)], "new")[1]
    assert (worse.by_length.verdict, worse.by_beyond.verdict) == ("no reference", "worse")
    assert "less often than new over seeds (p = 0.029)" in sentence(worse, "new")


def test_no_longer_row_was_asked() -> None:
    """Then nothing is said of longer rows."""
    rows = [*cells("old", [20] * 4), *cells("new", [10] * 4)]
    results = results_of([one for one in rows if one.length == 10], "old")
    assert [one.by_beyond.p for one in results] == [None, None]
    assert not any("longer" in sentence(one, "old") for one in results)
    assert "right on longer rows" not in page(SPEC, results)


def test_the_page_says_in_a_line_which_variants_differ() -> None:
    """The variants of each verdict together."""
    rows = [
        *cells("old", [20, 21, 20, 22, 20, 21]),
        *cells("new", [40, 44, 41, 43, 45, 42]),
        *cells("other", [20, 22, 21, 20, 21, 20]),
    ]
    results = results_of(rows, "old")
    said = (
        "Is right farther than old over seeds: new. No difference to old found: "
        "other. No difference to old found in rows of trained lengths: new, other. No difference "
        "to old found in longer rows: new, other."
    )
    assert summary(results, "old") == said
    text = page(SPEC, results)
    assert said in text
    assert "smallest possible p" in text
    assert "diverged" not in text
    assert "a band spans the seeds" in text
    many = results_of([*rows, *cells("fourth", [20] * 6)], "old")
    assert "a band spans the seeds" not in page(SPEC, many)


@pytest.mark.parametrize(
    ("read", "said"),
    [("reply", "the replies are read"), ("likelihood", "(read: likelihood)")],
)
def test_the_page_has_the_recipe(read: str, said: str) -> None:
    """Steps, rows, the size, and how the models were asked."""
    spec = SPEC.model_copy(update={"read": read})
    text = page(spec, results_of(cells("old", [20, 21]), "old"))
    assert (
        "2 seeds of 1,500 steps of 8 rows, learning rate 0.002 at most; layers 1 or 3, width 64"
        in text
    )
    assert said in text


def test_the_page_says_which_models_are_missing() -> None:
    """The page of an unfinished study counts the models that are not in it."""
    old, new = cells("old", [20, 21]), cells("new", [9, 8])
    assert "missing here" not in page(SPEC, results_of([*old, *new], "old"))
    short = [*old, *(cell for cell in new if cell.seed == 0)]
    assert "1 of 4 models are missing here." in page(SPEC, results_of(short, "old"))
    assert "4 of 4 models are missing here." in page(SPEC, [])


def test_the_page_of_trainings_that_all_diverged() -> None:
    """It has no length and no p."""
    rows = [*cells("old", [None] * 3, trained=False), *cells("new", [None] * 3, trained=False)]
    text = page(SPEC, results_of(rows, "old"))
    assert "trained on rows to 20, nothing was asked" in text
    assert text.count("<td>not trained</td>") == 4
    assert "&lt; " not in text
    assert "<svg" not in text
    assert "diverged in 3 of 3 seeds, so there is no trained model." in text


def three(variant: str, lengths: list[float | None], accuracy: float = 1.0) -> list[LabCell]:
    """The same with a third, shortest line, that is right; the longest has half of its answers."""
    found = []
    for cell in cells(variant, lengths, accuracy, beyond=0.5, ceiling=0.5):
        if cell.length == 10:
            at: dict[str, Any] = dict.fromkeys(("length", "length_low", "length_high"), 5)
            found.append(replace(cell, **at, correct=20, accuracy=1.0))
        found.append(cell)
    return found


class TestAnswersEnd:
    """Where longer rows need answers that the training had not, they say nothing of sight."""

    old = three("old", [20, 21, 20, 22, 20, 21])

    def test_a_length_is_not_claimed_from_lines_that_do_not_tell(self) -> None:
        """Every model that is right at the lines before them sees to there at least, and two such
        variants are not compared.
        """
        old, new = results_of([*self.old, *three("far", [50, 55, 60, 52, 58, 54])], "old")
        assert [(one.limit, str(one.length), one.answers_end) for one in (old, new)] == [
            (10, "> 10", True)
        ] * 2
        assert (new.by_length.verdict, new.by_length.p) == ("answers end", None)
        assert "p cannot be below 0.0022, and" in method([old, new], "old")
        line = sentence(new, "old")
        assert (
            "is right to more than 10, where the answers of the training end; not compared" in line
        )
        assert "beyond the trained" not in line

    def test_longer_rows_count_as_far_as_the_training_had_their_answers(self) -> None:
        """Ten of twenty: so many are right. Of none there is no share, and nothing to compare."""
        rows = [*self.old, *cells("new", [20] * 6, beyond=0.25, ceiling=0.5)]
        old, new = results_of(rows, "old")
        assert [one.value for one in (*old.beyond, *new.beyond)] == [1.0] * 6 + [0.5] * 6
        assert new.by_beyond.verdict == "worse"
        assert "right on 50 % of longer rows whose answer the training had (" in sentence(
            new, "old"
        )
        (none,) = results_of(cells("old", [20] * 6, ceiling=0.0), "old")
        assert none.beyond == []
        assert sentence(none, "old").endswith(
            "; nothing is said of longer rows, since the training had none of their answers."
        )

    def test_the_same_lengths_count_where_the_training_had_the_answers(self) -> None:
        """From a ceiling of 85 % on, so that a model can reach the threshold."""
        for ceiling, verdict in ((0.84, "answers end"), (0.85, "better")):
            rows = [
                *cells("old", [20, 21, 20, 22, 20, 21], ceiling=ceiling),
                *cells("far", [50, 55, 60, 52, 58, 54], ceiling=ceiling),
            ]
            assert results_of(rows, "old")[1].by_length.verdict == verdict

    def test_a_model_that_fails_before_is_compared(self) -> None:
        """Its length is that of its curve; those of the others are bounds."""
        new = three("new", [6, 7, 6, 6.5, 7.5, 7], 0.5)
        result = results_of([*self.old, *new], "old")[1]
        assert (str(result.length), result.by_length.verdict) == ("6.64", "worse")
        assert result.by_within.verdict == "worse"

    def test_where_no_line_tells_no_length_is_known(self) -> None:
        """Not even that it is short."""
        rows = [replace(cell, ceiling=0.0) for cell in self.old]
        (result,) = results_of(rows, "old")
        assert (result.limit, result.length, result.unknown) == (0, None, 6)

    def test_the_page_has_the_share_of_each_line(self) -> None:
        """Lines with the same share together."""
        results = results_of(self.old, "old")
        said = (
            "Rows whose answer the training had: 100 % at 5 to 10 symbols, 50 % at 80 to 80 "
            "symbols. Lines with less than 85 %, and those after them, do not say how far a model "
            "sees."
        )
        assert ceilings_text(results) == said
        assert said in page(SPEC, results)
        told = results_of(cells("old", [20, 21]), "old")
        assert ceilings_text(told).endswith("had: 100 % at 10 to 80 symbols.")


def test_trained_and_longer_rows_are_two_statements() -> None:
    """A variant can be worse at the trained lengths, and no other beyond them."""
    old = cells("old", [20, 21, 20, 22, 20, 21], beyond=0.5)
    new = cells("new", [20, 21, 20, 22, 20, 21], 0.9, beyond=0.5)
    result = results_of([*old, *new], "old")[1]
    verdicts = result.by_within.verdict, result.by_length.verdict, result.by_beyond.verdict
    assert verdicts == ("worse", "no difference", "no difference")
    line = sentence(result, "old")
    assert (
        "right on 90 % of rows of these lengths (70 to 97 %), less often than old over seeds "
        "(p = 0.0022)" in line
    )
    (row,) = list(csv.DictReader(variants_text([result], "old").splitlines()))
    assert (row["within"], row["within_verdict"], row["answers_to"]) == ("0.9", "worse", "80")
