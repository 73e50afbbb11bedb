"""Replies that repeat themselves until they are cut off."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from eyechart.harness.score.loops import is_lost
from eyechart.providers.base import Reply, Request, Usage
from tests.conftest import records, right

if TYPE_CHECKING:
    from tests.conftest import Lab

WRITES = "The count: " + "writes 1, " * 30


def test_they_are_asked_once_and_their_cost_is_said(lab: Lab) -> None:
    """More room would only be paid for; after five the user knows."""
    asked: list[int] = []

    def reply(request: Request) -> Reply:
        asked.append(request.max_tokens)
        if len(request.prompt.splitlines()[-1].replace(",", "")) <= 3:
            return Reply(right(request))
        return Reply(WRITES, "length", usage=Usage(20, request.max_tokens))

    done = lab.bench_run("--model", lab.fake(reply), "--samples", "8")
    assert done.code == 0
    assert len(asked) == len(records(lab.the_run()))
    assert set(asked) == {asked[0]}
    said = f"5 replies so far repeat themselves until they are cut off, at about {asked[0]:,}"
    assert done.err.count("repeat themselves") == done.err.count(said) == 1
    assert "--max-tokens limits what they cost" in done.err
    shown = lab.bench("samples", lab.the_run(), "--outcome", "truncated").out
    assert "cut off while it repeated 'writes 1,'" in shown


def test_a_study_says_the_option(lab: Lab) -> None:
    """Its command takes the option beside the file."""
    cut = lab.fake(lambda request: Reply(WRITES, "length", usage=Usage(20, request.max_tokens)))
    path = lab.folder / "loops.yaml"
    path.write_text(
        f"name: loops\ntitle: Loops\nmodels: [{cut}]\ntasks: [lab/ones.yaml]\nlengths: [5, 9]\n"
    )
    done = lab.bench("run", path, "--trust", "--out", lab.out, "--keep-going")
    assert "; --max-tokens limits what they cost" in " ".join(done.err.split())


@pytest.mark.parametrize(
    ("text", "prompt", "lost"),
    [
        (WRITES, "a row of 1,1,1", True),
        ("1, " * 30, "Copy this row: " + "1" * 60, False),
        ("1, " * 30, "Copy this row: 1,1,1", True),
        ("a copy " * 4, "no row", False),
        ("", "", False),
    ],
)
def test_a_copy_of_a_row_is_none(text: str, prompt: str, *, lost: bool) -> None:
    """What the prompt repeats as often may be repeated, with another separator too."""
    assert is_lost(text, prompt) == lost
