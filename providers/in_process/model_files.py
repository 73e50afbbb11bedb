"""Reads files of a model folder, which may come from a stranger."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from eyechart.providers.base import BadRequestError, ProviderError, SetupError

if TYPE_CHECKING:
    from pathlib import Path

_MOST_BYTES = 1 << 26
"""Most bytes of a file without weights; the largest tokenizers have about half of it."""
_MOST_ADDED = 1 << 20
"""Characters that a chat template adds to a prompt, at most."""
_SHOWN = 200

Ids = TypeVar("Ids", bound=Sequence[int])


def is_there(path: Path) -> bool:
    """Whether a folder has an entry with this name: a file, a pipe or a broken link."""
    return os.path.lexists(path)


def read_content(path: Path) -> bytes:
    """The content of a file.

    Raises:
        SetupError: it is not there, is no plain file, is too large, or cannot be read.
    """
    if not path.is_file():
        if not is_there(path):
            raise SetupError(
                f"no {path.name} in {str(path.parent)!r}; give the folder of a saved model"
            )
        raise SetupError(f"{str(path)!r} is no file; save the model again")
    if (size := path.stat().st_size) > _MOST_BYTES:
        raise SetupError(
            f"{str(path)!r} has {size:,} bytes, more than {_MOST_BYTES:,}, so it is no file of a "
            "model that can be read here"
        )
    try:
        return path.read_bytes()
    except OSError as error:
        raise SetupError(f"{str(path)!r} cannot be read: {error.strerror}") from error


def read_text(path: Path) -> str:
    """The text of a file; raises `SetupError` like `read_content`, or if it is not UTF-8."""
    try:
        return read_content(path).decode()
    except UnicodeDecodeError as error:
        raise SetupError(f"{str(path)!r} is not UTF-8; save the model again") from error


def read_object(path: Path) -> dict[str, Any]:
    """The JSON object in a file; raises `SetupError` like `read_content`, or if there is none."""
    try:
        content = json.loads(read_content(path))
    except (ValueError, RecursionError) as error:
        raise SetupError(f"{str(path)!r} is not JSON ({error}); save the model again") from error
    if not isinstance(content, dict):
        raise SetupError(f"{str(path)!r} holds no JSON object; save the model again")
    return content


def one_line(value: object) -> str:
    """The text of an error, or of something in a file, in one line that is not too long."""
    text = " ".join(str(value)[: 2 * _SHOWN].split())
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


@contextmanager
def tokenizing(folder: Path) -> Iterator[None]:
    """Raises `SetupError` for any error of the library of tokenizers, and for a panic of its Rust
    code, which is no `Exception`: a regular expression that takes too long ends so.

    A text with a lone surrogate is the prompt's fault: `BadRequestError`.
    """
    try:
        yield
    except ProviderError:
        raise
    except TypeError as error:
        raise BadRequestError("the prompt has a lone surrogate, which is no character") from error
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise SetupError(
            f"the tokenizer of {str(folder)!r} fails: {one_line(error)}; save it again"
        ) from error


@contextmanager
def rendering() -> Iterator[None]:
    """Raises `SetupError` for any error of a chat template, whose code can raise all kinds."""
    try:
        yield
    except Exception as error:
        why = one_line(error) or type(error).__name__
        raise SetupError(
            f"the chat template fails: {why}; correct the template, or ask without a system prompt"
        ) from error


def check_rendered(text: str, prompt: str) -> str:
    """`text`, which a chat template made of a prompt; raises `SetupError` if it is far longer."""
    if len(text) > len(prompt) + _MOST_ADDED:
        raise SetupError(
            f"the chat template makes {len(text):,} characters of a prompt of {len(prompt):,}; "
            "correct the template"
        )
    return text


def characters(
    prompt: str, text: str, offsets: Iterable[tuple[int, int]]
) -> tuple[tuple[int, int] | None, ...]:
    """The characters of `prompt` that each token stands for, as in `Tokens.spans`; `text` is the
    prompt in the chat template, and `offsets` are the characters of its tokens.

    Raises:
        SetupError: the text does not have the prompt.
    """
    start = text.rfind(prompt)
    if start < 0:
        raise SetupError("the chat template changes the prompt, so its tokens cannot be found")
    end = start + len(prompt)
    return tuple(
        (max(first, start) - start, min(last, end) - start)
        if first < end and last > start
        else None
        for first, last in offsets
    )


def check_ids(ids: Ids, vocabulary: int) -> Ids:
    """`ids`, tokens of a prompt; raises `SetupError` if the model has no embedding for one."""
    if ids and (largest := max(ids)) >= vocabulary:
        raise SetupError(
            f"the tokenizer makes the token {largest}, and the model has {vocabulary:,} tokens; "
            "use the tokenizer that was saved with the model"
        )
    return ids
