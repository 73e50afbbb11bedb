"""What is printed of an error that the user can mend, and the exit code that it sets."""

from __future__ import annotations

import sys
from typing import TypeAlias

from harness.cli.terminal import drop_output, say, warn
from harness.errors import INCOMPLETE, EyechartError
from providers.base import ProviderError

Failure: TypeAlias = EyechartError | ProviderError | OSError | MemoryError
FAILURES = (EyechartError, ProviderError, OSError, MemoryError)
"""The errors that are printed as lines; others are mistakes of this program."""


def explain(error: Failure) -> int:
    """Prints what went wrong; returns the exit code."""
    if isinstance(error, OSError):
        drop_output(sys.stdout)  # it cannot be flushed any more
    first, *more = lines_of(error)
    warn(first)
    say(*more)
    return INCOMPLETE if isinstance(error, OSError | MemoryError) else error.exit_code


def lines_of(error: Failure) -> list[str]:
    """What went wrong, as lines for the user."""
    if isinstance(error, OSError):
        return [f"{error.strerror or error}: {error.filename or 'output'}"]
    if isinstance(error, MemoryError):
        detail = f" ({error})" if str(error) else ""
        return [f"out of memory{detail}; ask for less at a time"]
    return [*error.lines] if isinstance(error, EyechartError) else [str(error)]
