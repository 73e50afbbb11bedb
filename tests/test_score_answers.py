"""Numbers, choices and lists: what is read from replies, and what is right."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from eyechart.harness.score.judge import judge
from eyechart.harness.score.verdict import Verdict
from eyechart.harness.spec.answer import Answer

NUMBER = Answer(type="number")
COLORS = Answer(type="choice", options=("red", "green", "not sure", "sure thing"), letters=True)
TEXTS_ONLY = Answer(type="choice", options=("red", "green"))
GRADES = Answer(type="choice", options=("A", "B", "C"))
LIST, BAG = Answer(type="list"), Answer(type="list", ordered=False)


def judged(
    reply: str,
    answer: Answer,
    target: float | str,
    finish: str = "stop",
    accept: tuple[str, ...] = (),
) -> Verdict:
    """The verdict on a reply without failure."""
    return judge(
        text=reply,
        finish_reason=finish,
        refusal=None,
        failure=None,
        target=target,
        answer=answer,
        accept=accept,
    )


@pytest.mark.parametrize(
    ("written", "value"),
    [
        *(("3.5", 3.5), ("-3.5", -3.5), ("+3.5", 3.5), ("0.50", 0.5), ("0.5.", 0.5), ("7.", 7)),
        *(("1,234.5", 1234.5), ("1.234", 1.234), ("1 234.5", None), ("1\u2009234.5", 1234.5)),
        *(("7,5", None), ("1.234,5", None), ("1.2.3", None), (".5", None), ("007.5", None)),
        *(("1.5e3", 1500), ("2E-3", 0.002), ("1e+16", 1e16), ("-1e-07", -1e-7), ("1.5e", None)),
        *(("1.5 x 10^3", 1500), ("1.5 \u00d7 10^-3", 0.0015), ("1.5 * 10^3 m", 1500)),
        *(("$1.5 \\times 10^{-3}$", 0.0015), ("10^3", None), ("210^3", None), ("1.5 10^3", 1500)),
        *(("50%", None), ("1/2", None), ("3.14\u2026", None), ("3.5?", None), ("1e999", None)),
        *(("about 3.25 km", 3.25), ("3.5 or 3.6", None), ("at least 3.5", None), ("twelve", 12)),
        *(("x = 2.5 * 2 = 5.0", 5), ("3.5 (3 + 0.5)", 3.5), ("$3.50", 3.5), ("NaN", None)),
        *(("1" * 400, None), ("1" * 5000, None), ("3-4", None), ("1e-999", 0), ("\u221e", None)),
    ],
)
def test_numbers(written: str, value: float | None) -> None:
    """A point is the decimal point; what may be another number is none."""
    for reply in (f"Final answer: {written}", f"So it is.\n\n**Final answer: {written}**"):
        verdict = judged(reply, NUMBER, 3.5)
        assert verdict.answer == value, verdict.why
        if value is None:
            assert (verdict.outcome, bool(verdict.why)) == ("unparsed", True)
            continue
        assert verdict.outcome == ("correct" if value == 3.5 else "incorrect")
        assert verdict.signed_error == value - 3.5
        assert reply[verdict.start : verdict.end] in reply


def test_zero_is_right_without_a_tolerance() -> None:
    """Where the allowed error is 0 as well."""
    assert judged("Final answer: 0", NUMBER, 0.0).outcome == "correct"
    assert judged("Final answer: 0.1", NUMBER, 0.0).outcome == "incorrect"


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_float_is_read_as_python_writes_it(number: float) -> None:
    """In both notations."""
    for written in (repr(number), f"{number:.17e}"):
        assert judged(f"Final answer: {written}", NUMBER, number).answer == number


@pytest.mark.parametrize(
    ("given_tolerance", "target", "right", "wrong"),
    [
        ({}, 0.1 + 0.2, ["0.3", "0.30000000000000004"], ["0.3000001", "-0.3"]),
        ({"tolerance": 0.1}, 3.0, ["3.1", "2.9", "3"], ["3.11", "2.89"]),
        ({"tolerance": 0}, 0.0, ["0", "-0.0"], ["1e-300"]),
        ({"relative_tolerance": 0.05}, 200.0, ["210", "190"], ["210.1", "189.9", "-200"]),
        ({"relative_tolerance": 0.05}, -200.0, ["-210", "-190"], ["-210.1", "200"]),
        ({"tolerance": 1, "relative_tolerance": 0.1}, 5.0, ["6", "4"], ["6.1"]),
        ({"tolerance": 1, "relative_tolerance": 0.1}, 50.0, ["55", "45"], ["55.1"]),
    ],
)
def test_tolerances(
    given_tolerance: dict[str, float], target: float, right: list[str], wrong: list[str]
) -> None:
    """The larger of both holds, its edge included; without one, equal but for rounding."""
    answer = Answer.model_validate({"type": "number", **given_tolerance})
    for written in right:
        assert judged(f"Final answer: {written}", answer, target).outcome == "correct", written
    for written in wrong:
        assert judged(f"Final answer: {written}", answer, target).outcome == "incorrect", written


@pytest.mark.parametrize(
    ("reply", "chosen"),
    [
        *(("green", "green"), ("**Green**.", "green"), ("`GREEN`", "green"), ("(green)", "green")),
        *(("B", "green"), ("b", "green"), ("(b)", "green"), ("B.", "green"), ("[B]", "green")),
        *(("B) green", "green"), ("B. Green.", "green"), ("(B) green", "green")),
        *(("option B", "green"), ("the answer is C", "not sure"), ("A", "red"), ("A: red", "red")),
        *(("The color is green.", "green"), ("I am not sure", "not sure"), ("a sure  thing", None)),
        *(("not  sure", "not sure"), ("$\\boxed{\\text{green}}$", "green"), ("A red one", "red")),
        *(("B. red", None), ("green, not red", None), ("not red", None), ("red or green", None)),
        *(("green?", None), ("blue", None), ("I", None), ("greenish", None), ("E", None)),
    ],
)
def test_choices(reply: str, chosen: str | None) -> None:
    """By text or letter, alone or in a sentence; two options are none."""
    chosen = "sure thing" if reply == "a sure  thing" else chosen
    verdict = judged(f"Final answer: {reply}", COLORS, "green")
    assert verdict.answer == chosen, verdict.why
    right = {"green": "correct", None: "unparsed"}
    assert verdict.outcome == right.get(chosen, "incorrect")


def test_choices_without_letters() -> None:
    """Letters are options only where the task says so, and options that are letters are read as
    letters are.
    """
    assert judged("Final answer: B", TEXTS_ONLY, "green").outcome == "unparsed"
    assert judged("Final answer: green", TEXTS_ONLY, "green").outcome == "correct"
    assert judged("Final answer: It is a B.", GRADES, "B").outcome == "correct"
    assert judged("Final answer: A", GRADES, "B").outcome == "incorrect"
    assert judged("Final answer: a grade", GRADES, "A").outcome == "unparsed"


def test_a_choice_without_the_phrase_stands_alone() -> None:
    """A sentence about options is no choice."""
    assert judged("Hm.\ngreen", COLORS, "green").outcome == "correct"
    assert judged("The answer is B.", COLORS, "green").outcome == "correct"
    assert judged("I think green is hard to see here", COLORS, "green").outcome == "unparsed"


@pytest.mark.parametrize(
    ("written", "items"),
    [
        *(("red, green, blue", "rgb"), ("red,green,blue", "rgb"), ("red, green, and blue.", "rgb")),
        *(('["red", "green", "blue"]', "rgb"), ("[red, green, blue].", "rgb")),
        *(("**red**, `green`, blue", "rgb"), ("$\\boxed{red, green, blue}$", "rgb")),
        *(("red,\ngreen,\nblue", "rgb"), ("red, green, blue,", "rgb"), ("red", "r")),
        *(("\n- red\n- green\n- blue", "rgb"), ("\n1. red\n2. green\n3. blue\n\nDone.", "rgb")),
        *(("\n* red\n* green\n* blue", "rgb"), ("red, green\nThese are two.", "rg")),
        *(("blue, green, red", "bgr"), ("red, green", "rg"), ("red, red, green, blue", "rrgb")),
    ],
)
def test_lists(written: str, items: str) -> None:
    """Commas or bullets separate; the order counts unless the task says otherwise."""
    names = {"r": "red", "g": "green", "b": "blue"}
    for reply in (f"Final answer: {written}", f"<think>red, red</think>\nFinal answer: {written}"):
        verdict = judged(reply, LIST, "red, green, blue")
        assert verdict.answer == ", ".join(names[item] for item in items)
        assert verdict.outcome == ("correct" if items == "rgb" else "incorrect")
        same = sorted(items) == sorted("rgb")
        of_bag = judged(reply, BAG, "red, green, blue")
        assert of_bag.outcome == ("correct" if same else "incorrect")


def test_errors_of_lists() -> None:
    """They are measured in items."""
    short = judged("Final answer: red tea, green", LIST, "red tea, green, blue")
    assert short.similarity == pytest.approx(2 / 3)
    assert (short.first_divergence, short.ended) == (2, "early")
    bag = judged("Final answer: blue, red, red, x", BAG, "red, green, blue")
    assert (bag.similarity, bag.first_divergence, bag.ended) == (0.5, None, "late")
    assert judged("Final answer: Red, green", LIST, "red, green").outcome == "incorrect"
    assert judged("Final answer: red, , green", LIST, "red, green").answer == "red, , green"


@pytest.mark.parametrize("answer", [LIST, BAG, COLORS, NUMBER])
def test_what_is_no_answer(answer: Answer) -> None:
    """Silence, a refusal and a reply that was cut off are what they are."""
    target = 3.5 if answer is NUMBER else "green"
    assert judged("", answer, target).outcome == "unparsed"
    assert judged("Final answer:", answer, target).outcome == "unparsed"
    assert judged("I'm sorry, but I can't help with that.", answer, target).outcome == "refused"
    assert judged(f"Final answer: {target}", answer, target, "length").outcome == "truncated"
    whole = judged(f"Final answer: {target}\nThis", answer, target, "length")
    assert whole.outcome == "correct"


def test_accepted_answers() -> None:
    """They are as right as the target, from which errors are measured."""
    text, symbol = Answer(type="text"), Answer(type="symbol")
    cities = ("City of Paris", "Lutetia")
    assert (
        judged("Final answer: **City of  Paris**.", text, "Paris", accept=cities).outcome
        == "correct"
    )
    wrong = judged("Final answer: City of London", text, "Paris", accept=cities)
    assert (wrong.outcome, wrong.similarity, wrong.ended) == ("incorrect", 0, "late")
    assert judged("Final answer: y", symbol, "yes", accept=("y",)).outcome == "correct"
    assert judged("Final answer: n", symbol, "yes", accept=("y",)).outcome == "incorrect"
    assert judged("Final answer: A", COLORS, "green", accept=("red",)).outcome == "correct"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"type": "integer", "tolerance": 1.0}, "'tolerance' goes with 'type: number'"),
        ({"type": "text", "options": ["a", "b"]}, "'options' goes with 'type: choice'"),
        ({"type": "choice"}, "'type: choice' needs 'options'"),
        ({"type": "choice", "options": ["a", "A "]}, "two options differ in nothing but case"),
        ({"type": "choice", "options": ["B", "A"], "letters": True}, "the letter of another one"),
        ({"type": "choice", "options": [str(n) for n in range(27)], "letters": True}, "at most 26"),
        ({"type": "choice", "options": ["a", " "]}, "match pattern"),
        ({"type": "number", "tolerance": -1}, "greater than or equal to 0"),
        ({"type": "text", "ordered": True}, "'ordered' goes with 'type: list'"),
    ],
)
def test_answers_that_cannot_be(fields: dict[str, object], message: str) -> None:
    """A field of another type, and options that a reply could not tell apart."""
    with pytest.raises(ValidationError, match=message):
        Answer.model_validate(fields)


@pytest.mark.parametrize("answer", [NUMBER, COLORS, LIST])
@pytest.mark.parametrize("piece", ["1,", "- a\n", "10^", "red ", "1 x ", "B) ", ",\n", "[", "1e-"])
def test_long_replies_take_linear_time(answer: Answer, piece: str) -> None:
    """No pattern backtracks."""
    target = 3.5 if answer is NUMBER else "red"
    began = time.perf_counter()
    judged("Final answer: " + piece * 30_000, answer, target)
    assert time.perf_counter() - began < 5
