"""A published study that is trained again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from eyechart_lab.variants.folders import ROOT, VARIANTS
from lab import again
from lab.again import differences, main
from lab.pages import HERE

NAME = "stretch_ones"
PUBLISHED = again._rows(HERE / f"{NAME}_variants.csv")


def test_the_same_table_has_no_difference() -> None:
    """Also in another order; and each published table with itself."""
    assert list(differences(PUBLISHED, PUBLISHED[::-1])) == []
    for path in HERE.glob("*_variants.csv"):
        rows = again._rows(path)
        assert list(differences(rows, rows)) == []


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (
            {"within_verdict": "no difference"},
            "within_verdict is 'no difference', published 'worse'",
        ),
        ({"verdict": "better"}, "verdict is 'better', published 'worse'"),
        (
            {"within_ci_low": "0.6", "within_ci_high": "0.9"},
            "right at the trained lengths 60 to 90 %",
        ),
        ({"within_ci_low": "", "within_ci_high": ""}, "without an interval, published"),
        ({"variant": "linear_3"}, "linear_3, counting/ones, "),
    ],
)
def test_what_differs_is_said(changed: dict[str, str], said: str) -> None:
    """With the variant and the condition."""
    reference, stretched = PUBLISHED
    found = sorted(differences(PUBLISHED, [reference, {**stretched, **changed}]))
    assert said in found[-1]
    assert all(line.startswith("linear_") for line in found)


def test_intervals_that_overlap_are_no_difference() -> None:
    """Weights of another processor give other shares."""
    reference, stretched = PUBLISHED
    moved = {
        "within_ci_low": stretched["within_ci_high"],
        "within_ci_high": "0.99",
        "within": "0.9",
    }
    assert list(differences(PUBLISHED, [reference, {**stretched, **moved}])) == []


@pytest.mark.parametrize("code", [0, 5])
def test_the_exit_code(
    code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """1 where a model is missing, although the table is as published."""

    def trained(study: Path, wanted: Any) -> int:
        folder = wanted.out / ROOT / study.stem
        folder.mkdir(parents=True)
        (folder / VARIANTS).write_bytes((HERE / f"{study.stem}_variants.csv").read_bytes())
        return code

    monkeypatch.setattr(again, "lab", trained)
    assert main([NAME]) == bool(code)
    said = "the study ended with exit code 5" if code else "all that is published holds"
    assert capsys.readouterr().out == f"{NAME}: {said}\n"
