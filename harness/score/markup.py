"""Replaces thinking and markup in replies by spaces; makes patterns for answer phrases."""

from __future__ import annotations

import re
from functools import lru_cache


def split(text: str) -> list[str]:
    return text.split()


_BRACKET = re.compile(r"[<\[\u25c1]")
THOUGHT = re.compile(
    r"(?:<|\u25c1)(?P<close>/?)(?:seed:)?"
    r"(?:think(?:ing)?|thoughts?|reasoning|reflection|scratchpad)(?:>|\u25b7)"
    r"|\[(?P<bracket>/?)think\]"
    r"|<\|(?:(?P<end>end)|begin|start)_(?:of_)?(?:thought|thinking)\|>"
    r"|<\|channel\|>(?:(?P<final>final)|analysis|commentary)<\|message\|>",
    re.IGNORECASE,
)


def without_thoughts(reply: str) -> str:
    """`reply` with its thinking blocks replaced by spaces; the length does not change."""
    if not _BRACKET.search(reply):
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


THIN = "\u2009"
_SAME_LENGTH = str.maketrans(
    dict.fromkeys("*`${}\t\r\u200b\u2060\ufeff", " ")
    | dict.fromkeys("\v\f\x1c\x1d\x1e\x85\u2028\u2029", "\n")
    | dict.fromkeys("\u00a0\u2007\u202f", THIN)
    | dict.fromkeys("\u2010\u2011\u2212\ufe63\uff0d", "-")
    | dict.fromkeys("\u2018\u2019", "'")
    | dict.fromkeys("\u201c\u201d\u201e", '"')
    | {"\uff1a": ":", "\uff1d": "=", "\uff0c": ",", "\uff0e": ".", "\u3002": "."}
)
_LATEX = re.compile(r"\{,\}|\\(?:([A-Za-z]++)|(.))?", re.DOTALL)
_LATEX_PLAIN = frozenset(
    split(
        "boxed fbox text textbf textit textrm texttt textsf mathrm mathbf mathit mathtt mathsf "
        "emph underline left right big Big large Large quad qquad displaystyle "
        "to rightarrow Rightarrow longrightarrow implies therefore"
    )
)
_MARKUP_SIGN = re.compile(r"[#>`~_<]")
_MARKUP = re.compile(
    r"^[ ]{0,3}(?:\#{1,6}(?=[ ])|(?:>(?!=)[ ]?)++|```[a-z+-]{0,12}[ ]*+$)"
    r"|(?<=[:*][ ])\#{2,6}(?=[ ])"
    r"|~~"
    r"|(?<!_)(?:(?<![^\W_])_++|_++(?![^\W_]))"
    r"|</?(?:b|i|u|s|em|strong|code|pre|p|br|div|span|answer|final|output|result|response)[ ]?/?>"
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
    if _MARKUP_SIGN.search(text):
        text = _MARKUP.sub(_blank, text)
    return text.translate(_SAME_LENGTH)


@lru_cache(maxsize=64)
def phrase_pattern(phrase: str) -> tuple[re.Pattern[str], bool]:
    """The pattern for `phrase`, and whether to search it in the text without markup."""
    parts = re.findall(r"\w+|[^\w\s]", without_markup(phrase))
    if not parts:
        return re.compile(re.escape(phrase.strip()), re.IGNORECASE), False
    pattern = r"(?<!\w)" if parts[0].isalnum() else ""
    for part, following in zip(parts, [*parts[1:], ""], strict=True):
        pattern += re.escape(part)
        if following:
            both_words = part[-1].isalnum() and following[0].isalnum()
            pattern += r"\s++" if both_words else r"\s*+"
    if parts[-1] != ":":
        pattern += r"(?!\w)" if parts[-1].isalnum() else ""
        pattern += r"(?:[^\S\n]*+(?:[:=]|[-\u2013\u2014](?=\s)))?+"
    return re.compile(pattern, re.IGNORECASE), True


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
