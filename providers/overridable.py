"""Tables that ship as YAML and that users extend with a file of their own."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TypeVar

import yaml
from pydantic import BaseModel, TypeAdapter, ValidationError

from providers.base import SetupError

_LOADER: type = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
Entry = TypeVar("Entry", bound=BaseModel)


def entries(
    file_name: str, variable: str, entry: type[Entry], environ: Mapping[str, str] = os.environ
) -> dict[str, Entry]:
    """Name -> entry of the built-in `file_name`, under those of the file that `variable` names.

    Raises:
        SetupError: a file cannot be read or has a mistake.
    """
    found = _built_in(file_name, entry)
    if own := environ.get(variable):
        found = found | _read(Path(own), entry)
    return found


@cache
def _built_in(file_name: str, entry: type[Entry]) -> dict[str, Entry]:
    return _read(Path(__file__).with_name(file_name), entry)


def _read(path: Path, entry: type[Entry]) -> dict[str, Entry]:
    try:
        read = yaml.load(path.read_text(encoding="utf-8"), Loader=_LOADER) or {}  # noqa: S506  safe
        return TypeAdapter(dict[str, entry]).validate_python(read)  # type: ignore[valid-type]
    except OSError as error:
        raise SetupError(f"cannot read {str(path)!r}: {error.strerror}") from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        said = first["msg"].lower().removeprefix("value error, ")
        raise SetupError(f"{path}: {where or 'top level'}: {said}") from error
    except (yaml.YAMLError, ValueError) as error:  # a date that is none is a ValueError
        raise SetupError(f"{path} is not YAML: {' '.join(str(error).split())}") from error
