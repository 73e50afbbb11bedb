"""Where a reply ends that ran on into the next turn."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import pytest

from eyechart.harness.score import turns
from eyechart.harness.score.answers import extract
from eyechart.harness.score.judge import judge
from eyechart.harness.score.markup import without_thoughts
from eyechart.harness.score.turns import own_turn
from eyechart.harness.score.verdict import Verdict
from eyechart.harness.spec.answer import Answer

if TYPE_CHECKING:
    from collections.abc import Callable

INTEGER, SYMBOL, TEXT = Answer(type="integer"), Answer(type="symbol"), Answer(type="text")
LIST, COLORS = Answer(type="list"), Answer(type="choice", options=("red", "green"))
MARKS = (
    *("<|im_end|>", "<|eot_id|>", "<|end|>", "<|endoftext|>", "<|end_of_text|>", "<|eom_id|>"),
    *("<|return|>", "<|call|>", "<|END_OF_TURN_TOKEN|>", "<|user|>", "<|im_start|>user", "<|EOT|>"),
    *("<|start_header_id|>user<|end_header_id|>", "<|start|>user<|message|>", "<|observation|>"),
    *("<end_of_turn>", "<start_of_turn>user", "<turn|>", "<|turn>user", "</s>", "<eos>", "[INST]"),
    *("<\uff5cend\u2581of\u2581sentence\uff5c>", "<\uff5cUser\uff5c>", "[|endofturn|]", "[|user|]"),
    *("<|start_of_role|>user<|end_of_role|>", "<|begin_of_text|>", "<end_of_utterance>"),
    *("[EOS]", "[e~[", "<eod>", "</assistant>", "<reserved_106>"),
    *("<pad>", "<unk>", "[PAD]", "<extra_id_1>", "<pad><pad>", "<unk> <unk>"),
)
LINES = (
    "User: and now?",
    "Human: go on",
    "**User:** hm",
    "### Instruction:",
    "### User",
    "USER: 5",
    "user",
    "human ",
    "system",
    "assistant",
    "\u7528\u6237\uff1a\u51e0\u4e2a\uff1f",
)

FINAL = "<|channel|>final<|message|>Final answer: "


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


BEGINNINGS = ("Final answer: ", "So it is this.\nFinal answer: ", "<think>5?</think>\n", "")


@pytest.mark.parametrize("mark", MARKS)
@pytest.mark.parametrize(
    ("answer", "target"),
    [(INTEGER, 7), (SYMBOL, "k"), (TEXT, "kiwi pear"), (LIST, "kiwi, pear"), (COLORS, "red")],
)
def test_a_reply_ends_at_the_first_mark_of_a_turns_end(
    mark: str, answer: Answer, target: int | str
) -> None:
    """Whatever the model's family; a reply that ended so was not cut off."""
    for begin, gap in product(BEGINNINGS, ("", " ", "\n")):
        reply = f"{begin}{target}{gap}{mark}"
        tail = "\nHow many now?\nassistant\nFinal answer: 9, blue or green"
        for text, finish in ((reply, "stop"), (reply + tail, "stop"), (reply + tail, "length")):
            verdict = judged(text, answer, target, finish)
            assert verdict.outcome == "correct", (text, verdict)
            assert text[verdict.start : verdict.end] == str(target)


@pytest.mark.parametrize("line", LINES)
def test_a_reply_ends_where_a_line_begins_another_turn(line: str) -> None:
    """After an answer that follows the phrase, or one that can be read before a dialogue."""
    for begin in ("Final answer: 7", "I see 3 and 4.\nFinal answer: 7\n", "7\n"):
        for more in ("", "\nIn all 9.", "\nAssistant: Final answer: 9", "\n### Response: 9"):
            assert judged(f"{begin}\n{line}{more}", INTEGER, 7).outcome == "correct", (begin, more)


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ("<|im_start|>assistant\nFinal answer: 7<|im_end|>", 7),
        ("<|im_start|>assistant\n7<|im_end|>\n<|im_start|>user\n9", 7),
        ("<|im_end|>\nFinal answer: 7", 7),
        ("<s>Final answer: 7</s>", 7),
        ("<|start_header_id|>assistant<|end_header_id|>\n\n7<|eot_id|>", 7),
        ("<start_of_turn>model\n7<end_of_turn>\n<start_of_turn>user\n8", 7),
        ("<think>It is 5.<|im_end|></think>\nFinal answer: 7", 7),
        ("It is 5 <|im_end|> or so</think>\nFinal answer: 7", 7),
        (
            f"<|channel|>analysis<|message|>5?<|end|><|start|>assistant{FINAL}7<|return|>",
            7,
        ),
        (
            f"{FINAL}7<|end|><|start|>user<|message|>Now?<|end|><|start|>assistant{FINAL}9<|return|>",
            7,
        ),
        ("The user asks:\nUser: how many?\nI count 5.\nFinal answer: 7", 7),
        ("Human: how many?\nThere are 3 + 4.\nFinal answer: 7", 7),
        ("User: how many?\nAssistant: Final answer: 7", 7),
        ("I count 5.\nQuestion: is it right?\nNo.\nFinal answer: 7", 7),
        ("The row has <|end|>, <|user|> and <|im_end|>.\nFinal answer: 7", 7),
        ("I look for `<|im_end|>` in it.\nFinal answer: 7", 7),
        ("The first was <s>5</s>.\nFinal answer: 7", 7),
        ("<|begin_of_box|>7<|end_of_box|>", 7),
        ("Let me see.<|assistant|>\nFinal answer: 7", 7),
        ("I count 5.\nassistant\nFinal answer: 7", 7),
        ("user\nHow many?\nassistant\nFinal answer: 7", 7),
        ("I see 5\nusers\nand in all 7", 7),
        ("It has `[EOS]` and [e~[.\nFinal answer: 7", 7),
        ("It has <|im_en in it.\nFinal answer: 7", 7),
        ("I count.<0x0A>Final answer: 7<0x0A>", 7),
        ("<assistant>Final answer: 7</assistant>", 7),
    ],
)
def test_what_ends_no_reply(reply: str, value: int) -> None:
    """Marks at its beginning, in its thinking and in quotes, and lines before any answer."""
    assert judged(reply, INTEGER, value).answer == value


@pytest.mark.parametrize(
    ("answer", "target"),
    [(INTEGER, 7), (SYMBOL, "k"), (TEXT, "kiwi pear"), (LIST, "kiwi, pear"), (COLORS, "red")],
)
@pytest.mark.parametrize("begin", ["Final answer: ", "So it is this.\nFinal answer:\n", ""])
def test_what_ends_an_answer_of_any_type(begin: str, answer: Answer, target: int | str) -> None:
    """A line of another turn, a line break as a token, and a mark whose own end was cut."""
    tail = "\nHow many now?\nassistant\nFinal answer: 9, blue or green"
    ends = [f"\n{line}{more}" for line in LINES for more in ("", tail)]
    cut = ("<|im_end", "<|im_", "<|", "<|eot_id", "</s", "<end_of_tu", "<\uff5cend", "<0x0A>")
    for end in (*ends, *cut):
        verdict = judged(f"{begin}{target}{end}", answer, target)
        assert verdict.outcome == "correct", (end, verdict)


@pytest.mark.parametrize(
    ("answer", "target", "said"),
    [
        (TEXT, "kiwi user pear", "kiwi\nuser\npear"),
        (TEXT, "kiwi", "kiwi\nusers"),
        (TEXT, "kiwi", "kiwi\nuser pear"),
        (TEXT, "kiwi", "kiwi\n\u7528\u6237\u540d"),
        (TEXT, "kiwi", "kiwi [EO]"),
        (TEXT, "kiwi", "kiwi <eo>"),
        (TEXT, "kiwi pear", "kiwi <unk> pear"),
        (TEXT, "<pad>", "<pad>"),
        (TEXT, "kiwi <unk>", "kiwi <unk>"),
        (LIST, "pad", "[pad]"),
        (TEXT, "kiwi", "kiwi <0x41>"),
        (TEXT, "kiwi", "kiwi <0x0A>pear"),
        (TEXT, "<|im_", "<|im_"),
        (TEXT, "a<0x0A>", "a<0x0A>"),
        (SYMBOL, "user", "\nuser"),
        (LIST, "kiwi, human", "\n- kiwi\n- human"),
        (Answer(type="choice", options=("user", "system")), "user", "\nuser"),
    ],
)
def test_lines_and_words_that_end_nothing(answer: Answer, target: str, said: str) -> None:
    """Where they are words of the answer, or longer than such a line or mark."""
    is_right = said.split() == target.split() or answer is not TEXT
    verdict = judged(f"Final answer: {said}", answer, target)
    assert verdict.outcome == ("correct" if is_right else "incorrect")


def test_a_line_break_as_a_token_does_not_make_a_reply_whole() -> None:
    """A reply that was cut off stays so."""
    assert judged("I see 3<0x0A>and 4", INTEGER, 4, "length").outcome == "truncated"
    assert judged("Final answer: 7<0x0A>and", INTEGER, 7, "length").outcome == "correct"


def test_an_answer_with_such_a_mark_is_whole() -> None:
    """Where a right answer or an option has one, none ends the reply."""
    for target in ("a <|im_end|> b", "<|user|>", "a </s>"):
        reply = f"Final answer: {target}"
        assert own_turn(reply, TEXT, (target,)) == reply
        assert judged(reply, TEXT, target).outcome == "correct"
    tokens = Answer(type="choice", options=("<|user|>", "<|system|>"))
    assert own_turn("It is <|user|> then <|system|>", tokens, ("<|user|>",)).endswith("<|system|>")


@pytest.mark.parametrize(
    ("answer", "target", "reply"),
    [
        (INTEGER, 7, "7\n\nQuestion: How many ones are in 111?\nFinal answer: 3"),
        (INTEGER, 7, "7\r\n\r\nQ: How many?\nA: I see.\nFinal answer: 3"),
        (INTEGER, 7, "7\n\n**Question 2:** How many?\n\nFinal answer: 3"),
        (INTEGER, 7, "7\n[User]: How many?\nFinal answer: 3"),
        (INTEGER, 7, "7\n\nStudent: And now?\nTeacher: Final answer: 3"),
        (TEXT, "ok", "ok\n\nQ: What?\nA: x"),
        (TEXT, "ok", "ok\n\nQuestion: What?\nFinal answer: x"),
        (TEXT, "ok\n\nQ: What?\nA: x", "ok\n\nQ: What?\nA: x"),
        (TEXT, "ok Q: What?", "ok\n\nQ: What?"),
        (TEXT, "ok Q: What? A: x", "ok\nQ: What?\nA: x"),
        (TEXT, "Q: What? A: x", "\n\nQ: What?\nA: x"),
        (INTEGER, 3, "7\nQuestion: is it right?\nNo.\nFinal answer: 3"),
    ],
)
def test_a_reply_ends_where_the_model_asks_itself_a_question(
    answer: Answer, target: int | str, reply: str
) -> None:
    """After an answer behind the phrase and a blank line, unless the target has the question."""
    verdict = judged(f"Final answer: {reply}", answer, target)
    assert verdict.outcome == "correct", verdict


@pytest.mark.parametrize(
    "piece", ["<|im_end|>", "<|user|> a ", "\nUser: ", "\nQ: 7", "<s></s>", "<|"]
)
def test_few_marks_are_tried(piece: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reply of nothing but marks is not read again and again."""
    read: list[str] = []

    def counted(whole: Callable[..., object]) -> Callable[..., object]:
        def count(text: str, *rest: object) -> object:
            read.append(text)
            return whole(text, *rest)

        return count

    for whole in (extract, without_thoughts):
        monkeypatch.setattr(turns, whole.__name__, counted(whole))
    for begin in ("", "<think>", "<|channel|>analysis<|message|>"):
        own_turn(begin + piece * 5000, INTEGER, (7,))
    assert len(read) < 100
