"""The verdict on a record of the journal, whatever the type of the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import pytest

from eyechart.harness.analysis.samples.details import read_details
from eyechart.harness.analysis.samples.judged_run import read_run
from eyechart.harness.analysis.samples.verdicts import Judge, ends_of
from eyechart.harness.journal.record import Record, decode, encode
from eyechart.harness.spec import Condition, Settings, TaskSpec
from eyechart.harness.spec.answer import Answer, Target
from eyechart.harness.task.prompt import before_question, first_line, question_starts
from tests.conftest import right

if TYPE_CHECKING:
    from eyechart.providers.base import Request
    from tests.conftest import Lab


def of_task(spec: TaskSpec) -> Judge:
    """The judge of replies in a chat."""
    return Judge(spec.answer, ends_of(spec, "chat"), first_line(spec.prompt))


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
    target = answer.kind.value(given, answer)
    record = read_again(target, f"Final answer: {reply}")
    assert record.target == target
    assert type(record.target) is type(target)
    assert answer.kind.fits(record.target)
    assert Judge(answer).verdict(record).outcome == "correct"
    missed = read_again(target, f"Final answer: {wrong}")
    assert Judge(answer).verdict(missed).outcome == "incorrect"
    other = Answer(type="text" if answer.type in ("number", "integer") else "integer")
    assert not other.kind.fits(record.target)


def test_a_completion_ends_where_it_begins_another_question() -> None:
    """By the words and labels of its prompt. The record keeps all of the reply. In a chat only
    `Question:` after a blank line ends one, see `turns`.
    """
    spec = TaskSpec.model_validate(
        {
            "version": 1,
            "title": "x",
            "items": "x.jsonl",
            "prompt": "How many ones are in it?\nRow: {{ row }}\nWrite {{ phrase }} and it.",
            "answer": "integer",
        }
    )
    for again in ("\nHow many ones are there?", "\nRow: 1 1", "\n\nQuestion: why?", "\nQ: 5?"):
        record = read_again(12, f" Final answer: 12{again}\nFinal answer: 2")
        record.finish_reason = "length"
        assert Judge(spec.answer, ends_of(spec, "completions")).verdict(record).answer == 12
        record.finish_reason = "stop"
        in_chat = 12 if again.startswith("\n\n") else 2
        assert Judge(spec.answer, ends_of(spec, "chat")).verdict(record).answer == in_chat
    assert question_starts("Row {{ row }}\nAnswer: {{ x }}", "Answer:") == ("\nQuestion:", "\nQ:")
    assert before_question("\nQ: 7", ["\nQ:"]) == "\nQ: 7"


@pytest.mark.parametrize(
    ("prompt", "again"),
    [
        ("How many ones are in it?\nRow: {{ row }}", "How many ones are in it?"),
        ("Count the ones in {{ row }} and write it.", "Count the ones in 1 0 1"),
    ],
)
def test_a_chat_reply_ends_where_it_repeats_the_first_line_of_its_prompt(
    prompt: str, again: str
) -> None:
    """After an answer that follows the phrase; a text may end so without it."""
    fields = {
        "version": 1,
        "title": "x",
        "items": "x.jsonl",
        "prompt": f"{prompt}\n{{{{ phrase }}}} it",
    }
    for kind, target in (("integer", 12), ("text", "1 2")):
        judge = of_task(TaskSpec.model_validate({**fields, "answer": kind}))
        ended = f"Final answer: {target}\n{again}\nRow: 1\nFinal answer: 2"
        assert judge.verdict(read_again(target, ended)).outcome == "correct"
        for begin in (f"{again}\nI see 3.", f"Well.\n{again}"):
            whole = f"{begin}\nFinal answer: {target}"
            assert judge.verdict(read_again(target, whole)).outcome == "correct"
        other = f"Final answer: {target}\nI say {again}\nFinal answer: 2"
        assert judge.verdict(read_again(target, other)).outcome == "incorrect"
    judge = of_task(TaskSpec.model_validate({**fields, "answer": "integer"}))
    assert judge.verdict(read_again(12, f"It has 3 rows.\n{again}\n12")).outcome == "correct"


def test_a_first_line_of_few_words_ends_nothing() -> None:
    """It may be a sentence of the reply."""
    assert first_line("Count the ones:\nRow {{ row }}") is None
    assert first_line("{{ text }} How many ones are there?") is None


@pytest.mark.parametrize(
    ("prompt", "phrase", "read"),
    [
        *(
            ("The key is {{ n }}. {{ phrase }}\n", "The key is", "first"),
            ("{{phrase}}", "==>", "first"),
        ),
        *(
            ("1 + 1\nAnswer:", "Answer:", "first"),
            ("Write {{ phrase }} first: {{ n }}", "So:", None),
        ),
    ],
)
def test_what_the_prompt_ends_with_decides_what_is_read(
    prompt: str, phrase: str, read: str | None
) -> None:
    """Where that is the phrase, the reply begins with the answer; the task file may say so."""
    fields = {"version": 1, "title": "x", "items": "x.jsonl", "prompt": prompt}
    for several in (phrase, [phrase, "Ergebnis:"]):
        answer = {"type": "integer", "phrase": several}
        assert TaskSpec.model_validate({**fields, "answer": answer}).answer.read == read
    last = TaskSpec.model_validate({**fields, "answer": {**answer, "read": "last"}})
    assert last.answer.read == "last"


def test_accepted_answers_are_kept() -> None:
    """The journal keeps what a verdict needs, so a run is judged again without its task file."""
    answer, reply = Answer(type="text"), "Final answer: La Paz"
    assert Judge(answer).verdict(read_again("Sucre", reply, ("La Paz",))).outcome == "correct"
    assert Judge(answer).verdict(read_again("Sucre", reply)).outcome == "incorrect"
    assert read_again("Sucre", reply, ("La Paz", "b")).accept == ("La Paz", "b")


def test_a_run_of_completions_is_judged_up_to_the_next_question(lab: Lab) -> None:
    """Its manifest says how it was asked."""

    def running_on(request: Request) -> str:
        return f"{right(request)}\n\nHow many ones? It is another row.\nFinal answer: 99"

    apis: tuple[Literal["completions", "chat"], ...] = ("completions", "chat")
    for api, outcome in zip(apis, ("correct", "incorrect"), strict=True):
        wanted = lab.wanted(settings=Settings(api=api))
        lab.asked(wanted, running_on)
        read = read_details(read_run(wanted.folder))
        assert {one.verdict.outcome.value for one in read} == {outcome}
        assert all(str(one.record.reply).endswith("99") for one in read)
