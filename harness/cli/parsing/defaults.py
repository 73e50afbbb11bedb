"""The files with defaults of options: `bench.toml`, or `[tool.eyechart]` in `pyproject.toml`.

A file may have come with somebody else's folder; `harness.face.options.trust` decides which values
need a confirmation.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eyechart.harness.errors import UsageError
from eyechart.harness.settings.setting import Setting
from eyechart.harness.settings.spelling import ALL
from eyechart.providers.close_match import closest, did_you_mean

PREFIX = "EYECHART_"
"""The variable of `--max-tokens` is `EYECHART_MAX_TOKENS`."""
BENCH, PROJECT = "bench.toml", "pyproject.toml"
"""The files, in order of reading; if one exists, later ones are not read."""
_HEADER = "tool.eyechart"
"""The table in the second file."""
FILES = ("EYECHART_ENDPOINTS", "EYECHART_MODELS")
"""Variables that are no options."""
DEFAULTS: Mapping[str, Setting] = {one.option: one for one in ALL.values() if not one.once}
"""Long option that can have a default -> its setting."""
_OF_VERB = ("dry-run", "ask-server", "json")
"""Options of `bench run` that are no settings."""
ONCE = (*_OF_VERB, *(one.option for one in ALL.values() if one.once and one.option not in DEFAULTS))
"""Options that are meant for one command, and have no default anywhere."""
_SECRET = re.compile(r"key|secret|password|passwd|credential|token$|token[^s]", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Default:
    """The value of one option in a file."""

    value: Any
    place: str
    """`file:line`."""


def variable(option: str) -> str:
    """The environment variable of a long option."""
    return PREFIX + option.replace("-", "_").upper()


def unknown_variables(names: Iterable[str]) -> Iterator[str]:
    """A line for each environment variable that begins with our prefix and belongs to no option."""
    given = [name for name in names if name.startswith(PREFIX)]
    known = [*map(variable, DEFAULTS), *FILES]
    ends = [name.removeprefix(PREFIX) for name in known]
    for name in given:
        if name not in known:
            close = closest(name.removeprefix(PREFIX), ends)
            guess = f"did you mean {PREFIX}{close}?" if close else "docs/settings.md lists them"
            yield f"the variable {name} is not read: no option has it; {guess}"


def read_defaults(
    folder: Path, of: Collection[str] | None = None, say: Callable[[str], None] = lambda _line: None
) -> dict[str, Default]:
    """Option -> its default in the file of a folder; with `of`, only for these options. `say` gets
    a line about mistakes that concern other options.

    Raises:
        UsageError: the file cannot be read, or has a key or a value that no option can have.
    """
    path, header = folder / BENCH, ""
    if not path.is_file():
        path, header = folder / PROJECT, _HEADER
    if not path.is_file():
        return {}
    text = _text(path)
    if header and "eyechart" not in text:  # most files of a project
        return {}
    defaults: dict[str, Default] = {}
    wrong: list[str] = []
    others: list[str] = []
    for key, value in _table(path, text, header):
        place = f"{path}:{_line(text, header, key)}"
        option = key.replace("_", "-")
        problem = f"{option!r} is here twice" if option in defaults else _problem(option, value)
        concerned = of is None or closest(option, of) is not None
        if problem is not None:
            (wrong if concerned else others).append(f"{place}: {problem}")
        elif concerned:
            is_one = DEFAULTS[option].repeats and not isinstance(value, list)
            defaults[option] = Default([value] if is_one else value, place)
    if wrong:
        raise UsageError(*wrong if len(wrong) == 1 else (f"{path} is wrong", *wrong))
    if others:
        more = f" (and {len(others) - 1} more)" if len(others) > 1 else ""
        say(f"{others[0]}{more}")
    return defaults


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8; write it in UTF-8") from error
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error


def _table(path: Path, text: str, header: str) -> Iterator[tuple[str, Any]]:
    import tomllib

    try:
        table: Any = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"line (\d+), column (\d+)", str(error))
        place = f":{found[1]}:{found[2]}" if found else ""
        wrong = text.split("\n")[int(found[1]) - 1] if found else ""
        why = str(error).partition(" (at")[0]
        if word := re.search(r"=\s*(True|False)\b", wrong):
            why = f"write {word[1].lower()}, not {word[1]}"
        raise UsageError(f"{path}{place}: not TOML: {why}") from None
    except RecursionError:
        raise UsageError(
            f"{path}: lists or tables are nested too deep; write a flat file"
        ) from None
    for part in filter(None, header.split(".")):
        table = table.get(part, {}) if isinstance(table, dict) else {}
    if not isinstance(table, dict):
        raise UsageError(f"{path}: {header} is no table")
    yield from table.items()


def _line(text: str, header: str, key: str) -> int:
    """The line of a key in a table; the first line if the key is written in an unusual way."""
    table = ""
    for number, line in enumerate(text.split("\n"), start=1):
        if found := re.match(r"\s*\[([^\[\]]+)\]\s*(#.*)?$", line):
            table = found[1].replace(" ", "")
            if table == f"{header}.{key}".lstrip("."):
                return number
        elif table == header and re.match(rf"\s*[\"']?{re.escape(key)}[\"']?\s*[.=]", line):
            return number
    return 1


def _problem(option: str, value: object) -> str | None:
    """Why a file cannot have this; never with the value of an unknown key, which may be secret."""
    if option in ONCE:
        return f"{option!r} is for one command: give it on the command line"
    if option in DEFAULTS:
        try:
            DEFAULTS[option].check(value)
        except ValueError as error:
            return f"{option} {error}"
        return None
    if _SECRET.search(option):
        return (
            f"{option!r}: a key does not belong in a file that is shared: set the environment "
            "variable that 'bench models' names"
        )
    guess = did_you_mean(option, DEFAULTS, "'bench run --help' lists the options")
    return f"no option {option!r}; {guess}"


def doubt(folder: Path, option: str, value: object, *, can_confirm: bool) -> str | None:
    """Why the default of an option in a file of `folder` needs a confirmation, with the way to give
    one; `None` if it needs none. `can_confirm`: whether the verb has the option for a confirmation.
    """
    from eyechart.harness.face.options.trust import TRUST, is_outside, why_model, why_tasks

    setting = DEFAULTS[option]
    reasons: Iterable[str | None] = ()
    if setting.doubt:
        reasons = [f"{option!r} {setting.doubt}"]
    elif option == "out":
        reasons = ["'out' leads out of this folder"] * is_outside(folder, str(value))
    elif option == "model":
        reasons = (why_model(folder, name) for name in setting.check(value))
    elif option == "task":
        reasons = why_tasks(folder, ",".join(setting.check(value)))
    why = next(filter(None, reasons), None)
    if why is None:
        return None
    confirm = f"add {TRUST}, or " if can_confirm else ""
    return (
        f"{why}, and this file may be another's: {confirm}give the option on the command line or "
        f"in {variable(option)}"
    )
