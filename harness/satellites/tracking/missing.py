"""The error of a tracker whose package is not installed."""

from __future__ import annotations

from importlib.util import find_spec

from eyechart.providers.base import SetupError, install
from eyechart.providers.naming import named


def check_installed(package: str) -> None:
    """Raises `SetupError` if the package of a tracker, which is an extra too, is missing."""
    if find_spec(package) is None:
        raise SetupError(
            f"{named('log_to', package)} needs the package {package}: {install(package)}"
        )
