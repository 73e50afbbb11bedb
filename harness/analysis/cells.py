r"""Texts of others (models, servers, tasks) as cells of CSV and Markdown tables.

In both a character that cannot be seen, or that ends a line or turns text around, is written as an
escape: `\n`, `\x1b`, `\u202e`.
"""

from __future__ import annotations

import html
import re

_UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
_ESCAPE = re.compile(r"\\(?:([\\nrt])|x([0-9a-f]{2})|u([0-9a-f]{4})|U(000[0-9a-f]{5}))")
_MEANT = {"\\": "\\", "n": "\n", "r": "\r", "t": "\t"}

_BEGINS_CELL = r"(?:^|(?<=;))"
"""Where a spreadsheet begins a cell; where semicolons part cells, also inside of one of ours."""
_FORMULA = r"(?='*[=+\-@＝＋－＠].)"
"""A sign that makes a formula of what follows; alone it makes none, and `-` is a condition."""
_UNGUARDED = re.compile(_BEGINS_CELL + _FORMULA)
_GUARDED = re.compile(f"{_BEGINS_CELL}'{_FORMULA}")

_MARKDOWN_SIGN = re.compile(
    r"[\\`*\[\]|~$]|(?<![^\W_])_|_(?![^\W_])|(?<=:)/(?=/)|(?<=www)\.", re.IGNORECASE
)


def csv_text(text: str) -> str:
    """`text` for a cell of a CSV file; `from_csv` gives it back, whatever it is.

    A text that a spreadsheet would take for a formula gets an apostrophe in front, as OWASP
    advises (CSV injection); so does one that has apostrophes and then such a sign.
    """
    return _UNGUARDED.sub("'", escaped(text.replace("\\", "\\\\")))


def from_csv(cell: str) -> str:
    """The text that `csv_text` made `cell` of."""
    return _ESCAPE.sub(_meant, _GUARDED.sub("", cell))


def markdown_text(text: str) -> str:
    """`text` for a cell of a Markdown table: shown as it is, and nothing else."""
    return _MARKDOWN_SIGN.sub(r"\\\g<0>", html.escape(escaped(text), quote=False))


def escaped(text: str) -> str:
    """`text` with every character that cannot be seen, or that ends a line, as an escape."""
    return _UNSEEN.sub(lambda seen: seen[0].encode("unicode_escape").decode(), text)


def _meant(match: re.Match[str]) -> str:
    short, *codes = match.groups()
    return _MEANT[short] if short else chr(int(next(filter(None, codes)), 16))
