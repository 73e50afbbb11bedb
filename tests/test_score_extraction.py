from __future__ import annotations

import string
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eyechart.harness.score.answers import extract, extract_any
from eyechart.harness.score.judge import judge
from eyechart.harness.score.markup import without_thoughts
from eyechart.harness.score.normal_form import tidy
from eyechart.harness.score.verdict import Verdict
from eyechart.harness.spec.answer import Answer


def judged(text: str, answer: Answer, target: int | str, finish_reason: str = "stop") -> Verdict:
    """The verdict on a reply that the server gave."""
    return judge(
        text=text,
        finish_reason=finish_reason,
        refusal=None,
        failure=None,
        target=target,
        answer=answer,
    )


INTEGER, SYMBOL, TEXT = Answer(type="integer"), Answer(type="symbol"), Answer(type="text")

FEW = settings(max_examples=20, deadline=None)
MANY = settings(max_examples=60, deadline=None)

PERFECT = (
    "Final answer: {}",
    "Final answer: {}\n",
    "The row has 50 symbols: 1, 0, k and 'y'. Three groups of 5 make 15.\n\nFinal answer: {}",
    "First I see `a`, then 12 times x.\nFinal answer: {}",
    "**Final answer: {}**",
    "**Final answer:** **{}**",
    "**Final answer:** {}",
    "**Final answer**: {}",
    "Final answer : {}",
    "FINAL ANSWER: {}",
    "### Final answer:\n{}",
    "Final answer:\n\n{}",
    "Final answer:\n```\n{}\n```",
    "> Final answer: {}",
    "`Final answer: {}`",
    "Counting them gives the result. Final answer: {}.",
    "Final answer: $\\boxed{{{}}}$",
    "Final answer: \\boxed{{{}}}",
    "Final answer: \\(\\boxed{{{}}}\\)",
    "Final answer: \\boxed{{\\text{{{}}}}}",
    "Final answer: \\boxed{{{}}}.",
    "\\text{{Final answer: }} {}",
    "$$\\boxed{{{}}}$$",
    "It has 50 symbols, 7 of them are k.\n$$\\boxed{{{}}}$$",
    "Final answer: `{}`",
    "Final answer: `{}`.",
    'Final answer: "{}"',
    'Final answer: "{}."',
    "Final answer: \u201c{}\u201d",
    "<think>Final answer: 99, or 'z'?</think>\nFinal answer: {}",
    "Final answer: {}<|im_end|>",
    "{}",
)
PERFECT_SHORT = (
    "The answer is {}.",
    "5 + 5 + 2 symbols.\nThe answer is {}.",
    "Final answer: ${}$",
    "Final answer: **{}**.",
    "Final answer: ({})",
    "Final answer: <b>{}</b>",
    "The last line has it:\n```\n{}\n```",
)


def symbols() -> st.SearchStrategy[str]:
    return st.one_of(
        st.sampled_from(string.ascii_letters + string.digits),
        st.sampled_from(["kiwi", "x1", "Abc", "\N{RED APPLE}", "\N{GREEK SMALL LETTER BETA}"]),
    )


def texts() -> st.SearchStrategy[str]:
    words = st.text(string.ascii_letters + string.digits, min_size=1, max_size=6)
    return st.lists(words, min_size=1, max_size=8).map(" ".join)


@pytest.mark.parametrize("shape", PERFECT + PERFECT_SHORT)
@FEW
@given(value=st.integers(-(10**6), 10**6))
def test_a_perfect_integer_is_read_in_every_shape(shape: str, value: int) -> None:
    """However a right answer is dressed, the integer in it is read."""
    reply = shape.format(value)
    found = extract(reply, INTEGER)
    assert (found.value, found.why) == (value, "")
    assert reply[found.start : found.end] == str(value)


@pytest.mark.parametrize("shape", PERFECT + PERFECT_SHORT)
@FEW
@given(value=symbols())
def test_a_perfect_symbol_is_read_in_every_shape(shape: str, value: str) -> None:
    """However a right answer is dressed, the symbol in it is read."""
    reply = shape.format(value)
    found = extract(reply, SYMBOL)
    assert (found.value, found.why) == (value, "")
    assert reply[found.start : found.end] == value


@pytest.mark.parametrize("shape", PERFECT)
@FEW
@given(value=texts())
def test_a_perfect_text_is_read_in_every_shape(shape: str, value: str) -> None:
    """However a right answer is dressed, the text in it is read."""
    reply = shape.format(value)
    found = extract(reply, TEXT)
    assert (found.value, found.why) == (value, "")
    assert reply[found.start : found.end] == value


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ("17", 17),
        ("-7", -7),
        ("\u22127", -7),
        ("+7", 7),
        ("it is +7", 7),
        ("$-7$", -7),
        ("12.", 12),
        ("7.0", 7),
        ("7!", 7),
        ("'7'", 7),
        ("7 s", 7),
        ("1,234", 1234),
        ("1,234,567", 1234567),
        ("1_234", 1234),
        ("1'234", 1234),
        ("1\u00a0234", 1234),
        ("1\u2009234", 1234),
        ("1\u202f234", 1234),
        ("$1{,}234$", 1234),
        ("$1\\,234$", 1234),
        ("\uff11\uff12", 12),
        ("\u0661\u0662", 12),
        ("zero", 0),
        ("Seven", 7),
        ("twenty-one", 21),
        ("twenty one", 21),
        ("Ninety-nine ones", 99),
        ("one hundred", 100),
        ("a hundred", 100),
        ("one", 1),
        ("x = 7", 7),
        ("=> 12", 12),
        ("\u2192 12", 12),
        ("2 * 5 + 2 = 12", 12),
        ("$2 \\times 5 + 2 = 12$", 12),
        ("1,000 + 1 = 1,001", 1001),
        ("12 (10 + 2)", 12),
        ("12 (10 + 2 = 12)", 12),
        ("12 (twelve)", 12),
        ("twelve (12)", 12),
        ("12 out of 50 symbols", 12),
        ("12 ones out of 50", 12),
        ("12 of the 50", 12),
        ("12. There are 38 zeros.", 12),
        ("12  Bob has 12 sisters, and 7 brothers.", 12),
        ("12  Bob has 7.", 12),
        ("### 12", 12),
        ("about 7", 7),
        ("It adds up to 12", 12),
        ("There are 12 1's", 12),
        ("There are 12 1s here", 12),
        ("the 7th try gave 12", 12),
        ("in x7 there are 12", 12),
        ("12, as GPT-4 has it", 12),
        ("12 times", 12),
        ("[12]", 12),
        ("12 | ", 12),
        ("12, that is, 12 ones", 12),
    ],
)
def test_what_counts_as_an_integer(said: str, value: int) -> None:
    """These lines name one integer."""
    assert extract(f"Final answer: {said}", INTEGER).value == value


@pytest.mark.parametrize(
    "said",
    [
        "1 2 3 4 5 6 7 8 9 10",
        "1 2 \u2026 10",
        "1, 2, 3, 4",
        "1,2,3",
        "1,2,3,4,5,6,7,8,9,10",
        "1 1 1 1 1",
        "1, 1, 1",
        "1 + 1 + 1",
        "3+3",
        "7 and 7",
        "5 times 5",
        "between 7 and 9",
        "7 or 8",
        "seven or 8",
        "7-9",
        "12 in 7-9",
        "x+7",
        "7\u20139",
        "7 to 9",
        "12 ones and 38 zeros",
        "12 (or 13)",
        "12 (13)",
        "12. Wait, 13.",
        "12  Wait, 13.",
        "12  Ones and 38 zeros",
        "12  Ones, 38 zeros",
        "12 Ones make 38",
        "12  bob has 7",
        "12. 13. 14.",
        "7/10",
        "\\frac{7}{10}",
        "\\sqrt{49}",
        "7.5",
        ".5",
        "1e3",
        "1.234",
        "12,34",
        "1 234",
        "0,123",
        "007",
        "0110101",
        "50%",
        "3:45",
        "7^2",
        "7\u00b2",
        "7<sup>2</sup>",
        "7\u00d72",
        "7th",
        "x7",
        "7x",
        "n_7",
        "12-ish",
        "GPT-4",
        "No. 7",
        "#7",
        "step 7",
        "Sentence 2: Lena sings, singing, hymns.",
        "**Row 4:** an echo",
        "not 7",
        "at least 7",
        "at least 7, so 7",
        "more than 7",
        "\u2265 7",
        ">= 7",
        "7+",
        "7?",
        "7...",
        "--7",
        "\u00b17",
        "two hundred",
        "a few hundred",
        "one hundred and five",
        "7 hundred",
        "a thousand",
        "half a dozen",
        "7 in the first half",
        "two thirds",
        "twenty-first",
        "one two three",
        "seven point five",
        "minus seven",
        "no one knows",
        "one or two",
        "y = 3, x = 4",
        "5 + 5 = 10, 10 + 2 = 12",
        "12 = 10 + 2",
        "1\u200b2",
        "1\ufe0f\u20e32\ufe0f\u20e3",
        "unknown",
        "?",
        "1" * 4001,
        "1" * 5000,
        "-" + "1," * 5000,
    ],
)
def test_no_integer_is_guessed(said: str) -> None:
    """What is ambiguous, or no integer, is unparsed with a reason."""
    for reply in (f"Final answer: {said}", f"Final answer:\n{said}", f"I say {said}"):
        found = extract(reply, INTEGER)
        assert found.value is None, reply
        assert found.why
        assert (found.start, found.end) == (0, 0)


def test_words_for_a_part_are_no_number_beyond_a_hundred() -> None:
    """The reason quotes them."""
    found = extract("There are 13 ones in the first half of the row.", INTEGER)
    assert found.why == "a part or place: 'first half' on the last line"


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ("Final answer: 12\nNo, again.\nFinal answer: 7", 7),
        ("Final answer: 12\nI repeat.\nFinal answer:", 12),
        ("Final answer: 12 Final answer: hm", 12),
        ("Final answer: 12\nFinal answer: 7 or 8", None),
        ("I will end with 'Final answer:'.\nFinal answer: 7", 7),
        ("Final answer: see below.\n\n12", 12),
        ("Final answer: unknown\nI saw 40 symbols.", None),
        ("Final answer:\n\n---\n7\nThere were 50.", 7),
        ("Final answer:\n- 7", 7),
        ("Final answer: - 7", None),
        ("Final answer:\n> 7", 7),
        ("Final answer: > 7", None),
        ("Final answer: <7>", 7),
        ("Final answer:\n7. seven symbols", None),
        ("myFinal answer: 7 of 9\n12", 12),
        ("5 ones\nSo it is 12 in all", 12),
        ("I counted 12.\nHope this helps!", None),
        ("1. Count them", None),
        ("3) Total: 12", None),
        ("The digit '1' appears 12 times.", None),
        ("Shall I count all 50 symbols?", None),
        ("There is one.", 1),
        ("I cannot count this one.", None),
        ("$$\n\\boxed{12}\n$$\n", 12),
        ("| count | 12 |", 12),
        ("Final answer: 7\r\nThere were 50.\r\n", 7),
        ("Final answer\uff1a7", 7),
    ],
)
def test_which_line_decides(reply: str, value: int | None) -> None:
    """The last phrase that a number follows decides; without the phrase the last line does."""
    assert extract(reply, INTEGER).value == value


@pytest.mark.parametrize(
    ("phrase", "reply", "value"),
    [
        ("The answer is", "The answer is 7 of 9.", 7),
        ("The answer is", "The answer is: **7**\n9", 7),
        ("Answer", "ANSWER - 7\n9", 7),
        ("Answer", "Answers vary: 8\nAnswer: 7\n9", 7),
        ("Result:", "Result: seven", 7),
        ("Result:", "TheResult: 7\nand 9", 9),
        ("####", "so\n#### 7", 7),
        ("<answer>", "<answer>7</answer>", 7),
        ("**Answer:**", "Answer: 7\nof 9 or 10", 7),
        ("\\boxed{", "\\boxed{7}\n8 or 9", 7),
        ("R\u00e9ponse :", "R\u00c9PONSE: 7\n9 or 10", 7),
        ("Answer (a number):", "answer (a number): 7\n9 or 10", 7),
    ],
)
def test_the_phrase_is_any_string(phrase: str, reply: str, value: int) -> None:
    """A task's author chooses the phrase, with or without colon and markup."""
    assert extract(reply, Answer(type="integer", phrase=(phrase,))).value == value


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ("k", "k"),
        ("K.", "K"),
        ("a", "a"),
        ("I", "I"),
        ("zero", "0"),
        ("Nine.", "9"),
        ("'0'", "0"),
        ("the letter k", "k"),
        ("The last symbol is 'k', not x", "k"),
        ("a k, I think", "k"),
        ("it's k, e.g. not a", "k"),
        ("`kiwi` is the last", "kiwi"),
        ("k!", "k"),
        ("- k", "k"),
        ("0 (zero)", "0"),
        ("0 or 1", None),
        ("'0' or '1'", None),
        ("1 1 1", None),
        ("1,1,1", None),
        ("'1', '1'", None),
        ("not 0", None),
        ("0?", None),
        ("I don't know", None),
        ("a symbol", None),
        ("- a", "a"),
        ("- seven", "7"),
        ("\u2022 a", "a"),
        ("1.5 or so", None),
        ("y,x,y", None),
    ],
)
def test_what_counts_as_a_symbol(said: str, value: str | None) -> None:
    """A symbol is the only token, the only quoted one, or the only single character."""
    for reply in (f"Final answer: {said}", f"It is long.\nFinal answer:\n{said}", said):
        assert extract(reply, SYMBOL).value == value, reply


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ("Final answer: kiwi  pear\n kiwi", "kiwi pear kiwi"),
        ("Final answer: a b\nFinal answer:\n\n", "a b"),
        ("Final answer: a b\nFinal answer: c d", "c d"),
        ("Final answer: kiwi **pear** kiwi", "kiwi pear kiwi"),
        ("Final answer:\n```text\nkiwi pear\n```\n", "kiwi pear"),
        ("Final answer: 'don't go'", "'don't go'"),
        ('Final answer: "a" "b"', '"a" "b"'),
        ("Final answer: a b...", "a b..."),
        ("Final answer: .", "."),
        ("kiwi pear\nkiwi", "kiwi pear kiwi"),
        ("Sure!\n\n'kiwi pear'", "kiwi pear"),
        ("Sure!\n\n**kiwi pear**", "kiwi pear"),
        ("Sure!\n\n```\nkiwi\npear\n```", "kiwi pear"),
        ("Sure!\n```text\n```", None),
        ("Here it is:\nkiwi pear", None),
        ("Sure!\n\nkiwi pear", None),
        ("Sure!\n\n**Note** that it ends **here**", None),
        ("Final answer:", None),
    ],
)
def test_what_counts_as_a_text(reply: str, value: str | None) -> None:
    """All that follows the phrase; without it, what is clearly nothing but the text."""
    assert extract(reply, TEXT).value == value


def test_of_a_text_that_ran_on_only_the_first_line_counts() -> None:
    """A base model goes on after its answer; the first written line is the answer."""
    reply = "Final answer:\nkiwi pear\n\nQuestion: how many?"
    found = extract(reply, TEXT, first_line=True)
    assert (found.value, found.whole) == ("kiwi pear", True)
    assert not extract("Final answer: kiwi pe", TEXT, first_line=True).whole


@pytest.mark.parametrize(
    ("reply", "kept"),
    [
        ("<think>12</think>7", "7"),
        ("<thinking>12</thinking>7", "7"),
        ("<THINK>12\n</THINK>\n\n7", "7"),
        ("12</think>7", "7"),
        ("12</think>13</think>7", "7"),
        ("7 <think>12", "7"),
        ("<think>1<think>2</think>3</think>7", "7"),
        ("<think>1</think>7<think>2</think>", "7"),
        ("[THINK]12[/THINK]7", "7"),
        ("\u25c1think\u25b712\u25c1/think\u25b77", "7"),
        ("<|begin_of_thought|>12<|end_of_thought|>7", "7"),
        ("<|START_THINKING|>12<|END_THINKING|>7", "7"),
        ("<|channel|>analysis<|message|>12<|channel|>final<|message|>7", "7"),
        ("I think 7", "I think 7"),
        ("<think>12", ""),
    ],
)
def test_thinking_is_no_answer(reply: str, kept: str) -> None:
    """Thinking blocks go, whether or not both their ends are there; places stay."""
    rest = without_thoughts(reply)
    assert rest.strip() == kept
    assert len(rest) == len(reply)


@pytest.mark.parametrize("answer", [INTEGER, SYMBOL, TEXT])
@pytest.mark.parametrize(
    ("reply", "why"),
    [
        ("", "the reply is empty"),
        (" \n\t", "the reply is empty"),
        ("<think>12", "nothing but thinking"),
    ],
)
def test_an_empty_reply_says_so(reply: str, why: str, answer: Answer) -> None:
    """Nothing was said, and the reason is given."""
    found = extract(reply, answer)
    assert (found.value, found.why) == (None, why)


@pytest.mark.parametrize(
    ("reply", "whole"),
    [
        ("Final answer: 12", False),
        ("Final answer: 12.", False),
        ("Final answer: 12,", False),
        ("Final answer: 12 ", False),
        ("Final answer: twenty", False),
        ("Final answer: twenty-", False),
        ("Final answer: 12\n", True),
        ("Final answer: 12. Th", True),
        ("Final answer: 12!", True),
        ("Final answer: **12**", True),
        ("Final answer: \\boxed{12}", True),
        ("Final answer: 12 symbols\n", True),
    ],
)
def test_whole_means_that_a_cut_came_later(reply: str, whole: bool) -> None:
    """An answer at the very end of a cut-off reply may have lost its end."""
    found = extract(reply, INTEGER)
    assert (found.by_phrase or found.value is None, found.whole) == (True, whole)


@MANY
@given(st.integers(0, 10**6), st.text(max_size=12))
def test_a_finished_line_stays_what_it_is(value: int, more: str) -> None:
    """What follows on later lines, without the phrase, changes nothing."""
    assert extract(f"Final answer: {value}\n", INTEGER).whole
    assert extract(f"Final answer: {value}\n{more}", INTEGER).value == value


@MANY
@given(st.text())
def test_no_text_raises(text: str) -> None:
    """Any text has an answer or a reason, and places inside it."""
    for answer in (INTEGER, SYMBOL, TEXT):
        for reply in (text, f"Final answer: {text}"):
            found = extract(reply, answer)
            assert (found.value is None) == bool(found.why)
            assert 0 <= found.start <= found.end <= len(reply)
            assert found.value is None or found.start < found.end


PIECES = [
    *(
        "Final answer:",
        "Final answer: ",
        "final answer",
        "12",
        "7",
        "0",
        "k",
        "one",
        "hundred",
        "a",
    ),
    *(
        "\n",
        "\n\n",
        " ",
        ".",
        ",",
        "=",
        "-",
        "+",
        "*",
        "**",
        "`",
        "```",
        "$",
        "\\boxed{",
        "}",
        "(",
        ")",
    ),
    *(
        "<think>",
        "</think>",
        "[",
        "]",
        "\\",
        "#",
        ">",
        "_",
        '"',
        "'",
        "?",
        "\u2026",
        "\u00a0",
        "of",
    ),
]


@MANY
@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
def test_no_mixture_of_markup_raises(reply: str) -> None:
    """Pieces of markup in any order have an answer or a reason."""
    for answer in (INTEGER, SYMBOL, TEXT):
        found = extract(reply, answer)
        assert (found.value is None) == bool(found.why)
        assert 0 <= found.start <= found.end <= len(reply)


@MANY
@given(
    st.lists(st.sampled_from(PIECES), max_size=8).map("".join),
    st.one_of(st.integers(-5, 10**19).map(str), symbols(), st.sampled_from(PIECES)),
    st.sampled_from(["", ".", "\n", ".\n", " "]),
    st.sampled_from(["Final answer:", "The answer is", "Answer:"]),
)
def test_the_short_cut_says_the_same(before: str, said: str, after: str, phrase: str) -> None:
    """The fast path for a plain last line gives the verdict of the long way."""
    for reply in (f"{phrase} {said}{after}", f"{before}\n{phrase} {said}{after}"):
        for short in (INTEGER, SYMBOL, TEXT):
            answer = Answer(type=short.type, phrase=(phrase,))
            assert extract(reply, answer) == extract_any(reply, answer, first_line=False)


WORD_CHARACTERS = string.ascii_letters + "\u00e9\u00df\u4e00\u00b2"


@MANY
@given(
    st.integers(0, 99),
    st.text(WORD_CHARACTERS, min_size=1, max_size=3),
    st.text(WORD_CHARACTERS, min_size=1, max_size=3),
)
def test_a_number_inside_a_word_is_none(value: int, before: str, after: str) -> None:
    """17 is not 7, and neither are x7, 7th and x_7."""
    words = (f"{before}{value}{after}", f"{before}{value}", f"{before}_{value}", f"{value}{after}")
    for word in (*words, f"{before}_{value}_{after}"):
        assert extract(f"Final answer: {word}", INTEGER).value is None
        assert extract(word, INTEGER).value is None


@MANY
@given(st.integers(0, 99), st.integers(0, 99))
def test_two_numbers_are_none(one: int, other: int) -> None:
    """Two numbers beside each other are a list, whichever they are."""
    for between in (" ", ", ", "\t", " - ", "/", " and ", " or "):
        assert extract(f"Final answer: {one}{between}{other}", INTEGER).value is None
        assert extract(f"{one}{between}{other}", INTEGER).value is None


@MANY
@given(st.text())
def test_tidying_twice_changes_no_word(text: str) -> None:
    """A tidied text is one line of words with one space between."""
    assert tidy(text) == " ".join(tidy(text).split())


NASTY = [
    *("1", "1,", "1 ", "1.", "1'", "1 (", "1 (x) ", "1 of ", "1 = ", "1-", "-1", "1\u2009", "0"),
    *("*", "-", "(", ")", "_", "a_", "__a", "#", "# ", ">", "> ", "`", "```", "```\n", "~", "~~a"),
    *(
        "$",
        "$\\boxed{",
        "\\",
        "\\a",
        "\\,",
        "{,}",
        "{",
        "}",
        "<",
        "<b",
        "<b>",
        "<|",
        "<|a",
        "<|a|>",
    ),
    *("<think>", "</think>", "<think></think>", "[think]", "Final ", "Final answer", "Final\n"),
    *("Final answer: ", "Final answer:\n", "Final answer: x ", "Final answer: 1 ", "answer is "),
    *(
        "one ",
        "one, ",
        "one hundred ",
        ". ",
        ". one ",
        "here is one way ",
        "in line 1 is <",
        "one-",
        "a ",
        "a",
        '"',
        "'",
        '"a" ',
        "'a",
        "\u201c",
        " \n",
    ),
    *(
        " ",
        "\n",
        "\t",
        "\u2009",
        "=",
        "= ",
        "|",
        ".",
        "..",
        "\u2026",
        ":",
        "?",
        "\u00e9",
        "\u3067\u3059",
        "not ",
        "x.",
    ),
]


@pytest.mark.parametrize("piece", NASTY)
def test_time_is_linear(piece: str) -> None:
    """Ten kilobytes of anything take a moment, and twenty about twice that: in quadratic time,
    twenty would take many seconds.
    """
    for size, frame in ((10_000, "x{}x"), (20_000, "Final answer: {}")):
        reply = frame.replace("{}", piece * (size // len(piece)))
        for answer in (INTEGER, SYMBOL, TEXT):
            begun = time.process_time()
            extract(reply, answer)
            assert time.process_time() - begun < 1.0, (frame, size)


SIGNS = (*")]}>*_`\"'#$~|=-<([{", "> ) )", ") ] } >", "* *", "_ _", "_soup_", "*a* b", "[x]", '""')


SHAPES_OF_SIGNS = (
    *("{}", "Final answer: {}", "Final answer: {}.", "So it is.\nFinal answer:\n{}\n"),
    *("**Final answer:** {}", "Final answer: `{}`", "Final answer: **{}**"),
    *("### Final answer: {}", 'Final answer: "{}"', "Final answer:\n```\n{}\n```"),
    *("**Final answer: {}**", "{}<|im_end|>"),
)


@pytest.mark.parametrize("target", SIGNS)
def test_a_text_of_signs_is_right_in_every_shape(target: str) -> None:
    """Markup, brackets and quotes are part of the answer where the target has them; shapes that
    have the sign themselves are left out.
    """
    signs = {sign for sign in target if sign in "*`\"'#<>|_"}
    shapes = [shape for shape in SHAPES_OF_SIGNS if signs.isdisjoint(shape)]
    assert len(shapes) >= 4
    for shape in shapes:
        assert judged(shape.format(target), TEXT, target).outcome == "correct", shape


@pytest.mark.parametrize(
    ("target", "said"),
    [
        *(("> ) )", "} ) )"), ("> ) )", ") )"), (") )", "> ) )"), (") )", "( ) )"), (">", "}")),
        *(("_soup_", "soup"), ("soup", "_soup"), ("soup", "soup_"), ("*", "**a"), (")", "( ) )")),
        *(
            (") ) ]", "[ ) ) ]"),
            ("<a>", "a"),
            ("[a]", "a"),
            ("a", "}a"),
            ("a", "> a"),
            ("$a$", "a"),
        ),
        *(("]", "["), ("} ]", "]"), ("kiwi", "kiwi**"), ("kiwi", "`kiwi"), (") >", ")")),
    ],
)
def test_a_text_loses_no_sign_that_is_not_around_it_in_a_pair(target: str, said: str) -> None:
    """Another bracket is another answer, and so is one less."""
    for shape in (
        "{}",
        "Final answer: {}",
        "The stack is ( { [ <.\nFinal answer: {}.",
        "**Final answer:** {}",
    ):
        verdict = judged(shape.replace("{}", said), TEXT, target)
        assert verdict.outcome == "incorrect", shape
        assert verdict.answer != target


@pytest.mark.parametrize("sign", [*")]}>*_`\"'#$~|=-<([{+", "k"])
def test_a_symbol_can_be_a_sign(sign: str) -> None:
    """Also one that is markup elsewhere."""
    for reply in (
        sign,
        f"Final answer: {sign}",
        f"Final answer:\n{sign}\n",
        f"**Final answer:** {sign}",
    ):
        assert judged(reply, SYMBOL, sign).outcome == "correct", reply
        assert judged(reply, SYMBOL, "x").outcome == "incorrect", reply


@pytest.mark.parametrize(
    ("target", "said", "outcome"),
    [
        *(
            ("law, _soup_, weary", "law, _soup_, weary", "correct"),
            ("law, _soup_", "law, soup", "incorrect"),
        ),
        *(("law, soup", "law, _soup_", "correct"), ("law, soup", "**law**, `soup`.", "correct")),
        *(
            (">, ), ]", ">, ), ]", "correct"),
            (">, ), ]", "}, ), ]", "incorrect"),
            ("*, _", "*, _", "correct"),
        ),
        *(
            ("a, b", "[(a), (b)]", "correct"),
            ("(a), (b)", "[(a), (b)]", "correct"),
            ("[a, b]", "[a, b]", "correct"),
        ),
        *(
            ("1, 2, 3", "[1,2,3]", "correct"),
            ("1, 2, 3", "1, 2.0, 03", "correct"),
            ("1, 2", "one, two", "correct"),
        ),
        *(
            ("1, 2", "1, 2.5", "incorrect"),
            ("007, 8", "7, 8", "correct"),
            ("x7, 2.0", "x7, 2", "incorrect"),
        ),
    ],
)
def test_items_of_a_list_keep_what_the_target_has(target: str, said: str, outcome: str) -> None:
    """Markup, quotes and brackets go only in pairs; where all items are numbers, numbers."""
    answer = Answer(type="list")
    for shape in ("Final answer: {}", "Final answer:\n{}\nThat is it.", "**Final answer:** {}"):
        assert judged(shape.format(said), answer, target).outcome == outcome, shape


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ("What a nice one! I find 6 ones in the row.", 6),
        ("That is an easy one, the row has 6 of them.", 6),
        ("In this one there are 6 letters.", 6),
        ("This one has 6.", 6),
        ("Going one by one I get 6 in all.", 6),
        ("Read one at a time, it makes 6", 6),
        ("With the last one it is 6.", 6),
        ("Each one counted, that gives 6.", 6),
        ("I zero in on the b's: 6", 6),
        ("A two-step check gives 6.", 6),
        ("I see one a and 6 b's.", None),
        ("One or 6, who knows", None),
        ("There is a single one and 6 zeros.", None),
        ("The answer is one, or is it 6", None),
        ("The answer is one.", 1),
        ("Final answer: one", 1),
        ("Great one! 5", 5),
        ("Oh. A fun row. Tricky one, but it is 5.", 5),
        ("I count 5, one more than you would think.", 5),
        ("There are 5, one fewer than expected.", 5),
        ("Here is one way: count. The total: 14", 14),
        ("Here's one simple method; it gives 14", 14),
        ("There is only one letter.", 1),
        ("So, there's exactly one 'k' in the row.", 1),
        ("I see just one letter k.", 1),
        ("The row has one k.", 1),
        ("There is one letter in it.", 1),
        ("The row: great one, 5 or 6", None),
        ("I see 5 zeros, one more than that.", None),
        ("I see 5, one more than 4.", None),
        ("One more than you say, and that is more than 5", None),
        ("It is one more than 5", None),
        ("5 and one more", None),
        ("Here is one a and 6 b's.", None),
        ("There is one way in 3 steps", None),
        ("There is only one way.", None),
        ("There is only one problem.", None),
        ("There is only one letter that I can read.", None),
        ("There is only one letter left.", None),
        ("There is one more letter.", None),
        ("There is one or more letters.", None),
        ("Each line has only one letter.", None),
        ("Bob: there is one letter.", None),
        ("I see one k in the first row.", None),
        ("I see one k before it.", None),
        ("There is only one letter?", None),
        ("I do not say there is only one letter.", None),
        ("The content of the line red-hat is <6102>.", 6102),
        ("The <CONTENT> of it is <-7>.", -7),
        ("REGISTER_CONTENT in line 12 is <35101>.", 35101),
        ("The value of the line <0> is <16010>", 16010),
        ("The content of 'a' is <REGISTER_CONTENT> <5696>.", 5696),
        ("In line 12 it is <3>, and in line 13 it is <5>.", None),
        ("In line 12 is <3> or 4.", None),
        ("Group 12 is <3>.", None),
        ("The value in line 12 is 3.", None),
        ("The count of it >= <7>", None),
        ("It is 7> <5>", None),
        ("I found < 6 of them.", None),
        ("It is 3 < 6 > 4.", None),
        ("analysisThe row has 3 a and 4 b.assistantfinalThere are 6 letters.", 6),
        ("analysisMaybe 5.assistantfinal6", 6),
        ("We sum up to 5. Done.assistantfinalFinal answer: 6", 6),
        ("analysisThe row has 6", None),
        ("The analysis gives 6", 6),
    ],
)
def test_numbers_in_words_of_a_sentence(reply: str, value: int | None) -> None:
    """A word such as one is no second number where it counts nothing; nor is thinking an answer."""
    assert extract(reply, INTEGER).value == value


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        *(
            ("\u67095\u4e2a", 5),
            ("5\u4e2a\u3002", 5),
            ("5\u500b\u3067\u3059", 5),
            ("\u7b54\u6848\u662f12", 12),
        ),
        *(
            ("\u4e00\u5171\u6709\uff15\u4e2a\u5b57\u6bcd\u3002", 5),
            ("5\uac1c\uc785\ub2c8\ub2e4", 5),
            ("\u0e21\u0e355\u0e15\u0e31\u0e27", 5),
        ),
        *(
            ("\u7b2c5\u4e2a", None),
            ("5\u756a\u76ee", None),
            ("\u81f3\u5c115\u4e2a", None),
            ("5\u500b\u4ee5\u4e0a", None),
        ),
        *(
            ("5\u4e07", None),
            ("\u4e947", None),
            ("5\u4e2a\u62166\u4e2a", None),
            ("5\u4e2a\uff1f", None),
        ),
        *(("\u7b2c3\u884c\u67095\u4e2a", 5), ("3\u70b97", None), ("\u4e0d\u662f5\u4e2a", None)),
    ],
)
def test_numbers_beside_letters_of_scripts_without_spaces(reply: str, value: int | None) -> None:
    """Chinese, Japanese, Korean and Thai set no space around digits."""
    for text in (reply, f"Final answer: {reply}", f"Hm.\nFinal answer:\n{reply}"):
        assert extract(text, INTEGER).value == value, text


DENIED = (
    *(
        "5ではない",
        "5ではありません",
        "5가 아닙니다",
        "没有5个",
        "低于5",
    ),
    *(
        "高于5",
        "不足5个",
        "5 이상",
        "5개 미만",
        "5을 초과",
    ),
    *(
        "负5",
        "マイナス5",
        "마이너스 5",
        "百分之5",
        "5억",
    ),
    *(
        "5つ目",
        "5％",
        "5‰",
        "⩾5",
        "≪5",
    ),
    *(
        "&lt;5",
        "&gt; 5",
        "√5",
        "½ 5",
        "5 or more",
    ),
    *(
        "5 at least",
        "max 5",
        "never 5",
        "except 5",
        "5 is wrong",
    ),
    *(
        "5 is not correct",
        "5 is too high",
        "5 too many",
        "5 squared",
        "half of 5",
    ),
    *(
        "twice 5",
        "5以上",
        "至少5",
        "5万",
        "5%",
    ),
    *(
        "≤5",
        ">5",
        "5만",
        "5 以上",
        "5 ones or more",
    ),
    *(
        "5不是",
        "5 个不对",
        "√ 5",
        "&#60;5",
        "5 or fewer",
    ),
)
NOT_DENIED = (
    *(
        "5个",
        "5です",
        "5입니다",
        "5개입니다",
        "5個です",
    ),
    *(
        "一共有5个",
        "正确答案是5",
        "5 ones",
        "5 or so",
        "There are 5 ones, or 5 in all",
    ),
    *(
        "5, and I am sure",
        "5 is the count",
        "5 is correct",
        "5 in total",
        "有5个，不多不少",
    ),
    *(
        "the total is 5",
        "max: 5",
        "5。以上です",
        "5 is right, nothing is missing",
        "5 – not more",
    ),
    *(
        "5人",
        "5回",
        "答えは5です",
        "답은 5입니다",
        "5 symbols at last",
    ),
    *("In half of the row there are 5",),
)


@pytest.mark.parametrize("kind", ["integer", "number"])
@pytest.mark.parametrize(
    ("said", "value"), [*((said, None) for said in DENIED), *((said, 5) for said in NOT_DENIED)]
)
def test_bounds_denials_and_parts_around_a_number(kind: str, said: str, value: int | None) -> None:
    """In words and signs of any language, before and after it."""
    assert extract(f"Final answer: {said}", Answer(type=kind)).value == value


def test_other_types_beside_letters_of_scripts_without_spaces() -> None:
    """Options, symbols, codes and answer phrases need no space there either."""
    fruit = Answer(type="choice", options=("\u82f9\u679c", "\u9999\u8549"))
    assert judged("\u6211\u9009\u82f9\u679c\u3002", fruit, "\u82f9\u679c").outcome == "correct"
    assert judged("\u6211\u9009\u9999\u8549\u3002", fruit, "\u82f9\u679c").outcome == "incorrect"
    assert judged("\u4e0d\u662f\u82f9\u679c\u3002", fruit, "\u82f9\u679c").outcome == "unparsed"
    assert (
        judged("\u82f9\u679c\u3067\u306f\u306a\u3044", fruit, "\u82f9\u679c").outcome == "unparsed"
    )
    assert judged("\u82f9\u679c\u548c\u9999\u8549", fruit, "\u82f9\u679c").outcome == "unparsed"
    numerals = Answer(type="choice", options=("\u4e09\u5341", "\u4e8c\u5341"))
    assert judged("\u5171\u4e8c\u5341\u4e09\u4e2a", numerals, "\u4e8c\u5341").outcome == "unparsed"
    assert judged("\u6700\u540e\u4e00\u4e2a\u662fk\u3002", SYMBOL, "k").outcome == "correct"
    assert judged("\u7b54\u6848\u662f\u300ckiwi\u300d\u3002", SYMBOL, "kiwi").outcome == "correct"
    code = Answer(type="code")
    assert judged("\u5bc6\u7801\u662fAB12\u3002", code, "AB12").outcome == "correct"
    phrase = Answer(type="text", phrase=("\u7b54\u6848\u662f",))
    assert (
        judged("\u6240\u4ee5\u7b54\u6848\u662f\u84dd\u8272\u3002", phrase, "\u84dd\u8272").outcome
        == "correct"
    )
    letters = Answer(type="choice", options=("red", "green"), letters=True)
    assert judged("Final answer: \u9009B\u3002", letters, "green").outcome == "correct"


CAT, TOKYO = "\u732b", "\u6771\u4eac"


@pytest.mark.parametrize(
    ("target", "said", "outcome"),
    [
        *(
            (CAT, said, "correct")
            for said in ("猫です", "猫です。", "猫だ", "これは猫です", "猫でした")
        ),
        *(
            (CAT, said, "correct")
            for said in ("答え：猫", "最后一个符号是猫。", "答案是「猫」。", "我认为是猫吧")
        ),
        *(("고양이", said, "correct") for said in ("고양이입니다.", "정답은 고양이입니다")),
        *(("五", said, "correct") for said in ("答案是五。", "五", "答案为五")),
        *(("b7", said, "correct") for said in ("最后是b7个", "最后是b7。", "b7です", "答え：b7")),
        *((one, one, "correct") for one in ("猫です", "はな", "からだ", "是", "不是", "不同")),
        *(
            (CAT, said, "incorrect")
            for said in ("犬です", "犬猫です", "子猫", "猫か犬です", "猫と犬です")
        ),
        *(
            (CAT, said, "unparsed")
            for said in ("猫ではない", "猫じゃないです", "不是猫", "猫ではありません")
        ),
        *((CAT, said, "unparsed") for said in ("わかりません", "猫？", "不是狗，是猫")),
        *(("五", said, "incorrect") for said in ("答案是五十。", "十五です", "答案是二五")),
        *(("b7", said, "incorrect") for said in ("最后是b77个", "最后是7个", "最后是ab7。")),
        *(
            ("b7", said, "unparsed")
            for said in ("最后是b7和b8", "最后是第b7个", "最后不是b7", "b7还是b8")
        ),
        *((("k", said, "unparsed")) for said in ("答案不是k。", "kではない")),
    ],
)
def test_symbols_in_sentences_without_spaces(target: str, said: str, outcome: str) -> None:
    """Behind a verb or a particle, and before a polite ending; what is more is another symbol."""
    for reply in (said, f"Final answer: {said}", f"Hm.\n{said}"):
        verdict = judged(reply, SYMBOL, target)
        assert verdict.outcome == outcome, (reply, verdict)


def test_the_case_of_symbols_in_sentences_without_spaces() -> None:
    """It counts unless the task says otherwise."""
    mild = Answer(type="symbol", case=False)
    for said in ("最后是kX。", "kXです", "答案是kx"):
        assert judged(said, mild, "Kx").outcome == "correct"
        assert judged(said, SYMBOL, "Kx").outcome == "incorrect"
        assert judged(said, mild, "Ky").outcome == "incorrect"


@pytest.mark.parametrize(
    ("target", "said", "is_right"),
    [
        *(
            (TOKYO, said, True)
            for said in ("東京です", "東京です。", "東京だ。", "「東京」です。", "東京でした")
        ),
        *(
            (TOKYO, said, True)
            for said in (
                "答えは東京です",
                "答えは東京",
                "正解は、東京です！",
                "答案是東京。",
                "答案：東京",
            )
        ),
        *(("서울", said, True) for said in ("서울입니다.", "정답은 서울입니다")),
        *(("The Tower", said, True) for said in ("The Towerです", "答案是The Tower。")),
        *((one, one, True) for one in ("東京です", "答えは東京です", "私は猫である")),
        *(
            (TOKYO, said, False)
            for said in ("東京都", "東京都です", "答えは東京都です", "西東京です")
        ),
        *(
            (TOKYO, said, False)
            for said in ("東京ではない", "東京ではありません", "東京じゃないです", "東京以外です")
        ),
        *(
            (TOKYO, said, False)
            for said in (
                "答案不是東京",
                "答案不会是東京",
                "是不是東京",
                "東京ですか？",
                "東京か大阪です",
            )
        ),
        *((TOKYO, said, False) for said in ("東京は首都です", "答えは大阪です", "東京と大阪です")),
    ],
)
def test_texts_in_sentences_without_spaces(target: str, said: str, is_right: bool) -> None:
    """As symbols; a text is never unparsed for it."""
    outcome = "correct" if is_right else "incorrect"
    for reply in (said, f"Final answer: {said}", f"Final answer:\n{said}\n"):
        verdict = judged(reply, TEXT, target)
        assert verdict.outcome == outcome, (reply, verdict)


def test_a_sentence_may_state_a_text_without_spaces() -> None:
    """Only without the answer phrase, as in English."""
    said = "日本の首都は東京です。"
    assert judged(said, TEXT, TOKYO).outcome == "correct"
    assert judged(f"Final answer: {said}", TEXT, TOKYO).outcome == "incorrect"
    assert judged("“Caf\u00e9: kiwi”", TEXT, "kiwi").outcome == "incorrect"


@pytest.mark.parametrize(
    ("target", "said", "is_right"),
    [
        *(
            ("a, b", said, True)
            for said in ("a、b", "a，b", "a, b", "a，b。", "a、 b", "「a」、「b」")
        ),
        *(
            ("甲, 乙, 丙", said, True)
            for said in ("甲，乙，丙。", "甲、乙、丙", "甲、乙, 丙", "甲、\n乙、\n丙")
        ),
        *(("1, 2", said, True) for said in ("1、2", "1，2.0")),
        *(("a、b, c", said, True) for said in ("a、b, c",)),
        *(("a, b", said, False) for said in ("a、b、c", "b、a", "a。b", "a・b", "ab", "a、")),
        *(("a、b, c", said, False) for said in ("a、b、c", "a, b, c")),
    ],
)
def test_lists_with_the_commas_of_chinese_and_japanese(
    target: str, said: str, is_right: bool
) -> None:
    """They separate items where a comma does."""
    for reply in (f"Final answer: {said}", f"Final answer: {said}\nDone.", said):
        verdict = judged(reply, Answer(type="list"), target)
        assert verdict.outcome == ("correct" if is_right else "incorrect"), (reply, verdict)
    other = Answer(type="list", item_separator=";")
    assert judged("Final answer: a、b", other, "a; b").outcome == "incorrect"


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ('The <CONTENT> of "wild-cat" is <60217>.', "60217"),
        ("The code of 'wild-cat' is 60217, I think", "60217"),
        ('In "wild-cat" it is "60217".', "60217"),
        ('Of 60217 and 60218 it is "wild-cat".', "wild-cat"),
    ],
)
def test_the_only_token_with_a_digit_is_the_code(reply: str, value: str) -> None:
    """Also where another token is in quotes."""
    assert extract(reply, Answer(type="code")).value == value


def test_a_sentence_without_the_phrase_may_state_a_text() -> None:
    """Its last words, or those in quotes, are compared as well."""
    for reply in (
        'The first topic was "Old boats".',
        "The first topic that we had is Old boats",
        "It was **Old boats**.",
        "Sortie : Old boats",
        "**Topic:** Old boats",
    ):
        assert judged(reply, TEXT, "Old boats").outcome == "correct"
        assert judged(reply, TEXT, "New boats").outcome == "incorrect"
    assert judged("The first topic was not Old boats.", TEXT, "Old boats").outcome == "incorrect"
