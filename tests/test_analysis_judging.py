"""The verdict on a record of the journal, whatever the type of the answer."""

from __future__ import annotations

import pytest

from eyechart.harness.analysis.judging import verdict_of
from eyechart.harness.journal.record import Record, decode, encode
from eyechart.harness.spec import Condition
from eyechart.harness.spec.answer import Answer, Target


def read_again(target: Target, reply: str, accept: tuple[str, ...] | None = None) -> Record:
    """A record as the journal gives it back."""
    record = Record(
        id="x",
        condition=Condition(),
        length=1,
        index=0,
        target=target,
        prompt_hash="a",
        accept=accept,
        reply=reply,
    )
    return decode(encode(record))


@pytest.mark.parametrize(
    ("answer", "given", "reply", "wrong"),
    [
        (Answer(type="number"), 3, "3.0", "3.1"),
        (Answer(type="number"), 2.5e-7, "2.5e-7", "2.5"),
        (Answer(type="integer"), 10**30, str(10**30), "1"),
        (Answer(type="list"), ["a b", "c"], "a b, c", "c, a b"),
        (Answer(type="choice", options=("red", "blue"), letters=True), "blue", "B", "A"),
    ],
)
def test_targets_of_all_types_are_kept(
    answer: Answer, given: Target | list[str], reply: str, wrong: str
) -> None:
    """A target that was written is the target that is judged, and fits its type alone."""
    target = answer.kind.value(given)
    record = read_again(target, f"Final answer: {reply}")
    assert record.target == target
    assert type(record.target) is type(target)
    assert answer.kind.fits(record.target)
    assert verdict_of(record, answer).outcome == "correct"
    missed = read_again(target, f"Final answer: {wrong}")
    assert verdict_of(missed, answer).outcome == "incorrect"
    other = Answer(type="text" if answer.type in ("number", "integer") else "integer")
    assert not other.kind.fits(record.target)


def test_accepted_answers_are_kept() -> None:
    """The journal keeps what a verdict needs, so a run is judged again without its task file."""
    answer, reply = Answer(type="text"), "Final answer: La Paz"
    assert verdict_of(read_again("Sucre", reply, ("La Paz",)), answer).outcome == "correct"
    assert verdict_of(read_again("Sucre", reply), answer).outcome == "incorrect"
    assert read_again("Sucre", reply, ("La Paz", "b")).accept == ("La Paz", "b")
