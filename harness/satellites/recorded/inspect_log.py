"""The samples of a log of Inspect, read by inspect_ai itself."""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from copy import copy
from pathlib import Path
from typing import Any

from eyechart.harness.errors import JournalError, UsageError
from eyechart.harness.journal.files import open_regular
from eyechart.harness.satellites.recorded.fields import DRAW, MAX_DOCUMENT, FileRow
from eyechart.providers.base import install

_NO_STOP = "unknown"
"""Inspect's word for an unknown reason."""
_MEMBER = re.compile(r"samples/(.+)_epoch_([0-9]{1,9})\.json", re.DOTALL)
_CHUNK = 1 << 20
_MOST_PROBLEM = 200
"""Characters of a message."""
_DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, RuntimeError)
"""What `zipfile` raises; `RuntimeError` of an encrypted member or an unknown compression."""


def read_log(path: Path) -> Iterator[FileRow]:
    """The samples of a log; epochs are draws.

    Raises:
        UsageError: inspect_ai is not installed.
        JournalError: the log cannot be read.
    """
    try:
        from inspect_ai import log as inspect  # noqa: PLC0415  an optional package
    except ImportError:
        raise UsageError(
            f"{path} is a log of Inspect, which inspect_ai reads: {install('inspect')}"
        ) from None
    number = 0
    try:
        names = member_names(path)
        for sample in _samples(inspect, str(path), names):
            number += 1
            yield FileRow(number, _row(sample))
    except Exception as error:  # a file from outside; the reader has no error class of its own
        if isinstance(error, JournalError):
            raise
        raise JournalError(f"cannot read {path}: {_first_line(error)}") from error


def member_names(path: Path) -> list[str]:
    """The names of the members of a log, each of which was unpacked once and can be read whole.

    Inspect unpacks a member whatever size the archive declares.

    Raises:
        JournalError: a member is too large, encrypted or damaged, or the file is no archive.
    """
    try:
        with open_regular(path) as file, zipfile.ZipFile(file) as archive:
            for member in archive.infolist():
                if _size(archive, member) > MAX_DOCUMENT:
                    raise JournalError(
                        f"{path}: {member.filename!r} in it is larger than {MAX_DOCUMENT >> 20} "
                        "MiB, the most that is read; export its samples as JSON Lines"
                    )
            return archive.namelist()
    except _DAMAGED as error:
        raise JournalError(f"{path} is no log of Inspect that can be read: {error}") from error


def _size(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> int:
    """The bytes of a member as far as they are unpacked, not as they are declared."""
    member = copy(member)
    member.file_size, size = MAX_DOCUMENT + 2 * _CHUNK, 0  # `zipfile` stops there
    with archive.open(member) as unpacked:
        while size <= MAX_DOCUMENT and (chunk := unpacked.read(_CHUNK)):
            size += len(chunk)
    return size


def _samples(inspect: Any, path: str, names: Iterable[str]) -> Iterator[Any]:
    """The samples one by one, in the order of the data set; all at once if the log does not list
    them. The header may list samples and epochs that the log lacks.
    """
    ids = inspect.read_eval_log(path, header_only=True).eval.dataset.sample_ids
    if ids is None:
        yield from inspect.read_eval_log(path).samples or ()
        return
    epochs: dict[str, set[int]] = {}
    for match in filter(None, map(_MEMBER.fullmatch, names)):
        epochs.setdefault(match[1], set()).add(int(match[2]))
    for sample_id in dict.fromkeys(ids):
        for epoch in sorted(epochs.get(str(sample_id), ())):
            yield inspect.read_eval_log_sample(path, id=sample_id, epoch=epoch)


def _first_line(error: Exception) -> str:
    """What is wrong, in short, since the reader quotes the text that it read."""
    first = str(error).strip().partition("\n")[0]
    return first[:_MOST_PROBLEM] or type(error).__name__


def _row(sample: Any) -> dict[str, Any]:
    """Field -> value of a sample; `metadata` as Inspect has it."""
    output, error = sample.output, sample.error
    failed = error is not None or not output.choices
    stop = output.choices[0].stop_reason if output.choices else _NO_STOP
    usage = output.usage
    target = sample.target
    return {
        "id": str(sample.id),
        "item": str(sample.id),
        DRAW: sample.epoch,
        "prompt": _prompt(sample.input),
        "target": target[0] if isinstance(target, list) and len(target) == 1 else target,
        "reply": None if failed else output.completion,
        "error": (error.message if error is not None else "no output") if failed else None,
        "finish_reason": None if stop == _NO_STOP else stop,
        "model": output.model or None,
        "prompt_tokens": None if usage is None else usage.input_tokens,
        "output_tokens": None if usage is None else usage.output_tokens,
        "thought_tokens": None if usage is None else usage.reasoning_tokens,
        "metadata": sample.metadata,
    }


def _prompt(given: Any) -> str | None:
    """The last message of the user."""
    if isinstance(given, str):
        return given
    texts = [message.text for message in given if message.role == "user"]
    return texts[-1] if texts else None
