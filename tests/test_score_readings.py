"""Which wrong replies have the right answer in them."""

from __future__ import annotations

import pytest

from eyechart.harness.score.answer_type import PlainAnswerForm
from eyechart.harness.score.judge import judge
from eyechart.harness.score.outcomes import Outcome
from eyechart.harness.score.readings import Recount, reading_of
from eyechart.harness.score.verdict import Target

WORDS = "tea cake milk tea"
TOPIC = "The role of art"
MISREAD: list[tuple[str, Target, str]] = [
    ("text", WORDS, f"Вот слова по порядку: {WORDS}, и это всё."),
    ("text", WORDS, f"In the row I see: {WORDS} (4 words)."),
    ("text", WORDS, f"Final answer: **{WORDS.title()}**"),
    ("text", TOPIC, 'The first topic was "The role of Art".'),
    ("text", TOPIC, "We first discussed the role of Art in our talk."),
    ("text", TOPIC, "第一个话题是The role of Art。"),
    ("list", "a, b, c", "Ответ: a, b, c"),
    ("list", "a, b, c", "Final answer: Sure, here: a, b, c"),
    ("code", "AB12-9", "Final answer: ab12-9"),
    ("symbol", "x", "Final answer: X"),
    ("integer", 12, "Zahl der Einsen: 12\nLänge: 20"),
    ("integer", 1234, "There are 1,234 ones\n\n20"),
    ("number", 3.0, "It is 3\n\n4"),
]
WRONG: list[tuple[str, Target, str]] = [
    ("text", WORDS, "Final answer: steatea cake milk teas"),
    ("text", WORDS, f"Final answer: {WORDS} cake"),
    ("text", WORDS, f"Final answer: {WORDS} juice"),
    ("text", WORDS, f"Label: {WORDS} juice"),
    ("text", WORDS, f"Final answer: milk {WORDS}"),
    ("text", WORDS, f"The row is {WORDS}.\nFinal answer: milk"),
    ("text", "a", "Final answer: it is a b"),
    ("list", "a, b, c", "Final answer: a, b, c, d"),
    ("list", "a, b, c", "Final answer: The items are: a, b, c, d"),
    ("code", "AB12-9", "Final answer: AB12-9x"),
    ("symbol", "x", "It is x\n\n'y'"),
    ("integer", 12, "There are 12 ones.\nFinal answer: 13"),
    ("integer", 12, "There are 112 ones, and 20 in all.\n13"),
    ("integer", 12, "1 2 3 4 5 6 7 8 9 10 11 12 13\n13"),
]


def reading(kind: str, target: Target, reply: str, *, needs_phrase: bool = False) -> Recount:
    form = PlainAnswerForm(kind, ("Final answer:",), phrase_required=needs_phrase)
    verdict = judge(
        text=reply, finish_reason="stop", refusal=None, failure=None, target=target, answer=form
    )
    assert verdict.outcome is Outcome.INCORRECT
    return reading_of(reply, verdict, form, (target,))


@pytest.mark.parametrize(("kind", "target", "reply"), MISREAD)
def test_a_wrong_reply_with_the_right_answer_may_be_right(
    kind: str, target: Target, reply: str
) -> None:
    """In another case, with markup, in a sentence, or after a label of another language."""
    assert reading(kind, target, reply) is Recount.MAY_BE_RIGHT


@pytest.mark.parametrize(("kind", "target", "reply"), WRONG)
def test_a_right_answer_within_something_else_is_none(
    kind: str, target: Target, reply: str
) -> None:
    """A longer word, row or list, all numbers of a count, and thoughts before the answer phrase."""
    assert reading(kind, target, reply) is Recount.AS_JUDGED


def test_a_reply_that_lacks_a_required_phrase_is_wrong() -> None:
    """Whatever it has in it: the task says so."""
    said = f"The first topic: {TOPIC}, I think."
    assert reading("text", TOPIC, said) is Recount.MAY_BE_RIGHT
    assert reading("text", TOPIC, said, needs_phrase=True) is Recount.AS_JUDGED
