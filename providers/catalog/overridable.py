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

from providers.base import SetupError

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
        table = yaml.load(path.read_text(encoding="utf-8"), Loader=_Loader) or {}  # noqa: S506  safe
        return TypeAdapter(dict[str, entry]).validate_python(table)  # type: ignore[valid-type]
    except OSError as error:
        raise SetupError(f"cannot read {str(path)!r}: {error.strerror}") from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        problem = first["msg"].lower().removeprefix("value error, ")
        raise SetupError(f"{path}: {where or 'top level'}: {problem}") from error
    except _TwiceError as error:
        raise SetupError(f"{path}:{error}") from error
    except (yaml.YAMLError, ValueError) as error:  # a date that is none is a ValueError
        raise SetupError(f"{path} is not YAML: {' '.join(str(error).split())}") from error
