"""A run and its repeat: what counts as asked again, as the same text, as a changed verdict."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import pytest

from eyechart.harness.analysis.judged_run import JudgedRun, read_run
from eyechart.harness.analysis.repeat import ChangedVerdict, Repetition, other_model, repetition
from eyechart.harness.errors import CompareError
from eyechart.harness.spec import Settings, Spread
from eyechart.providers.base import BadRequestError, Reply, Request
from eyechart.providers.scripted import ScriptedProvider
from tests.conftest import right

if TYPE_CHECKING:
    from tests.conftest import Lab

Script = Callable[[Request], str | Reply | BadRequestError]


def judged(
    lab: Lab,
    model: str,
    script: Script = right,
    *,
    plans: Sequence[tuple[Sequence[int], Spread]] = (((3, 5), "none"),),
    seed: int = 0,
) -> JudgedRun:
    """A run of `ones` on `scripted/<model>`."""
    for lengths, spread in plans:
        wanted = lab.wanted(
            lengths=lengths, spread=spread, model=f"scripted/{model}", settings=Settings(seed=seed)
        )
        lab.run(wanted, ScriptedProvider(script))
    return read_run(wanted.folder)


def test_other_words_with_the_same_answer(lab: Lab) -> None:
    """Change the text and not the verdict; so does another wrong answer."""
    first = judged(lab, "a", lambda _: "Final answer: 77")
    second = judged(
        lab, "b", lambda request: f"Final answer: {77 + request.sample_id.count('length=3')}"
    )
    assert repetition(first, second) == Repetition("lab/ones", 16, 8, ())
    assert repetition(first, first) == Repetition("lab/ones", 16, 16, ())


def test_a_sample_of_two_lines_counts_once(lab: Lab) -> None:
    """An exact length and a band around it share samples."""
    plans: list[tuple[Sequence[int], Spread]] = [((4,), "none"), ((4, 8), "bands")]
    first = judged(lab, "a", plans=plans)
    second = judged(lab, "b", lambda _: "Final answer: 77", plans=plans)
    ids = {change.id for change in repetition(first, second).changed}
    samples = sum(cell.samples for cell in first.manifest.cells)
    assert len(repetition(first, second).changed) == len(ids) < samples
    assert repetition(first, second).asked == len(ids)


def test_samples_without_a_reply_do_not_count(lab: Lab) -> None:
    """On either side. A refusal is a verdict like any other."""
    refuses = Reply("", refusal="I will not")

    def script(request: Request) -> str | Reply | BadRequestError:
        if "index=0" in request.sample_id:
            return BadRequestError("not now")
        return refuses if "length=5|seed=0|index=1" in request.sample_id else right(request)

    first, second = judged(lab, "a"), judged(lab, "b", script)
    changed = repetition(first, second).changed
    assert changed == tuple(
        ChangedVerdict(f"lab/ones@1|separator={name}|length=5|seed=0|index=1", "correct", "refused")
        for name in ("none", "comma")
    )
    assert repetition(first, second).asked == repetition(second, first).asked == 12
    assert repetition(first, second).same_text == 10


def test_a_part_of_the_run(lab: Lab) -> None:
    """Only what both have is compared; nothing at all is no error."""
    first = judged(lab, "a")
    assert repetition(first, judged(lab, "b", plans=[((3,), "none")])).asked == 8
    assert repetition(first, judged(lab, "c", plans=[((4,), "none")])).asked == 0


def test_other_prompts_are_refused(lab: Lab) -> None:
    """Rows of another seed are not the same samples."""
    with pytest.raises(CompareError, match="its prompts are not those of"):
        repetition(judged(lab, "a"), judged(lab, "b", seed=1))


def test_the_lines() -> None:
    """The numbers, kinds of changes by their frequency, and ten samples."""
    changes = [ChangedVerdict(f"id {number}", "correct", "incorrect") for number in range(11)]
    changes.append(ChangedVerdict("id 11", "unparsed", "correct"))
    lines = list(Repetition("task", 2000, 1500, tuple(changes)).lines())
    numbers = "1,500 replies are the same text, 1,988 verdicts the same; 12 changed"
    kinds = "11 correct now incorrect, 1 unparsed now correct"
    assert lines[:2] == [
        f"task: 2,000 samples asked again; {numbers}: {kinds}",
        "  id 0: correct, now incorrect",
    ]
    assert len(lines) == 12
    assert lines[-1] == "  … and 2 more"


def test_another_server(lab: Lab) -> None:
    """Each fact that differs is said; a name that only one of several replies had, too."""
    first, second = judged(lab, "a"), judged(lab, "b")
    assert list(other_model(first, second)) == []
    first.manifest.server |= {"version": "1"}
    second.manifest.server |= {"version": "2"}
    first.manifest.answered_by = ["x", "y"]
    second.manifest.answered_by = ["y", "z"]
    assert list(other_model(first, second)) == [
        "the repeat was answered by 'z', and the run by 'x', 'y'",
        "the server is another one: version was '1', is '2'",
    ]
