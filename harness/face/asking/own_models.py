"""The functions and objects that the user has asked as models, so that their runs are asked more.

A run's folder may come from a stranger, so the name of a file in its manifest loads no code: a file
is loaded again where the user has asked it from here, and it has not changed. A function of a
program is known to that program alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from eyechart.harness.errors import UsageError
from eyechart.providers.catalog.price_list import cache_folder
from eyechart.providers.registry.model_name import ModelName

_HASH = "code_sha256"
_functions: dict[tuple[Path, object], object] = {}
"""Folder of a run and hash of the code -> the function or object that this program asks there."""


def remember(name: ModelName, folder: Path) -> None:
    """Records what is asked in the folder of a run, if it is a function or an object."""
    if name.function is not None:
        _functions[folder.resolve(), name.known_facts().get(_HASH)] = name.function
    elif name.executes:
        with suppress(OSError):
            mark = _mark(Path(name.executes))
            mark.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            mark.touch()


def remembered(name: ModelName, folder: Path, server: Mapping[str, object]) -> object:
    """The function or object of this program that was asked in the folder of a run, whose facts are
    `server`; `None` where the model is none of these.

    Raises:
        UsageError: the model is code that the user has not asked from here.
    """
    if name.executes:
        with suppress(OSError):
            if _mark(Path(name.executes)).exists():
                return None
        why = f"{name.executes} was never asked from here as it is now, and a run loads no code"
    elif name.is_code and (folder.resolve(), server.get(_HASH)) not in _functions:
        why = "its model is a function of a Python program, which alone can ask it"
    else:
        return _functions.get((folder.resolve(), server.get(_HASH)))
    raise UsageError(f"{folder} cannot be asked again: {why}; ask it with the call that made it")


def _mark(file: Path) -> Path:
    """The file whose presence says that the user has asked this file with this content."""
    path = file.expanduser().resolve()
    digest = hashlib.sha256(f"{path}\n".encode() + path.read_bytes()).hexdigest()
    return cache_folder() / "models" / digest[:32]
