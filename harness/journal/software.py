"""Versions of the software that makes a run or an export."""

from __future__ import annotations

import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from eyechart.providers.plugins.plugins import Plugin


def software(*plugins: Plugin | None) -> dict[str, str]:
    """The versions of Eyechart, Python, the platform, and the distributions of used plugins."""
    return {
        **{plugin.distribution: plugin.version for plugin in plugins if plugin is not None},
        "eyechart": _own_version(),
        "python": platform.python_version(),
        "platform": platform.platform(),
    }


@cache
def _own_version() -> str:
    try:
        return version("eyechart")
    except PackageNotFoundError:
        return "not installed"
