"""How the doors spell a setting in messages, which name it by `providers.naming`."""

from __future__ import annotations

from collections.abc import Mapping

from eyechart.harness.settings.judging import JUDGING
from eyechart.harness.settings.run_settings import SETTINGS
from eyechart.harness.settings.setting import Setting
from eyechart.providers.naming import ON

ALL: Mapping[str, Setting] = {**SETTINGS, **JUDGING}
"""Name -> the setting, of a run or of judging."""


def as_option(name: str, value: str = "") -> str:
    """How the command line spells a setting: `--rpm`, `--adaptive`, `--engine ray`."""
    option = ALL[name].option if name in ALL else name.replace("_", "-")
    return f"--{option}" if value in ("", ON) else f"--{option} {value}"


def as_key(name: str, value: str = "") -> str:
    """How a study's file spells a setting: `rpm`, `'adaptive: true'`. What no file may have is
    spelled as on the command line.
    """
    setting = ALL.get(name)
    if setting is None or not (setting.parts or setting.name in ("task", "model")):
        return as_option(name, value)
    return f"'{setting.key}: {'true' if value == ON else value}'" if value else setting.key
