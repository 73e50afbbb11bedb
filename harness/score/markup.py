"""Replaces thinking and markup in replies by spaces; makes patterns for answer phrases."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


def split(text: str) -> list[str]:
    return text.split()


THOUGHT = re.compile(
    r"(?:<|\u25c1)(?P<close>/?)(?:seed:)?"
    r"(?:think(?:ing)?|thoughts?|reasoning|reflection|scratchpad)(?:>|\u25b7)"
    r"|\[(?P<bracket>/?)think\]"
    r"|<\|(?:(?P<end>end)|begin|start)_(?:of_)?(?:thought|thinking)\|>"
    r"|<\|channel\|>(?:(?P<final>final)|analysis|commentary)<\|message\|>"
    r"|(?<![\"'`])(?P<bare_final>assistantfinal)(?![\"'`])|\Aanalysis(?=[A-Z])",
    re.IGNORECASE,
)
"""Begins or ends thinking; the last two are gpt-oss's, where a server drops its markers."""
_BARE_CHANNELS = ("analysis", "assistantfinal")
_THINKS = ("think", "thought", "reasoning", "reflection", "scratchpad", "channel")
"""Words of which one is in every other mark."""


def _may_think(reply: str) -> bool:
    """Whether a reply may have a mark of thinking; of a plain reply found fast."""
    analysis, final = _BARE_CHANNELS
    if "<" in reply or "[" in reply or "\u25c1" in reply:
        reply = reply.lower()
        if any(word in reply for word in _THINKS):
            return True
    return final in reply or reply.startswith(analysis)


def without_thoughts(reply: str) -> str:
    """`reply` with its thinking blocks replaced by spaces; the length does not change."""
    if not _may_think(reply):
        return reply
    kept: list[tuple[int, int]] = []
    at, inside = 0, False
    for tag in THOUGHT.finditer(reply):
        if any(tag.groups()):
            if not inside:
                kept.clear()
            at, inside = tag.end(), False
        elif not inside:
            kept.append((at, tag.start()))
            inside = True
    kept.append((len(reply) if inside else at, len(reply)))
    ends = (0, *(end for _, end in kept))
    return "".join(
        " " * (start - last) + reply[start:end]
        for last, (start, end) in zip(ends, kept, strict=False)
    )


UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7a3\uf900-\ufaff"
)
"""Letters of scripts that set no space between words: Chinese, Japanese, Thai and the like; and
Korean, whose words take endings. No word ends or begins only because one of them stands beside it.
"""
IN_WORD = rf"[^\W{UNSPACED}]"
"""A character beside which a word of another script goes on."""
NUMERALS = (
    "\u3007\u96f6\u4e00\u4e8c\u4e09\u56db\u4e94\u516d\u4e03\u516b\u4e5d\u5341\u767e\u5343"
    "\u4e07\u842c\u4ebf\u5104\u5169\u4e24"
)
"""Chinese characters that are numbers, and which are part of a longer number beside another."""


_UNSPACED_SENTENCE = re.compile(
    rf"(?<![{UNSPACED}])[{UNSPACED}]{{2,}}+[\s:]*+[\"'`(]?[A-Za-z0-9]"
    rf"|[A-Za-z0-9][\"'`)]?[\s]*+[{UNSPACED}]{{2}}"
)


def is_unspaced_sentence(line: str) -> bool:
    """Whether a token stands beside two letters of a script without spaces, so that it is one of
    more tokens.
    """
    return not line.isascii() and _UNSPACED_SENTENCE.search(line) is not None


def edges(text: str) -> tuple[str, str]:
    """Patterns for what must stand before and after `text`, so that it is not within a word or a
    number.
    """
    both = []
    for sign, ahead, number in (
        (text[:1], "<!", r"(?<![\d\s][.,])(?<![-/])"),
        (text[-1:], "!", r"(?![.,/]\d)"),
    ):
        if re.match(rf"[{NUMERALS}]", sign):
            both.append(rf"(?{ahead}[\d{NUMERALS}])")
        else:
            edge = rf"(?{ahead}{IN_WORD})" if re.match(IN_WORD, sign) else ""
            both.append(edge + number if sign.isdecimal() else edge)
    return both[0], both[1]


THIN = "\u2009"
_SAME_LENGTH = (
    *((sign, " ") for sign in "*`${}\t\r\u200b\u2060\ufeff"),
    *((sign, "\n") for sign in "\v\f\x1c\x1d\x1e\x85\u2028\u2029"),
    *((sign, THIN) for sign in "\u00a0\u2007\u202f"),
    *((sign, "-") for sign in "\u2010\u2011\u2212\ufe63\uff0d"),
    *((sign, "'") for sign in "\u2018\u2019"),
    *((sign, '"') for sign in "\u201c\u201d\u201e\u300c\u300d\u300e\u300f"),
    *zip("\uff1f\uff01\uff1b\uff08\uff09\uff1a\uff1d\uff0c\uff0e\u3002", "?!;():=,..", strict=True),
)
"""Signs, each with the plain sign that stands for it; no plain sign is replaced again."""
_PLAIN_ASCII = tuple(pair for pair in _SAME_LENGTH if pair[0].isascii())
_LATEX = re.compile(r"\{,\}|\\(?:([A-Za-z]++)|(.))?", re.DOTALL)
_LATEX_PLAIN = frozenset(
    split(
        "boxed fbox text textbf textit textrm texttt textsf mathrm mathbf mathit mathtt mathsf "
        "emph underline left right big Big large Large quad qquad displaystyle "
        "to rightarrow Rightarrow longrightarrow implies therefore"
    )
)
_MARKUP = re.compile(
    r"^[ ]{0,3}(?:\#{1,6}(?=[ ])|(?:>(?!=)[ ]?)++|```[a-z+-]{0,12}[ ]*+$)"
    r"|(?<=[:*][ ])\#{2,6}(?=[ ])"
    r"|~~"
    r"|(?<!_)(?:(?<![^\W_])_++|_++(?![^\W_]))"
    r"|</?(?:b|i|u|s|em|strong|code|pre|p|br|div|span|answer|final|output|result|response"
    r"|assistant)[ ]?/?>"
    r"|<\|[^|<>\n]{1,40}\|>",
    re.IGNORECASE | re.MULTILINE,
)


def _blank(match: re.Match[str]) -> str:
    return " " * len(match[0])


def _blank_latex(match: re.Match[str]) -> str:
    name, sign = match.groups()
    filler = " "
    if match[0] == "{,}" or (sign and sign in ",;:!~ "):
        filler = THIN
    elif name in ("times", "cdot"):
        filler = "\u00d7"
    elif name and name not in _LATEX_PLAIN:
        filler = "\u2026" if name.endswith("dots") else "\u00f7"
    elif sign and sign in "\n%":
        return " " + sign
    return filler * len(match[0])


def without_markup(text: str) -> str:
    """`text` with spaces for markup and plain signs (dashes, quotes); as long as before."""
    if "\\" in text or "{,}" in text:
        text = _LATEX.sub(_blank_latex, text)
    if "#" in text or ">" in text or "`" in text or "~" in text or "_" in text or "<" in text:
        text = _MARKUP.sub(_blank, text)
    for sign, plain in _PLAIN_ASCII if text.isascii() else _SAME_LENGTH:
        if sign in text:
            text = text.replace(sign, plain)
    return text


@lru_cache(maxsize=64)
def _phrase_pattern(phrase: str) -> tuple[re.Pattern[str], bool, str]:
    """The pattern for `phrase`, whether to search it in the text without markup, and how it begins,
    in small letters.
    """
    parts = re.findall(r"\w+|[^\w\s]", without_markup(phrase))
    if not parts:
        sign = phrase.strip()
        return re.compile(re.escape(sign), re.IGNORECASE), False, sign.lower()
    before, after = edges(parts[0])[0], edges(parts[-1])[1]
    pattern = before if parts[0].isalnum() else ""
    for part, following in zip(parts, [*parts[1:], ""], strict=True):
        pattern += re.escape(part)
        if following:
            both_words = part[-1].isalnum() and following[0].isalnum()
            pattern += r"\s++" if both_words else r"\s*+"
    if parts[-1] != ":":
        pattern += after if parts[-1].isalnum() else ""
        pattern += r"(?:[^\S\n]*+(?:[:=]|[-\u2013\u2014](?=\s)))?+"
    return re.compile(pattern, re.IGNORECASE), True, parts[0].lower()


def phrase_places(phrase: str, text: str, bare: str) -> list[tuple[int, int]]:
    """Start and end of each `phrase` in `text`, which is `bare` without markup.

    To see that there is none, a pattern without case takes a hundred times as long as `find`.
    """
    pattern, for_bare, opening = _phrase_pattern(phrase)
    searched = bare if for_bare else text
    if not (opening.isascii() and searched.isascii()):
        return [match.span() for match in pattern.finditer(searched)]
    places, folded = [], searched.lower()
    place = folded.find(opening)
    while place >= 0:
        match = pattern.match(searched, place)
        if match:
            places.append(match.span())
        place = folded.find(opening, match.end() if match else place + 1)
    return places


QUOTES = {'"': '"', "'": "'", "\u00ab": "\u00bb"}
BRACKETS = {"(": ")", "[": "]", "<": ">"}
SOLID = re.compile(r"\S")


def peel(bare: str, start: int, end: int, pairs: dict[str, str]) -> tuple[int, int]:
    """Start and end without the surrounding spaces, `pairs` and one full stop."""
    stops = 1
    while solid := SOLID.search(bare, start, end):
        start = solid.start()
        while bare[end - 1].isspace():
            end -= 1
        inner, last = end - start - 2, bare[end - 1]
        if stops and inner >= 0 and last == "." and bare[end - 2] != ".":
            stops, end = 0, end - 1
        elif inner > 0 and pairs.get(bare[start]) == last and last not in bare[start + 1 : end - 1]:
            start, end = start + 1, end - 1
        else:
            return start, end
    return start, start


_FILL = "\u200b\u2060\ufeff"
_SPACE = re.compile(rf"[\s{_FILL}]*+")
_TOKENS = re.compile(rf"(?:[\s{_FILL}]|<\|[^|<>\n]{{1,40}}\|>)*+")
_TOKEN_AT_END = re.compile(r"<\|[^|<>\n]{1,40}\|>\Z")
_LONGEST_TOKEN = 44
_RUN = re.compile(r"\*{1,3}|_{1,3}|~~|`+|\${1,2}|[\"'\u00ab\u2018\u201c\u201e\u300c\u300e]")
_AROUND = {
    **QUOTES,
    **BRACKETS,
    "{": "}",
    **dict(zip("\u2018\u201c\u201e\u300c\u300e", "\u2019\u201d\u201c\u300d\u300f", strict=True)),
    "\\(": "\\)",
    "\\[": "\\]",
}
_TAG = re.compile(r"<([a-z]{1,10})>", re.IGNORECASE)
_COMMAND = re.compile(r"\\[A-Za-z]{2,12}\s*\{")
_OPEN_COMMAND = re.compile(r"\\[A-Za-z]{2,12}\s*\{[^{}]*\Z")
_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)
_INFO = re.compile(r"[a-z+-]{0,12}[ ]*+\n", re.IGNORECASE)
_HEADING = re.compile(r"#{2,6}[ ]+(?=\w)")
_QUOTED_LINE = re.compile(r"(?:\A|\n)[ ]{0,3}>[^\n]*\Z")
_TAIL = 400
"""Characters before an answer in which a mark may open that its end closes."""
_OPENED = ("***", "**", "*", "___", "__", "_", "~~", "``", "`", "$$", "$", "\\(", "\\[", '"')
_MOST_LAYERS = 12
_EMPHASIS = re.compile(r"(?<![\w*`])(\*{1,3}|`{1,3})(?=[^\s*`])([^*`\n]+)(?<=\S)\1(?![\w*`])")
_QUOTED_SIGN = re.compile(r"([\"'`])[^\"'`\s]\1")
_ESCAPED = re.compile(r"\\([^\w\s])")


def undress(text: str, start: int, end: int, opened: str = "") -> list[tuple[int, int]]:
    """Start and end of what stands between `start` and `end`: with all that is around it, then
    without one layer of it after the other. Empty if nothing stands there.

    A layer is a pair of quotes, brackets or marks, of which none is inside; a full stop; or the end
    of a mark that `opened`, the text before, begins. Nothing is left only of such an end.
    """
    start, end = _trimmed(text, start, end)
    layers = [(start, end)]
    if start < end and text[start].isalnum() and text[end - 1].isalnum():
        return layers
    if start == end or text[start] == "<" or text[end - 1] == ">":
        inner = _without_tokens(text, start, end)
        layers += [inner] if inner[0] < inner[1] else []
    for close in _closing(text, start, opened):
        layers += _without_end(text, *layers[-1], close)
    if layers[-1][0] >= layers[-1][1]:
        return []
    stops = 1
    while len(layers) < _MOST_LAYERS:
        start, end = layers[-1]
        if stops and end - start > 1 and text[end - 1] in ".\u3002" and text[end - 2] != ".":
            stops, inner = 0, (start, end - 1)
        else:
            inner = _inside(text, start, end)
        inner = _trimmed(text, *inner)
        if inner[0] >= inner[1] or inner == (start, end):
            break
        layers.append(inner)
    return layers


def _without_end(text: str, start: int, end: int, close: str) -> Iterator[tuple[int, int]]:
    """A place without the end of a mark at its beginning or its end, if it has it; a single sign
    apart from what opens it stays.
    """
    if end - start <= len(close) == 1 and text[start - 1].isspace():
        return
    if text.startswith(close, start, end):
        yield _trimmed(text, start + len(close), end)
    elif text.endswith((close, f"{close}."), start, end):
        stop = text[end - 1] == "." and not close.endswith(".")
        yield _trimmed(text, start, end - len(close) - stop)


def readings(text: str, layers: list[tuple[int, int]]) -> list[tuple[str, int, int]]:
    """What the layers of `undress` may say, each with its place: the words of each, and those of
    the last without pairs of marks around some of them, and without escapes.
    """
    found = [(" ".join(text[start:end].split()), start, end) for start, end in layers]
    for pattern, signs, kept in ((_EMPHASIS, "*`", r"\2"), (_ESCAPED, "\\", r"\1")):
        if found and any(sign in found[-1][0] for sign in signs):
            words, start, end = found[-1]
            found.append((pattern.sub(kept, words), start, end))
    return list(dict.fromkeys(found))


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """Start and end without white space around."""
    begin = _SPACE.match(text, start, end)
    start = begin.end() if begin else start
    while end > start and (text[end - 1].isspace() or text[end - 1] in _FILL):
        end -= 1
    return start, end


def _without_tokens(text: str, start: int, end: int) -> tuple[int, int]:
    """Start and end without special tokens and white space around."""
    begin = _TOKENS.match(text, start, end)
    start, end = _trimmed(text, begin.end() if begin else start, end)
    while token := _TOKEN_AT_END.search(text, max(start, end - _LONGEST_TOKEN), end):
        start, end = _trimmed(text, start, token.start())
    return start, end


def _closing(text: str, start: int, opened: str) -> Iterator[str]:
    """The ends of marks that begin in the text before, and are open where an answer starts."""
    if not opened:
        return
    tail = opened[-_TAIL:].rpartition("\n\n")[2]
    yield from (tag for name in _TAG.findall(tail) if (tag := f"</{name}>") not in tail)
    if opened.count("```") % 2:
        yield "```"
    for mark in _OPENED:
        close = _AROUND.get(mark, mark) if mark[0] == "\\" else mark
        if tail.count(mark) % 2 and (close == mark or close not in tail):
            yield close
    if _OPEN_COMMAND.search(tail):
        yield "}"
    if "\n" in text[start - 1 : start] and _QUOTED_LINE.search(tail.rstrip("\n")):
        yield ">"


def _inside(text: str, start: int, end: int) -> tuple[int, int]:
    """Start and end within the pair around a text; the same if there is none."""
    if text[start].isalnum():
        return start, end
    if command := _COMMAND.match(text, start, end):
        return (command.end(), end - 1) if _closes(text, command.end(), end) else (start, end)
    if heading := _HEADING.match(text, start, end):
        return heading.end(), end
    if (tag := _TAG.match(text, start, end)) and text.endswith(f"</{tag[1]}>", tag.end(), end):
        return tag.end(), end - len(tag[1]) - 3
    mark = run[0] if (run := _RUN.match(text, start, end)) else text[start : start + 2]
    if mark not in _AROUND:
        mark = mark if run else mark[:1]
    closing = _AROUND.get(mark, mark if run else "")
    first, last = start + len(mark), end - len(closing)
    if not closing or first >= last or not text.endswith(closing, first, end):
        return start, end
    inner = text[first:last]
    if mark in BRACKETS:
        is_pair = mark not in inner and closing not in inner and _is_balanced(inner)
    else:
        is_pair = mark not in inner and closing not in inner
    if mark[0] in "*_~":
        is_pair = is_pair and not (inner[0].isspace() or inner[-1].isspace())
    if is_pair and mark.startswith("```") and (info := _INFO.match(text, first, last)):
        first = info.end()
    return (first, last) if is_pair else (start, end)


def _is_balanced(text: str) -> bool:
    """Whether a text closes as many brackets of each kind as it opens, besides those in quotes."""
    text = _QUOTED_SIGN.sub("", text)
    return all(text.count(one) == text.count(other) for one, other in ("()", "[]", "{}", "<>"))


def _closes(text: str, start: int, end: int) -> bool:
    """Whether the brace at the end closes the one before `start`."""
    depth = 1
    for brace in _BRACE.finditer(text, start, end):
        depth += {"{": 1, "}": -1}.get(brace[0], 0)
        if not depth:
            return brace.end() == end
    return False
