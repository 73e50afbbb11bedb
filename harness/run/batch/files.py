"""Reads and writes batch files within the vendors' limits.

The `custom_id` of each line names the run and the sample, and has the beginning of the prompt's
hash. So each reply finds its sample in any file and any order, and a changed prompt is noticed.
"""

from __future__ import annotations

import hashlib
import json
import re
from codecs import BOM_UTF8
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import orjson

from eyechart.harness.errors import JournalError
from eyechart.harness.journal.files import sync_file, sync_folder, writing
from eyechart.harness.plan.request import request_of
from eyechart.harness.spec import Condition, Sample, Settings

if TYPE_CHECKING:
    from eyechart.providers.batches import BatchForm

_RUN_DIGITS, _DIGITS = 12, 8
_CUSTOM_ID = re.compile(
    rf"(?P<run>[0-9a-f]{{{_RUN_DIGITS}}})-(?P<condition>[0-9a-f]{{{_DIGITS}}})"
    rf"-(?P<length>\d{{1,7}})-(?P<index>\d{{1,18}})-(?P<prompt>[0-9a-f]{{{_DIGITS}}})"
    r"(-(?P<draw>[1-9]\d{0,3}))?",
    re.ASCII,
)
"""At most 64 letters, digits and hyphens: the strictest limit among the vendors."""


@dataclass(frozen=True, slots=True)
class FileLimits:
    """Limits of one file: OpenAI's (its guide to the Batch API, November 2025)."""

    requests: int = 50_000
    size: int = 200_000_000
    """Bytes: the smaller meaning of "200 MB"."""


@dataclass(frozen=True, slots=True)
class CustomId:
    """The parts of a `custom_id`: the run and the sample of a request."""

    run: str
    """See `run_tag`."""
    condition: str
    """See `condition_tag`."""
    length: int
    index: int
    prompt: str
    """The first digits of the hash of the sample's prompt."""
    draw: int = 1


def run_tag(out: Path, folder: Path) -> str:
    """The tag of a run: a hash of its folder under `out`, whose name has the model, task, version
    and settings.
    """
    return _short(folder.relative_to(out / "runs").as_posix(), _RUN_DIGITS)


def condition_tag(condition: Condition) -> str:
    """The tag of a condition: a hash of its label."""
    return _short(condition.label, _DIGITS)


def _short(text: str, digits: int) -> str:
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:digits]


def custom_id(run: str, sample: Sample) -> str:
    """The `custom_id` of the request for `sample`; `run` is the tag of its run."""
    condition = condition_tag(sample.condition)
    prompt = sample.prompt_hash[:_DIGITS]
    draw = "" if sample.draw == 1 else f"-{sample.draw}"
    return f"{run}-{condition}-{sample.length}-{sample.index}-{prompt}{draw}"


def read_custom_id(given: object) -> CustomId | None:
    """The parts of a `custom_id` of ours; `None` for any other value."""
    match = _CUSTOM_ID.fullmatch(given) if isinstance(given, str) else None
    if match is None:
        return None
    length, index, draw = int(match["length"]), int(match["index"]), int(match["draw"] or 1)
    return CustomId(match["run"], match["condition"], length, index, match["prompt"], draw)


def request_line(
    run: str, sample: Sample, max_tokens: int, form: BatchForm, settings: Settings
) -> bytes:
    request = request_of(sample, max_tokens, settings.temperature, settings.seed, api=settings.api)
    line = {
        "custom_id": custom_id(run, sample),
        "method": "POST",
        "url": form.url,
        "body": form.body(request),
    }
    return orjson.dumps(line) + b"\n"


class RequestFile:
    """A file of requests that is being written; `keep` gives it its final name."""

    def __init__(self, partial: Path, limits: FileLimits) -> None:
        """Raises `JournalError` if the file cannot be written."""
        self._partial = partial
        self._limits = limits
        self.requests = 0
        self._size = 0
        with writing(partial):
            self._file = partial.open("wb")

    def takes(self, line: bytes) -> bool:
        """Whether the file stays within the limits with `line`; a first line always fits."""
        more = self.requests < self._limits.requests
        return not self.requests or (more and self._size + len(line) <= self._limits.size)

    def write(self, line: bytes) -> None:
        """Adds a request; raises `JournalError` if it cannot be written to the disk."""
        with writing(self._partial):
            self._file.write(line)
        self.requests += 1
        self._size += len(line)

    def keep(self, path: Path) -> None:
        """Ends the file and gives it its name; it is on the disk when this returns."""
        with writing(path):
            self._file.close()
            sync_file(self._partial)
            self._partial.replace(path)
            sync_folder(path.parent)

    def discard(self) -> None:
        """Closes the file and removes it, unless it was kept."""
        with suppress(OSError):  # what is still to be written, on a full disk
            self._file.close()
        self._partial.unlink(missing_ok=True)


class SplitFile:
    """`requests.jsonl`, or `requests-1.jsonl` and so on if one file cannot hold all lines.

    Use as a context manager. Files that were not kept are removed when it ends.
    """

    def __init__(self, path: Path, limits: FileLimits) -> None:
        self._path = path
        self._limits = limits
        self._parts: list[RequestFile] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for part in self._parts:
            part.discard()

    def write(self, line: bytes) -> None:
        """Adds a request, in a new file if the last one is full."""
        if not self._parts or not self._parts[-1].takes(line):
            name = f"{self._path.name}.{len(self._parts) + 1}.tmp"
            self._parts.append(RequestFile(self._path.with_name(name), self._limits))
        self._parts[-1].write(line)

    def keep(self) -> list[Path]:
        """Gives the files their names, and returns them in order."""
        paths = [self._path]
        if len(self._parts) != 1:
            numbers = range(1, len(self._parts) + 1)
            paths = [self._path.with_stem(f"{self._path.stem}-{number}") for number in numbers]
        for part, path in zip(self._parts, paths, strict=True):
            part.keep(path)
        return paths


@dataclass(frozen=True, slots=True)
class ReplyLine:
    """One line of a file of replies."""

    number: int
    read: dict[str, Any] | None
    """The line's JSON object; `None` if it is none."""
    torn: bool = False
    """Whether the line is incomplete: no JSON object, and the last line without a line end."""


def reply_lines(path: Path) -> Iterator[ReplyLine]:
    """The lines of a file of replies, one by one, without empty ones; raises `JournalError` if the
    file cannot be read.
    """
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                text = line.removeprefix(BOM_UTF8) if number == 1 else line
                if text.strip():
                    read = _read_object(text)
                    yield ReplyLine(number, read, torn=read is None and not line.endswith(b"\n"))
    except OSError as error:
        raise JournalError(f"cannot read {path}: {error.strerror}") from error


def _read_object(line: bytes) -> dict[str, Any] | None:
    try:
        read = orjson.loads(line)
    except orjson.JSONDecodeError:  # orjson refuses lone surrogates
        try:
            read = json.loads(line)
        except (ValueError, RecursionError):
            return None
    return read if isinstance(read, dict) else None
