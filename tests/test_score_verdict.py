from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eyechart.harness.score.judge import judge
from eyechart.harness.score.verdict import Verdict, edit_distance
from eyechart.harness.spec.answer import Answer

if TYPE_CHECKING:
    from collections.abc import Callable

    from eyechart.harness.score.outcomes import Outcome

INTEGER, SYMBOL, TEXT = Answer(type="integer"), Answer(type="symbol"), Answer(type="text")
MANY = settings(max_examples=60, deadline=None)


def verdict(
    text: str,
    target: int | str,
    answer: Answer,
    *,
    finish_reason: str = "stop",
    refusal: str | None = None,
    failure: str | None = None,
) -> Verdict:
    return judge(
        text=text,
        finish_reason=finish_reason,
        refusal=refusal,
        failure=failure,
        target=target,
        answer=answer,
    )


@pytest.mark.parametrize(
    ("text", "target", "outcome", "error"),
    [
        ("Final answer: 7", 7, "correct", 0),
        ("Final answer: 17", 7, "incorrect", 10),
        ("Final answer: 5", 7, "incorrect", -2),
        ("Final answer: -7", 7, "incorrect", -14),
        ("Final answer: 1 2 3 4 5 6 7 8 9 10", 7, "unparsed", None),
        ("1 2 3 4 5 6 7", 7, "unparsed", None),
        ("Final answer: seven", 7, "correct", 0),
        ("", 0, "unparsed", None),
        ("<think>7", 7, "unparsed", None),
    ],
)
def test_an_integer_has_a_signed_error(
    text: str, target: int | str, outcome: Outcome, error: int | None
) -> None:
    """17 is wrong where 7 is right, and by how much is known."""
    found = verdict(text, target, INTEGER)
    assert (found.outcome, found.signed_error) == (outcome, error)
    assert found.absolute_error == (None if error is None else abs(error))
    assert (found.similarity, found.first_divergence, found.ended) == (None, None, None)
    assert bool(found.why) == (outcome == "unparsed")


@pytest.mark.parametrize(
    ("text", "target", "outcome"),
    [
        ("Final answer: 0", "0", "correct"),
        ("Final answer: zero", "0", "correct"),
        ("Final answer: zero", "zero", "correct"),
        ("Final answer: K", "k", "incorrect"),
        ("Final answer: 10", "0", "incorrect"),
        ("Final answer: 0 or 1", "0", "unparsed"),
        ("Final answer: a", "a", "correct"),
    ],
)
def test_a_symbol_is_right_or_wrong(text: str, target: int | str, outcome: Outcome) -> None:
    """Symbols match whole and case for case; they have no error."""
    found = verdict(text, target, SYMBOL)
    assert (found.outcome, found.signed_error, found.similarity) == (outcome, None, None)


@pytest.mark.parametrize(
    ("said", "outcome", "similarity", "first", "ended"),
    [
        ("a b c d", "correct", 1.0, None, None),
        ("a b c d.", "correct", 1.0, None, None),
        ("**a b c d**", "correct", 1.0, None, None),
        ("a  b\nc d", "correct", 1.0, None, None),
        ("a b c d..", "incorrect", 0.75, 3, None),
        ("a b x d", "incorrect", 0.75, 2, None),
        ("a b c", "incorrect", 0.75, 3, "early"),
        ("a b c d e", "incorrect", 0.8, 4, "late"),
        ("b c d", "incorrect", 0.75, 0, "early"),
        ("x y z w", "incorrect", 0.0, 0, None),
        ("A b c d", "incorrect", 0.75, 0, None),
    ],
)
def test_a_text_is_compared_word_by_word(
    said: str, outcome: Outcome, similarity: float, first: int | None, ended: str | None
) -> None:
    """A copied row has a similarity, the place where it goes wrong, and its end."""
    found = verdict(f"Final answer: {said}", "a b c d", TEXT)
    assert found.outcome == outcome
    assert found.similarity == pytest.approx(similarity)
    assert (found.first_divergence, found.ended, found.signed_error) == (first, ended, None)


def test_a_full_stop_at_the_end_is_forgiven_on_either_side() -> None:
    """A sentence to copy is right with and without its full stop."""
    for target in ("the cat sat.", "the cat sat"):
        for said in ("the cat sat.", "the cat sat", '"The cat sat."'.replace("T", "t")):
            assert verdict(f"Final answer: {said}", target, TEXT).outcome == "correct"


@pytest.mark.parametrize(
    ("given_failure", "outcome"),
    [
        ("overflow", "overflow"),
        ("refused", "refused"),
        ("error", "error"),
        ("error: BadRequestError", "error"),
        ("", "error"),
    ],
)
def test_a_failure_is_not_scored_as_wrong(given_failure: str, outcome: Outcome) -> None:
    """What was recorded in place of a reply decides, whatever else is there."""
    found = verdict("Final answer: 7", 7, INTEGER, failure=given_failure)
    assert found == Verdict(outcome, why=given_failure)


def test_half_a_reply_that_ended_for_no_known_reason_is_no_wrong_answer() -> None:
    """A vendor's new word; an answer behind the phrase is one whatever the word."""
    for text, outcome in (
        ("The row has 1", "unparsed"),
        ("The row has 12", "correct"),
        ("Final answer: 1", "incorrect"),
    ):
        assert verdict(text, 12, INTEGER, finish_reason="other").outcome == outcome
    assert verdict("The row has 1", 12, INTEGER).outcome == "incorrect"


@pytest.mark.parametrize(
    ("finish_reason", "refusal", "outcome"),
    [
        ("content_filter", None, "refused"),
        ("stop", "I can't.", "refused"),
        ("stop", "", "correct"),
        ("other", None, "correct"),
        ("length", "no", "refused"),
    ],
)
def test_the_providers_refusal_counts(
    finish_reason: str, refusal: str | None, outcome: Outcome
) -> None:
    """A refusal field that is set, or a content filter, is a refusal."""
    found = verdict("Final answer: 7", 7, INTEGER, finish_reason=finish_reason, refusal=refusal)
    assert found.outcome == outcome


@pytest.mark.parametrize(
    ("text", "target", "answer", "outcome"),
    [
        ("", 7, INTEGER, "truncated"),
        ("<think>Final answer: 7.\n", 7, INTEGER, "truncated"),
        ("one, two, three: 3\nfour: 4\nfive: 5", 5, INTEGER, "truncated"),
        ("Final answer: 1", 1, INTEGER, "truncated"),
        ("Final answer: 12.", 12, INTEGER, "truncated"),
        ("Final answer: 12\nI wri", 12, INTEGER, "correct"),
        ("Final answer: 12\n\nQuestion: 5 + 5", 11, INTEGER, "incorrect"),
        ("**Final answer: 12** and", 12, INTEGER, "correct"),
        ("Final answer: 12\nNo: Final answer: 1", 12, INTEGER, "truncated"),
        ("Final answer: twenty", 20, INTEGER, "truncated"),
        ("12\n", 12, INTEGER, "truncated"),
        ("Final answer: ki", "ki", SYMBOL, "truncated"),
        ("Final answer: k\nQu", "k", SYMBOL, "correct"),
        ("Final answer: a b", "a b", TEXT, "truncated"),
        ("Final answer: a b\n\nQ: what", "a b", TEXT, "correct"),
        ("Final answer:\na b\nQ: what", "a b", TEXT, "correct"),
        ("Final answer:\na b", "a b", TEXT, "truncated"),
        ("a b\nc d", "a b", TEXT, "truncated"),
    ],
)
def test_a_cut_off_reply_is_judged_only_if_its_answer_is_whole(
    text: str, target: int | str, answer: Answer, outcome: Outcome
) -> None:
    """The end of a cut-off reply is no answer, unless the answer was complete before the cut."""
    found = verdict(text, target, answer, finish_reason="length")
    assert found.outcome == outcome
    assert (found.answer is None) == (outcome == "truncated")


@pytest.mark.parametrize(
    "text",
    [
        "I'm sorry, but I can't help with that.",
        "I\u2019m sorry, but I can\u2019t assist with that request.",
        "I cannot assist with this.",
        "I am very sorry, I won't do that.",
        "Sorry, I am not able to provide this.",
        "Unfortunately, I'm unable to help.",
        "I apologize, but I cannot fulfill this request.",
        "As an AI language model, I am unable to count.",
        "As an AI, I cannot help here.",
        "<think>Is this safe?</think>\n\n**I can't help with that.**",
    ],
)
def test_a_refusal_in_words_is_a_refusal(text: str) -> None:
    """Where no answer can be read, the usual words of refusal say why."""
    for target, answer in ((7, INTEGER), ("k", SYMBOL), ("a b c", TEXT)):
        found = verdict(text, target, answer)
        assert found.outcome == "refused"
        assert found.answer is None
        assert found.why


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("I'm sorry, but I can't help with that.\nFinal answer: 7", "correct"),
        ("I'm sorry, I lost count.", "unparsed"),
        ("I cannot see how many there are.", "unparsed"),
        ("There are many. I can't help with that.", "unparsed"),
        ("I can help with that!", "unparsed"),
    ],
)
def test_not_all_that_sounds_sorry_is_a_refusal(text: str, outcome: Outcome) -> None:
    """An answer wins over an apology, and not knowing is not refusing."""
    assert verdict(text, 7, INTEGER).outcome == outcome


def test_a_text_that_reads_like_a_refusal_can_be_right() -> None:
    """A task may ask to copy a refusal; a right copy is right."""
    said = "I can't help with that"
    assert verdict(said, said, TEXT).outcome == "correct"
    assert verdict(f"Final answer: {said}", "kiwi", TEXT).outcome == "incorrect"


@MANY
@given(
    st.text(),
    st.sampled_from(["stop", "length", "content_filter", "other"]),
    st.one_of(st.none(), st.text(max_size=5)),
    st.one_of(st.none(), st.text(max_size=5)),
)
def test_no_text_raises(
    text: str, finish_reason: str, refusal: str | None, failure: str | None
) -> None:
    """Any reply has a verdict, and what is not judged has a reason and no answer."""
    for target, answer in ((7, INTEGER), ("k", SYMBOL), ("a b", TEXT)):
        for reply in (text, f"Final answer: {text}"):
            found = verdict(
                reply,
                target,
                answer,
                finish_reason=finish_reason,
                refusal=refusal,
                failure=failure,
            )
            judged = found.outcome in {"correct", "incorrect"}
            assert judged == (found.answer is not None)
            assert 0 <= found.start <= found.end <= len(reply)
            assert found.similarity is None or 0 <= found.similarity <= 1


def slow_distance(left: list[str], right: list[str]) -> int:
    row = list(range(len(right) + 1))
    for at, item in enumerate(left, 1):
        diagonal, row[0] = row[0], at
        for place, other in enumerate(right, 1):
            diagonal, row[place] = (
                row[place],
                min(row[place] + 1, row[place - 1] + 1, diagonal + (item != other)),
            )
    return row[-1]


words = st.lists(st.sampled_from("abcd"), max_size=80)


@MANY
@given(words, words)
def test_the_edit_distance_is_levenshteins(left: list[str], right: list[str]) -> None:
    """The bit-parallel distance is the one from the textbook's table."""
    assert edit_distance(left, right) == slow_distance(left, right)


@pytest.mark.parametrize(
    "change",
    [
        lambda row: row,
        lambda row: [*row[:5000], "odd", *row[5001:]],
        lambda row: [*row[1:], "odd"],
        lambda row: row[::-1],
        lambda row: [f"{word}{place}" for place, word in enumerate(row)],
        lambda row: row[:9000] + row,
        lambda _: ["kiwi"] * 20_000,
    ],
)
def test_ten_thousand_words_are_compared_in_a_moment(
    change: Callable[[list[str]], list[str]],
) -> None:
    """Long rows are no trouble, equal or not."""
    row = [f"word{place * place % 97}" for place in range(10_000)]
    begun = time.process_time()
    found = verdict("Final answer: " + " ".join(change(row)), " ".join(row), TEXT)
    assert found.outcome in {"correct", "incorrect"}
    assert time.process_time() - begun < 3.0
