"""Loads what a Python file of the user's has under a name, and checks that it can be asked."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from eyechart.providers.base import SetupError
from eyechart.providers.plugins.contract import a_kind, described

COMPLETE = "complete"
"""The method by which an object is asked."""
_TAKES_BY_PLACE = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
    inspect.Parameter.VAR_POSITIONAL,
)


def load(path: Path, name: str) -> tuple[object, bytes]:
    """What the file has under this name, and the content of the file, which is executed anew each
    time: so the content is the code that answers. What it imports is found beside it too.

    Raises:
        SetupError: the file cannot be read or executed, or has no such name.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise SetupError(f"{path} cannot be read: {error.strerror}") from error
    module = ModuleType(f"eyechart_model_{path.stem}")
    module.__file__ = str(path.resolve())
    sys.modules[module.__name__] = module  # dataclasses look it up
    if (folder := str(path.resolve().parent)) not in sys.path:
        sys.path.append(folder)
    try:
        exec(compile(content, module.__file__, "exec"), module.__dict__)  # noqa: S102  the user's
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # code of the user's, which may raise anything
        said = described(error, module.__file__)
        raise SetupError(f"executing {path} raised {said}; correct it") from error
    if (found := getattr(module, name, None)) is None:
        own = [key for key, one in vars(module).items() if _is_of(one, module) and key[0] != "_"]
        raise SetupError(f"{path} has no {name!r}; it has {', '.join(own) or 'no function'}")
    return found, content


def _is_of(value: object, module: ModuleType) -> bool:
    is_own = getattr(value, "__module__", None) == module.__name__
    return is_own and (inspect.isfunction(value) or hasattr(value, COMPLETE))


def asked_by(model: object, place: str) -> tuple[object, Callable[..., Any]]:
    """The function or the object, an object made of a class, and what is called with each prompt
    or request.

    Raises:
        SetupError: it is neither, is a generator, or does not take one argument.
    """
    if isinstance(model, type):
        if not hasattr(model, COMPLETE):
            raise SetupError(f"{place} is a class without {COMPLETE}(request); add the method")
        try:
            model = model()
        except Exception as error:  # code of the user's, which may raise anything
            raise SetupError(f"{place}() raised {described(error)}; give an object") from error
    complete: Any = getattr(model, COMPLETE, None)
    called, what = (model, "prompt") if complete is None else (complete, "request")
    method = "" if complete is None else f".{COMPLETE}"
    if not callable(called):
        raise SetupError(
            f"{place} is no model: it is {a_kind(model)}, and neither a function that "
            f"takes a prompt nor an object with {COMPLETE}(request)"
        )
    code = called if inspect.isroutine(called) else getattr(called, "__call__", called)  # noqa: B004
    if inspect.isgeneratorfunction(code) or inspect.isasyncgenfunction(code):
        raise SetupError(f"{place}{method} yields parts; let it return the whole text")
    try:
        signature = inspect.signature(called)
    except (TypeError, ValueError):  # of a function in C, which does not say what it takes
        return model, called
    try:
        signature.bind("")
    except TypeError:
        remedy = "give the others a default"
        kinds = {one.kind for one in signature.parameters.values()}
        if kinds.isdisjoint(_TAKES_BY_PLACE):
            before = ", before the *" * (inspect.Parameter.KEYWORD_ONLY in kinds)
            remedy = f"give it a parameter for the {what}{before}"
        raise SetupError(
            f"{place}{method} takes {signature}, and is called with the {what} alone; {remedy}"
        ) from None
    return model, called
