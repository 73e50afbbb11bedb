"""Rotary positions: published bounds, distances that were computed independently, the command."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from eyechart_lab.probe.rope import (
    decay_bound,
    drawn_similarity,
    first_negative,
    frequencies,
    least_base,
    similarity,
)

if TYPE_CHECKING:
    from tests.conftest import Lab


@pytest.mark.parametrize(
    ("base", "distance"),
    [(1e4, 1_707), (5e5, 18_438), (1e6, 27_115), (16_000, 2_724), (17_000, 1_888)],
)
def test_the_first_negative_distance(base: float, distance: int) -> None:
    """Also where a larger base is worse: 17,000 against 16,000."""
    assert first_negative(base, 128) == distance
    near = similarity(base, 128, [distance - 1, distance])
    assert near[0] >= 0 > near[1]


def test_no_distance_is_negative() -> None:
    """Within those that are searched."""
    assert first_negative(5e5, 128, 18_438) is None


@pytest.mark.parametrize(("context", "published"), [(1_024, 4.3e3), (4_096, 2.7e4), (8_192, 8.4e4)])
def test_the_least_base_is_that_of_men_et_al(context: int, published: float) -> None:
    """Men et al. 2024, Table 2, two digits. A smaller base of the grid is too small."""
    base = least_base(context, 128)
    assert base is not None
    assert float(f"{base:.1e}") == published
    assert first_negative(base, 128, context) is None
    assert first_negative(base / 1.001, 128, context) is not None


@pytest.mark.parametrize(
    ("context", "published", "least", "negative"),
    [
        (2_048, 1.6e4, 11_589, None),
        (16_384, 3.1e5, 234_055, 12_223),
        (131_072, 7.8e6, 4_870_931, 128_915),
    ],
)
def test_where_published_bases_are_not_the_least(
    context: int, published: float, least: int, negative: int | None
) -> None:
    """In two of three cases they break their own condition. The chapter has these numbers."""
    base = least_base(context, 128)
    assert base is not None
    assert round(base) == least < published
    assert first_negative(base, 128, context) is None
    assert first_negative(published, 128, context) == negative
    chapter = (Path(__file__).parents[2] / "docs" / "rope.md").read_text(encoding="utf-8")
    assert f"| {least:,} |" in chapter
    assert negative is None or f"negative at {negative:,}," in chapter


def test_no_base_is_large_enough_for_two_pairs() -> None:
    """The first pair turns by a radian a step whatever the base is."""
    assert least_base(4_096, 4) is None


def test_similarity_is_a_product_of_turned_vectors() -> None:
    """Of ones, and of the drawn vectors, whose length does not change."""
    angles = 700 * frequencies(1e4, 16)
    ones = np.array([[np.cos(angles) - np.sin(angles)], [np.cos(angles) + np.sin(angles)]])
    assert ones.sum() / 16 == pytest.approx(similarity(1e4, 16, [700])[0])
    drawn = drawn_similarity(1e4, 512, np.arange(0, 200_000, 97))
    early, late = np.abs(drawn[:200]).mean(), np.abs(drawn[-200:]).mean()
    assert early < 3 * late, "it does not decay"
    plain = np.abs(similarity(1e4, 512, np.arange(0, 200_000, 97)))
    assert plain[:20].mean() > 5 * plain[-200:].mean(), "this does"


@pytest.mark.parametrize("distance", [0, 1, 30, 5_000])
def test_the_bound_bounds_scores(distance: int) -> None:
    """Of drawn queries and keys; it is 1 at distance 0, and where there is one pair."""
    rng = np.random.default_rng(3)
    products = rng.standard_normal((2000, 32)) + 1j * rng.standard_normal((2000, 32))
    scores = np.abs((products * np.exp(1j * distance * frequencies(1e4, 64))).sum(axis=1))
    steps = np.abs(np.diff(products, axis=1, append=0)).max(axis=1)
    (bound,) = decay_bound(1e4, 64, [distance])
    assert (scores <= steps * bound * 16 * 33).all()
    assert decay_bound(1e4, 2, [distance]) == pytest.approx(1)
    assert distance or bound == pytest.approx(1)


def test_the_bound_of_two_pairs() -> None:
    """(1 + 2 |cos(m (1 - w) / 2)|) / 3, where the second pair turns by w."""
    distances = np.arange(300)
    found = decay_bound(100, 4, distances)
    np.testing.assert_allclose(found, (1 + 2 * np.abs(np.cos(distances * 0.9 / 2))) / 3)


def test_the_command(lab: Lab) -> None:
    """Table, document and files have the same numbers."""
    files = [lab.folder / "new" / "rope.csv", lab.folder / "new" / "rope.svg"]
    arguments = ["rope", "--base", "10000,1e6", "--head-dim", "32", "--context", "64", "--to", "99"]
    done = lab.bench(*arguments, "-o", files[0], "-o", files[1])
    assert done.code == 0, done
    document = json.loads(lab.bench(*arguments, "--json").out)
    for base in document["bases"]:
        assert f"{base['first_negative']:,} |" in done.out
    assert f"{document['contexts'][0]['least_base']:,.0f} |" in done.out
    with files[0].open(newline="") as file:
        rows = list(csv.DictReader(file))
    curve = [point for base in document["bases"] for point in base["curve"]]
    assert len(rows) == len(curve) == 200
    for row, point in zip(rows, curve, strict=True):
        assert {name: float(row[name]) for name in point} == pytest.approx(point, abs=1e-5)
    assert files[1].read_text().startswith("<svg")


@pytest.mark.parametrize("name", ["out.csv", "out.svg"])
def test_an_output_replaces_its_own_kind_alone(lab: Lab, name: str) -> None:
    """A file of somebody else stays; the verb's own is made anew."""
    out = lab.folder / name
    out.write_text('{"mine": 1}\n')
    lab.bench("rope", "--base", "10000", "-o", out).one_line(2, "would be lost")
    assert out.read_text() == '{"mine": 1}\n'
    out.write_text("")
    for _ in range(2):
        assert lab.bench("rope", "--base", "10000", "-o", out).code == 0
    assert len(out.read_bytes()) > 100


def test_one_base_written_twice_is_one_curve(lab: Lab) -> None:
    done = lab.bench("rope", "--base", "10000,1e4", "--context", "4", "--to", "9", "--json")
    (base,) = json.loads(done.out)["bases"]
    assert [point["distance"] for point in base["curve"]] == list(range(10))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--base", "1"], ["--base", "'1'"]),
        (["--base", "1e4,many"], ["--base", "'many'"]),
        (["--head-dim", "3"], ["--head-dim 3 is odd"]),
        (["--context", "0"], ["--context", "'0'"]),
        (["--context", "9" * 5000], ["--context", "1,048,576"]),
        (["--base", ",".join(map(str, range(2, 103)))], ["--base has 101 numbers", "at most 100"]),
        (["--context", ",".join(map(str, range(1, 102)))], ["--context has 101 numbers"]),
        (["-o", "rope.pdf"], ["'rope.pdf'", ".csv or .svg"]),
    ],
    ids=str,
)
def test_a_mistake_is_one_line(lab: Lab, arguments: list[str], words: list[str]) -> None:
    """That names the option."""
    lab.bench("rope", *arguments).one_line(2, *words)
