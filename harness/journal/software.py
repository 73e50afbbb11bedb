"""Versions of the software that makes a run or an export."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version


def software() -> dict[str, str]:
    """The versions of Eyechart and Python, and the platform, of this process."""
    try:
        own = version("eyechart")
    except PackageNotFoundError:
        own = "not installed"
    return {"eyechart": own, "python": platform.python_version(), "platform": platform.platform()}
