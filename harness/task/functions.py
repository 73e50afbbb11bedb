"""Loads functions of a task's author by path, and shows their errors in one line."""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import os
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from eyechart.providers.plugins.contract import described


class ItemError(Exception):
    """A generator, a scorer or an items file is missing, fails, or gives something invalid. The
    message is one line in lower case.
    """


def load_function(task_file: Path, reference: str, what: str) -> tuple[Path, Callable[..., Any]]:
    """The file and the function in `reference`, which is `file.py:function` relative to
    `task_file`. `what` is "generator" or "scorer", for messages.

    Raises:
        ItemError: the file or function is missing, or its import fails.
    """
    file_name, _, function_name = reference.rpartition(":")
    try:
        path = (task_file.parent / file_name).resolve()
        exists = path.is_file()
    except (OSError, ValueError, RuntimeError):
        exists = False
    if not exists:
        raise ItemError(f"{what} file {file_name!r} is not there (looked beside the task file)")
    module = load_module(path)
    function = getattr(module, function_name, None)
    if function is None:
        names = [n for n, v in vars(module).items() if inspect.isfunction(v) and n[0] != "_"]
        raise ItemError(
            f"no function {function_name!r} in {file_name!r}; it has {', '.join(names) or 'none'}"
        )
    if not inspect.isfunction(function):
        kind = type(function).__name__
        raise ItemError(f"{function_name!r} in {file_name!r} is no function, its type is {kind}")
    return path, function


@cache
def load_module(path: Path) -> object:
    """The module in `path`; raises `ItemError` where its import fails."""
    name = f"eyechart_task_{hashlib.sha256(os.fsencode(path)).hexdigest()[:12]}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    writes_bytecode = sys.dont_write_bytecode
    sys.dont_write_bytecode = True
    try:
        spec.loader.exec_module(module)
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:  # code of the task's author, which may raise anything
        raise ItemError(f"importing {path.name} raised {described(error, path)}") from error
    finally:
        sys.dont_write_bytecode = writes_bytecode
    return module
