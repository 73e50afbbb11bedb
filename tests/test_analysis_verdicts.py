"""Lists of the pairs that were asked, in the words of the verdict."""

from __future__ import annotations

import pytest

from eyechart.harness.analysis.comparison.comparison import Comparison, compare_runs
from eyechart.harness.analysis.comparison.comparison_text import decisions, verdict_text
from eyechart.harness.analysis.samples.judged_run import read_run
from eyechart.harness.settings.judging import MARGIN
from eyechart.providers.base import Request
from tests.conftest import Lab, right
from tests.test_analysis_comparison import run, wrong_from


def half(request: Request) -> str:
    """Right on half of the rows, at all lengths."""
    return right(request) if request.sample_id.endswith(("0", "2", "4")) else "Final answer: 9"


def wrong(_request: Request) -> str:
    """Wrong at all lengths."""
    return "Final answer: 9"


@pytest.fixture
def pairs(lab: Lab) -> dict[str, Comparison]:
    """A pair of each kind."""
    scripts = {
        "far": right,
        "near": wrong_from(5),
        "same": wrong_from(5),
        "half": half,
        "none": wrong,
        "zero": wrong,
        "three": wrong_from(0, length=3),
        "five": wrong_from(0, length=5),
    }
    runs = {
        name: read_run(run(lab, f"scripted/{name}", script, samples=40))
        for name, script in scripts.items()
    }
    kinds = {
        "further": ("near", "far"),
        "equivalent": ("near", "same"),
        "area": ("none", "half"),
        "lines": ("three", "five"),
        "floor": ("none", "zero"),
    }
    return {kind: compare_runs(runs[one], runs[other]) for kind, (one, other) in kinds.items()}


def test_only_who_sees_further_is_decided(pairs: dict[str, Comparison]) -> None:
    """As ranks have it: a larger area, or equal ones, give no order."""
    assert decisions(list(pairs.values()), MARGIN) == (
        "decided: scripted/far counts exactly further than scripted/near; "
        "equivalent: scripted/near and scripted/same; "
        "open: scripted/none and scripted/half (scripted/half has the larger area), "
        "scripted/three and scripted/five (they differ at single lengths), "
        "scripted/none and scripted/zero (no area can fall by more than the margin)"
    )


@pytest.mark.parametrize(
    ("kind", "both", "said", "found"),
    [
        (
            "area",
            "scripted/none and scripted/half",
            "(scripted/half has the larger area)",
            "differ on lab/ones, and scripted/half has the larger area. ",
        ),
        (
            "lines",
            "scripted/three and scripted/five",
            "(they differ at single lengths)",
            "differ on lab/ones at single lengths. ",
        ),
    ],
)
def test_what_is_open_of_one_pair_is_named(
    pairs: dict[str, Comparison], kind: str, both: str, said: str, found: str
) -> None:
    """With what is shown, in the words of the verdict."""
    assert (
        decisions([pairs[kind]], MARGIN) == f"open: which of {both} counts exactly further {said}"
    )
    assert verdict_text(pairs[kind]).startswith(f"{both} {found}")


def test_an_area_that_counts_as_none_is_equivalent(lab: Lab) -> None:
    """A difference may be significant and smaller than the margin."""
    scripts = {"dip": wrong_from(20, length=3), "far": right}
    one, other = (
        read_run(run(lab, f"scripted/{name}", script, samples=40))
        for name, script in scripts.items()
    )
    compared = compare_runs(one, other)
    assert decisions([compared], 0.7) == (
        "equivalent: scripted/dip and scripted/far (scripted/far has the larger area, which counts "
        "as none)"
    )
    assert ". The difference counts as none: " in verdict_text(compared, 0.7)
