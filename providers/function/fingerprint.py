"""A hash of the code of a function or an object, by which one that has changed is noticed."""

from __future__ import annotations

import dis
import hashlib
from collections.abc import Iterator, Sequence
from functools import partial
from types import CodeType, FunctionType, MethodType
from typing import Any

_PLAIN = (str, bytes, int, float, complex, type(None), type(...))
_STORES = ("STORE_GLOBAL", "STORE_DEREF")


def facts_of(model: object) -> dict[str, object]:
    """The facts of a function or an object of this program; no manifest can have it whole."""
    return {"engine": "function", "code_sha256": fingerprint(model), "repeatable": False}


def facts_of_file(content: bytes) -> dict[str, object]:
    """The facts of what a file of this content has."""
    return {"engine": "function", "file_sha256": hashlib.sha256(content).hexdigest()[:16]}


def fingerprint(model: object) -> str:
    """The hash of the code, and of the texts and numbers that it uses: those of its module, of its
    closure, its defaults and its object's attributes. What the code itself changes is left out,
    such as a counter, and so is what it calls in other modules. Another version of Python has other
    hashes.
    """
    digest = hashlib.sha256()
    for part in _parts(model, set()):
        digest.update(f"{part}\n".encode(errors="surrogatepass"))
    return digest.hexdigest()[:16]


def _parts(value: Any, seen: set[int]) -> Iterator[str]:
    """The texts that tell a value from others."""
    if isinstance(value, _PLAIN):
        yield repr(value)
        return
    if id(value) in seen:
        return
    seen.add(id(value))
    if (inside := _inside(value)) is not None:
        for one in inside:
            yield from _parts(one, seen)
    elif isinstance(value, FunctionType):
        yield from _of_function(value, seen)
    elif isinstance(value, type):
        yield from _of_class(value, seen)
    else:
        yield from _of_object(value, seen)


def _inside(value: Any) -> Sequence[object] | None:
    """What a value holds; `None` of one that holds nothing."""
    if isinstance(value, tuple):
        return value
    if isinstance(value, frozenset):  # its order differs from process to process
        return sorted(map(repr, value))
    if isinstance(value, CodeType):
        return value.co_code, value.co_names, value.co_consts
    if isinstance(value, MethodType):
        return value.__func__, value.__self__
    if isinstance(value, partial):
        return value.func, value.args, tuple(sorted(value.keywords.items()))
    if isinstance(value, staticmethod | classmethod):
        return (value.__func__,)
    return (value.fget, value.fset) if isinstance(value, property) else None


def _of_function(function: FunctionType, seen: set[int]) -> Iterator[str]:
    yield from _parts(function.__code__, seen)
    defaults = tuple(sorted((function.__kwdefaults__ or {}).items()))
    yield from _parts((function.__defaults__, defaults), seen)
    codes = list(_codes(function.__code__))
    stored = {name for code in codes for name in _stored(code, _STORES)}
    free = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    used = {name: _content(cell) for name, cell in free}
    for name in sorted({name for code in codes for name in code.co_names}):
        if name in function.__globals__:
            used[name] = function.__globals__[name]
    for name, value in used.items():
        is_own = getattr(value, "__module__", None) == function.__module__
        if name not in stored and (_is_plain(value) or (is_own and _is_code(value))):
            yield name
            yield from _parts(value, seen)


def _of_class(of: type, seen: set[int]) -> Iterator[str]:
    yield of.__qualname__
    for one in of.__mro__:
        if one.__module__ == of.__module__:
            for name, value in vars(one).items():
                if not name.startswith("__") or _is_code(value):
                    yield name
                    yield from _parts(value, seen) if _is_plain(value) or _is_code(value) else ()


def _of_object(value: object, seen: set[int]) -> Iterator[str]:
    of = type(value)
    yield from _parts(of, seen)
    stored = {
        name
        for one in of.__mro__
        for method, function in vars(one).items()
        if isinstance(function, FunctionType) and method not in ("__init__", "__post_init__")
        for code in _codes(function.__code__)
        for name in _stored(code, ("STORE_ATTR",))
    }
    for name, attribute in sorted(getattr(value, "__dict__", {}).items()):
        if name not in stored and _is_plain(attribute):
            yield name
            yield from _parts(attribute, seen)


def _codes(code: CodeType) -> Iterator[CodeType]:
    """The code, and that of the functions inside it."""
    yield code
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield from _codes(one)


def _stored(code: CodeType, how: tuple[str, ...]) -> Iterator[str]:
    """The names that the code gives values to."""
    for one in dis.get_instructions(code):
        if one.opname in how:
            yield str(one.argval)


def _content(cell: Any) -> object:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return None


def _is_plain(value: object) -> bool:
    if isinstance(value, tuple | frozenset):
        return all(map(_is_plain, value))
    return isinstance(value, _PLAIN)


def _is_code(value: object) -> bool:
    return isinstance(
        value, FunctionType | MethodType | partial | staticmethod | classmethod | property | type
    )
