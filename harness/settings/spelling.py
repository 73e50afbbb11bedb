"""How the doors spell a setting in messages, which name it by `providers.naming`."""

from __future__ import annotations

from eyechart.harness.settings.run_settings import SETTINGS
from eyechart.providers.naming import ON


def as_option(name: str, value: str = "") -> str:
    """How the command line spells a setting: `--rpm`, `--adaptive`, `--engine ray`."""
    others = {"tasks": "task"}.get(name, name.replace("_", "-"))
    option = SETTINGS[name].option if name in SETTINGS else others
    return f"--{option}" if value in ("", ON) else f"--{option} {value}"


def as_key(name: str, value: str = "") -> str:
    """How a study's file spells a setting: `rpm`, `'adaptive: true'`. What no file may have is
    spelled as on the command line.
    """
    setting = SETTINGS.get(name)
    if setting is None or not (setting.parts or setting.name in ("task", "model")):
        return as_option(name, value)
    return f"'{setting.key}: {'true' if value == ON else value}'" if value else setting.key
