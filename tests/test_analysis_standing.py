"""The standing of the models of a task: ranks that the paired tests leave open."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from eyechart.harness.analysis.comparison.comparison import compare_runs
from eyechart.harness.analysis.comparison.family import in_family
from eyechart.harness.analysis.comparison.length_difference import Sides
from eyechart.harness.analysis.findings.ranks import of_standing
from eyechart.harness.analysis.length.interval import Bound
from eyechart.harness.analysis.ranking import standing as standing_module
from eyechart.harness.analysis.ranking.standing import (
    Standing,
    length_tests,
    median_length,
    standing,
)
from eyechart.harness.analysis.samples.judged_run import read_run
from eyechart.harness.journal.record import SAMPLES
from eyechart.harness.report.charts.scale import Scale
from eyechart.harness.report.page.section import sections
from eyechart.harness.report.ranking.rank_table import rank_tables
from eyechart.harness.settings.judging import THRESHOLD
from eyechart.harness.spec import Condition, Settings
from eyechart.providers.base import BadRequestError
from tests.conftest import right
from tests.sentences import said

if TYPE_CHECKING:
    from eyechart.providers.base import Request
    from tests.conftest import Lab

LENGTHS = [2, 4, 8, 16, 32]


def run(
    lab: Lab, name: str, reach: int, *, seed: int = 0, values: tuple[str, ...] = ("none",)
) -> Path:
    """A model that counts right up to a length, and always with commas."""

    def answer(request: Request) -> str:
        row = request.prompt.splitlines()[-1]
        return right(request) if "," in row or len(row) <= reach else "Final answer: 100"

    wanted = lab.wanted(
        lengths=LENGTHS,
        samples=30,
        model=f"scripted/{name}",
        axes={"separator": list(values)},
        settings=Settings(seed=seed),
    )
    lab.asked(wanted, answer)
    return wanted.folder


def standing_of(*folders: Path) -> Standing:
    runs = [read_run(folder) for folder in folders]
    return standing([(one.manifest.model.partition("/")[2], one) for one in runs])


def ranks(found: Standing) -> dict[str, str]:
    return {place.name: place.ranks_text for place in found.places}


def test_models_that_are_told_apart_have_a_rank_each(lab: Lab) -> None:
    """Those that are not share a range of ranks; the longest comes first."""
    folders = [run(lab, "near", 2), run(lab, "far", 16), run(lab, "middle", 4), run(lab, "same", 4)]
    found = standing_of(*folders)
    assert ranks(found) == {"far": "1", "middle": "2–3", "same": "2–3", "near": "4"}
    assert found.complete
    assert len(found.ranking.comparisons) == 6
    assert found.apart == 0


def test_many_models_are_compared_by_their_lengths(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their ranks are those of full comparisons; which are made with the best one alone."""
    folders = [run(lab, "near", 2), run(lab, "far", 16), run(lab, "middle", 4), run(lab, "same", 4)]
    full = standing_of(*folders)
    monkeypatch.setattr(standing_module, "MOST_IN_PAIRS", 3)
    found = standing_of(*folders)
    assert ranks(found) == ranks(full) == {"far": "1", "middle": "2–3", "same": "2–3", "near": "4"}
    assert (len(found.ranking.comparisons), found.tests, found.apart) == (3, 6, 0)
    shown = of_standing(found)
    assert said(shown, "lengths alone").startswith("Of 4 models the effective lengths of each pair")
    text = said(shown, "ranks")
    assert text == said(of_standing(full), "ranks")
    assert text.startswith("far has the longest effective length on ")
    assert text.endswith(
        "it counts exactly further than each of the 3 others (same rows, Holm's "
        "correction for 6 pairs)."
    )


WRONG = "Final answer: 9999"


def test_the_lengths_of_many_are_those_of_full_comparisons(lab: Lab) -> None:
    """Differences and corrected p-values, also where replies are missing; never across seeds."""

    def noisy(reach: int) -> Callable[[Request], str]:
        def answer(request: Request) -> str:
            rng = random.Random(f"{reach}|{request.sample_id}")
            if rng.random() < 0.06:
                raise BadRequestError("no")
            length = len(request.prompt.splitlines()[-1])
            return right(request) if rng.random() < 1 / (1 + (length / reach) ** 3) else WRONG

        return answer

    folders = []
    for reach, seed in ((6, 0), (9, 0), (40, 0), (12, 0), (12, 1)):
        wanted = lab.wanted(
            lengths=LENGTHS,
            samples=30,
            model=f"scripted/m{reach}-{seed}",
            axes={"separator": ["none"]},
            settings=Settings(seed=seed),
        )
        lab.asked(wanted, noisy(reach))
        folders.append(wanted.folder)
    runs = [read_run(folder) for folder in folders]
    condition = Condition({"separator": "none"})
    sides = Sides(THRESHOLD)
    found = length_tests([one.conditions[condition] for one in runs], sides, ())
    pairs = [(left, right_) for left in range(4) for right_ in range(left + 1, 4)]
    assert list(found) == pairs
    full = in_family([compare_runs(runs[left], runs[right_]) for left, right_ in pairs])
    lengths = [comparison.length for comparison in full]
    assert [one.further for one in found.values()] == [one.further for one in lengths]
    assert [one.p for one in found.values()] == [one.p for one in lengths]
    assert {one.further for one in found.values()} >= {-1, 0}


def test_the_best_of_many_may_be_several(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sentence names them, and what each of them counts exactly further than."""
    monkeypatch.setattr(standing_module, "MOST_IN_PAIRS", 2)
    found = standing_of(run(lab, "one", 99), run(lab, "two", 99), run(lab, "near", 2))
    assert said(of_standing(found), "ranks") == (
        "one and two cannot be ordered on lab/ones: their effective lengths lie beyond the longest "
        "line asked; they count exactly further than near (same rows, Holm's "
        "correction for 3 pairs)."
    )


def test_models_with_other_samples_are_not_compared(lab: Lab) -> None:
    """They have every rank, and the page says how many pairs."""
    found = standing_of(run(lab, "far", 16), run(lab, "near", 2, seed=1))
    assert ranks(found) == {"far": "1–2", "near": "1–2"}
    assert found.apart == 1
    text = said(of_standing(found), "apart")
    assert text.startswith("1 pair of models cannot be compared")


def test_a_model_without_a_scored_sample_comes_last(lab: Lab) -> None:
    """It has no rank, and no model is shown to count exactly further."""
    unscored = run(lab, "none", 2)
    (unscored / SAMPLES).unlink()
    found = standing_of(unscored, run(lab, "far", 16))
    assert ranks(found) == {"far": "1", "none": "–"}
    assert said(of_standing(found), "ranks") == ""


def test_the_condition_is_the_default_one_of_those_that_most_have(lab: Lab) -> None:
    """A model with further conditions changes nothing."""
    both = run(lab, "both", 4, values=("none", "comma"))
    comma = run(lab, "comma", 4, values=("comma",))
    found = standing_of(both)
    assert (found.condition, found.default) == (Condition({"separator": "none"}), True)
    assert ranks(found) == {"both": "1"}
    found = standing_of(both, comma)
    assert (found.condition, found.default) == (Condition({"separator": "comma"}), False)


def test_the_lines_of_the_page(lab: Lab) -> None:
    """The length, its interval, and their places on the scale of the page; a bound is open."""
    folders = [run(lab, "near", 4, values=("none", "comma")), run(lab, "far", 99)]
    (section,) = sections(list(map(read_run, folders)))
    assert section.of_standing == "separator none (the default)"
    (table,) = rank_tables([section])
    assert [column.name for column in table.columns] == [
        *("rank", "who", "length", "near", "apart")
    ]
    assert table.rows[0][:3] == ("1", "scripted/far", "> 32")
    far, near = (Scale(2, 32).strip(*line.length) for line in table.lines if line.length)
    assert (far.at, far.high, far.sign, far.open_high) == (100.0, 100.0, ">", True)
    assert near.at is not None
    assert (near.sign, near.open_low, near.open_high) == ("", False, False)
    assert 0 < near.low < near.at < near.high < 100
    length = float(table.rows[1][2].partition(" ")[0])
    assert near.at == pytest.approx(25 * math.log2(length / 2), abs=3)


@pytest.mark.parametrize(
    ("lengths", "median"),
    [
        ([Bound("=", 5)], "None"),
        ([Bound("=", 8), Bound("=", 2)], "4"),
        ([Bound(">", 8), Bound("=", 2)], "2"),
        ([Bound("=", 8), Bound(">", 8), Bound("<", 8)], "8"),
    ],
)
def test_the_median_of_lengths(lengths: list[Bound], median: str) -> None:
    """Between two lengths their geometric mean; a bound is none of them. One has no median."""
    assert str(median_length(lengths)) == median
