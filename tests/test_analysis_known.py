"""What a model knows and does not say: replies against likelihoods on the same samples."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

import eyechart
from eyechart.harness.analysis.comparison.comparison import Comparison, compare_runs
from eyechart.harness.analysis.samples.judged_run import read_run
from eyechart.harness.analysis.samples.reply_and_choice import (
    ReplyAndChoice,
    known,
    known_and_not_said,
)
from eyechart.harness.journal.manifest import MANIFEST
from eyechart.providers import descriptors
from eyechart.providers.likelihood import scored_reply
from tests.pages import text_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from eyechart.providers.base import Api, Request
    from tests.conftest import Lab

SAID = (
    "model knows what it does not say at length 5: of the 10 replies there that are not right the "
    "likelihood has 10 right, and guessing would have 1 right; of 20 pairs both readings are right "
    "in 10, only the reply in 0, only the likelihood in 10, neither in 0"
)


def answering(knows: Callable[[str], bool]) -> Callable[[Request], Any]:
    """Says what is right at length 3 alone; by likelihood it has right what it `knows`."""

    def answer(request: Request) -> Any:
        if not request.options:
            right = request.prompt.splitlines()[-1].count("1")
            return f"Final answer: {right if 'length=3' in request.sample_id else 77}"
        values = [-3.0] * len(request.options)
        values[0 if knows(request.sample_id) else 1] = -1.0
        return scored_reply(request, [[value] for value in values])

    return answer


@pytest.fixture
def readings(lab: Lab) -> Callable[..., tuple[Path, Path]]:
    """Both readings of a model: the folders of its replies and of its likelihoods."""

    def asked(knows: Callable[[str], bool], *arguments: str) -> tuple[Path, Path]:
        name = lab.fake(answering(knows))
        apis: tuple[Api, ...] = ("chat",)
        able = replace(descriptors.BUILT_IN["fake"], likelihood=lambda _addresses: apis)
        lab.monkeypatch.setitem(descriptors.BUILT_IN, "fake", able)
        wanted = arguments or ("--samples", "10", "--axis", "separator=none")
        for reading in ((), ("--read", "likelihood")):
            assert lab.bench_ask("--model", name, *wanted, *reading).code == 0
        said, chosen = (
            next((lab.out / "runs" / "fake" / one / "lab").iterdir())
            for one in ("model", "model@likelihood")
        )
        return said, chosen

    return asked


KIND = "known and not said"


def known_text(comparison: Comparison) -> str:
    found = known_and_not_said(comparison)
    return found.sentence if found else ""


def test_every_door_says_what_is_known_and_not_said(
    lab: Lab, readings: Callable[..., tuple[Path, Path]]
) -> None:
    """The terminal, JSON, Python and the page have one sentence, in either order of the runs."""
    folders = readings(lambda _id: True)
    said, chosen = map(read_run, folders)
    sentence = known_text(compare_runs(said, chosen))
    assert SAID in sentence
    assert sentence.endswith(" symbols by its replies and to more than 5 by its likelihoods.")
    assert known_text(compare_runs(chosen, said)) == sentence
    assert known_text(compare_runs(said, chosen).swapped) == sentence
    printed = lab.bench("compare", *folders).out
    assert sentence in " ".join(printed.split())
    (pair,) = json.loads(lab.bench("compare", *folders, "--json").out)["pairs"]
    assert [one["sentence"] for one in pair["findings"] if one["kind"] == KIND] == [sentence]
    compared = eyechart.compare(*folders)
    assert [one.sentence for one in compared.findings if one.kind == KIND] == [sentence]
    assert sentence in repr(compared).splitlines()
    page = lab.folder / "page.html"
    lab.bench("report", *folders, "--task", lab.ones, "-o", page)
    assert sentence in page.read_text(encoding="utf-8")


def test_the_model_has_the_name_that_tables_give_it(
    readings: Callable[..., tuple[Path, Path]],
) -> None:
    """`--name` renames the model in the sentence too, in either order of the runs."""
    folders = readings(lambda _id: True)
    for folder in folders:
        path = folder / MANIFEST
        fields = json.loads(path.read_text()) | {"served_as": "fake/served"}
        path.write_text(json.dumps(fields))
    said, chosen = map(read_run, folders)
    assert said.manifest.asked_as == "fake/served"
    for pair in ((said, chosen), (chosen, said)):
        assert known_text(compare_runs(*pair)).startswith("fake/model knows what it does not")


def test_the_page_has_the_pairs_as_a_chart_and_a_table(
    lab: Lab, readings: Callable[..., tuple[Path, Path]]
) -> None:
    """Of both readings in either order; a page of one reading has neither."""
    said, chosen = readings(lambda id_: "index=4" not in id_)
    page = lab.folder / "page.html"
    for folders in ((said, chosen), (chosen, said)):
        lab.bench("report", *folders, "--task", lab.ones, "-o", page)
        text = text_of(page)
        assert '"length":5,"reading":"only the likelihood","rank":1,"n":9,"share":0.9}' in text
        assert '"length":5,"reading":"neither","rank":3,"n":1,"share":0.1}' in text
        assert '"guesses":[{"length":3,"share":0.9,"n":0' in text
    lab.bench("report", said, "--task", lab.ones, "-o", page)
    assert "only the likelihood" not in text_of(page)


def test_as_many_as_guesses_are_no_knowledge(readings: Callable[..., tuple[Path, Path]]) -> None:
    """One of ten is what guesses have."""
    said, chosen = readings(lambda id_: "length=3" in id_ or "index=4" in id_)
    compared = compare_runs(read_run(said), read_run(chosen))
    assert [
        (row.length, row.both, row.only_said, row.only_known, row.neither)
        for row in known(compared)
    ] == [(3, 10, 0, 0, 0), (5, 0, 0, 1, 9)]
    assert "It is not shown that " in known_text(compared)
    assert "the likelihood has 1 right, and guessing would have 1 right;" in known_text(compared)


@pytest.mark.parametrize(("most", "is_shown"), [(5, False), (6, True)])
def test_a_length_is_named_after_the_correction_for_all(
    readings: Callable[..., tuple[Path, Path]],
    most: int,
    is_shown: bool,
) -> None:
    """Five of twenty have p = 0.04, and twice that for two lengths; six have 0.01."""

    def knows(id_: str) -> bool:
        return "length=3" in id_ or int(id_.rpartition("=")[2]) < most

    said, chosen = readings(knows, "--samples", "20", "--axis", "separator=none")
    compared = compare_runs(read_run(said), read_run(chosen))
    assert (0.02 < known(compared)[1].p < 0.05) is not is_shown
    assert ("knows what it does not say at length 5:" in known_text(compared)) is is_shown


def test_conditions_are_counted_together(readings: Callable[..., tuple[Path, Path]]) -> None:
    """Each length of all conditions; effective lengths are those of one condition alone."""
    said, chosen = readings(lambda _id: True, "--samples", "4", "--axis", "separator=all")
    compared = compare_runs(read_run(said), read_run(chosen))
    assert [row.only_known for row in known(compared)] == [0, 12]
    assert "by its replies" not in known_text(compared)


def test_one_reply_is_no_plural(readings: Callable[..., tuple[Path, Path]]) -> None:
    """One row of one condition, whose reply is wrong."""
    wanted = ("--samples", "1", "--axis", "separator=none")
    said, chosen = readings(lambda _id: True, *wanted)
    found = known_text(compare_runs(read_run(said), read_run(chosen)))
    assert "of the one reply that is not right the likelihood has 1 right, and" in found


def test_other_comparisons_have_no_such_sentence(
    lab: Lab, readings: Callable[..., tuple[Path, Path]]
) -> None:
    """Of two models, also where one is read by likelihood."""
    said, chosen = readings(lambda _id: True)
    other = lab.fake(answering(lambda _id: True)).replace("model", "other")
    lab.bench_ask("--model", other, "--samples", "10", "--axis", "separator=none")
    theirs = next((lab.out / "runs" / other / "lab").iterdir())
    for first, second in ((theirs, chosen), (said, theirs)):
        compared = compare_runs(read_run(first), read_run(second))
        assert known(compared) == []
        assert known_text(compared) == ""
    (pair,) = json.loads(lab.bench("compare", said, theirs, "--json").out)["pairs"]
    assert KIND not in {one["kind"] for one in pair["findings"]}


@pytest.mark.parametrize(
    ("right", "wrong", "p"),
    [(2, 0, 0.01), (1, 1, 0.19), (0, 9, 1.0), (0, 0, 1.0)],
)
def test_the_exact_test_of_guesses(right: int, wrong: int, p: float) -> None:
    """Of guesses that are right in one of ten: both of two, at least one of two, at least none."""
    row = ReplyAndChoice(5, 3, 1, right, wrong, 0.1 * (right + wrong))
    assert row.p == pytest.approx(p)
