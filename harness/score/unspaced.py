"""Answers in sentences of Chinese, Japanese and Korean, which set no space around a word.

- An answer may stand behind a verb or a particle (`答案是五`, `答えは東京`) and before a polite
  ending (`猫です`, `서울입니다`); a symbol also before a measure word (`最后是b7个`).
- What remains must be the answer: `東京都です` is not `東京`. A sentence that denies something says
  nothing.
"""

from __future__ import annotations

import re
from itertools import islice

from .integers import FoundAnswer
from .markup import UNSPACED

_IS = rf"(?:は|是|为|為|은|는|(?<=[{UNSPACED}])[:：])[\s:：、,，]*+"
_ANSWER_IS = rf"(?:答え|正解|回答|解答|答案|정답|답){_IS}"
_POLITE = (
    r"(?:です|でした|でございます|である|(?<=[\u30a0-\u30ff\u4e00-\u9fffA-Za-z0-9」』\"'])だ"
    r"|입니다|이에요|예요)[よね]?"
)
POLITE_END = re.compile(rf"(?:{_POLITE}|吧)[。.!！]?\s*\Z")
_LONGEST_END = 12
_HEADS = {True: re.compile(_ANSWER_IS), False: re.compile(_IS)}
"""Whether the answer phrase stands before -> what may begin a sentence that says the answer."""
_LONGEST_HEAD, _MOST_HEADS = 80, 4
_DENIES = re.compile(
    r"不(?:是|[会會]是|可能|知|[确確]定|清楚)|[没沒]有|[并並]非|[无無]法"
    r"|ではな|じゃな|ではあ|じゃあ|(?<=.)ません|아니|아닙|모르"
)
_DENIES_BEFORE = re.compile("[不没沒非否未错錯误誤違]|오답|틀린|아닌")
_SYMBOL = re.compile(
    rf"(?:[{UNSPACED}\s]+?{_IS})?"
    rf"(?:(?P<latin>[A-Za-z0-9][A-Za-z0-9_-]*+)[个個つ]?|(?![是为為])(?P<own>[{UNSPACED}]{{1,8}}?))"
    rf"(?:{_POLITE}|吧)?"
)
_LONGEST = 60


def said_symbol(line: str, start: int, end: int) -> FoundAnswer | str | None:
    """The symbol that a sentence says between `start` and `end`, why there is none, or `None` if
    these are no such sentence.

    A symbol of such a script has the place of the whole sentence, which may be the symbol itself.
    """
    if end - start > _LONGEST:
        return None
    denial = _DENIES.search(line, start, end)
    if denial and denial.span() != (start, end):
        return "not the symbol that it is"
    said = _SYMBOL.fullmatch(line, start, end)
    if said is None:
        return None
    return (
        FoundAnswer(said["latin"], *said.span("latin"))
        if said["latin"]
        else FoundAnswer(said["own"], start, end)
    )


def said_places(text: str, start: int, end: int, *, by_phrase: bool) -> list[tuple[int, int]]:
    """Where a sentence between `start` and `end` may say a text."""
    if text[start:end].isascii():
        return []
    ending = POLITE_END.search(text, max(start, end - _LONGEST_END), end)
    until = ending.start() if ending else end
    heads = _HEADS[by_phrase].finditer(text, start, min(until, start + _LONGEST_HEAD))
    places = [head.end() for head in islice(heads, _MOST_HEADS)]
    return [
        (place, until)
        for place in ([start] if ending else []) + places
        if place < until and not _DENIES_BEFORE.search(text, start, place)
    ]
