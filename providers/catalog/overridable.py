"""Built-in YAML tables that users can extend with a file of their own."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, TypeAdapter, ValidationError

try:
    from yaml import CSafeLoader as _SafeLoader
except ImportError:  # PyYAML built without libyaml
    from yaml import SafeLoader as _SafeLoader  # type: ignore[assignment]

from eyechart.providers.base import SetupError
from eyechart.providers.catalog.mistakes import mistake_of, syntax_mistake

Entry = TypeVar("Entry", bound=BaseModel)


class _Loader(_SafeLoader):
    """A safe loader that refuses duplicate keys."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002  PyYAML's
        places: dict[str, yaml.Mark] = {}
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            mark = key.start_mark
            if (first := places.setdefault(key.value, mark)) is not mark:
                message = f"key {key.value!r} is here twice (first on line {first.line + 1})"
                raise _TwiceError(f"{mark.line + 1}: {message}")
        return super().construct_mapping(node, deep=deep)


class _TwiceError(Exception):
    """A key that is in the file twice; the message has its line."""


def entries(
    file_name: str, variable: str, entry: type[Entry], environ: Mapping[str, str] = os.environ
) -> dict[str, Entry]:
    """Name -> entry of the built-in `file_name`, overridden by the file that `variable` names.

    Raises:
        SetupError: a file cannot be read or has a mistake.
    """
    table = _built_in(file_name, entry)
    if own := environ.get(variable):
        table = table | _read(Path(own), entry)
    return table


@cache
def _built_in(file_name: str, entry: type[Entry]) -> dict[str, Entry]:
    return _read(Path(__file__).with_name(file_name), entry)


def _read(path: Path, entry: type[Entry]) -> dict[str, Entry]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise SetupError(f"cannot read {str(path)!r}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise SetupError(f"{path} is not UTF-8; write it in UTF-8") from error
    try:
        table = yaml.load(text, Loader=_Loader) or {}  # noqa: S506  safe
        return TypeAdapter(dict[str, entry]).validate_python(table)  # type: ignore[valid-type]
    except ValidationError as error:
        root = yaml.compose(text, Loader=_SafeLoader)
        raise SetupError(f"{path}:{mistake_of(error, entry, root)}") from error
    except _TwiceError as error:
        raise SetupError(f"{path}:{error}") from error
    except yaml.MarkedYAMLError as error:
        raise SetupError(f"{path}{syntax_mistake(error)}") from error
    except (yaml.YAMLError, ValueError) as error:  # a date that is none is a ValueError
        what = " ".join(str(error).split())
        raise SetupError(f"{path}: not YAML: {what}; a date is written as 2026-01-31") from error
