"""How a message names a setting of a run, before it is known who reads the message.

`named("rpm")` stands for the setting in a text. Whoever shows the text spells it: `--rpm` on the
command line, `rpm` in Python and in a study. The names are those of `harness.settings.RunSettings`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

Spell: TypeAlias = Callable[[str, str], str]
"""A setting's name, and the value that it is named with ("" without one) -> how they are shown."""
ON = "True"
_OPEN, _CLOSE = "\ue000", "\ue001"
"""Characters of the private use area: no other text has them, and `repr` escapes them."""


def named(setting: str, value: str = "") -> str:
    """A setting in a message, alone or with a value: `named("engine", "ray")`."""
    return f"{_OPEN}{setting}={value}{_CLOSE}"


def turned_on(setting: str) -> str:
    """A switch in a message that says to turn it on or to leave it out."""
    return named(setting, ON)


def settings_in(text: str) -> list[str]:
    """The settings that a text names, in its order."""
    return [setting for setting, _, _ in _found(text)]


def spelled(text: str, spell: Spell) -> str:
    """The text with each setting as `spell` shows it."""
    if _OPEN not in text:
        return text
    before = text.partition(_OPEN)[0]
    return before + "".join(spell(setting, value) + after for setting, value, after in _found(text))


def in_python(text: str) -> str:
    """The text with the names of Python's arguments: `rpm`, `adaptive=True`, `engine='ray'`."""
    return spelled(text, _argument)


def _argument(setting: str, value: str) -> str:
    if not value:
        return setting
    return f"{setting}={value if value == ON or value.isdigit() else repr(value)}"


def _found(text: str) -> Iterator[tuple[str, str, str]]:
    """Each setting with its value and the text after it."""
    for part in text.split(_OPEN)[1:]:
        inside, _, after = part.partition(_CLOSE)
        setting, _, value = inside.partition("=")
        yield setting, value, after
