"""Where a reply ends: at the first mark of the end of a turn, or where it begins another turn.

A server that does not know the end token of its model sends what the model went on to write:
`Final answer: 7<|im_end|><|im_start|>user …`. The reply is what stands before.

- Marks are written `<|…|>` or `<｜…｜>` with a name that ends a turn or begins one of another role,
  `<…_of_turn>`, and a few others, such as `</s>` and `[INST]`. Marks at the beginning of a reply,
  those inside thinking, and those in quotes or named in a sentence end nothing.
- A line that begins with `User:`, `Human:` or `### Instruction` ends the reply if an answer stands
  before it: after the answer phrase, or, where no phrase follows or an `Assistant:` line does, one
  that can be read.
- Where a right answer or an option has such a mark or line itself, none ends a reply.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING

from .answers import extract, phrases_in
from .markup import SOLID, without_markup, without_thoughts

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .answer_type import AnswerForm
    from .verdict import Target

_MARK = re.compile(
    r"<[|\uff5c](?P<name>[^|\uff5c<>\n]{1,40})[|\uff5c]>|\[\|(?P<bracketed>[a-z]{1,20})\|\]"
    r"|<(?:\|turn|turn\||/s|/?eos|eot|endoftext|(?:start|end)_of_(?:turn|utterance))>|\[/?INST\]",
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
    r"^[ ]{0,3}(?:(?:\*\*)?(?:User|USER|Human|HUMAN)(?:\*\*)?[ ]?:"
    r"|\#{1,4}[ ]?(?:User|Human|Instruction)s?\b:?[ ]*+$)",
    re.MULTILINE,
)
_ANSWERER = re.compile(
    r"^[ ]{0,3}(?:\*\*|\#{1,4}[ ]?)?(?:Assistant|ASSISTANT|AI|Bot|Model|Response)\b", re.MULTILINE
)
_LINE = re.compile(r"\n[ ]{0,3}(?:\*\*|#{1,4}[ ]?)?[UHI]")
"""What may be the line of another turn, found fast."""
_MOST_TRIED = 8


def own_turn(reply: str, answer: AnswerForm, targets: Iterable[Target]) -> str:
    """`reply` up to the end of its turn; the same if nothing ends it."""
    texts = [str(one) for one in (*targets, *(answer.options or ()))]
    if any(_MARK.search(text) or _TURN.search(text) for text in texts):
        return reply
    end = _marked_end(reply, without_thoughts(reply))
    return reply[: _line_end(without_thoughts(reply[:end]), answer)]


def may_end(reply: str) -> bool:
    """Whether a reply may have what ends it; of a plain reply found fast."""
    if "<" in reply or "[" in reply:
        return bool(_MARK.search(reply) or _TURN.search(reply))
    return "\n" in reply and bool(_LINE.search(reply) and _TURN.search(reply))


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
    before = reply[start - 1 : start]
    is_named = before.isspace() or before in "\"'`\u201c\u2018(,"
    return not (before and is_named and _NAMED.match(reply, mark.end()))


def _line_end(text: str, answer: AnswerForm) -> int:
    """Where the first line stands that begins another turn after an answer."""
    for line in islice(_TURN.finditer(text), _MOST_TRIED):
        head = text[: line.start()]
        phrases = phrases_in(head, without_markup(head), answer)
        if any(SOLID.search(head, end) for _, end in phrases[-1:]):
            return line.start()
        tail = text[line.start() :]
        is_dialogue = _ANSWERER.search(tail) or not phrases_in(tail, without_markup(tail), answer)
        if is_dialogue and extract(head, answer).value is not None:
            return line.start()
    return len(text)
