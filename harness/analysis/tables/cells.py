r"""Writes texts from outside (models, servers, tasks) into cells of CSV and Markdown tables.

In both, invisible characters, line breaks and characters that change the direction of text are
written as escapes: `\n`, `\x1b`, `\u202e`.
"""

from __future__ import annotations

import html
import re

INVISIBLE = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
_ESCAPE = re.compile(r"\\(?:([\\nrt])|x([0-9a-f]{2})|u([0-9a-f]{4})|U(000[0-9a-f]{5}))")
_BY_LETTER = {"\\": "\\", "n": "\n", "r": "\r", "t": "\t"}

_SIGN = r"[=+\-@＝＋－＠]"
"""Characters that begin a formula."""


def _formula(apostrophe: str) -> re.Pattern[str]:
    """Where a formula begins, with an apostrophe before it or none.

    Some spreadsheets take a semicolon as the separator of cells. A text that is only a sign is no
    formula: `-` is the label of a condition. After a semicolon a sign always counts, since a
    quotation mark may stand before or after it. The text may have apostrophes of its own before the
    sign.
    """
    return re.compile(f"^{apostrophe}(?='*{_SIGN}.)|(?<=;){apostrophe}(?=['\"]*{_SIGN})")


_UNGUARDED, _GUARDED = _formula(""), _formula("'")

_MARKDOWN_SIGN = re.compile(
    r"[\\`*\[\]|~$]|(?<![^\W_])_|_(?![^\W_])|(?<=:)/(?=/)|(?<=www)\.", re.IGNORECASE
)


def csv_text(text: str) -> str:
    """`text` for a cell of a CSV file; `from_csv` reverses it for every text.

    A text that a spreadsheet would read as a formula gets an apostrophe in front, as OWASP advises
    (CSV injection). So does a formula that already has apostrophes in front, so that `from_csv`
    takes away exactly one.
    """
    return _UNGUARDED.sub("'", escaped(text.replace("\\", "\\\\")))


def from_csv(cell: str) -> str:
    """The text that `csv_text` wrote as `cell`."""
    return _ESCAPE.sub(_unescaped, _GUARDED.sub("", cell))


def markdown_text(text: str) -> str:
    """`text` for a cell of a Markdown table, with all Markdown and HTML escaped."""
    return _MARKDOWN_SIGN.sub(r"\\\g<0>", html.escape(escaped(text), quote=False))


def escaped(text: str) -> str:
    """`text` with its invisible characters and line breaks written as escapes."""
    return INVISIBLE.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def _unescaped(match: re.Match[str]) -> str:
    short, *codes = match.groups()
    return _BY_LETTER[short] if short else chr(int(next(filter(None, codes)), 16))
