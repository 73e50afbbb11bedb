"""Checks of files that verbs write."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from eyechart.harness.errors import UsageError
from eyechart.harness.journal.files import is_another
from eyechart.harness.settings.figure import DRAWN
from eyechart.providers.base import install

PAGE = b"Eyechart</title>"
"""What every page has at its beginning."""


def check_output(option: str, path: Path | None, mark: bytes = b"") -> None:
    """Raises `UsageError` if `path` is a folder or a device, which no file may replace, or a file
    without the `mark` that every output of its kind has, such as a baseline or a file of a run.
    """
    if path is None:
        return
    if path.is_dir():
        raise UsageError(f"{option} {str(path)!r} is a folder; name a file")
    if path.exists() and not path.is_file():
        raise UsageError(f"{option} {str(path)!r} is no file that can be replaced; name another")
    if is_another(path, mark):
        raise UsageError(
            f"{option} {str(path)!r} is there and was not written by this option, so it would be "
            "lost; name another file"
        )


def check_drawing(option: str, form: str) -> None:
    """Raises `UsageError` where charts are to be drawn in this form without the extra for it."""
    if form in DRAWN and find_spec("vl_convert") is None:
        raise UsageError(
            f"{option} {form} needs the package vl-convert-python: {install('charts')}"
        )
