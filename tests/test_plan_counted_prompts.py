"""Prompts that the model's tokenizer counts before they are asked."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from eyechart.harness.analysis.samples.judged_run import read_run
from eyechart.harness.errors import JournalError
from eyechart.harness.journal.manifest import MANIFEST, read_manifest
from eyechart.harness.plan.counted_prompts import counted_prompts
from eyechart.harness.settings.shard import Shard
from eyechart.harness.spec.token_counts import read
from tests.conftest import Lab, right
from tests.tokens import LENGTHS, Counting


def test_three_lines_and_eight_rows_of_each_condition(lab: Lab) -> None:
    """The shortest, the longest and one between; the run's tokens a symbol follow from them."""
    wanted = lab.wanted(lengths=LENGTHS, samples=20)
    provider = Counting(right)
    lab.run(wanted, provider)
    texts = read_manifest(wanted.folder).counted
    assert list(texts) == ["separator=none", "separator=comma"]
    prompts = read(texts["separator=comma"])
    assert len(provider.counted) == 48
    assert [(one.row, one.length) for one in prompts] == [
        (row, length) for length in (2, 8, 32) for row in range(8)
    ]
    found = [judged.tokens_a_symbol for judged in read_run(wanted.folder).conditions.values()]
    assert [one and (round(one.value, 6), one.source) for one in found] == [
        (1, "tokenizer"),
        (2, "tokenizer"),
    ]


def test_few_rows_are_asked_on_more_lines(lab: Lab) -> None:
    """So that two rows are enough."""
    plan = lab.wanted(lengths=LENGTHS, samples=2).plan
    found = asyncio.run(counted_prompts(plan, Counting(right), ()))
    assert [len(prompts) for prompts in found.values()] == [10, 10]


def test_a_shard_counts_its_own_rows(lab: Lab) -> None:
    """Another row may not be made here."""
    plan = replace(lab.wanted(lengths=LENGTHS, samples=6).plan, shard=Shard.read("2/2"))
    found = asyncio.run(counted_prompts(plan, Counting(right), ()))
    assert {one.row for prompts in found.values() for one in prompts} == {1, 3, 5}


def test_what_is_counted_is_not_counted_again(lab: Lab) -> None:
    """A later command adds rows; a new condition is counted."""
    lab.run(lab.wanted(lengths=LENGTHS, axes={"separator": ["none"]}), Counting(right))
    provider = Counting(right)
    lab.run(lab.wanted(lengths=LENGTHS, samples=9), provider)
    assert len(provider.counted) == 24
    assert all("," in prompt for prompt in provider.counted[-8:])


@pytest.mark.parametrize("fails", [True, False])
def test_without_a_tokenizer_the_run_goes_on(lab: Lab, *, fails: bool) -> None:
    """Whether it fails or there is none."""
    wanted = lab.wanted()
    lab.run(wanted, Counting(right, fails=True) if fails else None)
    manifest = read_manifest(wanted.folder)
    assert manifest.counted == {}
    assert read_run(wanted.folder).missing == 0


def test_a_manifest_with_another_text_is_refused(lab: Lab) -> None:
    """It names the field."""
    wanted = lab.wanted()
    lab.run(wanted, Counting(right))
    path = wanted.folder / MANIFEST
    path.write_text(path.read_text().replace("0:3:", "0:x:"))
    with pytest.raises(JournalError, match="counted"):
        read_manifest(wanted.folder)
