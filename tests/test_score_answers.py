"""Numbers, choices and lists: what is read from replies, and what is right."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from eyechart.harness.score.choices import LETTERS
from eyechart.harness.score.judge import judge
from eyechart.harness.score.normal_form import nfc
from eyechart.harness.score.readings import Recount, reading_of
from eyechart.harness.score.verdict import Verdict
from eyechart.harness.spec.answer import Answer

NUMBER = Answer(type="number")
COLORS = Answer(type="choice", options=("red", "green", "not sure", "sure thing"), letters=True)
E, COMBINED = "caf\u00e9", "cafe\u0301"
"""The same text, once with the character `é` and once with `e` and an accent."""
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


@pytest.mark.parametrize(
    ("reply", "chosen"),
    [
        *(("John is in the kitchen.", "kitchen"), ("So it is the **Kitchen**, I think", "kitchen")),
        ("John went to the kitchen.\n\nThe kitchen is where he is now.", "kitchen"),
        ("He did not stay outside. He is in the kitchen.", "kitchen"),
        *(("He is not in the kitchen.", None), ("He isn't in the kitchen", None)),
        *(("It is anywhere but not the kitchen", None), ("The kitchen is wrong.", None)),
        *(("He never entered the kitchen.", None), ("No one is in the kitchen", None)),
        *(("The text does not say if he is in the kitchen.", None), ("The kitchen?", None)),
        ("I cannot tell whether John is in the kitchen.", None),
        ("Either the kitchen or the garden.", None),
        ("The rooms are kitchen, garden and living room. I see John.", None),
        ("He left the garden.\nHe is in the kitchen now.", None),
        *(
            ("1. The kitchen is hot\n2. The cellar is cold", None),
            ("A. The cellar\nB. A kitchen", None),
        ),
        *(("He is in the kitchens.", None), ("He is in the kitchenette.", None)),
        *(("He is in the living room.", "living room"), ("He is in the room of John.", "room")),
        ("He is in a room, the living room.", None),
    ],
)
def test_a_choice_in_sentences_without_the_phrase(reply: str, chosen: str | None) -> None:
    """The only option that is named is read, unless its sentence denies it or doubts it."""
    rooms = Answer(type="choice", options=("kitchen", "garden", "living room", "room"))
    verdict = judged(reply, rooms, "kitchen")
    assert verdict.answer == chosen, verdict.why
    if chosen:
        assert reply[verdict.start : verdict.end].lower() == chosen
    else:
        assert verdict.outcome == "unparsed"


@pytest.mark.parametrize(
    ("reply", "chosen"),
    [
        *(("No, John is not in the kitchen.", "no"), ("Yes. He is.", "yes"), ("**No**.", "no")),
        *(("Answer: no, he left.", "no"), ("May, I think.", "may"), ("It may rain.", None)),
        *(
            ("There is no way to see it.", None),
            ("Yes and no.", None),
            ("No, I do not know.", None),
        ),
        *(("No idea", None), ("I have no doubt: yes", None), ("That is a yes", None)),
        *(("No. Is he in the kitchen? No.", "no"), ("It can't be said; no, really", None)),
    ],
)
def test_options_that_are_common_words(reply: str, chosen: str | None) -> None:
    """They are read without the phrase only where they open the reply, apart from what follows."""
    words = Answer(type="choice", options=("yes", "no", "may"))
    assert judged(reply + "\nThat is all of it.", words, "no").answer == chosen


@pytest.mark.parametrize(
    ("reply", "chosen"),
    [
        *(("Hm.\ngreen", "green"), ("The answer is B.", "green"), ("I see green here", "green")),
        *(
            ("It must be option B because of the grass", "green"),
            ("The choice is (B), I say", "green"),
        ),
        *(("Vitamin B is in it", None), ("Plan B it is", None), ("B is in the row", None)),
        *(("A green one", "green"), ("Option A is green", None), ("Green (B) is right", "green")),
        *(("Option B is wrong", None), ("I am not sure about it", "not sure")),
        ("A) red\nB) green\nC) not sure\nD) sure thing\nWhich one shall it be", None),
    ],
)
def test_letters_of_options_in_sentences(reply: str, chosen: str | None) -> None:
    """A single letter is an option only beside a word that says so."""
    assert judged(reply, COLORS, "green").answer == chosen


def test_an_option_is_denied_also_after_the_phrase() -> None:
    """The negation need not stand directly before it, but in its clause."""
    assert judged("Final answer: it is not a red one", COLORS, "red").outcome == "unparsed"
    assert judged("Final answer: not blue, but red", COLORS, "red").outcome == "correct"


def test_where_the_phrase_is_there_other_lines_have_no_choice() -> None:
    """A reply that has the phrase and no option after it is not searched."""
    assert judged("I see green.\nFinal answer: unknown", COLORS, "green").outcome == "unparsed"


LENGTHS = Answer(type="choice", options=("3.7 km", "850 cats", "7 km", "5个"))
DIGITS = Answer(type="choice", options=("1", "2", "3"))
TRUTH = Answer(type="choice", options=("red", "green", "true"))
PLACES = Answer(type="choice", options=("garden", "kitchen"))
WORDS = Answer(type="choice", options=("東京", "苹果", "猫"))
LETTERED = Answer(type="choice", options=("red", "green"), letters=True)
NUMBERS = Answer(type="choice", options=("10", "12"))


@pytest.mark.parametrize(
    ("answer", "reply", "chosen"),
    [
        (LENGTHS, "1,850 cats", None),
        (LENGTHS, "It is 1.7 km.", None),
        (LENGTHS, "It is -7 km.", None),
        (LENGTHS, "Final answer: 2,7 km", None),
        (LENGTHS, "有0.5个", None),
        (DIGITS, "Final answer: 0.2", None),
        (DIGITS, "Final answer: 1,2", None),
        (DIGITS, "It is 2.5", None),
        (LENGTHS, "850 cats", "850 cats"),
        (LENGTHS, "It is 7 km.", "7 km"),
        (LENGTHS, "It is 3.7 km.", "3.7 km"),
        (LENGTHS, "有5个", "5个"),
        (LENGTHS, "Final answer: so 7 km, I think", "7 km"),
        (DIGITS, "Final answer: 2", "2"),
        (DIGITS, "Final answer: it is 2.", "2"),
        (DIGITS, "Final answer: 2, I think", "2"),
        (NUMBERS, "It is 12.5", None),
        (NUMBERS, "It is 12.", "12"),
        (NUMBERS, "It is 12, I think", "12"),
        (LENGTHS, "— 7 km — it is", "7 km"),
        (LENGTHS, "I see - 7 km", "7 km"),
        (WORDS, "東京ではありません", None),
        (WORDS, "東京でもない", None),
        (WORDS, "東京は間違いです", None),
        (WORDS, "苹果不对", None),
        (WORDS, "苹果是错的", None),
        (WORDS, "绝非苹果", None),
        (WORDS, "不是苹果", None),
        (WORDS, "猫じゃない", None),
        (WORDS, "東京です", "東京"),
        (WORDS, "答えは東京です", "東京"),
        (WORDS, "是苹果", "苹果"),
        (WORDS, "苹果", "苹果"),
        (WORDS, "苹果是对的", "苹果"),
        (WORDS, "東京でしょう", "東京"),
        (TRUTH, "anything but red", None),
        (TRUTH, "It is anything but red.", None),
        (TRUTH, "far from red", None),
        (TRUTH, "I eliminated red", None),
        (TRUTH, "I ruled out red.", None),
        (TRUTH, "hardly true", None),
        (TRUTH, "red is wrong", None),
        (TRUTH, "red isn't it", None),
        (TRUTH, "It is red", "red"),
        (TRUTH, "I see it on the left, so it is red.", "red"),
        (TRUTH, "The left one is red", "red"),
        (TRUTH, "It left us with red", "red"),
        (PLACES, "John left the garden.", None),
        (PLACES, "John moved out of the kitchen.", None),
        (PLACES, "John left for the garden.", "garden"),
        (PLACES, "John is in the garden.", "garden"),
        (PLACES, "He went left to the kitchen.", "kitchen"),
        (LETTERED, "B不对", None),
        (LETTERED, "排除B", None),
        (LETTERED, "不选B", None),
        (LETTERED, "错误的选项是B", None),
        (LETTERED, "答案是B", "green"),
        (LETTERED, "答案选B。", "green"),
        (LETTERED, "应该选B", "green"),
        (LETTERED, "选B不对", None),
        (LETTERED, "答えはBです", "green"),
        (LETTERED, "정답은 B입니다", "green"),
        (LETTERED, "I see B here", None),
        (LETTERED, "答案是A", "red"),
        (LETTERED, "選擇B", "green"),
        (LETTERED, "选项B是绿色", "green"),
    ],
)
def test_options_that_are_denied_or_within_a_number(
    answer: Answer, reply: str, chosen: str | None
) -> None:
    """With and without the answer phrase."""
    behind_phrase = reply if reply.startswith("Final answer") else f"Final answer: {reply}"
    for text in {reply} if reply == "I see B here" else {reply, behind_phrase}:
        assert judged(text, answer, "x").answer == chosen, text


@pytest.mark.parametrize(
    ("kind", "reply", "target", "outcome"),
    [
        ("text", "The wrong answer is tea", "tea", "incorrect"),
        ("text", "Wrong: tea", "tea", "incorrect"),
        ("text", "Not this: tea", "tea", "incorrect"),
        ("text", "Topics except: tea", "tea", "incorrect"),
        ("text", "The answer is never: tea", "tea", "incorrect"),
        ("text", "It is false that the first topic was tea", "tea", "incorrect"),
        ("text", "Final answer: 错误答案是北京", "北京", "incorrect"),
        ("text", "错误答案是北京", "北京", "incorrect"),
        ("list", "The wrong items are a, b", "a, b", "unparsed"),
        ("code", "The ABC is wrong", "ABC", "unparsed"),
        ("symbol", "Final answer: the 'k' is wrong", "k", "unparsed"),
        ("text", "The first topic was tea", "tea", "correct"),
        ("text", "Topic no. 3: tea", "tea", "correct"),
        ("text", "The answer to question no 3 is: tea", "tea", "correct"),
        ("text", "The first topic is wrong", "wrong", "correct"),
        ("text", "Wrong: tea", "Wrong: tea", "correct"),
        ("text", "Final answer: 答案是北京", "北京", "correct"),
        ("list", "The items are a, b", "a, b", "correct"),
        ("code", "The code is ABC", "ABC", "correct"),
        ("code", "ABC is right", "ABC", "correct"),
        ("symbol", "Final answer: the 'k' is right", "k", "correct"),
    ],
)
def test_a_sentence_that_denies_states_nothing(
    kind: str, reply: str, target: str, outcome: str
) -> None:
    """A sentence or a label with a negation before the answer, or what follows it."""
    assert judged(reply, Answer.model_validate({"type": kind}), target).outcome == outcome


@pytest.mark.parametrize(
    ("said", "target", "is_right"),
    [
        *(("c, or b", "c, or b", True), ("c, or b", "c, b", True), ("c, or b", "c, d", False)),
        *(("a, b and c", "a, b, c", True), ("a, b and c", "a, b and c", True)),
        *(("a and b", "a, b", True), ("a, b and c", "a, b, d", False), ("a or b", "a, b", False)),
        *(("a, b, and c", "a, b, c", True), ('"a", and "b"', '"a", "b"', True)),
        *(('"a", "b" and "c"', "a, b, c", True), ("1, 2 and 3", "1, 2, 3", True)),
        *(("\u22121, 2", "-1, 2", True), ("\u22121, 2", "1, 2", False)),
        *(("{a, b, c}", "a, b, c", True), ("{a, b}", "{a, b}", True), ("{a}, {b}", "a, b", True)),
        *(("{a, b", "a, b", False), ("{1, 2}", "1, 2", True)),
        *(("猫、犬です", "猫, 犬", True), ("猫、犬です。", "猫, 犬", True)),
        *(("猫、犬です", "猫, 犬です", True), ("猫、子犬です", "猫, 犬", False)),
        *(("猫、犬ではない", "猫, 犬", False), ("猫、犬", "猫, 犬です", False)),
    ],
)
def test_what_stands_around_the_last_item(said: str, target: str, *, is_right: bool) -> None:
    """The target decides whether words and signs belong to the items."""
    for answer in (LIST, BAG):
        verdict = judged(f"Final answer: {said}", answer, target)
        assert verdict.outcome == ("correct" if is_right else "incorrect"), answer


UUID = "550e8400-e29b-41d4-a716-446655440000"


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        *(("04021", "04021"), ("**04021**.", "04021"), ("The code is 04021.", "04021")),
        *((f"The UUID is `{UUID}`.", UUID), (f"SHA256: {'3a7b' * 16}", "3a7b" * 16)),
        *(("$\\text{AB-12}$", "AB-12"), ("It was AB-12, on the 2nd try", "AB-12")),
        *(("The UUID key is 'QWERTY'", "QWERTY"), ("I see QWERTY there", "QWERTY")),
        *(("4,021", "4,021"), ("It is 4,021 here", "4,021"), ("user_id x_17 it is", "x_17")),
        *(("04021 or 04022", None), ("It is not AB-12", None), ("not the code AB-12", None)),
        *(("AB-12?", None), ("Is it AB-12 there?", None), ("I do not know it", None)),
        *(("I saw 7 of them", None), ("The 3rd of all", None), ("ABC and DEF", None)),
    ],
)
def test_codes(reply: str, value: str | None) -> None:
    """Each of their characters counts, zeros in front as well; a sentence has one of them."""
    for text in (f"Final answer: {reply}", f"Hm, 99 and 98.\n{reply}"):
        verdict = judged(text, Answer(type="code"), "04021")
        assert verdict.answer == value, verdict.why
        assert verdict.outcome == {None: "unparsed", "04021": "correct"}.get(value, "incorrect")


def test_the_case_of_codes() -> None:
    """It counts unless the task says otherwise."""
    strict, mild = Answer(type="code"), Answer(type="code", case=False)
    assert judged("Final answer: ab-12", strict, "AB-12").outcome == "incorrect"
    assert judged("Final answer: ab-12", mild, "AB-12").outcome == "correct"
    assert judged("Final answer: ab-13", mild, "AB-12", accept=("AB-13",)).outcome == "correct"
    assert strict.kind.problem("a b", strict) == (
        "the target 'a b' has a space; 'answer: text' takes several words"
    )


def test_symbols_have_any_length() -> None:
    """Also in quotes inside a sentence."""
    long = "x1" * 500
    for reply in (f"Final answer: {long}", f'The last one is "{long}", I think.'):
        assert judged(reply, Answer(type="symbol"), long).outcome == "correct"


@pytest.mark.parametrize(
    ("kind", "reply", "value"),
    [
        ("integer", " 71432. Remember it. There are 10 lines.", 71432),
        ("integer", "\n71432\nIn all there are 10 lines.", 71432),
        ("integer", " There are 12 ones. And 7 zeros.", 12),
        ("integer", "I see 5 rows. Final answer: 12\nFinal answer: 13", 12),
        ("integer", " 12\n\nFinal answer: 15", 12),
        ("integer", "Final answer: 12. Then 4.", 12),
        ("integer", "<think>5</think> 12.\n7", 12),
        ("integer", "Final answer: 12 or 13\nFinal answer: 14", None),
        ("integer", " 12. Wait, 13. No, 14.", None),
        *(("integer", reply, None) for reply in ("12, 13, 14", "1. Count\n2. Sum", "1. 2. 3.")),
        ("integer", "I count groups of 10:\n10, 20\nSo 23", None),
        ("integer", "The answer is 12.\nIt has 10 groups", 12),
        *(("integer", reply, None) for reply in ("12?", "Let me see.\n12", "not 12. 12", "")),
        ("symbol", " k. The rest is a, b and c.", "k"),
        ("text", " kiwi pear\nQuestion: which?\nFinal answer: plum\nIt is.", "plum"),
        ("text", " kiwi pear\nWhich fruit comes next?", "kiwi pear"),
        ("list", " a, b,\nc\nThat is all, or is it?", "a, b, c"),
        ("choice", " The kitchen. Where is Mary? In the garden.", "kitchen"),
        ("choice", "A. kitchen\nB. garden\nC. hall", None),
        ("choice", " Not in the kitchen. In the garden.", None),
    ],
)
def test_the_answer_that_stands_first(kind: str, reply: str, value: object) -> None:
    """With `read: first` a reply goes on with the prompt, whose end is the phrase. It is also
    judged where it was cut off later.
    """
    options = {"options": ("kitchen", "garden")} if kind == "choice" else {}
    answer = Answer.model_validate({"type": kind, "read": "first", **options})
    target = 0 if kind == "integer" else "garden"
    assert judged(reply, answer, target).answer == value
    if value is not None and "\n" in reply.strip():
        assert judged(reply, answer, target, "length").answer == value


def test_a_refusal_is_no_text_that_stands_first() -> None:
    """Any words could be a text."""
    answer = Answer(type="text", read="first")
    assert judged(" I'm sorry, but I can't help with that.", answer, "x").outcome == "refused"


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


@pytest.mark.parametrize(
    ("reply", "items"),
    [
        ("The value of key AB is 12.", "12"),
        ("The value of the key that is asked is **12**.", "12"),
        ("The values are: 12, 13, and 14.", "12, 13, 14"),
        ("12, what is more", "12, what is more"),
        ("Final answer: what is more, 12", "what is more, 12"),
        ("The value is 12. The key is AB.", None),
        ("The value is:", None),
    ],
)
def test_a_sentence_may_state_a_list(reply: str, items: str | None) -> None:
    """SmolLM2 answers so. Its sentences were read as lists, so that right values were wrong."""
    assert judged(reply, LIST, "12").answer == items


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
        ({"type": "choice", "options": ["a", "A "]}, "options 'a' and 'A ' are the same but"),
        (
            {"type": "choice", "options": [E, COMBINED]},
            "are the same but for case, spaces or Unicode normal form",
        ),
        ({"type": "choice", "options": ["B", "A"], "letters": True}, "the letter of another one"),
        ({"type": "choice", "options": [str(n) for n in range(27)], "letters": True}, "at most 26"),
        ({"type": "choice", "options": ["a", " "]}, "match pattern"),
        ({"type": "number", "tolerance": -1}, "greater than or equal to 0"),
        ({"type": "text", "ordered": True}, "'ordered' goes with 'type: list'"),
        ({"type": "integer", "case": False}, "'case' goes with 'type: symbol' or 'type: code' or"),
        ({"type": "text", "item_separator": ";"}, "'item_separator' goes with 'type: list'"),
        ({"type": "text", "phrase": ["Final answer:", "A"]}, "at least 3 characters"),
        ({"type": "text", "phrase": []}, "at least 1 item"),
    ],
)
def test_answers_that_cannot_be(fields: dict[str, object], message: str) -> None:
    """A field of another type, and options that a reply could not tell apart."""
    with pytest.raises(ValidationError, match=message):
        Answer.model_validate(fields)


@pytest.mark.parametrize(("said", "target"), [(E, COMBINED), (COMBINED, E), (COMBINED, COMBINED)])
@pytest.mark.parametrize("kind", ["symbol", "text", "code", "list", "choice"])
def test_normal_forms_of_unicode_are_the_same_text(kind: str, said: str, target: str) -> None:
    """In replies, targets, further right answers and options; the place is that in the reply."""
    options = (E, "cafe") if kind == "choice" else None
    answer = Answer(type=kind, options=options)
    reply = f"D\u2019accord e\u0301 : ...\n\nFinal answer: {said}"
    other = "cafe" if options else "x"
    cases = [(target, ())] if kind == "list" else [(target, ()), (other, (target,))]
    for right, accept in cases:
        verdict = judged(reply, answer, right, accept=accept)
        assert (verdict.outcome, verdict.answer) == ("correct", E)
        assert reply[verdict.start : verdict.end] == said
    assert judged(reply, answer, "cafe").outcome == "incorrect"
    assert answer.kind.problem(target, answer) is None


def test_normal_forms_of_a_sentence() -> None:
    """What is beside an accent that is combined with a letter is read as well."""
    choice = Answer(type="choice", options=(COMBINED, "cafe", "the\u0301"), letters=True)
    assert judged("Final answer: it is cafe\u0301, I think", choice, E).answer == COMBINED
    assert judged("Final answer: B) cafe\u0301", choice, E).outcome == "unparsed"
    assert choice.kind.written(E, choice) == "A"
    symbol = Answer(type="symbol")
    assert judged("Final answer: the letter e\u0301", symbol, "e").outcome == "incorrect"
    assert judged("Final answer: the letter e\u0301", symbol, "\u00e9").outcome == "correct"
    words = Answer(type="text")
    verdict = judged(f"Final answer: un {COMBINED} noir", words, f"un {E} crème")
    assert verdict.first_divergence == 2
    phrase = Answer(type="integer", phrase=("R\u00e9ponse :",))
    assert (
        judged("Re\u0301ponse : 3 ou 4 ?\nRe\u0301ponse : 12\nVoil\u00e0.", phrase, 12).answer == 12
    )


@pytest.mark.parametrize("sign", ["\u0131", "\u0130", "\u017f", "\u212a"])
def test_letters_that_patterns_take_for_another(sign: str) -> None:
    """The dotless i is no i, whatever a pattern without case says, and none of them raises."""
    names = tuple(f"{letter}{letter} row" for letter in LETTERS)
    for answer in (
        Answer(type="choice", options=names, letters=True),
        Answer(type="choice", options=("i", "k", "s")),
    ):
        for reply in (f"well, {sign}{sign} row it is", f"{sign}) ii row", f"well, ({sign}) it is"):
            verdict = judged(f"Final answer: {reply}", answer, "none of them")
            assert verdict.outcome in ("unparsed", "incorrect")
            if sign in "\u0131\u0130":
                assert verdict.outcome == "unparsed"


def test_korean_and_stacked_marks() -> None:
    """Vowels and last consonants join their syllable, and marks that are one on another."""
    written = "\u1112\u1161\u11ab\u1100\u1173\u11af"
    verdict = judged(f'Final answer: "{written}"', Answer(type="symbol"), "\ud55c\uae00")
    assert (verdict.outcome, verdict.start, verdict.end) == ("correct", 15, 21)
    text = "a\u0323\u0301"
    assert (
        judged(f"Final answer: {text}", Answer(type="text"), "a\u0301\u0323").outcome == "correct"
    )


def test_more_marks_than_a_text_has_stay_as_they_are() -> None:
    """To sort n marks takes the standard library n\u00b2 steps."""
    wrong, sorted_ = "\u0301\u0323", "\u0323\u0301"
    assert nfc("x" + wrong * 15) == "x" + "\u0323" * 15 + "\u0301" * 15
    assert nfc("x" + wrong * 16) == "x" + wrong * 16
    assert nfc(f"e\u0301{sorted_ * 16} e\u0301") == f"e\u0301{sorted_ * 16} \u00e9"


def test_other_readings_of_normal_forms() -> None:
    """A reply that cannot be read names the right answer, and a cut-off copy has not left it."""
    text = Answer(type="text")
    for answer in (text, Answer(type="symbol"), Answer(type="choice", options=(E, "red"))):
        reply = f"Is it\n\n{COMBINED} ?"
        verdict = judged(reply, answer, E)
        assert verdict.outcome == "unparsed"
        assert reading_of(reply, verdict, answer, (E,)) == Recount.MAY_BE_RIGHT
    reply = f"Final answer: {COMBINED} noi"
    verdict = judged(reply, text, f"{E} noir", "length")
    assert reading_of(reply, verdict, text, (f"{E} noir",)) == Recount.LEFT_OUT
    assert reading_of(reply, verdict, text, ("cafe noir",)) == Recount.AS_JUDGED
    echo = f"{COMBINED} " * 400
    verdict = judged(echo, text, "x", "length")
    assert reading_of(echo, verdict, text, ("x",), E) == Recount.LEFT_OUT


@pytest.mark.parametrize("answer", [NUMBER, COLORS, LIST, Answer(type="code")])
@pytest.mark.parametrize("phrase", ["Final answer: ", ""])
@pytest.mark.parametrize(
    "piece",
    [
        "1,",
        "- a\n",
        "10^",
        "red ",
        "1 x ",
        "B) ",
        ",\n",
        "[",
        "1e-",
        "!",
        "red! ",
        "a b\n",
        "1",
        "'1",
        "1:",
    ],
)
def test_long_replies_take_linear_time(answer: Answer, piece: str, phrase: str) -> None:
    """No pattern backtracks."""
    target = 3.5 if answer is NUMBER else "red"
    began = time.process_time()
    judged(phrase + piece * 4_000, answer, target)
    assert time.process_time() - began < 1.0


@pytest.mark.parametrize("kind", ["symbol", "text", "code"])
def test_case_can_be_ignored(kind: str) -> None:
    """Where the task says so; the proof of a task tries it."""
    strict, mild = Answer(type=kind), Answer(type=kind, case=False)
    for said in ("KIWI", "Kiwi", "kiwi"):
        outcome = "correct" if said == "kiwi" else "incorrect"
        assert judged(f"Final answer: {said}", strict, "kiwi").outcome == outcome
        assert judged(f"Final answer: {said}", mild, "kiwi").outcome == "correct"
    assert judged("Final answer: pear", mild, "kiwi").outcome == "incorrect"
    assert list(mild.kind.right_forms("kiwi", mild)) == [("other case", "KIWI")]


@pytest.mark.parametrize(
    ("reply", "outcome"),
    [
        *(
            ("Final answer: 7", "correct"),
            ("Resultado: 7", "correct"),
            ("**Resultado:** 7.", "correct"),
        ),
        *(
            ("Final answer: 8\nResultado: 7", "correct"),
            ("Resultado: 7\nFinal answer: 8", "incorrect"),
        ),
        *(("7", "incorrect"), ("I see 7.", "incorrect"), ("Ergebnis: 7", "incorrect")),
        *(("", "unparsed"), ("Final answer: 7 or 8", "unparsed"), ("<think>7", "unparsed")),
        ("I'm sorry, but I can't help with that.", "refused"),
    ],
)
def test_more_phrases_and_replies_without_any(reply: str, outcome: str) -> None:
    """The last of all phrases decides; a reply with text and without one is wrong if the task asks
    for that.
    """
    answer = Answer.model_validate(
        {"type": "integer", "phrase": ["Final answer:", "Resultado:"], "phrase_required": True}
    )
    assert answer.first_phrase == "Final answer:"
    assert answer.given()["phrase"] == ["Final answer:", "Resultado:"]
    assert Answer.model_validate(answer.given()) == answer
    assert judged(reply, answer, 7).outcome == outcome
    assert judged("I see 7", answer, 7, "length").outcome == "truncated"
    first = answer.model_copy(update={"read": "first"})
    assert judged(" 7", first, 7).outcome == "correct"


@pytest.mark.parametrize(
    ("separator", "target", "said", "outcome"),
    [
        *(
            (";", "Oslo, Norway; Rome", "Oslo, Norway; Rome", "correct"),
            (";", "a; b", "a, b", "incorrect"),
        ),
        *((" ", "1 2 3", "1 2  3", "correct"), (" ", "1 2 3", "[1, 2, 3]", "correct")),
        *(
            (" ", "a b", "b a", "incorrect"),
            ("|", "a| b", "a | b", "correct"),
            (" ", "> )", "> )", "correct"),
        ),
        *((" ", "> )", "} )", "incorrect"), (";", "a; b", "\n- a\n- b", "correct")),
    ],
)
def test_the_separator_of_items_can_be_named(
    separator: str, target: str, said: str, outcome: str
) -> None:
    """In targets and in replies; a space is any white space."""
    answer = Answer(type="list", item_separator=separator)
    assert answer.kind.problem(target, answer) is None
    assert judged(f"Final answer: {said}", answer, target).outcome == outcome
    items = [item.strip() for item in target.split(separator)]
    assert (
        judged(f"Final answer: {said}", answer, answer.kind.value(items, answer)).outcome == outcome
    )
    assert "which separates items" in str(answer.kind.problem([f"a{separator}b"], answer))
    for _, right in answer.kind.right_forms(target, answer):
        assert judged(f"Final answer: {right}", answer, target).outcome == "correct", right
    for _, wrong, _ in answer.kind.wrong(target, answer, ()):
        assert judged(f"Final answer: {wrong}", answer, target).outcome == "incorrect", wrong
