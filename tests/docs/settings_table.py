"""The table of settings in `docs/settings.md`, made from the settings themselves."""

from __future__ import annotations

import re
from pathlib import Path

from eyechart.harness.cli.parsing.defaults import DEFAULTS, variable
from eyechart.harness.settings.checks import OrWord
from eyechart.harness.settings.setting import Setting

_PAGE = Path(__file__).parents[2] / "docs" / "settings.md"
_TABLE = re.compile(r"(?<=\n\| --- \| --- \| --- \| --- \|\n)(?:\| `.*\n)+")
_IDENTITY = {"": "", "settings": "the folder's hash", "model": "the model's name"}


def settings_page() -> str:
    """The chapter with the table as the settings make it."""
    rows = "".join(_row(option, setting) for option, setting in DEFAULTS.items())
    text = _PAGE.read_text(encoding="utf-8")
    before, found, after = _TABLE.sub("\0", text, count=1).partition("\0")
    assert found, "the chapter has the table"
    return before + rows + after


def _row(option: str, setting: Setting) -> str:
    trust = "; in the file with `--trust`" if setting.doubt else ""
    cells = f"`{option}`", f"`{variable(option)}`", _form(setting) + trust
    return f"| {' | '.join(cells)} | {_IDENTITY[setting.identity]} |\n"


def _form(setting: Setting) -> str:
    """What values it has."""
    if setting.form:
        return setting.form
    if setting.is_switch:
        return "`1` or `0`; in the file `true` or `false`"
    if setting.bound is not None:
        word = f"`{setting.check.word}` or " if isinstance(setting.check, OrWord) else ""
        return word + setting.bound.demand
    *first, last = (f"`{word}`" for word in setting.words)
    return f"{', '.join(first)} or {last}" if first else last
