"""A prompt as a text to be continued."""

from __future__ import annotations

from eyechart.providers.documents import as_document, stops, until_stop

PROMPT = "How many ones are in row ABC?\nAnswer at once.\nRow ABC: 111"


def test_the_text_ends_where_the_answer_begins() -> None:
    """So that what comes next is an answer."""
    assert as_document(PROMPT) == f"{PROMPT}\nAnswer:"
    assert as_document(f"{PROMPT}\nFinal answer:") == f"{PROMPT}\nFinal answer:"


def test_a_model_that_runs_on_is_stopped_at_the_next_question() -> None:
    """At its first words, at its row, at the cue; all of them few enough for any server."""
    assert stops(PROMPT) == ["\nHow many ones", "\nRow", "\nAnswer:"]
    assert len(stops("a")) <= 4


def test_texts_are_cut_at_the_first_stop() -> None:
    """And left alone where there is none."""
    assert until_stop(" 3\nRow ABD: 11\nHow many ones", PROMPT) == " 3"
    assert until_stop(" 3, since Row ABC has three", PROMPT) is None
