"""The figures in `results/recorded` are what the recorded replies give."""

from __future__ import annotations

import csv
import os
from itertools import product
from math import comb
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom, fisher_exact, spearmanr

from eyechart.harness.analysis.comparison.paired_curves import holm
from eyechart.harness.task.catalogue import built_in_files, open_task
from results.recorded.__main__ import FOLDER, made_from
from results.recorded.contrasts import rank_correlation, stratified_fisher
from results.recorded.differing import KINDS
from results.recorded.picture import costs, picture, shown_models
from results.recorded.power import smallest_fall
from results.recorded.tables import REPORTED

NAME = "dai2026_counting_capacity.jsonl.gz"
SHARED = Path(__file__).parents[2] / "shared" / "recorded"
RECORDED = Path(os.environ.get("TESTS_RECORDED", SHARED)) / NAME


def rows(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.published
@pytest.mark.skipif(not RECORDED.is_file(), reason="the recorded replies are not committed")
def test_the_files_are_what_the_replies_give(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of them, byte for byte; TESTS_RECORDED names the folder of the replies."""
    monkeypatch.setattr(os, "fsync", lambda _: None)  # 130 runs that nobody keeps
    for name, content in made_from(RECORDED, tmp_path).items():
        assert (FOLDER / name).read_text(encoding="utf-8") == content, name


def test_every_variant_has_its_published_capacity() -> None:
    """In the same sets; those that differ here are named on the page."""
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    models, writings = rows(FOLDER / "models.csv"), rows(FOLDER / "writings.csv")
    reported = rows(REPORTED / "dai2026_counting_capacity.csv")
    assert len(models) == len({row["model"] for row in models}) == 126
    assert len(writings) == 33
    published = {(row["set"], row["model"]): float(row["capacity"]) for row in reported}
    assert published == {
        (row["set"], row["model"]): float(row["capacity_published"]) for row in models
    }
    other = [row for row in (*models, *writings) if row["capacity"] != row["capacity_published"]]
    assert len(other) == 5
    for row in other:
        writing = f" ({row['item']}, {row['delimiter']})" if "item" in row else ""
        told = f"{row['capacity_published']} published, {row['capacity']} here"
        assert f"- {row['model']}{writing}: {told}" in page
    axes = open_task("capacity/items", built_in_files()["capacity/items"]).spec.axes
    assert {row["item"] for row in writings} == set(axes["item"].values)
    assert {row["delimiter"] for row in writings} == set(axes["delimiter"].values)


def test_lengths_are_within_their_intervals() -> None:
    """And every reply is counted once."""
    for row in (*rows(FOLDER / "models.csv"), *rows(FOLDER / "writings.csv")):
        if row["replies"] == "0":
            continue
        low, high = row["effective_length_ci_low"], row["effective_length_ci_high"]
        assert float(low or 0) <= float(row["effective_length"] or low or 0) <= float(high or "inf")
        assert int(row["unread"]) + int(row["cut_off"]) <= int(row["replies"])


def test_the_picture_and_the_page_say_what_the_tables_have() -> None:
    """The picture is drawn from `models.csv`; the page counts the rows of the other tables."""
    models = rows(FOLDER / "models.csv")
    assert picture(models, costs()) == (FOLDER / "where_models_stop.svg").read_text(
        encoding="utf-8"
    )
    shown = shown_models(models, costs())
    assert len({row["family"] for row in shown}) == len({row["family"] for row in models})
    assert shown[0]["model"] == models[0]["model"]
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    differing = rows(FOLDER / "differing.csv")
    assert f"{len(differing)} replies, all of them looked at" in page
    for kind, (right, _) in KINDS.items():
        of_kind = [row for row in differing if row["class"] == kind]
        exact = sum(row["read_by_authors"] == row["true_count"] for row in of_kind)
        assert f"| {kind} | {len(of_kind)} | {exact} | {right} |" in page
    contrasts = rows(FOLDER / "contrasts.csv")
    assert f"for all {len(contrasts)} tests" in page
    corrected = holm([float(row["p"]) for row in contrasts])
    assert [float(row["p_holm"]) for row in contrasts] == pytest.approx(corrected, rel=0.02)


def test_the_page_says_what_the_table_of_models_gives() -> None:
    """The rank correlations of both capacities, and how many models have one."""
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    models = rows(FOLDER / "models.csv")
    sized = [row for row in models if row["parameters_billion"] and row["set"] == "open"]
    sizes = [float(row["parameters_billion"]) for row in sized]
    published, ours = (
        spearmanr(sizes, [float(row[name]) for row in sized]).statistic
        for name in ("capacity_published", "capacity")
    )
    assert f"{len(sized)} open models of known size** the published capacity" in page
    assert f"(Spearman {published:.3f}, p = " in page
    assert f"{ours:.3f} for the capacity by our reading" in page
    asked = [row for row in models if row["replies"] != "0"]
    able = sum(row["capacity"] != "0" for row in asked)
    assert f"{able} of {len(asked)} models have a capacity; the other {len(asked) - able}" in page


def test_the_page_on_three_lengths_says_what_the_table_of_models_gives() -> None:
    """In how many models one interval is above the other, and the lengths of the first model."""
    page = (FOLDER / "three_lengths.md").read_text(encoding="utf-8")
    models = rows(FOLDER / "models.csv")
    asked = [row for row in models if row["replies"] != "0"]
    above, below = (
        sum(
            float(row[f"{first}_ci_low"] or 0) > float(row[f"{second}_ci_high"] or "inf")
            for row in asked
        )
        for first, second in (
            ("apart_length", "effective_length"),
            ("effective_length", "apart_length"),
        )
    )
    assert below == 0
    assert f"In {above} of {len(asked)} models the whole interval of the apart length" in page
    beyond = sum(row["apart_length_bound"] == ">" for row in asked)
    assert f"for {beyond} of {len(asked)} models the apart length is beyond their rows" in page
    first = models[0]
    cells = f"{first['effective_length']} ({first['effective_length_ci_low']} to"
    assert f"| {first['model']} | {cells} {first['effective_length_ci_high']}) |" in page
    for row in asked:
        if row["near_length"] and row["effective_length"]:
            assert float(row["near_length"]) >= float(row["effective_length"])


@pytest.mark.parametrize("strata", [[(12, 20, 14, 20)], [(70, 80, 66, 75)]])
def test_the_smallest_fall_has_its_power(strata: list[tuple[int, int, int, int]]) -> None:
    """Against the exact power of Fisher's test, of which 300 draws may miss 5 points."""
    before, after = (share / 100 for share in smallest_fall(strata, 0.01))
    ((_, n, _, other_n),) = strata
    power = sum(
        binom.pmf(right, n, before) * binom.pmf(other, other_n, after)
        for right, other in product(range(n + 1), range(other_n + 1))
        if stratified_fisher([(right, n, other, other_n)]) <= 0.01
    )
    assert power == pytest.approx(0.8, abs=0.06)


@pytest.mark.parametrize("table", [(3, 16, 9, 16), (0, 5, 5, 5), (16, 16, 16, 16), (2, 7, 1, 16)])
def test_one_stratum_is_fishers_test(table: tuple[int, int, int, int]) -> None:
    """As SciPy computes it."""
    right, n, other, other_n = table
    table_of = np.array([[right, n - right], [other, other_n - other]])
    expected = fisher_exact(table_of).pvalue
    assert stratified_fisher([table]) == pytest.approx(expected)


def test_several_strata_are_summed() -> None:
    """Against the sum over all tables with the same sums in each stratum."""
    strata = [(3, 4, 1, 5), (2, 3, 0, 4)]
    ways = {}
    for first, second in product(range(5), range(4)):
        sums = (4 - first, 2 - second)
        if min(sums) >= 0:
            ways[first, second] = (
                comb(4, first) * comb(5, sums[0]) * comb(3, second) * comb(4, sums[1])
            )
    total = sum(ways.values())
    of_sum = [sum(way for pair, way in ways.items() if sum(pair) == one) for one in range(8)]
    expected = sum(way for way in of_sum if way <= of_sum[5]) / total
    assert stratified_fisher(strata) == pytest.approx(expected)


def test_the_rank_correlation_is_spearmans() -> None:
    """Ties included; its p-value is near the one of SciPy."""
    sizes, lengths = [3, 7, 8, 8, 30, 70, 70, 400], [0, 32, 0, 36, 40, 32, 64, 80]
    expected = spearmanr(sizes, lengths)
    coefficient, p = rank_correlation(sizes, lengths)
    assert coefficient == pytest.approx(expected.statistic)
    assert p == pytest.approx(expected.pvalue, abs=0.02)
