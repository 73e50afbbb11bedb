"""How a message names a setting of a run, before it is known who reads the message.

`named("rpm")` stands for the setting in a text. Whoever shows the text spells it: `--rpm` on the
command line, `rpm` in Python and in a study. The names are those of `harness.settings.RunSettings`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias

Spell: TypeAlias = Callable[[str, str], str]
"""A setting's name, and the value that it is named with ("" without one) -> how they are shown."""
ON = "True"
_OPEN, _CLOSE = "\ue000\ue002", "\ue002\ue001"
"""Pairs of characters of the private use area, which no text has by accident."""
_MARK = re.compile(f"{_OPEN}([a-z_]+)=(.*?){_CLOSE}", re.DOTALL)


def named(setting: str, value: str = "") -> str:
    """A setting in a message, alone or with a value: `named("engine", "ray")`."""
    return f"{_OPEN}{setting}={value}{_CLOSE}"


def turned_on(setting: str) -> str:
    """A switch in a message that says to turn it on or to leave it out."""
    return named(setting, ON)


def settings_in(text: str) -> list[str]:
    """The settings that a text names, in its order."""
    return [mark[1] for mark in _MARK.finditer(text)]


def spelled(text: str, spell: Spell) -> str:
    """The text with each setting as `spell` shows it."""
    return _MARK.sub(lambda mark: spell(mark[1], mark[2]), text) if _OPEN in text else text


def in_python(text: str) -> str:
    """The text with the names of Python's arguments: `rpm`, `adaptive=True`, `engine='ray'`."""
    return spelled(text, _argument)


def _argument(setting: str, value: str) -> str:
    if not value:
        return setting
    return f"{setting}={value if value == ON or value.isdigit() else repr(value)}"
