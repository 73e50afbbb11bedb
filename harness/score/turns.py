"""Where a reply ends: at the first mark of the end of a turn, or where it begins another turn.

A server that does not know the end token of its model sends what the model went on to write:
`Final answer: 7<|im_end|><|im_start|>user …`. The reply is what stands before.

- Marks are written `<|…|>` or `<｜…｜>` with a name that ends a turn or begins one of another role,
  `<…_of_turn>`, and a few others, such as `</s>`, `[EOS]` and `[INST]`. The last one of a reply may
  lack its end, as `<|im_en`. `<pad>`, `<unk>`, `[PAD]` and `<extra_id_1>` are marks where nothing
  but another mark follows on the line. Marks at the beginning of a reply, those inside thinking,
  and those in quotes or named in a sentence end nothing.
- A line that begins with `User:`, `Human:`, `用户：` or `### Instruction`, a line that is only
  `user`, `assistant`, `human` or `system`, and the first line of the prompt again end the reply if
  an answer stands before: after the answer phrase, or, where no phrase follows or an `Assistant:`
  line does, one that can be read.
- A line that begins with `Question:`, `Q:` or `Student:` ends the reply if a blank line divides it
  from an answer after the answer phrase, and a further phrase, `A:`, `Answer:` or `Teacher:`
  follows.
- Where a right answer or an option has such a mark, line or word itself, none ends a reply.
- `<0x0A>` is a line break.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING

from .answers import TYPES, extract, phrases_in
from .markup import SOLID, without_markup, without_thoughts

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .answer_type import AnswerForm
    from .verdict import Target

_LINE_BREAK = "<0x0A>"
_MARK = re.compile(
    r"<[|\uff5c](?P<name>[^|\uff5c<>\n]{1,40})[|\uff5c]>|\[\|(?P<bracketed>[a-z]{1,20})\|\]"
    r"|<(?:\|turn|turn\||/s|/assistant|/?eo[sd]|eot|endoftext|(?:start|end)_of_(?:turn|utterance))>"
    r"|(?:<(?:pad|unk|extra_id_\d{1,3})>|(?-i:\[(?:PAD|UNK)\]))(?=\s*+(?:[<\[]|\Z)|[^\S\n]*+\n)"
    r"|<reserved_\d{1,4}>|\[(?:/?INST|EOS)\]|\[e~\[|(?:<[|\uff5c]\w{0,40}|</s|<end_of_\w{0,9})\s*\Z",
    re.IGNORECASE,
)
_ROLE = r"(?:user|human|system|developer|tool|observation|environment|ipython)"
_ENDS = re.compile(
    r"(?:.*[_\W\u2581])?(?:end|eo[a-z]|return|call)(?:[_\W\u2581].*)?|endof\w+"
    r"|im_start|start|start_header_id|start_of_role|start_of_turn_token"
    rf"|begin[_\u2581]of[_\u2581](?:text|sentence)|{_ROLE}(?:_token|_start)?",
    re.IGNORECASE,
)
"""Names of marks that end a turn, or begin another one."""
_GOES_ON = re.compile(r"end_(?:header_id|of_(?:role|box|image|thought))", re.IGNORECASE)
"""Names of other marks that have `end` in them."""
_OWN = re.compile(r"(?:assistant|model|chatbot|bot)\b", re.IGNORECASE)
_OTHER = re.compile(
    rf"(?:<[|\uff5c][^|\uff5c<>\n]{{1,40}}[|\uff5c]>\s*+){{0,3}}+(?:{_ROLE}\b|<[|\uff5c]{_ROLE}[|\uff5c]>)",
    re.IGNORECASE,
)
_NAMED = re.compile(r"[\"'`\u201d\u2019,;:)]|\s++(?:and|or|tokens?|marks?)\b|\.(?=\s|\Z)")
_TURN = re.compile(
    r"\n[ ]{0,3}(?:(?:\*\*|\[)?(?:User|USER|Human|HUMAN)(?:\*\*|\])?[ ]?[:\uff1a]"
    r"|(?:\u7528[\u6237\u6236]|\u4f7f\u7528\u8005|\u30e6\u30fc\u30b6\u30fc|\uc0ac\uc6a9\uc790)"
    r"[ ]?[:\uff1a]"
    r"|\#{1,4}[ ]?(?:User|Human|Instruction)s?\b:?[ \r]*+(?=\n|\Z)"
    r"|(?P<role>[Uu]ser|[Aa]ssistant|[Hh]uman|[Ss]ystem)[ \r]*+(?=\n|\Z))"
    r"|(?:(?<=\n)|(?<=\n\r))\n[ ]{0,3}(?:\*\*)?(?P<asks>Question|Q|Student)"
    r"(?:[ ]?\d{1,3})?[:\uff1a]"
)
_ANSWERER = re.compile(
    r"\n[ ]{0,3}(?:(?:\*\*|\#{1,4}[ ]?)?(?:Assistant|ASSISTANT|AI|Bot|Model|Response)\b"
    r"|\u52a9[\u624b\u7406][ ]?[:\uff1a]|assistant[ \r]*+(?=\n|\Z))"
)
_ANSWERS = re.compile(r"\n[ ]{0,3}(?:\*\*)?(?:A|Answer|Teacher)(?:[ ]?\d{1,3})?[:\uff1a]")
_ROLE_WORD = re.compile(r"\b(?:user|assistant|human|system)\b", re.IGNORECASE)
_MOST_TRIED = 8


def own_turn(
    reply: str,
    answer: AnswerForm,
    targets: Iterable[Target],
    again: re.Pattern[str] | None = None,
) -> str:
    """`reply` up to the end of its turn; as long as before if nothing ends it. `again` finds a line
    break and the first line of the prompt.
    """
    texts = [f"\n{one}" for one in (*targets, *(answer.options or ()))]
    if any(_MARK.search(text) or _TURN.search(text) or _LINE_BREAK in text for text in texts):
        return reply
    reply = reply.replace(_LINE_BREAK, "\n".ljust(len(_LINE_BREAK)))
    reply = reply[: _marked_end(reply, without_thoughts(reply))]
    return reply[: _line_end(without_thoughts(reply), answer, again, known="".join(texts))]


def may_end(reply: str, again: re.Pattern[str] | None = None) -> bool:
    """Whether a reply may have what ends it; of a plain reply found fast."""
    if ("<" in reply or "[" in reply) and (_LINE_BREAK in reply or _MARK.search(reply)):
        return True
    return "\n" in reply and bool(_TURN.search(reply) or (again and again.search(reply)))


def _marked_end(reply: str, text: str) -> int:
    """Where the first mark stands that ends the reply; `text` is the reply without thinking."""
    begin, inside = 0, 0
    for mark in _MARK.finditer(reply):
        if not _ends(mark):
            continue
        start = mark.start()
        if text[start] == reply[start]:
            if SOLID.search(text, begin, start) and not _OWN.fullmatch(text[begin:start].strip()):
                return start
            begin = mark.end()
        elif inside < _MOST_TRIED and _OTHER.match(reply, mark.start()):
            inside += 1
            if without_thoughts(reply[:start]).strip():
                return start
    return len(reply)


def _ends(mark: re.Match[str]) -> bool:
    name = mark["name"] or mark["bracketed"]
    if name and (not _ENDS.fullmatch(name) or _GOES_ON.fullmatch(name)):
        return False
    reply, start = mark.string, mark.start()
    if mark[0] == "</s>" and "<s>" in reply[max(0, start - 200) : start].lstrip()[1:]:
        return False
    if mark[0] == "</assistant>" and "<assistant>" in reply[:start]:
        return False
    before = reply[start - 1 : start]
    is_named = before.isspace() or before in "\"'`\u201c\u2018(,"
    return not (before and is_named and _NAMED.match(reply, mark.end()))


def _line_end(text: str, answer: AnswerForm, again: re.Pattern[str] | None, *, known: str) -> int:
    """Where the first line stands that begins another turn after an answer."""
    lines = [*islice(_TURN.finditer(text), _MOST_TRIED)]
    lines += islice(again.finditer(text), _MOST_TRIED) if again else ()
    for line in sorted(lines, key=lambda one: one.start()):
        is_prompt = line.re is again
        if not is_prompt and line["role"] and _ROLE_WORD.search(known):
            continue
        head = text[: line.start()]
        phrases = phrases_in(head, without_markup(head), answer)
        has_answer = any(SOLID.search(head, end) for _, end in phrases[-1:])
        tail = text[line.end() :]
        is_question = not is_prompt and bool(line["asks"])
        if has_answer and not (is_question and not _asks(line, tail, answer, known)):
            return line.start()
        if is_question or (is_prompt and not TYPES[answer.type].free):
            continue
        is_dialogue = _ANSWERER.search(tail) or not phrases_in(tail, without_markup(tail), answer)
        if is_dialogue and extract(head, answer).value is not None:
            return line.start()
    return len(text)


def _asks(line: re.Match[str], tail: str, answer: AnswerForm, known: str) -> bool:
    """Whether a line begins a question that the model answers itself."""
    if f"{line['asks']}:" in known:
        return False
    return bool(_ANSWERS.search(tail) or phrases_in(tail, without_markup(tail), answer))
